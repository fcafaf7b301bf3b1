package exchange

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange/internal/ctest"
)

func TestTensorsGoBothWaysThroughOurTable(t *testing.T) {
	balanced(t)
	table := must[*Table](t)(ImportTable(ExportTable()))
	if table.Version() != dlpack.CurrentVersion {
		t.Error(table.Version())
	}
	l := must[*Local](t)(FromSlice([]float32{1, 2, 3, 4}, 2, 2))
	object := must[uintptr](t)(table.Object(l))
	l.Release()

	err := table.Borrow(object, func(d *dlpack.Tensor) error {
		v, err := dlpack.ViewOf[float32](d, dlpack.FlagReadOnly)
		if err == nil && v.At(1, 1) != 4 {
			t.Error(v.At(1, 1))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	f := must[*Foreign](t)(table.Import(object))
	g := must[*Foreign](t)(table.Import(object))
	f.Release()
	Delete((*dlpack.ManagedTensorVersioned)(pointer(object))) // how an object of our own table ends
	if err := WithView(g, func(v dlpack.View[float32]) error {
		if v.At(1, 0) != 3 {
			t.Error(v.At(1, 0))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	g.Release()
}

func TestOurTableTakesForeignTensors(t *testing.T) {
	balanced(t)
	m := ctest.Versioned(description(), dlpack.FlagReadOnly, dlpack.Version{Major: 1, Minor: 1})
	status, object := tableToObject(ourTable(), uintptr(unsafe.Pointer(m)))
	if status != 0 || object == uintptr(unsafe.Pointer(m)) {
		t.Fatal(status)
	}
	table := must[*Table](t)(ImportTable(ExportTable()))
	f := must[*Foreign](t)(table.Import(object))
	if !f.ReadOnly() || f.Strides()[0] != 3 {
		t.Error(f, f.Strides())
	}
	Delete((*dlpack.ManagedTensorVersioned)(pointer(object)))
	if ctest.Dropped(m) != 0 {
		t.Error("dropped too early")
	}
	f.Release()
	if ctest.Dropped(m) != 1 {
		t.Error(ctest.Dropped(m))
	}
}

func TestOurTableRefusesAndFreesNothing(t *testing.T) {
	balanced(t)
	overflow := [2]int64{1 << 40, 1 << 40}
	bad := []*dlpack.ManagedTensorVersioned{
		ctest.Versioned(description(), 0, dlpack.Version{Major: 2}),
		ctest.Versioned(&dlpack.Tensor{NDim: -1, DType: dlpack.DTypeInt8}, 0, dlpack.CurrentVersion),
		ctest.Versioned(&dlpack.Tensor{NDim: 1, DType: dlpack.DTypeInt8}, 0, dlpack.CurrentVersion),
		ctest.Versioned(&dlpack.Tensor{}, 0, dlpack.CurrentVersion),
		ctest.Versioned(&dlpack.Tensor{NDim: 2, DType: dlpack.DTypeInt8, Shape: addressOf(&overflow[0])}, 0, dlpack.CurrentVersion),
		nil,
	}
	for i, m := range bad {
		if status, object := tableToObject(ourTable(), uintptr(unsafe.Pointer(m))); status != -1 || object != 0 {
			t.Errorf("%d: status %d", i, status)
		}
		if m != nil && ctest.Dropped(m) != 0 {
			t.Errorf("%d: freed", i)
		}
	}
	table := must[*Table](t)(ImportTable(ExportTable()))
	stranger := ctest.Versioned(description(), 0, dlpack.CurrentVersion)
	for _, object := range []uintptr{0, uintptr(unsafe.Pointer(stranger))} {
		_, err := table.Import(object)
		wantKind(t, err, dlpack.ErrUnsupported)
		wantKind(t, table.Borrow(object, nil), dlpack.ErrUnsupported)
	}
}

func TestOurTableAllocatesHostMemory(t *testing.T) {
	balanced(t)
	table := must[*Table](t)(ImportTable(ExportTable()))
	f := must[*Foreign](t)(table.Allocate(dlpack.CPU, dlpack.DTypeFloat64, 3, 0, 2))
	f.Release()
	f = must[*Foreign](t)(table.Allocate(dlpack.CPU, dlpack.DTypeFloat32, 3, 4))
	if f.Address()%Alignment != 0 || f.Strides()[0] != 4 {
		t.Errorf("%#x %v", f.Address(), f.Strides())
	}
	if err := WithMutView(f, func(v dlpack.MutView[float32]) error { v.Fill(1); return nil }); err != nil {
		t.Error(err)
	}
	f.Release()
	for _, c := range []struct {
		device dlpack.Device
		dtype  dlpack.DataType
		shape  []int64
		word   string
	}{
		{dlpack.Device{Type: dlpack.DeviceCUDA}, dlpack.DTypeInt8, nil, "cpu"},
		{dlpack.CPU, dlpack.DataType{}, nil, "dtype"},
		{dlpack.CPU, dlpack.DataType{Code: 17, Bits: 4, Lanes: 1}, nil, "whole bytes"},
		{dlpack.CPU, dlpack.DTypeInt8, []int64{-1}, "negative"},
		{dlpack.CPU, dlpack.DTypeInt64, []int64{1 << 61}, "int64"},
	} {
		if _, err := table.Allocate(c.device, c.dtype, c.shape...); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%v %v %v: %v", c.device, c.dtype, c.shape, err)
		}
	}
	_, err := table.Allocate(dlpack.CPU, dlpack.DTypeInt8, 1<<58)
	wantKind(t, err, dlpack.ErrMemory)
	_, err = table.Allocate(dlpack.CPU, dlpack.DTypeInt8, make([]int64, 65)...)
	wantKind(t, err, dlpack.ErrShape)

	if stream, err := table.Stream(dlpack.CPU); stream != 0 || err != nil {
		t.Error(stream, err)
	}
	_, err = table.Stream(dlpack.Device{Type: dlpack.DeviceCUDA})
	wantKind(t, err, dlpack.ErrUnsupported)
}

func TestTheListOfTablesIsWalkedAndBounded(t *testing.T) {
	if table, err := ImportTable(ctest.Table(ctest.TableNewer)); err != nil || table.Version() != dlpack.CurrentVersion {
		t.Error(err)
	}
	for _, which := range []int{ctest.TableAlone, ctest.TableCircle} {
		_, err := ImportTable(ctest.Table(which))
		wantKind(t, err, dlpack.ErrVersion)
	}
	_, err := ImportTable(nil)
	wantKind(t, err, dlpack.ErrNull)
}

func TestMissingEntriesAreRefused(t *testing.T) {
	balanced(t)
	table := must[*Table](t)(ImportTable(ctest.Table(ctest.TableEmpty)))
	l := must[*Local](t)(FromSlice([]byte{1}))
	defer l.Release()
	_, err1 := table.Import(1)
	_, err2 := table.Object(l)
	err3 := table.Borrow(1, nil)
	_, err4 := table.Allocate(dlpack.CPU, dlpack.DTypeInt8)
	_, err5 := table.Stream(dlpack.CPU)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		wantKind(t, err, dlpack.ErrUnsupported)
		if !strings.Contains(err.Error(), "NULL") {
			t.Error(err)
		}
	}
}

func TestFailuresOfATable(t *testing.T) {
	balanced(t)
	table := must[*Table](t)(ImportTable(ctest.Table(ctest.TableRefusing)))
	_, err := table.Import(1)
	wantKind(t, err, dlpack.ErrUnsupported)
	_, err = table.Allocate(dlpack.CPU, dlpack.DTypeInt8, 2)
	wantKind(t, err, dlpack.ErrMemory)
	var e *dlpack.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Got, "MemoryError: xxx") || len(e.Got) > 600 {
		t.Error(err)
	}
	nothing := must[*Table](t)(ImportTable(ctest.Table(ctest.TableNothing)))
	_, err = nothing.Import(1)
	wantKind(t, err, dlpack.ErrNull)

	// What it was given is leaked, not freed twice: once, and to be seen.
	before := Ledger()
	l := must[*Local](t)(FromSlice([]byte{1}))
	_, err = table.Object(l)
	wantKind(t, err, dlpack.ErrUnsupported)
	l.Release()
	if after := Ledger(); after.Exports != before.Exports+1 || after.Bytes != before.Bytes+1 {
		t.Errorf("%+v", after)
	}
	Delete(ctest.Refused())
}
