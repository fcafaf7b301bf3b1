// Package wrong has functions that can't become Python.
package wrong

import (
	"context"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
)

type (
	point       struct{ x, y int }
	mode        int
	Boxed       struct{ X int }
	Vector      []float32
	Pair[T any] struct{ A, B T }
	Of[T any]   int
)

//dlferry:export
func Channel(c chan int) {}

//dlferry:export
func Mapped(m map[string]int) map[int]int { return nil }

//dlferry:export
func Callback(f func(int) int) {}

//dlferry:export
func Struct(p point, q *Boxed) {}

//dlferry:export
func Pointer(p *int) {}

//dlferry:export
func Interface(x any) error { return nil }

//dlferry:export
func Array(a [3]float32) [3]float64 { return [3]float64{} }

//dlferry:export
func Floats(x []float32, y Vector, z [][]float64) {}

//dlferry:export
func Views(x []dlpack.MutView[float32]) dlpack.View[float32] { return dlpack.View[float32]{} }

//dlferry:export
func Values(x exchange.Foreign, y *exchange.Local, h exchange.Handle) {}

//dlferry:export
func Variadic(xs ...float64) {}

//dlferry:export
func ErrorFirst(x int) (error, int) { return nil, x }

//dlferry:export
func ContextLast(x int, ctx context.Context) {}

//dlferry:export
func Many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q int) {}

//dlferry:export
func Results() (a, b, c, d, e, f, g, h, i int) { return }

//dlferry:export
func Hidden(m mode) {}

//dlferry:export
func Raw(p unsafe.Pointer, q uintptr) uintptr { return q }

//dlferry:export
func Half(x dlpack.Float16) dlpack.Bool { return 0 }

//dlferry:export
func (b Boxed) Method() {}

//dlferry:export
func hidden() {}

//dlferry:export
func Generic[T dlpack.Float](x dlpack.View[T]) {}

//dlferry:export float32
func Two[T dlpack.Float, U dlpack.Float](x dlpack.View[T], y dlpack.View[U]) {}

//dlferry:export float32 int32 float33 int float16 float32
func Constrained[T dlpack.Float](x dlpack.View[T]) {}

//dlferry:export float32 int32
func Mixed[T dlpack.Real](x dlpack.View[T]) T { return x.At(0) }

//dlferry:export float32
func NoTensor[T dlpack.Real](x T) {}

//dlferry:export int32
func Slices[T dlpack.Real](x []T, p Pair[T]) {}

//dlferry:export dlpack.Float16
func Halves[T dlpack.Element](x dlpack.View[T]) T { return x.At(0) }

//dlferry:export float32
func NotGeneric(x dlpack.View[float32]) {}

//dlferry:export nogill name=1a like=numpy
func Options() {}

//dlferry:export nogil gil name=class
func Both() {}

//dlferry:export
func TopK() {}

//dlferry:export name=top_k
func Other() {}

//dlferry:export
func SameParam(kernelSize, kernel_size int) {}

//dlferry:export
//dlferry:default a=1
func DefaultFirst(a, b int) {}

//dlferry:export
//dlferry:default a=300 b=1.5 c=-1 d="x" e=1 f=nothing g=1e400 z=1 h=nil
func Defaults(a int8, b int, c uint, d int, e string, f int, g float64, h dlpack.AnyView) {}

//dlferry:export
//dlferry:default a 1
func Unreadable(a int) {}

//dlferry:default a=1
func OnlyDefault(a int) {}

//dlferry:exprot
func Misspelt() {}

// dlferry:export
func Spaced() {}

//dlferry:export
type Class struct{}

//dlferry:export

func Detached() {}

//dlferry:export
func ÄÖ() {}

//dlferry:export
func Errs(e error, n Of[int]) ([]*exchange.Foreign, [][]int, []mode) { return nil, nil, nil }

type failure struct{}

func (*failure) Error() string { return "" }

//dlferry:export
func Pointers(v *dlpack.View[int8], p **int, s *Boxed) *failure { return nil }

//dlferry:export
func _(c chan int) {}

//dlferry:export byte
func Reason[T dlpack.Float](x dlpack.View[T]) {}

//dlferry:export
func Inside() {
	//dlferry:default a=1
}
