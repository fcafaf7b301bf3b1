package dlpack_test

import (
	"math"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

var minifloats = []dlpack.TypeCode{
	dlpack.CodeFloat8E3M4, dlpack.CodeFloat8E4M3, dlpack.CodeFloat8E4M3B11FNUZ, dlpack.CodeFloat8E4M3FN, dlpack.CodeFloat8E4M3FNUZ, dlpack.CodeFloat8E5M2,
	dlpack.CodeFloat8E5M2FNUZ, dlpack.CodeFloat8E8M0FNU, dlpack.CodeFloat6E2M3FN, dlpack.CodeFloat6E3M2FN, dlpack.CodeFloat4E2M1FN,
}

// Values from the definitions of the formats: largest, smallest normal, smallest subnormal, and what is special.
func TestMinifloatSpotValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		code dlpack.TypeCode
		b    byte
		want float32
	}{
		{dlpack.CodeFloat8E4M3FN, 0x7e, 448}, {dlpack.CodeFloat8E4M3FN, 0x08, 0x1p-6}, {dlpack.CodeFloat8E4M3FN, 0x01, 0x1p-9},
		{dlpack.CodeFloat8E4M3FN, 0x7f, nan}, {dlpack.CodeFloat8E4M3FN, 0xff, nan}, {dlpack.CodeFloat8E4M3FN, 0x38, 1}, {dlpack.CodeFloat8E4M3FN, 0xb8, -1},
		{dlpack.CodeFloat8E4M3, 0x77, 240}, {dlpack.CodeFloat8E4M3, 0x78, inf}, {dlpack.CodeFloat8E4M3, 0x79, nan}, {dlpack.CodeFloat8E4M3, 0xf8, -inf},
		{dlpack.CodeFloat8E3M4, 0x6f, 15.5}, {dlpack.CodeFloat8E3M4, 0x70, inf}, {dlpack.CodeFloat8E3M4, 0x01, 0x1p-6},
		{dlpack.CodeFloat8E5M2, 0x7b, 57344}, {dlpack.CodeFloat8E5M2, 0x7c, inf}, {dlpack.CodeFloat8E5M2, 0x7d, nan}, {dlpack.CodeFloat8E5M2, 0x01, 0x1p-16},
		{dlpack.CodeFloat8E4M3FNUZ, 0x7f, 240}, {dlpack.CodeFloat8E4M3FNUZ, 0x80, nan}, {dlpack.CodeFloat8E4M3FNUZ, 0x01, 0x1p-10},
		{dlpack.CodeFloat8E5M2FNUZ, 0x7f, 57344}, {dlpack.CodeFloat8E5M2FNUZ, 0x80, nan}, {dlpack.CodeFloat8E5M2FNUZ, 0x01, 0x1p-17},
		{dlpack.CodeFloat8E4M3B11FNUZ, 0x7f, 30}, {dlpack.CodeFloat8E4M3B11FNUZ, 0x80, nan}, {dlpack.CodeFloat8E4M3B11FNUZ, 0x01, 0x1p-13},
		{dlpack.CodeFloat8E8M0FNU, 0x00, 0x1p-127}, {dlpack.CodeFloat8E8M0FNU, 0x7f, 1}, {dlpack.CodeFloat8E8M0FNU, 0xfe, 0x1p127}, {dlpack.CodeFloat8E8M0FNU, 0xff, nan},
		{dlpack.CodeFloat6E2M3FN, 0x1f, 7.5}, {dlpack.CodeFloat6E2M3FN, 0x01, 0.125}, {dlpack.CodeFloat6E2M3FN, 0x3f, -7.5}, {dlpack.CodeFloat6E2M3FN, 0x5f, 7.5},
		{dlpack.CodeFloat6E3M2FN, 0x1f, 28}, {dlpack.CodeFloat6E3M2FN, 0x01, 0.0625}, {dlpack.CodeFloat6E3M2FN, 0x20, float32(math.Copysign(0, -1))},
		{dlpack.CodeFloat4E2M1FN, 0x7, 6}, {dlpack.CodeFloat4E2M1FN, 0x1, 0.5}, {dlpack.CodeFloat4E2M1FN, 0xf, -6}, {dlpack.CodeFloat4E2M1FN, 0x2, 1},
	} {
		got := dlpack.DecodeMinifloat(c.code, c.b)
		if math.Float32bits(got) != math.Float32bits(c.want) && !(got != got && c.want != c.want) {
			t.Errorf("%v %#02x: got %v, want %v", c.code, c.b, got, c.want)
		}
		if table := dlpack.MinifloatTable(c.code); math.Float32bits(table[c.b]) != math.Float32bits(got) {
			t.Errorf("%v %#02x: the table says %v, DecodeMinifloat %v", c.code, c.b, table[c.b], got)
		}
	}
}

