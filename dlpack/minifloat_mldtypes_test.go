package dlpack

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mlDtypesTables prints, for each format, the float32 bits of every code, and then float32 bits with the code that they are cast to.
const mlDtypesTables = `
import sys, numpy as np, ml_dtypes
names, extra = sys.argv[1].split(","), np.array([int(x, 16) for x in sys.stdin.read().split()], np.uint32)
def line(kind, name, values):
    print(kind, name, *(f"{int(v):x}" for v in values))
with np.errstate(all="ignore"):
    for name in names:
        dt = np.float16 if name == "float16" else getattr(ml_dtypes, name)
        size = np.dtype(dt).itemsize
        raw = np.uint16 if size == 2 else np.uint8
        width = 65536 if size == 2 else {"6": 64, "4": 16}.get(name[5:6], 256) if name[5:6] in "64" else 256
        line("decode", name, np.arange(width).astype(raw).view(dt).astype(np.float32).view(np.uint32))
        line("encode", name, extra.view(np.float32).astype(dt).view(raw))
`

// encodeInputs is float32 bits worth rounding: every code's value, the middle between neighbours, the numbers next to both, extremes, and a spread.
func encodeInputs() []uint32 {
	var in []uint32
	add := func(x float32) {
		u := math.Float32bits(x)
		in = append(in, u, u^0x80000000, u+1, u-1)
	}
	for i, f := range formats {
		code := TypeCode(i)
		if f.max == 0 {
			continue
		}
		var values []float32
		for i := 0; i <= int(f.max); i++ {
			values = append(values, DecodeMinifloat(code, byte(i)))
		}
		for i, v := range values {
			add(v)
			if i > 0 {
				add(float32((float64(v) + float64(values[i-1])) / 2))
			}
		}
		top, below := values[len(values)-1], values[len(values)-2]
		add(float32(float64(top) + (float64(top)-float64(below))/2))
		add(top * 2)
	}
	for u := uint64(0); u < 1<<32; u += 0x9e3779 / 8 {
		in = append(in, uint32(u))
	}
	in = append(in, 0, 0x80000000, 1, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x007fffff, 0x00800000, 0x00400000, 0x00200000)
	slices.Sort(in)
	return slices.Compact(in)
}

func TestFloatsAgreeWithMLDtypes(t *testing.T) {
	python := os.Getenv("DLFERRY_PYTHON")
	if python == "" {
		t.Skip("DLFERRY_PYTHON names no Python with ml_dtypes")
	}
	codes := map[string]TypeCode{}
	names := []string{"float16", "bfloat16"}
	for i, f := range formats {
		code := TypeCode(i)
		if f.max == 0 {
			continue
		}
		codes[code.String()] = code
		names = append(names, code.String())
	}
	slices.Sort(names)
	inputs := encodeInputs()
	var stdin strings.Builder
	for _, u := range inputs {
		fmt.Fprintf(&stdin, "%x ", u)
	}
	cmd := exec.Command(python, "-c", mlDtypesTables, strings.Join(names, ","))
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", python, err)
	}
	decode := func(name string, code uint16) float32 {
		switch name {
		case "float16":
			return Float16(code).Float32()
		case "bfloat16":
			return BFloat16(code).Float32()
		}
		return DecodeMinifloat(codes[name], byte(code))
	}
	encode := func(name string, x float32) uint16 {
		switch name {
		case "float16":
			return uint16(NewFloat16(x))
		case "bfloat16":
			return uint16(NewBFloat16(x))
		}
		return uint16(EncodeMinifloat(codes[name], x))
	}
	// Which bits a NaN keeps is nobody's rule, so any NaN equals any.
	same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }
	lines := 0
	scanner := bufio.NewScanner(strings.NewReader(string(out)))
	scanner.Buffer(nil, len(out)+1)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		kind, name, values := fields[0], fields[1], fields[2:]
		lines++
		bad := 0
		for i, text := range values {
			u, err := strconv.ParseUint(text, 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			if kind == "decode" {
				if got, want := decode(name, uint16(i)), math.Float32frombits(uint32(u)); !same(got, want) {
					t.Errorf("%s: decode %#x, got %v, want %v", name, i, got, want)
					bad++
				}
			} else if name == "float8_e8m0fnu" && inputs[i] > 0x00400000 && inputs[i] < 0x00600000 {
				// ml_dtypes rounds up everything between the two smallest powers; the nearest is the smaller one here.
				if got := encode(name, math.Float32frombits(inputs[i])); got != 0 {
					t.Errorf("%s: encode %#08x, got %#x, want 0", name, inputs[i], got)
				}
			} else if x := math.Float32frombits(inputs[i]); encode(name, x) != uint16(u) && !same(decode(name, encode(name, x)), decode(name, uint16(u))) {
				t.Errorf("%s: encode %v (%#08x), got %#x, want %#x", name, x, inputs[i], encode(name, x), u)
				bad++
			}
			if bad > 10 {
				break
			}
		}
	}
	if want := 2 * len(names); lines != want {
		t.Errorf("lines from Python, got %d, want %d", lines, want)
	}
	t.Logf("%d formats, %d inputs", len(names), len(inputs))
}
