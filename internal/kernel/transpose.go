package kernel

import "unsafe"

// A plane is two axes of a copy of which one, a, has its elements next to one another in dst, and the other, b, in src: a transpose. Walking along either
// one touches a new line of the other tensor's memory at each element. So a plane is copied in tiles of one line of src by four of dst: read in one go, turned
// in a buffer that stays in the nearest cache, and written in one go.
const (
	tileColumns = 256 // bytes of a row of dst in a tile
	tileRows    = 64  // bytes of a row of src in a tile
)

// Of less than directBytes the lines stay in the cache from one use to the next: no tile is needed. What is no smaller than streamBytes is written past the
// caches, which saves reading the lines of dst first. Tests change them.
var (
	directBytes int64 = 128 << 10
	streamBytes int64 = 1 << 20
)

// block transposes na rows of src, srcStep bytes apart, of nb adjacent elements each, into nb rows of dst.
type block func(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)

// blocks is a fast block for multiples of na by multiples of nb elements; its function is nil where there is none.
type blocks struct {
	f      block
	na, nb int64
}

// transposer copies planes of elements of one size.
type transposer struct {
	size int64
	fast blocks
	any  block
	tile []byte // nil: no tiles are needed
	// stream says that dst is to be written past the caches.
	stream bool
	// write, if not nil, writes rows of the tile as elements of dstSize bytes.
	write   func(dst uintptr, tile unsafe.Pointer, bytes int64)
	dstSize int64
}

// newTransposer makes one for a goroutine that copies so many bytes in all; nil if the elements have no such size.
func newTransposer(size, bytes int64) *transposer {
	t := &transposer{size: size, dstSize: size, any: anyBlock(size)}
	if t.any == nil {
		return nil
	}
	t.fast = blocksOf(size)
	if bytes >= directBytes {
		t.useTile()
	}
	t.stream = simd && bytes >= streamBytes
	return t
}

func (t *transposer) useTile() { t.tile = make([]byte, max(tileColumns*t.high(), 4096)) }

// high is how many rows of dst a tile has.
func (t *transposer) high() int64 { return max(tileRows/t.size, 8) }

// turn transposes by whole blocks as far as they go, and the rest element by element.
func (t *transposer) turn(dst uintptr, dstStep int64, src uintptr, srcStep int64, na, nb int64) {
	fastA, fastB := int64(0), int64(0)
	switch {
	case nb <= 4:
		if fastA = split(dst, dstStep, src, srcStep, t.size, na, nb); fastA > 0 {
			fastB = nb
		}
	case na <= 4:
		if fastB = join(dst, dstStep, src, srcStep, t.size, na, nb); fastB > 0 {
			fastA = na
		}
	}
	if t.fast.f != nil && fastA == 0 && na >= t.fast.na && nb >= t.fast.nb {
		fastA, fastB = na&^(t.fast.na-1), nb&^(t.fast.nb-1)
		t.fast.f(pointer(dst), dstStep, pointer(src), srcStep, fastA, fastB)
	}
	if fastA == 0 {
		t.any(pointer(dst), dstStep, pointer(src), srcStep, na, nb)
		return
	}
	if fastA < na {
		t.any(pointer(dst+uintptr(fastA*t.size)), dstStep, pointer(src+uintptr(fastA*srcStep)), srcStep, na-fastA, nb)
	}
	if fastB < nb {
		t.any(pointer(dst+uintptr(fastB*dstStep)), dstStep, pointer(src+uintptr(fastB*t.size)), srcStep, fastA, nb-fastB)
	}
}

