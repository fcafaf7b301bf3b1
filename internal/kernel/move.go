package kernel

import "unsafe"

// streamCopyBytes is from where on a plain copy is written past the caches. A smaller one is no slower by way of them, and its result is then at hand.
var streamCopyBytes int64 = 8 << 20

// streamRow is the least row that is worth streaming.
const streamRow = 512

// mover is the innermost loop of a copy without conversion, for elements of size bytes. One that streams writes rows of adjacent elements past the caches.
func mover(size int64, streamed bool) row {
	m := plainMover(size)
	if !streamed {
		return m
	}
	const most = 4096
	out := make([]byte, most+size)
	return func(dst, src unsafe.Pointer, a axis) {
		switch {
		case a.dst != size || a.n*size < streamRow:
			m(dst, src, a)
		case a.src == size:
			stream(dst, src, a.n*size)
		default: // collect some first
			from := unsafe.Pointer(unsafe.SliceData(out))
			for done, n := int64(0), int64(0); done < a.n; done += n {
				n = min(max(most/size, 1), a.n-done)
				m(from, unsafe.Add(src, done*a.src), axis{n, size, a.src})
				streamRows(unsafe.Add(dst, done*size), 0, from, 0, 1, n*size)
			}
		}
	}
}

func plainMover(size int64) row {
	switch size {
	case 1:
		return move[uint8]
	case 2:
		return move[uint16]
	case 3:
		return move[[3]uint8]
	case 4:
		return move[uint32]
	case 6:
		return move[[3]uint16]
	case 8:
		return move[uint64]
	case 12:
		return move[[3]uint32]
	case 16:
		return move[[2]uint64]
	case 24:
		return move[[3]uint64]
	case 32:
		return move[[4]uint64]
	case 48:
		return move[[6]uint64]
	case 64:
		return move[[8]uint64]
	}
	return func(dst, src unsafe.Pointer, a axis) {
		if a.dst == size && a.src == size {
			copy(unsafe.Slice((*byte)(dst), a.n*size), unsafe.Slice((*byte)(src), a.n*size))
			return
		}
		for i := range a.n {
			copy(unsafe.Slice((*byte)(unsafe.Add(dst, i*a.dst)), size), unsafe.Slice((*byte)(unsafe.Add(src, i*a.src)), size))
		}
	}
}

func move[T any](dst, src unsafe.Pointer, a axis) {
	size := int64(unsafe.Sizeof(*new(T)))
	switch {
	case a.dst == size && a.src == size:
		copy(unsafe.Slice((*byte)(dst), a.n*size), unsafe.Slice((*byte)(src), a.n*size))
	case a.dst == size:
		moveAll[T](dst, src, a.n, size, a.src)
	default:
		moveAll[T](dst, src, a.n, a.dst, a.src)
	}
}

// moveAll holds no pointer past an element: such a pointer may lie in memory that is not ours, and the garbage collector minds.
func moveAll[T any](dst, src unsafe.Pointer, n, dstStep, srcStep int64) {
	d, s := int64(0), int64(0)
	for ; n >= 4; n -= 4 {
		x0, x1 := *(*T)(unsafe.Add(src, s)), *(*T)(unsafe.Add(src, s+srcStep))
		s += 2 * srcStep
		x2, x3 := *(*T)(unsafe.Add(src, s)), *(*T)(unsafe.Add(src, s+srcStep))
		s += 2 * srcStep
		*(*T)(unsafe.Add(dst, d)), *(*T)(unsafe.Add(dst, d+dstStep)) = x0, x1
		d += 2 * dstStep
		*(*T)(unsafe.Add(dst, d)), *(*T)(unsafe.Add(dst, d+dstStep)) = x2, x3
		d += 2 * dstStep
	}
	for ; n > 0; n-- {
		*(*T)(unsafe.Add(dst, d)) = *(*T)(unsafe.Add(src, s))
		s += srcStep
		d += dstStep
	}
}
