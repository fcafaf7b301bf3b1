package dlpack_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/dlpack/dlpacktest"
)

// counting is 0, 1, 2, … as a tensor of a shape.
func counting(t *testing.T, shape ...int64) dlpack.MutView[int32] {
	t.Helper()
	n, err := dlpack.NumElements(shape)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]int32, n)
	for i := range data {
		data[i] = int32(i)
	}
	v, err := dlpack.NewMutView(data, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestViewReadsEveryLayoutOfATensor(t *testing.T) {
	data := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	at := func(x *dlpack.Tensor, i int) *dlpack.Tensor {
		x.Data = uintptr(unsafe.Pointer(&data[i]))
		return x
	}
	for _, c := range []struct {
		name string
		x    *dlpack.Tensor
		want []float32
	}{
		{"compact", floats(data, []int64{2, 3}, []int64{3, 1}), []float32{0, 1, 2, 3, 4, 5}},
		{"strides NULL", floats(data, []int64{2, 3}, nil), []float32{0, 1, 2, 3, 4, 5}},
		{"transposed", floats(data, []int64{3, 2}, []int64{1, 3}), []float32{0, 3, 1, 4, 2, 5}},
		{"negative", at(floats(data, []int64{2, 3}, []int64{-3, -1}), 11), []float32{11, 10, 9, 8, 7, 6}},
		{"broadcast", floats(data, []int64{2, 2}, []int64{0, 1}), []float32{0, 1, 0, 1}},
		{"gaps", floats(data, []int64{2, 2}, []int64{6, 2}), []float32{0, 2, 6, 8}},
		{"no axes", floats(data, nil, nil), []float32{0}},
		{"no elements", floats(data, []int64{2, 0}, nil), nil},
	} {
		v, err := dlpack.ViewOf[float32](c.x, dlpack.FlagReadOnly)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := slices.Collect(v.Values()); !slices.Equal(got, c.want) || v.Len() != len(c.want) {
			t.Errorf("%s: got %v (Len %d), want %v", c.name, got, v.Len(), c.want)
		}
		n := 0
		for index, x := range v.All() {
			if v.At(index...) != x {
				t.Errorf("%s: All says %v at %v, At %v", c.name, x, index, v.At(index...))
			}
			n++
		}
		if n != len(c.want) {
			t.Errorf("%s: All gave %d elements, want %d", c.name, n, len(c.want))
		}
		got, err := v.Data()
		if v.IsContiguous() != (err == nil) || err == nil && !slices.Equal(got, c.want) || err != nil && !errors.Is(err, dlpack.ErrLayout) {
			t.Errorf("%s: Data, got %v (%v)", c.name, got, err)
		}
	}
	x := floats(data, []int64{2}, nil)
	x.ByteOffset = 8
	if v, err := dlpack.ViewOf[float32](x, 0); err != nil || v.At(1) != 3 {
		t.Errorf("byte offset: got %v (%v)", v, err)
	}
	runtime.KeepAlive(data)
}

func TestViewKeepsItsOwnShape(t *testing.T) {
	shape, strides := []int64{2, 3}, []int64{3, 1}
	v, err := dlpack.ViewOf[float32](floats([]float32{0, 1, 2, 3, 4, 5}, shape, strides), 0)
	if err != nil {
		t.Fatal(err)
	}
	shape[0], strides[0] = 1<<40, 1<<40
	if e := panicOf(func() { v.At(2, 0) }); e == nil || v.At(1, 2) != 5 || v.Len() != 6 {
		t.Errorf("a producer changed its arrays, and the view with them: %v", v.Shape())
	}
}

func TestViewRefusals(t *testing.T) {
	data := make([]float32, 12)
	good := floats(data, []int64{2, 3}, []int64{3, 1})
	with := func(change func(*dlpack.Tensor)) *dlpack.Tensor {
		x := *good
		change(&x)
		return &x
	}
	for _, c := range []struct {
		name  string
		x     *dlpack.Tensor
		flags dlpack.Flags
		read  error
		write error
	}{
		{"good", good, 0, nil, nil},
		{"nil", nil, 0, dlpack.ErrNull, dlpack.ErrNull},
		{"another type", with(func(x *dlpack.Tensor) { x.DType = dlpack.DTypeInt32 }), 0, dlpack.ErrDType, dlpack.ErrDType},
		{"lanes", with(func(x *dlpack.Tensor) { x.DType.Lanes = 2 }), 0, dlpack.ErrDType, dlpack.ErrDType},
		{"a GPU", with(func(x *dlpack.Tensor) { x.Device.Type = dlpack.DeviceCUDA }), 0, dlpack.ErrDevice, dlpack.ErrDevice},
		{"managed memory", with(func(x *dlpack.Tensor) { x.Device.Type = dlpack.DeviceCUDAManaged }), 0, dlpack.ErrDevice, dlpack.ErrDevice},
		{"odd address", with(func(x *dlpack.Tensor) { x.ByteOffset = 1 }), 0, dlpack.ErrAlignment, dlpack.ErrAlignment},
		{"invalid", with(func(x *dlpack.Tensor) { x.NDim = -1 }), 0, dlpack.ErrShape, dlpack.ErrShape},
		{"read-only", good, dlpack.FlagReadOnly, nil, dlpack.ErrReadOnly},
		{"broadcast", floats(data, []int64{2, 3}, []int64{0, 1}), 0, nil, dlpack.ErrLayout},
		{"overlapping", floats(data, []int64{4, 3}, []int64{1, 1}), 0, nil, dlpack.ErrLayout},
	} {
		if _, err := dlpack.ViewOf[float32](c.x, c.flags); !errors.Is(err, c.read) {
			t.Errorf("%s: ViewOf, got %v, want %v", c.name, err, c.read)
		}
		if _, err := dlpack.MutViewOf[float32](c.x, c.flags); !errors.Is(err, c.write) {
			t.Errorf("%s: MutViewOf, got %v, want %v", c.name, err, c.write)
		}
	}
	for _, c := range []struct {
		shape []int64
		want  error
	}{
		{nil, nil}, {[]int64{12}, nil}, {[]int64{2, 3, 2}, nil}, {[]int64{5}, dlpack.ErrShape}, {[]int64{-12}, dlpack.ErrShape}, {[]int64{13}, dlpack.ErrShape},
		{[]int64{1 << 62, 1 << 62}, dlpack.ErrOverflow}, {append(slices.Repeat([]int64{1}, 64), 12), dlpack.ErrShape},
	} {
		if _, err := dlpack.NewView(data, c.shape...); !errors.Is(err, c.want) {
			t.Errorf("NewView %v: got %v, want %v", c.shape, err, c.want)
		}
		if _, err := dlpack.NewMutView(data, c.shape...); !errors.Is(err, c.want) {
			t.Errorf("NewMutView %v: got %v, want %v", c.shape, err, c.want)
		}
	}
	runtime.KeepAlive(data)
}

func TestIndicesAreChecked(t *testing.T) {
	v := counting(t, 2, 3)
	for name, f := range map[string]func(){
		"At(2, 0)": func() { v.At(2, 0) }, "At(0, 3)": func() { v.At(0, 3) }, "At(-1, 0)": func() { v.At(-1, 0) }, "At(0)": func() { v.At(0) }, "At()": func() { v.At() },
		"At(0, 0, 0)": func() { v.At(0, 0, 0) }, "Set(0, 5)": func() { v.Set(1, 0, 5) }, "At(MinInt)": func() { v.At(math.MinInt, 0) },
		"Index(2, 0)": func() { v.Index(2, 0) }, "Index(-1, 0)": func() { v.Index(-1, 0) }, "Index(0, 2)": func() { v.Index(0, 2) }, "Index(0, -1)": func() { v.Index(0, -1) },
		"Slice axis": func() { v.Slice(2, 0, 1, 1) }, "Slice step": func() { v.Slice(0, 0, 1, 0) }, "Slice start": func() { v.Slice(0, 3, 3, 1) },
		"Slice stop": func() { v.Slice(0, 0, 3, 1) }, "Slice negative": func() { v.Slice(0, -1, 2, 1) }, "Slice down": func() { v.Slice(0, 2, -1, -1) },
		"Slice down stop": func() { v.Slice(0, 1, -2, -1) }, "Permute short": func() { v.Permute(0) }, "Permute twice": func() { v.Permute(0, 0) },
		"Permute range": func() { v.Permute(0, 2) }, "Permute negative": func() { v.Permute(-1, 0) },
		"empty": func() { counting(t, 0, 3).At(0, 0) },
	} {
		if e := panicOf(f); e == nil || e.Kind != dlpack.KindValue {
			t.Errorf("%s: panics with %v, want an *Error of KindValue", name, e)
		}
	}
	e := panicOf(func() { v.At(1, 3) })
	if want := "index: index of axis 1, got 3, want 0 to 2"; e == nil || e.Error() != want {
		t.Errorf("got %q, want %q", e, want)
	}
	var zero dlpack.View[int32]
	if zero.Len() != 0 || len(slices.Collect(zero.Values())) != 0 {
		t.Error("the zero view has elements")
	}
}

// slicedIndices is what Slice takes, written down the slow way.
func slicedIndices(start, stop, step int) (out []int) {
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		out = append(out, i)
	}
	return out
}

