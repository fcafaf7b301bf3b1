package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// buffered casts as all pairs can be cast: element by element, by way of the buffer.
func buffered(to, from dlpack.DataType, src []byte, n int) []byte {
	load, class := loaderOf(from)
	toSize, _ := to.ItemSize(0)
	fromSize, _ := from.ItemSize(0)
	dst := make([]byte, int64(n)*toSize)
	caster(load, storerOf(to, class))(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), axis{int64(n), toSize, fromSize})
	return dst
}

// numbers is n elements: any bits, and among them what is special about floats and integers.
func numbers(d dlpack.DataType, n int, r *rand.Rand) []byte {
	size, _ := d.ItemSize(0)
	out := make([]byte, int64(n)*size)
	fill(out, r)
	if d.Code != dlpack.CodeFloat && d.Code != dlpack.CodeBFloat {
		return out
	}
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), -math.NaN(), 1, -1.5, 2.5, 127, 128, 255, 256, -129, 65504, 65519, 65520, 65536,
		0x1p31, -0x1p31, 0x1p31 - 128, -0x1p31 - 256, 0x1p32, 0x1p62, 0x1p63, -0x1p63, 1e30, 0x1p-14, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-126, 0x1p-149, 3.4e38}
	values := make([]float64, n)
	for i := range values {
		values[i] = r.NormFloat64() * math.Ldexp(1, r.IntN(60)-30)
		if r.IntN(40) == 0 {
			values[i] = special[r.IntN(len(special))]
		}
	}
	cast := buffered(d, dlpack.DTypeFloat64, bytesOf(values), n)
	from := r.IntN(n + 1)
	copy(out[int64(from)*size:], cast[int64(from)*size:])
	return out
}

// TestCastsAgreeWithTheBuffer compares every pair with the way that needs no loop of its own, bit by bit, for rows from nothing to beyond what is done at a time.
func TestCastsAgreeWithTheBuffer(t *testing.T) {
	for _, streamed := range []int64{1 << 40, 0} {
		inTiles(t, 1<<40, streamed)
		bothWays(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(21, 22))
			for _, from := range castable {
				for _, to := range castable {
					if from == to {
						continue
					}
					for _, n := range []int{1, 31, 32, 33, 63, 64, 97, 1000, 1024 + 32, 2100 + r.IntN(100)} {
						src := numbers(from, n, r)
						want := buffered(to, from, src, n)
						if from == dlpack.DTypeBFloat16 && to == dlpack.DTypeFloat32 {
							for i := range n { // the bits, also of a signalling NaN
								want[4*i+2], want[4*i+3] = src[2*i], src[2*i+1]
							}
						}
						if got := castBytes(t, to, from, src, n); !bytes.Equal(got, want) {
							t.Fatalf("%d elements of %v to %v: %s", n, from, to, difference(got, want, to))
						}
					}
				}
			}
		})
	}
}

func difference(got, want []byte, d dlpack.DataType) string {
	size, _ := d.ItemSize(0)
	for i := int64(0); i < int64(len(got)); i += size {
		if !bytes.Equal(got[i:i+size], want[i:i+size]) {
			return fmt.Sprintf("element %d is %x, want %x", i/size, got[i:i+size], want[i:i+size])
		}
	}
	return "no difference"
}

// TestAllNarrowFloatsAreCast takes every float16 and bfloat16.
func TestAllNarrowFloatsAreCast(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	bothWays(t, func(t *testing.T) {
		for _, from := range []dlpack.DataType{dlpack.DTypeFloat16, dlpack.DTypeBFloat16} {
			for _, to := range []dlpack.DataType{dlpack.DTypeFloat16, dlpack.DTypeBFloat16, dlpack.DTypeFloat64, dlpack.DTypeFloat32} {
				if from == to || from == dlpack.DTypeBFloat16 && to == dlpack.DTypeFloat32 {
					continue
				}
				if got, want := castBytes(t, to, from, bytesOf(all), len(all)), buffered(to, from, bytesOf(all), len(all)); !bytes.Equal(got, want) {
					t.Errorf("%v to %v: %s", from, to, difference(got, want, to))
				}
			}
		}
	})
}

