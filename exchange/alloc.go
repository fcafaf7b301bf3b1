package exchange

import (
	"strconv"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// Allocator makes the memory of tensors that a Builder was given no data for.
type Allocator interface {
	// Allocate returns size bytes of host memory, aligned to Alignment, set to zero if zeroed says so, that stay where they are until release is called. That
	// happens once, after the last deleter ran, on any goroutine. size may be 0; the address must not be nil even then.
	Allocate(size int64, zeroed bool) (data unsafe.Pointer, release func(), err error)
}

// CMemory is the default Allocator: C memory, freed inside the last deleter, without a detour through Go.
var CMemory Allocator = cMemory{}

type cMemory struct{}

func (cMemory) Allocate(size int64, zeroed bool) (unsafe.Pointer, func(), error) {
	st, data, err := cMemory{}.storage("exchange.Allocate", size, zeroed)
	if err != nil {
		return nil, nil, err
	}
	return pointer(data), func() { storageUnref(st) }, nil
}

func (cMemory) storage(op string, size int64, zeroed bool) (st, data uintptr, err error) {
	if size < 0 {
		return 0, 0, &dlpack.Error{Op: op, Kind: dlpack.KindValue, Thing: "size", Axis: dlpack.NoAxis, Got: strconv.FormatInt(size, 10), Want: "0 or more"}
	}
	st, data = storageNew(size, zeroed)
	if st == 0 {
		return 0, 0, noMemory(op, strconv.FormatInt(size, 10)+" bytes")
	}
	return st, data, nil
}
