package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// FuzzCopy lays out two tensors as the bytes say and compares a copy between them with one element by element, by both ways.
func FuzzCopy(f *testing.F) {
	f.Add(uint64(1), []byte{4, 8, 8}, uint8(0))
	f.Add(uint64(2), []byte{1, 3, 200}, uint8(1))
	f.Add(uint64(3), []byte{1, 200, 4}, uint8(6))
	f.Add(uint64(4), []byte{2, 2, 33, 17}, uint8(3))
	f.Add(uint64(5), []byte{12, 5, 70, 1, 9}, uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, layout []byte, way uint8) {
		if len(layout) == 0 || len(layout) > 7 {
			return
		}
		r := rand.New(rand.NewPCG(seed, 0))
		shape, n := make([]int64, len(layout)-1), int64(1)
		for k, b := range layout[1:] {
			shape[k] = int64(b)
			if n *= max(1, int64(b)); n > 1<<16 {
				return
			}
		}
		switch way % 3 {
		case 1:
			inTiles(t, 0, 1<<40)
		case 2:
			inTiles(t, 0, 0)
		}
		var to []int64
		if way&4 != 0 {
			to = randomStrides(shape, r, false)
		}
		size := 1 + int64(layout[0]%64)
		bothWays(t, func(t *testing.T) {
			dst, src := newArray(opaque(size), shape, to, r), newArray(opaque(size), shape, permuted(shape, r), r)
			checkCopy(t, fmt.Sprint(size, " bytes ", shape, src.strides, to), dst, src, 1+int(way%2))
		})
	})
}
