package exchange

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange/internal/ctest"
)

// balanced checks at the end of a test that everything it made is gone, and that no deleter ran twice.
func balanced(t *testing.T) {
	t.Helper()
	before := Ledger()
	t.Cleanup(func() {
		want := before
		want.Panics = Ledger().Panics
		eventually(t, "the ledger goes back to what it was", func() bool {
			Drain()
			return Ledger() == want
		})
		if t.Failed() {
			t.Logf("ledger %+v, want %+v", Ledger(), want)
		}
		if _, twice := ctest.Drops(); twice != 0 {
			t.Fatalf("%d deleters ran twice", twice)
		}
	})
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("never: %s", what)
			return
		}
	}
}

// collected is eventually, with the garbage collector running.
func collected(t *testing.T, what string, done func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		runtime.GC()
		return done()
	})
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantKind(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error, got %v, want %v", err, want)
	}
}

// description is 2 x 3 float32 values 0 to 5 in memory that lives as long as the process, without strides.
func description() *dlpack.Tensor {
	return &dlpack.Tensor{Data: addressOf(&testData[0]), Device: dlpack.CPU, NDim: 2, DType: dlpack.DTypeFloat32, Shape: addressOf(&testShape[0])}
}

var (
	testData  = [6]float32{0, 1, 2, 3, 4, 5}
	testShape = [2]int64{2, 3}
)
