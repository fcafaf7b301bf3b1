package dlpack

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"
)

// grid is what every kind of view is made of: the first element and the layout around it, in memory of our own, so that a producer that changes
// its arrays later changes nothing here.
type grid struct {
	data           unsafe.Pointer
	shape, strides []int64
}

// newGrid keeps the slices' contents, not the slices. strides may be nil.
func newGrid(data unsafe.Pointer, shape, strides []int64) grid {
	ndim := len(shape)
	dims := make([]int64, 2*ndim)
	g := grid{data, dims[:ndim:ndim], dims[ndim:]}
	copy(g.shape, shape)
	if strides != nil {
		copy(g.strides, strides)
	} else {
		fillCompact(g.strides, shape)
	}
	return g
}

// gridOf validates t and makes a grid of it. The caller has to look at the type.
func gridOf(op string, t *Tensor, flags Flags, rules ...Rule) (grid, error) {
	c, err := validate(op, t, flags, rules)
	if err != nil {
		return grid{}, err
	}
	var data unsafe.Pointer // stays nil without elements: the address may be anything then, and the garbage collector looks at it
	if c.n > 0 {
		data = pointer(t.Data + uintptr(t.ByteOffset))
	}
	return newGrid(data, c.shape, c.strides), nil
}

// trust is gridOf without a look and without a copy. Into a place: a grid that is handed on by value is copied each time, in pieces that the processor waits for.
func (g *grid) trust(t *Tensor) {
	data := pointer(t.Data + uintptr(t.ByteOffset))
	if t.NDim == 0 {
		g.data, g.shape, g.strides = data, []int64{}, []int64{}
		return
	}
	shape := unsafe.Slice((*int64)(pointer(t.Shape)), uint(t.NDim))
	for _, extent := range shape {
		if extent == 0 { // the address may be anything then
			data = nil
		}
	}
	g.data, g.shape, g.strides = data, shape, unsafe.Slice((*int64)(pointer(t.Strides)), uint(t.NDim))
}

// gridOverSlice checks a shape against the length of a Go slice.
func gridOverSlice(op string, data unsafe.Pointer, length int, itemSize int64, shape []int64) (grid, error) {
	if len(shape) == 0 {
		return newGrid(data, []int64{int64(length)}, nil), nil
	}
	if len(shape) > MaxNDim {
		return grid{}, &Error{Op: op, Kind: KindShape, Thing: "ndim", Axis: NoAxis, Got: strconv.Itoa(len(shape)), Want: "at most " + strconv.Itoa(MaxNDim)}
	}
	n, _, err := sizes(op, shape, itemSize)
	if err != nil {
		return grid{}, err
	}
	if n != int64(length) {
		return grid{}, &Error{Op: op, Kind: KindShape, Axis: NoAxis, Got: fmt.Sprintf("%v, of %d elements", shape, n),
			Want: fmt.Sprintf("%d elements, the length of the slice", length)}
	}
	return newGrid(data, shape, nil), nil
}

// NDim is the number of axes.
func (g grid) NDim() int { return len(g.shape) }

// Shape is the extents, to read.
func (g grid) Shape() []int64 { return g.shape }

// Strides is the strides in elements, to read.
func (g grid) Strides() []int64 { return g.strides }

// Len is the number of elements. The zero view has none.
func (g grid) Len() int {
	if g.shape == nil {
		return 0
	}
	n := 1
	for _, extent := range g.shape {
		n *= int(extent)
	}
	return n
}

// IsContiguous says whether the elements lie densely in row-major order.
func (g grid) IsContiguous() bool { return IsContiguous(g.shape, g.strides) }

// offsetOf is where an element lies, in elements from the first.
func offsetOf(shape, strides []int64, index []int) int {
	if len(index) != len(shape) || len(index) > len(strides) {
		panicNDim(len(index), len(shape))
	}
	at := 0
	for k, i := range index {
		if uint64(i) >= uint64(shape[k]) {
			panicIndex(k, i, shape[k])
		}
		at += i * int(strides[k])
	}
	return at
}

//go:noinline
func panicNDim(got, want int) {
	panic(&Error{Op: "index", Kind: KindValue, Thing: "number of indices", Axis: NoAxis, Got: strconv.Itoa(got), Want: strconv.Itoa(want) + ", one an axis"})
}

