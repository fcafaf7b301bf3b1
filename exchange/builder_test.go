package exchange

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange/internal/ctest"
)

func TestLentMemoryIsPinnedUntilTheLastDeleter(t *testing.T) {
	balanced(t)
	s := make([]float32, 100)
	for i := range s {
		s[i] = 1
	}
	l := must[*Local](t)(Lend(s, 10, 10))
	if l.Address() != addressOf(&s[0]) {
		t.Fatal("copied")
	}
	m := must[*dlpack.ManagedTensorVersioned](t)(l.Export())
	collectedEarly := watch(&s[0])
	s[3] = 11
	l.Release()
	s = nil
	for range 3 {
		runtime.GC()
		_ = make([]byte, 10<<20)
	}
	if collectedEarly() || ctest.SumFloat32(m) != 110 {
		t.Error("the memory went while a consumer holds it")
	}
	Delete(m)
	collected(t, "the memory is free after the deleter", collectedEarly)
}

// watch says later whether the object at p was collected.
func watch[T any](p *T) func() bool {
	var gone atomic.Bool
	runtime.AddCleanup(p, func(*atomic.Bool) { gone.Store(true) }, &gone)
	return gone.Load
}

func TestAStringIsLentReadOnly(t *testing.T) {
	balanced(t)
	l := must[*Local](t)(LendString(fmt.Sprint("heap", 1)))
	if !l.ReadOnly() || l.DType() != dlpack.DTypeUint8 || l.Len() != 5 {
		t.Error(l)
	}
	_, err := l.ExportLegacy()
	wantKind(t, err, dlpack.ErrReadOnly)
	wantKind(t, WithMutView(l, func(dlpack.MutView[uint8]) error { return nil }), dlpack.ErrReadOnly)
	l.Release()
	empty := must[*Local](t)(LendString(""))
	empty.Release()
}

func TestFunctionsRunOnceAfterTheLastDeleterInReverse(t *testing.T) {
	balanced(t)
	calls := make(chan int, 10)
	data := []int16{1, 2, 3, 4}
	l := must[*Local](t)(NewBuilder().DType(dlpack.DTypeInt16).Shape(4).Data(unsafe.Pointer(&data[0]), 8).KeepAlive("a", nil, map[int]int{}, &data).
		OnRelease(func() { calls <- 1 }).OnRelease(func() { calls <- 2 }).Build())
	m := must[*dlpack.ManagedTensorVersioned](t)(l.Export())
	l.Release()
	Drain()
	if len(calls) != 0 {
		t.Fatal("called while an export lives")
	}
	ctest.Storm([]uintptr{uintptr(unsafe.Pointer(m))}, 1)
	// No Drain: the deleter wakes a goroutine.
	if a, b := <-calls, <-calls; a != 2 || b != 1 {
		t.Error(a, b)
	}
}

func TestAPanicOfAFunctionHoldsUpNothing(t *testing.T) {
	balanced(t)
	before := Ledger().Panics
	done := make(chan bool, 1)
	l := must[*Local](t)(NewBuilder().OnRelease(func() { done <- true }).OnRelease(func() { panic("on purpose, by a test") }).Build())
	l.Release()
	<-done
	if got := Ledger().Panics; got != before+1 {
		t.Error(got)
	}
}

