package dlpack_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/dlpack/dlpacktest"
)

func TestValidateKeepsTheConformanceKit(t *testing.T) {
	dlpacktest.Suite(t, func(x *dlpack.Tensor, flags dlpack.Flags) error { return dlpack.Validate(x, flags) })
}

func TestValidateVersionedKeepsTheConformanceKit(t *testing.T) {
	dlpacktest.SuiteVersioned(t, func(m *dlpack.ManagedTensorVersioned) error { return dlpack.ValidateVersioned(m) })
}

func TestAnyViewKeepsTheConformanceKitOnTheHost(t *testing.T) {
	read := 0
	for _, c := range dlpacktest.Cases() {
		v, err := dlpack.AnyViewOf(c.Tensor(), c.Flags)
		switch {
		case c.Tensor().Device.IsHost() && c.Want == dlpack.KindOK:
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			if data, err := v.Bytes(); err == nil && c.HasMemory() {
				read += len(bytes.Trim(data, "\x00")) + len(data)
			}
		case err == nil:
			t.Errorf("%s: a view was made", c.Name)
		}
	}
	if read < 1000 {
		t.Errorf("bytes read, got %d, want those of many cases", read)
	}
}

// floats is a tensor over Go memory that the test keeps.
func floats(data []float32, shape, strides []int64) *dlpack.Tensor {
	t := &dlpack.Tensor{Data: uintptr(unsafe.Pointer(unsafe.SliceData(data))), Device: dlpack.CPU, NDim: int32(len(shape)), DType: dlpack.DTypeFloat32,
		Shape: uintptr(unsafe.Pointer(unsafe.SliceData(shape))), Strides: uintptr(unsafe.Pointer(unsafe.SliceData(strides)))}
	kept = append(kept, data, shape, strides)
	return t
}

// kept keeps what the tensors of the tests point to.
var kept []any

