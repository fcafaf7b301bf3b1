// Package glue is what the Go files that dlferry build generates are made of: it reads the arguments of a call from the frame that C filled, and writes
// the results. Nobody else needs it; docs/dev/functions.md describes the interface.
//
// C has checked element types, devices, alignment, writability, ranges and counts before it crosses, so nothing is looked at again. Arguments are valid until the
// call returns.
package glue

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
)

// Value mirrors DlfValue of pyext/shim/frame.h: two words whose meaning depends on the kind of the parameter.
type Value struct{ a, b uint64 }

// Frame is one call as it comes from C.
type Frame struct {
	Function int
	In, Out  []Value
	Scratch  []byte // C memory for small results
	Context  context.Context
}

// Call is one call of a function.
type Call struct {
	in, out []Value
	scratch []byte
	ctx     context.Context
	err     error // the first that reading arguments or writing results met
}

func (c *Call) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// stopped is a panic that Invoke turns into the error that c.err holds.
type stopped struct{}

// Alloc gives C memory that the C side frees; nil when there is none. Package host sets it.
var Alloc func(n int) unsafe.Pointer

var functions []func(*Call) error

// Register gives a function its number. It is for init functions of the generated package.
func Register(id int, f func(*Call) error) {
	for len(functions) <= id {
		functions = append(functions, nil)
	}
	functions[id] = f
}

var calls = sync.Pool{New: func() any { return new(Call) }}

// Invoke runs a registered function.
func Invoke(f *Frame) error {
	if f.Function < 0 || f.Function >= len(functions) || functions[f.Function] == nil {
		return &dlpack.Error{Op: "call", Kind: dlpack.KindUnsupported, Thing: "function", Axis: dlpack.NoAxis, Got: fmt.Sprint(f.Function),
			Want: "one that this library has", Hint: "the Python files and the Go library are of different builds"}
	}
	c := calls.Get().(*Call)
	c.in, c.out, c.scratch, c.ctx = f.In, f.Out, f.Scratch, f.Context
	err := c.run(functions[f.Function])
	c.ctx, c.err = nil, nil // the rest is C memory
	calls.Put(c)
	return err
}

func (c *Call) run(f func(*Call) error) (err error) {
	defer func() {
		if c.err == nil {
			return
		}
		if r := recover(); r == nil || r == (stopped{}) {
			err = c.err
		} else {
			panic(r)
		}
	}()
	return f(c)
}

// Context is cancelled when the caller interrupts the call, for functions that take one.
func (c *Call) Context() context.Context { return c.ctx }

func pointer(word uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&word)) }

func (c *Call) tensor(i int) *dlpack.Tensor { return (*dlpack.Tensor)(pointer(c.in[i].a)) }

// View is argument i.
func View[T dlpack.Element](c *Call, i int) dlpack.View[T] { return dlpack.TrustedView[T](c.tensor(i)) }

// MutView is argument i, writable.
func MutView[T dlpack.Element](c *Call, i int) dlpack.MutView[T] {
	return dlpack.TrustedMutView[T](c.tensor(i))
}

// AnyView is argument i.
func AnyView(c *Call, i int) dlpack.AnyView {
	return dlpack.TrustedAnyView(c.tensor(i), dlpack.Flags(c.in[i].b))
}

// Views is argument i, a list.
func Views[T dlpack.Element](c *Call, i int) []dlpack.View[T] {
	items := array[Value](c.in[i])
	views := make([]dlpack.View[T], len(items))
	for k, v := range items {
		views[k] = dlpack.TrustedView[T]((*dlpack.Tensor)(pointer(v.a)))
	}
	return views
}

// Foreign is argument i, which belongs to the function from now on.
func Foreign(c *Call, i int) *exchange.Foreign {
	m := (*dlpack.ManagedTensorVersioned)(pointer(c.in[i].a))
	f, err := exchange.Import(m)
	if err != nil {
		c.fail(err)
		panic(stopped{})
	}
	return f
}

func array[T any](v Value) []T { return unsafe.Slice((*T)(pointer(v.a)), int(v.b)) }
