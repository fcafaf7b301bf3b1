// Package gonumstats is least squares and statistics by Gonum, over the caller's memory.
package gonumstats

import (
	"fmt"
	"slices"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// LeastSquares is the x for which the length of a x - b is least. a has a row for each equation and at least as many rows as columns, b an element for each row.
//
//dlferry:export nogil
func LeastSquares(a, b dlpack.View[float64]) (*exchange.Local, error) {
	m, err := matrix(a)
	if err != nil {
		return nil, err
	}
	rows, columns := m.Dims()
	if rows < columns {
		return nil, fmt.Errorf("a has %d rows and %d columns, want as many rows as columns or more", rows, columns)
	}
	if b.NDim() != 1 || b.Len() != rows {
		return nil, fmt.Errorf("b has the shape %v, want [%d], an element for each row of a", b.Shape(), rows)
	}
	var qr mat.QR
	qr.Factorize(m) // reads a where it is; the factors are Gonum's own memory
	x, err := exchange.Empty(b.DType(), int64(columns))
	if err != nil {
		return nil, err
	}
	err = exchange.WithMutView(x, func(v dlpack.MutView[float64]) error {
		data, err := v.Data()
		if err != nil {
			return err
		}
		return qr.SolveTo(mat.NewDense(columns, 1, data), false, mat.NewDense(rows, 1, values(b)))
	})
	if err != nil {
		x.Release()
		return nil, fmt.Errorf("a has no unique solution: %w", err)
	}
	return x, nil
}

// MeanStd is the mean of a sample of at least two numbers and its standard deviation, that of NumPy with ddof=1.
//
//dlferry:export
func MeanStd(x dlpack.View[float64]) (mean, std float64, err error) {
	if x.NDim() != 1 || x.Len() < 2 {
		return 0, 0, fmt.Errorf("x has the shape %v, want one dimension and at least two elements", x.Shape())
	}
	mean, std = stat.MeanStdDev(values(x), nil)
	return mean, std, nil
}

// Correlation is Pearson's coefficient of two samples of the same size.
//
//dlferry:export
func Correlation(x, y dlpack.View[float64]) (float64, error) {
	if x.NDim() != 1 || x.Len() < 2 || !slices.Equal(x.Shape(), y.Shape()) {
		return 0, fmt.Errorf("x and y have the shapes %v and %v, want the same, of one dimension and at least two elements", x.Shape(), y.Shape())
	}
	return stat.Correlation(values(x), values(y), nil), nil
}

// matrix is v as Gonum sees matrices, without a copy.
func matrix(v dlpack.View[float64]) (mat.Matrix, error) {
	if v.NDim() != 2 || v.Len() == 0 {
		return nil, fmt.Errorf("a has the shape %v, want two dimensions, neither of them 0", v.Shape())
	}
	data, err := v.Data()
	if err != nil {
		return strided{v}, nil
	}
	return mat.NewDense(int(v.Shape()[0]), int(v.Shape()[1]), data), nil
}

// strided is a matrix whose elements are not in row-major order: Gonum asks for them one by one.
type strided struct{ v dlpack.View[float64] }

func (s strided) Dims() (rows, columns int) { return int(s.v.Shape()[0]), int(s.v.Shape()[1]) }
func (s strided) At(i, j int) float64       { return s.v.At(i, j) }
func (s strided) T() mat.Matrix             { return strided{s.v.Permute(1, 0)} }

// values is the elements of v: in place if they lie side by side, or else copied.
func values(v dlpack.View[float64]) []float64 {
	data, err := v.Data()
	if err != nil {
		return slices.Collect(v.Values())
	}
	return data
}
