package fuzz

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/dlpack/dlpacktest"
)

// compare says how the extension and Validate differ about a tensor; "" when they agree.
func compare(t *dlpack.Tensor, flags dlpack.Flags) string {
	err := dlpack.Validate(t, flags)
	kind, got, gotStrides := Check(t, flags)
	if want := dlpack.KindOf(err); kind != want {
		return fmt.Sprintf("the extension says %v, Validate says %v (%v)", kind, want, err)
	}
	if err != nil {
		return ""
	}
	shape, strides := t.ShapeUnchecked(), t.StridesUnchecked()
	want := Layout{Opaque: t.DType.Opaque(flags), Contiguous: dlpack.IsContiguous(shape, strides)}
	want.Size, _ = dlpack.NumElements(shape)
	want.ItemSize, _ = t.DType.ItemSize(flags)
	want.NumBytes = want.Size * want.ItemSize
	want.Low, want.High, _ = dlpack.ByteSpan(shape, strides, want.ItemSize)
	if want.Align = got.Align; !want.Opaque { // the extension reads no numbers out of what is opaque, so any address will do for it
		want.Align = t.DType.Align()
	}
	if got != want {
		return fmt.Sprintf("the extension has %+v, dlpack %+v", got, want)
	}
	if want := t.StridesOrCompact(); !slices.Equal(gotStrides, want) {
		return fmt.Sprintf("strides, the extension has %v, dlpack %v", gotStrides, want)
	}
	return ""
}