func TestSliceTakesWhatALoopTakes(t *testing.T) {
	for n := range 6 {
		v := counting(t, int64(n), 2)
		for _, step := range []int{1, 2, 3, 7, -1, -2, -5} {
			low, high := 0, n
			if step < 0 {
				low, high = -1, n-1
			}
			for start := low; start <= high; start++ {
				for stop := low; stop <= high; stop++ {
					want := slicedIndices(start, stop, step)
					got := v.Slice(0, start, stop, step)
					if got.Shape()[0] != int64(len(want)) || got.Shape()[1] != 2 {
						t.Fatalf("n %d, %d:%d:%d: shape %v, want %d rows", n, start, stop, step, got.Shape(), len(want))
					}
					for k, i := range want {
						if got.At(k, 1) != v.At(i, 1) {
							t.Fatalf("n %d, %d:%d:%d: row %d is %d, want row %d", n, start, stop, step, k, got.At(k, 1), i)
						}
					}
				}
			}
		}
	}
	for _, step := range []int{math.MaxInt, math.MinInt} {
		v := counting(t, 4)
		start, stop := 3, -1
		if step > 0 {
			start, stop = 0, 4
		}
		if got := v.Slice(0, start, stop, step); got.Len() != 1 || got.At(0) != int32(start) {
			t.Errorf("step %d: got %d elements", step, got.Len())
		}
	}
}

