package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// array is a tensor over a byte slice, with room on both sides that must stay as it is.
type array struct {
	t              dlpack.Tensor
	mem            []byte
	first          int // the first element, in mem
	shape, strides []int64
}

const margin = 64

func newArray(d dlpack.DataType, shape, strides []int64, r *rand.Rand) *array {
	item, err := d.ItemSize(0)
	if err != nil {
		panic(err)
	}
	low, high, err := dlpack.ByteSpan(shape, strides, item)
	if err != nil {
		panic(err)
	}
	a := &array{mem: make([]byte, high-low+2*margin), first: int(margin - low), shape: shape, strides: strides}
	fill(a.mem, r)
	a.t = dlpack.Tensor{Data: uintptr(unsafe.Pointer(&a.mem[0])), ByteOffset: uint64(a.first), Device: dlpack.CPU, DType: d, NDim: int32(len(shape))}
	if len(shape) > 0 {
		a.t.Shape = uintptr(unsafe.Pointer(&shape[0]))
		if strides != nil {
			a.t.Strides = uintptr(unsafe.Pointer(&strides[0]))
		}
	}
	return a
}

func fill(mem []byte, r *rand.Rand) {
	var word [8]byte
	for i := 0; i < len(mem); i += 8 {
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(mem[i:], word[:])
	}
}

// offsets is where the elements lie in mem, in row-major order.
func (a *array) offsets() []int {
	item, _ := a.t.DType.ItemSize(0)
	strides := a.t.StridesOrCompact()
	out := []int{a.first}
	for k, extent := range a.shape {
		next := make([]int, 0, len(out)*int(extent))
		for _, o := range out {
			for i := range extent {
				next = append(next, o+int(i*strides[k]*item))
			}
		}
		out = next
	}
	return out
}

// randomStrides lays the axes out in any order, with gaps and turned around.
func randomStrides(shape []int64, r *rand.Rand, broadcast bool) []int64 {
	strides := make([]int64, len(shape))
	step := int64(1 + r.IntN(2))
	for _, k := range r.Perm(len(shape)) {
		strides[k] = step
		step = step*max(shape[k], 1) + int64(r.IntN(3))
		if r.IntN(3) == 0 {
			strides[k] = -strides[k]
		}
		if broadcast && r.IntN(4) == 0 {
			strides[k] = 0
		}
	}
	return strides
}

func TestEveryLayoutIsCopiedElementByElement(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dtypes := []dlpack.DataType{dlpack.DTypeUint8, dlpack.DTypeBFloat16, dlpack.DTypeFloat32, dlpack.DTypeInt64, dlpack.DTypeComplex128,
		dlpack.DTypeFloat4E2M1FNx2, {Code: dlpack.CodeFloat, Bits: 32, Lanes: 3}, {Code: 200, Bits: 56, Lanes: 1}, {Code: dlpack.CodeFloat, Bits: 128, Lanes: 2}}
	for i := range 2000 {
		d := dtypes[i%len(dtypes)]
		shape := make([]int64, r.IntN(5))
		for k := range shape {
			shape[k] = int64(r.IntN(6))
			if shape[k] == 0 && r.IntN(3) > 0 {
				shape[k] = 1
			}
		}
		var ds, ss []int64
		if r.IntN(4) > 0 {
			ds = randomStrides(shape, r, false)
		}
		if r.IntN(4) > 0 {
			ss = randomStrides(shape, r, true)
		}
		dst, src := newArray(d, shape, ds, r), newArray(d, shape, ss, r)
		name := fmt.Sprintf("%v %v from %v to %v", d, shape, ss, ds)
		checkCopy(t, name, dst, src, 1+r.IntN(3))
	}
}

// checkCopy compares with what element by element copying does, the bytes between the elements included.
func checkCopy(t *testing.T, name string, dst, src *array, threads int) {
	t.Helper()
	want := bytes.Clone(dst.mem)
	item, _ := dst.t.DType.ItemSize(0)
	from := src.offsets()
	for i, o := range dst.offsets() {
		copy(want[o:o+int(item)], src.mem[from[i]:])
	}
	before := bytes.Clone(src.mem)
	if err := Copy(&dst.t, &src.t, threads); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !bytes.Equal(dst.mem, want) {
		t.Fatalf("%s: wrong bytes", name)
	}
	if &dst.mem[0] != &src.mem[0] && !bytes.Equal(src.mem, before) {
		t.Fatalf("%s: the source changed", name)
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func TestLargeCopiesAreSharedAmongGoroutines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ shape, ds, ss []int64 }{
		{[]int64{1 << 22}, nil, nil},
		{[]int64{1 << 20}, nil, []int64{-1}},
		{[]int64{1100, 1001}, nil, []int64{1, 1100}},
		{[]int64{3, 700, 501}, []int64{1, 3, 2100}, nil},
	} {
		dst, src := newArray(dlpack.DTypeInt32, c.shape, c.ds, r), newArray(dlpack.DTypeInt32, c.shape, c.ss, r)
		if n := workers(int64(len(dst.mem)+len(src.mem)), parallelBytes, 4); n < 4 {
			t.Fatalf("%v: %d goroutines", c.shape, n)
		}
		checkCopy(t, fmt.Sprint(c.shape), dst, src, 4)
	}
}

func TestOverlappingTensorsReadTheSourceFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		shape := []int64{int64(2 + r.IntN(5)), int64(1 + r.IntN(5))}
		dst := newArray(dlpack.DTypeInt16, shape, randomStrides(shape, r, false), r)
		src := *dst
		src.strides = randomStrides(shape, r, true)
		low, high, _ := dlpack.ByteSpan(shape, src.strides, 2)
		room := int64(len(src.mem)) - (high - low)
		if room < 0 {
			continue
		}
		src.first = int(-low + r.Int64N(room/2+1)*2)
		src.t.ByteOffset = uint64(src.first)
		src.t.Strides = uintptr(unsafe.Pointer(&src.strides[0]))
		checkCopy(t, fmt.Sprint(i, shape, src.strides, dst.strides), dst, &src, 2)
	}
}

func TestCastInPlaceAndOverlapping(t *testing.T) {
	mem := []float32{1.5, -2.5, 3, 4}
	n := int64(3)
	src := dlpack.Tensor{Data: uintptr(unsafe.Pointer(&mem[0])), Device: dlpack.CPU, NDim: 1, Shape: uintptr(unsafe.Pointer(&n)), DType: dlpack.DTypeFloat32}
	dst := src
	dst.DType = dlpack.DTypeInt32
	if err := Copy(&dst, &src, 1); err != nil {
		t.Fatal(err)
	}
	ints := unsafe.Slice((*int32)(unsafe.Pointer(&mem[0])), 4)
	if ints[0] != 1 || ints[1] != -2 || ints[2] != 3 {
		t.Fatal(ints)
	}
	// Shifted by one: a loop that wrote first would read its own results.
	shifted := dst
	shifted.ByteOffset = 4
	shifted.DType = dlpack.DTypeFloat32
	if err := Copy(&shifted, &dst, 1); err != nil {
		t.Fatal(err)
	}
	if mem[1] != 1 || mem[2] != -2 || mem[3] != 3 {
		t.Fatal(mem)
	}
	runtime.KeepAlive(&n)
}

func TestSourcesAtOddAddressesAreRead(t *testing.T) {
	mem := make([]byte, 33)
	for i := range 4 {
		binary.LittleEndian.PutUint64(mem[1+8*i:], uint64(i))
	}
	n := int64(4)
	src := dlpack.Tensor{Data: uintptr(unsafe.Pointer(&mem[0])), ByteOffset: 1, Device: dlpack.CPU, NDim: 1, Shape: uintptr(unsafe.Pointer(&n)),
		DType: dlpack.DTypeInt64}
	out := make([]float64, 4)
	dst := src
	dst.Data, dst.ByteOffset, dst.DType = uintptr(unsafe.Pointer(&out[0])), 0, dlpack.DTypeFloat64
	if err := Copy(&dst, &src, 0); err != nil || out[3] != 3 || out[1] != 1 {
		t.Fatal(err, out)
	}
	runtime.KeepAlive(mem)
	runtime.KeepAlive(&n)
}

func TestRefusals(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	f := func(d dlpack.DataType, shape ...int64) *array { return newArray(d, shape, nil, r) }
	cuda := f(dlpack.DTypeInt8, 2)
	cuda.t.Device = dlpack.Device{Type: dlpack.DeviceCUDA}
	for _, c := range []struct {
		name     string
		dst, src *array
		want     error
	}{
		{"ndim", f(dlpack.DTypeInt8, 2), f(dlpack.DTypeInt8, 2, 1), dlpack.ErrShape},
		{"extent", f(dlpack.DTypeInt8, 2), f(dlpack.DTypeInt8, 3), dlpack.ErrShape},
		{"device of src", f(dlpack.DTypeInt8, 2), cuda, dlpack.ErrDevice},
		{"device of dst", cuda, f(dlpack.DTypeInt8, 2), dlpack.ErrDevice},
		{"broadcast dst", newArray(dlpack.DTypeInt8, []int64{2}, []int64{0}, r), f(dlpack.DTypeInt8, 2), dlpack.ErrLayout},
		{"fp4 to float", f(dlpack.DTypeFloat32, 2), f(dlpack.DTypeFloat4E2M1FNx2, 2), dlpack.ErrDType},
		{"float to fp4", f(dlpack.DTypeFloat4E2M1FNx2, 2), f(dlpack.DTypeFloat32, 2), dlpack.ErrDType},
		{"opaque to known", f(dlpack.DTypeFloat32, 2), f(dlpack.DataType{Code: 99, Bits: 32, Lanes: 1}, 2), dlpack.ErrDType},
		{"lanes", f(dlpack.DTypeFloat32, 2), f(dlpack.DataType{Code: dlpack.CodeFloat, Bits: 32, Lanes: 2}, 2), dlpack.ErrDType},
	} {
		if err := Copy(&c.dst.t, &c.src.t, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestPanicsReachTheCaller(t *testing.T) {
	parts := (&plan{axes: []axis{{8, 1, 1}}}).split(4)
	ran := make([]bool, 4)
	defer func() {
		p := recover()
		if p == nil || fmt.Sprint(p) != "panic: part 2" {
			t.Fatal(p)
		}
		for i, r := range ran {
			if !r {
				t.Errorf("part %d did not run", i)
			}
		}
	}()
	parallel(parts, func(p *plan) {
		i := int(p.dst / 2)
		ran[i] = true
		if i == 2 {
			panic("part 2")
		}
	})
}