func TestStridesOfBothSignsStayInsideTheData(t *testing.T) {
	balanced(t)
	data := []int32{0, 1, 2, 3, 4, 5}
	build := func(offset int64, size int64, strides ...int64) (*Local, error) {
		return NewBuilder().DType(dlpack.DTypeInt32).Shape(2, 3).Strides(strides...).Data(unsafe.Pointer(&data[0]), size).Offset(offset).Build()
	}
	l := must[*Local](t)(build(20, 24, -3, -1))
	if err := WithView(l, func(v dlpack.View[int32]) error {
		if v.At(0, 0) != 5 || v.At(1, 2) != 0 {
			t.Error(v.At(0, 0), v.At(1, 2))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	l.Release()
	for _, c := range []struct {
		offset, size int64
		strides      []int64
		want         error
	}{
		{16, 24, []int64{-3, -1}, dlpack.ErrValue},
		{0, 23, nil, dlpack.ErrValue},
		{4, 24, nil, dlpack.ErrValue},
		{0, 24, []int64{4, 1}, dlpack.ErrValue},
		{1 << 62, 24, nil, dlpack.ErrValue},
		{-4, 24, nil, dlpack.ErrOffset},
		{0, 24, []int64{1}, dlpack.ErrStrides},
		{0, 24, []int64{1 << 62, 1 << 62}, dlpack.ErrOverflow},
	} {
		l, err := build(c.offset, c.size, c.strides...)
		if c.strides == nil {
			l, err = NewBuilder().DType(dlpack.DTypeInt32).Shape(2, 3).Data(unsafe.Pointer(&data[0]), c.size).Offset(c.offset).Build()
		}
		if l != nil {
			l.Release()
		}
		wantKind(t, err, c.want)
	}
}

func TestAllocatedMemoryFitsStridesOfBothSigns(t *testing.T) {
	balanced(t)
	l := must[*Local](t)(NewBuilder().DType(dlpack.DTypeInt64).Shape(3, 4).Strides(-5, 1).Zeroed().Build())
	if err := WithMutView(l, func(v dlpack.MutView[int64]) error {
		for i := range 3 {
			for j := range 4 {
				if v.At(i, j) != 0 {
					t.Error("not zero")
				}
				v.Set(int64(4*i+j), i, j)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	l.Release()
}

func TestAFailedBuildTakesNothing(t *testing.T) {
	balanced(t)
	called := false
	b := NewBuilder().Shape(-1).OnRelease(func() { called = true })
	_, err := b.Build()
	wantKind(t, err, dlpack.ErrShape)
	Drain()
	if called {
		t.Error("the function was called")
	}
	l := must[*Local](t)(b.Shape(2).Build())
	_, err = b.Build()
	wantKind(t, err, dlpack.ErrConsumed)
	l.Release()
	eventually(t, "the function is called", func() bool { Drain(); return called })

	for _, c := range []struct {
		b    *Builder
		want error
	}{
		{NewBuilder().Shape(1 << 62), dlpack.ErrOverflow},
		{NewBuilder().Shape(1 << 58), dlpack.ErrMemory},
		{NewBuilder().DType(dlpack.DataType{}), dlpack.ErrDType},
		{NewBuilder().Device(dlpack.Device{Type: dlpack.DeviceCUDA}), dlpack.ErrDevice},
		{NewBuilder().Device(dlpack.Device{}), dlpack.ErrDevice},
		{NewBuilder().Offset(8), dlpack.ErrValue},
		{NewBuilder().Shape(1).Data(nil, 4), dlpack.ErrNull},
		{NewBuilder().Shape(1).Address(0), dlpack.ErrNull},
		{NewBuilder().Shape(slices.Repeat([]int64{1}, 65)...), dlpack.ErrShape},
	} {
		l, err := c.b.Build()
		if l != nil {
			l.Release()
		}
		wantKind(t, err, c.want)
	}
}

func TestDeviceMemoryIsCarried(t *testing.T) {
	balanced(t)
	l := must[*Local](t)(NewBuilder().Shape(2).Address(0x1000).Offset(4).Device(dlpack.Device{Type: dlpack.DeviceCUDA, ID: 1}).Build())
	if l.Address() != 0x1004 {
		t.Errorf("%#x", l.Address())
	}
	wantKind(t, WithView(l, func(dlpack.View[float32]) error { return nil }), dlpack.ErrDevice)
	l.Release()
	// A handle is not an address: the offset stays apart. Small integers are handles too.
	l = must[*Local](t)(NewBuilder().Shape(2).Address(3).Offset(4).Device(dlpack.Device{Type: dlpack.DeviceOpenCL}).Build())
	m := must[*dlpack.ManagedTensorVersioned](t)(l.Export())
	if m.Tensor.Data != 3 || m.Tensor.ByteOffset != 4 {
		t.Errorf("%+v", m.Tensor)
	}
	Delete(m)
	l.Release()
}

func TestPaddedValuesHaveNoUnversionedStruct(t *testing.T) {
	balanced(t)
	l := must[*Local](t)(NewBuilder().Shape(3).DType(dlpack.DataType{Code: dlpack.CodeFloat4E2M1FN, Bits: 4, Lanes: 1}).Flags(dlpack.FlagSubbytePadded).Build())
	_, err := l.ExportLegacy()
	wantKind(t, err, dlpack.ErrDType)
	l.Release()
}

type oddAllocator struct{ released *int }

func (a oddAllocator) Allocate(size int64, _ bool) (unsafe.Pointer, func(), error) {
	mem := make([]byte, size+2*Alignment)
	p := unsafe.Pointer(&mem[0])
	return unsafe.Add(p, Alignment-uintptr(p)%Alignment+8), func() { *a.released++ }, nil
}

type goAllocator struct{ released chan bool }

func (a goAllocator) Allocate(size int64, _ bool) (unsafe.Pointer, func(), error) {
	mem := make([]byte, size+Alignment)
	p := unsafe.Pointer(&mem[0])
	return unsafe.Add(p, (Alignment-uintptr(p)%Alignment)%Alignment), func() { a.released <- true }, nil
}

type failingAllocator struct{ err error }

func (a failingAllocator) Allocate(int64, bool) (unsafe.Pointer, func(), error) {
	return nil, nil, a.err
}

func TestAllocators(t *testing.T) {
	balanced(t)
	released := 0
	_, err := NewBuilder().Shape(3).Allocator(oddAllocator{&released}).Build()
	wantKind(t, err, dlpack.ErrAlignment)
	if released != 1 {
		t.Error("refused memory was not given back")
	}
	why := errors.New("why")
	if _, err = NewBuilder().Allocator(failingAllocator{why}).Build(); err != why {
		t.Error(err)
	}
	a := goAllocator{make(chan bool, 1)}
	l := must[*Local](t)(NewBuilder().Shape(4).Allocator(a).Build())
	runtime.GC()
	if err := WithMutView(l, func(v dlpack.MutView[float32]) error { v.Fill(2); return nil }); err != nil {
		t.Error(err)
	}
	l.Release()
	<-a.released

	p, free, err := CMemory.Allocate(100, true)
	if err != nil || uintptr(p)%Alignment != 0 {
		t.Fatal(p, err)
	}
	if !slices.Equal(unsafe.Slice((*byte)(p), 100), make([]byte, 100)) {
		t.Error("not zero")
	}
	free()
	_, _, err = CMemory.Allocate(-1, true)
	wantKind(t, err, dlpack.ErrValue)
	l = must[*Local](t)(NewBuilder().Allocator(nil).OnRelease(func() {}).Build())
	l.Release()
}

func TestFromSliceFitsTheShape(t *testing.T) {
	balanced(t)
	for _, shape := range [][]int64{{4}, {2, 2}, {-1, -6}, {0}, {1 << 40, 1 << 40}} {
		l, err := FromSlice([]float64{1, 2, 3, 4, 5, 6}, shape...)
		if err == nil {
			t.Errorf("%v: accepted", shape)
			l.Release()
		}
	}
	for _, l := range []*Local{
		must[*Local](t)(FromSlice([]dlpack.Float16{1, 2})),
		must[*Local](t)(FromSlice([]bool(nil))),
		must[*Local](t)(FromSlice([]complex128{}, 0, 3)),
		must[*Local](t)(Lend([]int8(nil))),
		must[*Local](t)(Empty(dlpack.DTypeBFloat16, 3, 0)),
	} {
		m := must[*dlpack.ManagedTensorVersioned](t)(l.Export())
		l.Release()
		must[*Foreign](t)(Import(m)).Release()
	}
}

func TestStaleSlotNumbersFindNothing(t *testing.T) {
	var table slotTable
	a := table.put(&slot{})
	if table.take(a) == nil || table.take(a) != nil {
		t.Error("a number was good twice, or never")
	}
	b := table.put(&slot{})
	if a == b || table.take(a) != nil || table.take(b+1) != nil || table.take(^uint64(0)) != nil || table.count() != 1 {
		t.Errorf("%x %x", a, b)
	}
	if table.take(b) == nil || table.count() != 0 {
		t.Error("lost")
	}
}
