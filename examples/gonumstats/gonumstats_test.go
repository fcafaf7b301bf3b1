package gonumstats

import (
	"testing"

	"github.com/dlferry/dlferry/dlpack"
	"gonum.org/v1/gonum/mat"
)

func TestMatrixIsTheViewsMemory(t *testing.T) {
	data := []float64{1, 2, 3, 4, 5, 6}
	v, err := dlpack.NewView(data, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := matrix(v)
	if err != nil {
		t.Fatal(err)
	}
	if dense, ok := m.(*mat.Dense); !ok || &dense.RawMatrix().Data[0] != &data[0] {
		t.Error("a row-major view is copied")
	}
	turned, err := matrix(v.Permute(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if !mat.Equal(turned, m.T()) || !mat.Equal(turned.T(), m) {
		t.Errorf("a transposed view is\n%v", mat.Formatted(turned))
	}
	data[0] = 7
	if turned.At(0, 0) != 7 {
		t.Error("a transposed view is copied")
	}
	if &values(v)[0] != &data[0] {
		t.Error("values of a row-major view are copied")
	}
}
