package glue

import (
	"math"
	"unsafe"
)

// Bool is argument i.
func (c *Call) Bool(i int) bool { return c.in[i].a != 0 }

// Int is argument i, within the bits of the parameter.
func (c *Call) Int(i int) int64 { return int64(c.in[i].a) }

// Uint is argument i, within the bits of the parameter.
func (c *Call) Uint(i int) uint64 { return c.in[i].a }

// Float is argument i.
func (c *Call) Float(i int) float64 { return math.Float64frombits(c.in[i].a) }

// Complex is argument i.
func (c *Call) Complex(i int) complex128 {
	return complex(math.Float64frombits(c.in[i].a), math.Float64frombits(c.in[i].b))
}

// String is a copy of argument i.
func (c *Call) String(i int) string { return string(array[byte](c.in[i])) }

// Bytes is a copy of argument i.
func (c *Call) Bytes(i int) []byte { return append([]byte{}, array[byte](c.in[i])...) }

// Strings is a copy of argument i.
func (c *Call) Strings(i int) []string {
	items := array[Value](c.in[i])
	out := make([]string, len(items))
	for k, v := range items {
		out[k] = string(array[byte](v))
	}
	return out
}

// Ints is a copy of argument i.
func (c *Call) Ints(i int) []int {
	items := array[int64](c.in[i])
	out := make([]int, len(items))
	for k, v := range items {
		out[k] = int(v)
	}
	return out
}

// Floats is a copy of argument i.
func (c *Call) Floats(i int) []float64 { return append([]float64{}, array[float64](c.in[i])...) }

// SetBool writes result k.
func (c *Call) SetBool(k int, v bool) {
	if v {
		c.out[k].a = 1
	}
}

// SetInt writes result k.
func (c *Call) SetInt(k int, v int64) { c.out[k].a = uint64(v) }

// SetUint writes result k.
func (c *Call) SetUint(k int, v uint64) { c.out[k].a = v }

// SetFloat writes result k.
func (c *Call) SetFloat(k int, v float64) { c.out[k].a = math.Float64bits(v) }

// SetComplex writes result k.
func (c *Call) SetComplex(k int, v complex128) {
	c.out[k] = Value{math.Float64bits(real(v)), math.Float64bits(imag(v))}
}

// SetString writes a copy as result k.
func (c *Call) SetString(k int, s string) {
	if room := c.room(k, len(s), 1); room != nil {
		copy(room, s)
		c.out[k].b = uint64(len(s))
	}
}

// SetBytes writes a copy as result k.
func (c *Call) SetBytes(k int, b []byte) { c.SetString(k, unsafe.String(unsafe.SliceData(b), len(b))) }

// SetInts writes a copy as result k.
func (c *Call) SetInts(k int, v []int) {
	if room := c.room(k, 8*len(v), 8); room != nil {
		to := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(room))), len(v))
		for i, n := range v {
			to[i] = int64(n)
		}
		c.out[k].b = uint64(len(v))
	}
}

// SetFloats writes a copy as result k.
func (c *Call) SetFloats(k int, v []float64) {
	if room := c.room(k, 8*len(v), 8); room != nil {
		copy(unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(room))), len(v)), v)
		c.out[k].b = uint64(len(v))
	}
}

// SetStrings writes a copy as result k: the values, and the bytes behind them, in one piece.
func (c *Call) SetStrings(k int, v []string) {
	const size = int(unsafe.Sizeof(Value{}))
	n := size * len(v)
	for _, s := range v {
		n += len(s)
	}
	room := c.room(k, n, 8)
	if room == nil {
		return
	}
	values := unsafe.Slice((*Value)(unsafe.Pointer(unsafe.SliceData(room))), len(v))
	bytes := room[size*len(v):]
	for i, s := range v {
		values[i] = Value{uint64(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))), uint64(len(s))}
		bytes = bytes[copy(bytes, s):]
	}
	c.out[k].b = uint64(len(v))
}
