// Package dlpacktest is a conformance kit for code that takes DLPack tensors from elsewhere: tensors that it must accept, and hostile ones that it
// must refuse, each with the kind of error.
//
//	func TestImport(t *testing.T) {
//		dlpacktest.Suite(t, func(x *dlpack.Tensor, flags dlpack.Flags) error { … })
//	}
package dlpacktest

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// Case is a tensor and what has to become of it.
type Case struct {
	Name  string
	Flags dlpack.Flags
	// Want is KindOK for a tensor that must be accepted, else the kind of the refusal.
	Want   dlpack.Kind
	tensor dlpack.Tensor
}

// Tensor is a fresh description. What it points to is shared by all, lives as long as the process, and must not be written to. The data is
// real memory only when HasMemory says so.
func (c Case) Tensor() *dlpack.Tensor {
	t := c.tensor
	return &t
}

// Managed is the tensor in a versioned managed tensor of the current version, with neither deleter nor context.
func (c Case) Managed() *dlpack.ManagedTensorVersioned {
	return &dlpack.ManagedTensorVersioned{Version: dlpack.CurrentVersion, Flags: c.Flags, Tensor: c.tensor}
}

// HasMemory says whether the elements may be read: the tensor is good, lies on the host, and has few enough of them.
func (c Case) HasMemory() bool {
	n, err := dlpack.NumElements(c.tensor.ShapeUnchecked())
	return err == nil && n < 1<<16 && c.Want == dlpack.KindOK && c.tensor.Device.IsHost()
}

// Cases is all cases, good ones first. The slice is the caller's.
func Cases() []Case { return slices.Clone(all()) }

var all = sync.OnceValue(func() []Case {
	b := &builder{}
	b.good()
	b.goodTypes()
	b.goodDevices()
	b.hostileShapes()
	b.hostileMemory()
	b.hostileTypes()
	b.hostileDevices()
	return b.cases
})

// kept holds on to what the descriptions point to: their addresses are integers, which keep nothing alive.
var kept struct {
	data [1 << 13]uint64
	dims [][]int64
}

type builder struct{ cases []Case }

// change alters the base tensor of a case: 2 x 3 float32 values, compact, on the cpu.
type change func(*Case)

func (b *builder) add(want dlpack.Kind, name string, changes ...change) {
	c := Case{Name: name, Want: want, tensor: dlpack.Tensor{Data: base(0), Device: dlpack.CPU, DType: dlpack.DTypeFloat32}}
	shape(2, 3)(&c)
	strides(3, 1)(&c)
	for _, f := range changes {
		f(&c)
	}
	b.cases = append(b.cases, c)
}

// base is an address in the middle of the data, so that there is room on both sides.
func base(offset int) uintptr {
	return uintptr(unsafe.Pointer(&kept.data[len(kept.data)/2])) + uintptr(offset)
}

func dims(values []int64) uintptr {
	if len(values) == 0 {
		return 0
	}
	values = slices.Clone(values)
	kept.dims = append(kept.dims, values)
	return uintptr(unsafe.Pointer(&values[0]))
}

// shape sets ndim too and takes the strides away.
func shape(values ...int64) change {
	return func(c *Case) {
		c.tensor.NDim, c.tensor.Shape, c.tensor.Strides = int32(len(values)), dims(values), 0
	}
}

func strides(values ...int64) change { return func(c *Case) { c.tensor.Strides = dims(values) } }
func data(address uintptr) change    { return func(c *Case) { c.tensor.Data = address } }
func byteOffset(n uint64) change     { return func(c *Case) { c.tensor.ByteOffset = n } }
func flags(f dlpack.Flags) change    { return func(c *Case) { c.Flags = f } }
func ndim(n int32) change            { return func(c *Case) { c.tensor.NDim = n } }

func dtype(code dlpack.TypeCode, bits uint8, lanes uint16) change {
	return func(c *Case) { c.tensor.DType = dlpack.DataType{Code: code, Bits: bits, Lanes: lanes} }
}

