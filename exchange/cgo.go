package exchange

// The calls into C, all of them: the rest of the package handles addresses.
//
// nocallback is for what runs no deleter and no function of a table: those may be Go exports of another library.

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#cgo noescape dlfx_storage_new
#cgo nocallback dlfx_storage_new
#cgo nocallback dlfx_storage_wrap
#cgo nocallback dlfx_storage_ref
#cgo noescape dlfx_export
#cgo nocallback dlfx_export
#cgo noescape dlf_ledger
#cgo nocallback dlf_ledger
#cgo nocallback dlfx_go_take
#cgo noescape dlfx_go_pop
#cgo nocallback dlfx_go_pop
#include "bridge.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	_ "github.com/dlferry/dlferry/internal/abi" // keeps the headers when the module is vendored
)

const (
	endNothing   = C.DLF_END_NOTHING
	endLegacy    = C.DLF_END_LEGACY
	endVersioned = C.DLF_END_VERSIONED
	endGo        = C.DLF_END_GO

	// Alignment is the alignment, in bytes, of the memory that this package allocates.
	Alignment = C.DLF_ALIGNMENT

	fixedNDim = C.DLF_FIXED_NDIM
)

// pointer turns an address of C memory, or of Go memory that the caller keeps alive, into a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// storageNew allocates size bytes behind a new storage: its address and that of the data; 0 when out of memory.
func storageNew(size int64, zeroed bool) (st, data uintptr) {
	var flag C.int
	if zeroed {
		flag = 1
	}
	var p C.uintptr_t
	st = uintptr(C.dlfx_storage_new(C.size_t(size), flag, &p))
	return st, uintptr(p)
}

func storageWrap(kind uint32, owner uintptr, slot uint64) uintptr {
	return uintptr(C.dlfx_storage_wrap(C.uint32_t(kind), C.uintptr_t(owner), C.uint64_t(slot)))
}

// storageImport wraps a foreign managed tensor. On 0 (out of memory) it is consumed.
func storageImport(kind uint32, owner uintptr) uintptr {
	return uintptr(C.dlfx_import(C.uint32_t(kind), C.uintptr_t(owner)))
}

func storageRef(st uintptr) { C.dlfx_storage_ref(C.uintptr_t(st)) }

func storageUnref(st uintptr) { C.dlfx_storage_unref(C.uintptr_t(st)) }

// export makes a managed tensor of kind endVersioned or endLegacy of t, whose Shape addresses NDim extents followed by NDim strides; 0 when out of memory.
func export(kind uint32, st uintptr, t *dlpack.Tensor, flags dlpack.Flags) uintptr {
	return uintptr(C.dlfx_export(C.uint32_t(kind), C.uintptr_t(st), C.uintptr_t(t.Data), cDevice(t.Device), cDType(t.DType), C.int32_t(t.NDim),
		(*C.int64_t)(pointer(t.Shape)), C.uint64_t(t.ByteOffset), C.uint64_t(flags)))
}

func cDevice(d dlpack.Device) C.DlfDevice {
	return C.DlfDevice{_type: C.int32_t(d.Type), id: C.int32_t(d.ID)}
}

func cDType(d dlpack.DataType) C.DlfDataType {
	return C.DlfDataType{code: C.uint8_t(d.Code), bits: C.uint8_t(d.Bits), lanes: C.uint16_t(d.Lanes)}
}

func deleteVersioned(m uintptr) {
	C.dlf_delete_versioned((*C.DlfManagedTensorVersioned)(pointer(m)))
}

func deleteLegacy(m uintptr) {
	C.dlf_delete_legacy((*C.DlfManagedTensor)(pointer(m)))
}

func goQueueWaits() bool {
	return atomic.LoadUintptr((*uintptr)(unsafe.Pointer(&C.dlf_go_queue))) != 0
}

func goQueueTake() uintptr { return uintptr(C.dlfx_go_take()) }

func goQueuePop(st uintptr) (slot uint64, next uintptr) {
	var id C.uint64_t
	next = uintptr(C.dlfx_go_pop(C.uintptr_t(st), &id))
	return uint64(id), next
}

func wakeOpen() int { return int(C.dlfx_wake_open()) }

func blockLedger() (storages, exports, imports, bytes int64) {
	var l C.DlfLedger
	C.dlf_ledger(&l)
	return int64(l.storages), int64(l.exports), int64(l.imports), int64(l.bytes)
}

func setPythonEnd(end uintptr) {
	atomic.StoreUintptr((*uintptr)(unsafe.Pointer(&C.dlf_python_end)), end)
}

func ourTable() uintptr { return uintptr(C.dlfx_table()) }

// The calls of a foreign table answer its status, or tableMissing where the entry is NULL.
const tableMissing = -2

func tableFromObject(api, object uintptr) (status int, m uintptr) {
	var out C.uintptr_t
	status = int(C.dlfx_table_from_object(C.uintptr_t(api), C.uintptr_t(object), &out))
	return status, uintptr(out)
}

func tableToObject(api, m uintptr) (status int, object uintptr) {
	var out C.uintptr_t
	status = int(C.dlfx_table_to_object(C.uintptr_t(api), C.uintptr_t(m), &out))
	return status, uintptr(out)
}

// tableBorrow lets the table fill a descriptor: dlpack.Tensor has the layout of DlfTensor, and no pointers.
func tableBorrow(api, object uintptr, t *dlpack.Tensor) (status int) {
	return int(C.dlfx_table_borrow(C.uintptr_t(api), C.uintptr_t(object), (*C.DlfTensor)(unsafe.Pointer(t))))
}

func tableStream(api uintptr, d dlpack.Device) (status int, stream uintptr) {
	var out C.uintptr_t
	status = int(C.dlfx_table_stream(C.uintptr_t(api), cDevice(d), &out))
	return status, uintptr(out)
}

func tableAllocate(api uintptr, d dlpack.Device, dtype dlpack.DataType, shape []int64) (status int, m uintptr, kind, message string) {
	var out C.uintptr_t
	var e C.DlfxTableError
	status = int(C.dlfx_table_allocate(C.uintptr_t(api), cDevice(d), cDType(dtype), C.int32_t(len(shape)),
		(*C.int64_t)(unsafe.Pointer(unsafe.SliceData(shape))), &out, &e))
	return status, uintptr(out), C.GoString(&e.kind[0]), C.GoString(&e.message[0])
}
