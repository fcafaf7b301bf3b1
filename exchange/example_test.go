package exchange_test

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
)

// take stands for a C library that takes ownership of what it is given.
func take(m *dlpack.ManagedTensorVersioned) { exchange.Delete(m) }

func ExampleFromSlice() {
	t, err := exchange.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Release()
	m, err := t.Export()
	if err != nil {
		fmt.Println(err)
		return
	}
	take(m) // the data lives until the consumer's deleter ran and t is released
	fmt.Println(t, t.Strides())
	// Output: float32[2 3] on cpu [3 1]
}

func ExampleImport() {
	source, _ := exchange.FromSlice([]int64{1, 2, 3})
	m, _ := source.Export()
	source.Release()

	t, err := exchange.Import(m)
	if err != nil {
		fmt.Println(err) // m is gone: its deleter ran
		return
	}
	defer t.Release()
	err = exchange.WithView(t, func(v dlpack.View[int64]) error {
		sum := int64(0)
		for x := range v.Values() {
			sum += x
		}
		fmt.Println(sum)
		return nil
	})
	fmt.Println(err)
	// Output:
	// 6
	// <nil>
}

func ExampleWithView() {
	t, _ := exchange.Zeros(dlpack.DTypeFloat64, 2, 2)
	defer t.Release()
	err := exchange.WithView(t, func(dlpack.View[float32]) error { return nil })
	fmt.Println(errors.Is(err, dlpack.ErrDType), err)
	// Output: true ViewOf: dtype, got float64, want float32
}

func ExampleBuilder() {
	pixels := []uint8{10, 20, 30, 40, 50, 60}
	done := make(chan bool)
	// The first row last, as some image formats have it, over the slice itself.
	t, err := exchange.NewBuilder().DType(dlpack.DTypeUint8).Shape(2, 3).Strides(-3, 1).
		Data(unsafe.Pointer(&pixels[0]), 6).Offset(3).
		OnRelease(func() { close(done) }).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = exchange.WithView(t, func(v dlpack.View[uint8]) error {
		fmt.Println(v.At(0, 0), v.At(1, 0))
		return nil
	})
	t.Release()
	<-done
	// Output: 40 10
}

func ExampleLend() {
	s := []float32{1, 2}
	t, _ := exchange.Lend(s)
	_ = exchange.WithMutView(t, func(v dlpack.MutView[float32]) error {
		v.Set(7, 1)
		return nil
	})
	fmt.Println(s)
	t.Release()
	exchange.Drain() // s is no longer pinned
	// Output: [1 7]
}

func ExampleImportTable() {
	// A C library would give its own table; here it is ours.
	table, err := exchange.ImportTable(exchange.ExportTable())
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := table.Allocate(dlpack.CPU, dlpack.DTypeBFloat16, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t, table.Version())
	t.Release()
	// Output: bfloat16[4] on cpu 1.3
}

func ExampleLedger() {
	before := exchange.Ledger()
	t, _ := exchange.Empty(dlpack.DTypeInt32, 256)
	during := exchange.Ledger()
	t.Release()
	after := exchange.Ledger()
	fmt.Println(during.Bytes-before.Bytes, after.Bytes-before.Bytes)
	// Output: 1024 0
}