func TestHalvesAreRoundedAsByDLPack(t *testing.T) {
	for u := uint64(0); u < 1<<32; u += 1009 {
		x := math.Float32frombits(uint32(u))
		if got, want := half(uint32(u)), uint16(dlpack.NewFloat16(x)); got != want {
			t.Fatalf("%x: %x, want %x", x, got, want)
		}
	}
}

// TestCastsOfAnyLayout compares a cast of permuted and turned axes with one of adjacent elements.
func TestCastsOfAnyLayout(t *testing.T) {
	pairs := []pair{{dlpack.DTypeFloat32, dlpack.DTypeUint8}, {dlpack.DTypeBFloat16, dlpack.DTypeFloat32}, {dlpack.DTypeFloat16, dlpack.DTypeUint8},
		{dlpack.DTypeInt32, dlpack.DTypeInt64}, {dlpack.DTypeFloat64, dlpack.DTypeInt16}, {dlpack.DTypeUint8, dlpack.DTypeFloat32}, {dlpack.DTypeFloat8E5M2, dlpack.DTypeFloat32},
		{dlpack.DTypeInt8, dlpack.DTypeUint8}, {dlpack.DTypeComplex64, dlpack.DTypeFloat32}, {dlpack.DTypeFloat32, dlpack.DTypeComplex128}}
	for _, streamed := range []int64{1 << 40, 0} {
		inTiles(t, 1<<40, streamed)
		bothWays(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(23, 24))
			for i := range 600 {
				p := pairs[i%len(pairs)]
				shape := make([]int64, 1+r.IntN(4))
				room := int64(20000)
				for k := range shape {
					shape[k] = 1 + r.Int64N(min([]int64{4, 70, 300}[r.IntN(3)], room))
					room = max(1, room/shape[k])
				}
				var strides []int64
				if r.IntN(3) == 0 {
					strides = randomStrides(shape, r, false)
				}
				dst, src := newArray(p.to, shape, strides, r), newArray(p.from, shape, permuted(shape, r), r)
				checkCast(t, fmt.Sprint(p, shape, src.strides, strides), dst, src, 1+r.IntN(2))
			}
		})
	}
}

func checkCast(t *testing.T, name string, dst, src *array, threads int) {
	t.Helper()
	toSize, _ := dst.t.DType.ItemSize(0)
	fromSize, _ := src.t.DType.ItemSize(0)
	var elements []byte
	for _, o := range src.offsets() {
		elements = append(elements, src.mem[o:o+int(fromSize)]...)
	}
	cast := elements
	if !sameBits(dst.t.DType, src.t.DType) {
		cast = buffered(dst.t.DType, src.t.DType, elements, len(elements)/int(fromSize))
	}
	want := bytes.Clone(dst.mem)
	for i, o := range dst.offsets() {
		copy(want[o:o+int(toSize)], cast[i*int(toSize):])
	}
	if err := Copy(&dst.t, &src.t, threads); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !bytes.Equal(dst.mem, want) {
		t.Fatalf("%s: wrong bytes", name)
	}
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

func TestCastInPlaceOfManyElements(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		inTiles(t, 0, 0)
		r := rand.New(rand.NewPCG(25, 26))
		for _, p := range []pair{{dlpack.DTypeInt32, dlpack.DTypeFloat32}, {dlpack.DTypeFloat32, dlpack.DTypeInt32}, {dlpack.DTypeFloat16, dlpack.DTypeBFloat16}} {
			const n = 3000
			a := newArray(p.from, []int64{n}, nil, r)
			size, _ := p.from.ItemSize(0)
			want := buffered(p.to, p.from, bytes.Clone(a.mem[a.first:]), n)
			to := a.t
			to.DType = p.to
			if err := Copy(&to, &a.t, 2); err != nil {
				t.Fatal(err)
			}
			if got := a.mem[a.first : a.first+n*int(size)]; !bytes.Equal(got, want) {
				t.Errorf("%v: %s", p, difference(got, want, p.to))
			}
			runtime.KeepAlive(a)
		}
	})
}
