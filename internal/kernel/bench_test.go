package kernel

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// tensorOf describes a slice; the strides are in elements.
func tensorOf(mem []byte, d dlpack.DataType, shape, strides []int64) *dlpack.Tensor {
	t := &dlpack.Tensor{Data: uintptr(unsafe.Pointer(&mem[0])), Device: dlpack.CPU, DType: d, NDim: int32(len(shape))}
	t.Shape, t.Strides = uintptr(unsafe.Pointer(&shape[0])), uintptr(unsafe.Pointer(&strides[0]))
	return t
}

func compact(shape ...int64) []int64 {
	strides, step := make([]int64, len(shape)), int64(1)
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = step
		step *= shape[k]
	}
	return strides
}

// BenchmarkMove copies permuted compact tensors. The bytes a second are those of the result, as of a copy.
func BenchmarkMove(b *testing.B) {
	for _, c := range []struct {
		name  string
		size  int64
		shape []int64 // of src
		axes  []int   // of src, in the order of dst
	}{
		{"transpose-4", 4, []int64{8192, 8192}, []int{1, 0}},
		{"transpose-8", 8, []int64{4096, 4096}, []int{1, 0}},
		{"transpose-2", 2, []int64{8192, 8192}, []int{1, 0}},
		{"transpose-1", 1, []int64{8192, 8192}, []int{1, 0}},
		{"transpose-16", 16, []int64{2048, 2048}, []int{1, 0}},
		{"transpose-4-odd", 4, []int64{4095, 8191}, []int{1, 0}},
		{"transpose-1-odd", 1, []int64{8191, 8191}, []int{1, 0}},
		{"transpose-4-1000", 4, []int64{1000, 1000}, []int{1, 0}},
		{"transpose-4-512", 4, []int64{512, 512}, []int{1, 0}},
		{"transpose-4-100", 4, []int64{100, 100}, []int{1, 0}},
		{"transpose-4-8", 4, []int64{8, 8}, []int{1, 0}},
		{"hwc-chw-3", 1, []int64{12_000_000, 3}, []int{1, 0}},
		{"hwc-chw-4", 1, []int64{12_000_000, 4}, []int{1, 0}},
		{"chw-hwc-3", 1, []int64{3, 12_000_000}, []int{1, 0}},
		{"chw-hwc-4", 1, []int64{4, 12_000_000}, []int{1, 0}},
		{"hwc-chw-3-224", 1, []int64{224 * 224, 3}, []int{1, 0}},
		{"hwc-chw-3-float", 4, []int64{4_000_000, 3}, []int{1, 0}},
		{"nhwc-nchw", 4, []int64{32, 56 * 56, 64}, []int{0, 2, 1}},
		{"heads", 4, []int64{64, 128, 512, 8}, []int{0, 2, 1, 3}},
		{"image-turned", 1, []int64{3000, 4000, 3}, []int{1, 0, 2}},
		{"copy-256M", 4, []int64{1 << 26}, []int{0}},
		{"copy-1M", 4, []int64{1 << 18}, []int{0}},
		{"copy-16", 4, []int64{16}, []int{0}},
	} {
		shape, strides := make([]int64, len(c.shape)), make([]int64, len(c.shape))
		n := c.size
		for i, k := range c.axes {
			shape[i], strides[i] = c.shape[k], compact(c.shape...)[k]
			n *= c.shape[k]
		}
		benchmarkCopy(b, c.name, n, n, shape, strides, opaque(c.size), opaque(c.size))
	}
}

func BenchmarkStrided(b *testing.B) {
	for _, size := range []int64{1, 4} {
		benchmarkCopy(b, fmt.Sprint("second-of-two-", size), size<<22, size<<23, []int64{1 << 22}, []int64{2}, opaque(size), opaque(size))
		benchmarkCopy(b, fmt.Sprint("turned-around-", size), size<<22, size<<22, []int64{1 << 22}, []int64{-1}, opaque(size), opaque(size))
	}
	benchmarkCopy(b, "second-of-two-256M", 4<<25, 4<<26, []int64{1 << 25}, []int64{2}, opaque(4), opaque(4))
	benchmarkCopy(b, "colours-turned-around", 12_000_000, 12_000_000, []int64{4_000_000, 3}, []int64{3, -1}, opaque(1), opaque(1))
	benchmarkCopy(b, "half-rows", 4096*4096*4, 4096*8192*4, []int64{4096, 4096}, []int64{8192, 1}, opaque(4), opaque(4))
}

func benchmarkCopy(b *testing.B, name string, dstBytes, srcBytes int64, shape, strides []int64, to, from dlpack.DataType) {
	b.Run(name, func(b *testing.B) {
		dst, src := make([]byte, dstBytes+64), make([]byte, srcBytes+64)
		for i := range src {
			src[i] = byte(i * 7)
		}
		rows := compact(shape...)
		d, s := tensorOf(dst[16:], to, shape, rows), tensorOf(src[16:], from, shape, strides)
		for k, step := range strides {
			if step < 0 {
				s.ByteOffset += uint64(shape[k]-1) * uint64(-step) * uint64(from.Bits) / 8 * uint64(from.Lanes)
			}
		}
		for _, threads := range []int{1, 2} {
			if threads > 1 && dstBytes < parallelBytes {
				continue
			}
			b.Run(fmt.Sprint(threads), func(b *testing.B) {
				b.SetBytes(dstBytes)
				b.ReportAllocs()
				for b.Loop() {
					if err := Copy(d, s, threads); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		for _, used := range []any{dst, src, shape, strides, rows} {
			runtime.KeepAlive(used)
		}
	})
}
