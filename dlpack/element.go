package dlpack

import "math"

// Element is the Go types of elements, one for each type that is DataType.Known.
//
// bool is for tensors whose bytes are 0 or 1, as every framework writes them; Go does not say what a bool of another byte does. Bool reads any byte.
type Element interface {
	bool | Bool | Real | Complex | Complex32 | Float16 | BFloat16 | Float4E2M1FNx2 |
		Float8E3M4 | Float8E4M3 | Float8E4M3B11FNUZ | Float8E4M3FN | Float8E4M3FNUZ | Float8E5M2 | Float8E5M2FNUZ | Float8E8M0FNU
}

// Signed is the signed integers among the elements.
type Signed interface{ int8 | int16 | int32 | int64 }

// Unsigned is the unsigned integers among the elements.
type Unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

// Integer is the integers among the elements.
type Integer interface{ Signed | Unsigned }

// Float is the floating-point elements that Go computes with.
type Float interface{ float32 | float64 }

// Real is the elements that Go orders and computes with.
type Real interface{ Integer | Float }

// Complex is the complex elements that Go computes with.
type Complex interface{ complex64 | complex128 }

// DTypeOf is the element type of a Go type.
func DTypeOf[T Element]() DataType {
	var zero T
	switch any(zero).(type) {
	case bool, Bool:
		return DTypeBool
	case int8:
		return DTypeInt8
	case int16:
		return DTypeInt16
	case int32:
		return DTypeInt32
	case int64:
		return DTypeInt64
	case uint8:
		return DTypeUint8
	case uint16:
		return DTypeUint16
	case uint32:
		return DTypeUint32
	case uint64:
		return DTypeUint64
	case float32:
		return DTypeFloat32
	case float64:
		return DTypeFloat64
	case complex64:
		return DTypeComplex64
	case complex128:
		return DTypeComplex128
	case Float16:
		return DTypeFloat16
	case BFloat16:
		return DTypeBFloat16
	case Complex32:
		return DTypeComplex32
	case Float8E3M4:
		return DTypeFloat8E3M4
	case Float8E4M3:
		return DTypeFloat8E4M3
	case Float8E4M3B11FNUZ:
		return DTypeFloat8E4M3B11FNUZ
	case Float8E4M3FN:
		return DTypeFloat8E4M3FN
	case Float8E4M3FNUZ:
		return DTypeFloat8E4M3FNUZ
	case Float8E5M2:
		return DTypeFloat8E5M2
	case Float8E5M2FNUZ:
		return DTypeFloat8E5M2FNUZ
	case Float8E8M0FNU:
		return DTypeFloat8E8M0FNU
	default:
		return DTypeFloat4E2M1FNx2
	}
}

// Bool is a boolean byte of any value: 0 is false, everything else is true.
type Bool uint8

// Bool is the truth of b.
func (b Bool) Bool() bool { return b != 0 }

// Float16 is the bits of an IEEE half-precision number.
type Float16 uint16

// NewFloat16 rounds x to the nearest half-precision number, ties to even. Beyond 65504 it is an infinity. A NaN keeps its sign.
func NewFloat16(x float32) Float16 { return Float16(float16Format.encode(float64(x))) }

// Float16From64 rounds x once, where NewFloat16(float32(x)) would round twice.
func Float16From64(x float64) Float16 { return Float16(float16Format.encode(x)) }

// Float32 is the value of h, exactly.
func (h Float16) Float32() float32 {
	sign, exponent, fraction := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // fraction * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// BFloat16 is the bits of a bfloat16 number: the upper half of a float32.
type BFloat16 uint16

// NewBFloat16 rounds x to the nearest bfloat16 number, ties to even. A NaN keeps its sign.
func NewBFloat16(x float32) BFloat16 {
	u := math.Float32bits(x)
	if x != x {
		return BFloat16(u>>16&0x8000 | 0x7fc0)
	}
	return BFloat16((u + 0x7fff + u>>16&1) >> 16)
}

// Float32 is the value of b, exactly.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// Complex32 is a complex number of two half-precision parts.
type Complex32 struct{ Real, Imag Float16 }

// NewComplex32 rounds both parts.
func NewComplex32(x complex64) Complex32 { return Complex32{NewFloat16(real(x)), NewFloat16(imag(x))} }

// Complex64 is the value of c, exactly.
func (c Complex32) Complex64() complex64 { return complex(c.Real.Float32(), c.Imag.Float32()) }

// The 8-bit floating-point numbers; EncodeMinifloat makes them from a float32.
type (
	Float8E3M4        uint8
	Float8E4M3        uint8
	Float8E4M3B11FNUZ uint8
	Float8E4M3FN      uint8
	Float8E4M3FNUZ    uint8
	Float8E5M2        uint8
	Float8E5M2FNUZ    uint8
	Float8E8M0FNU     uint8
)

// Float32 is the value, exactly.
func (x Float8E3M4) Float32() float32 { return DecodeMinifloat(CodeFloat8E3M4, byte(x)) }

// Float32 is the value, exactly.
func (x Float8E4M3) Float32() float32 { return DecodeMinifloat(CodeFloat8E4M3, byte(x)) }

// Float32 is the value, exactly.
func (x Float8E4M3B11FNUZ) Float32() float32 { return DecodeMinifloat(CodeFloat8E4M3B11FNUZ, byte(x)) }

// Float32 is the value, exactly.
func (x Float8E4M3FN) Float32() float32 { return DecodeMinifloat(CodeFloat8E4M3FN, byte(x)) }

// Float32 is the value, exactly.
func (x Float8E4M3FNUZ) Float32() float32 { return DecodeMinifloat(CodeFloat8E4M3FNUZ, byte(x)) }

// Float32 is the value, exactly.
func (x Float8E5M2) Float32() float32 { return DecodeMinifloat(CodeFloat8E5M2, byte(x)) }

// Float32 is the value, exactly.
func (x Float8E5M2FNUZ) Float32() float32 { return DecodeMinifloat(CodeFloat8E5M2FNUZ, byte(x)) }

// Float32 is the value, exactly.
func (x Float8E8M0FNU) Float32() float32 { return DecodeMinifloat(CodeFloat8E8M0FNU, byte(x)) }

// Float4E2M1FNx2 is two 4-bit floats in a byte: one element of two lanes.
type Float4E2M1FNx2 uint8

// NewFloat4E2M1FNx2 rounds both; first goes to the low half.
func NewFloat4E2M1FNx2(first, second float32) Float4E2M1FNx2 {
	return Float4E2M1FNx2(EncodeMinifloat(CodeFloat4E2M1FN, first) | EncodeMinifloat(CodeFloat4E2M1FN, second)<<4)
}

// Float32s is the two values, exactly; the first is the one of the low half.
func (x Float4E2M1FNx2) Float32s() (first, second float32) {
	return DecodeMinifloat(CodeFloat4E2M1FN, byte(x&0xf)), DecodeMinifloat(CodeFloat4E2M1FN, byte(x>>4))
}
