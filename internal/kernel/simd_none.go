//go:build !amd64 || purego

package kernel

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// simd is false where there is no assembly: everything goes by the loops in Go.
var simd = false

func blocksOf(int64) blocks { return blocks{} }

func vectorCast(dlpack.DataType, dlpack.DataType) vector { return nil }

func fence() {}

// None of the others is called where simd is false.

func streamRows(unsafe.Pointer, int64, unsafe.Pointer, int64, int64, int64) { none() }
func streamPages(_, _ unsafe.Pointer, _ int64)                              { none() }

func split2(unsafe.Pointer, int64, unsafe.Pointer, int64, *byte, int64) { none() }
func split3(unsafe.Pointer, int64, unsafe.Pointer, int64, *byte, int64) { none() }
func split4(unsafe.Pointer, int64, unsafe.Pointer, int64, *byte, int64) { none() }

func join2(_, _ unsafe.Pointer, _, _ int64, _ *byte) { none() }
func join3(_, _ unsafe.Pointer, _, _ int64, _ *byte) { none() }
func join4(_, _ unsafe.Pointer, _, _ int64, _ *byte) { none() }

func none() { panic("kernel: no assembly") }
