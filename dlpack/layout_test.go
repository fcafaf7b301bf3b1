package dlpack_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

func TestCompactStrides(t *testing.T) {
	for _, c := range []struct{ shape, want []int64 }{
		{nil, []int64{}}, {[]int64{5}, []int64{1}}, {[]int64{2, 3, 4}, []int64{12, 4, 1}}, {[]int64{2, 0, 4}, []int64{4, 4, 1}}, {[]int64{1, 1}, []int64{1, 1}},
	} {
		got, err := dlpack.CompactStrides(c.shape)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v (%v), want %v", c.shape, got, err, c.want)
		}
		if !dlpack.IsContiguous(c.shape, got) {
			t.Errorf("%v: its compact strides %v are not contiguous", c.shape, got)
		}
	}
}

func TestSizesAreChecked(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		item  int64
		n     int64
		want  error
		axis  int
	}{
		{nil, 4, 1, nil, 0},
		{[]int64{2, 3}, 4, 6, nil, 0},
		{[]int64{2, 0, 3}, 4, 0, nil, 0},
		{[]int64{math.MaxInt64}, 1, math.MaxInt64, nil, 0},
		{[]int64{math.MaxInt64}, 2, 0, dlpack.ErrOverflow, dlpack.NoAxis},
		{[]int64{0, 1 << 62, 1 << 62}, 1, 0, dlpack.ErrOverflow, 2},
		{[]int64{1 << 62, 0}, 4, 0, dlpack.ErrOverflow, dlpack.NoAxis},
		{[]int64{2, -1}, 1, 0, dlpack.ErrShape, 1},
		{[]int64{0, math.MinInt64}, 1, 0, dlpack.ErrShape, 1},
		{[]int64{1}, -1, 0, dlpack.ErrValue, dlpack.NoAxis},
	} {
		size, err := dlpack.NumBytes(c.shape, c.item)
		if !errors.Is(err, c.want) || err == nil && size != c.n*c.item {
			t.Errorf("NumBytes(%v, %d): got %d (%v), want %d (%v)", c.shape, c.item, size, err, c.n*c.item, c.want)
		}
		var e *dlpack.Error
		if errors.As(err, &e) && e.Axis != c.axis {
			t.Errorf("NumBytes(%v, %d): axis %d, want %d", c.shape, c.item, e.Axis, c.axis)
		}
	}
	if n, err := dlpack.NumElements([]int64{7, 0}); n != 0 || err != nil {
		t.Errorf("NumElements: got %d (%v)", n, err)
	}
}

// slowSpan is ByteSpan in big integers, one element at a time where there are few.
func slowSpan(shape, strides []int64, item int64) (low, high *big.Int, fits bool) {
	product, n := big.NewInt(item), big.NewInt(1)
	for _, extent := range shape {
		n.Mul(n, big.NewInt(extent))
		if extent != 0 {
			product.Mul(product, big.NewInt(extent))
		}
	}
	if n.Sign() == 0 {
		return new(big.Int), new(big.Int), product.IsInt64()
	}
	low, high = new(big.Int), big.NewInt(item)
	for k, extent := range shape {
		if extent > 1 {
			step := new(big.Int).Mul(big.NewInt(strides[k]), big.NewInt(item))
			step.Mul(step, big.NewInt(extent-1))
			if step.Sign() < 0 {
				low.Add(low, step)
			} else {
				high.Add(high, step)
			}
		}
	}
	// -2^63 counts as not fitting: its magnitude does not.
	fits = product.IsInt64() && new(big.Int).Neg(low).IsInt64() && high.IsInt64()
	return low, high, fits
}

func TestByteSpanAgreesWithBigIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() int64 {
		switch r.IntN(4) {
		case 0:
			return int64(r.IntN(5))
		case 1:
			return 1 << r.IntN(63)
		case 2:
			return int64(r.Uint64() >> (1 + r.IntN(63)))
		}
		return int64(r.IntN(1000))
	}
	fitting := 0
	for range 200_000 {
		shape := make([]int64, r.IntN(5))
		strides := make([]int64, len(shape))
		for k := range shape {
			shape[k], strides[k] = number(), number()
			if r.IntN(2) == 0 {
				strides[k] = -strides[k]
			}
		}
		item := int64(1 + r.IntN(16))
		low, high, err := dlpack.ByteSpan(shape, strides, item)
		wantLow, wantHigh, fits := slowSpan(shape, strides, item)
		if fits != (err == nil) {
			t.Fatalf("%v strides %v item %d: got error %v, want fits %t", shape, strides, item, err, fits)
		}
		if fits {
			fitting++
			if low != wantLow.Int64() || high != wantHigh.Int64() {
				t.Fatalf("%v strides %v item %d: got %d to %d, want %v to %v", shape, strides, item, low, high, wantLow, wantHigh)
			}
		}
	}
	if fitting < 20_000 {
		t.Errorf("only %d layouts fit: the numbers are badly chosen", fitting)
	}
}

