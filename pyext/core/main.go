// Command core is the Go library that dlferry's own Python extension opens:
//
//	go build -buildmode=c-shared -trimpath -buildvcs=false \
//		-ldflags='-s -w -buildid= -extldflags=-Wl,--version-script=/abs/pyext/core/exports.map' -o libdlferry.so ./pyext/core
//
// It exports dlf_go_init and dlf_go_call of pyext/shim/frame.h and nothing else, and needs no symbol of Python.
package main

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include <stdlib.h>
#include "../shim/frame.h"
*/
import "C"

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
	"github.com/dlferry/dlferry/pyext"
)

func main() {}

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
	o := pyext.Run(func() (string, error) {
		exchange.Drain()
		return serve(uint32(frame.op), call{
			a:       (*dlpack.Tensor)(unsafe.Pointer(frame.a)),
			b:       (*dlpack.Tensor)(unsafe.Pointer(frame.b)),
			flags:   dlpack.Flags(frame.flags),
			threads: int(frame.threads),
		})
	})
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
