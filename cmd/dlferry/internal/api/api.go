// Package api is the functions that a Python package will have: what the writers of Go and of Python need to know about them, without go/types.
// docs/dev/functions.md explains the terms.
package api

import "slices"

// Kind is how a parameter or a result travels. A result is KindTensor, KindTensors, or one of the plain values from KindBool on.
type Kind int

const (
	KindView    Kind = 1  // dlpack.View[T]
	KindMutView Kind = 2  // dlpack.MutView[T]
	KindAnyView Kind = 3  // dlpack.AnyView
	KindViews   Kind = 4  // []dlpack.View[T]
	KindForeign Kind = 5  // *exchange.Foreign
	KindBool    Kind = 6  // bool
	KindInt     Kind = 7  // int, int8, …
	KindUint    Kind = 8  // uint, uint8, …
	KindFloat   Kind = 9  // float32, float64
	KindComplex Kind = 10 // complex64, complex128
	KindString  Kind = 11 // string
	KindBytes   Kind = 12 // []byte
	KindStrings Kind = 13 // []string
	KindInts    Kind = 14 // []int
	KindFloats  Kind = 15 // []float64

	KindTensor  Kind = 1 // of results: a handle of package exchange, or a slice of elements
	KindTensors Kind = 2 // of results: []*exchange.Local
)

// The most parameters (the context not counted) and results of a function.
const (
	MaxParams  = 16
	MaxResults = 8
)

// GoType is how Go code names a type: Name alone for a predeclared one, else with the import path of its package.
type GoType struct{ Path, Name string }

// Param is a parameter.
type Param struct {
	Name string // in Python
	Kind Kind
	// Spec is dtype keys for tensors with an element type, bits for numbers, and empty for the rest.
	Spec []int
	// Types is the element type of a tensor, or the type of a plain value. It has one entry, or, for a type that mentions the type parameter, one for each instance.
	Types []GoType
	// Default is a Python literal, or empty for a required parameter.
	Default string
}

// Result is a result; the error is not among them.
type Result struct {
	Kind  Kind
	Slice bool     // a tensor that is a Go slice
	Types []GoType // of a slice or a plain value, as with Param
}

// Function is an exported function.
type Function struct {
	Name   string // in Python
	GoName string
	Doc    string
	ID     int // of its first instance

	Params  []Param
	Results []Result
	// Instances is the type arguments of a generic function, one for each instance.
	Instances []GoType

	Context, Error, NoGIL, GIL, LikeNone bool
}

// Generic says whether the function has a type parameter.
func (f *Function) Generic() bool { return len(f.Instances) > 0 }

// Like says whether the function has the keyword like=: where it returns a tensor, unless a parameter of its own is called that.
func (f *Function) Like() bool {
	return slices.ContainsFunc(f.Results, func(r Result) bool { return r.Kind == KindTensor || r.Kind == KindTensors }) &&
		!slices.ContainsFunc(f.Params, func(p Param) bool { return p.Name == "like" })
}

// IDs is how many ids the function takes.
func (f *Function) IDs() int { return max(1, len(f.Instances)) }

// Flags is the last argument of `_core._function`.
func (f *Function) Flags() int {
	flags := 0
	for i, set := range []bool{f.NoGIL, f.GIL, f.Context, f.LikeNone, f.Generic()} {
		if set {
			flags |= 1 << i
		}
	}
	return flags
}

// Package is a Go package with exported functions.
type Package struct {
	Path string // the import path
	Name string // the Python module that it becomes, when there are several
	Doc  string
	Dir  string

	Functions []*Function
}

// Of is the entry of an instance in Types.
func Of(types []GoType, instance int) GoType {
	if len(types) == 1 {
		return types[0]
	}
	return types[instance]
}