func TestByteSpanSpecialCases(t *testing.T) {
	for _, c := range []struct {
		shape, strides []int64
		item           int64
		low, high      int64
	}{
		{nil, nil, 4, 0, 4},
		{[]int64{3}, nil, 4, 0, 12},
		{[]int64{0}, nil, 4, 0, 0},
		{[]int64{2, 3}, []int64{-3, -1}, 4, -20, 4},
		{[]int64{1}, []int64{math.MinInt64}, 8, 0, 8},
		{[]int64{0}, []int64{math.MaxInt64}, 8, 0, 0},
		{[]int64{5}, []int64{0}, 8, 0, 8},
	} {
		low, high, err := dlpack.ByteSpan(c.shape, c.strides, c.item)
		if low != c.low || high != c.high || err != nil {
			t.Errorf("%v strides %v: got %d to %d (%v), want %d to %d", c.shape, c.strides, low, high, err, c.low, c.high)
		}
	}
	if _, _, err := dlpack.ByteSpan([]int64{2, 3}, []int64{1}, 4); !errors.Is(err, dlpack.ErrStrides) {
		t.Errorf("too few strides: got %v, want ErrStrides", err)
	}
}

func TestContiguityIgnoresWhatIsNeverUsed(t *testing.T) {
	for _, c := range []struct {
		shape, strides []int64
		want           bool
	}{
		{nil, []int64{}, true}, {[]int64{2, 3}, nil, true}, {[]int64{2, 3}, []int64{3, 1}, true}, {[]int64{2, 3}, []int64{1, 2}, false},
		{[]int64{2, 1, 3}, []int64{3, 99, 1}, true}, {[]int64{1, 3}, []int64{-7, 1}, true}, {[]int64{0, 3}, []int64{5, 5}, true}, {[]int64{3}, []int64{2}, false},
		{[]int64{3}, []int64{-1}, false}, {[]int64{2, 3}, []int64{1}, false}, {[]int64{4}, []int64{0}, false},
	} {
		if got := dlpack.IsContiguous(c.shape, c.strides); got != c.want {
			t.Errorf("%v strides %v: got %t, want %t", c.shape, c.strides, got, c.want)
		}
	}
}

func TestSelfOverlapIsNeverMissed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	distinct, exact := 0, 0
	for range 50_000 {
		shape := make([]int64, 1+r.IntN(3))
		strides := make([]int64, len(shape))
		for k := range shape {
			shape[k], strides[k] = int64(r.IntN(4)), int64(r.IntN(21)-10)
		}
		seen, twice := map[int64]bool{}, false
		var walk func(axis int, at int64)
		walk = func(axis int, at int64) {
			if axis == len(shape) {
				twice = twice || seen[at]
				seen[at] = true
				return
			}
			for i := range shape[axis] {
				walk(axis+1, at+i*strides[axis])
			}
		}
		walk(0, 0)
		got := dlpack.SelfOverlaps(shape, strides)
		if twice && !got {
			t.Fatalf("%v strides %v: an overlap was missed", shape, strides)
		}
		if !twice {
			distinct++
			if !got {
				exact++
			}
		}
	}
	if exact*10 < distinct*5 {
		t.Errorf("of %d layouts without overlap only %d were seen to be so", distinct, exact)
	}
	if !dlpack.SelfOverlaps([]int64{2}, []int64{1, 1}) || dlpack.SelfOverlaps([]int64{2}, nil) {
		t.Error("strides that do not match the shape, or are nil")
	}
	if !dlpack.SelfOverlaps([]int64{math.MaxInt64, math.MaxInt64}, []int64{math.MinInt64, 2}) {
		t.Error("strides whose reach overflows")
	}
}
