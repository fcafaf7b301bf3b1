// Package torture has a function for each row of the tables in docs/dev/functions.md.
//
// Its "doc" has quotes, a \ and an ö.
package torture

import (
	"context"
	"errors"
	"fmt"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
)

// Sum adds up x.
//
//dlferry:export
func Sum(x dlpack.View[float64]) float64 {
	sum := 0.0
	for v := range x.Values() {
		sum += v
	}
	return sum
}

//dlferry:export
func Fill(x dlpack.MutView[int32], value int32) { x.Fill(value) }

// Describe looks at any tensor.
//
//dlferry:export name=what
func Describe(x dlpack.AnyView) string {
	return fmt.Sprintf("%v %v %v", x.DType(), x.Shape(), x.ReadOnly())
}

//dlferry:export
func Lengths(list []dlpack.View[uint8]) []int {
	out := []int{}
	for _, v := range list {
		out = append(out, v.Len())
	}
	return out
}

var kept *exchange.Foreign

// Keep keeps x until the next call, and returns what it kept before.
//
//dlferry:export
func Keep(x *exchange.Foreign) *exchange.Foreign {
	before := kept
	kept = x
	return before
}

// Arange returns a new tensor.
//
//dlferry:export like=none
func Arange(n int) (*exchange.Local, error) {
	if n < 0 {
		return nil, errors.New("n is negative")
	}
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(i)
	}
	return exchange.FromSlice(s)
}

// Twice returns two tensors.
//
//dlferry:export
func Twice(x dlpack.View[float32]) ([]*exchange.Local, error) {
	s, err := x.Data()
	if err != nil {
		return nil, err
	}
	a, err := exchange.FromSlice(s)
	if err != nil {
		return nil, err
	}
	b, err := exchange.FromSlice(s)
	return []*exchange.Local{a, b}, err
}

//dlferry:export
func Nothing(x dlpack.AnyView) *exchange.Local { return nil }

//dlferry:export
func Halves(x dlpack.View[dlpack.Float16]) []float32 {
	var out []float32
	for v := range x.Values() {
		out = append(out, v.Float32()/2)
	}
	return out
}

//dlferry:export
func Truths(a dlpack.View[bool], b dlpack.View[dlpack.Bool]) []bool {
	out := make([]bool, a.Len())
	for i := range out {
		out[i] = a.At(i) && b.At(i).Bool()
	}
	return out
}

// Total adds up x.
//
//dlferry:export float32 float64
func Total[T dlpack.Float](x dlpack.View[T], start T) T {
	for v := range x.Values() {
		start += v
	}
	return start
}

// Clip returns the elements within bounds.
//
//dlferry:export nogil int8 int64
//dlferry:default high=100
func Clip[T dlpack.Signed](list []dlpack.View[T], low, high T) ([]T, int) {
	out := []T{}
	for _, v := range list {
		for x := range v.Values() {
			out = append(out, min(max(x, low), high))
		}
	}
	return out, len(out)
}

// Copy works for elements of all kinds.
//
//dlferry:export bool uint8 uint16 uint32 uint64 int16 int32 float32 complex64 complex128 dlpack.Float16 dlpack.BFloat16 dlpack.Complex32 dlpack.Float8E4M3FN dlpack.Float4E2M1FNx2
func Copy[E dlpack.Element](to dlpack.MutView[E], from dlpack.View[E]) error {
	if to.Len() != from.Len() {
		return fmt.Errorf("to has %d elements, from has %d", to.Len(), from.Len())
	}
	for index, v := range from.All() {
		to.Set(v, index...)
	}
	return nil
}

// Waits ends when it is cancelled.
//
//dlferry:export
//dlferry:default seconds=0.01
func Waits(ctx context.Context, seconds float64) error { return wait(ctx, seconds) }

// Alike has a parameter that is called as the keyword is.
//
//dlferry:export
func Alike(like dlpack.View[float32]) []float32 { return []float32{like.At(0)} }
