package kernel

import (
	"math"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

func storeBoolOfInt(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[bool](dst, step, k) = b.i[k] != 0
	}
}

func storeBool(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[bool](dst, step, k) = b.re[k] != 0
	}
}

func storeBoolOfComplex(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[bool](dst, step, k) = b.re[k] != 0 || b.im[k] != 0
	}
}

func storeInt[T dlpack.Integer](dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[T](dst, step, k) = T(b.i[k])
	}
}

// truncate drops the fraction. What no int64 holds, NaN too, becomes the smallest one: what the hardware of x86 answers, here on every machine.
func truncate(x float64) int64 {
	if x >= -0x1p63 && x < 0x1p63 {
		return int64(x)
	}
	return math.MinInt64
}

func storeIntOfReal[T dlpack.Integer](dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[T](dst, step, k) = T(truncate(b.re[k]))
	}
}

func storeUint64OfReal(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		if x := b.re[k]; x >= 0x1p63 && x < 0x1p64 {
			*at[uint64](dst, step, k) = uint64(x-0x1p63) | 1<<63
		} else {
			*at[uint64](dst, step, k) = uint64(truncate(x))
		}
	}
}

func storeFloatOfInt[T dlpack.Float](dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[T](dst, step, k) = T(b.i[k])
	}
}

func storeFloatOfUint[T dlpack.Float](dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[T](dst, step, k) = T(uint64(b.i[k]))
	}
}

func storeFloat[T dlpack.Float](dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[T](dst, step, k) = T(b.re[k])
	}
}

func storeFloat16(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[dlpack.Float16](dst, step, k) = dlpack.Float16From64(b.re[k])
	}
}

func storeBFloat16(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[dlpack.BFloat16](dst, step, k) = dlpack.NewBFloat16(odd32(b.re[k]))
	}
}

func storeFloat8(codes *[1 << 16]uint8) storer {
	return func(dst unsafe.Pointer, step int64, n int, b *buffer) {
		for k := range n {
			*at[uint8](dst, step, k) = codes[odd16(odd32(b.re[k]))]
		}
	}
}

func storeComplex32(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[dlpack.Complex32](dst, step, k) = dlpack.Complex32{Real: dlpack.Float16From64(b.re[k]), Imag: dlpack.Float16From64(b.im[k])}
	}
}

func storeComplex64(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[[2]float32](dst, step, k) = [2]float32{float32(b.re[k]), float32(b.im[k])}
	}
}

func storeComplex128(dst unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		*at[[2]float64](dst, step, k) = [2]float64{b.re[k], b.im[k]}
	}
}

func withoutImaginary(store storer) storer {
	return func(dst unsafe.Pointer, step int64, n int, b *buffer) {
		clear(b.im[:n])
		store(dst, step, n, b)
	}
}
