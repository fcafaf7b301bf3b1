package exchange

import (
	"runtime"

	"github.com/dlferry/dlferry/dlpack"
)

// Local is a tensor that this package made: its description is trusted, and its data lives in C memory or in Go memory that is pinned.
//
// A Local holds one reference on the data; Release gives it back. One that is dropped without Release is found by the garbage collector, late: the collector
// does not know how much C memory hangs on it. Methods are safe for concurrent use; reading and writing the elements is as unsynchronised as with a slice.
type Local struct {
	tensor
}

// Release gives the handle's reference back. The data ends now if nothing else holds it, else with the last deleter of its exports, or when the
// WithView that is looking returns. Further calls do nothing.
func (l *Local) Release() {
	l.release()
	runtime.KeepAlive(l)
}

// Retain is a second handle on the same data, with a Release of its own. ErrClosed: after Release.
func (l *Local) Retain() (*Local, error) {
	u := new(Local)
	if err := l.share("exchange.Retain", &u.tensor); err != nil {
		return nil, err
	}
	return u.watched(), nil
}

// watched spans the net under the handle.
func (l *Local) watched() *Local {
	l.net = runtime.AddCleanup(l, storageUnref, l.storage)
	return l
}

// Handle is a *Local or a *Foreign.
type Handle interface {
	NDim() int
	Shape() []int64
	Strides() []int64
	DType() dlpack.DataType
	Device() dlpack.Device
	Flags() dlpack.Flags
	ReadOnly() bool
	Len() int64
	Export() (*dlpack.ManagedTensorVersioned, error)
	ExportLegacy() (*dlpack.ManagedTensor, error)
	Release()

	use(op string, f func(*dlpack.Tensor, dlpack.Flags) error) error
}

// WithTensor calls f with the raw description of the tensor and its flags. Both are for the call only: f must not keep the pointer, nor anything that it
// leads to. The data stays, whatever other goroutines release.
//
// ErrClosed: after Release. Errors of f are returned as they are.
func WithTensor(h Handle, f func(*dlpack.Tensor, dlpack.Flags) error) error {
	return h.use("exchange.WithTensor", f)
}
