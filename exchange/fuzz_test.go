package exchange

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// hostileDims is what the descriptions of FuzzImport point to: shape, then strides. It does not move.
var hostileDims [2 * dlpack.MaxNDim]int64

func fillDims(out []int64, raw []byte) {
	clear(out)
	for i := range out {
		if len(raw) < 8 {
			break
		}
		out[i] = int64(binary.LittleEndian.Uint64(raw))
		raw = raw[8:]
	}
}

// FuzzImport holds that an import takes exactly what Validate takes, says of it what the producer said, and gives it back once.
func FuzzImport(f *testing.F) {
	le := func(values ...int64) (raw []byte) {
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
		}
		return raw
	}
	f.Add(uint8(0), uint32(1), uint64(4096), int32(1), int32(0), int32(2), uint8(2), uint8(32), uint16(1), uint64(0), uint64(0), le(2, 3), le(3, 1))
	f.Add(uint8(1), uint32(1), uint64(4096), int32(1), int32(0), int32(1), uint8(17), uint8(4), uint16(2), uint64(0), uint64(0), le(7), le())
	f.Add(uint8(2), uint32(2), uint64(1), int32(0), int32(0), int32(-1), uint8(0), uint8(0), uint16(0), uint64(0), uint64(0), le(), le())
	f.Add(uint8(4), uint32(1), uint64(math.MaxUint64), int32(8), int32(1), int32(9), uint8(99), uint8(8), uint16(9), uint64(1<<62), uint64(5),
		le(1<<31, 1<<31, 1, 1, 1, 1, 1, 1, 1), le(-1<<62, 0))
	f.Add(uint8(0), uint32(1), uint64(0), int32(1), int32(0), int32(3), uint8(2), uint8(64), uint16(1), uint64(8), uint64(1), le(0, 1<<40, 1<<20), le())
	f.Fuzz(func(t *testing.T, how uint8, major uint32, data uint64, typ, id, ndim int32, code, bits uint8, lanes uint16, offset, flags uint64, shape, strides []byte) {
		before := Ledger()
		fillDims(hostileDims[:dlpack.MaxNDim], shape)
		fillDims(hostileDims[dlpack.MaxNDim:], strides)
		x := dlpack.Tensor{Data: uintptr(data), Device: dlpack.Device{Type: dlpack.DeviceType(typ), ID: id}, NDim: ndim,
			DType: dlpack.DataType{Code: dlpack.TypeCode(code), Bits: bits, Lanes: lanes}, Shape: addressOf(&hostileDims[0]), ByteOffset: offset}
		if how&2 == 0 {
			x.Strides = addressOf(&hostileDims[dlpack.MaxNDim])
		}
		// A tensor of ours with another description in it, so that a deleter that runs twice, or not at all, shows in the ledger.
		owner := must[*Local](t)(Empty(dlpack.DTypeFloat32, 4))
		var imported *Foreign
		var err error
		want := dlpack.Validate(&x, dlpack.Flags(flags))
		if how&1 != 0 {
			flags, want = 0, dlpack.Validate(&x, 0)
			m := must[*dlpack.ManagedTensor](t)(owner.ExportLegacy())
			m.Tensor = x
			owner.Release()
			imported, err = ImportLegacy(m)
		} else {
			m := must[*dlpack.ManagedTensorVersioned](t)(owner.Export())
			m.Tensor, m.Flags, m.Version.Major = x, dlpack.Flags(flags), major
			if major != dlpack.VersionMajor {
				m.Tensor.Shape, want = 8, dlpack.ErrVersion // not to be read
			}
			owner.Release()
			imported, err = Import(m)
		}
		if dlpack.KindOf(err) != dlpack.KindOf(want) {
			t.Fatalf("Import says %v, Validate says %v", err, want)
		}
		if err == nil {
			used(t, imported, &x, dlpack.Flags(flags), how)
			imported.Release()
		}
		if after := Ledger(); after != before {
			t.Fatalf("ledger, got %+v, want %+v", after, before)
		}
	})
}

// used holds what a taken tensor has to say, and that it can be passed on.
func used(t *testing.T, f *Foreign, x *dlpack.Tensor, flags dlpack.Flags, how uint8) {
	shape := x.ShapeUnchecked()
	if !slices.Equal(f.Shape(), slices.Clone(shape)) || !slices.Equal(f.Strides(), x.StridesOrCompact()) || f.DType() != x.DType || f.Device() != x.Device || f.Flags() != flags {
		t.Fatalf("got %v %v %v %v %v of %+v", f.Shape(), f.Strides(), f.DType(), f.Device(), f.Flags(), x)
	}
	if n, err := dlpack.NumElements(shape); err != nil || f.Len() != n {
		t.Fatalf("%d elements, want %d", f.Len(), n)
	}
	if f.String() == "" {
		t.Fatal("a tensor without a text")
	}
	again := must[*Foreign](t)(f.Retain())
	if how&4 != 0 {
		m, err := f.ExportLegacy()
		if err != nil && !errors.Is(err, dlpack.ErrReadOnly) && !errors.Is(err, dlpack.ErrDType) {
			t.Fatal(err)
		}
		DeleteLegacy(m)
	}
	m := must[*dlpack.ManagedTensorVersioned](t)(again.Export())
	again.Release()
	if err := dlpack.ValidateVersioned(m); err != nil {
		t.Fatalf("an export of what was taken is refused: %v", err)
	}
	home := must[*Foreign](t)(Import(m))
	if !slices.Equal(home.Strides(), f.Strides()) {
		t.Fatalf("strides, got %v, want %v", home.Strides(), f.Strides())
	}
	home.Release()
}