func TestCheckAgreesWithValidateOnEveryCase(t *testing.T) {
	for _, c := range dlpacktest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if d := compare(c.Tensor(), c.Flags); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCheckAgreesWithValidateOnEveryDType(t *testing.T) {
	s := new(source)
	s.dims[0] = 2
	x := dlpack.Tensor{Data: 1 << 20, Device: dlpack.CPU, NDim: 1, Shape: uintptr(unsafe.Pointer(&s.dims[0]))}
	codes := []int{31, 32, 99, 127, 128, 255}
	for code := range 24 { // with some that no version has yet
		codes = append(codes, code)
	}
	for _, code := range codes {
		for bits := range 256 {
			for _, lanes := range []uint16{0, 1, 2, 3, 4, 7, 8, 16, math.MaxUint16} {
				x.DType = dlpack.DataType{Code: dlpack.TypeCode(code), Bits: uint8(bits), Lanes: lanes}
				for _, flags := range []dlpack.Flags{0, dlpack.FlagSubbytePadded} {
					if d := compare(&x, flags); d != "" {
						t.Errorf("%v with %v: %s", x.DType, flags, d)
					}
				}
			}
		}
	}
	runtime.KeepAlive(s)
}

// source makes descriptions out of bytes: small numbers and those at the edges take one byte, so that short inputs reach far.
type source struct {
	raw  []byte
	dims [2 * dlpack.MaxNDim]int64
}

func (s *source) byte() byte {
	if len(s.raw) == 0 {
		return 0
	}
	b := s.raw[0]
	s.raw = s.raw[1:]
	return b
}

var edges = []int64{
	math.MaxInt64, math.MinInt64, math.MinInt64 + 1, -math.MaxInt64 / 2, 1 << 62, -1 << 62, 1 << 61, 1 << 60, 1 << 59, -1 << 60, 1 << 33, 1 << 32, 1<<32 - 1, 1 << 31,
	1<<31 - 1, -1 << 31, 1 << 30, 3037000499, 3037000500, -3037000500, 4096, 65535, 255, 256,
}

func (s *source) number() int64 {
	switch b := s.byte(); {
	case b < 192:
		return int64(b) - 32
	case b < 255:
		return edges[int(b-192)%len(edges)] - int64(b-192)/int64(len(edges)) // also one and two below
	default:
		var word [8]byte
		for i := range word {
			word[i] = s.byte()
		}
		return int64(binary.LittleEndian.Uint64(word[:]))
	}
}

func (s *source) extent() int64 {
	if b := s.byte(); b < 200 {
		return int64(b % 8)
	}
	return s.number()
}

var dtypes = dlpacktest.Types()

// tensor may lie in every way that a validator can see. The address of the description and of what it points to is that of s.
func (s *source) tensor() (dlpack.Tensor, dlpack.Flags) {
	how := s.byte()
	t := dlpack.Tensor{Data: 1 << 40, Device: dlpack.CPU, DType: dtypes[int(s.byte())%len(dtypes)]}
	if how&1 != 0 {
		t.DType = dlpack.DataType{Code: dlpack.TypeCode(s.byte()), Bits: s.byte(), Lanes: uint16(s.number())}
	}
	if how&2 != 0 {
		t.Device = dlpack.Device{Type: dlpack.DeviceType(s.number()), ID: int32(s.number())}
	}
	if how&4 != 0 {
		t.Data = uintptr(s.number())
	}
	if how&8 != 0 {
		t.ByteOffset = uint64(s.number())
	}
	ndim := int(s.byte()) % 5
	switch n := s.byte(); {
	case n >= 250:
		t.NDim = int32(s.number())
		ndim = min(max(int(t.NDim), 0), dlpack.MaxNDim)
	case n >= 220:
		ndim = int(n) - 220 + 35
		t.NDim = int32(ndim)
	default:
		t.NDim = int32(ndim)
	}
	for i := range ndim {
		s.dims[i] = s.extent()
	}
	t.Shape = uintptr(unsafe.Pointer(&s.dims[0]))
	if how&16 != 0 {
		for i := range ndim {
			s.dims[dlpack.MaxNDim+i] = s.number()
		}
		t.Strides = uintptr(unsafe.Pointer(&s.dims[dlpack.MaxNDim]))
	}
	switch how >> 5 {
	case 7:
		t.Shape = uintptr(s.byte() & 15)
	case 6:
		t.Strides = uintptr(s.byte()&7) | 1
	}
	if t.NDim > 0 && t.Shape != 0 && t.Shape%8 == 0 && t.Shape < 16 {
		t.Shape = 0 // 8 is an address that only a crash can tell from a good one
	}
	return t, dlpack.Flags(s.byte() & 7)
}

func TestCheckAgreesWithValidateOnRandomTensors(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n = 10_000
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := map[dlpack.Kind]int{}
	raw := make([]byte, 96)
	s := new(source)
	for range n {
		for i := 0; i < len(raw); i += 8 {
			binary.LittleEndian.PutUint64(raw[i:], random.Uint64())
		}
		s.raw = raw
		x, flags := s.tensor()
		if d := compare(&x, flags); d != "" {
			t.Fatalf("seed %d, input %q, %+v, shape %v, strides %v, flags %v: %s", seed, raw, x, s.dims[:4], s.dims[dlpack.MaxNDim:dlpack.MaxNDim+4], flags, d)
		}
		kinds[dlpack.KindOf(dlpack.Validate(&x, flags))]++
	}
	runtime.KeepAlive(s)
	for _, kind := range []dlpack.Kind{dlpack.KindOK, dlpack.KindNull, dlpack.KindShape, dlpack.KindOffset, dlpack.KindDType, dlpack.KindDevice,
		dlpack.KindOverflow, dlpack.KindAlignment} {
		if kinds[kind] < n/1000 {
			t.Errorf("%v: %d of %d tensors, so the generator misses it", kind, kinds[kind], n)
		}
	}
}

// FuzzCheckAgreesWithValidate is the same with inputs that Go's fuzzer finds.
func FuzzCheckAgreesWithValidate(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{16, 12, 2, 0, 2, 3, 35, 33, 0})
	f.Add([]byte{31, 17, 4, 2, 36, 32, 40, 200, 1, 0, 7, 0, 4})
	f.Add([]byte{28, 5, 193, 210, 3, 0, 0, 250, 200, 192, 193, 194, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := &source{raw: raw}
		x, flags := s.tensor()
		if d := compare(&x, flags); d != "" {
			t.Fatalf("%+v, shape %v, strides %v, flags %v: %s", x, s.dims[:8], s.dims[dlpack.MaxNDim:dlpack.MaxNDim+8], flags, d)
		}
		runtime.KeepAlive(s)
	})
}
