package source

import (
	"fmt"
	"go/types"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// paramKind says how a parameter of the type travels, and its element type or its own type where the glue needs that.
func paramKind(t types.Type) (kind api.Kind, elem types.Type, wrong refusal) {
	t = types.Unalias(t)
	if name, elem := viewElem(t); name == "View" {
		return api.KindView, elem, wrong
	} else if name == "MutView" {
		return api.KindMutView, elem, wrong
	}
	switch {
	case isNamed(t, dlpackPath, "AnyView"):
		return api.KindAnyView, nil, wrong
	case isNamed(t, "context", "Context"):
		return 0, nil, refusal{"a context.Context that is not the first parameter", "write it first"}
	case isNamed(t, exchangePath, "Foreign"), isNamed(t, exchangePath, "Local"), isNamed(t, exchangePath, "Handle"):
		return 0, nil, refusal{short(t) + " can't be a parameter", "write *exchange.Foreign for a tensor to keep, dlpack.View[T] or dlpack.AnyView for one to look at"}
	case isError(t):
		return 0, nil, refusal{"an error can't be a parameter", "write a string"}
	case ownElement(t) != "":
		return 0, nil, refusal{short(t) + " is an element of tensors only", "write " + ownElement(t)}
	}
	if kind := scalar(t); kind != 0 {
		return kind, t, plainName(t)
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		if isNamed(u.Elem(), exchangePath, "Foreign") {
			return api.KindForeign, nil, wrong
		}
		if isNamed(u.Elem(), exchangePath, "Local") {
			return 0, nil, refusal{"a *exchange.Local can't be a parameter: Go makes those", "write *exchange.Foreign"}
		}
	case *types.Slice:
		return sliceParam(t, u)
	}
	if _, ok := t.(*types.TypeParam); ok {
		return scalarOfT, t, wrong
	}
	return 0, nil, unsupported(t, "parameter")
}

func sliceParam(t types.Type, slice *types.Slice) (api.Kind, types.Type, refusal) {
	elem := types.Unalias(slice.Elem())
	if kind := plainSlice(elem); kind != 0 {
		return kind, nil, refusal{}
	}
	switch name, of := viewElem(elem); {
	case name == "View":
		return api.KindViews, of, refusal{}
	case name == "MutView":
		return 0, nil, refusal{short(t) + " can't be a parameter", "write a dlpack.MutView for each tensor that is written to"}
	}
	if _, ok := dtypeKey(elem); ok {
		return 0, nil, refusal{short(t) + " can't be a parameter", "write dlpack.View[" + short(elem) + "]"}
	}
	switch u := elem.Underlying().(type) {
	case *types.Slice:
		if _, ok := dtypeKey(u.Elem()); ok {
			return 0, nil, refusal{short(t) + " can't be a parameter", "write dlpack.View[" + short(u.Elem()) + "], which may have two axes"}
		}
	case *types.Basic:
		instead := map[api.Kind]string{api.KindString: "[]string", api.KindFloat: "[]float64", api.KindInt: "[]int", api.KindUint: "[]int"}[scalar(elem)]
		if instead != "" {
			return 0, nil, refusal{short(t) + " can't be a parameter", "write " + instead}
		}
	}
	if p, ok := elem.(*types.TypeParam); ok {
		return 0, nil, refusal{short(t) + " can't be a parameter", "write dlpack.View[" + p.Obj().Name() + "]"}
	}
	return 0, nil, refusal{short(t) + " can't be a parameter", "write a slice of int, float64, string, byte or dlpack.View[T]"}
}

// resultKind is paramKind for results. slice says that a Go slice becomes a tensor.
func resultKind(t types.Type) (kind api.Kind, elem types.Type, slice bool, wrong refusal) {
	t = types.Unalias(t)
	switch name, elem := viewElem(t); {
	case name != "":
		return 0, nil, false, refusal{"a " + short(t) + " can't be a result: it does not keep the tensor", "write *exchange.Local, or []" + short(elem) + ", which is copied"}
	case isNamed(t, dlpackPath, "AnyView"):
		return 0, nil, false, refusal{"a dlpack.AnyView can't be a result: it does not keep the tensor", "write *exchange.Local"}
	case isNamed(t, exchangePath, "Local"), isNamed(t, exchangePath, "Foreign"), isNamed(t, exchangePath, "Handle"):
		return 0, nil, false, refusal{short(t) + " can't be a result", "write *exchange.Local or *exchange.Foreign"}
	case isNamed(t, "context", "Context"):
		return 0, nil, false, refusal{"a context.Context can't be a result", "leave it out"}
	case ownElement(t) != "":
		return 0, nil, false, refusal{short(t) + " is an element of tensors only", "write " + ownElement(t)}
	}
	if kind := scalar(t); kind != 0 {
		return kind, nil, false, wrong
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		if isNamed(u.Elem(), exchangePath, "Foreign") || isNamed(u.Elem(), exchangePath, "Local") {
			return api.KindTensor, nil, false, wrong
		}
	case *types.Slice:
		return sliceResult(t, u)
	}
	if _, ok := t.(*types.TypeParam); ok {
		return scalarOfT, nil, false, wrong
	}
	return 0, nil, false, unsupported(t, "result")
}

func sliceResult(t types.Type, s *types.Slice) (kind api.Kind, elem types.Type, slice bool, wrong refusal) {
	elem = types.Unalias(s.Elem())
	if kind := plainSlice(elem); kind != 0 {
		return kind, nil, false, wrong
	}
	if p, ok := elem.(*types.Pointer); ok && isNamed(p.Elem(), exchangePath, "Local") {
		return api.KindTensors, nil, false, wrong
	}
	if _, ok := dtypeKey(elem); ok {
		return api.KindTensor, elem, true, wrong
	}
	if _, ok := elem.(*types.TypeParam); ok {
		return api.KindTensor, elem, true, wrong
	}
	instead := "write a slice of an element type (a tensor), of int, float64 or string (a list), or []*exchange.Local"
	switch u := elem.Underlying().(type) {
	case *types.Slice:
		instead = "write *exchange.Local, which may have two axes"
	case *types.Pointer:
		if isNamed(u.Elem(), exchangePath, "Foreign") {
			instead = "write []*exchange.Local"
		}
	case *types.Basic:
		instead = "write []" + short(u)
	}
	return 0, nil, false, refusal{short(t) + " can't be a result", instead}
}

// plainName refuses a named scalar that can't be named without type arguments.
func plainName(t types.Type) (wrong refusal) {
	if named, ok := t.(*types.Named); ok && named.TypeArgs().Len() > 0 {
		return refusal{short(t) + " can't be a parameter", "write " + short(named.Underlying())}
	}
	return wrong
}

// unsupported says what to write instead of a type that Python has nothing for.
func unsupported(t types.Type, what string) refusal {
	instead := "write one of the types in dlferry's table of functions"
	switch u := t.Underlying().(type) {
	case *types.Chan:
		instead = "write a slice: Python waits until the function returns"
	case *types.Map:
		instead = "write two slices, one of keys and one of values"
	case *types.Signature:
		instead = "write a string that names one of a few functions: Go does not call Python"
	case *types.Interface:
		instead = "write the type that is meant; for a tensor of any dtype dlpack.AnyView"
	case *types.Struct:
		instead = "write its fields one by one"
	case *types.Pointer:
		instead = fmt.Sprintf("write %s without the *", strings.TrimLeft(short(u.Elem()), "*"))
		_, isStruct := u.Elem().Underlying().(*types.Struct)
		switch name, _ := viewElem(u.Elem()); {
		case types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface)):
			instead = "write error, as the last result"
		case isStruct && name == "" && !isNamed(u.Elem(), dlpackPath, "AnyView"):
			instead = "write the fields one by one: struct types do not become Python classes yet"
		}
	case *types.Array:
		instead = "write []" + short(u.Elem())
		if _, ok := dtypeKey(u.Elem()); ok && what == "parameter" && plainSlice(u.Elem()) == 0 {
			instead = "write dlpack.View[" + short(u.Elem()) + "]"
		}
	case *types.Basic:
		if u.Kind() == types.Uintptr || u.Kind() == types.UnsafePointer {
			instead = "write uint64, or dlpack.AnyView for a tensor"
		}
	}
	return refusal{fmt.Sprintf("%s can't be a %s", short(t), what), instead}
}
