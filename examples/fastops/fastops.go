// Package fastops is a few operations on tensors, written as Go would be written anyway.
package fastops

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
)

// Add writes a + b into dst, element by element. The three have the same shape. dst may be a or b itself, but not another view of their memory.
//
//dlferry:export float32 float64
func Add[T dlpack.Float](dst dlpack.MutView[T], a, b dlpack.View[T]) error {
	if !slices.Equal(a.Shape(), b.Shape()) || !slices.Equal(dst.Shape(), a.Shape()) {
		return fmt.Errorf("the shapes of dst, a and b are %v, %v and %v, want the same", dst.Shape(), a.Shape(), b.Shape())
	}
	x, errA := a.Data()
	y, errB := b.Data()
	to, errDst := dst.Data()
	if errA == nil && errB == nil && errDst == nil {
		for i := range to {
			to[i] = x[i] + y[i]
		}
		return nil
	}
	// One of them has strides of its own, as a transpose has.
	for index, v := range a.All() {
		dst.Set(v+b.At(index...), index...)
	}
	return nil
}

// Sum adds up the elements of x in double precision.
//
//dlferry:export float32 float64
func Sum[T dlpack.Float](x dlpack.View[T]) T {
	var sum float64
	for v := range x.Values() {
		sum += float64(v)
	}
	return T(sum)
}

// BoxBlur is a new image in which each pixel is the mean of the pixels of x that are at most radius rows and columns away.
//
//dlferry:export
//dlferry:default radius=1
func BoxBlur(x dlpack.View[float32], radius int) (*exchange.Local, error) {
	if x.NDim() != 2 {
		return nil, fmt.Errorf("x has %d dimensions, want 2", x.NDim())
	}
	if radius < 0 {
		return nil, fmt.Errorf("radius is %d, want 0 or more", radius)
	}
	out, err := exchange.Empty(x.DType(), x.Shape()...)
	if err != nil {
		return nil, err
	}
	err = exchange.WithMutView(out, func(dst dlpack.MutView[float32]) error {
		to, err := dst.Data()
		if err != nil {
			return err
		}
		blur(to, x, radius)
		return nil
	})
	if err != nil {
		out.Release()
		return nil, err
	}
	return out, nil // whoever called BoxBlur releases it: here, dlferry
}

// blur sums along the rows, then sums those sums down the columns.
func blur(to []float32, x dlpack.View[float32], radius int) {
	height, width := int(x.Shape()[0]), int(x.Shape()[1])
	sums := make([]float64, height*width)
	row := make([]float32, 0, width)
	for i := range height {
		row = slices.AppendSeq(row[:0], x.Index(0, i).Values())
		for j := range width {
			from, end := window(j, width, radius)
			for _, v := range row[from:end] {
				sums[i*width+j] += float64(v)
			}
		}
	}
	column := make([]float64, width)
	for i := range height {
		clear(column)
		top, bottom := window(i, height, radius)
		for k := top; k < bottom; k++ {
			for j, v := range sums[k*width : (k+1)*width] {
				column[j] += v
			}
		}
		for j, v := range column {
			from, end := window(j, width, radius)
			to[i*width+j] = float32(v / float64((bottom-top)*(end-from)))
		}
	}
}

// window is the part of 0 to n that is at most radius away from i: from the first to before the second.
func window(i, n, radius int) (from, end int) {
	radius = min(radius, n)
	return max(i-radius, 0), min(i+radius+1, n)
}

// TopK is the k greatest elements of a vector, greatest first, and where they are. Of equal ones the first comes first; NaN is greater than all numbers.
//
//dlferry:export
func TopK(x dlpack.View[float32], k int) (values []float32, indices []int64, err error) {
	if x.NDim() != 1 {
		return nil, nil, fmt.Errorf("x has %d dimensions, want 1", x.NDim())
	}
	if k < 0 || k > x.Len() {
		return nil, nil, fmt.Errorf("k is %d, want 0 to %d as x has elements", k, x.Len())
	}
	best := make(least, 0, k)
	var i int64
	for v := range x.Values() {
		e := element{v, i}
		if len(best) < k {
			heap.Push(&best, e)
		} else if k > 0 && e.before(best[0]) {
			best[0] = e
			heap.Fix(&best, 0)
		}
		i++
	}
	values, indices = make([]float32, k), make([]int64, k)
	for at := k - 1; at >= 0; at-- {
		e := heap.Pop(&best).(element)
		values[at], indices[at] = e.value, e.index
	}
	return values, indices, nil
}

type element struct {
	value float32
	index int64
}

// before says whether e comes before other in the order of TopK.
func (e element) before(other element) bool {
	if nan := e.value != e.value; nan || other.value != other.value {
		return nan && (other.value == other.value || e.index < other.index)
	}
	return e.value > other.value || e.value == other.value && e.index < other.index
}

// least is a heap whose first element is the last one in the order of TopK.
type least []element

func (l least) Len() int           { return len(l) }
func (l least) Less(i, j int) bool { return l[j].before(l[i]) }
func (l least) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *least) Push(e any)        { *l = append(*l, e.(element)) }
func (l *least) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
