package dlpack

import (
	"fmt"
	"strconv"
	"strings"
)

// The element types whose values this module reads and writes.
var (
	DTypeBool              = DataType{CodeBool, 8, 1}
	DTypeInt8              = DataType{CodeInt, 8, 1}
	DTypeInt16             = DataType{CodeInt, 16, 1}
	DTypeInt32             = DataType{CodeInt, 32, 1}
	DTypeInt64             = DataType{CodeInt, 64, 1}
	DTypeUint8             = DataType{CodeUint, 8, 1}
	DTypeUint16            = DataType{CodeUint, 16, 1}
	DTypeUint32            = DataType{CodeUint, 32, 1}
	DTypeUint64            = DataType{CodeUint, 64, 1}
	DTypeFloat16           = DataType{CodeFloat, 16, 1}
	DTypeFloat32           = DataType{CodeFloat, 32, 1}
	DTypeFloat64           = DataType{CodeFloat, 64, 1}
	DTypeBFloat16          = DataType{CodeBFloat, 16, 1}
	DTypeComplex32         = DataType{CodeComplex, 32, 1}
	DTypeComplex64         = DataType{CodeComplex, 64, 1}
	DTypeComplex128        = DataType{CodeComplex, 128, 1}
	DTypeFloat8E3M4        = DataType{CodeFloat8E3M4, 8, 1}
	DTypeFloat8E4M3        = DataType{CodeFloat8E4M3, 8, 1}
	DTypeFloat8E4M3B11FNUZ = DataType{CodeFloat8E4M3B11FNUZ, 8, 1}
	DTypeFloat8E4M3FN      = DataType{CodeFloat8E4M3FN, 8, 1}
	DTypeFloat8E4M3FNUZ    = DataType{CodeFloat8E4M3FNUZ, 8, 1}
	DTypeFloat8E5M2        = DataType{CodeFloat8E5M2, 8, 1}
	DTypeFloat8E5M2FNUZ    = DataType{CodeFloat8E5M2FNUZ, 8, 1}
	DTypeFloat8E8M0FNU     = DataType{CodeFloat8E8M0FNU, 8, 1}
	// DTypeFloat4E2M1FNx2 is two 4-bit floats in a byte, the first in the low half: what torch calls float4_e2m1fn_x2.
	DTypeFloat4E2M1FNx2 = DataType{CodeFloat4E2M1FN, 4, 2}
)

// Known says whether the module reads and writes values of this type; the list is the DType variables of this package. Other types whose elements are
// whole bytes are Opaque: carried, but without values.
func (d DataType) Known() bool {
	if d == DTypeFloat4E2M1FNx2 {
		return true
	}
	if d.Lanes != 1 {
		return false
	}
	switch d.Code {
	case CodeBool:
		return d.Bits == 8
	case CodeInt, CodeUint:
		return d.Bits == 8 || d.Bits == 16 || d.Bits == 32 || d.Bits == 64
	case CodeFloat:
		return d.Bits == 16 || d.Bits == 32 || d.Bits == 64
	case CodeBFloat:
		return d.Bits == 16
	case CodeComplex:
		return d.Bits == 32 || d.Bits == 64 || d.Bits == 128
	}
	return d.Code >= CodeFloat8E3M4 && d.Code <= CodeFloat8E8M0FNU && d.Bits == 8
}

// HasValues is Known for tensors with the given flags: FlagSubbytePadded changes how values of less than 8 bits lie in memory, and no such layout is read here.
func (d DataType) HasValues(flags Flags) bool {
	return d.Known() && (d.Bits >= 8 || !flags.SubbytePadded())
}

// Opaque says whether elements of this type are carried without values under the given flags.
func (d DataType) Opaque(flags Flags) bool {
	_, err := d.ItemSize(flags)
	return err == nil && !d.HasValues(flags)
}

// ItemSize is the size of an element in bytes, all lanes together. With FlagSubbytePadded every value of less than 8 bits takes a byte.
//
// ErrDType: no bits, no lanes, or elements that do not end on a byte.
func (d DataType) ItemSize(flags Flags) (int64, error) {
	return d.itemSize("ItemSize", flags)
}

func (d DataType) itemSize(op string, flags Flags) (int64, error) {
	refuse := func(want, hint string) error {
		return &Error{Op: op, Kind: KindDType, Axis: NoAxis, Got: d.describe(), Want: want, Hint: hint}
	}
	switch bits := int64(d.Bits) * int64(d.Lanes); {
	case d.Bits == 0:
		return 0, refuse("at least 1 bit", "")
	case d.Lanes == 0:
		return 0, refuse("at least 1 lane", "")
	case d.Bits < 8 && flags.SubbytePadded():
		return int64(d.Lanes), nil
	case bits%8 != 0:
		return 0, refuse("elements of whole bytes", "unpack the values to a byte each, or view them in groups that fill bytes")
	default:
		return bits / 8, nil
	}
}

