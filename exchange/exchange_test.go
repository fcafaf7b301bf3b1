package exchange

import (
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/dlpack/dlpacktest"
	"github.com/dlferry/dlferry/exchange/internal/ctest"
)

func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func TestImportJudgesEveryCaseAsValidateDoes(t *testing.T) {
	balanced(t)
	dlpacktest.Suite(t, func(x *dlpack.Tensor, flags dlpack.Flags) error {
		m := ctest.Versioned(x, flags, dlpack.CurrentVersion)
		f, err := Import(m)
		if err != nil {
			if ctest.Dropped(m) != 1 {
				t.Errorf("refused: the deleter ran %d times, want once", ctest.Dropped(m))
			}
			return err
		}
		if ctest.Dropped(m) != 0 {
			t.Error("accepted: the deleter ran already")
		}
		if got := f.Shape(); !slices.Equal(got, slices.Clone(x.ShapeUnchecked())) && x.NDim > 0 {
			t.Errorf("shape %v", got)
		}
		if got, want := f.Strides(), x.StridesOrCompact(); !slices.Equal(got, want) {
			t.Errorf("strides, got %v, want %v", got, want)
		}
		if f.DType() != x.DType || f.Device() != x.Device || f.Flags() != flags {
			t.Errorf("got %v %v %v", f.DType(), f.Device(), f.Flags())
		}
		if x.Device.Type.HasPointers() && x.Data != 0 && f.Address() != x.Data+uintptr(x.ByteOffset) {
			t.Errorf("address %#x, want the offset in it", f.Address())
		}
		f.Release()
		f.Release()
		if ctest.Dropped(m) != 1 {
			t.Errorf("released: the deleter ran %d times, want once", ctest.Dropped(m))
		}
		return nil
	})
}

func TestImportLegacyJudgesEveryCaseWithoutFlags(t *testing.T) {
	balanced(t)
	dlpacktest.Suite(t, func(x *dlpack.Tensor, flags dlpack.Flags) error {
		m := ctest.Legacy(x)
		f, err := ImportLegacy(m)
		if flags != 0 {
			// Without the flags it is another tensor: only the deleter counts.
			err = dlpack.Validate(x, flags)
		}
		if f != nil {
			f.Release()
		}
		if ctest.Dropped(m) != 1 {
			t.Errorf("the deleter ran %d times, want once", ctest.Dropped(m))
		}
		return err
	})
}

// The managed tensors of this suite have no deleter.
func TestImportOfEveryVersion(t *testing.T) {
	balanced(t)
	dlpacktest.SuiteVersioned(t, func(m *dlpack.ManagedTensorVersioned) error {
		before := *m
		f, err := Import(m)
		if f != nil {
			f.Release()
		}
		if *m != before {
			t.Error("the producer's struct was written to")
		}
		runtime.KeepAlive(m)
		return err
	})
}

func TestAnotherMajorVersionIsDeletedAndNotRead(t *testing.T) {
	balanced(t)
	m := ctest.Versioned(&dlpack.Tensor{NDim: 5, Shape: 1}, 0, dlpack.Version{Major: 2})
	_, err := Import(m)
	wantKind(t, err, dlpack.ErrVersion)
	if ctest.Dropped(m) != 1 {
		t.Errorf("the deleter ran %d times", ctest.Dropped(m))
	}
}

func TestNilIsRefused(t *testing.T) {
	_, err := Import(nil)
	wantKind(t, err, dlpack.ErrNull)
	_, err = ImportLegacy(nil)
	wantKind(t, err, dlpack.ErrNull)
	Delete(nil)
	DeleteLegacy(nil)
}

func TestAForeignTensorIsCopiedFromTheProducersStruct(t *testing.T) {
	balanced(t)
	shape := [2]int64{2, 3}
	d := description()
	d.Shape = addressOf(&shape[0])
	m := ctest.Versioned(d, 0, dlpack.Version{Major: 1, Minor: 0})
	f := must[*Foreign](t)(Import(m))
	shape = [2]int64{1 << 40, -1}
	m.Tensor.NDim, m.Tensor.Data, m.Flags = 1000, 0, dlpack.FlagReadOnly
	err := WithView(f, func(v dlpack.View[float32]) error {
		if v.At(1, 2) != 5 {
			t.Error(v.At(1, 2))
		}
		return nil
	})
	if err != nil || f.ReadOnly() || f.Version() != (dlpack.Version{Major: 1, Minor: 0}) {
		t.Error(err, f)
	}
	f.Release()
	runtime.KeepAlive(&shape)
}

