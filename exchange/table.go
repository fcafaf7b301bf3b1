package exchange

import (
	"fmt"
	"runtime"
	"strconv"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// ExportTable is this library's own exchange table, a static C struct, for C consumers in a program without Python. What the table calls a
// PyObject is a managed tensor that Export made: pass its address, and call its deleter for what managed_tensor_to_py_object_no_sync gives. A failure returns
// -1; there is no interpreter to hold an exception.
//
// The table allocates, and knows the stream of, host memory only.
func ExportTable() *dlpack.ExchangeAPI { return (*dlpack.ExchangeAPI)(pointer(ourTable())) }

// Table calls the exchange table of another library. Its objects are whatever that library says: the address of a Python object, of a handle, of anything.
//
// None of the calls orders work on a device: tensors come and go as they are. A table of a Python type wants the interpreter's lock to be held by the
// calling thread (runtime.LockOSThread), and leaves an exception behind when it fails.
type Table struct {
	api uintptr
}

// maxTables bounds the walk along PrevAPI: a list that is longer is a circle.
const maxTables = 64

// ImportTable finds the table of major version 1 in the list that starts at api. Tables are static: nothing is owned or freed, and they must stay.
//
// ErrNull: api is nil. ErrVersion: no table of that version, or a list without end.
func ImportTable(api *dlpack.ExchangeAPI) (*Table, error) {
	const op = "exchange.ImportTable"
	if api == nil {
		return nil, &dlpack.Error{Op: op, Kind: dlpack.KindNull, Thing: "table", Axis: dlpack.NoAxis, Got: "NULL", Want: "an address"}
	}
	// Of a table of another major version only the header can be read.
	header := &api.Header
	for range maxTables {
		if header.Version.Compatible() {
			return &Table{api: uintptr(unsafe.Pointer(header))}, nil
		}
		if header.PrevAPI == 0 {
			break
		}
		header = (*dlpack.ExchangeHeader)(pointer(header.PrevAPI))
	}
	return nil, &dlpack.Error{Op: op, Kind: dlpack.KindVersion, Axis: dlpack.NoAxis, Got: api.Header.Version.String() + " and what it leads to",
		Want: strconv.Itoa(dlpack.VersionMajor) + ".x"}
}

// Version is the version of the table.
func (t *Table) Version() dlpack.Version {
	return (*dlpack.ExchangeHeader)(pointer(t.api)).Version
}

func refused(op, entry string, status int) error {
	e := &dlpack.Error{Op: op, Kind: dlpack.KindUnsupported, Thing: entry, Axis: dlpack.NoAxis, Got: "status " + strconv.Itoa(status), Want: "0"}
	if status == tableMissing {
		e.Got, e.Want = "NULL", "a function"
		e.Hint = "the table does not have this optional entry"
	}
	return e
}

// Import asks the table for an owning managed tensor of the object, and imports it. The object stays the caller's.
//
// ErrUnsupported: the table has no such function, or it failed. ErrNull: it gave nothing. The other errors are those of Import.
func (t *Table) Import(object uintptr) (*Foreign, error) {
	status, m := tableFromObject(t.api, object)
	if status != 0 {
		// Whatever out holds after a failure is not ours: a leak is better than a double free.
		return nil, refused("exchange.Table.Import", "managed_tensor_from_py_object_no_sync", status)
	}
	return Import((*dlpack.ManagedTensorVersioned)(pointer(m)))
}

// Object makes an object of the other library out of h, which shares the data. The caller owns what it gets, and ends it as that library says.
//
// When the function fails, it may or may not have freed the managed tensor that it was given: libraries differ. It is leaked then, shown by Ledger, rather
// than freed twice.
//
// ErrUnsupported: the table has no such function, or it failed. ErrClosed; ErrMemory.
func (t *Table) Object(h Handle) (uintptr, error) {
	const op, entry = "exchange.Table.Object", "managed_tensor_to_py_object_no_sync"
	if (*dlpack.ExchangeAPI)(pointer(t.api)).ManagedTensorToPyObjectNoSync == 0 {
		return 0, refused(op, entry, tableMissing)
	}
	m, err := h.Export()
	if err != nil {
		return 0, err
	}
	status, object := tableToObject(t.api, uintptr(unsafe.Pointer(m)))
	if status != 0 {
		return 0, refused(op, entry, status)
	}
	return object, nil
}

// Borrow calls f with the description of the object's tensor, validated and copied, without taking a reference: the object must stay, unchanged, until Borrow
// returns, and f must keep nothing. The flags of the tensor are not known: f must not write.
//
// ErrUnsupported: the table has no such function, or it failed. The other errors are those of dlpack.Validate, and those of f.
func (t *Table) Borrow(object uintptr, f func(*dlpack.Tensor) error) error {
	const op = "exchange.Table.Borrow"
	var d dlpack.Tensor
	if status := tableBorrow(t.api, object, &d); status != 0 {
		return refused(op, "dltensor_from_py_object_no_sync", status)
	}
	if err := dlpack.Validate(&d, 0); err != nil {
		return err
	}
	own := new(tensor)
	if err := own.describe(d, d.ShapeUnchecked(), d.StridesUnchecked(), 0); err != nil {
		return err
	}
	defer runtime.KeepAlive(own)
	return f(&own.desc)
}

// Allocate lets the other library make an uninitialised compact tensor.
//
// ErrMemory, ErrUnsupported: it failed, with its reason. ErrShape: more than dlpack.MaxNDim axes. The other errors are those of Import.
func (t *Table) Allocate(device dlpack.Device, dtype dlpack.DataType, shape ...int64) (*Foreign, error) {
	const op = "exchange.Table.Allocate"
	if len(shape) > dlpack.MaxNDim {
		return nil, &dlpack.Error{Op: op, Kind: dlpack.KindShape, Thing: "ndim", Axis: dlpack.NoAxis, Got: strconv.Itoa(len(shape)),
			Want: fmt.Sprintf("0 to %d", dlpack.MaxNDim)}
	}
	status, m, kind, message := tableAllocate(t.api, device, dtype, shape)
	if status != 0 {
		e := refused(op, "managed_tensor_allocator", status).(*dlpack.Error)
		if kind == "MemoryError" {
			e.Kind = dlpack.KindMemory
		}
		if message != "" {
			e.Got = kind + ": " + message
		}
		return nil, e
	}
	return Import((*dlpack.ManagedTensorVersioned)(pointer(m)))
}

// Stream is the address of the stream that the library's next work on the device goes to; 0 on the CPU. ErrUnsupported: as with Import.
func (t *Table) Stream(device dlpack.Device) (uintptr, error) {
	status, stream := tableStream(t.api, device)
	if status != 0 {
		return 0, refused("exchange.Table.Stream", "current_work_stream", status)
	}
	return stream, nil
}
