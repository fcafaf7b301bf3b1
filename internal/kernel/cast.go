package kernel

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// A cast that has no loop of its own (see direct.go) goes by way of a buffer in one of four classes that hold every value of every known type exactly. Loading and storing are loops over one
// concrete type each, so that n types take n loaders and 4n storers instead of n*n casts, and no call is made for an element.
type class uint8

const (
	signed     class = iota // buffer.i
	unsigned                // buffer.i, as bits
	realNum                 // buffer.re
	complexNum              // buffer.re and buffer.im
)

// chunk elements are cast at a time: enough to make the calls around the loops cheap, few enough for the buffer to stay in the nearest cache.
const chunk = 256

type buffer struct {
	i      [chunk]int64
	re, im [chunk]float64
}

// loader reads n elements that lie step bytes apart.
type loader func(src unsafe.Pointer, step int64, n int, b *buffer)

// storer writes n elements that lie step bytes apart.
type storer func(dst unsafe.Pointer, step int64, n int, b *buffer)

// caster makes the innermost loop of a cast. It has a buffer of its own: one a goroutine.
func caster(load loader, store storer) func(dst, src unsafe.Pointer, a axis) {
	b := new(buffer)
	return func(dst, src unsafe.Pointer, a axis) {
		for done := int64(0); done < a.n; done += chunk {
			n := int(min(chunk, a.n-done))
			load(unsafe.Add(src, done*a.src), a.src, n, b)
			store(unsafe.Add(dst, done*a.dst), a.dst, n, b)
		}
	}
}

// loaderOf is the loader of a type and the class that it fills; nil for types without values, and for pairs of 4-bit floats.
func loaderOf(d dlpack.DataType) (loader, class) {
	switch d {
	case dlpack.DTypeBool:
		return loadBool, signed
	case dlpack.DTypeInt8:
		return loadInt[int8], signed
	case dlpack.DTypeInt16:
		return loadInt[int16], signed
	case dlpack.DTypeInt32:
		return loadInt[int32], signed
	case dlpack.DTypeInt64:
		return loadInt[int64], signed
	case dlpack.DTypeUint8:
		return loadInt[uint8], signed
	case dlpack.DTypeUint16:
		return loadInt[uint16], signed
	case dlpack.DTypeUint32:
		return loadInt[uint32], signed
	case dlpack.DTypeUint64:
		return loadInt[uint64], unsigned
	case dlpack.DTypeFloat16:
		return loadFloat16, realNum
	case dlpack.DTypeBFloat16:
		return loadBFloat16, realNum
	case dlpack.DTypeFloat32:
		return loadFloat[float32], realNum
	case dlpack.DTypeFloat64:
		return loadFloat[float64], realNum
	case dlpack.DTypeComplex32:
		return loadComplex32, complexNum
	case dlpack.DTypeComplex64:
		return loadComplex64, complexNum
	case dlpack.DTypeComplex128:
		return loadComplex128, complexNum
	}
	if isFloat8(d) {
		return loadFloat8(dlpack.MinifloatTable(d.Code)), realNum
	}
	return nil, 0
}

// storerOf is the storer of a type for what lies in the buffer; nil as with loaderOf.
func storerOf(d dlpack.DataType, from class) storer {
	if from == complexNum { // all but these take the real part
		switch d {
		case dlpack.DTypeBool:
			return storeBoolOfComplex
		case dlpack.DTypeComplex32:
			return storeComplex32
		case dlpack.DTypeComplex64:
			return storeComplex64
		case dlpack.DTypeComplex128:
			return storeComplex128
		}
		from = realNum
	}
	if s, ok := intStorers[d]; ok {
		return s[from]
	}
	switch d {
	case dlpack.DTypeFloat32:
		return [...]storer{signed: storeFloatOfInt[float32], unsigned: storeFloatOfUint[float32], realNum: storeFloat[float32]}[from]
	case dlpack.DTypeFloat64:
		return [...]storer{signed: storeFloatOfInt[float64], unsigned: storeFloatOfUint[float64], realNum: storeFloat[float64]}[from]
	case dlpack.DTypeFloat16:
		return viaReal(from, storeFloat16)
	case dlpack.DTypeBFloat16:
		return viaReal(from, storeBFloat16)
	case dlpack.DTypeComplex32:
		return viaReal(from, withoutImaginary(storeComplex32))
	case dlpack.DTypeComplex64:
		return viaReal(from, withoutImaginary(storeComplex64))
	case dlpack.DTypeComplex128:
		return nearest(from, withoutImaginary(storeComplex128))
	}
	if isFloat8(d) {
		return viaReal(from, storeFloat8(encodeTable(d.Code)))
	}
	return nil
}

var intStorers = map[dlpack.DataType]*[3]storer{
	dlpack.DTypeBool:   {storeBoolOfInt, storeBoolOfInt, storeBool},
	dlpack.DTypeInt8:   {storeInt[int8], storeInt[int8], storeIntOfReal[int8]},
	dlpack.DTypeInt16:  {storeInt[int16], storeInt[int16], storeIntOfReal[int16]},
	dlpack.DTypeInt32:  {storeInt[int32], storeInt[int32], storeIntOfReal[int32]},
	dlpack.DTypeInt64:  {storeInt[int64], storeInt[int64], storeIntOfReal[int64]},
	dlpack.DTypeUint8:  {storeInt[uint8], storeInt[uint8], storeIntOfReal[uint8]},
	dlpack.DTypeUint16: {storeInt[uint16], storeInt[uint16], storeIntOfReal[uint16]},
	dlpack.DTypeUint32: {storeInt[uint32], storeInt[uint32], storeIntOfReal[uint32]},
	dlpack.DTypeUint64: {storeInt[uint64], storeInt[uint64], storeUint64OfReal},
}

func isFloat8(d dlpack.DataType) bool {
	return d.Bits == 8 && d.Lanes == 1 && d.Code >= dlpack.CodeFloat8E3M4 && d.Code <= dlpack.CodeFloat8E8M0FNU
}