func TestAReexportKeepsTheProducersTensor(t *testing.T) {
	balanced(t)
	m := ctest.Versioned(description(), dlpack.FlagReadOnly|1<<40, dlpack.CurrentVersion)
	f := must[*Foreign](t)(Import(m))
	again := must[*dlpack.ManagedTensorVersioned](t)(f.Export())
	_, err := f.ExportLegacy()
	wantKind(t, err, dlpack.ErrReadOnly)
	f.Release()
	if ctest.Dropped(m) != 0 {
		t.Fatal("dropped while an export lives")
	}
	if again.Flags != dlpack.FlagReadOnly|1<<40 || again.Tensor.Strides == 0 || ctest.SumFloat32(again) != 15 {
		t.Errorf("%+v", again)
	}
	Delete(again)
	if ctest.Dropped(m) != 1 {
		t.Errorf("dropped %d times", ctest.Dropped(m))
	}
}

func TestExportsShareTheDataAndOutliveTheHandle(t *testing.T) {
	balanced(t)
	l := must[*Local](t)(FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3))
	if l.Address()%Alignment != 0 {
		t.Errorf("address %#x", l.Address())
	}
	m := must[*dlpack.ManagedTensorVersioned](t)(l.Export())
	legacy := must[*dlpack.ManagedTensor](t)(l.ExportLegacy())
	if m.Version != dlpack.CurrentVersion || m.Deleter == 0 || m.ManagerCtx == 0 || legacy.Deleter == 0 || legacy.ManagerCtx == 0 {
		t.Errorf("%+v %+v", m, legacy)
	}
	if err := WithMutView(l, func(v dlpack.MutView[float32]) error { v.Set(100, 1, 2); return nil }); err != nil {
		t.Error(err)
	}
	l.Release()
	if got := ctest.SumFloat32(m); got != 115 {
		t.Errorf("sum %v", got)
	}
	if c := Ledger(); c.Exports < 2 || c.Bytes < 24 {
		t.Errorf("%+v", c)
	}
	f := must[*Foreign](t)(Import(m))
	DeleteLegacy(legacy)
	if err := WithView(f, func(v dlpack.View[float32]) error {
		if v.At(1, 2) != 100 || !slices.Equal(f.Strides(), []int64{3, 1}) {
			t.Error(v.At(1, 2), f.Strides())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	f.Release()
}

func TestManyAxesAndNone(t *testing.T) {
	balanced(t)
	for _, ndim := range []int{0, 1, 8, 9, dlpack.MaxNDim} {
		l := must[*Local](t)(Zeros(dlpack.DTypeInt64, slices.Repeat([]int64{1}, ndim)...))
		m := must[*dlpack.ManagedTensorVersioned](t)(l.Export())
		l.Release()
		f := must[*Foreign](t)(Import(m))
		if f.NDim() != ndim || f.Len() != 1 || !slices.Equal(f.Shape(), slices.Repeat([]int64{1}, ndim)) {
			t.Errorf("%d axes: %v", ndim, f)
		}
		if err := WithView(f, func(v dlpack.View[int64]) error {
			if x := v.At(make([]int, ndim)...); x != 0 {
				t.Error(x)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		f.Release()
	}
}

func TestAReleasedHandleRefuses(t *testing.T) {
	balanced(t)
	l := must[*Local](t)(FromSlice([]int32{1}))
	f := must[*Foreign](t)(Import(ctest.Versioned(description(), 0, dlpack.CurrentVersion)))
	for _, h := range []Handle{l, f} {
		h.Release()
		h.Release()
		_, err := h.Export()
		wantKind(t, err, dlpack.ErrClosed)
		_, err = h.ExportLegacy()
		wantKind(t, err, dlpack.ErrClosed)
		wantKind(t, WithTensor(h, func(*dlpack.Tensor, dlpack.Flags) error { t.Error("called"); return nil }), dlpack.ErrClosed)
		wantKind(t, WithAnyView(h, func(dlpack.AnyView) error { return nil }), dlpack.ErrClosed)
		if h.NDim() == 0 {
			t.Error("the metadata went")
		}
	}
	_, err := l.Retain()
	wantKind(t, err, dlpack.ErrClosed)
	_, err = f.Retain()
	wantKind(t, err, dlpack.ErrClosed)
	if !l.Released() || !f.Released() {
		t.Error("not released")
	}
}

func TestRetainedHandlesAreReleasedApart(t *testing.T) {
	balanced(t)
	m := ctest.Versioned(description(), 0, dlpack.CurrentVersion)
	f := must[*Foreign](t)(Import(m))
	g := must[*Foreign](t)(f.Retain())
	f.Release()
	if ctest.Dropped(m) != 0 || g.String() != "float32[2 3] on cpu" {
		t.Fatal(ctest.Dropped(m), g)
	}
	g.Release()
	if ctest.Dropped(m) != 1 {
		t.Error(ctest.Dropped(m))
	}
	l := must[*Local](t)(FromSlice([]float32{7}))
	k := must[*Local](t)(l.Retain())
	l.Release()
	if err := WithView(k, func(v dlpack.View[float32]) error {
		if v.At(0) != 7 {
			t.Error(v.At(0))
		}
		return io.EOF
	}); err != io.EOF {
		t.Error(err)
	}
	k.Release()
}

func TestReleaseDuringAViewWaitsForItsEnd(t *testing.T) {
	balanced(t)
	m := ctest.Versioned(description(), 0, dlpack.CurrentVersion)
	f := must[*Foreign](t)(Import(m))
	err := WithView(f, func(v dlpack.View[float32]) error {
		f.Release()
		if ctest.Dropped(m) != 0 {
			t.Error("dropped under the view")
		}
		wantKind(t, WithAnyView(f, func(dlpack.AnyView) error { return nil }), dlpack.ErrClosed)
		return nil
	})
	if err != nil || ctest.Dropped(m) != 1 {
		t.Error(err, ctest.Dropped(m))
	}
	// Also when the function panics.
	m = ctest.Versioned(description(), 0, dlpack.CurrentVersion)
	f = must[*Foreign](t)(Import(m))
	func() {
		defer func() { _ = recover() }()
		_ = WithView(f, func(dlpack.View[float32]) error { panic("x") })
	}()
	f.Release()
	if ctest.Dropped(m) != 1 {
		t.Error(ctest.Dropped(m))
	}
}

func TestConcurrentReleaseRunsTheDeleterOnce(t *testing.T) {
	balanced(t)
	for range 200 {
		m := ctest.Versioned(description(), 0, dlpack.CurrentVersion)
		f := must[*Foreign](t)(Import(m))
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				_ = WithView(f, func(v dlpack.View[float32]) error {
					if v.At(0, 1) != 1 || ctest.Dropped(m) != 0 {
						t.Error("gone under the view")
					}
					return nil
				})
				if i%2 == 0 {
					f.Release()
				}
			})
		}
		wg.Wait()
		if ctest.Dropped(m) != 1 {
			t.Fatal(ctest.Dropped(m))
		}
	}
}

func TestForgottenHandlesAreFoundByTheCollector(t *testing.T) {
	balanced(t)
	m := ctest.Versioned(description(), 0, dlpack.CurrentVersion)
	legacy := ctest.Legacy(description())
	func() {
		must[*Foreign](t)(Import(m))
		must[*Foreign](t)(ImportLegacy(legacy))
		must[*Local](t)(FromSlice([]byte{1, 2}))
		must[*Local](t)(Lend([]int64{1, 2}))
	}()
	collected(t, "deleters of forgotten tensors run", func() bool { return ctest.Dropped(m) == 1 && ctest.Dropped(legacy) == 1 })
}

func TestNextToPythonForeignTensorsAreHandedOver(t *testing.T) {
	balanced(t)
	SetPythonEnd(ctest.PythonEnd())
	defer SetPythonEnd(0)
	m := ctest.Versioned(description(), 0, dlpack.CurrentVersion)
	legacy := ctest.Legacy(&dlpack.Tensor{})
	f := must[*Foreign](t)(Import(m))
	f.Release()
	_, err := ImportLegacy(legacy)
	wantKind(t, err, dlpack.ErrDType)
	l := must[*Local](t)(FromSlice([]byte{1}))
	l.Release()
	if ctest.Dropped(m) != 0 || ctest.Dropped(legacy) != 0 {
		t.Error("a deleter ran outside of the interpreter's lock")
	}
	if n := ctest.PythonDrain(); n != 2 || ctest.Dropped(m) != 1 || ctest.Dropped(legacy) != 1 {
		t.Error(n, ctest.Dropped(m), ctest.Dropped(legacy))
	}
}
