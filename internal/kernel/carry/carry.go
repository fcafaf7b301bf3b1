// Package carry brings panics from the goroutine where they happen to the one that should hear of them.
package carry

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Panic is a panic that was stopped: its value, and the stack of the goroutine at that moment. It is an error, and a value to panic with again.
type Panic struct {
	Value any
	Stack []byte
}

// Error is the text of the value.
func (p *Panic) Error() string { return "panic: " + fmt.Sprint(p.Value) }

// Unwrap is the value, when it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// ErrGoexit is the value of a Panic for a function that ended its goroutine by runtime.Goexit.
var ErrGoexit = errors.New("runtime.Goexit was called")

// Of is what recover gave, which is not nil, with the stack of the deferred function that asks.
func Of(r any) *Panic {
	if p, ok := r.(*Panic); ok {
		return p
	}
	return &Panic{r, debug.Stack()}
}

// Call calls f and returns nil, or what f panicked with. A Panic that passes through keeps its first stack.
//
// A Goexit of f cannot be stopped: it ends the calling goroutine, after exited (when not nil) was called with what to report.
func Call(f func(), exited func(*Panic)) (p *Panic) {
	returned := false
	defer func() {
		if returned {
			return
		}
		r := recover()
		if r != nil {
			p = Of(r)
		} else if exited != nil { // panic(nil) is a *runtime.PanicNilError
			exited(&Panic{ErrGoexit, debug.Stack()})
		}
	}()
	f()
	returned = true
	return nil
}
