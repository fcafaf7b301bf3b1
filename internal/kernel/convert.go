package kernel

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// vector casts adjacent elements, a multiple of 32, and says how many it has done: it may stop before 32 that are to be done one by one.
type vector func(dst, src unsafe.Pointer, n int64) int64

type pair struct{ to, from dlpack.DataType }

// vectorOf is the fast way of a cast of adjacent elements. Pairs that have none of their own may have one by way of float32, where that holds every number of
// the source: then it is the second step alone that rounds.
func vectorOf(to, from dlpack.DataType) vectors {
	if v := vectorCast(to, from); v != nil {
		return vectors{first: v}
	}
	if first := vectorCast(dlpack.DTypeFloat32, from); first != nil && from.Bits <= 16 {
		if second := vectorCast(to, dlpack.DTypeFloat32); second != nil && !isInteger(to) {
			return vectors{first, second}
		}
	}
	return vectors{}
}

// vectors is one step, or two with a float32 in between.
type vectors struct{ first, second vector }

// casting is a cast on its way.
type casting struct {
	newRow   func() row
	vector   vectors
	dst, src int64 // sizes of elements
	inPlace  bool
}

// streamCast is how many elements are cast before they are written past the caches: few enough for the nearest cache.
const streamCast = 1024

// worker is what a goroutine needs for a cast.
type worker struct {
	*casting
	row     row
	between *[streamCast]float32
	out     []byte // nil: the result goes to dst at once
}

func (c *casting) run(p *plan, n int64, threads int) {
	a, b := -1, -1
	if !c.inPlace && n*c.src >= 4*leastPlane {
		a, b = p.findPlane(c.dst, c.src)
	}
	bytes := n * c.dst
	parallel(p.split(workers(n*(c.dst+c.src), parallelBytes, threads)), func(p *plan) {
		w := &worker{casting: c, row: c.newRow()}
		if c.vector.second != nil {
			w.between = new([streamCast]float32)
		}
		if simd && bytes >= streamCopyBytes && !c.inPlace {
			w.out = make([]byte, streamCast*c.dst)
			defer fence()
		}
		if a < 0 {
			p.rows(w.cast)
			return
		}
		t := newTransposer(c.src, bytes)
		t.useTile()
		t.write = func(dst uintptr, tile unsafe.Pointer, bytes int64) {
			w.cast(pointer(dst), tile, axis{bytes / c.src, c.dst, c.src})
		}
		t.dstSize = c.dst
		p.planes(a, b, t)
	})
}

// cast does a row.
func (w *worker) cast(dst, src unsafe.Pointer, a axis) {
	if w.vector.first == nil && w.out == nil || a.dst != w.dst || a.src != w.src || a.n < 32 {
		w.row(dst, src, a)
		return
	}
	if w.out == nil {
		w.adjacent(dst, src, a.n)
		return
	}
	out := unsafe.Pointer(unsafe.SliceData(w.out))
	for done, n := int64(0), int64(0); done < a.n; done += n {
		n = min(streamCast, a.n-done)
		w.adjacent(out, unsafe.Add(src, done*w.src), n)
		streamRows(unsafe.Add(dst, done*w.dst), 0, out, 0, 1, n*w.dst)
	}
}

// adjacent does elements that lie next to one another on both sides.
func (w *worker) adjacent(dst, src unsafe.Pointer, n int64) {
	const most = 1 << 17 // an assembly function is not interrupted for the garbage collector
	done := int64(0)
	for w.vector.first != nil && n-done >= 32 {
		m := (n - done) &^ 31
		d, s := unsafe.Add(dst, done*w.dst), unsafe.Add(src, done*w.src)
		if w.vector.second != nil {
			m = min(m, streamCast)
			w.vector.first(unsafe.Pointer(w.between), s, m)
			w.vector.second(d, unsafe.Pointer(w.between), m)
			done += m
			continue
		}
		m = min(m, most)
		if did := w.vector.first(d, s, m); did < m {
			w.row(unsafe.Add(d, did*w.dst), unsafe.Add(s, did*w.src), axis{32, w.dst, w.src})
			m = did + 32
		}
		done += m
	}
	if done < n {
		w.row(unsafe.Add(dst, done*w.dst), unsafe.Add(src, done*w.src), axis{n - done, w.dst, w.src})
	}
}
