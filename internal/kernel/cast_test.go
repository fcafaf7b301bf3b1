package kernel

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

var castable = []dlpack.DataType{
	dlpack.DTypeBool, dlpack.DTypeInt8, dlpack.DTypeInt16, dlpack.DTypeInt32, dlpack.DTypeInt64, dlpack.DTypeUint8, dlpack.DTypeUint16, dlpack.DTypeUint32,
	dlpack.DTypeUint64, dlpack.DTypeFloat16, dlpack.DTypeBFloat16, dlpack.DTypeFloat32, dlpack.DTypeFloat64, dlpack.DTypeComplex32, dlpack.DTypeComplex64,
	dlpack.DTypeComplex128, dlpack.DTypeFloat8E3M4, dlpack.DTypeFloat8E4M3, dlpack.DTypeFloat8E4M3B11FNUZ, dlpack.DTypeFloat8E4M3FN,
	dlpack.DTypeFloat8E4M3FNUZ, dlpack.DTypeFloat8E5M2, dlpack.DTypeFloat8E5M2FNUZ, dlpack.DTypeFloat8E8M0FNU,
}

// castBytes casts n compact elements.
func castBytes(t *testing.T, to, from dlpack.DataType, src []byte, n int) []byte {
	t.Helper()
	size, _ := to.ItemSize(0)
	dst := make([]byte, int64(n)*size)
	extent := int64(n)
	s := dlpack.Tensor{Data: uintptr(unsafe.Pointer(unsafe.SliceData(src))), Device: dlpack.CPU, NDim: 1, Shape: uintptr(unsafe.Pointer(&extent)), DType: from}
	d := s
	d.Data, d.DType = uintptr(unsafe.Pointer(unsafe.SliceData(dst))), to
	if err := Copy(&d, &s, 1); err != nil {
		t.Fatalf("%v to %v: %v", from, to, err)
	}
	runtime.KeepAlive(src)
	runtime.KeepAlive(&extent)
	return dst
}

func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

func valuesOf[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// TestSmallNumbersSurviveEveryPair sends numbers that every type holds through all pairs.
func TestSmallNumbersSurviveEveryPair(t *testing.T) {
	for _, from := range castable {
		for _, to := range castable {
			want := []float64{1, 2, 4}
			if from == dlpack.DTypeBool || to == dlpack.DTypeBool {
				want = []float64{1, 1, 1}
			}
			src := castBytes(t, from, dlpack.DTypeFloat64, bytesOf([]float64{1, 2, 4}), 3)
			got := valuesOf[float64](castBytes(t, dlpack.DTypeFloat64, to, castBytes(t, to, from, src, 3), 3))
			if got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
				t.Errorf("%v to %v: %v", from, to, got)
			}
		}
	}
}

func TestIntegersKeepTheirLowBits(t *testing.T) {
	got := valuesOf[int8](castBytes(t, dlpack.DTypeInt8, dlpack.DTypeInt32, bytesOf([]int32{300, -129, 127, -1}), 4))
	if fmt.Sprint(got) != "[44 127 127 -1]" {
		t.Error(got)
	}
	u := valuesOf[uint64](castBytes(t, dlpack.DTypeUint64, dlpack.DTypeInt8, bytesOf([]int8{-1, 5}), 2))
	if u[0] != math.MaxUint64 || u[1] != 5 {
		t.Error(u)
	}
	f := valuesOf[float32](castBytes(t, dlpack.DTypeFloat32, dlpack.DTypeUint64, bytesOf([]uint64{math.MaxUint64, 1 << 63}), 2))
	if f[0] != 0x1p64 || f[1] != 0x1p63 {
		t.Error(f)
	}
}

