package exchange

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// Builder makes a Local step by step. The methods return the Builder, and Build reports what is wrong. A Builder builds one tensor and is not safe for
// concurrent use.
//
// Without Data or Address, Build allocates.
type Builder struct {
	shape, strides []int64
	dtype          dlpack.DataType
	device         dlpack.Device
	flags          dlpack.Flags
	data           unsafe.Pointer
	address        uintptr
	size           int64
	source         source
	offset         int64
	zeroed         bool
	allocator      Allocator
	keep           []any
	ends           []func()
	built          bool
}

type source uint8

const (
	allocated source = iota
	hostData
	bareAddress
)

// NewBuilder starts a float32 scalar on the CPU.
func NewBuilder() *Builder {
	return &Builder{dtype: dlpack.DTypeFloat32, device: dlpack.CPU, allocator: CMemory}
}

// Shape sets the extents; none make a scalar. The slice is copied.
func (b *Builder) Shape(extents ...int64) *Builder {
	b.shape = slices.Clone(extents)
	return b
}

// Strides sets the strides, in elements, one an axis. Without it the tensor is compact.
func (b *Builder) Strides(strides ...int64) *Builder {
	b.strides = append(make([]int64, 0, len(strides)), strides...)
	return b
}

// DType sets the element type.
func (b *Builder) DType(d dlpack.DataType) *Builder {
	b.dtype = d
	return b
}

// Device sets where the data lies. Only host memory can be allocated here.
func (b *Builder) Device(d dlpack.Device) *Builder {
	b.device = d
	return b
}

// ReadOnly marks the data as not to be written to.
func (b *Builder) ReadOnly() *Builder { return b.Flags(dlpack.FlagReadOnly) }

// Flags adds flags.
func (b *Builder) Flags(f dlpack.Flags) *Builder {
	b.flags |= f
	return b
}

// Data lends the tensor size bytes of host memory at p. Go memory is pinned until the last deleter ran; C memory is the caller's to keep, see OnRelease.
// Build checks that every element lies inside.
func (b *Builder) Data(p unsafe.Pointer, size int64) *Builder {
	b.data, b.size, b.source = p, size, hostData
	return b
}

// Address lends the tensor memory that is not Go's: host memory, a device address, or the handle of a buffer object. Its size is not known, so nothing
// checks that the elements lie inside.
func (b *Builder) Address(a uintptr) *Builder {
	b.address, b.source = a, bareAddress
	return b
}

// Offset says how many bytes after the start of Data or Address the first element lies.
func (b *Builder) Offset(bytes int64) *Builder {
	b.offset = bytes
	return b
}

// KeepAlive keeps values reachable until the last deleter ran, and pins what pointers, slices and strings among them refer to.
func (b *Builder) KeepAlive(values ...any) *Builder {
	b.keep = append(b.keep, values...)
	return b
}

// OnRelease calls f once, after the last deleter ran, soon but not inside it, on any goroutine. Functions run in reverse order. f must not block for long:
// it may hold up the end of other tensors. A panic of f is reported on standard error and counted by Ledger. When Build fails, f is not called.
func (b *Builder) OnRelease(f func()) *Builder {
	b.ends = append(b.ends, f)
	return b
}

// Allocator sets where memory comes from when neither Data nor Address is given.
func (b *Builder) Allocator(a Allocator) *Builder {
	b.allocator = a
	return b
}

// Zeroed asks for allocated memory to be set to zero; else it holds anything.
func (b *Builder) Zeroed() *Builder {
	b.zeroed = true
	return b
}

// Build makes the tensor. On failure nothing was taken: no pin, no function to call, and the Builder can be corrected and used again.
//
// ErrConsumed: the Builder built already. ErrValue: Data is too small for the layout, or an offset without data. ErrDevice: memory wanted on another
// device. ErrNull: Data is nil although there are elements. ErrMemory. The other errors are those of dlpack.Validate.
func (b *Builder) Build() (*Local, error) {
	const op = "exchange.Build"
	if b.built {
		return nil, &dlpack.Error{Op: op, Kind: dlpack.KindConsumed, Thing: "builder", Axis: dlpack.NoAxis, Got: "one that has built", Want: "a new one"}
	}
	low, high, err := b.span(op)
	if err != nil {
		return nil, err
	}
	l := new(Local)
	var end *slot
	if b.source == allocated {
		l.storage, end, err = b.allocate(op, low, high)
		if err != nil {
			return nil, err
		}
	} else if b.source == hostData {
		b.address = uintptr(b.data)
	}
	if end == nil && (b.data != nil || len(b.keep) > 0 || len(b.ends) > 0) {
		end = &slot{}
	}
	abandon := func(err error) (*Local, error) {
		if l.storage != 0 {
			storageUnref(l.storage)
		}
		if end != nil && len(end.ends) > 0 {
			end.ends[0]() // an allocator's release
		}
		return nil, err
	}
	d := dlpack.Tensor{Data: b.address, Device: b.device, DType: b.dtype, ByteOffset: uint64(b.offset)}
	if err := l.describe(d, b.shape, b.strides, b.flags); err != nil {
		return abandon(err)
	}
	if err := dlpack.Validate(&l.desc, b.flags); err != nil {
		return abandon(err)
	}
	if l.storage == 0 {
		if l.storage, err = b.own(op, end); err != nil {
			return abandon(err)
		}
	}
	b.built = true
	b.data, b.keep, b.ends = nil, nil, nil
	return l.watched(), nil
}

