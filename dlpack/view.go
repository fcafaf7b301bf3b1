package dlpack

import (
	"fmt"
	"iter"
	"unsafe"
)

// View reads the elements of a tensor on the host as values of type T.
//
// It is a small value that owns nothing: a view of a foreign tensor lives as long as somebody keeps the tensor, so make it inside the call that uses it. A view of a
// Go slice keeps the slice.
//
// An index or an axis that is out of range is a bug in the program: At, Slice, Index and Permute panic with an *Error of KindValue, as Go's own indexing does.
//
// The zero View has no elements.
type View[T Element] struct{ reader[T] }

// MutView reads and writes the elements of a writable tensor on the host. No two of its indices meet the same element.
// Everything else is as with View; View gives one.
type MutView[T Element] struct {
	_ [0]writable // so that a View cannot be converted
	reader[T]
}

type writable struct{}

// reader is the methods that View and MutView share.
type reader[T Element] struct{ grid }

// ViewOf validates t and views it. T must be the Go type of t's element type; see Element.
//
// ErrDType: another element type. ErrDevice: not host memory. ErrAlignment: elements at odd addresses. The other errors are those of Validate.
func ViewOf[T Element](t *Tensor, flags Flags) (View[T], error) {
	g, err := gridOf("ViewOf", t, flags, RequireDType(DTypeOf[T]()), RequireHost, RequireAligned)
	return View[T]{reader[T]{g}}, err
}

// MutViewOf validates t and views it for writing.
//
// ErrReadOnly: flags say so. ErrLayout: two indices may meet the same element, as in a broadcast tensor. The other errors are those of ViewOf.
func MutViewOf[T Element](t *Tensor, flags Flags) (MutView[T], error) {
	g, err := gridOf("MutViewOf", t, flags, RequireDType(DTypeOf[T]()), RequireHost, RequireAligned, RequireWritable, requireDistinct)
	return MutView[T]{reader: reader[T]{g}}, err
}

func requireDistinct(t *Tensor, _ Flags) error {
	shape, strides := t.ShapeUnchecked(), t.StridesUnchecked()
	if strides == nil || !SelfOverlaps(shape, strides) {
		return nil
	}
	return &Error{Kind: KindLayout, Thing: "strides", Axis: NoAxis, Got: fmt.Sprintf("%v for shape %v", strides, shape),
		Want: "a place of its own for each element", Hint: "write into a copy"}
}

// TrustedView is ViewOf for a tensor whose every rule somebody else has checked, with strides given. It copies neither shape nor strides: the view is
// valid as long as t is. A tensor that breaks a rule breaks the program.
//
//go:noinline
func TrustedView[T Element](t *Tensor) (v View[T]) {
	v.trust(t)
	return v
}

// TrustedMutView is MutViewOf in the same way.
//
//go:noinline
func TrustedMutView[T Element](t *Tensor) (v MutView[T]) {
	v.trust(t)
	return v
}

// TrustedAnyView is AnyViewOf in the same way.
func TrustedAnyView(t *Tensor, flags Flags) AnyView {
	size, _ := t.DType.ItemSize(flags)
	v := AnyView{dtype: t.DType, itemSize: size, values: t.DType.HasValues(flags), readOnly: flags.ReadOnly()}
	v.trust(t)
	return v
}

// NewView views a Go slice as a compact tensor; without a shape as one axis. ErrShape: the shape has not as many elements as the slice.
// ErrOverflow: as NumElements.
func NewView[T Element](s []T, shape ...int64) (View[T], error) {
	g, err := gridOverSlice("NewView", unsafe.Pointer(unsafe.SliceData(s)), len(s), sizeOf[T](), shape)
	return View[T]{reader[T]{g}}, err
}

// NewMutView is NewView for writing.
func NewMutView[T Element](s []T, shape ...int64) (MutView[T], error) {
	g, err := gridOverSlice("NewMutView", unsafe.Pointer(unsafe.SliceData(s)), len(s), sizeOf[T](), shape)
	return MutView[T]{reader: reader[T]{g}}, err
}

