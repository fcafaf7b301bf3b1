package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// guarded is memory between two pages that fault. At the end or at the beginning of it lie n bytes.
func guarded(t *testing.T, n int, atEnd bool) []byte {
	page := syscall.Getpagesize()
	inside := max(1, (n+page-1)/page) * page
	all, err := syscall.Mmap(-1, 0, inside+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(all) })
	for _, guard := range [][]byte{all[:page], all[page+inside:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if atEnd {
		return all[page+inside-n : page+inside]
	}
	return all[page : page+n]
}

// TestNothingBesidesTheElementsIsTouched has both tensors end, or begin, where the memory does: a load of more than what is asked for would fault.
func TestNothingBesidesTheElementsIsTouched(t *testing.T) {
	types := []pair{{opaque(1), opaque(1)}, {opaque(2), opaque(2)}, {opaque(3), opaque(3)}, {opaque(4), opaque(4)}, {opaque(8), opaque(8)}, {opaque(16), opaque(16)},
		{dlpack.DTypeFloat32, dlpack.DTypeUint8}, {dlpack.DTypeBFloat16, dlpack.DTypeFloat32}, {dlpack.DTypeInt32, dlpack.DTypeInt64}, {dlpack.DTypeFloat64, dlpack.DTypeFloat16}}
	for _, limits := range [][2]int64{{1 << 40, 1 << 40}, {0, 0}} {
		inTiles(t, limits[0], limits[1])
		r := rand.New(rand.NewPCG(31, 32))
		for i := range 150 {
			p := types[i%len(types)]
			to, _ := p.to.ItemSize(0)
			from, _ := p.from.ItemSize(0)
			n, m, all := 1+r.Int64N(90), 1+r.Int64N(90), int64(0)
			if i%3 == 0 {
				n = 1 + r.Int64N(4)
			}
			all = n + r.Int64N(3) // of which n are wanted
			shape, rows, columns := []int64{n, m}, []int64{m, 1}, []int64{1, all}
			// Rows of m from the first n of pixels of all, and the other way round.
			narrow := (m-1)*all + n
			for _, c := range []struct {
				toStrides, fromStrides []int64
				toCount, fromCount     int64
			}{{rows, columns, n * m, narrow}, {columns, rows, narrow, n * m}, {rows, rows, n * m, n * m}} {
				dst, src := guarded(t, int(c.toCount*to), i%2 == 0), guarded(t, int(c.fromCount*from), i%4 < 2)
				fill(src, r)
				d, s := tensorOf(dst, p.to, shape, c.toStrides), tensorOf(src, p.from, shape, c.fromStrides)
				if err := Copy(d, s, 1); err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprint(p, shape, c.toStrides, c.fromStrides)
				for k := range n {
					for j := range m {
						a := dst[(k*c.toStrides[0]+j*c.toStrides[1])*to:][:to]
						b := src[(k*c.fromStrides[0]+j*c.fromStrides[1])*from:][:from]
						if p.to != p.from {
							b = buffered(p.to, p.from, b, 1)
						}
						if !bytes.Equal(a, b) {
							t.Fatalf("%s: element %d %d is %x, want %x", name, k, j, a, b)
						}
					}
				}
				for _, used := range [][]int64{shape, c.toStrides, c.fromStrides} {
					runtime.KeepAlive(used)
				}
			}
		}
	}
}
