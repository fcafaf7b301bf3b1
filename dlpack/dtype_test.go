package dlpack_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/dlpack/dlpacktest"
)

func TestDataTypeNames(t *testing.T) {
	for name, d := range map[string]dlpack.DataType{
		"float32": dlpack.DTypeFloat32, "bfloat16": dlpack.DTypeBFloat16, "bool": dlpack.DTypeBool, "complex64": dlpack.DTypeComplex64,
		"float8_e4m3fn": dlpack.DTypeFloat8E4M3FN, "float8_e4m3b11fnuz": dlpack.DTypeFloat8E4M3B11FNUZ, "uint8": dlpack.DTypeUint8,
		"float4_e2m1fn_x2": dlpack.DTypeFloat4E2M1FNx2, "float4_e2m1fn": {Code: 17, Bits: 4, Lanes: 1}, "float6_e3m2fn": {Code: 16, Bits: 6, Lanes: 1},
		"float32x4": {Code: 2, Bits: 32, Lanes: 4}, "complex64x2": {Code: 5, Bits: 64, Lanes: 2}, "float8": {Code: 2, Bits: 8, Lanes: 1},
		"code99_8": {Code: 99, Bits: 8, Lanes: 1}, "code99_8x3": {Code: 99, Bits: 8, Lanes: 3}, "code6_1": {Code: 6, Bits: 1, Lanes: 1},
		"code10_16": {Code: 10, Bits: 16, Lanes: 1}, "opaque_handle64": {Code: 3, Bits: 64, Lanes: 1}, "bcomplex32": {Code: 18, Bits: 32, Lanes: 1},
		"int0x0": {}, "bool_x4": {Code: 6, Bits: 8, Lanes: 4},
	} {
		if got := d.String(); got != name {
			t.Errorf("%+v: prints %q, want %q", d, got, name)
		}
		if got, err := dlpack.ParseDataType(name); got != d || err != nil {
			t.Errorf("%q: parses as %+v (%v), want %+v", name, got, err, d)
		}
	}
}

func TestEveryDataTypeNameIsReadBack(t *testing.T) {
	seen := map[string]bool{}
	for code := range 256 {
		for bits := range 256 {
			for _, lanes := range []uint16{0, 1, 2, 3, 255, 65535} {
				d := dlpack.DataType{Code: dlpack.TypeCode(code), Bits: uint8(bits), Lanes: lanes}
				name := d.String()
				if seen[name] {
					t.Fatalf("%q is the name of two types", name)
				}
				seen[name] = true
				if got, err := dlpack.ParseDataType(name); got != d || err != nil {
					t.Fatalf("%+v prints %q, which parses as %+v (%v)", d, name, got, err)
				}
			}
		}
	}
}

func TestParseDataTypeRefusesOtherTexts(t *testing.T) {
	for _, s := range []string{"", "float", "flaot32", "float256", "Float32", " float32", "float32 ", "float32x", "float32x01", "float32x1", "float32x65536",
		"float032", "float-32", "float+32", "code2_32", "code256_8", "code99", "code99_", "code_8", "code099_8", "bool8", "bool_x1", "bool_x", "x4", "32", "float8_e4m3fn_",
		"float8_e4m3fnx2", "float4_e2m1fn_x02"} {
		d, err := dlpack.ParseDataType(s)
		if !errors.Is(err, dlpack.ErrDType) || d != (dlpack.DataType{}) {
			t.Errorf("%q: got %+v (%v), want ErrDType", s, d, err)
			continue
		}
		if !strings.Contains(err.Error(), `got "`+s+`"`) || !strings.Contains(err.Error(), "float32") {
			t.Errorf("%q: the message %q says not what came and what is wanted", s, err)
		}
	}
}

// The table of what has values, is opaque or is refused, written down a second time.
func TestClassesOfDataTypes(t *testing.T) {
	known := map[[3]int]int64{{6, 8, 1}: 1, {4, 16, 1}: 2, {17, 4, 2}: 1}
	for _, bits := range []int{8, 16, 32, 64} {
		known[[3]int{0, bits, 1}], known[[3]int{1, bits, 1}] = int64(bits/8), int64(bits/8)
		if bits > 8 {
			known[[3]int{2, bits, 1}], known[[3]int{5, 2 * bits, 1}] = int64(bits/8), int64(bits/4)
		}
	}
	for code := 7; code <= 14; code++ {
		known[[3]int{code, 8, 1}] = 1
	}
	for code := range 256 {
		for bits := range 256 {
			for _, lanes := range []int{0, 1, 2, 3, 8, 65535} {
				d := dlpack.DataType{Code: dlpack.TypeCode(code), Bits: uint8(bits), Lanes: uint16(lanes)}
				wantSize, wantKnown := known[[3]int{code, bits, lanes}]
				if !wantKnown && bits*lanes%8 == 0 {
					wantSize = int64(bits * lanes / 8)
				}
				size, err := d.ItemSize(0)
				if wantSize == 0 && !errors.Is(err, dlpack.ErrDType) || wantSize != 0 && err != nil || size != wantSize {
					t.Errorf("%v: size, got %d (%v), want %d", d, size, err, wantSize)
				}
				if d.Known() != wantKnown || d.HasValues(0) != wantKnown || d.Opaque(0) != (wantSize != 0 && !wantKnown) {
					t.Errorf("%v: known %t, has values %t, opaque %t; want known %t, size %d", d, d.Known(), d.HasValues(0), d.Opaque(0), wantKnown, wantSize)
				}
			}
		}
	}
	if got := len(dlpacktest.Types()); got != len(known) {
		t.Errorf("types with values, got %d, want %d", got, len(known))
	}
}