// Without elements the start of a slice may lie behind the memory, where a pointer would be somebody else's; of one element the stride does not matter.
func TestSliceMakesNoPointerBehindTheMemory(t *testing.T) {
	a := counting(t, 4).Any()
	if got := a.Slice(0, 4, 4, 1); got.Len() != 0 || got.Pointer() != a.Pointer() {
		t.Errorf("an empty slice points to %p, want the start %p", got.Pointer(), a.Pointer())
	}
	if got := a.Slice(0, 1, 4, math.MaxInt); got.Strides()[0] != 1 || got.Len() != 1 {
		t.Errorf("strides %v, want [1]", got.Strides())
	}
}

func TestViewsOfViews(t *testing.T) {
	v := counting(t, 2, 3, 4)
	p := v.Permute(2, 0, 1)
	if !slices.Equal(p.Shape(), []int64{4, 2, 3}) || p.At(3, 1, 2) != v.At(1, 2, 3) || p.IsContiguous() {
		t.Errorf("Permute: shape %v", p.Shape())
	}
	row := v.Index(0, 1).Index(0, 2)
	if got, err := row.Data(); err != nil || !slices.Equal(got, []int32{20, 21, 22, 23}) || row.NDim() != 1 {
		t.Errorf("Index: got %v (%v)", got, err)
	}
	if got := row.Index(0, 3); got.NDim() != 0 || got.Len() != 1 || got.At() != 23 {
		t.Errorf("Index to no axes: got %v", got)
	}
	row.Fill(-1)
	v.Slice(2, 3, -1, -3).Set(-2, 0, 0, 1)
	if v.At(1, 2, 0) != -1 || v.At(0, 0, 0) != -2 || v.View().At(1, 1, 3) != 19 {
		t.Error("what was written through a part is not seen in the whole")
	}
	if e := counting(t, 0, 3).Index(1, 2); e.Len() != 0 {
		t.Errorf("Index of an empty view: %v", e.Shape())
	}
	for range v.All() {
		break // a loop that stops early must stop
	}
}