// Align is the alignment that the values of an element need in memory, in bytes: that of one lane, and of one part for complex numbers. It is the largest
// power of two that divides the size of a lane, at most 16, and 1 for lanes smaller than a byte.
func (d DataType) Align() int64 {
	bits := int64(d.Bits)
	if d.Code == CodeComplex || d.Code == CodeBComplex {
		bits /= 2
	}
	align := int64(1)
	for align < 16 && bits > 8*align && bits%(16*align) == 0 {
		align *= 2
	}
	return align
}

// describe is String with the numbers behind it.
func (d DataType) describe() string {
	return fmt.Sprintf("%s (code %d, bits %d, lanes %d)", d, d.Code, d.Bits, d.Lanes)
}

// naturalBits is the width that the name of a code stands for, or 0 when the width follows the name.
func (c TypeCode) naturalBits() uint8 {
	switch {
	case c == CodeBool, c >= CodeFloat8E3M4 && c <= CodeFloat8E8M0FNU:
		return 8
	case c == CodeFloat6E2M3FN, c == CodeFloat6E3M2FN:
		return 6
	case c == CodeFloat4E2M1FN:
		return 4
	}
	return 0
}

// String names the code: "float", "float8_e4m3fn", or "code99" when it is unknown.
func (c TypeCode) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "code" + strconv.Itoa(int(c))
}

// String names the type, in a form that ParseDataType reads back:
//
//   - "float32", "bfloat16", "complex64", "opaque_handle64": a name and the bits;
//   - "bool", "float8_e4m3fn", "float4_e2m1fn": names that stand for a width;
//   - "code99_8", "code6_1": code and bits, for unknown codes and for names with another width than theirs;
//   - with other lanes than 1, "x" and the lanes follow: "float32x4", "code99_8x2", after a name that stands for a width "_x": "float4_e2m1fn_x2".
func (d DataType) String() string {
	name, lanes := "", "x"
	switch natural := d.Code.naturalBits(); {
	case natural != 0 && natural == d.Bits:
		name, lanes = d.Code.String(), "_x"
	case natural != 0 || int(d.Code) >= len(codeNames):
		name = fmt.Sprintf("code%d_%d", d.Code, d.Bits)
	default:
		name = d.Code.String() + strconv.Itoa(int(d.Bits))
	}
	if d.Lanes != 1 {
		name += lanes + strconv.Itoa(int(d.Lanes))
	}
	return name
}

// ParseDataType reads what DataType.String prints, and nothing else. ErrDType: another text.
func ParseDataType(s string) (DataType, error) {
	d, ok := parseDataType(s)
	if !ok || d.String() != s {
		return DataType{}, &Error{Op: "ParseDataType", Kind: KindDType, Axis: NoAxis, Got: strconv.Quote(s),
			Want: `a name such as "float32", "bfloat16", "float8_e4m3fn", "float32x4" or "code99_8"`}
	}
	return d, nil
}

// parseDataType may accept more than one spelling of a type; the caller compares with the right one.
func parseDataType(s string) (DataType, bool) {
	for i, name := range codeNames {
		code := TypeCode(i)
		if bits := code.naturalBits(); bits != 0 && strings.HasPrefix(s, name) {
			if s == name {
				return DataType{code, bits, 1}, true
			}
			if lanes, ok := strings.CutPrefix(s[len(name):], "_x"); ok {
				n, err := strconv.ParseUint(lanes, 10, 16)
				return DataType{code, bits, uint16(n)}, err == nil
			}
		}
	}
	s, lanesText, hasLanes := cutLanes(s)
	lanes := uint64(1)
	if hasLanes {
		var err error
		if lanes, err = strconv.ParseUint(lanesText, 10, 16); err != nil {
			return DataType{}, false
		}
	}
	digits := len(strings.TrimRight(s, "0123456789"))
	bits, err := strconv.ParseUint(s[digits:], 10, 8)
	if err != nil {
		return DataType{}, false
	}
	name := s[:digits]
	if number, ok := strings.CutPrefix(name, "code"); ok {
		code, err := strconv.ParseUint(strings.TrimSuffix(number, "_"), 10, 8)
		return DataType{TypeCode(code), uint8(bits), uint16(lanes)}, err == nil
	}
	for i, known := range codeNames {
		if known == name {
			return DataType{TypeCode(i), uint8(bits), uint16(lanes)}, true
		}
	}
	return DataType{}, false
}

// cutLanes cuts the lanes off "float32x4". An x counts only behind a digit: "complex64" has none.
func cutLanes(s string) (name, lanes string, ok bool) {
	i := strings.LastIndexByte(s, 'x')
	if i < 1 || s[i-1] < '0' || s[i-1] > '9' {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
