package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// signature reads the parameters and results of a function.
type signature struct {
	*reader
	decl *ast.FuncDecl
	sig  *types.Signature
	f    *api.Function

	params    []goParam
	typeParam *types.TypeParam // of a generic function
	instances []types.Type     // its type arguments
	chosen    bool             // whether a tensor parameter says which instance is meant
}

// goParam is a parameter as Go has it.
type goParam struct {
	name  string
	pos   token.Pos
	typ   types.Type
	index int // among the parameters of Python
}

func (s *signature) read(typeWords []word) {
	before := len(s.found)
	if !s.generic(typeWords) {
		return
	}
	if s.sig.Variadic() {
		last := s.decl.Type.Params.List[len(s.decl.Type.Params.List)-1]
		s.add(last.Pos(), "a variadic parameter has no place in Python's signature", "write a slice such as []float64 or []dlpack.View[float32]")
		return
	}
	for i, field := range fields(s.decl.Type.Params) {
		v := s.sig.Params().At(i)
		if i == 0 && isNamed(v.Type(), "context", "Context") {
			s.f.Context = true
			continue
		}
		s.param(goParam{v.Name(), field.Type.Pos(), v.Type(), len(s.params)})
	}
	if len(s.params) > api.MaxParams {
		s.add(s.params[api.MaxParams].pos, fmt.Sprintf("%d parameters", len(s.params)), "write at most %d: put numbers that belong together into a slice, or split the function", api.MaxParams)
	}
	results := fields(s.decl.Type.Results)
	for i, field := range results {
		typ := s.sig.Results().At(i).Type()
		if isError(typ) {
			if i == len(results)-1 {
				s.f.Error = true
			} else {
				s.add(field.Type.Pos(), "an error that is not the last result", "write it last")
			}
			continue
		}
		s.result(field.Type.Pos(), typ)
	}
	if n := len(s.f.Results); n > api.MaxResults {
		s.add(s.decl.Type.Results.Pos(), fmt.Sprintf("%d results", n), "write at most %d, the error not counted: put numbers that belong together into a slice", api.MaxResults)
	}
	if s.typeParam != nil && !s.chosen && len(s.found) == before {
		s.add(s.decl.Name.Pos(), fmt.Sprintf("no tensor parameter says which %s is meant", s.typeParam.Obj().Name()),
			"take a dlpack.View[%[1]s], a dlpack.MutView[%[1]s] or a []dlpack.View[%[1]s]", s.typeParam.Obj().Name())
	}
}

// fields gives each parameter or result its field, one name a field or not.
func fields(list *ast.FieldList) []*ast.Field {
	var out []*ast.Field
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			out = append(out, field)
		}
	}
	return out
}

func (s *signature) param(p goParam) {
	s.params = append(s.params, p)
	param := api.Param{Name: paramName(p.name, p.index)}
	for i, other := range s.f.Params {
		if other.Name == param.Name {
			s.add(p.pos, fmt.Sprintf("parameters %d and %d are both %s in Python", i+1, p.index+1, param.Name), "give one of them another name")
		}
	}
	kind, elem, wrong := paramKind(p.typ)
	if wrong.message != "" {
		s.add(p.pos, wrong.message, "%s", wrong.instead)
	} else {
		param.Kind = kind
		if s.typeParam != nil && elem == types.Type(s.typeParam) && kind <= api.KindViews {
			s.chosen = true
		}
		param.Types, param.Spec = s.typesOf(p.pos, param.Kind, elem)
		if kind == scalarOfT {
			param.Kind, param.Spec = s.widest(p.pos)
		}
	}
	s.f.Params = append(s.f.Params, param)
}

func (s *signature) result(pos token.Pos, typ types.Type) {
	kind, elem, slice, wrong := resultKind(typ)
	result := api.Result{Kind: kind, Slice: slice}
	if wrong.message != "" {
		s.add(pos, wrong.message, "%s", wrong.instead)
	} else {
		if slice {
			result.Types, _ = s.typesOf(pos, api.KindView, elem)
		}
		if kind == scalarOfT {
			result.Kind, _ = s.widest(pos)
		}
	}
	s.f.Results = append(s.f.Results, result)
}

// typesOf is the Go types of an element or a plain value, and the spec.
func (s *signature) typesOf(pos token.Pos, kind api.Kind, elem types.Type) (out []api.GoType, spec []int) {
	if elem == nil {
		return nil, nil
	}
	each := []types.Type{elem}
	if s.typeParam != nil && types.Unalias(elem) == types.Type(s.typeParam) {
		each = s.instances
	}
	for _, t := range each {
		goType, ok := s.goType(pos, t)
		if !ok {
			return nil, nil
		}
		out = append(out, goType)
		switch kind {
		case api.KindView, api.KindMutView, api.KindViews:
			key, ok := dtypeKey(t)
			if !ok {
				s.add(pos, fmt.Sprintf("%s is no element type", short(t)), "write an element type of dlpack: bool, a sized int, a float, a complex or dlpack.Float16 and the like")
				return nil, nil
			}
			spec = append(spec, key)
		case api.KindInt, api.KindUint, api.KindFloat, api.KindComplex:
			spec = []int{bitsOf(t)}
		}
	}
	return out, spec
}

// goType says how the glue names a type, if it can.
func (s *signature) goType(pos token.Pos, t types.Type) (api.GoType, bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return api.GoType{Name: t.Name()}, true
	case *types.Named:
		object := t.Obj()
		if object.Pkg() == nil {
			return api.GoType{Name: object.Name()}, true
		}
		if !object.Exported() {
			s.add(pos, "the type "+object.Name()+" is not exported in Go", "%s, or write %s", exportedName(object.Name()), short(t.Underlying()))
			return api.GoType{}, false
		}
		return api.GoType{Path: object.Pkg().Path(), Name: object.Name()}, true
	}
	return api.GoType{}, true // a slice: the glue needs no name for it
}