func TestMessagesNameWhatCameAndWhatIsWanted(t *testing.T) {
	mk := func(change func(*dlpack.Tensor)) *dlpack.Tensor {
		x := floats(make([]float32, 6), []int64{2, 3}, []int64{3, 1})
		change(x)
		return x
	}
	negative := floats(nil, []int64{2, -3}, nil)
	for want, x := range map[string]*dlpack.Tensor{
		"Validate: shape of axis 1, got -3, want 0 or more":                                         negative,
		"Validate: ndim, got 65, want 0 to 64":                                                      mk(func(x *dlpack.Tensor) { x.NDim = 65 }),
		"Validate: shape, got NULL with ndim 2, want an address":                                    mk(func(x *dlpack.Tensor) { x.Shape = 0 }),
		"Validate: data, got NULL with 6 elements, want an address":                                 mk(func(x *dlpack.Tensor) { x.Data = 0 }),
		"Validate: dtype, got float32x0 (code 2, bits 32, lanes 0), want at least 1 lane":           mk(func(x *dlpack.Tensor) { x.DType.Lanes = 0 }),
		"Validate: device type, got 0, want 1 or more":                                              mk(func(x *dlpack.Tensor) { x.Device.Type = 0 }),
		"Validate: device number, got cuda:-1, want 0 or more":                                      mk(func(x *dlpack.Tensor) { x.Device = dlpack.Device{Type: 2, ID: -1} }),
		"Validate: byte offset, got 9223372036854775808, want at most 9223372036854775807":          mk(func(x *dlpack.Tensor) { x.ByteOffset = 1 << 63 }),
		"Validate: tensor, got NULL, want an address":                                               nil,
		"Validate: byte offset, got 16 after data 0xfffffffffffffff8, want an address of 64 bits":   mk(func(x *dlpack.Tensor) { x.Data, x.ByteOffset = math.MaxUint64-7, 16 }),
		"Validate: shape of axis 1, got 4611686018427387904 times the 4611686018427387904 of the":   floats(nil, []int64{1 << 62, 1 << 62}, nil),
		"Validate: stride of axis 0, got 9223372036854775807 for an extent of 2, want byte offsets": floats(nil, []int64{2}, []int64{math.MaxInt64}),
	} {
		err := dlpack.Validate(x, 0)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	err := dlpack.ValidateVersioned(&dlpack.ManagedTensorVersioned{Version: dlpack.Version{Major: 2}})
	if want := "ValidateVersioned: version, got 2.0, want 1.x; ask the producer for max_version=(1, 3)"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if err := dlpack.ValidateVersioned(nil); !errors.Is(err, dlpack.ErrNull) {
		t.Errorf("nil: got %v, want ErrNull", err)
	}
}

func TestRules(t *testing.T) {
	data := make([]float32, 12)
	compact := floats(data, []int64{2, 3}, []int64{3, 1})
	cuda := *compact
	cuda.Device = dlpack.Device{Type: dlpack.DeviceCUDA}
	odd := *compact
	odd.ByteOffset = 2
	oddEmpty := *floats(data, []int64{0}, nil)
	oddEmpty.ByteOffset = 1
	transposed := floats(data, []int64{3, 2}, []int64{1, 3})
	opaque := *compact
	opaque.DType = dlpack.DataType{Code: 99, Bits: 8, Lanes: 1}
	fp4 := *compact
	fp4.DType = dlpack.DTypeFloat4E2M1FNx2
	for _, c := range []struct {
		name  string
		x     *dlpack.Tensor
		flags dlpack.Flags
		rule  dlpack.Rule
		want  error
	}{
		{"host", compact, 0, dlpack.RequireHost, nil},
		{"host of cuda", &cuda, 0, dlpack.RequireHost, dlpack.ErrDevice},
		{"writable", compact, dlpack.FlagIsCopied, dlpack.RequireWritable, nil},
		{"writable of read-only", compact, dlpack.FlagReadOnly, dlpack.RequireWritable, dlpack.ErrReadOnly},
		{"aligned", compact, 0, dlpack.RequireAligned, nil},
		{"aligned of odd", &odd, 0, dlpack.RequireAligned, dlpack.ErrAlignment},
		{"aligned without elements", &oddEmpty, 0, dlpack.RequireAligned, nil},
		{"contiguous", compact, 0, dlpack.RequireContiguous, nil},
		{"contiguous of transposed", transposed, 0, dlpack.RequireContiguous, dlpack.ErrLayout},
		{"values", compact, 0, dlpack.RequireValues, nil},
		{"values of opaque", &opaque, 0, dlpack.RequireValues, dlpack.ErrDType},
		{"dtype", compact, 0, dlpack.RequireDType(dlpack.DTypeFloat32), nil},
		{"dtype of another", compact, 0, dlpack.RequireDType(dlpack.DTypeInt32), dlpack.ErrDType},
		{"dtype of padded", &fp4, dlpack.FlagSubbytePadded, dlpack.RequireDType(dlpack.DTypeFloat4E2M1FNx2), dlpack.ErrDType},
		{"dtype of packed", &fp4, 0, dlpack.RequireDType(dlpack.DTypeFloat4E2M1FNx2), nil},
		{"shape", compact, 0, dlpack.RequireShape(2, -1), nil},
		{"shape of another extent", compact, 0, dlpack.RequireShape(-1, 4), dlpack.ErrShape},
		{"shape of more axes", compact, 0, dlpack.RequireShape(2, 3, 1), dlpack.ErrShape},
	} {
		if err := dlpack.Validate(c.x, c.flags, c.rule); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	// Validity comes first: the rules may rely on it.
	bad := *compact
	bad.NDim = -1
	err := dlpack.Validate(&bad, 0, func(*dlpack.Tensor, dlpack.Flags) error { t.Error("a rule ran on an invalid tensor"); return nil })
	if !errors.Is(err, dlpack.ErrShape) {
		t.Errorf("got %v, want ErrShape", err)
	}
	runtime.KeepAlive(data)
}

func TestStridesOrCompact(t *testing.T) {
	shape := []int64{2, 3}
	x := floats(make([]float32, 6), shape, nil)
	got := x.StridesOrCompact()
	if len(got) != 2 || got[0] != 3 || got[1] != 1 {
		t.Errorf("without strides: got %v, want [3 1]", got)
	}
	x = floats(make([]float32, 6), shape, []int64{1, 2})
	got = x.StridesOrCompact()
	got[0] = 77
	if s := x.StridesUnchecked(); s[0] != 1 || s[1] != 2 {
		t.Errorf("the producer's strides were handed out to write: %v", s)
	}
}

func TestValidateDoesNotAllocate(t *testing.T) {
	x := floats(make([]float32, 6), []int64{2, 3}, []int64{3, 1})
	if n := testing.AllocsPerRun(100, func() {
		if err := dlpack.Validate(x, 0, dlpack.RequireHost, dlpack.RequireAligned); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