// plane copies a plane. a steps by one element in dst, b in src.
func (t *transposer) plane(dst, src uintptr, a, b axis) {
	// With few elements in one direction there are few lines to come back to.
	narrow := a.n*t.size < 64 || b.n*t.size < 64
	if t.tile == nil || narrow && !t.stream && t.write == nil {
		t.turn(dst, b.dst, src, a.src, a.n, b.n)
		return
	}
	buffer := uintptr(unsafe.Pointer(unsafe.SliceData(t.tile)))
	if a.n*t.size < 64 && b.dst == a.n*t.dstSize { // one row of dst in all
		pitch := a.n * t.size
		high := int64(len(t.tile)) / pitch &^ 63
		for k := int64(0); k < b.n; k += high {
			m := min(high, b.n-k)
			t.turn(buffer, pitch, src+uintptr(k*t.size), a.src, a.n, m)
			t.flush(dst+uintptr(k*b.dst), 0, 0, 1, m*pitch)
		}
		return
	}
	high := t.high()
	pitch := max(tileColumns, int64(len(t.tile))/min(high, b.n)&^(tileColumns-1)) / t.size * t.size
	wide := pitch / t.size
	// The first tiles are cut short so that the others begin with a line.
	for i, n := int64(0), wide-offset(dst, b.dst, t.dstSize); i < a.n; i, n = i+n, wide {
		n = min(n, a.n-i)
		for k, m := int64(0), high-offset(src, a.src, t.size); k < b.n; k, m = k+m, high {
			m = min(m, b.n-k)
			t.turn(buffer, pitch, src+uintptr(i*a.src+k*t.size), a.src, n, m)
			t.flush(dst+uintptr(i*t.dstSize+k*b.dst), b.dst, pitch, m, n*t.size)
		}
	}
}

// offset says by how many elements an address is off from a line, if that is so in every row.
func offset(address uintptr, step, size int64) int64 {
	if step%64 != 0 || 64%size != 0 {
		return 0
	}
	return int64(address%64) / size
}

// flush writes the tile.
func (t *transposer) flush(dst uintptr, dstStep, pitch, rows, bytes int64) {
	if t.write != nil {
		for k := range rows {
			t.write(dst+uintptr(k*dstStep), unsafe.Pointer(&t.tile[k*pitch]), bytes)
		}
		return
	}
	if t.stream {
		streamRows(pointer(dst), dstStep, unsafe.Pointer(unsafe.SliceData(t.tile)), pitch, rows, bytes)
		return
	}
	for k := range rows {
		copy(unsafe.Slice((*byte)(pointer(dst+uintptr(k*dstStep))), bytes), t.tile[k*pitch:])
	}
}

// anyBlock is a block of any number of elements, or nil.
func anyBlock(size int64) block {
	switch size {
	case 1:
		return turnAny[uint8]
	case 2:
		return turnAny[uint16]
	case 3:
		return turnAny[[3]uint8]
	case 4:
		return turnAny[uint32]
	case 6:
		return turnAny[[3]uint16]
	case 8:
		return turnAny[uint64]
	case 12:
		return turnAny[[3]uint32]
	case 16:
		return turnAny[[2]uint64]
	case 24:
		return turnAny[[3]uint64]
	case 32:
		return turnAny[[4]uint64]
	case 48:
		return turnAny[[6]uint64]
	case 64:
		return turnAny[[8]uint64]
	}
	return nil
}

// turnAny has the longer loop inside, in pieces that leave the lines of the shorter one in the cache.
func turnAny[T any](dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64) {
	const piece = 128
	size := int64(unsafe.Sizeof(*new(T)))
	if na < nb {
		for k := int64(0); k < nb; k += piece {
			m := min(piece, nb-k)
			for i := range na {
				d, s := unsafe.Add(dst, i*size+k*dstStep), unsafe.Add(src, i*srcStep+k*size)
				moveAll[T](d, s, m, dstStep, size)
			}
		}
		return
	}
	for i := int64(0); i < na; i += piece {
		n := min(piece, na-i)
		for k := range nb {
			d, s := unsafe.Add(dst, i*size+k*dstStep), unsafe.Add(src, i*srcStep+k*size)
			moveAll[T](d, s, n, size, srcStep)
		}
	}
}
