// Package kernel works on the elements of tensors in host memory.
//
// It takes descriptions that the caller has validated and keeps alive; the addresses in them are used as they are.
package kernel

import (
	"fmt"
	"runtime"
	"strconv"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// Copy writes the elements of src into dst, which has the same shape, with any strides on either side. An equal element type is moved byte for
// byte, also one without values; another one is cast, as NumPy's astype(casting="unsafe") does:
//
//   - float to integer drops the fraction, then the upper bits; what no int64 holds becomes the smallest one, as on x86;
//   - integer to integer drops the upper bits;
//   - complex to real drops the imaginary part;
//   - anything to bool is "not zero", and a bool byte other than 0 counts as 1;
//   - to a narrower float it rounds once, to the nearest, ties to even; beyond the largest number see dlpack.EncodeMinifloat.
//
// src and dst may overlap: src is then read first, by way of a buffer of its size. The elements of dst must not share memory with one another; where
// they do, which of the values stays is not said, and a stride of 0 is refused.
//
// At most threads goroutines work, 0 meaning as many as Go has processors; a panic in one is raised again in the caller. dst's flags are not known here: the
// caller has checked that it may be written to.
//
// ErrShape: the shapes differ. ErrDevice: memory that the CPU may not touch. ErrDType: a cast from or to a type without values, or pairs of 4-bit floats.
// ErrLayout: a stride of 0 in dst.
func Copy(dst, src *dlpack.Tensor, threads int) error {
	for _, t := range []*dlpack.Tensor{dst, src} {
		if !t.Device.IsHost() {
			return refuse(dlpack.KindDevice, "", dlpack.NoAxis, t.Device.String(), "host memory")
		}
	}
	shape := dst.ShapeUnchecked()
	if err := sameShape(shape, src.ShapeUnchecked()); err != nil {
		return err
	}
	dstSize, err := dst.DType.ItemSize(0)
	if err != nil {
		return err
	}
	srcSize, err := src.DType.ItemSize(0)
	if err != nil {
		return err
	}
	var newRow func() row
	if !sameBits(dst.DType, src.DType) {
		if newRow, err = rowOf(dst.DType, src.DType); err != nil {
			return err
		}
	}

	n := int64(1)
	axes := make([]axis, len(shape))
	ds, ss := dst.StridesOrCompact(), src.StridesOrCompact()
	for k, extent := range shape {
		if extent > 1 && ds[k] == 0 {
			return refuse(dlpack.KindLayout, "stride of dst", k, "0", "another: its elements share memory")
		}
		n *= extent
		axes[k] = axis{extent, ds[k] * dstSize, ss[k] * srcSize}
	}
	if n == 0 {
		return nil
	}
	from := src.Data + uintptr(src.ByteOffset)
	to := dst.Data + uintptr(dst.ByteOffset)
	inPlace := to == from && sameSteps(axes)
	if inPlace && newRow == nil {
		return nil
	}
	if !inPlace && overlap(to, shape, ds, dstSize, from, ss, srcSize) {
		packed := make([]byte, n*srcSize)
		defer runtime.KeepAlive(packed)
		p := uintptr(unsafe.Pointer(&packed[0]))
		movePlan(newPlan(p, from, compactAxes(shape, ss, srcSize)), srcSize, n*srcSize, threads)
		step := srcSize
		for k := len(shape) - 1; k >= 0; k-- {
			axes[k].src = step
			step *= shape[k]
		}
		from = p
	}
	p := newPlan(to, from, axes)
	if newRow == nil {
		movePlan(p, dstSize, n*dstSize, threads)
		return nil
	}
	c := &casting{newRow: newRow, vector: vectorOf(dst.DType, src.DType), dst: dstSize, src: srcSize, inPlace: inPlace}
	c.run(p, n, threads)
	return nil
}

// compactAxes walks a tensor with the given strides into row-major order.
func compactAxes(shape, strides []int64, size int64) []axis {
	axes := make([]axis, len(shape))
	step := size
	for k := len(shape) - 1; k >= 0; k-- {
		axes[k] = axis{shape[k], step, strides[k] * size}
		step *= shape[k]
	}
	return axes
}

// sameSteps says whether every element of dst lies where that of src does, if the first ones do. A loop that reads elements before it writes them is
// then safe.
func sameSteps(axes []axis) bool {
	for _, a := range axes {
		if a.n > 1 && a.dst != a.src {
			return false
		}
	}
	return true
}

// overlap says whether the spans of two tensors with elements share a byte.
func overlap(to uintptr, shape, ds []int64, dstSize int64, from uintptr, ss []int64, srcSize int64) bool {
	dstLow, dstHigh, err1 := dlpack.ByteSpan(shape, ds, dstSize)
	srcLow, srcHigh, err2 := dlpack.ByteSpan(shape, ss, srcSize)
	if err1 != nil || err2 != nil {
		return true // not valid tensors; be careful
	}
	return to+uintptr(dstLow) < from+uintptr(srcHigh) && from+uintptr(srcLow) < to+uintptr(dstHigh)
}

func sameShape(dst, src []int64) error {
	if len(dst) != len(src) {
		return refuse(dlpack.KindShape, "ndim of src", dlpack.NoAxis, strconv.Itoa(len(src)), strconv.Itoa(len(dst)))
	}
	for k := range dst {
		if dst[k] != src[k] {
			return refuse(dlpack.KindShape, "extent of src", k, fmt.Sprint(src[k]), fmt.Sprint(dst[k]))
		}
	}
	return nil
}

func refuse(kind dlpack.Kind, thing string, axis int, got, want string) error {
	return &dlpack.Error{Op: "Copy", Kind: kind, Thing: thing, Axis: axis, Got: got, Want: want}
}
