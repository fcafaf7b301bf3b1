package dlpack

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// MaxNDim is the largest number of axes that Validate accepts, the same as NumPy's.
const MaxNDim = 64

// Validate checks everything that can be checked about a description that came from elsewhere, without touching the data. With a nil error, every
// computation of this package on t fits in an int64, and every element lies at an address that the tensor describes. flags are those of the versioned
// managed tensor around it, 0 for a legacy one. The rules are applied last, in order.
//
// What is refused, by kind:
//
//	ErrNull       t is nil; Shape is 0 although NDim > 0; Data is 0 although there are elements
//	ErrShape      NDim below 0 or above MaxNDim; a negative extent
//	ErrOverflow   the extents other than 0, their bytes, a stride's reach or the last address do not fit in 64 bits, also when another extent is 0
//	ErrDType      no bits, no lanes, elements that do not end on a byte
//	ErrDevice     a device type below 1; a negative device number of a type that is not a host type
//	ErrOffset     ByteOffset above the largest int64, Data + ByteOffset beyond the last address, elements before the start of a buffer object
//	ErrAlignment  Shape or Strides is no address of int64 values
//
// Strides 0 means compact. An address that is wrong but looks right cannot be told.
func Validate(t *Tensor, flags Flags, rules ...Rule) error {
	_, err := validate("Validate", t, flags, rules)
	return err
}

// ValidateVersioned checks the version of a managed tensor before it reads any other field, then does what Validate does with its flags.
//
// ErrVersion: another major version, of which only the deleter may be used. ErrNull: m is nil. The other errors are those of Validate.
func ValidateVersioned(m *ManagedTensorVersioned, rules ...Rule) error {
	const op = "ValidateVersioned"
	if m == nil {
		return refuseNull(op, "managed tensor", "")
	}
	if !m.Version.Compatible() {
		return &Error{Op: op, Kind: KindVersion, Axis: NoAxis, Got: m.Version.String(), Want: strconv.Itoa(VersionMajor) + ".x",
			Hint: fmt.Sprintf("ask the producer for max_version=(%d, %d)", VersionMajor, VersionMinor)}
	}
	_, err := validate(op, &m.Tensor, m.Flags, rules)
	return err
}

// checked is what validate has learnt about a tensor; views are built from it.
type checked struct {
	shape, strides []int64 // in place; strides is nil for compact
	n              int64   // elements
	itemSize       int64
}

func refuseNull(op, thing, got string) error {
	return &Error{Op: op, Kind: KindNull, Thing: thing, Axis: NoAxis, Got: "NULL" + got, Want: "an address"}
}

func validate(op string, t *Tensor, flags Flags, rules []Rule) (c checked, err error) {
	if t == nil {
		return c, refuseNull(op, "tensor", "")
	}
	if t.NDim < 0 || t.NDim > MaxNDim {
		return c, &Error{Op: op, Kind: KindShape, Thing: "ndim", Axis: NoAxis, Got: strconv.Itoa(int(t.NDim)), Want: "0 to " + strconv.Itoa(MaxNDim)}
	}
	if t.NDim > 0 {
		if t.Shape == 0 {
			return c, refuseNull(op, "shape", " with ndim "+strconv.Itoa(int(t.NDim)))
		}
		if (t.Shape|t.Strides)%8 != 0 {
			return c, &Error{Op: op, Kind: KindAlignment, Thing: "shape and strides", Axis: NoAxis,
				Got: fmt.Sprintf("%#x and %#x", t.Shape, t.Strides), Want: "addresses that are multiples of 8"}
		}
		c.shape, c.strides = t.ShapeUnchecked(), t.StridesUnchecked()
	}
	if c.itemSize, err = t.DType.itemSize(op, flags); err != nil {
		return c, err
	}
	if err = checkDevice(op, t.Device); err != nil {
		return c, err
	}
	low, high, err := byteSpan(op, c.shape, c.strides, c.itemSize)
	if err != nil {
		return c, err
	}
	c.n = 1
	for _, extent := range c.shape {
		c.n *= extent
	}
	if t.Data == 0 && c.n > 0 {
		return c, refuseNull(op, "data", fmt.Sprintf(" with %d elements", c.n))
	}
	if err = checkAddresses(op, t, low, high); err != nil {
		return c, err
	}
	for _, rule := range rules {
		if err = rule(t, flags); err != nil {
			if e, ok := err.(*Error); ok && e.Op == "" {
				e.Op = op
			}
			return c, err
		}
	}
	return c, nil
}

func checkDevice(op string, d Device) error {
	if d.Type < 1 {
		return &Error{Op: op, Kind: KindDevice, Thing: "device type", Axis: NoAxis, Got: strconv.Itoa(int(d.Type)), Want: "1 or more"}
	}
	if d.ID < 0 && !d.IsHost() {
		return &Error{Op: op, Kind: KindDevice, Thing: "device number", Axis: NoAxis, Got: d.String(), Want: "0 or more"}
	}
	return nil
}

