package kernel

import (
	"math"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// row is an innermost loop.
type row func(dst, src unsafe.Pointer, a axis)

// sameBits says whether a cast leaves all bits as they are.
func sameBits(a, b dlpack.DataType) bool {
	return a == b || isInteger(a) && isInteger(b) && a.Bits == b.Bits
}

func isInteger(d dlpack.DataType) bool {
	return d.Code <= dlpack.CodeUint && d.Lanes == 1 && (d.Bits == 8 || d.Bits == 16 || d.Bits == 32 || d.Bits == 64)
}

// rowOf makes innermost loops of a cast, one a goroutine: loops of their own for the common pairs, one after the other by way of a buffer for the others.
func rowOf(to, from dlpack.DataType) (func() row, error) {
	if r := directRow(to, from); r != nil {
		return func() row { return r }, nil
	}
	load, class := loaderOf(from)
	if load == nil {
		return nil, refuse(dlpack.KindDType, "dtype of src", dlpack.NoAxis, from.String(), "one that can be cast to "+to.String())
	}
	store := storerOf(to, class)
	if store == nil {
		return nil, refuse(dlpack.KindDType, "dtype of dst", dlpack.NoAxis, to.String(), "one that "+from.String()+" can be cast to")
	}
	return func() row { return caster(load, store) }, nil
}

// directRow is the loop for a pair, or nil.
func directRow(to, from dlpack.DataType) row {
	switch to {
	case dlpack.DTypeInt8:
		return integerRow[int8](from)
	case dlpack.DTypeInt16:
		return integerRow[int16](from)
	case dlpack.DTypeInt32:
		return integerRow[int32](from)
	case dlpack.DTypeInt64:
		return integerRow[int64](from)
	case dlpack.DTypeUint8:
		return integerRow[uint8](from)
	case dlpack.DTypeUint16:
		return integerRow[uint16](from)
	case dlpack.DTypeUint32:
		return integerRow[uint32](from)
	case dlpack.DTypeUint64:
		return plainRow[uint64](from)
	case dlpack.DTypeFloat32:
		switch from {
		case dlpack.DTypeFloat32:
			return nil
		case dlpack.DTypeFloat64:
			return convert[float32, float64]
		case dlpack.DTypeFloat16:
			return float32OfFloat16Row
		case dlpack.DTypeBFloat16:
			return float32OfBFloat16Row
		}
		return plainRow[float32](from)
	case dlpack.DTypeFloat64:
		if from == dlpack.DTypeFloat32 {
			return convert[float64, float32]
		}
		return plainRow[float64](from)
	case dlpack.DTypeFloat16:
		if from == dlpack.DTypeFloat32 {
			return float16OfFloat32Row
		}
	case dlpack.DTypeBFloat16:
		if from == dlpack.DTypeFloat32 {
			return bfloat16OfFloat32Row
		}
	}
	return nil
}

// plainRow converts from integers, as Go does.
func plainRow[D dlpack.Real](from dlpack.DataType) row {
	switch from {
	case dlpack.DTypeInt8:
		return convert[D, int8]
	case dlpack.DTypeInt16:
		return convert[D, int16]
	case dlpack.DTypeInt32:
		return convert[D, int32]
	case dlpack.DTypeInt64:
		return convert[D, int64]
	case dlpack.DTypeUint8:
		return convert[D, uint8]
	case dlpack.DTypeUint16:
		return convert[D, uint16]
	case dlpack.DTypeUint32:
		return convert[D, uint32]
	case dlpack.DTypeUint64:
		return convert[D, uint64]
	}
	return nil
}

func integerRow[D dlpack.Integer](from dlpack.DataType) row {
	switch from {
	case dlpack.DTypeFloat32:
		return truncateAll[D, float32]
	case dlpack.DTypeFloat64:
		return truncateAll[D, float64]
	}
	return plainRow[D](from)
}

func convert[D, S dlpack.Real](dst, src unsafe.Pointer, a axis) {
	d, s := int64(0), int64(0)
	for range a.n {
		*(*D)(unsafe.Add(dst, d)) = D(*(*S)(unsafe.Add(src, s)))
		d += a.dst
		s += a.src
	}
}

func truncateAll[D dlpack.Integer, S dlpack.Float](dst, src unsafe.Pointer, a axis) {
	d, s := int64(0), int64(0)
	for range a.n {
		*(*D)(unsafe.Add(dst, d)) = D(truncate(float64(*(*S)(unsafe.Add(src, s)))))
		d += a.dst
		s += a.src
	}
}

func float32OfBFloat16Row(dst, src unsafe.Pointer, a axis) {
	for k := range a.n {
		*(*uint32)(unsafe.Add(dst, k*a.dst)) = uint32(*(*uint16)(unsafe.Add(src, k*a.src))) << 16
	}
}

func bfloat16OfFloat32Row(dst, src unsafe.Pointer, a axis) {
	for k := range a.n {
		*(*dlpack.BFloat16)(unsafe.Add(dst, k*a.dst)) = dlpack.NewBFloat16(*(*float32)(unsafe.Add(src, k*a.src)))
	}
}

// float32OfFloat16Row makes quiet ones of signalling NaNs, as processors do.
func float32OfFloat16Row(dst, src unsafe.Pointer, a axis) {
	for k := range a.n {
		f := (*(*dlpack.Float16)(unsafe.Add(src, k*a.src))).Float32()
		u := math.Float32bits(f)
		if f != f {
			u |= 1 << 22
		}
		*(*uint32)(unsafe.Add(dst, k*a.dst)) = u
	}
}

func float16OfFloat32Row(dst, src unsafe.Pointer, a axis) {
	for k := range a.n {
		*(*uint16)(unsafe.Add(dst, k*a.dst)) = half(*(*uint32)(unsafe.Add(src, k*a.src)))
	}
}

// half is what dlpack.NewFloat16 makes of the bits of a float32, without its loops over formats.
func half(u uint32) uint16 {
	sign := uint16(u >> 16 & 0x8000)
	u &= 0x7fffffff
	switch {
	case u > 0x7f800000: // NaN
		return sign | 0x7e00
	case u >= 0x47800000: // 65536 or more
		return sign | 0x7c00
	case u < 0x38800000: // subnormal: the last digit of 0.5 is worth as much as theirs, so that the addition rounds at the right place
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-0x3f000000)
	}
	// Below the middle adding 0xfff does not carry, beyond it it does; at the middle the last bit decides. A carry beyond the largest number makes infinity.
	return sign | uint16((u+0xfff+u>>13&1-(127-15)<<23)>>13)
}
