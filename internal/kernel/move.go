package kernel

import "unsafe"

// streamCopyBytes is from where on a plain copy is written past the caches. A smaller one is no slower by way of them, and its result is then at hand.
var streamCopyBytes int64 = 8 << 20

// streamRow is the least row that is worth streaming.
const streamRow = 512

// mover is the innermost loop of a copy without conversion, for elements of size bytes. It streams adjacent ones if it is to.
func mover(size int64, streamed bool) func(dst, src unsafe.Pointer, a axis) {
	if streamed {
		other := mover(size, false)
		return func(dst, src unsafe.Pointer, a axis) {
			if a.dst == size && a.src == size && a.n*size >= streamRow {
				stream(dst, src, a.n*size)
				return
			}
			other(dst, src, a)
		}
	}
	switch size {
	case 1:
		return move[uint8]
	case 2:
		return move[uint16]
	case 4:
		return move[uint32]
	case 8:
		return move[uint64]
	case 16:
		return move[[2]uint64]
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

// move holds no pointer past an element: such a pointer may lie in memory that is not ours, and the garbage collector minds.
func move[T any](dst, src unsafe.Pointer, a axis) {
	size := int64(unsafe.Sizeof(*new(T)))
	if a.dst == size && a.src == size {
		copy(unsafe.Slice((*byte)(dst), a.n*size), unsafe.Slice((*byte)(src), a.n*size))
		return
	}
	for i := range a.n {
		*(*T)(unsafe.Add(dst, i*a.dst)) = *(*T)(unsafe.Add(src, i*a.src))
	}
}