// checkAddresses checks the byte offset and where it and the span lead to.
func checkAddresses(op string, t *Tensor, low, high int64) error {
	offset := func(got, want string) error {
		return &Error{Op: op, Kind: KindOffset, Axis: NoAxis, Got: got, Want: want}
	}
	number := strconv.FormatUint(t.ByteOffset, 10)
	if t.ByteOffset > math.MaxInt64 {
		return offset(number, "at most 9223372036854775807")
	}
	_, highFits := add(int64(t.ByteOffset), high)
	lowFits := true
	if t.Device.Type.HasPointers() {
		first, carry := bits.Add64(uint64(t.Data), t.ByteOffset, 0)
		if carry != 0 {
			return offset(fmt.Sprintf("%s after data %#x", number, t.Data), "an address of 64 bits")
		}
		_, carry = bits.Add64(first, uint64(high), 0)
		highFits, lowFits = carry == 0, first >= magnitude(low)
	} else if t.Device.Type.hasHandles() && int64(t.ByteOffset)+low < 0 {
		return offset(number+" with elements that lie "+strconv.FormatInt(-low, 10)+" bytes before it", "elements inside the buffer")
	}
	if !highFits || !lowFits {
		return &Error{Op: op, Kind: KindOverflow, Thing: "memory", Axis: NoAxis,
			Got: fmt.Sprintf("bytes %d to %d around data %#x + %d", low, high, t.Data, t.ByteOffset), Want: "addresses of 64 bits"}
	}
	return nil
}

// Rule is a demand beyond validity, checked by Validate after everything else. Write one as a function that returns a new *Error; an empty Op becomes the
// name of the caller.
type Rule func(t *Tensor, flags Flags) error

// RequireHost demands memory that the CPU may touch; see DeviceType.IsHost. ErrDevice.
func RequireHost(t *Tensor, _ Flags) error {
	if t.Device.IsHost() {
		return nil
	}
	return &Error{Kind: KindDevice, Axis: NoAxis, Got: t.Device.String(), Want: "host memory", Hint: "copy the tensor to the cpu first"}
}

// RequireWritable demands that the data may be written to. ErrReadOnly.
func RequireWritable(_ *Tensor, flags Flags) error {
	if !flags.ReadOnly() {
		return nil
	}
	return &Error{Kind: KindReadOnly, Thing: "tensor", Axis: NoAxis, Got: "a read-only one", Want: "a writable one", Hint: "copy it first"}
}

// RequireAligned demands that the first element, and with it every one, lies at a multiple of DataType.Align. Importers do without and
// copy instead. Tensors without elements pass. ErrAlignment.
func RequireAligned(t *Tensor, _ Flags) error {
	align := uint64(t.DType.Align())
	first := uint64(t.Data) + t.ByteOffset
	if first%align == 0 || slices.Contains(t.ShapeUnchecked(), 0) {
		return nil
	}
	return &Error{Kind: KindAlignment, Thing: "data", Axis: NoAxis, Got: fmt.Sprintf("address %#x", first),
		Want: fmt.Sprintf("a multiple of %d for %s", align, t.DType), Hint: "copy the tensor first"}
}

// RequireContiguous demands IsContiguous. ErrLayout.
func RequireContiguous(t *Tensor, _ Flags) error {
	if IsContiguous(t.ShapeUnchecked(), t.StridesUnchecked()) {
		return nil
	}
	return &Error{Kind: KindLayout, Thing: "strides", Axis: NoAxis,
		Got:  fmt.Sprintf("%v for shape %v", t.StridesUnchecked(), t.ShapeUnchecked()),
		Want: "row-major without gaps", Hint: "make the tensor contiguous first"}
}

// RequireValues demands a type of which values can be read; see DataType.HasValues. ErrDType.
func RequireValues(t *Tensor, flags Flags) error {
	if t.DType.HasValues(flags) {
		return nil
	}
	return &Error{Kind: KindDType, Axis: NoAxis, Got: t.DType.describe(), Want: "a type with values"}
}

// RequireDType demands an element type. ErrDType.
func RequireDType(d DataType) Rule {
	return func(t *Tensor, flags Flags) error {
		if t.DType == d && (d.Bits >= 8 || !flags.SubbytePadded()) {
			return nil
		}
		got := t.DType.String()
		if t.DType == d {
			got += " padded to a byte a value"
		}
		return &Error{Kind: KindDType, Axis: NoAxis, Got: got, Want: d.String()}
	}
}

// RequireShape demands the number of axes and the extents; -1 stands for any extent. ErrShape.
func RequireShape(want ...int64) Rule {
	return func(t *Tensor, _ Flags) error {
		shape := t.ShapeUnchecked()
		if len(shape) != len(want) {
			return &Error{Kind: KindShape, Thing: "ndim", Axis: NoAxis, Got: strconv.Itoa(len(shape)), Want: strconv.Itoa(len(want))}
		}
		for k, w := range want {
			if w != -1 && shape[k] != w {
				return &Error{Kind: KindShape, Axis: k, Got: strconv.FormatInt(shape[k], 10), Want: strconv.FormatInt(w, 10)}
			}
		}
		return nil
	}
}

// StridesOrCompact is the tensor's strides, or those of a compact tensor when it has none: never in place, to keep. t must be valid.
func (t *Tensor) StridesOrCompact() []int64 {
	if strides := t.StridesUnchecked(); strides != nil {
		return slices.Clone(strides)
	}
	shape := t.ShapeUnchecked()
	strides := make([]int64, len(shape))
	fillCompact(strides, shape)
	return strides
}
