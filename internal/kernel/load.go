package kernel

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

func at[T any](base unsafe.Pointer, step int64, k int) *T {
	return (*T)(unsafe.Add(base, int64(k)*step))
}

// loadBool takes any byte: a producer's true need not be 1.
func loadBool(src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		b.i[k] = 0
		if *at[uint8](src, step, k) != 0 {
			b.i[k] = 1
		}
	}
}

func loadInt[T dlpack.Integer](src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		b.i[k] = int64(*at[T](src, step, k))
	}
}

func loadFloat[T dlpack.Float](src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		b.re[k] = float64(*at[T](src, step, k))
	}
}

func loadFloat16(src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		b.re[k] = float64(at[dlpack.Float16](src, step, k).Float32())
	}
}

func loadBFloat16(src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		b.re[k] = float64(at[dlpack.BFloat16](src, step, k).Float32())
	}
}

func loadFloat8(values *[256]float32) loader {
	return func(src unsafe.Pointer, step int64, n int, b *buffer) {
		for k := range n {
			b.re[k] = float64(values[*at[uint8](src, step, k)])
		}
	}
}

func loadComplex32(src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		c := at[dlpack.Complex32](src, step, k)
		b.re[k], b.im[k] = float64(c.Real.Float32()), float64(c.Imag.Float32())
	}
}

func loadComplex64(src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		c := at[[2]float32](src, step, k)
		b.re[k], b.im[k] = float64(c[0]), float64(c[1])
	}
}

func loadComplex128(src unsafe.Pointer, step int64, n int, b *buffer) {
	for k := range n {
		c := at[[2]float64](src, step, k)
		b.re[k], b.im[k] = c[0], c[1]
	}
}
