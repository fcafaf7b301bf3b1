package dlpacktest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// Suite runs accept on every case, each as a test of its own. accept takes or refuses the tensor: nil, or an error that matches the sentinel of the case's kind by
// errors.Is. It must not write to the tensor or to its arrays.
func Suite(t *testing.T, accept func(x *dlpack.Tensor, flags dlpack.Flags) error) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			x := c.Tensor()
			before, dims := *x, arrays(x)
			check(t, c.Want, accept(x, c.Flags))
			if *x != before {
				t.Errorf("tensor written to, got %+v, want %+v", *x, before)
			}
			if after := arrays(x); !slices.Equal(dims, after) {
				t.Errorf("shape and strides written to, got %v, want %v", after, dims)
			}
		})
	}
}

// SuiteVersioned is Suite for versioned managed tensors. It adds versions: with another major version accept must look at nothing else. The managed tensors
// have no deleter.
func SuiteVersioned(t *testing.T, accept func(m *dlpack.ManagedTensorVersioned) error) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { check(t, c.Want, accept(c.Managed())) })
	}
	good := Cases()[0]
	for _, v := range []struct {
		name    string
		version dlpack.Version
		want    dlpack.Kind
	}{
		{"an older minor version", dlpack.Version{Major: 1, Minor: 0}, dlpack.KindOK},
		{"a newer minor version", dlpack.Version{Major: 1, Minor: math.MaxUint32}, dlpack.KindOK},
		{"major version 0", dlpack.Version{Major: 0, Minor: 8}, dlpack.KindVersion},
		{"the next major version", dlpack.Version{Major: 2, Minor: 0}, dlpack.KindVersion},
		{"the largest version", dlpack.Version{Major: math.MaxUint32, Minor: math.MaxUint32}, dlpack.KindVersion},
	} {
		t.Run(v.name, func(t *testing.T) {
			m := good.Managed()
			m.Version = v.version
			if v.want != dlpack.KindOK {
				// Nothing of this may be read: whoever does crashes, or answers with another kind.
				m.Tensor = dlpack.Tensor{Data: 1, NDim: 3, Shape: 8, Strides: 8, ByteOffset: math.MaxUint64}
			}
			check(t, v.want, accept(m))
		})
	}
}

func check(t *testing.T, want dlpack.Kind, err error) {
	t.Helper()
	switch {
	case want == dlpack.KindOK && err != nil:
		t.Errorf("a good tensor was refused: %v", err)
	case want != dlpack.KindOK && err == nil:
		t.Errorf("a hostile tensor was accepted, want the kind %v", want)
	case want != dlpack.KindOK && !errors.Is(err, want.Sentinel()):
		t.Errorf("error, got %q, want the kind %v", err, want)
	}
}

// arrays is a copy of shape and strides, as far as they can be read.
func arrays(x *dlpack.Tensor) []int64 {
	if x.NDim > dlpack.MaxNDim || (x.Shape|x.Strides)%8 != 0 {
		return nil
	}
	return slices.Concat(x.ShapeUnchecked(), x.StridesUnchecked())
}
