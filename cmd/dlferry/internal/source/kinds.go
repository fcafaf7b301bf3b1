package source

import (
	"go/types"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
)

const (
	dlpackPath   = gomod.Path + "/dlpack"
	exchangePath = gomod.Path + "/exchange"
)

// scalarOfT is the kind of a plain value of the type parameter's type, until its instances are looked at.
const scalarOfT api.Kind = 100

// refusal is a type that can't cross, and what to write instead.
type refusal struct{ message, instead string }

func isNamed(t types.Type, path, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// short is a type as it is written in Go, with the names of packages.
func short(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}

// viewElem is the element type of dlpack's View or MutView.
func viewElem(t types.Type) (name string, elem types.Type) {
	for _, name := range []string{"View", "MutView"} {
		if isNamed(t, dlpackPath, name) {
			if args := types.Unalias(t).(*types.Named).TypeArgs(); args.Len() == 1 {
				return name, types.Unalias(args.At(0))
			}
		}
	}
	return "", nil
}

// scalar is the kind of a plain value, or 0.
func scalar(t types.Type) api.Kind {
	basic, ok := t.Underlying().(*types.Basic)
	if _, isParam := types.Unalias(t).(*types.TypeParam); !ok || isParam {
		return 0
	}
	switch info := basic.Info(); {
	case basic.Kind() == types.Uintptr || basic.Kind() == types.UnsafePointer:
		return 0
	case info&types.IsBoolean != 0:
		return api.KindBool
	case info&types.IsUnsigned != 0:
		return api.KindUint
	case info&types.IsInteger != 0:
		return api.KindInt
	case info&types.IsFloat != 0:
		return api.KindFloat
	case info&types.IsComplex != 0:
		return api.KindComplex
	case info&types.IsString != 0:
		return api.KindString
	}
	return 0
}

// bitsOf is the width of a number; int and uint have 64 on every platform that dlferry is for.
func bitsOf(t types.Type) int {
	switch t.Underlying().(*types.Basic).Kind() {
	case types.Int8, types.Uint8:
		return 8
	case types.Int16, types.Uint16:
		return 16
	case types.Int32, types.Uint32, types.Float32:
		return 32
	case types.Complex128:
		return 128
	}
	return 64
}

// plainSlice is the kind of a slice that becomes bytes or a list, or 0.
func plainSlice(elem types.Type) api.Kind {
	basic, ok := types.Unalias(elem).(*types.Basic)
	if !ok {
		return 0
	}
	switch basic.Kind() {
	case types.Uint8:
		return api.KindBytes
	case types.String:
		return api.KindStrings
	case types.Int:
		return api.KindInts
	case types.Float64:
		return api.KindFloats
	}
	return 0
}

// The element types of dlpack: the predeclared ones and its own, by their dtype's code and bits.
var (
	predeclared = map[types.BasicKind][2]int{
		types.Bool: {6, 8}, types.Int8: {0, 8}, types.Int16: {0, 16}, types.Int32: {0, 32}, types.Int64: {0, 64},
		types.Uint8: {1, 8}, types.Uint16: {1, 16}, types.Uint32: {1, 32}, types.Uint64: {1, 64},
		types.Float32: {2, 32}, types.Float64: {2, 64}, types.Complex64: {5, 64}, types.Complex128: {5, 128},
	}
	own = map[string][2]int{
		"Bool": {6, 8}, "Float16": {2, 16}, "BFloat16": {4, 16}, "Complex32": {5, 32}, "Float8E3M4": {7, 8}, "Float8E4M3": {8, 8}, "Float8E4M3B11FNUZ": {9, 8},
		"Float8E4M3FN": {10, 8}, "Float8E4M3FNUZ": {11, 8}, "Float8E5M2": {12, 8}, "Float8E5M2FNUZ": {13, 8}, "Float8E8M0FNU": {14, 8}, "Float4E2M1FNx2": {17, 4},
	}
)

// dtypeKey is code | bits << 8 | lanes << 16 of an element type.
func dtypeKey(t types.Type) (int, bool) {
	var dtype [2]int
	ok, lanes := false, 1
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		dtype, ok = predeclared[t.Kind()]
	case *types.Named:
		if t.Obj().Pkg() != nil && t.Obj().Pkg().Path() == dlpackPath {
			dtype, ok = own[t.Obj().Name()]
			if t.Obj().Name() == "Float4E2M1FNx2" {
				lanes = 2
			}
		}
	}
	return dtype[0] | dtype[1]<<8 | lanes<<16, ok
}

// ownElement is the plain type to write instead of an element type of dlpack's own, whose bits are no plain value; empty for other types.
func ownElement(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if _, isKey := dtypeKey(t); !ok || !isKey {
		return ""
	}
	switch named.Obj().Name() {
	case "Bool":
		return "bool"
	case "Complex32":
		return "complex64"
	}
	return "float32"
}
