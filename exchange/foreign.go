package exchange

import (
	"runtime"
	"strconv"
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
)

// Foreign is a tensor that somebody else made and that was handed over to us. What it says about itself was validated when it was imported, and copied: the
// producer's struct is read once, never written to. That its addresses lead to memory is the producer's word.
//
// Release runs the producer's deleter, directly, on the calling goroutine's thread; next to Python it goes through the interpreter's queue. The rest is as
// with Local.
type Foreign struct {
	tensor
	version dlpack.Version
}

// Import takes over a versioned managed tensor. It is consumed in every case: on success the Foreign owns it, on failure its deleter has already run,
// once. Of a struct of another major version nothing but the deleter is touched.
//
// Missing strides are computed. ErrNull: m is nil, and there was nothing to consume. ErrVersion: another major version. ErrMemory. The other
// errors are those of dlpack.Validate.
func Import(m *dlpack.ManagedTensorVersioned) (*Foreign, error) {
	const op = "exchange.Import"
	if m == nil {
		return nil, nothing(op)
	}
	st := storageImport(endVersioned, uintptr(unsafe.Pointer(m)))
	if st == 0 {
		return nil, noMemory(op, "room for a storage")
	}
	if !m.Version.Compatible() {
		err := &dlpack.Error{Op: op, Kind: dlpack.KindVersion, Axis: dlpack.NoAxis, Got: m.Version.String(), Want: strconv.Itoa(dlpack.VersionMajor) + ".x",
			Hint: "ask the producer for a tensor of that major version"}
		storageUnref(st)
		return nil, err
	}
	return adopt(st, m.Tensor, m.Flags, m.Version)
}

// ImportLegacy is Import for the unversioned struct. It carries no flags: the data counts as writable.
func ImportLegacy(m *dlpack.ManagedTensor) (*Foreign, error) {
	const op = "exchange.ImportLegacy"
	if m == nil {
		return nil, nothing(op)
	}
	st := storageImport(endLegacy, uintptr(unsafe.Pointer(m)))
	if st == 0 {
		return nil, noMemory(op, "room for a storage")
	}
	return adopt(st, m.Tensor, 0, dlpack.Version{})
}

func nothing(op string) error {
	return &dlpack.Error{Op: op, Kind: dlpack.KindNull, Thing: "managed tensor", Axis: dlpack.NoAxis, Got: "NULL", Want: "an address"}
}

// adopt is the one decoder of foreign tensors. It consumes the reference on st, and d is already a copy.
func adopt(st uintptr, d dlpack.Tensor, flags dlpack.Flags, version dlpack.Version) (*Foreign, error) {
	f := &Foreign{version: version}
	err := dlpack.Validate(&d, flags)
	if err == nil {
		err = f.describe(d, d.ShapeUnchecked(), d.StridesUnchecked(), flags)
	}
	if err == nil {
		// Once more, of the copy: the producer's own memory may have changed under the first look.
		err = dlpack.Validate(&f.desc, flags)
	}
	if err != nil {
		storageUnref(st)
		return nil, err
	}
	f.storage = st
	return f.watched(), nil
}

func (f *Foreign) watched() *Foreign {
	f.net = runtime.AddCleanup(f, storageUnref, f.storage)
	return f
}

// Version is the version that the producer wrote into the struct; 0.0 for an unversioned one.
func (f *Foreign) Version() dlpack.Version { return f.version }

// Release gives the handle's reference back; with the last reference, those of exports included, the producer's deleter runs, once. Further calls do nothing.
func (f *Foreign) Release() {
	f.release()
	runtime.KeepAlive(f)
}

// Retain is a second handle on the same data, with a Release of its own. ErrClosed: after Release.
func (f *Foreign) Retain() (*Foreign, error) {
	u := &Foreign{version: f.version}
	if err := f.share("exchange.Retain", &u.tensor); err != nil {
		return nil, err
	}
	return u.watched(), nil
}
