package dlpack

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// NumElements is the number of elements of a shape; 1 for no axes.
//
// The product of the extents that are not 0 must fit in an int64, also when another extent is 0: then every computation on the shape is safe, whatever
// order it multiplies in.
//
// ErrShape: a negative extent. ErrOverflow: too many elements.
func NumElements(shape []int64) (int64, error) {
	n, _, err := extents("NumElements", shape)
	return n, err
}

// NumBytes is the size of a compact tensor of this shape, with the rules of NumElements for the bytes. ErrValue: itemSize is negative.
func NumBytes(shape []int64, itemSize int64) (int64, error) {
	n, _, err := sizes("NumBytes", shape, itemSize)
	return n * itemSize, err
}

// CompactStrides is the row-major strides of a shape, in elements. An extent of 0 counts as 1, as NumPy has it, so that no stride is 0.
// The errors are those of NumElements.
func CompactStrides(shape []int64) ([]int64, error) {
	if _, _, err := extents("CompactStrides", shape); err != nil {
		return nil, err
	}
	strides := make([]int64, len(shape))
	fillCompact(strides, shape)
	return strides, nil
}

// fillCompact trusts the shape.
func fillCompact(strides, shape []int64) {
	step := int64(1)
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = step
		step *= max(shape[k], 1)
	}
}

// ByteSpan is where the elements of a tensor lie, in bytes relative to its first one: from low (0, or negative with negative strides) up to and without
// high. Both are 0 without elements. Strides nil means compact; the stride of an axis of extent 0 or 1 is never used.
//
// The arithmetic is done, and checked, also when an extent is 0, as NumElements does.
//
// ErrShape, ErrOverflow, ErrValue: as NumBytes. ErrStrides: as many strides as extents are wanted.
func ByteSpan(shape, strides []int64, itemSize int64) (low, high int64, err error) {
	return byteSpan("ByteSpan", shape, strides, itemSize)
}

func byteSpan(op string, shape, strides []int64, itemSize int64) (low, high int64, err error) {
	n, product, err := sizes(op, shape, itemSize)
	if err != nil {
		return 0, 0, err
	}
	if strides != nil && len(strides) != len(shape) {
		return 0, 0, &Error{Op: op, Kind: KindStrides, Axis: NoAxis, Got: strconv.Itoa(len(strides)) + " strides",
			Want: strconv.Itoa(len(shape)) + ", one an axis"}
	}
	if n == 0 {
		return 0, 0, nil // libraries differ in the strides of empty tensors, and nothing reads through them
	}
	if strides == nil {
		return 0, product, nil
	}
	high = itemSize
	for k, extent := range shape {
		if extent <= 1 {
			continue
		}
		step, ok := mul(strides[k], itemSize)
		if ok {
			step, ok = mul(step, extent-1)
		}
		if ok && step < 0 {
			low, ok = add(low, step)
		} else if ok {
			high, ok = add(high, step)
		}
		if !ok {
			return 0, 0, &Error{Op: op, Kind: KindOverflow, Thing: "stride", Axis: k,
				Got:  strconv.FormatInt(strides[k], 10) + " for an extent of " + strconv.FormatInt(extent, 10),
				Want: "byte offsets that fit in 64 bits"}
		}
	}
	return low, high, nil
}

// IsContiguous says whether the elements lie densely in row-major order. The strides of axes of extent 1 do not matter, nor do any when there are no
// elements. Strides nil means compact; false when the numbers of strides and extents differ.
func IsContiguous(shape, strides []int64) bool {
	if strides == nil {
		return true
	}
	if len(strides) != len(shape) {
		return false
	}
	if slices.Contains(shape, 0) {
		return true
	}
	want := int64(1)
	for k := len(shape) - 1; k >= 0; k-- {
		if shape[k] == 1 {
			continue
		}
		if strides[k] != want {
			return false
		}
		want *= shape[k]
	}
	return true
}

// SelfOverlaps says whether two different indices may meet the same element, as in a broadcast axis of stride 0. It answers true also for rare interleaved
// layouts in which no two do: false is certain. Strides nil means compact.
func SelfOverlaps(shape, strides []int64) bool {
	if IsContiguous(shape, strides) {
		return false
	}
	if len(strides) != len(shape) {
		return true
	}
	type axis struct{ step, extent uint64 }
	axes := make([]axis, 0, 8)
	for k, extent := range shape {
		if extent > 1 {
			axes = append(axes, axis{magnitude(strides[k]), uint64(extent)})
		}
	}
	slices.SortFunc(axes, func(a, b axis) int { return cmp.Compare(a.step, b.step) })
	// Each axis must step over everything that the smaller ones reach.
	reach := uint64(0)
	for _, a := range axes {
		if a.step <= reach {
			return true
		}
		over, more := bits.Mul64(a.step, a.extent-1)
		sum, carry := bits.Add64(reach, more, 0)
		if over != 0 || carry != 0 {
			return true
		}
		reach = sum
	}
	return false
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// extents checks a shape; product is the number of elements with extents of 0 left out.
func extents(op string, shape []int64) (n, product int64, err error) {
	product = 1
	empty := false
	for k, extent := range shape {
		if extent < 0 {
			return 0, 0, &Error{Op: op, Kind: KindShape, Axis: k, Got: strconv.FormatInt(extent, 10), Want: "0 or more"}
		}
		if extent == 0 {
			empty = true
			continue
		}
		next, ok := mul(product, extent)
		if !ok {
			return 0, 0, &Error{Op: op, Kind: KindOverflow, Thing: "shape", Axis: k, Got: strconv.FormatInt(extent, 10) + " times the " +
				strconv.FormatInt(product, 10) + " of the axes before", Want: "a number of elements that fits in 64 bits"}
		}
		product = next
	}
	if empty {
		return 0, product, nil
	}
	return product, product, nil
}

// sizes is extents with the product in bytes.
func sizes(op string, shape []int64, itemSize int64) (n, product int64, err error) {
	if itemSize < 0 {
		return 0, 0, &Error{Op: op, Kind: KindValue, Thing: "item size", Axis: NoAxis, Got: strconv.FormatInt(itemSize, 10), Want: "0 or more"}
	}
	n, product, err = extents(op, shape)
	if err != nil {
		return 0, 0, err
	}
	size, ok := mul(product, itemSize)
	if !ok {
		return 0, 0, &Error{Op: op, Kind: KindOverflow, Thing: "size", Axis: NoAxis, Got: strconv.FormatInt(product, 10) + " elements of " +
			strconv.FormatInt(itemSize, 10) + " bytes", Want: "a number of bytes that fits in 64 bits"}
	}
	return n, size, nil
}

// mul multiplies when the result fits. The most negative number counts as not fitting: nothing here can use it.
func mul(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high != 0 || low > math.MaxInt64 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(low), true
	}
	return int64(low), true
}

// add adds when the sum fits, as mul has it.
func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0) && sum != math.MinInt64
}
