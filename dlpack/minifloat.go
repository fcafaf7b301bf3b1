package dlpack

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
)

// format describes a binary floating-point format of at most 16 bits.
type format struct {
	mantissa int // bits of the mantissa
	emin     int // exponent of the smallest normal number
	sign     int // the sign bit's position, or -1 without one
	max      uint16
	// What lies beyond max: inf, or nan, or (saturate) nothing.
	inf, nan uint16
	saturate bool
	noZero   bool // e8m0: all numbers are powers of two
	fnuz     bool // one NaN, in the place of -0
}

// formats is indexed by code; an entry of zeros is none.
var formats = [...]format{
	CodeFloat8E3M4:        {mantissa: 4, emin: -2, sign: 7, max: 0x6f, inf: 0x70, nan: 0x78},
	CodeFloat8E4M3:        {mantissa: 3, emin: -6, sign: 7, max: 0x77, inf: 0x78, nan: 0x7c},
	CodeFloat8E4M3B11FNUZ: {mantissa: 3, emin: -10, sign: 7, max: 0x7f, inf: 0x80, nan: 0x80, fnuz: true},
	CodeFloat8E4M3FN:      {mantissa: 3, emin: -6, sign: 7, max: 0x7e, inf: 0x7f, nan: 0x7f},
	CodeFloat8E4M3FNUZ:    {mantissa: 3, emin: -7, sign: 7, max: 0x7f, inf: 0x80, nan: 0x80, fnuz: true},
	CodeFloat8E5M2:        {mantissa: 2, emin: -14, sign: 7, max: 0x7b, inf: 0x7c, nan: 0x7e},
	CodeFloat8E5M2FNUZ:    {mantissa: 2, emin: -15, sign: 7, max: 0x7f, inf: 0x80, nan: 0x80, fnuz: true},
	CodeFloat8E8M0FNU:     {mantissa: 0, emin: -127, sign: -1, max: 0xfe, inf: 0xff, nan: 0xff, noZero: true},
	CodeFloat6E2M3FN:      {mantissa: 3, emin: 0, sign: 5, max: 0x1f, nan: 0x20, saturate: true},
	CodeFloat6E3M2FN:      {mantissa: 2, emin: -2, sign: 5, max: 0x1f, nan: 0x20, saturate: true},
	CodeFloat4E2M1FN:      {mantissa: 1, emin: 0, sign: 3, max: 0x07, nan: 0x08, saturate: true},
}

var float16Format = format{mantissa: 10, emin: -14, sign: 15, max: 0x7bff, inf: 0x7c00, nan: 0x7e00}

// encode rounds to the nearest number of the format, ties to the even one. It works on the bits, so that every step is exact.
func (f *format) encode(x float64) uint16 {
	u := math.Float64bits(x)
	negative := u>>63 != 0
	exponent := int(u>>52) & 0x7ff
	fraction := u & (1<<52 - 1)
	sign := uint16(0)
	if negative && f.sign >= 0 {
		sign = 1 << f.sign
	}
	switch {
	case exponent == 0x7ff && fraction != 0:
		return f.encodeNaN(sign)
	case f.noZero && (negative || x == 0):
		return f.nan
	case exponent == 0x7ff:
		return f.overflow(sign)
	case x == 0:
		return f.signed(sign, 0)
	case exponent == 0: // a subnormal float64; only its being tiny matters
		exponent = -2000
	default:
		fraction |= 1 << 52
		exponent -= 1023
	}
	// x is fraction * 2^(exponent-52). Below emin the numbers of the format stop getting denser.
	shift := 52 - f.mantissa + max(f.emin-exponent, 0)
	code := uint64(0)
	if shift <= 53 {
		code = fraction >> shift
		rest, half := fraction&(1<<shift-1), uint64(1)<<(shift-1)
		if rest > half || rest == half && code&1 != 0 { // e8m0: code is 1, so that ties go up
			code++
		}
	}
	switch {
	case f.noZero:
		// code is 1, or 2 after rounding up; what rounds to less than the smallest power becomes that power.
		code = uint64(max(exponent-f.emin, 0)) + max(code, 1) - 1
	case exponent > f.emin:
		code += uint64(exponent-f.emin) << f.mantissa
	}
	if code > uint64(f.max) {
		return f.overflow(sign)
	}
	return f.signed(sign, uint16(code))
}