func sizeOf[T Element]() int64 {
	var zero T
	return int64(unsafe.Sizeof(zero))
}

// DType is the element type.
func (v reader[T]) DType() DataType { return DTypeOf[T]() }

// at is the address of an element.
func at[T Element](data unsafe.Pointer, offset int) *T {
	return (*T)(unsafe.Add(data, offset*int(sizeOf[T]())))
}

// At is the element at an index, one number an axis. It panics when the index is out of range, and does not allocate.
func (v reader[T]) At(index ...int) T { return *at[T](v.data, offsetOf(v.shape, v.strides, index)) }

// Data is the elements in row-major order, in place. Only a MutView's may be written to. ErrLayout: the tensor is not contiguous.
func (v reader[T]) Data() ([]T, error) {
	n := v.Len()
	if n == 0 {
		return []T{}, nil
	}
	if !v.IsContiguous() {
		return nil, v.notContiguous("Data")
	}
	return unsafe.Slice((*T)(v.data), n), nil
}

// All goes through the indices and elements in row-major order. The index slice is reused: clone it to keep it.
func (v reader[T]) All() iter.Seq2[[]int, T] {
	return func(yield func([]int, T) bool) {
		v.each(func(index []int, offset int) bool { return yield(index, *at[T](v.data, offset)) })
	}
}

// Values goes through the elements in row-major order.
func (v reader[T]) Values() iter.Seq[T] {
	return func(yield func(T) bool) {
		v.each(func(_ []int, offset int) bool { return yield(*at[T](v.data, offset)) })
	}
}

// Slice takes every step-th element of an axis from start on, until it reaches stop: Slice(0, 2, 8, 3) takes 2 and 5. With a negative step it goes down:
// Slice(0, n-1, -1, -1) turns the axis around. Numbers count from the start of the axis, always; it panics when one is out of range.
func (v View[T]) Slice(axis, start, stop, step int) View[T] {
	return View[T]{reader[T]{v.slice(axis, start, stop, step, sizeOf[T]())}}
}

// Index is the part of the tensor where an axis stands at i, with an axis less: Index(0, i) is row i of a matrix.
func (v View[T]) Index(axis, i int) View[T] {
	return View[T]{reader[T]{v.index(axis, i, sizeOf[T]())}}
}

// Permute orders the axes anew: axis k of the result is axis axes[k].
func (v View[T]) Permute(axes ...int) View[T] { return View[T]{reader[T]{v.permute(axes)}} }

// Any is the view without its element type.
func (v View[T]) Any() AnyView { return AnyView{v.grid, v.DType(), sizeOf[T](), true, true} }

// Set writes the element at an index. It panics when the index is out of range, and does not allocate.
func (v MutView[T]) Set(value T, index ...int) {
	*at[T](v.data, offsetOf(v.shape, v.strides, index)) = value
}

// Fill writes the same value everywhere.
func (v MutView[T]) Fill(value T) {
	v.each(func(_ []int, offset int) bool { *at[T](v.data, offset) = value; return true })
}

// View is the same elements for reading.
func (v MutView[T]) View() View[T] { return View[T]{v.reader} }

// Slice is View.Slice for writing.
func (v MutView[T]) Slice(axis, start, stop, step int) MutView[T] {
	return MutView[T]{reader: reader[T]{v.slice(axis, start, stop, step, sizeOf[T]())}}
}

// Index is View.Index for writing.
func (v MutView[T]) Index(axis, i int) MutView[T] {
	return MutView[T]{reader: reader[T]{v.index(axis, i, sizeOf[T]())}}
}

// Permute is View.Permute for writing.
func (v MutView[T]) Permute(axes ...int) MutView[T] {
	return MutView[T]{reader: reader[T]{v.permute(axes)}}
}

// Any is the view without its element type, writable.
func (v MutView[T]) Any() AnyView { return AnyView{v.grid, v.DType(), sizeOf[T](), true, false} }

// AnyView is a view whose element type is known at run time only. Opaque element types have one too: their elements can be moved, not read.
type AnyView struct {
	grid
	dtype    DataType
	itemSize int64
	values   bool
	readOnly bool
}

