package host

import (
	"encoding/json"
	"errors"
	"runtime"
	"strconv"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
	"github.com/dlferry/dlferry/internal/kernel"
)

// call is what a frame brings. The tensors lie in C memory and are valid until the call returns.
type call struct {
	a, b    *dlpack.Tensor
	flags   dlpack.Flags // of a
	threads int
}

func serve(op uint32, c call) (string, error) {
	answer, err := dispatch(op, c)
	var e *dlpack.Error
	if errors.As(err, &e) {
		// The caller names its own function.
		own := *e
		own.Op = ""
		err = &own
	}
	return answer, err
}

func dispatch(op uint32, c call) (string, error) {
	switch op {
	case opValidate:
		return "", dlpack.Validate(c.a, c.flags)
	case opCopy:
		return "", copyElements(c)
	case opInfo:
		return info()
	}
	return "", &dlpack.Error{Op: "call", Kind: dlpack.KindUnsupported, Thing: "operation", Axis: dlpack.NoAxis, Got: strconv.FormatUint(uint64(op), 10),
		Want: "one that this library knows", Hint: "the extension and its Go library are of different versions"}
}

func copyElements(c call) error {
	for _, t := range []*dlpack.Tensor{c.a, c.b} {
		if t == nil {
			return &dlpack.Error{Op: "Copy", Kind: dlpack.KindNull, Thing: "tensor", Axis: dlpack.NoAxis, Got: "NULL", Want: "an address"}
		}
	}
	if c.flags.ReadOnly() {
		return dlpack.RequireWritable(c.a, c.flags)
	}
	return kernel.Copy(padded(c.a, c.flags), padded(c.b, c.flags), c.threads)
}

// padded describes values that are padded to a byte each as what they are to a copy: opaque bytes.
func padded(t *dlpack.Tensor, flags dlpack.Flags) *dlpack.Tensor {
	if !flags.SubbytePadded() || t.DType.Bits >= 8 {
		return t
	}
	u := *t
	u.DType.Bits = 8
	return &u
}

func info() (string, error) {
	text, err := json.Marshal(struct {
		Go         string          `json:"go"`
		OS         string          `json:"os"`
		Arch       string          `json:"arch"`
		Processors int             `json:"processors"`
		CgoCalls   int64           `json:"cgo_calls"`
		ABI        int             `json:"abi"`
		DLPack     string          `json:"dlpack"`
		Ledger     exchange.Counts `json:"ledger"`
	}{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), runtime.NumCgoCall(), goABI, dlpack.CurrentVersion.String(), exchange.Ledger()})
	return string(text), err
}
