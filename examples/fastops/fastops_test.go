package fastops

import (
	"math"
	"slices"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// The functions are plain Go, and can be tested without Python.
func TestTopKPutsNaNFirst(t *testing.T) {
	x, err := dlpack.NewView([]float32{1, 3, float32(math.NaN()), 3})
	if err != nil {
		t.Fatal(err)
	}
	_, indices, err := TopK(x, 3)
	if err != nil || !slices.Equal(indices, []int64{2, 1, 3}) {
		t.Errorf("TopK: %v, %v", indices, err)
	}
}
