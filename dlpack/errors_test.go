package dlpack_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*dlpack.Error{
		"from_dlpack: shape of axis 1, got -3, want 0 or more": {Op: "from_dlpack", Kind: dlpack.KindShape, Axis: 1, Got: "-3", Want: "0 or more"},
		"f: data, got NULL, want an address; copy it":          {Op: "f", Kind: dlpack.KindNull, Thing: "data", Axis: dlpack.NoAxis, Got: "NULL", Want: "an address", Hint: "copy it"},
		"f: memory": {Op: "f", Kind: dlpack.KindMemory, Axis: dlpack.NoAxis},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEachKindHasItsSentinel(t *testing.T) {
	seen := map[error]bool{}
	for kind := dlpack.KindNull; kind <= dlpack.KindPanic; kind++ {
		sentinel := kind.Sentinel()
		if sentinel == nil || seen[sentinel] {
			t.Fatalf("%v: sentinel %v, want one of its own", kind, sentinel)
		}
		seen[sentinel] = true
		err := fmt.Errorf("around: %w", &dlpack.Error{Kind: kind, Axis: dlpack.NoAxis})
		for other := dlpack.KindNull; other <= dlpack.KindPanic; other++ {
			if got := errors.Is(err, other.Sentinel()); got != (other == kind) {
				t.Errorf("errors.Is of %v and the sentinel of %v: got %t", kind, other, got)
			}
		}
		var e *dlpack.Error
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("errors.As of %v: got %v", kind, e)
		}
		if dlpack.KindOf(err) != kind || dlpack.KindOf(sentinel) != kind {
			t.Errorf("KindOf of %v: got %v and %v", kind, dlpack.KindOf(err), dlpack.KindOf(sentinel))
		}
	}
	if dlpack.KindOK.Sentinel() != nil || dlpack.Kind(-1).Sentinel() != nil || (dlpack.KindPanic+1).Sentinel() != nil {
		t.Error("kinds that are none have a sentinel")
	}
	if dlpack.KindOf(nil) != dlpack.KindOK || dlpack.KindOf(errors.New("x")) != dlpack.KindValue {
		t.Error("KindOf of nil or of a stranger")
	}
	if got := dlpack.ErrReadOnly.Error(); got != "dlpack: read-only" {
		t.Errorf("ErrReadOnly: got %q", got)
	}
	if dlpack.KindOffset.String() != "byte offset" || dlpack.Kind(77).String() != "kind 77" {
		t.Error("names of kinds")
	}
}