func device(typ dlpack.DeviceType, id int32) change {
	return func(c *Case) { c.tensor.Device = dlpack.Device{Type: typ, ID: id} }
}

// repeat is n times the same number.
func repeat(n int, value int64) []int64 { return slices.Repeat([]int64{value}, n) }

func (b *builder) good() {
	ok := func(name string, changes ...change) { b.add(dlpack.KindOK, name, changes...) }
	ok("compact")
	ok("strides are NULL", shape(2, 3))
	ok("no axes, shape and strides NULL", shape())
	ok("no axes, shape and strides not NULL", ndim(0))
	ok("transposed", shape(3, 2), strides(1, 3))
	ok("negative strides", data(base(20)), strides(-3, -1))
	ok("one negative stride", data(base(8)), strides(3, -1))
	ok("gaps", strides(64, 2))
	ok("broadcast", strides(0, 1))
	ok("extent 1 with a wild stride", shape(1, 3), strides(math.MaxInt64, 1))
	ok("extent 1 with the most negative stride", shape(3, 1), strides(1, math.MinInt64))
	ok("no elements, data NULL", shape(0), data(0))
	ok("no elements, data not an address", shape(0, 3), data(1))
	ok("no elements, strides NULL, byte offset", shape(3, 0), data(0), byteOffset(64))
	ok("no elements between other extents", shape(2, 0, 3), strides(3, 3, 1), data(0))
	ok("no elements, wild strides", shape(0, 3), strides(1, math.MaxInt64/2), data(0))
	ok("byte offset", byteOffset(8))
	ok("byte offset before which elements lie", byteOffset(20), strides(-3, -1))
	ok("64 axes", shape(repeat(dlpack.MaxNDim, 1)...))
	ok("64 axes of extent 2, broadcast", shape(append(repeat(dlpack.MaxNDim-2, 1), 2, 2)...), strides(repeat(dlpack.MaxNDim, 0)...))
	ok("9 axes", shape(1, 2, 1, 2, 1, 2, 1, 2, 1))
	ok("data at an odd address", data(base(1)))
	ok("read-only", flags(dlpack.FlagReadOnly))
	ok("copied", flags(dlpack.FlagIsCopied))
	ok("flags of a later version", flags(1<<40))
	ok("the same element 2^60 times", shape(1<<60), strides(0))
}

func (b *builder) goodTypes() {
	for _, d := range Types() {
		b.add(dlpack.KindOK, "dtype "+d.String(), dtype(d.Code, d.Bits, d.Lanes))
	}
	for _, d := range []dlpack.DataType{
		{Code: dlpack.CodeFloat, Bits: 32, Lanes: 4}, {Code: dlpack.CodeFloat, Bits: 128, Lanes: 1}, {Code: dlpack.CodeOpaqueHandle, Bits: 64, Lanes: 1},
		{Code: dlpack.CodeInt, Bits: 4, Lanes: 2}, {Code: dlpack.CodeBool, Bits: 1, Lanes: 8}, {Code: dlpack.CodeInt, Bits: 24, Lanes: 1},
		{Code: dlpack.CodeBComplex, Bits: 32, Lanes: 1}, {Code: 99, Bits: 8, Lanes: 1}, {Code: 255, Bits: 248, Lanes: 2},
	} {
		b.add(dlpack.KindOK, "opaque dtype "+d.String(), dtype(d.Code, d.Bits, d.Lanes))
	}
	b.add(dlpack.KindOK, "float4 padded to a byte", dtype(dlpack.CodeFloat4E2M1FN, 4, 1), flags(dlpack.FlagSubbytePadded))
	b.add(dlpack.KindOK, "bits padded to a byte", dtype(dlpack.CodeBool, 1, 1), flags(dlpack.FlagSubbytePadded))
	b.add(dlpack.KindOK, "the padded flag on whole bytes", flags(dlpack.FlagSubbytePadded))
}