func TestMinifloatRounding(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		code dlpack.TypeCode
		x    float32
		want byte
	}{
		{dlpack.CodeFloat8E4M3FN, 464, 0x7e}, {dlpack.CodeFloat8E4M3FN, 464.1, 0x7f}, {dlpack.CodeFloat8E4M3FN, -inf, 0xff}, {dlpack.CodeFloat8E4M3FN, nan, 0x7f},
		{dlpack.CodeFloat8E4M3FN, 1.0625, 0x38}, {dlpack.CodeFloat8E4M3FN, 1.1875, 0x3a}, {dlpack.CodeFloat8E4M3FN, 0x1p-10, 0}, {dlpack.CodeFloat8E4M3FN, 0x1.8p-10, 1},
		{dlpack.CodeFloat8E4M3FN, -0x1p-40, 0x80}, {dlpack.CodeFloat8E4M3FN, 0x1p-149, 0},
		{dlpack.CodeFloat8E4M3FNUZ, -0x1p-40, 0}, {dlpack.CodeFloat8E4M3FNUZ, 1000, 0x80}, {dlpack.CodeFloat8E4M3FNUZ, -1000, 0x80},
		{dlpack.CodeFloat8E5M2, 61440, 0x7c}, {dlpack.CodeFloat8E5M2, 61439, 0x7b}, {dlpack.CodeFloat8E5M2, -1e9, 0xfc},
		{dlpack.CodeFloat8E8M0FNU, 0, 0xff}, {dlpack.CodeFloat8E8M0FNU, -1, 0xff}, {dlpack.CodeFloat8E8M0FNU, 1.49, 0x7f}, {dlpack.CodeFloat8E8M0FNU, 1.5, 0x80},
		{dlpack.CodeFloat8E8M0FNU, 3, 0x81}, {dlpack.CodeFloat8E8M0FNU, 0x1p-149, 0}, {dlpack.CodeFloat8E8M0FNU, math.MaxFloat32, 0xff},
		{dlpack.CodeFloat4E2M1FN, 1e9, 0x7}, {dlpack.CodeFloat4E2M1FN, -inf, 0xf}, {dlpack.CodeFloat4E2M1FN, 0.25, 0}, {dlpack.CodeFloat4E2M1FN, 0.75, 2},
		{dlpack.CodeFloat4E2M1FN, 5, 0x6}, {dlpack.CodeFloat4E2M1FN, nan, 0x8}, {dlpack.CodeFloat6E3M2FN, 1e9, 0x1f},
	} {
		if got := dlpack.EncodeMinifloat(c.code, c.x); got != c.want {
			t.Errorf("%v of %v: got %#02x, want %#02x", c.code, c.x, got, c.want)
		}
	}
}