//go:noinline
func panicIndex(axis, got int, extent int64) {
	want := "0 to " + strconv.FormatInt(extent-1, 10)
	if extent == 0 {
		want = "none: the axis is empty"
	}
	panic(&Error{Op: "index", Kind: KindValue, Thing: "index", Axis: axis, Got: strconv.Itoa(got), Want: want})
}

func (g grid) checkAxis(op string, axis int) {
	if uint(axis) >= uint(len(g.shape)) {
		panic(&Error{Op: op, Kind: KindValue, Thing: "axis", Axis: NoAxis, Got: strconv.Itoa(axis), Want: fmt.Sprintf("below the number of axes, %d", len(g.shape))})
	}
}

// slice takes every step-th element of an axis, from start until stop is reached.
func (g grid) slice(axis, start, stop, step int, itemSize int64) grid {
	const op = "Slice"
	g.checkAxis(op, axis)
	refuse := func(thing string, got int, want string) {
		panic(&Error{Op: op, Kind: KindValue, Thing: thing, Axis: axis, Got: strconv.Itoa(got), Want: want})
	}
	extent := int(g.shape[axis])
	low, high := 0, extent // the range of both ends
	if step < 0 {
		low, high = -1, extent-1
	}
	number := 0
	switch {
	case step == 0:
		refuse("step", step, "another number")
	case start < low || start > high:
		refuse("start", start, fmt.Sprintf("%d to %d", low, high))
	case stop < low || stop > high:
		refuse("stop", stop, fmt.Sprintf("%d to %d", low, high))
	case step > 0 && start < stop:
		number = int((uint64(stop-start)-1)/uint64(step)) + 1
	case step < 0 && start > stop:
		number = int((uint64(start-stop)-1)/magnitude(int64(step))) + 1
	}
	out := newGrid(g.data, g.shape, g.strides)
	out.shape[axis] = int64(number)
	if number > 1 {
		out.strides[axis] *= int64(step)
	}
	if out.Len() > 0 { // otherwise the start may lie outside the memory
		out.data = unsafe.Add(g.data, int64(start)*g.strides[axis]*itemSize)
	}
	return out
}

// index fixes one axis at i.
func (g grid) index(axis, i int, itemSize int64) grid {
	g.checkAxis("Index", axis)
	if uint64(i) >= uint64(g.shape[axis]) {
		panicIndex(axis, i, g.shape[axis])
	}
	data := g.data
	if g.Len() > 0 {
		data = unsafe.Add(data, int64(i)*g.strides[axis]*itemSize)
	}
	return newGrid(data, slices.Delete(slices.Clone(g.shape), axis, axis+1), slices.Delete(slices.Clone(g.strides), axis, axis+1))
}

// permute orders the axes anew.
func (g grid) permute(axes []int) grid {
	const op = "Permute"
	if len(axes) != len(g.shape) {
		panic(&Error{Op: op, Kind: KindValue, Thing: "number of axes", Axis: NoAxis, Got: strconv.Itoa(len(axes)), Want: strconv.Itoa(len(g.shape))})
	}
	out := newGrid(g.data, g.shape, g.strides)
	seen := uint64(0)
	for k, axis := range axes {
		g.checkAxis(op, axis)
		if seen&(1<<axis) != 0 {
			panic(&Error{Op: op, Kind: KindValue, Thing: "axes", Axis: NoAxis, Got: fmt.Sprintf("%v", axes), Want: "every axis once"})
		}
		seen |= 1 << axis
		out.shape[k], out.strides[k] = g.shape[axis], g.strides[axis]
	}
	return out
}

// each calls yield with the index and the offset in elements of every element in row-major order, until it answers false. The index is reused.
func (g grid) each(yield func(index []int, offset int) bool) {
	if g.Len() == 0 {
		return
	}
	index := make([]int, len(g.shape))
	for offset := 0; yield(index, offset); {
		k := len(index) - 1
		for ; k >= 0; k-- {
			index[k]++
			offset += int(g.strides[k])
			if int64(index[k]) < g.shape[k] {
				break
			}
			offset -= index[k] * int(g.strides[k])
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// notContiguous is the error of those that need a Go slice.
func (g grid) notContiguous(op string) error {
	return &Error{Op: op, Kind: KindLayout, Thing: "strides", Axis: NoAxis, Got: fmt.Sprintf("%v for shape %v", g.strides, g.shape),
		Want: "row-major without gaps", Hint: "use At or All, or make the tensor contiguous first"}
}