func TestAnyViewGetsItsTypeBack(t *testing.T) {
	v := counting(t, 2, 3)
	a := v.Any()
	if a.DType() != dlpack.DTypeInt32 || a.ItemSize() != 4 || a.ReadOnly() || !a.HasValues() || a.Pointer() == nil {
		t.Errorf("Any: %v, %d bytes", a.DType(), a.ItemSize())
	}
	m, err := dlpack.AsMutView[int32](a.Permute(1, 0).Slice(0, 2, -1, -1).Index(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	m.Set(77, 0)
	if v.At(1, 2) != 77 {
		t.Errorf("got %d, want 77", v.At(1, 2))
	}
	if data, err := a.Bytes(); err != nil || len(data) != 24 || data[20] != 77 {
		t.Errorf("Bytes: got %v (%v)", data, err)
	}
	if _, err := a.Permute(1, 0).Bytes(); !errors.Is(err, dlpack.ErrLayout) {
		t.Errorf("Bytes of a transposed view: got %v, want ErrLayout", err)
	}
	if data, err := a.Slice(0, 0, 0, 1).Bytes(); err != nil || data == nil || len(data) != 0 {
		t.Errorf("Bytes of an empty view: got %v (%v)", data, err)
	}
	if _, err := dlpack.AsView[float32](a); !errors.Is(err, dlpack.ErrDType) {
		t.Errorf("another type: got %v, want ErrDType", err)
	}
	if _, err := dlpack.AsMutView[float32](a); !errors.Is(err, dlpack.ErrDType) {
		t.Errorf("another type: got %v, want ErrDType", err)
	}
	if _, err := dlpack.AsMutView[int32](v.View().Any()); !errors.Is(err, dlpack.ErrReadOnly) {
		t.Errorf("read-only: got %v, want ErrReadOnly", err)
	}
	data := make([]float32, 8)
	odd := floats(data, []int64{2}, nil)
	odd.ByteOffset = 1
	o, err := dlpack.AnyViewOf(odd, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dlpack.AsView[float32](o); !errors.Is(err, dlpack.ErrAlignment) {
		t.Errorf("odd address: got %v, want ErrAlignment", err)
	}
	b, err := dlpack.AnyViewOf(floats(data, []int64{2}, []int64{0}), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dlpack.AsMutView[float32](b); !errors.Is(err, dlpack.ErrLayout) {
		t.Errorf("broadcast: got %v, want ErrLayout", err)
	}
	opaque := floats(data, []int64{2}, nil)
	opaque.DType = dlpack.DataType{Code: 99, Bits: 24, Lanes: 1}
	q, err := dlpack.AnyViewOf(opaque, 0)
	if raw, err2 := q.Bytes(); err != nil || err2 != nil || q.HasValues() || q.ItemSize() != 3 || len(raw) != 6 {
		t.Errorf("opaque: %d bytes an element, %d in all (%v, %v)", q.ItemSize(), len(raw), err, err2)
	}
	runtime.KeepAlive(data)
}

// sizesAgree says whether the Go type T is as large as its element type says, and needs no more alignment.
func sizesAgree[T dlpack.Element](t *testing.T, seen map[dlpack.DataType]bool) {
	t.Helper()
	var zero T
	d := dlpack.DTypeOf[T]()
	size, err := d.ItemSize(0)
	if err != nil || size != int64(unsafe.Sizeof(zero)) || d.Align() != int64(unsafe.Alignof(zero)) {
		t.Errorf("%T: %v has %d bytes (%v) at %d, Go %d at %d", zero, d, size, err, d.Align(), unsafe.Sizeof(zero), unsafe.Alignof(zero))
	}
	v, err := dlpack.NewMutView(make([]T, 3))
	if err != nil {
		t.Fatal(err)
	}
	if v.DType() != d || v.At(2) != zero || v.Any().DType() != d {
		t.Errorf("%T: view of %v", zero, v.DType())
	}
	if back, err := dlpack.AsView[T](v.Any()); err != nil || back.Len() != 3 {
		t.Errorf("%T: %v", zero, err)
	}
	seen[d] = true
}

func TestEveryTypeWithValuesHasAGoType(t *testing.T) {
	seen := map[dlpack.DataType]bool{}
	sizesAgree[bool](t, seen)
	sizesAgree[dlpack.Bool](t, seen)
	sizesAgree[int8](t, seen)
	sizesAgree[int16](t, seen)
	sizesAgree[int32](t, seen)
	sizesAgree[int64](t, seen)
	sizesAgree[uint8](t, seen)
	sizesAgree[uint16](t, seen)
	sizesAgree[uint32](t, seen)
	sizesAgree[uint64](t, seen)
	sizesAgree[float32](t, seen)
	sizesAgree[float64](t, seen)
	sizesAgree[complex64](t, seen)
	sizesAgree[complex128](t, seen)
	sizesAgree[dlpack.Complex32](t, seen)
	sizesAgree[dlpack.Float16](t, seen)
	sizesAgree[dlpack.BFloat16](t, seen)
	sizesAgree[dlpack.Float8E3M4](t, seen)
	sizesAgree[dlpack.Float8E4M3](t, seen)
	sizesAgree[dlpack.Float8E4M3B11FNUZ](t, seen)
	sizesAgree[dlpack.Float8E4M3FN](t, seen)
	sizesAgree[dlpack.Float8E4M3FNUZ](t, seen)
	sizesAgree[dlpack.Float8E5M2](t, seen)
	sizesAgree[dlpack.Float8E5M2FNUZ](t, seen)
	sizesAgree[dlpack.Float8E8M0FNU](t, seen)
	sizesAgree[dlpack.Float4E2M1FNx2](t, seen)
	for _, d := range dlpacktest.Types() {
		if !seen[d] {
			t.Errorf("%v has values, but no Go type", d)
		}
	}
}

func TestAccessDoesNotAllocate(t *testing.T) {
	v := counting(t, 1, 2, 1, 2, 1, 2, 1, 2)
	m := counting(t, 2, 3)
	sum := int32(0)
	if n := testing.AllocsPerRun(100, func() {
		sum += v.At(0, 1, 0, 1, 0, 1, 0, 1) + m.At(1, 2)
		v.Set(sum, 0, 1, 0, 0, 0, 1, 0, 1)
		m.Set(sum, 0, 1)
	}); n != 0 {
		t.Errorf("At and Set: %v allocations, want none", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		for x := range m.Values() {
			sum += x
		}
	}); n > 1 {
		t.Errorf("Values: %v allocations, want at most 1", n)
	}
	x := floats(make([]float32, 6), []int64{2, 3}, []int64{3, 1})
	if n := testing.AllocsPerRun(100, func() {
		if _, err := dlpack.ViewOf[float32](x, 0); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("ViewOf: %v allocations, want at most 1", n)
	}
}

// A view of Go memory keeps it: the collector may run at any time.
func TestViewsOfSlicesSurviveCollections(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var views []dlpack.View[int32]
	for i := range 200 {
		v := counting(t, 50, 20).View().Slice(0, 49, -1, -1).Permute(1, 0)
		views = append(views, v)
		if i%50 == 0 {
			runtime.GC()
		}
	}
	runtime.GC()
	for _, v := range views {
		i, j := r.IntN(20), r.IntN(50)
		if got, want := v.At(i, j), int32((49-j)*20+i); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

func BenchmarkViewOf(b *testing.B) {
	x := floats(make([]float32, 6), []int64{2, 3}, []int64{3, 1})
	for b.Loop() {
		if _, err := dlpack.ViewOf[float32](x, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	x := floats(make([]float32, 6), []int64{2, 3}, []int64{3, 1})
	for b.Loop() {
		if err := dlpack.Validate(x, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	v, err := dlpack.NewView(make([]float32, 6), 2, 3)
	if err != nil {
		b.Fatal(err)
	}
	sum := float32(0)
	for b.Loop() {
		sum += v.At(1, 2)
	}
	runtime.KeepAlive(sum)
}
