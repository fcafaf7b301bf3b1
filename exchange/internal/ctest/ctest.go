// Package ctest is producers, consumers and tables in C, for the tests of package exchange: a test file cannot use cgo itself.
package ctest

/*
#cgo CFLAGS: -std=gnu11 -O1 -Wall -Wextra
#cgo LDFLAGS: -lpthread
#include "ctest.h"
*/
import "C"

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

func pointer(address C.uintptr_t) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func tensor(t *dlpack.Tensor) *C.DlfTensor { return (*C.DlfTensor)(unsafe.Pointer(t)) }

// Versioned makes a managed tensor whose deleter counts. What t points to must outlive it.
func Versioned(t *dlpack.Tensor, flags dlpack.Flags, v dlpack.Version) *dlpack.ManagedTensorVersioned {
	return (*dlpack.ManagedTensorVersioned)(pointer(C.ctest_versioned(tensor(t), C.uint64_t(flags), C.uint32_t(v.Major), C.uint32_t(v.Minor))))
}

// Legacy is Versioned for the unversioned struct.
func Legacy(t *dlpack.Tensor) *dlpack.ManagedTensor {
	return (*dlpack.ManagedTensor)(pointer(C.ctest_legacy(tensor(t))))
}

// Drops is how many of them were deleted, and how many more than once.
func Drops() (once, twice int64) { return int64(C.ctest_drops()), int64(C.ctest_double_drops()) }

// Dropped is how often the deleter of a tensor made here ran.
func Dropped[M dlpack.ManagedTensor | dlpack.ManagedTensorVersioned](m *M) int {
	return int(C.ctest_dropped(C.uintptr_t(uintptr(unsafe.Pointer(m)))))
}

// Storm calls the deleters of all tensors from so many threads that Go did not start, at most 16.
func Storm(tensors []uintptr, threads int) {
	C.ctest_storm((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(tensors))), C.int(len(tensors)), C.int(threads))
}

// SumFloat32 adds the elements up in C.
func SumFloat32(m *dlpack.ManagedTensorVersioned) float64 {
	return float64(C.ctest_sum_float32(C.uintptr_t(uintptr(unsafe.Pointer(m)))))
}

// PythonEnd is the address of a function for exchange.SetPythonEnd that keeps storages for PythonDrain.
func PythonEnd() uintptr { return uintptr(C.ctest_python_end()) }

// PythonDrain ends the kept storages and says how many.
func PythonDrain() int { return int(C.ctest_python_drain()) }

// The tables: without functions; failing; one that succeeds with nothing; newer ones in front of the one without functions; a newer one alone;
// a newer one in a circle.
const (
	TableEmpty = iota
	TableRefusing
	TableNothing
	TableNewer
	TableAlone
	TableCircle
)

// Table is one of them.
func Table(which int) *dlpack.ExchangeAPI {
	return (*dlpack.ExchangeAPI)(pointer(C.ctest_table(C.int(which))))
}

// Refused is what the refusing table was asked to make an object of last.
func Refused() *dlpack.ManagedTensorVersioned {
	return (*dlpack.ManagedTensorVersioned)(pointer(C.ctest_refused()))
}
