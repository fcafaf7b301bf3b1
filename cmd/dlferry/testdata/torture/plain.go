package torture

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Mode is a named scalar.
type Mode int8

// Numbers is a named slice.
type Numbers []float64

// Text is an alias.
type Text = string

const defaultBins = 1 << 8

func wait(ctx context.Context, seconds float64) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return nil
	}
}

//dlferry:export
func Not(b bool) bool { return !b }

//dlferry:export
func AddInt8(a, b int8) int8 { return a + b }

//dlferry:export
func AddInt16(a, b int16) int16 { return a + b }

//dlferry:export
func AddInt32(a, b int32) int32 { return a + b }

//dlferry:export
func AddInt64(a, b int64) int64 { return a + b }

//dlferry:export
func AddUint8(a, b uint8) uint8 { return a + b }

//dlferry:export
func AddUint16(a, b uint16) uint16 { return a + b }

//dlferry:export
func AddUint32(a, b uint32) uint32 { return a + b }

//dlferry:export
func AddUint64(a, b uint64) uint64 { return a + b }

//dlferry:export
func AddUint(a, b uint) uint { return a + b }

//dlferry:export
func Single(x float32) float32 { return x }

//dlferry:export
//dlferry:default z=1-2i
func Conjugate(z complex128) complex128 { return complex(real(z), -imag(z)) }

//dlferry:export
func Single64(z complex64) complex64 { return z }

//dlferry:export name=upper
//dlferry:default tail="\"!\\ö" repeat=1
func ToUpper(s Text, tail string, repeat int) string {
	return strings.ToUpper(s) + strings.Repeat(tail, repeat)
}

//dlferry:export
func Reversed(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := range b {
		out = append(out, b[len(b)-1-i])
	}
	return out
}

//dlferry:export
func Joined(words []string, sep string) (string, []string) {
	return strings.Join(words, sep), strings.Fields(strings.Join(words, " "))
}

//dlferry:export
func SumInts(list []int) int {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return sum
}

//dlferry:export
func Doubled(list Numbers) Numbers {
	out := Numbers{}
	for _, x := range list {
		out = append(out, 2*x)
	}
	return out
}

//dlferry:export
func NextMode(m Mode, wait time.Duration) (Mode, time.Duration) { return m + 1, wait * 2 }

// Lambda has keywords and defaults of all plain kinds.
//
//dlferry:export gil
//dlferry:default bins=defaultBins from=-0.5 flag=true name='x'+0
//dlferry:default wait=time.Second
func Lambda(class string, bins uint16, from float64, flag bool, name rune, wait time.Duration) (string, int, float64, bool, rune, int64) {
	return class, int(bins), from, flag, name, int64(wait)
}

//dlferry:export
func Unnamed(int, _ string, kernelSize int) int { return kernelSize }

//dlferry:export
func Int(str string) (int, error) { return len(str), nil }

//dlferry:export
func Fails(message string) error { return errors.New(message) }

//dlferry:export
func Panics() { panic("on purpose") }

//dlferry:export
func Eight() (a, b, c, d, e, f, g, h int, err error) { return 1, 2, 3, 4, 5, 6, 7, 8, nil }

//dlferry:export
func Sixteen(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p int) int {
	return a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p
}

//dlferry:export
func Nothings() {}

// NotExported has no directive, so Python does not see it.
func NotExported(c chan int) {}

func unexported(f func()) {}
