package dlpack_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// A tensor that came from elsewhere is viewed with the type that the code works on; everything about it is checked first.
func ExampleViewOf() {
	data, shape := []float32{1, 2, 3, 4, 5, 6}, []int64{2, 3}
	t := &dlpack.Tensor{
		Data: uintptr(unsafe.Pointer(&data[0])), Device: dlpack.CPU, DType: dlpack.DTypeFloat32,
		NDim: 2, Shape: uintptr(unsafe.Pointer(&shape[0])),
	}
	v, err := dlpack.ViewOf[float32](t, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Shape(), v.At(1, 2))

	_, err = dlpack.ViewOf[int64](t, 0)
	fmt.Println(errors.Is(err, dlpack.ErrDType), err)
	runtime.KeepAlive(data)
	runtime.KeepAlive(shape)
	// Output:
	// [2 3] 6
	// true ViewOf: dtype, got float32, want int64
}

func ExampleMutViewOf() {
	data, shape := []int32{1, 2, 3, 4}, []int64{2, 2}
	t := &dlpack.Tensor{
		Data: uintptr(unsafe.Pointer(&data[0])), Device: dlpack.CPU, DType: dlpack.DTypeInt32,
		NDim: 2, Shape: uintptr(unsafe.Pointer(&shape[0])),
	}
	v, err := dlpack.MutViewOf[int32](t, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	v.Set(40, 1, 1)
	fmt.Println(data)

	_, err = dlpack.MutViewOf[int32](t, dlpack.FlagReadOnly)
	fmt.Println(err)
	runtime.KeepAlive(shape)
	// Output:
	// [1 2 3 40]
	// MutViewOf: tensor, got a read-only one, want a writable one; copy it first
}

func ExampleNewView() {
	v, err := dlpack.NewView([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(slices.Collect(v.Permute(1, 0).Values()))
	fmt.Println(slices.Collect(v.Index(0, 1).Slice(0, 2, -1, -1).Values()))
	// Output:
	// [1 4 2 5 3 6]
	// [6 5 4]
}

func ExampleNewMutView() {
	v, err := dlpack.NewMutView(make([]int8, 6), 2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for index := range v.All() {
		v.Set(int8(10*index[0]+index[1]), index...)
	}
	fmt.Println(v.Data())
	// Output: [0 1 2 10 11 12] <nil>
}

// A function for several element types takes an AnyView, and looks which one it got.
func ExampleAsView() {
	sum := func(v dlpack.AnyView) (total float64) {
		switch v.DType() {
		case dlpack.DTypeFloat32:
			x, _ := dlpack.AsView[float32](v)
			for value := range x.Values() {
				total += float64(value)
			}
		case dlpack.DTypeUint8:
			x, _ := dlpack.AsView[uint8](v)
			for value := range x.Values() {
				total += float64(value)
			}
		}
		return total
	}
	v, err := dlpack.NewView([]uint8{1, 2, 3})
	fmt.Println(sum(v.Any()), err)
	// Output: 6 <nil>
}

func ExampleValidate() {
	t := &dlpack.Tensor{Device: dlpack.CPU, DType: dlpack.DTypeFloat32, NDim: 3}
	err := dlpack.Validate(t, 0)
	var e *dlpack.Error
	if errors.As(err, &e) {
		fmt.Println(e.Kind, "|", e.Thing, "|", e.Got)
	}
	fmt.Println(err)
	// Output:
	// null pointer | shape | NULL with ndim 3
	// Validate: shape, got NULL with ndim 3, want an address
}

func ExampleParseDataType() {
	for _, name := range []string{"bfloat16", "float4_e2m1fn_x2", "code99_8", "floaty"} {
		d, err := dlpack.ParseDataType(name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		size, _ := d.ItemSize(0)
		fmt.Println(d, d.Known(), size)
	}
	// Output:
	// bfloat16 true 2
	// float4_e2m1fn_x2 true 1
	// code99_8 false 1
	// ParseDataType: dtype, got "floaty", want a name such as "float32", "bfloat16", "float8_e4m3fn", "float32x4" or "code99_8"
}

func ExampleParseDevice() {
	d, err := dlpack.ParseDevice("cuda")
	fmt.Println(d, d.IsHost(), err)
	// Output: cuda:0 false <nil>
}

func ExampleNumBytes() {
	fmt.Println(dlpack.NumBytes([]int64{640, 480, 3}, 4))
	_, err := dlpack.NumBytes([]int64{0, 1 << 62, 1 << 62}, 4)
	fmt.Println(errors.Is(err, dlpack.ErrOverflow))
	// Output:
	// 3686400 <nil>
	// true
}

func ExampleEncodeMinifloat() {
	b := dlpack.EncodeMinifloat(dlpack.CodeFloat8E4M3FN, 3.3)
	fmt.Printf("%#02x %v\n", b, dlpack.DecodeMinifloat(dlpack.CodeFloat8E4M3FN, b))
	// Output: 0x45 3.25
}