func TestMinifloatsRoundTripAndRoundToTheNearest(t *testing.T) {
	for _, code := range minifloats {
		width := 256
		switch code {
		case dlpack.CodeFloat6E2M3FN, dlpack.CodeFloat6E3M2FN:
			width = 64
		case dlpack.CodeFloat4E2M1FN:
			width = 16
		}
		var finite []float32
		for b := range width {
			x := dlpack.DecodeMinifloat(code, byte(b))
			back := dlpack.DecodeMinifloat(code, dlpack.EncodeMinifloat(code, x))
			if math.Float32bits(back) != math.Float32bits(x) && !(x != x && back != back) {
				t.Errorf("%v %#02x: %v comes back as %v", code, b, x, back)
			}
			if x-x == 0 {
				finite = append(finite, x)
			}
		}
		for i := -300; i < 300; i++ {
			x := float32(i) / 41
			if code == dlpack.CodeFloat8E8M0FNU && x <= 0 {
				continue
			}
			got := dlpack.DecodeMinifloat(code, dlpack.EncodeMinifloat(code, x))
			for _, y := range finite {
				if math.Abs(float64(y)-float64(x)) < math.Abs(float64(got)-float64(x)) {
					t.Errorf("%v of %v: got %v, but %v is nearer", code, x, got, y)
					break
				}
			}
		}
	}
}

func TestMinifloatCodesAreChecked(t *testing.T) {
	for name, f := range map[string]func(){
		"DecodeMinifloat": func() { dlpack.DecodeMinifloat(dlpack.CodeFloat, 0) },
		"EncodeMinifloat": func() { dlpack.EncodeMinifloat(200, 0) },
		"MinifloatTable":  func() { dlpack.MinifloatTable(dlpack.CodeBool) },
	} {
		if e := panicOf(f); e == nil || e.Kind != dlpack.KindDType || e.Op != name {
			t.Errorf("%s: panics with %v, want an *Error of KindDType", name, e)
		}
	}
}

// panicOf is the *Error that f panics with, or nil.
func panicOf(f func()) (e *dlpack.Error) {
	defer func() { e, _ = recover().(*dlpack.Error) }()
	f()
	return nil
}

func TestFloat16(t *testing.T) {
	for bits, want := range map[dlpack.Float16]float64{
		0x0000: 0, 0x8000: math.Copysign(0, -1), 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0400: 0x1p-14, 0x0001: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x3555: 0.333251953125,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := bits.Float32(); math.Float32bits(got) != math.Float32bits(float32(want)) {
			t.Errorf("%#04x: got %v, want %v", uint16(bits), got, want)
		}
	}
	previous := float32(math.Inf(-1))
	for i := range 1 << 16 {
		h := dlpack.Float16(i)
		x := h.Float32()
		back := dlpack.NewFloat16(x)
		if back != h && !(x != x && back&0x7fff > 0x7c00) {
			t.Fatalf("%#04x: %v comes back as %#04x", i, x, uint16(back))
		}
		if dlpack.Float16From64(float64(x)) != back {
			t.Fatalf("%#04x: the two conversions differ", i)
		}
		// The middle between two neighbours goes to the even one; the numbers next to it to the nearer.
		if i > 0 && i < 0x7c00 {
			middle := float32((float64(previous) + float64(x)) / 2)
			even := h &^ 1
			if got := dlpack.NewFloat16(middle); got != even {
				t.Fatalf("%v: got %#04x, want the even %#04x", middle, uint16(got), uint16(even))
			}
			if got := dlpack.NewFloat16(math.Nextafter32(middle, 2*x+1)); got != h {
				t.Fatalf("above %v: got %#04x, want %#04x", middle, uint16(got), i)
			}
			if got := dlpack.NewFloat16(math.Nextafter32(middle, -1)); got != h-1 {
				t.Fatalf("below %v: got %#04x, want %#04x", middle, uint16(got), i-1)
			}
		}
		previous = x
	}
	for x, want := range map[float32]dlpack.Float16{65519: 0x7bff, 65520: 0x7c00, -1e30: 0xfc00, 0x1p-25: 0, 0x1.8p-25: 1, 0x1p-149: 0, -0x1p-149: 0x8000} {
		if got := dlpack.NewFloat16(x); got != want {
			t.Errorf("%v: got %#04x, want %#04x", x, uint16(got), uint16(want))
		}
	}
	// One rounding, not two: through float32 this would become the middle, and the even neighbour.
	if x := 1 + 0x1p-11 + 0x1p-40; dlpack.Float16From64(x) != 0x3c01 || dlpack.NewFloat16(float32(x)) != 0x3c00 {
		t.Errorf("%v: got %#04x, want 0x3c01", x, uint16(dlpack.Float16From64(x)))
	}
	if h := dlpack.NewFloat16(float32(math.NaN())); h&0x7fff <= 0x7c00 {
		t.Errorf("NaN: got %#04x", uint16(h))
	}
	if z := dlpack.NewComplex32(complex(1, -2)); z.Complex64() != complex(1, -2) {
		t.Errorf("complex32: got %v", z.Complex64())
	}
}