// AnyViewOf validates t and views it. It takes data at any alignment, also for types with values; AsView does not.
//
// ErrDevice: not host memory. The other errors are those of Validate.
func AnyViewOf(t *Tensor, flags Flags) (AnyView, error) {
	g, err := gridOf("AnyViewOf", t, flags, RequireHost)
	if err != nil {
		return AnyView{}, err
	}
	size, err := t.DType.ItemSize(flags)
	return AnyView{g, t.DType, size, t.DType.HasValues(flags), flags.ReadOnly()}, err
}

// DType is the element type.
func (v AnyView) DType() DataType { return v.dtype }

// ItemSize is the size of an element in bytes.
func (v AnyView) ItemSize() int { return int(v.itemSize) }

// HasValues says whether the elements can be read as values; otherwise they are opaque.
func (v AnyView) HasValues() bool { return v.values }

// ReadOnly says whether the data must not be written to.
func (v AnyView) ReadOnly() bool { return v.readOnly }

// Pointer is the address of the first element.
func (v AnyView) Pointer() unsafe.Pointer { return v.data }

// Slice is View.Slice.
func (v AnyView) Slice(axis, start, stop, step int) AnyView {
	v.grid = v.slice(axis, start, stop, step, v.itemSize)
	return v
}

// Index is View.Index.
func (v AnyView) Index(axis, i int) AnyView {
	v.grid = v.index(axis, i, v.itemSize)
	return v
}

// Permute is View.Permute.
func (v AnyView) Permute(axes ...int) AnyView {
	v.grid = v.permute(axes)
	return v
}

// Bytes is the memory of the elements in row-major order, in place; write to it only when the view is not ReadOnly. ErrLayout: the tensor is not contiguous.
func (v AnyView) Bytes() ([]byte, error) {
	n := v.Len()
	if n == 0 {
		return []byte{}, nil
	}
	if !v.IsContiguous() {
		return nil, v.notContiguous("Bytes")
	}
	return unsafe.Slice((*byte)(v.data), n*int(v.itemSize)), nil
}

// AsView gives a view its element type. ErrDType: T is not the Go type of v's elements. ErrAlignment: elements at odd addresses.
func AsView[T Element](v AnyView) (View[T], error) {
	err := v.fits("AsView", DTypeOf[T]())
	if err != nil {
		return View[T]{}, err
	}
	return View[T]{reader[T]{v.grid}}, nil
}

// AsMutView is AsView for writing. ErrReadOnly: v is read-only. ErrLayout: two indices may meet the same element.
func AsMutView[T Element](v AnyView) (MutView[T], error) {
	const op = "AsMutView"
	if err := v.fits(op, DTypeOf[T]()); err != nil {
		return MutView[T]{}, err
	}
	if v.readOnly {
		return MutView[T]{}, &Error{Op: op, Kind: KindReadOnly, Thing: "tensor", Axis: NoAxis, Got: "a read-only one", Want: "a writable one", Hint: "copy it first"}
	}
	if SelfOverlaps(v.shape, v.strides) {
		return MutView[T]{}, &Error{Op: op, Kind: KindLayout, Thing: "strides", Axis: NoAxis, Got: fmt.Sprintf("%v for shape %v", v.strides, v.shape),
			Want: "a place of its own for each element", Hint: "write into a copy"}
	}
	return MutView[T]{reader: reader[T]{v.grid}}, nil
}

func (v AnyView) fits(op string, want DataType) error {
	if v.dtype != want || !v.values {
		return &Error{Op: op, Kind: KindDType, Axis: NoAxis, Got: v.dtype.String(), Want: want.String()}
	}
	if align := uintptr(want.Align()); v.Len() > 0 && uintptr(v.data)%align != 0 {
		return &Error{Op: op, Kind: KindAlignment, Thing: "data", Axis: NoAxis, Got: fmt.Sprintf("address %#x", uintptr(v.data)),
			Want: fmt.Sprintf("a multiple of %d for %s", align, want), Hint: "copy the tensor first"}
	}
	return nil
}