func TestFloatsAreTruncated(t *testing.T) {
	in := []float64{2.9, -2.9, 300, math.NaN(), math.Inf(1), 1e300}
	got := valuesOf[int64](castBytes(t, dlpack.DTypeInt64, dlpack.DTypeFloat64, bytesOf(in), len(in)))
	if fmt.Sprint(got) != fmt.Sprint([]int64{2, -2, 300, math.MinInt64, math.MinInt64, math.MinInt64}) {
		t.Error(got)
	}
	u := valuesOf[uint64](castBytes(t, dlpack.DTypeUint64, dlpack.DTypeFloat64, bytesOf([]float64{0x1p63 + 4096, 0x1p64 - 2048, 0x1p64, -1}), 4))
	if u[0] != 1<<63+4096 || u[1] != math.MaxUint64-2047 || u[2] != 1<<63 || u[3] != math.MaxUint64 {
		t.Error(u)
	}
	b := valuesOf[bool](castBytes(t, dlpack.DTypeBool, dlpack.DTypeFloat64, bytesOf([]float64{0.1, math.Copysign(0, -1), math.NaN()}), 3))
	if !b[0] || b[1] || !b[2] {
		t.Error(b)
	}
}

func TestComplexNumbers(t *testing.T) {
	in := bytesOf([]complex128{3.5 - 2i, 2i, 0})
	if f := valuesOf[float32](castBytes(t, dlpack.DTypeFloat32, dlpack.DTypeComplex128, in, 3)); f[0] != 3.5 || f[1] != 0 {
		t.Error(f)
	}
	if b := valuesOf[bool](castBytes(t, dlpack.DTypeBool, dlpack.DTypeComplex128, in, 3)); !b[0] || !b[1] || b[2] {
		t.Error(b)
	}
	half := castBytes(t, dlpack.DTypeComplex32, dlpack.DTypeComplex128, in, 3)
	if c := valuesOf[complex64](castBytes(t, dlpack.DTypeComplex64, dlpack.DTypeComplex32, half, 3)); c[0] != 3.5-2i || c[1] != 2i {
		t.Error(c)
	}
	if c := valuesOf[complex128](castBytes(t, dlpack.DTypeComplex128, dlpack.DTypeInt64, bytesOf([]int64{1<<53 + 1, -7}), 2)); c[0] != 1<<53 || c[1] != -7 {
		t.Error(c)
	}
}

func TestBoolBytesOtherThanOneAreTrue(t *testing.T) {
	if f := valuesOf[float32](castBytes(t, dlpack.DTypeFloat32, dlpack.DTypeBool, []byte{0, 1, 2, 255}, 4)); fmt.Sprint(f) != "[0 1 1 1]" {
		t.Error(f)
	}
}

// TestNarrowFloatsAreRoundedOnce takes the middle between two neighbours of each narrow type, and the float64 numbers next to it: one that is rounded to a
// float32 first lands on the middle and then goes to the even neighbour, which is wrong on one side.
func TestNarrowFloatsAreRoundedOnce(t *testing.T) {
	for _, d := range castable {
		size, _ := d.ItemSize(0)
		if size > 2 || d.Code < dlpack.CodeFloat || d.Code == dlpack.CodeBool {
			continue
		}
		codes := 1 << (8*size - 1) // those without sign grow with their code
		if d == dlpack.DTypeFloat8E8M0FNU {
			codes = 256
		}
		all := make([]byte, int64(codes)*size)
		for i := range codes {
			all[int64(i)*size] = byte(i)
			if size == 2 {
				all[2*i+1] = byte(i >> 8)
			}
		}
		v := valuesOf[float64](castBytes(t, dlpack.DTypeFloat64, d, all, codes))
		var in, want []float64
		for i := range codes - 1 {
			if math.IsInf(v[i+1], 0) || math.IsNaN(v[i+1]) {
				break
			}
			middle := v[i] + (v[i+1]-v[i])/2
			even := v[i+i%2]
			if d == dlpack.DTypeFloat8E8M0FNU {
				even = v[i+1]
			}
			in = append(in, math.Nextafter(middle, 0), middle, math.Nextafter(middle, math.Inf(1)))
			want = append(want, v[i], even, v[i+1])
		}
		if len(in) < 90 {
			t.Fatalf("%v: only %d numbers", d, len(in))
		}
		narrow := castBytes(t, d, dlpack.DTypeFloat64, bytesOf(in), len(in))
		got := valuesOf[float64](castBytes(t, dlpack.DTypeFloat64, d, narrow, len(in)))
		for i := range in {
			if got[i] != want[i] {
				t.Fatalf("%v: %x became %x, want %x", d, in[i], got[i], want[i])
			}
		}
	}
}

