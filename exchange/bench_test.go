package exchange

import (
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange/internal/ctest"
)

// Question: what does an exchange cost, and how much of it is malloc, so that a pool of small blocks could save it?
//
// A storage made and ended is two calls into C around a malloc and a free; BenchmarkCall is the two calls alone. A pool of small blocks could save at most the
// difference, and would need a lock-free list that deleters on any thread return to.
// Last answer: the difference is a sixth of BenchmarkFromSlice, less than the cleanup that finds forgotten handles. No pool.

// The floor: two calls into C that do nothing of note.
func BenchmarkCall(b *testing.B) {
	l := must[*Local](b)(Empty(dlpack.DTypeUint8, 1))
	defer l.Release()
	for b.Loop() {
		storageRef(l.storage)
		storageUnref(l.storage)
	}
}

func BenchmarkMalloc(b *testing.B) {
	for b.Loop() {
		st, _ := storageNew(64, false)
		storageUnref(st)
	}
}

func BenchmarkFromSlice(b *testing.B) {
	s := make([]float32, 16)
	b.ReportAllocs()
	for b.Loop() {
		l, err := FromSlice(s)
		if err != nil {
			b.Fatal(err)
		}
		l.Release()
	}
}

func BenchmarkLend(b *testing.B) {
	s := make([]float32, 16)
	b.ReportAllocs()
	for b.Loop() {
		l, err := Lend(s)
		if err != nil {
			b.Fatal(err)
		}
		l.Release()
		Drain()
	}
}

func BenchmarkExportDelete(b *testing.B) {
	l := must[*Local](b)(Empty(dlpack.DTypeFloat32, 4, 4))
	defer l.Release()
	b.ReportAllocs()
	for b.Loop() {
		m, err := l.Export()
		if err != nil {
			b.Fatal(err)
		}
		Delete(m)
	}
}

func BenchmarkImportRelease(b *testing.B) {
	d := *description()
	m := &dlpack.ManagedTensorVersioned{Version: dlpack.CurrentVersion, Tensor: d} // without a deleter: it can be imported again
	b.ReportAllocs()
	for b.Loop() {
		f, err := Import(m)
		if err != nil {
			b.Fatal(err)
		}
		f.Release()
	}
}

func BenchmarkWithView(b *testing.B) {
	l := must[*Local](b)(Zeros(dlpack.DTypeFloat32, 4, 4))
	defer l.Release()
	b.ReportAllocs()
	for b.Loop() {
		if err := WithView(l, func(v dlpack.View[float32]) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDrainWithNothingWaiting(b *testing.B) {
	for b.Loop() {
		Drain()
	}
}

// A thousand exports whose deleters run on four other threads, a tensor.
func BenchmarkStorm(b *testing.B) {
	l := must[*Local](b)(Empty(dlpack.DTypeFloat32, 4))
	defer l.Release()
	exports := make([]uintptr, 1000)
	for b.Loop() {
		for i := range exports {
			m, _ := l.Export()
			exports[i] = uintptr(unsafe.Pointer(m))
		}
		ctest.Storm(exports, 4)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/tensor")
}
