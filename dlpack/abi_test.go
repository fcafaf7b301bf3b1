package dlpack_test

import (
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// The layout on 64-bit platforms, frozen; internal/abi compares it with a real dlpack.h.
func TestLayoutIsFrozen(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the frozen numbers are those of 64-bit platforms")
	}
	var (
		x dlpack.Tensor
		m dlpack.ManagedTensor
		v dlpack.ManagedTensorVersioned
		a dlpack.ExchangeAPI
	)
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"Version", unsafe.Sizeof(dlpack.Version{}), 8},
		{"Device", unsafe.Sizeof(dlpack.Device{}), 8},
		{"DataType", unsafe.Sizeof(dlpack.DataType{}), 4},
		{"DataType align", unsafe.Alignof(dlpack.DataType{}), 2},
		{"Tensor", unsafe.Sizeof(x), 48},
		{"Tensor.Data", unsafe.Offsetof(x.Data), 0},
		{"Tensor.Device", unsafe.Offsetof(x.Device), 8},
		{"Tensor.NDim", unsafe.Offsetof(x.NDim), 16},
		{"Tensor.DType", unsafe.Offsetof(x.DType), 20},
		{"Tensor.Shape", unsafe.Offsetof(x.Shape), 24},
		{"Tensor.Strides", unsafe.Offsetof(x.Strides), 32},
		{"Tensor.ByteOffset", unsafe.Offsetof(x.ByteOffset), 40},
		{"ManagedTensor", unsafe.Sizeof(m), 64},
		{"ManagedTensor.ManagerCtx", unsafe.Offsetof(m.ManagerCtx), 48},
		{"ManagedTensor.Deleter", unsafe.Offsetof(m.Deleter), 56},
		{"ManagedTensorVersioned", unsafe.Sizeof(v), 80},
		{"ManagedTensorVersioned.ManagerCtx", unsafe.Offsetof(v.ManagerCtx), 8},
		{"ManagedTensorVersioned.Deleter", unsafe.Offsetof(v.Deleter), 16},
		{"ManagedTensorVersioned.Flags", unsafe.Offsetof(v.Flags), 24},
		{"ManagedTensorVersioned.Tensor", unsafe.Offsetof(v.Tensor), 32},
		{"ExchangeHeader", unsafe.Sizeof(dlpack.ExchangeHeader{}), 16},
		{"ExchangeAPI", unsafe.Sizeof(a), 56},
		{"ExchangeAPI.ManagedTensorAllocator", unsafe.Offsetof(a.ManagedTensorAllocator), 16},
		{"ExchangeAPI.CurrentWorkStream", unsafe.Offsetof(a.CurrentWorkStream), 48},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestVersionsCompare(t *testing.T) {
	v := func(major, minor uint32) dlpack.Version { return dlpack.Version{Major: major, Minor: minor} }
	for _, c := range []struct {
		a, b dlpack.Version
		want int
	}{
		{v(1, 3), v(1, 3), 0}, {v(1, 0), v(1, 3), -1}, {v(2, 0), v(1, 9), 1}, {v(0, 9), v(1, 0), -1}, {v(1, 1<<31), v(1, 0), 1},
	} {
		if got := c.a.Compare(c.b); got != c.want {
			t.Errorf("%v to %v: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if !v(1, 99).Compatible() || v(2, 0).Compatible() || v(0, 8).Compatible() {
		t.Error("Compatible: only major version 1 is")
	}
	if got := dlpack.CurrentVersion.String(); got != "1.3" {
		t.Errorf("CurrentVersion: got %s, want 1.3", got)
	}
}

func TestFlagsPrint(t *testing.T) {
	for f, want := range map[dlpack.Flags]string{
		0: "0x0", dlpack.FlagReadOnly: "read_only", dlpack.FlagReadOnly | dlpack.FlagSubbytePadded: "read_only|subbyte_padded",
		dlpack.FlagIsCopied | 1<<8: "is_copied|0x100",
	} {
		if got := f.String(); got != want {
			t.Errorf("%#x: got %s, want %s", uint64(f), got, want)
		}
	}
	f := dlpack.FlagReadOnly | dlpack.FlagSubbytePadded
	if !f.ReadOnly() || f.Copied() || !f.SubbytePadded() {
		t.Errorf("%v: the flags are mixed up", f)
	}
}