func TestLargeIntegersAreRoundedOnce(t *testing.T) {
	// 2^40 + 2^32 is the middle between two bfloat16 numbers; the 1 behind it is lost to a float32.
	in := bytesOf([]int64{1<<40 + 1<<32, 1<<40 + 1<<32 + 1, -(1<<40 + 1<<32 + 1), 1<<62 + 1<<54 + 1})
	got := valuesOf[float32](castBytes(t, dlpack.DTypeFloat32, dlpack.DTypeBFloat16, castBytes(t, dlpack.DTypeBFloat16, dlpack.DTypeInt64, in, 4), 4))
	if got[0] != 0x1p40 || got[1] != 0x1.02p40 || got[2] != -0x1.02p40 || got[3] != 0x1.02p62 {
		t.Errorf("%x", got)
	}
}

// TestAgainstNumPy runs where DLFERRY_PYTHON names a Python that has numpy and ml_dtypes.
func TestAgainstNumPy(t *testing.T) {
	python := os.Getenv("DLFERRY_PYTHON")
	if python == "" {
		t.Skip("DLFERRY_PYTHON is not set: no Python with numpy and ml_dtypes to compare with")
	}
	path := filepath.Join(t.TempDir(), "casts")
	if out, err := exec.Command(python, "testdata/casts.py", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	} else if len(out) > 0 {
		t.Logf("%s", out)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	pairs := 0
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			break
		}
		var source, target string
		var n int
		if _, err := fmt.Sscan(line, &source, &target, &n); err != nil {
			t.Fatal(line, err)
		}
		comparePair(t, in, source, target, n)
		pairs++
	}
	if pairs < 400 {
		t.Errorf("only %d pairs", pairs)
	}
}

func comparePair(t *testing.T, in io.Reader, source, target string, n int) {
	from, err1 := dlpack.ParseDataType(source)
	to, err2 := dlpack.ParseDataType(target)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	fromSize, _ := from.ItemSize(0)
	toSize, _ := to.ItemSize(0)
	src, want := make([]byte, int64(n)*fromSize), make([]byte, int64(n)*toSize)
	if _, err := io.ReadFull(in, src); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(in, want); err != nil {
		t.Fatal(err)
	}
	got := castBytes(t, to, from, src, n)
	bad := 0
	for i := range n {
		g, w := got[int64(i)*toSize:int64(i+1)*toSize], want[int64(i)*toSize:int64(i+1)*toSize]
		if string(g) == string(w) || bothNaN(t, to, g, w) {
			continue
		}
		if bad++; bad <= 3 {
			t.Errorf("%s to %s: %x became %x, want %x", source, target, src[int64(i)*fromSize:int64(i+1)*fromSize], g, w)
		}
	}
	if bad > 3 {
		t.Errorf("%s to %s: %d of %d differ", source, target, bad, n)
	}
}

// bothNaN compares the parts: of a NaN only that it is one matters.
func bothNaN(t *testing.T, d dlpack.DataType, g, w []byte) bool {
	if d.Code < dlpack.CodeFloat || d == dlpack.DTypeBool {
		return false
	}
	a := valuesOf[complex128](castBytes(t, dlpack.DTypeComplex128, d, g, 1))[0]
	b := valuesOf[complex128](castBytes(t, dlpack.DTypeComplex128, d, w, 1))[0]
	same := func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	return same(real(a), real(b)) && same(imag(a), imag(b))
}
