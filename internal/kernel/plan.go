package kernel

import (
	"slices"
	"unsafe"
)

// axis is one loop: n steps, each of dst and src bytes.
type axis struct {
	n, dst, src int64
}

// plan is a copy as nested loops, outermost first, over element addresses. Every dst step is positive.
type plan struct {
	dst, src uintptr
	axes     []axis
}

// pointer turns an address that the caller keeps valid into a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// newPlan brings the axes into the order of dst's memory and merges those that are one loop in both tensors. Steps are in bytes.
func newPlan(dst, src uintptr, axes []axis) *plan {
	p := &plan{dst: dst, src: src, axes: axes[:0]}
	for _, a := range axes {
		if a.n == 1 {
			continue
		}
		if a.dst < 0 {
			p.dst += uintptr((a.n - 1) * a.dst)
			p.src += uintptr((a.n - 1) * a.src)
			a.dst, a.src = -a.dst, -a.src
		}
		p.axes = append(p.axes, a)
	}
	slices.SortStableFunc(p.axes, func(a, b axis) int {
		switch {
		case a.dst > b.dst:
			return -1
		case a.dst < b.dst:
			return 1
		}
		return 0
	})
	merged := p.axes[:0]
	for _, a := range p.axes {
		if k := len(merged) - 1; k >= 0 && merged[k].dst == a.n*a.dst && merged[k].src == a.n*a.src {
			merged[k] = axis{merged[k].n * a.n, a.dst, a.src}
			continue
		}
		merged = append(merged, a)
	}
	p.axes = merged
	return p
}

// split cuts the plan into at most parts plans of disjoint elements: along an outer axis that is long enough for even parts, else along the longest one.
func (p *plan) split(parts int) []*plan {
	longest := -1
	for i, a := range p.axes {
		if a.n >= 8*int64(parts) {
			longest = i
			break
		}
		if longest < 0 || a.n > p.axes[longest].n {
			longest = i
		}
	}
	if longest < 0 || parts < 2 {
		return []*plan{p}
	}
	a := p.axes[longest]
	parts = int(min(int64(parts), a.n))
	each := a.n / int64(parts)
	if each > 256 {
		each &^= 63 // whole lines of memory, where the tensor has such
	}
	out := make([]*plan, parts)
	for i := range out {
		from, to := each*int64(i), each*int64(i+1)
		if i == parts-1 {
			to = a.n
		}
		axes := slices.Clone(p.axes)
		axes[longest].n = to - from
		out[i] = &plan{dst: p.dst + uintptr(from*a.dst), src: p.src + uintptr(from*a.src), axes: axes}
	}
	return out
}

// rows calls row for every innermost loop. Where that is short and the next one is not, it takes some of the next one at a time for each step of the
// innermost: calls cost more than going over the same few lines again.
func (p *plan) rows(row func(dst, src unsafe.Pointer, a axis)) {
	if len(p.axes) == 0 {
		row(pointer(p.dst), pointer(p.src), axis{n: 1})
		return
	}
	last := len(p.axes) - 1
	const short, some = 8, 256
	if next := last - 1; next >= 0 && p.axes[last].n <= short && p.axes[next].n >= 4*short {
		a, long, outer := p.axes[last], p.axes[next], plan{p.dst, p.src, p.axes[:next]}
		outer.each(func(dst, src uintptr) {
			for i := int64(0); i < long.n; i += some {
				d, s := dst+uintptr(i*long.dst), src+uintptr(i*long.src)
				for k := range a.n {
					row(pointer(d+uintptr(k*a.dst)), pointer(s+uintptr(k*a.src)), axis{min(some, long.n-i), long.dst, long.src})
				}
			}
		})
		return
	}
	inner, outer := p.axes[last], plan{p.dst, p.src, p.axes[:last]}
	outer.each(func(dst, src uintptr) { row(pointer(dst), pointer(src), inner) })
}

// each calls f with the addresses of every element, in the order of dst's memory.
func (p *plan) each(f func(dst, src uintptr)) {
	dst, src := p.dst, p.src
	var room [8]int64 // most tensors need no memory for this
	at := append(room[:0], make([]int64, len(p.axes))...)
	for {
		f(dst, src)
		k := len(p.axes) - 1
		for ; k >= 0; k-- {
			a := &p.axes[k]
			at[k]++
			dst += uintptr(a.dst)
			src += uintptr(a.src)
			if at[k] < a.n {
				break
			}
			at[k] = 0
			dst -= uintptr(a.n * a.dst)
			src -= uintptr(a.n * a.src)
		}
		if k < 0 {
			return
		}
	}
}
