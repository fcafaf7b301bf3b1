//go:build !amd64 || purego

package kernel

import "unsafe"

// simd is false where there is no assembly: everything goes by the loops in Go.
var simd = false

func blocksOf(int64) blocks { return blocks{} }

func streamRows(unsafe.Pointer, int64, unsafe.Pointer, int64, int64, int64) {
	panic("kernel: no assembly")
}

func fence() {}
