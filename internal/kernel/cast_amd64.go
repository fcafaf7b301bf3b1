//go:build !purego

package kernel

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

//go:noescape
func float32OfUint8(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfInt8(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfUint16(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfInt16(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfInt32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfBFloat16(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfFloat16(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfFloat64(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func bfloat16OfFloat32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float16OfFloat32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float64OfFloat32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float64OfInt32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func int64OfInt32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func int64OfUint32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func int32OfInt64(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func int32OfFloat32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func int8OfFloat32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func int64OfFloat32(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func int64OfFloat64(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float32OfInt64(dst, src unsafe.Pointer, n int64) int64

//go:noescape
func float64OfInt64(dst, src unsafe.Pointer, n int64) int64

// vectorCast is the assembly for a cast of adjacent elements, or nil.
func vectorCast(to, from dlpack.DataType) vector {
	if !simd {
		return nil
	}
	return vectorCasts[pair{to, from}]
}

var vectorCasts = map[pair]vector{
	{dlpack.DTypeFloat32, dlpack.DTypeUint8}:    float32OfUint8,
	{dlpack.DTypeFloat32, dlpack.DTypeInt8}:     float32OfInt8,
	{dlpack.DTypeFloat32, dlpack.DTypeUint16}:   float32OfUint16,
	{dlpack.DTypeFloat32, dlpack.DTypeInt16}:    float32OfInt16,
	{dlpack.DTypeFloat32, dlpack.DTypeInt32}:    float32OfInt32,
	{dlpack.DTypeFloat32, dlpack.DTypeBFloat16}: float32OfBFloat16,
	{dlpack.DTypeFloat32, dlpack.DTypeFloat16}:  float32OfFloat16,
	{dlpack.DTypeFloat32, dlpack.DTypeFloat64}:  float32OfFloat64,
	{dlpack.DTypeBFloat16, dlpack.DTypeFloat32}: bfloat16OfFloat32,
	{dlpack.DTypeFloat16, dlpack.DTypeFloat32}:  float16OfFloat32,
	{dlpack.DTypeFloat64, dlpack.DTypeFloat32}:  float64OfFloat32,
	{dlpack.DTypeFloat64, dlpack.DTypeInt32}:    float64OfInt32,
	{dlpack.DTypeInt64, dlpack.DTypeInt32}:      int64OfInt32,
	{dlpack.DTypeUint64, dlpack.DTypeInt32}:     int64OfInt32,
	{dlpack.DTypeInt64, dlpack.DTypeUint32}:     int64OfUint32,
	{dlpack.DTypeUint64, dlpack.DTypeUint32}:    int64OfUint32,
	{dlpack.DTypeInt32, dlpack.DTypeInt64}:      int32OfInt64,
	{dlpack.DTypeInt32, dlpack.DTypeUint64}:     int32OfInt64,
	{dlpack.DTypeUint32, dlpack.DTypeInt64}:     int32OfInt64,
	{dlpack.DTypeUint32, dlpack.DTypeUint64}:    int32OfInt64,
	{dlpack.DTypeInt32, dlpack.DTypeFloat32}:    int32OfFloat32,
	{dlpack.DTypeUint32, dlpack.DTypeFloat32}:   int32OfFloat32,
	{dlpack.DTypeFloat32, dlpack.DTypeInt64}:    float32OfInt64,
	{dlpack.DTypeFloat64, dlpack.DTypeInt64}:    float64OfInt64,
	{dlpack.DTypeInt64, dlpack.DTypeFloat32}:    int64OfFloat32,
	{dlpack.DTypeInt64, dlpack.DTypeFloat64}:    int64OfFloat64,
	{dlpack.DTypeInt8, dlpack.DTypeFloat32}:     int8OfFloat32,
	{dlpack.DTypeUint8, dlpack.DTypeFloat32}:    int8OfFloat32,
}
