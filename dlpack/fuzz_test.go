package dlpack_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// numbers reads up to n int64 values.
func numbers(raw []byte, n int) []int64 {
	var out []int64
	for len(raw) >= 8 && len(out) < n {
		out = append(out, int64(binary.LittleEndian.Uint64(raw)))
		raw = raw[8:]
	}
	return out
}

func raw(values ...int64) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
	}
	return out
}

// FuzzValidate holds that an accepted description is safe to compute with, whatever it says.
func FuzzValidate(f *testing.F) {
	f.Add(uint64(4096), int32(1), int32(0), int32(2), uint8(2), uint8(32), uint16(1), uint64(0), uint64(0), raw(2, 3), raw(3, 1))
	f.Add(uint64(0), int32(1), int32(0), int32(1), uint8(17), uint8(4), uint16(2), uint64(0), uint64(1), raw(0), raw())
	f.Add(uint64(math.MaxUint64), int32(8), int32(0), int32(2), uint8(99), uint8(8), uint16(9), uint64(1<<62), uint64(4), raw(1<<31, 1<<31), raw(-1<<62, 0))
	f.Add(uint64(8), int32(2), int32(-1), int32(-1), uint8(6), uint8(1), uint16(1), uint64(math.MaxUint64), uint64(4), raw(1<<62, 1<<62, 0), raw(0, 0, 0))
	f.Fuzz(func(t *testing.T, data uint64, typ, id, ndim int32, code, bits uint8, lanes uint16, offset, flags uint64, shapeRaw, stridesRaw []byte) {
		shape, strides := numbers(shapeRaw, dlpack.MaxNDim), numbers(stridesRaw, dlpack.MaxNDim)
		if ndim > int32(len(shape)) && ndim <= dlpack.MaxNDim {
			ndim = int32(len(shape)) // a lie that no validator can see
		}
		if len(strides) < int(ndim) {
			strides = nil
		}
		x := floats(nil, shape, strides)
		kept = nil
		x.Data, x.Device, x.NDim, x.ByteOffset = uintptr(data), dlpack.Device{Type: dlpack.DeviceType(typ), ID: id}, ndim, offset
		x.DType = dlpack.DataType{Code: dlpack.TypeCode(code), Bits: bits, Lanes: lanes}
		before := *x
		err := dlpack.Validate(x, dlpack.Flags(flags), dlpack.RequireAligned, dlpack.RequireContiguous)
		err2 := dlpack.Validate(x, dlpack.Flags(flags))
		if *x != before {
			t.Fatal("the tensor was written to")
		}
		if err == nil && err2 != nil {
			t.Fatalf("rules make %v pass", err2)
		}
		if err2 != nil {
			if dlpack.KindOf(err2).Sentinel() == nil || err2.Error() == "" {
				t.Fatalf("an error of no kind: %#v", err2)
			}
			return
		}
		size, err := x.DType.ItemSize(dlpack.Flags(flags))
		if err != nil || size < 1 {
			t.Fatalf("item size %d (%v)", size, err)
		}
		n, err := dlpack.NumBytes(x.ShapeUnchecked(), size)
		if err != nil || n < 0 {
			t.Fatalf("bytes %d (%v)", n, err)
		}
		low, high, err := dlpack.ByteSpan(x.ShapeUnchecked(), x.StridesUnchecked(), size)
		if err != nil || low > 0 || high < 0 || n > 0 && high < size {
			t.Fatalf("span %d to %d (%v)", low, high, err)
		}
		if n > 0 && data == 0 {
			t.Fatal("NULL data with elements")
		}
		if x.Device.Type.HasPointers() {
			first := data + offset
			if first < data || first+uint64(high) < first || first+uint64(low) > first && low != 0 {
				t.Fatalf("addresses wrap: data %#x, offset %d, span %d to %d", data, offset, low, high)
			}
		}
	})
}

// FuzzLayout holds that the layout functions agree with one another and never panic.
func FuzzLayout(f *testing.F) {
	f.Add(raw(2, 3), raw(3, 1), int64(4))
	f.Add(raw(0, 1<<62, 1<<62), raw(), int64(1))
	f.Add(raw(-1), raw(0), int64(-1))
	f.Add(raw(1, 1, 5), raw(7, -9, 1), int64(16))
	f.Fuzz(func(t *testing.T, shapeRaw, stridesRaw []byte, itemSize int64) {
		shape, strides := numbers(shapeRaw, 9), numbers(stridesRaw, 9)
		n, err := dlpack.NumElements(shape)
		compact, err2 := dlpack.CompactStrides(shape)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("NumElements: %v, CompactStrides: %v", err, err2)
		}
		if err == nil && (!dlpack.IsContiguous(shape, compact) || dlpack.SelfOverlaps(shape, compact)) {
			t.Fatalf("%v: strides %v are not compact", shape, compact)
		}
		size, err := dlpack.NumBytes(shape, itemSize)
		low, high, err2 := dlpack.ByteSpan(shape, compact, itemSize)
		if err == nil && (err2 != nil || low != 0 || high != size || size != n*itemSize) {
			t.Fatalf("%v of %d bytes: %d in all, span %d to %d (%v)", shape, itemSize, size, low, high, err2)
		}
		low, high, err = dlpack.ByteSpan(shape, strides, itemSize)
		if err == nil && (low > 0 || high < 0 || low == math.MinInt64) {
			t.Fatalf("span %d to %d", low, high)
		}
		if err == nil && len(strides) == len(shape) && dlpack.IsContiguous(shape, strides) && high-low != size {
			t.Fatalf("%v strides %v: contiguous, but %d bytes from %d to %d", shape, strides, size, low, high)
		}
		dlpack.SelfOverlaps(shape, strides)
	})
}

// FuzzParse holds that what is read prints the same again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"float32", "float4_e2m1fn_x2", "code99_8x3", "complex64x2", "cuda:0", "device99:1", "cpu", "int0x0", "x", "_x", "code"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := dlpack.ParseDataType(s); err == nil && d.String() != s {
			t.Fatalf("%q is read as %v", s, d)
		}
		if d, err := dlpack.ParseDevice(s); err == nil {
			if again, err := dlpack.ParseDevice(d.String()); err != nil || again != d {
				t.Fatalf("%q is read as %v, which is read as %v (%v)", s, d, again, err)
			}
		}
	})
}
