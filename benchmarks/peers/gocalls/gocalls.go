// Package gocalls is functions for the benchmarks of calls from Python into Go.
package gocalls

import (
	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
)

// Take3 looks at nothing.
//
//dlferry:export
func Take3(a, b, c dlpack.View[float32]) {}

// Like is a new tensor of the shape of x, whose elements have any value.
//
//dlferry:export
func Like(x dlpack.View[float32]) (*exchange.Local, error) {
	return exchange.Empty(dlpack.DTypeFloat32, x.Shape()...)
}

// Add is the sum of two numbers.
//
//dlferry:export
func Add(a, b float64) float64 { return a + b }

// Same gives the text back.
//
//dlferry:export
func Same(text string) string { return text }
