package pyext

import (
	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/internal/kernel/carry"
)

// Outcome is how a call ended, in the words of the C side.
type Outcome struct {
	Kind    dlpack.Kind // 0 for success
	Message string      // the answer of a success, the text of an error or a panic
	Stack   string      // of a panic
}

// Run calls f, which is a whole entry from C, and says how it ended. It does not panic.
func Run(f func() (string, error)) Outcome {
	var answer string
	var err error
	if p := carry.Call(func() { answer, err = f() }, nil); p != nil {
		return Panicked(p)
	}
	return Ended(answer, err)
}

// Ended is the outcome of a function that returned.
func Ended(answer string, err error) Outcome {
	if err != nil {
		return Outcome{Kind: dlpack.KindOf(err), Message: err.Error()}
	}
	return Outcome{Message: answer}
}

// Panicked is the outcome of a function that panicked with r, asked by the deferred function that recovered it.
func Panicked(r any) Outcome {
	p := carry.Of(r)
	return Outcome{dlpack.KindPanic, p.Error(), string(p.Stack)}
}