func TestBFloat16(t *testing.T) {
	for i := range 1 << 16 {
		b := dlpack.BFloat16(i)
		x := b.Float32()
		if back := dlpack.NewBFloat16(x); back != b && !(x != x && back&0x7fff > 0x7f80) {
			t.Fatalf("%#04x: %v comes back as %#04x", i, x, uint16(back))
		}
	}
	for u, want := range map[uint32]dlpack.BFloat16{
		0x3f800000: 0x3f80, 0x3f808000: 0x3f80, 0x3f818000: 0x3f82, 0x3f808001: 0x3f81, 0x7f7fffff: 0x7f80, 0xff7fffff: 0xff80, 0x00000001: 0, 0x00018000: 2,
		0x7f800001: 0x7fc0, 0xffffffff: 0xffc0, 0x7f800000: 0x7f80,
	} {
		if got := dlpack.NewBFloat16(math.Float32frombits(u)); got != want {
			t.Errorf("%#08x: got %#04x, want %#04x", u, uint16(got), uint16(want))
		}
	}
}

func TestFloat8TypesDecodeTheirOwnFormat(t *testing.T) {
	for b := range 256 {
		for code, got := range map[dlpack.TypeCode]float32{
			dlpack.CodeFloat8E3M4: dlpack.Float8E3M4(b).Float32(), dlpack.CodeFloat8E4M3: dlpack.Float8E4M3(b).Float32(),
			dlpack.CodeFloat8E4M3B11FNUZ: dlpack.Float8E4M3B11FNUZ(b).Float32(), dlpack.CodeFloat8E4M3FN: dlpack.Float8E4M3FN(b).Float32(),
			dlpack.CodeFloat8E4M3FNUZ: dlpack.Float8E4M3FNUZ(b).Float32(), dlpack.CodeFloat8E5M2: dlpack.Float8E5M2(b).Float32(),
			dlpack.CodeFloat8E5M2FNUZ: dlpack.Float8E5M2FNUZ(b).Float32(), dlpack.CodeFloat8E8M0FNU: dlpack.Float8E8M0FNU(b).Float32(),
		} {
			if want := dlpack.DecodeMinifloat(code, byte(b)); math.Float32bits(got) != math.Float32bits(want) {
				t.Errorf("%v %#02x: got %v, want %v", code, b, got, want)
			}
		}
	}
	if first, second := dlpack.NewFloat4E2M1FNx2(1.5, -6).Float32s(); first != 1.5 || second != -6 {
		t.Errorf("float4 x2: got %v and %v", first, second)
	}
	if x := dlpack.NewFloat4E2M1FNx2(0.5, 0); x != 0x01 {
		t.Errorf("float4 x2: the first value lies in the low half, got %#02x", uint8(x))
	}
	if !dlpack.Bool(2).Bool() || dlpack.Bool(0).Bool() {
		t.Error("Bool")
	}
}

func BenchmarkEncodeMinifloat(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		dlpack.EncodeMinifloat(dlpack.CodeFloat8E4M3FN, float32(i&1023)/7)
	}
}
