// Package host is what makes a Go library one that the Python extension can open: the two exports of pyext/shim/frame.h. A main package that imports it,
// built with -buildmode=c-shared, is such a library; functions are added to it by package glue.
package host

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include <stdlib.h>
#include "../shim/frame.h"
*/
import "C"

import (
	"context"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
	"github.com/dlferry/dlferry/pyext"
	"github.com/dlferry/dlferry/pyext/glue"
)

func init() {
	glue.Alloc = func(n int) unsafe.Pointer { return C.malloc(C.size_t(n)) }
}

//export dlf_go_init
func dlf_go_init(host *C.DlfGoHost) C.uint32_t {
	if host != nil && host.abi == C.DLF_GO_ABI {
		exchange.SetPythonEnd(uintptr(unsafe.Pointer(host.python_end)))
	}
	return C.DLF_GO_ABI
}

//export dlf_go_call
func dlf_go_call(frame *C.DlfFrame) {
	if frame == nil {
		return
	}
	switch frame.op {
	case C.DLF_OP_START:
		frame.call = C.uint64_t(start(func(ctx context.Context) *pyext.Outcome { return invoke(frame, ctx) }))
		return
	case C.DLF_OP_WAIT:
		o, done := wait(uint64(frame.call))
		frame.pending = 0
		if !done {
			frame.pending = 1
			return
		}
		if o != nil {
			answer(frame, *o)
		}
		return
	case C.DLF_OP_CANCEL:
		cancel(uint64(frame.call))
		return
	case C.DLF_OP_CALL:
		if o := invoke(frame, context.Background()); o != nil {
			answer(frame, *o)
		}
		return
	}
	answer(frame, pyext.Run(func() (string, error) {
		exchange.Drain()
		return serve(uint32(frame.op), call{
			a:       (*dlpack.Tensor)(unsafe.Pointer(frame.a)),
			b:       (*dlpack.Tensor)(unsafe.Pointer(frame.b)),
			flags:   dlpack.Flags(frame.flags),
			threads: int(frame.threads),
		})
	}))
}

// invoke is pyext.Run without its closures, which would be allocated in every call. nil is success: the caller's frame says so already.
func invoke(frame *C.DlfFrame, ctx context.Context) (o *pyext.Outcome) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if r := recover(); r != nil {
			panicked := pyext.Panicked(r)
			o = &panicked
		}
	}()
	exchange.Drain()
	err := glue.Invoke(&glue.Frame{
		Function: int(frame.function),
		In:       unsafe.Slice((*glue.Value)(unsafe.Pointer(frame.in)), int(frame.n_in)),
		Out:      unsafe.Slice((*glue.Value)(unsafe.Pointer(frame.out)), int(frame.n_out)),
		Scratch:  unsafe.Slice((*byte)(unsafe.Pointer(frame.scratch)), int(frame.scratch_size)),
		Context:  ctx,
	})
	returned = true
	if err == nil {
		return nil
	}
	ended := pyext.Ended("", err)
	return &ended
}

func answer(frame *C.DlfFrame, o pyext.Outcome) {
	frame.status = C.int32_t(o.Kind)
	frame.message = text(o.Message)
	frame.stack = text(o.Stack)
}

// text is a copy of s in C memory that the caller of the library frees; NULL for an empty one.
func text(s string) *C.char {
	if s == "" {
		return nil
	}
	return C.CString(s)
}

const (
	opValidate = C.DLF_OP_VALIDATE
	opCopy     = C.DLF_OP_COPY
	opInfo     = C.DLF_OP_INFO
	goABI      = C.DLF_GO_ABI
)

// The mirror of DlfValue has its size.
var _ [unsafe.Sizeof(glue.Value{}) - unsafe.Sizeof(C.DlfValue{})]struct{} = [0]struct{}{}
