package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// opaque is a type of so many bytes.
func opaque(size int64) dlpack.DataType {
	return dlpack.DataType{Code: dlpack.CodeUint, Bits: 8, Lanes: uint16(size)}
}

// bothWays runs a test with the assembly and with the loops in Go.
func bothWays(t *testing.T, f func(t *testing.T)) {
	if simd {
		t.Run("assembly", f)
	}
	t.Run("portable", func(t *testing.T) {
		was := simd
		simd = false
		defer func() { simd = was }()
		f(t)
	})
}

// inTiles makes every transpose use tiles, and stream them, whatever its size.
func inTiles(t *testing.T, direct, stream int64) {
	limits := []*int64{&directBytes, &streamBytes, &streamCopyBytes, &leastPlane}
	for i, value := range []int64{direct, stream, stream, 0} {
		was := *limits[i]
		*limits[i] = value
		t.Cleanup(func() { *limits[i] = was })
	}
}

// TestTransposesOfEverySize goes over the edges of blocks and tiles, in all three ways a transpose is done: directly, by tiles, and by streamed tiles.
func TestTransposesOfEverySize(t *testing.T) {
	extents := []int64{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 70}
	for name, limits := range map[string][2]int64{"direct": {1 << 40, 1 << 40}, "tiles": {0, 1 << 40}, "streamed": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			inTiles(t, limits[0], limits[1])
			bothWays(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(9, 10))
				for _, size := range []int64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80} {
					for _, n := range extents {
						for range 5 {
							m := extents[r.IntN(len(extents))]
							gap, skip := int64(r.IntN(3))*int64(r.IntN(20)), int64(r.IntN(3))*int64(r.IntN(20))
							dst := newArray(opaque(size), []int64{n, m}, []int64{m + gap, 1}, r)
							src := newArray(opaque(size), []int64{n, m}, []int64{1, n + skip}, r)
							checkCopy(t, fmt.Sprint(size, " bytes ", n, "x", m, " gaps ", gap, skip), dst, src, 1)
						}
					}
				}
			})
		})
	}
}

// TestTransposesBetweenLargerStrides has rows as long as lines and pages, where all rows share the place of their first element in a line, at every such place.
func TestTransposesBetweenLargerStrides(t *testing.T) {
	inTiles(t, 0, 0)
	bothWays(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		for _, size := range []int64{1, 2, 4, 8, 16} {
			for range 40 {
				n, m := 1+r.Int64N(700/size), 1+r.Int64N(700/size)
				dst := newArray(opaque(size), []int64{n, m}, []int64{1024 / size, 1}, r)
				src := newArray(opaque(size), []int64{n, m}, []int64{1, 2048 / size}, r)
				checkCopy(t, fmt.Sprint(size, " bytes ", n, "x", m), dst, src, 1)
			}
		}
	})
}

// TestPermutationsOfEveryRank permutes up to six axes, some of extent 1, some turned around or broadcast.
func TestPermutationsOfEveryRank(t *testing.T) {
	inTiles(t, 2048, 8192)
	bothWays(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for i := range 800 {
			size := []int64{1, 2, 4, 8, 16, 3, 5, 32}[i%8]
			shape := make([]int64, r.IntN(7))
			room := int64(20000)
			for k := range shape {
				if shape[k] = 1; r.IntN(5) > 0 {
					shape[k] = 1 + r.Int64N(min(70, room))
				}
				room = max(1, room/shape[k])
			}
			var ds []int64
			if r.IntN(2) == 0 {
				ds = randomStrides(shape, r, false)
			}
			dst, src := newArray(opaque(size), shape, ds, r), newArray(opaque(size), shape, permuted(shape, r), r)
			checkCopy(t, fmt.Sprint(size, " bytes ", shape, src.strides, ds), dst, src, 1+r.IntN(3))
		}
	})
}

// permuted is the strides of a permuted compact tensor; every third time some axes are turned or broadcast.
func permuted(shape []int64, r *rand.Rand) []int64 {
	strides, step, wild := make([]int64, len(shape)), int64(1), r.IntN(3) == 0
	for _, k := range r.Perm(len(shape)) {
		strides[k] = step
		step *= shape[k]
		if wild && r.IntN(4) == 0 {
			strides[k] *= int64(r.IntN(2)) - 1
		}
	}
	return strides
}

// TestPixels splits and joins pixels of up to six channels, also when only some of them are wanted, at the end of the memory.
func TestPixels(t *testing.T) {
	for _, limits := range [][2]int64{{1 << 40, 1 << 40}, {0, 1 << 40}, {0, 0}} {
		inTiles(t, limits[0], limits[1])
		bothWays(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(15, 16))
			for i := range 600 {
				size := []int64{1, 2, 4, 8, 16, 3}[i%6]
				n, all := 1+r.Int64N(300), 1+r.Int64N(6)
				wanted := 1 + r.Int64N(all)
				name := fmt.Sprint(size, " bytes ", n, " pixels ", wanted, " of ", all)
				pixels := newArray(opaque(size), []int64{wanted, n}, []int64{1, all}, r)
				pixels.mem = pixels.mem[:len(pixels.mem)-margin] // nothing may be read there
				rows := newArray(opaque(size), []int64{wanted, n}, []int64{n + r.Int64N(9), 1}, r)
				checkCopy(t, "split "+name, rows, pixels, 1)
				checkCopy(t, "join "+name, pixels, rows, 1)
			}
		})
	}
}

// TestStreamedRows has rows about as long as what the assembly takes at a time, at every place of a line.
func TestStreamedRows(t *testing.T) {
	inTiles(t, 0, 0)
	r := rand.New(rand.NewPCG(17, 18))
	for i := range int64(300) {
		n := 64<<(i%12) + r.Int64N(200) - 60
		dst, src := newArray(opaque(1), []int64{3, n}, []int64{n + i%7*13, 1}, r), newArray(opaque(1), []int64{3, n}, []int64{n + i%64, 1}, r)
		checkCopy(t, fmt.Sprint("3 rows of ", n), dst, src, 2)
	}
}