func TestPaddedValuesTakeAByteEach(t *testing.T) {
	for _, c := range []struct {
		d      dlpack.DataType
		size   int64
		values bool
	}{
		{dlpack.DataType{Code: 17, Bits: 4, Lanes: 1}, 1, false},
		{dlpack.DTypeFloat4E2M1FNx2, 2, false},
		{dlpack.DataType{Code: 6, Bits: 1, Lanes: 3}, 3, false},
		{dlpack.DTypeFloat32, 4, true},
	} {
		size, err := c.d.ItemSize(dlpack.FlagSubbytePadded)
		if size != c.size || err != nil || c.d.HasValues(dlpack.FlagSubbytePadded) != c.values || c.d.Opaque(dlpack.FlagSubbytePadded) == c.values {
			t.Errorf("%v: size, got %d (%v), want %d, values %t", c.d, size, err, c.size, c.values)
		}
	}
}

func TestAlignments(t *testing.T) {
	for d, want := range map[dlpack.DataType]int64{
		dlpack.DTypeBool: 1, dlpack.DTypeInt16: 2, dlpack.DTypeFloat32: 4, dlpack.DTypeFloat64: 8, dlpack.DTypeComplex32: 2, dlpack.DTypeComplex64: 4,
		dlpack.DTypeComplex128: 8, dlpack.DTypeFloat4E2M1FNx2: 1, {Code: 2, Bits: 32, Lanes: 4}: 4, {Code: 2, Bits: 128, Lanes: 1}: 16,
		{Code: 0, Bits: 24, Lanes: 1}: 1, {Code: 0, Bits: 48, Lanes: 1}: 2, {}: 1, {Code: 99, Bits: 1, Lanes: 8}: 1, {Code: 99, Bits: 192, Lanes: 1}: 8,
	} {
		if got := d.Align(); got != want {
			t.Errorf("%v: got %d, want %d", d, got, want)
		}
	}
}

func TestDeviceNames(t *testing.T) {
	for name, d := range map[string]dlpack.Device{
		"cpu": dlpack.CPU, "cuda:0": {Type: 2}, "cuda:3": {Type: 2, ID: 3}, "cuda_host": {Type: 3}, "cuda_managed:0": {Type: 13}, "cpu:1": {Type: 1, ID: 1},
		"device99:1": {Type: 99, ID: 1}, "device5:0": {Type: 5}, "tpu:2147483647": {Type: 19, ID: 2147483647}, "device2147483647:0": {Type: 2147483647},
	} {
		if got := d.String(); got != name {
			t.Errorf("%+v: prints %q, want %q", d, got, name)
		}
		if got, err := dlpack.ParseDevice(name); got != d || err != nil {
			t.Errorf("%q: parses as %+v (%v), want %+v", name, got, err, d)
		}
	}
	for name, d := range map[string]dlpack.Device{"cuda": {Type: 2}, "cpu:0": dlpack.CPU, "device2:1": {Type: 2, ID: 1}, "device99": {Type: 99}} {
		if got, err := dlpack.ParseDevice(name); got != d || err != nil {
			t.Errorf("%q: parses as %+v (%v), want %+v", name, got, err, d)
		}
	}
	for _, s := range []string{"", ":", "cuda:", "cuda:-1", "cuda:x", "cuda:01", "cuda:2147483648", "CUDA", "gpu", "device", "device0", "device-1", "device99:", "cuda:0:0", "cuda 0"} {
		if d, err := dlpack.ParseDevice(s); !errors.Is(err, dlpack.ErrDevice) || d != (dlpack.Device{}) {
			t.Errorf("%q: got %+v (%v), want ErrDevice", s, d, err)
		}
	}
	if got := dlpack.DeviceType(-5).String(); got != "device-5" {
		t.Errorf("type -5: got %q", got)
	}
}

func TestDeviceClasses(t *testing.T) {
	for typ := dlpack.DeviceType(-1); typ < 30; typ++ {
		host := typ == 1 || typ == 3 || typ == 11
		pointers := host || typ == 2 || typ == 10 || typ == 13
		if typ.IsHost() != host || typ.HasPointers() != pointers {
			t.Errorf("%v: host %t, pointers %t; want %t, %t", typ, typ.IsHost(), typ.HasPointers(), host, pointers)
		}
	}
}
