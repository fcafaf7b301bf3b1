// Package fuzz runs the extension's C, which decides which tensors Python takes, from Go: without a Python, to be compared with package dlpack.
// The folder shim has a fuzzer of its own for what Go does not see.
package fuzz

/*
#cgo CFLAGS: -std=gnu11 -O1 -Wall -Wextra
#cgo LDFLAGS: -lm
#include "python.h"
#cgo noescape dlf_check
#cgo nocallback dlf_check
*/
import "C"

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	_ "github.com/dlferry/dlferry/internal/abi" // keeps the headers when the module is vendored
)

// Layout is what the extension works out about a tensor that it takes.
type Layout struct {
	Size, NumBytes, ItemSize, Align, Low, High int64
	Opaque, Contiguous                         bool
}

// Check is the extension's check: KindOK with the layout and the strides, or the kind of the refusal.
func Check(t *dlpack.Tensor, flags dlpack.Flags) (dlpack.Kind, Layout, []int64) {
	var out C.DlfLayout
	var why C.DlfRefusal
	x := (*C.DlfTensor)(unsafe.Pointer(t))
	kind := dlpack.Kind(C.dlf_check(x, C.uint64_t(flags), &out, &why))
	if kind != dlpack.KindOK {
		if dlpack.Kind(why.kind) != kind || why.text == nil {
			panic("a refusal without its reason")
		}
		return kind, Layout{}, nil
	}
	l := Layout{Size: int64(out.size), NumBytes: int64(out.nbytes), ItemSize: int64(out.element.size), Low: int64(out.low), High: int64(out.high),
		Align: int64(out.element.align), Opaque: out.element.kind == C.DLF_OPAQUE}
	l.Contiguous = C.dlf_is_contiguous(x.ndim, x.shape, &out.strides[0]) != 0
	return kind, l, (*[dlpack.MaxNDim]int64)(unsafe.Pointer(&out.strides))[:t.NDim]
}