// span is where the elements lie around the first, after the checks that need no memory.
func (b *Builder) span(op string) (low, high int64, err error) {
	item, err := b.dtype.ItemSize(b.flags)
	if err != nil {
		return 0, 0, err
	}
	if b.strides != nil && len(b.strides) != len(b.shape) {
		return 0, 0, &dlpack.Error{Op: op, Kind: dlpack.KindStrides, Axis: dlpack.NoAxis, Got: strconv.Itoa(len(b.strides)) + " strides",
			Want: strconv.Itoa(len(b.shape)) + ", one an axis"}
	}
	if low, high, err = dlpack.ByteSpan(b.shape, b.strides, item); err != nil {
		return 0, 0, err
	}
	if b.offset < 0 {
		return 0, 0, &dlpack.Error{Op: op, Kind: dlpack.KindOffset, Axis: dlpack.NoAxis, Got: strconv.FormatInt(b.offset, 10), Want: "0 or more"}
	}
	if b.source != hostData || high == low {
		return low, high, nil
	}
	if b.data != nil && (b.offset+low < 0 || b.offset > b.size-high) {
		return 0, 0, &dlpack.Error{Op: op, Kind: dlpack.KindValue, Thing: "data", Axis: dlpack.NoAxis, Got: fmt.Sprintf("%d bytes", b.size),
			Want: fmt.Sprintf("bytes %d to %d inside", b.offset+low, b.offset+high)}
	}
	return low, high, nil
}

// allocate makes memory for the span. A storage comes back from the default allocator, a slot that frees from others.
func (b *Builder) allocate(op string, low, high int64) (uintptr, *slot, error) {
	if b.device.Type != dlpack.DeviceCPU {
		return 0, nil, &dlpack.Error{Op: op, Kind: dlpack.KindDevice, Axis: dlpack.NoAxis, Got: b.device.String(), Want: "cpu",
			Hint: "give memory of other devices by Address"}
	}
	if b.offset != 0 {
		return 0, nil, &dlpack.Error{Op: op, Kind: dlpack.KindValue, Thing: "offset", Axis: dlpack.NoAxis, Got: strconv.FormatInt(b.offset, 10),
			Want: "0 for memory that Build allocates"}
	}
	size := high - low
	if size < 0 {
		return 0, nil, &dlpack.Error{Op: op, Kind: dlpack.KindOverflow, Thing: "size", Axis: dlpack.NoAxis, Want: "a number of bytes that fits in 64 bits"}
	}
	direct, isC := b.allocator.(cMemory)
	// A storage ends in one way: with functions to call or values to keep, the memory is freed like that of any other allocator.
	if isC && len(b.keep) == 0 && len(b.ends) == 0 {
		st, data, err := direct.storage(op, size, b.zeroed)
		b.address = data + uintptr(-low)
		return st, nil, err
	}
	if b.allocator == nil {
		b.allocator = CMemory
	}
	data, release, err := b.allocator.Allocate(size, b.zeroed)
	if err != nil {
		return 0, nil, err
	}
	if uintptr(data)%Alignment != 0 || data == nil {
		got := fmt.Sprintf("address %#x from the allocator", uintptr(data))
		if release != nil {
			release()
		}
		return 0, nil, &dlpack.Error{Op: op, Kind: dlpack.KindAlignment, Thing: "memory", Axis: dlpack.NoAxis, Got: got,
			Want: fmt.Sprintf("a multiple of %d", Alignment)}
	}
	b.address = uintptr(data) + uintptr(-low)
	end := &slot{keep: []any{data}} // an allocator may hand out Go memory
	if release != nil {
		end.ends = append(end.ends, release)
	}
	return 0, end, nil
}

// own makes the storage: one that tells Go when it ends if there is something to end, else one that ends nothing.
func (b *Builder) own(op string, end *slot) (uintptr, error) {
	if end == nil {
		if st := storageWrap(endNothing, 0, 0); st != 0 {
			return st, nil
		}
		return 0, noMemory(op, "room for a storage")
	}
	end.pinner = new(runtime.Pinner)
	for _, p := range append([]any{b.data}, append(end.keep, b.keep...)...) {
		if p := pinnable(p); p != nil {
			end.pinner.Pin(p)
		}
	}
	startWaker()
	lent := &slot{pinner: end.pinner, keep: append(end.keep, b.keep...), ends: append(slices.Clone(end.ends), b.ends...)}
	id := slots.put(lent)
	if st := storageWrap(endGo, 0, id); st != 0 {
		return st, nil
	}
	slots.take(id)
	end.pinner.Unpin()
	return 0, noMemory(op, "room for a storage")
}

// pinnable is the address that v refers to, for values that refer to one.
func pinnable(v any) unsafe.Pointer {
	if v == nil {
		return nil
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.UnsafePointer:
		return r.UnsafePointer()
	case reflect.Slice:
		if r.Cap() > 0 {
			return r.UnsafePointer()
		}
	case reflect.String:
		if s := r.String(); s != "" {
			return unsafe.Pointer(unsafe.StringData(s))
		}
	}
	return nil
}