// Types is all element types with values.
func Types() []dlpack.DataType {
	var out []dlpack.DataType
	for code := range 256 {
		for bits := range 256 {
			for _, lanes := range []uint16{1, 2} {
				if d := (dlpack.DataType{Code: dlpack.TypeCode(code), Bits: uint8(bits), Lanes: lanes}); d.Known() {
					out = append(out, d)
				}
			}
		}
	}
	return out
}

func (b *builder) goodDevices() {
	ok := func(name string, changes ...change) { b.add(dlpack.KindOK, name, changes...) }
	for _, typ := range []dlpack.DeviceType{dlpack.DeviceCUDA, dlpack.DeviceCUDAManaged, dlpack.DeviceROCm, dlpack.DeviceExtDev, dlpack.DeviceOneAPI} {
		ok("device "+typ.String(), device(typ, 1), data(0x7f0000000000))
	}
	for _, typ := range []dlpack.DeviceType{dlpack.DeviceOpenCL, dlpack.DeviceVulkan, dlpack.DeviceMetal, dlpack.DeviceWebGPU} {
		ok("a handle of "+typ.String()+" with a byte offset", device(typ, 0), data(math.MaxUint64&^7), byteOffset(4096))
	}
	ok("host memory of a GPU", device(dlpack.DeviceCUDAHost, 0))
	ok("host memory with a negative device number", device(dlpack.DeviceCPU, -1))
	ok("an unknown device type", device(99, 3), data(0x1000))
}

func (b *builder) hostileShapes() {
	bad := b.add
	bad(dlpack.KindShape, "ndim -1", ndim(-1))
	bad(dlpack.KindShape, "the most negative ndim", ndim(math.MinInt32))
	bad(dlpack.KindShape, "65 axes", shape(repeat(dlpack.MaxNDim+1, 1)...))
	bad(dlpack.KindShape, "the largest ndim", ndim(math.MaxInt32))
	bad(dlpack.KindNull, "shape NULL", func(c *Case) { c.tensor.Shape = 0 })
	bad(dlpack.KindNull, "shape and strides NULL", func(c *Case) { c.tensor.Shape, c.tensor.Strides = 0, 0 })
	bad(dlpack.KindAlignment, "shape at an odd address", func(c *Case) { c.tensor.Shape += 4 })
	bad(dlpack.KindAlignment, "strides at an odd address", func(c *Case) { c.tensor.Strides++ })
	bad(dlpack.KindShape, "a negative extent", shape(2, -3))
	bad(dlpack.KindShape, "two negative extents", shape(-2, -3))
	bad(dlpack.KindShape, "the most negative extent", shape(math.MinInt64))
	bad(dlpack.KindShape, "a negative extent after one of 0", shape(0, -1), data(0))
	bad(dlpack.KindOverflow, "more elements than 64 bits count", shape(1<<32, 1<<32))
	bad(dlpack.KindOverflow, "a number of elements that wraps to 0", shape(1<<32, 1<<32, 1<<32), strides(0, 0, 0))
	bad(dlpack.KindOverflow, "a number of elements that wraps to 6", shape(3, 1<<62, 4, 2), strides(0, 0, 0, 1))
	bad(dlpack.KindOverflow, "more bytes than 64 bits count", shape(1<<62), strides(0))
	bad(dlpack.KindOverflow, "no elements, but the other extents overflow", shape(0, 1<<62, 1<<62), data(0))
	bad(dlpack.KindOverflow, "no elements, but the other extents overflow before", shape(1<<62, 1<<62, 0), data(0))
	bad(dlpack.KindOverflow, "no elements, but the bytes of the others overflow", shape(1<<62, 0), data(0))
}