func (f *format) signed(sign, code uint16) uint16 {
	if f.fnuz && code == 0 {
		return 0
	}
	return sign | code
}

func (f *format) overflow(sign uint16) uint16 {
	switch {
	case f.saturate:
		return sign | f.max
	case f.fnuz || f.noZero:
		return f.nan
	}
	return sign | f.inf
}

func (f *format) encodeNaN(sign uint16) uint16 {
	if f.fnuz || f.noZero {
		return f.nan
	}
	return sign ^ f.nan
}

// decode is exact.
func (f *format) decode(code uint16) float64 {
	sign := 1.0
	if f.sign >= 0 {
		if code>>f.sign&1 != 0 {
			sign = -1
		}
		if f.fnuz && code == f.nan {
			return math.NaN()
		}
		code &= 1<<f.sign - 1
	}
	switch {
	case code > f.max && code == f.inf && f.inf != f.nan:
		return math.Inf(int(sign))
	case code > f.max:
		return math.Copysign(math.NaN(), sign)
	case f.noZero:
		return math.Ldexp(1, int(code)+f.emin)
	}
	mantissa, exponent := int(code)&(1<<f.mantissa-1), int(code)>>f.mantissa
	if exponent > 0 {
		mantissa |= 1 << f.mantissa
		exponent--
	}
	return sign * math.Ldexp(float64(mantissa), exponent+f.emin-f.mantissa)
}

// formatOf is the format of a code, or nil.
func formatOf(code TypeCode) *format {
	if int(code) >= len(formats) || formats[code].max == 0 {
		return nil
	}
	return &formats[code]
}

// decoded holds the values of all codes of the formats, computed on first use.
var decoded = sync.OnceValue(func() *[256]*[256]float32 {
	var tables [256]*[256]float32
	for code := range formats {
		f := formatOf(TypeCode(code))
		if f == nil {
			continue
		}
		var values [256]float32
		width := 1 << bits.Len16(max(f.max, 1<<max(f.sign, 0)))
		for i := range values {
			values[i] = float32(f.decode(uint16(i % width)))
		}
		tables[code] = &values
	}
	return &tables
})

// MinifloatTable is the values of all 256 bytes as numbers of a format, for kernels that decode many. The formats of 6 and 4 bits use the low bits
// of the byte. The table is shared: do not write to it. It panics for a code that is none of the float8, float6 and float4 codes.
func MinifloatTable(code TypeCode) *[256]float32 {
	table := decoded()[code]
	if table == nil {
		panic(notMinifloat("MinifloatTable", code))
	}
	return table
}

// DecodeMinifloat is the value of a float8, float6 or float4 number; every one is exact in a float32. The formats of 6 and 4 bits use the low bits
// of b. It panics for another code.
func DecodeMinifloat(code TypeCode, b byte) float32 {
	table := decoded()[code]
	if table == nil {
		panic(notMinifloat("DecodeMinifloat", code))
	}
	return table[b]
}

// EncodeMinifloat rounds x to a float8, float6 or float4 number: to the nearest, ties to the even one, subnormal numbers included. It panics for another code.
//
// Beyond the largest number it does what ml_dtypes does:
//
//	e3m4, e4m3, e5m2                     infinity
//	e4m3fn, e4m3b11fnuz, e4m3fnuz,       NaN
//	e5m2fnuz, e8m0fnu
//	e2m3fn, e3m2fn, e2m1fn               the largest number, of the same sign; they have no NaN either: one becomes -0, a negative one 0
//
// e8m0fnu has no sign and no zero: 0 and negative numbers become NaN, positive ones below the smallest power become that. Its ties go up.
func EncodeMinifloat(code TypeCode, x float32) byte {
	f := formatOf(code)
	if f == nil {
		panic(notMinifloat("EncodeMinifloat", code))
	}
	return byte(f.encode(float64(x)))
}

func notMinifloat(op string, code TypeCode) *Error {
	return &Error{Op: op, Kind: KindDType, Axis: NoAxis, Got: fmt.Sprintf("code %d (%s)", code, code), Want: "a float8, float6 or float4 code"}
}
