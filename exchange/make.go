package exchange

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// FromSlice copies s into C memory and makes a compact tensor of it. Without extents it has one axis; with extents their product must be len(s).
//
// ErrShape: the extents do not fit the slice. ErrOverflow; ErrMemory.
func FromSlice[T dlpack.Element](s []T, shape ...int64) (*Local, error) {
	shape, err := shapeOf("exchange.FromSlice", len(s), shape)
	if err != nil {
		return nil, err
	}
	l, err := Empty(dlpack.DTypeOf[T](), shape...)
	if err != nil {
		return nil, err
	}
	copy(unsafe.Slice((*T)(pointer(l.desc.Data)), len(s)), s)
	return l, nil
}

// Lend makes a compact tensor over s itself: nothing is copied, s is pinned until the last deleter ran, and both sides see each other's writes.
// Extents as with FromSlice.
//
// ErrShape: the extents do not fit the slice. ErrOverflow; ErrMemory.
func Lend[T dlpack.Element](s []T, shape ...int64) (*Local, error) {
	shape, err := shapeOf("exchange.Lend", len(s), shape)
	if err != nil {
		return nil, err
	}
	return NewBuilder().Shape(shape...).DType(dlpack.DTypeOf[T]()).Data(unsafe.Pointer(unsafe.SliceData(s)), sizeOf(s)).Build()
}

// LendString makes a read-only tensor of the bytes of s, without a copy.
func LendString(s string) (*Local, error) {
	return NewBuilder().Shape(int64(len(s))).DType(dlpack.DTypeUint8).ReadOnly().Data(unsafe.Pointer(unsafe.StringData(s)), int64(len(s))).Build()
}

// Empty makes a compact tensor on the CPU whose elements may have any value. The errors are those of Builder.Build.
func Empty(dtype dlpack.DataType, shape ...int64) (*Local, error) {
	return NewBuilder().Shape(shape...).DType(dtype).Build()
}

// Zeros is Empty with all bytes set to zero.
func Zeros(dtype dlpack.DataType, shape ...int64) (*Local, error) {
	return NewBuilder().Shape(shape...).DType(dtype).Zeroed().Build()
}

func sizeOf[T any](s []T) int64 { return int64(len(s)) * int64(unsafe.Sizeof(*new(T))) }

func shapeOf(op string, n int, shape []int64) ([]int64, error) {
	if len(shape) == 0 {
		return []int64{int64(n)}, nil
	}
	product, err := dlpack.NumElements(shape)
	if err != nil {
		return nil, err
	}
	if product != int64(n) {
		return nil, &dlpack.Error{Op: op, Kind: dlpack.KindShape, Axis: dlpack.NoAxis, Got: fmt.Sprint(shape) + " for " + strconv.Itoa(n) + " elements",
			Want: "extents whose product is the length of the slice"}
	}
	return shape, nil
}
