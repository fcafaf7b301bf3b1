package kernel

import (
	"math"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// Rounding twice is wrong when the first rounding makes a tie of what was none. Rounding the first times to odd avoids that: a number that does not fit is
// cut off, and its last digit is set to 1, which says "there was more" to the last rounding. Each step must keep two digits more than the last one.

// odd64 rounds the magnitude of an integer to odd, at the 53 digits of a float64.
func odd64(x uint64) float64 {
	if cut := bits.Len64(x) - 53; cut > 0 {
		rest := x & (1<<cut - 1)
		x &^= rest
		if rest != 0 {
			x |= 1 << cut
		}
	}
	return float64(x)
}

// odd32 rounds to a float32, to odd. Infinities and NaN stay; what is too large becomes the largest number, which is odd.
func odd32(x float64) float32 {
	f := float32(x)
	if float64(f) == x || x != x {
		return f
	}
	u := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(x) {
		u--
	}
	return math.Float32frombits(u | 1)
}

// odd16 is the upper half of the bits of a float32, rounded to odd: a bfloat16 of 8 digits, where the float8 formats have at most 5.
func odd16(x float32) uint16 {
	u := math.Float32bits(x)
	half := uint16(u >> 16)
	if u&0xffff != 0 {
		half |= 1
	}
	return half
}

// viaReal brings integers into the real part of the buffer, rounded to odd, for storers that round from there to 24 digits or fewer.
func viaReal(from class, store storer) storer {
	switch from {
	case signed:
		return func(dst unsafe.Pointer, step int64, n int, b *buffer) {
			for k, x := range b.i[:n] {
				if x < 0 {
					b.re[k] = -odd64(-uint64(x))
				} else {
					b.re[k] = odd64(uint64(x))
				}
			}
			store(dst, step, n, b)
		}
	case unsigned:
		return func(dst unsafe.Pointer, step int64, n int, b *buffer) {
			for k, x := range b.i[:n] {
				b.re[k] = odd64(uint64(x))
			}
			store(dst, step, n, b)
		}
	}
	return store
}

// nearest brings integers into the real part of the buffer, rounded to the nearest.
func nearest(from class, store storer) storer {
	switch from {
	case signed:
		return func(dst unsafe.Pointer, step int64, n int, b *buffer) {
			for k, x := range b.i[:n] {
				b.re[k] = float64(x)
			}
			store(dst, step, n, b)
		}
	case unsigned:
		return func(dst unsafe.Pointer, step int64, n int, b *buffer) {
			for k, x := range b.i[:n] {
				b.re[k] = float64(uint64(x))
			}
			store(dst, step, n, b)
		}
	}
	return store
}

var encodeTables [256]struct {
	once  sync.Once
	codes *[1 << 16]uint8
}

// encodeTable is the nearest codes of a float8 format by the upper half of a float32; see odd16.
func encodeTable(code dlpack.TypeCode) *[1 << 16]uint8 {
	t := &encodeTables[code]
	t.once.Do(func() {
		t.codes = new([1 << 16]uint8)
		for half := range t.codes {
			t.codes[half] = dlpack.EncodeMinifloat(code, math.Float32frombits(uint32(half)<<16))
		}
	})
	return t.codes
}
