package exchange

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// tensor is what Local and Foreign share: one reference on a storage, and a description of our own whose shape and strides nobody else can change.
//
// It lies on the Go heap and does not move; desc points into it by address, so whoever uses desc keeps the tensor alive.
type tensor struct {
	life
	desc  dlpack.Tensor
	flags dlpack.Flags
	fixed [2 * fixedNDim]int64
	wide  []int64 // in place of fixed above fixedNDim axes
}

// describe fills t from d, with its own copy of the dimensions; strides nil means compact. Shape and strides must be believable.
func (t *tensor) describe(d dlpack.Tensor, shape, strides []int64, flags dlpack.Flags) error {
	dims := t.fixed[:]
	if len(shape) > fixedNDim {
		t.wide = make([]int64, 2*len(shape))
		dims = t.wide
	}
	n := copy(dims, shape)
	if strides == nil {
		var err error
		if strides, err = dlpack.CompactStrides(shape); err != nil {
			return err
		}
	}
	copy(dims[n:2*n], strides)
	t.desc, t.flags = d, flags
	t.desc.NDim = int32(n)
	t.desc.Shape, t.desc.Strides = 0, 0
	if n > 0 {
		t.desc.Shape = uintptr(unsafe.Pointer(&dims[0]))
		t.desc.Strides = uintptr(unsafe.Pointer(&dims[n]))
	}
	if t.desc.Device.Type.HasPointers() {
		if t.desc.Data != 0 {
			t.desc.Data += uintptr(t.desc.ByteOffset)
		}
		t.desc.ByteOffset = 0
	}
	return nil
}

func (t *tensor) dims() []int64 {
	if t.wide != nil {
		return t.wide
	}
	return t.fixed[:]
}

// NDim is the number of axes.
func (t *tensor) NDim() int { return int(t.desc.NDim) }

// Shape is a copy of the extents.
func (t *tensor) Shape() []int64 { return slices.Clone(t.dims()[:t.NDim()]) }

// Strides is a copy of the strides, in elements: those of a compact tensor where the producer gave none.
func (t *tensor) Strides() []int64 { return slices.Clone(t.dims()[t.NDim() : 2*t.NDim()]) }

// DType is the element type.
func (t *tensor) DType() dlpack.DataType { return t.desc.DType }

// Device is where the data lies.
func (t *tensor) Device() dlpack.Device { return t.desc.Device }

// Flags are the flags that came with the tensor, or that it is exported with.
func (t *tensor) Flags() dlpack.Flags { return t.flags }

// ReadOnly says whether the data must not be written to.
func (t *tensor) ReadOnly() bool { return t.flags.ReadOnly() }

// Address is where the first element lies, with any byte offset added, for devices whose memory is addressed by pointers; for the others it is their
// handle. It means nothing after Release.
func (t *tensor) Address() uintptr { return t.desc.Data }

// Len is the number of elements.
func (t *tensor) Len() int64 {
	n := int64(1)
	for _, extent := range t.dims()[:t.NDim()] {
		n *= extent
	}
	return n
}

// Released says whether Release was called.
func (t *tensor) Released() bool { return t.word.Load()&released != 0 }

func closed(op string) error {
	return &dlpack.Error{Op: op, Kind: dlpack.KindClosed, Thing: "tensor", Axis: dlpack.NoAxis, Got: "a released one", Want: "a live one",
		Hint: "call Release after the last use"}
}

func noMemory(op, want string) error {
	return &dlpack.Error{Op: op, Kind: dlpack.KindMemory, Axis: dlpack.NoAxis, Got: "none", Want: want}
}

// use calls f with the description while the storage is held.
func (t *tensor) use(op string, f func(*dlpack.Tensor, dlpack.Flags) error) error {
	if !t.hold() {
		return closed(op)
	}
	defer func() {
		t.drop()
		runtime.KeepAlive(t)
	}()
	return f(&t.desc, t.flags)
}

func (t *tensor) export(op string, kind uint32) (uintptr, error) {
	if !t.hold() {
		return 0, closed(op)
	}
	m := export(kind, t.storage, &t.desc, t.flags)
	t.drop()
	runtime.KeepAlive(t)
	if m == 0 {
		return 0, noMemory(op, "room for a managed tensor")
	}
	return m, nil
}

// Export gives the tensor away: a new owning managed tensor in C memory that shares the data. Whoever gets it calls its deleter exactly once, on any
// thread; the data lives until this handle is released and the deleters of all exports have run.
//
// The struct may be freed by its consumer at any time: do not keep the pointer once it is handed over. Delete gives back one that nobody took.
//
// ErrClosed: after Release; ErrMemory. Safe for concurrent use.
func (t *tensor) Export() (*dlpack.ManagedTensorVersioned, error) {
	m, err := t.export("exchange.Export", endVersioned)
	return (*dlpack.ManagedTensorVersioned)(pointer(m)), err
}

// ExportLegacy is Export for consumers of the unversioned struct, which cannot say that data is read-only.
//
// ErrReadOnly: the tensor is; ErrDType: values of less than 8 bits padded to a byte each, which it cannot say either; ErrClosed; ErrMemory.
func (t *tensor) ExportLegacy() (*dlpack.ManagedTensor, error) {
	const op = "exchange.ExportLegacy"
	if t.flags.ReadOnly() {
		return nil, &dlpack.Error{Op: op, Kind: dlpack.KindReadOnly, Thing: "tensor", Axis: dlpack.NoAxis, Got: "a read-only one", Want: "a writable one",
			Hint: "the unversioned struct cannot say read-only: use Export, or copy the tensor"}
	}
	if t.flags.SubbytePadded() && t.desc.DType.Bits < 8 {
		return nil, &dlpack.Error{Op: op, Kind: dlpack.KindDType, Axis: dlpack.NoAxis, Got: t.desc.DType.String() + " padded to a byte a value",
			Want: "values of whole bytes", Hint: "the unversioned struct cannot say padded: use Export"}
	}
	m, err := t.export(op, endLegacy)
	return (*dlpack.ManagedTensor)(pointer(m)), err
}

// String prints the dtype, the shape and the device: "float32[2 3] on cpu".
func (t *tensor) String() string {
	s := fmt.Sprintf("%v%v on %v", t.desc.DType, t.dims()[:t.NDim()], t.desc.Device)
	if t.ReadOnly() {
		s += ", read-only"
	}
	return s
}

// share makes another reference on the storage for u, a new tensor with the same description.
func (t *tensor) share(op string, u *tensor) error {
	if !t.hold() {
		return closed(op)
	}
	n := t.NDim()
	err := u.describe(t.desc, t.dims()[:n], t.dims()[n:2*n], t.flags)
	if err == nil {
		storageRef(t.storage)
		u.storage = t.storage
	}
	t.drop()
	runtime.KeepAlive(t)
	return err
}

// Delete calls the deleter of a managed tensor that was exported and not handed over, or of a foreign one. nil is allowed. The caller must own m.
//
// Next to Python, a tensor that Python's side made must be deleted on a thread that holds the interpreter's lock.
func Delete(m *dlpack.ManagedTensorVersioned) {
	if m != nil {
		deleteVersioned(uintptr(unsafe.Pointer(m)))
	}
}

// DeleteLegacy is Delete for the unversioned struct.
func DeleteLegacy(m *dlpack.ManagedTensor) {
	if m != nil {
		deleteLegacy(uintptr(unsafe.Pointer(m)))
	}
}
