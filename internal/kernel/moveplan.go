package kernel

import "slices"

// leastPlane is from how many bytes on a plane repays its preparations. Tests change it.
var leastPlane int64 = 512

// movePlan copies elements of size bytes as they are, on at most threads goroutines.
func movePlan(p *plan, size, bytes int64, threads int) {
	size = p.widen(size)
	if a, b := p.findPlane(size, size); a >= 0 && bytes >= leastPlane {
		parallel(p.split(workers(2*bytes, parallelBytes, threads)), func(p *plan) {
			p.planes(a, b, newTransposer(size, bytes))
		})
		return
	}
	streamed := simd && bytes >= streamCopyBytes
	least := int64(parallelBytes)
	if p.copiesRows(size) {
		least = parallelCopyBytes
	}
	parallel(p.split(workers(2*bytes, least, threads)), func(p *plan) {
		p.rows(mover(size, streamed))
		if streamed {
			fence()
		}
	})
}

// widen takes elements that are adjacent in both tensors as one, if that gives a size that there are loops for.
func (p *plan) widen(size int64) int64 {
	last := len(p.axes) - 1
	if last < 1 || p.axes[last].dst != size || p.axes[last].src != size {
		return size
	}
	wide := p.axes[last].n * size
	if anyBlock(wide) == nil {
		return size
	}
	p.axes = p.axes[:last]
	return wide
}

// copiesRows says whether the elements of the innermost axis are adjacent in both tensors.
func (p *plan) copiesRows(size int64) bool {
	last := len(p.axes) - 1
	return last < 0 || p.axes[last].dst == size && p.axes[last].src == size
}

// findPlane says which axes are a plane of elements of these sizes, or -1.
func (p *plan) findPlane(dstSize, srcSize int64) (a, b int) {
	last := len(p.axes) - 1
	if last < 1 || p.axes[last].dst != dstSize || p.axes[last].src == srcSize || anyBlock(srcSize) == nil {
		return -1, -1
	}
	for k := range last {
		if p.axes[k].src == srcSize {
			return last, k
		}
	}
	return -1, -1
}

// planes copies plane by plane.
func (p *plan) planes(a, b int, t *transposer) {
	first, second := p.axes[a], p.axes[b]
	outer := plan{dst: p.dst, src: p.src, axes: slices.Delete(slices.Clone(p.axes[:a]), b, b+1)}
	outer.each(func(dst, src uintptr) { t.plane(dst, src, first, second) })
	if t.stream {
		fence()
	}
}
