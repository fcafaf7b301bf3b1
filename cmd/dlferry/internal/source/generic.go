package source

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// generic reads the type arguments of a directive. It says whether the parameters can be looked at.
func (s *signature) generic(words []word) bool {
	params := s.sig.TypeParams()
	if params.Len() == 0 {
		for _, w := range words {
			if _, err := s.typeNamed(w); err == nil {
				s.add(w.pos, fmt.Sprintf("%s is not generic, so %s means nothing", s.f.GoName, w.text), "leave it out")
			} else {
				s.add(w.pos, "no option "+w.text, "write name=…, nogil, gil or like=none")
			}
		}
		return true
	}
	if params.Len() > 1 {
		s.add(s.decl.Type.TypeParams.Pos(), fmt.Sprintf("%d type parameters", params.Len()), "write one, and a function for each type that the others stand for")
		return false
	}
	s.typeParam = params.At(0)
	name := s.typeParam.Obj().Name()
	if len(words) == 0 {
		s.add(s.decl.Name.Pos(), s.f.GoName+" is generic, but the directive names no type for "+name, "write for example //dlferry:export float32 float64")
		return false
	}
	keys := map[int]string{}
	good := true
	for _, w := range words {
		t, wrong := s.instance(w)
		if wrong.message == "" {
			key, _ := dtypeKey(t)
			if first, twice := keys[key]; twice {
				wrong = refusal{w.text + " has the same dtype as " + first, "leave one of them out"}
			}
			keys[key] = w.text
		}
		if wrong.message != "" {
			s.add(w.pos, wrong.message, "%s", wrong.instead)
			good = false
			continue
		}
		s.instances = append(s.instances, t)
		goType, _ := s.goType(w.pos, t)
		s.f.Instances = append(s.f.Instances, goType)
	}
	return good
}

// instance is the type that a word names, if the function can be instantiated with it.
func (s *signature) instance(w word) (types.Type, refusal) {
	t, err := s.typeNamed(w)
	if err != nil {
		instead := "write an option, or a type's name as this file would"
		for name := range own {
			if strings.EqualFold(name, strings.ReplaceAll(w.text, "_", "")) {
				instead = "write dlpack." + name
			}
		}
		return nil, refusal{"no type or option " + w.text, instead}
	}
	if _, ok := dtypeKey(t); !ok {
		instead := "write element types of dlpack: bool, a sized int, a float, a complex or dlpack.Float16 and the like"
		switch w.text {
		case "int":
			instead = "write int64"
		case "uint":
			instead = "write uint64"
		}
		return nil, refusal{w.text + " is no element type", instead}
	}
	if _, err := types.Instantiate(nil, s.sig, []types.Type{t}, true); err != nil {
		return nil, refusal{fmt.Sprintf("%s can't be instantiated with %s: %s", s.f.GoName, w.text, reason(err)), "leave it out, or widen the constraint"}
	}
	return t, refusal{}
}

// reason is the text of an error of go/types, without import paths.
func reason(err error) string { return importPath.ReplaceAllString(err.Error(), "") }

var importPath = regexp.MustCompile(`[\w.~-]+/([\w.~-]+/)*`)

// typeNamed is the type that a word means where the function stands.
func (s *signature) typeNamed(w word) (types.Type, error) {
	if name, ok := strings.CutPrefix(w.text, "dlpack."); ok {
		// Whatever the file calls the package, or whether it imports it.
		if p := s.dlpack(); p != nil {
			if object, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
				return types.Unalias(object.Type()), nil
			}
		}
	}
	value, err := types.Eval(s.fset, s.pkg.Types, s.scopePos(), w.text)
	if err != nil {
		return nil, err
	}
	if !value.IsType() {
		return nil, fmt.Errorf("%s is no type", w.text)
	}
	return types.Unalias(value.Type), nil
}

// scopePos is a place where the names of the file are known.
func (s *signature) scopePos() token.Pos { return s.decl.Pos() }

func (s *signature) dlpack() *types.Package {
	for _, p := range s.pkg.Types.Imports() {
		if p.Path() == dlpackPath {
			return p
		}
	}
	return nil
}

// widest is the kind and the spec of a plain value of the type parameter's type: the widest of its class, which all instances must share.
func (s *signature) widest(pos token.Pos) (api.Kind, []int) {
	class := api.Kind(0)
	for i, t := range s.instances {
		kind := scalar(t)
		if plain := ownElement(t); plain != "" {
			s.add(pos, fmt.Sprintf("%s is an element of tensors only, so %s can't be a plain value", short(t), s.typeParam.Obj().Name()), "write %s", plain)
			return 0, nil
		}
		if i > 0 && kind != class {
			s.add(pos, fmt.Sprintf("%s is %s in one instance and %s in another", s.typeParam.Obj().Name(), short(s.instances[0]), short(t)),
				"export the ints, the uints and the floats by a function each, or write float64")
			return 0, nil
		}
		class = kind
	}
	switch class {
	case api.KindInt, api.KindUint, api.KindFloat:
		return class, []int{64}
	case api.KindComplex:
		return class, []int{128}
	}
	return class, nil
}