func (b *builder) hostileMemory() {
	bad := b.add
	bad(dlpack.KindOverflow, "a stride that overflows in bytes", strides(1<<62, 1))
	bad(dlpack.KindOverflow, "the most negative stride", strides(math.MinInt64, 1))
	bad(dlpack.KindOverflow, "strides that overflow together", strides(1<<60, 1<<60), shape2(2, 2))
	bad(dlpack.KindOverflow, "elements before address 0", data(8), strides(-3, 1))
	bad(dlpack.KindOverflow, "elements beyond the last address", data(math.MaxUint64-15))
	bad(dlpack.KindOverflow, "a span that wraps around", shape(1<<60), strides(1), data(math.MaxUint64-1<<61))
	bad(dlpack.KindNull, "data NULL with elements", data(0))
	bad(dlpack.KindNull, "data NULL with one element", data(0), shape())
	bad(dlpack.KindNull, "data NULL with elements behind a byte offset", data(0), byteOffset(4096))
	bad(dlpack.KindNull, "data NULL on a device", data(0), device(dlpack.DeviceCUDA, 0))
	bad(dlpack.KindOffset, "the largest byte offset", byteOffset(math.MaxUint64))
	bad(dlpack.KindOffset, "a byte offset of 2^63", byteOffset(1<<63))
	bad(dlpack.KindOffset, "a byte offset that leads beyond the last address", data(math.MaxUint64-7), byteOffset(16))
	bad(dlpack.KindOffset, "a large byte offset without elements", shape(0), data(0), byteOffset(1<<63))
	bad(dlpack.KindOffset, "elements before a buffer object", device(dlpack.DeviceMetal, 0), strides(-3, 1), byteOffset(8))
	bad(dlpack.KindOverflow, "a byte offset whose end overflows", device(dlpack.DeviceOpenCL, 0), byteOffset(math.MaxInt64-8))
}

// shape2 sets the shape and leaves ndim and strides alone.
func shape2(values ...int64) change { return func(c *Case) { c.tensor.Shape = dims(values) } }

func (b *builder) hostileTypes() {
	for _, d := range []dlpack.DataType{
		{Code: dlpack.CodeFloat, Bits: 0, Lanes: 1}, {Code: dlpack.CodeFloat, Bits: 32, Lanes: 0}, {}, {Code: dlpack.CodeInt, Bits: 4, Lanes: 1},
		{Code: dlpack.CodeBool, Bits: 1, Lanes: 1}, {Code: dlpack.CodeInt, Bits: 12, Lanes: 1}, {Code: dlpack.CodeFloat4E2M1FN, Bits: 4, Lanes: 1},
		{Code: dlpack.CodeFloat6E2M3FN, Bits: 6, Lanes: 1}, {Code: dlpack.CodeFloat6E3M2FN, Bits: 6, Lanes: 2}, {Code: 99, Bits: 255, Lanes: 65535},
	} {
		b.add(dlpack.KindDType, fmt.Sprintf("dtype code %d, bits %d, lanes %d", d.Code, d.Bits, d.Lanes), dtype(d.Code, d.Bits, d.Lanes))
	}
	b.add(dlpack.KindDType, "no lanes, padded", dtype(dlpack.CodeInt, 4, 0), flags(dlpack.FlagSubbytePadded))
	b.add(dlpack.KindDType, "12 bits, padded", dtype(dlpack.CodeInt, 12, 1), flags(dlpack.FlagSubbytePadded))
	b.add(dlpack.KindOverflow, "elements so large that the bytes overflow", shape(1<<50), strides(0), dtype(dlpack.CodeInt, 248, 65535))
}

func (b *builder) hostileDevices() {
	b.add(dlpack.KindDevice, "device type 0", device(0, 0))
	b.add(dlpack.KindDevice, "device type -1", device(-1, 0))
	b.add(dlpack.KindDevice, "the most negative device type", device(math.MinInt32, 0))
	b.add(dlpack.KindDevice, "a negative number of a GPU", device(dlpack.DeviceCUDA, -1))
	b.add(dlpack.KindDevice, "a negative number of an unknown device", device(99, math.MinInt32))
}
