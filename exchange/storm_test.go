package exchange

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange/internal/ctest"
)

// Deleters run on threads that Go does not know, while Go exports, imports, releases and collects.
func TestDeletersOfForeignThreads(t *testing.T) {
	balanced(t)
	rounds, size := 20, 2000
	if testing.Short() {
		rounds, size = 4, 400
	}
	var ended atomic.Int64
	lent := 0
	stop := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				Drain()
			}
		}
	})
	for range rounds {
		exports := make([]uintptr, 0, size)
		for i := range size {
			var l *Local
			switch i % 3 {
			case 0:
				l = must[*Local](t)(FromSlice([]float32{float32(i), 1}))
			case 1:
				s := []int64{int64(i)}
				l = must[*Local](t)(NewBuilder().DType(dlpack.DTypeInt64).Shape(1).Data(unsafe.Pointer(&s[0]), 8).OnRelease(func() {
					if s[0] == int64(i) {
						ended.Add(1)
					}
				}).Build())
				lent++
			default:
				f := must[*Foreign](t)(Import(ctest.Versioned(description(), 0, dlpack.CurrentVersion)))
				exports = append(exports, uintptr(unsafe.Pointer(must[*dlpack.ManagedTensorVersioned](t)(f.Export()))))
				f.Release()
				continue
			}
			exports = append(exports, uintptr(unsafe.Pointer(must[*dlpack.ManagedTensorVersioned](t)(l.Export()))))
			l.Release()
		}
		ctest.Storm(exports, 4)
	}
	close(stop)
	wg.Wait()
	eventually(t, "all functions are called", func() bool { return ended.Load() == int64(lent) })
}

func TestOneTensorExportedAndDeletedByMany(t *testing.T) {
	balanced(t)
	m := ctest.Versioned(description(), 0, dlpack.CurrentVersion)
	f := must[*Foreign](t)(Import(m))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				e, err := f.Export()
				if err != nil {
					t.Error(err)
					return
				}
				g, err := Import(e)
				if err != nil {
					t.Error(err)
					return
				}
				g.Release()
			}
		})
	}
	wg.Wait()
	if ctest.Dropped(m) != 0 {
		t.Error("dropped while the handle lives")
	}
	f.Release()
	if ctest.Dropped(m) != 1 {
		t.Error(ctest.Dropped(m))
	}
}
