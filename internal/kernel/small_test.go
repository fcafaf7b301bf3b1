package kernel

import (
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// BenchmarkSmall is what a copy costs before it copies.
func BenchmarkSmall(b *testing.B) {
	benchmarkCopy(b, "copy-16", 64, 64, []int64{16}, []int64{1}, opaque(4), opaque(4))
	benchmarkCopy(b, "copy-1024", 4096, 4096, []int64{1024}, []int64{1}, opaque(4), opaque(4))
	benchmarkCopy(b, "transpose-4x4", 64, 64, []int64{4, 4}, []int64{1, 4}, opaque(4), opaque(4))
	benchmarkCopy(b, "transpose-16x16", 1024, 1024, []int64{16, 16}, []int64{1, 16}, opaque(4), opaque(4))
	benchmarkCopy(b, "3-axes", 96, 96, []int64{2, 3, 4}, []int64{1, 8, 2}, opaque(4), opaque(4))
	benchmarkCopy(b, "cast-16", 128, 64, []int64{16}, []int64{1}, dlpack.DTypeFloat64, dlpack.DTypeFloat32)
	benchmarkCopy(b, "cast-3x4", 48, 12, []int64{3, 4}, []int64{1, 3}, dlpack.DTypeFloat32, dlpack.DTypeUint8)
	benchmarkCopy(b, "cast-1024", 2048, 4096, []int64{1024}, []int64{1}, dlpack.DTypeBFloat16, dlpack.DTypeFloat32)
}
