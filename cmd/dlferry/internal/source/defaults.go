package source

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// defaults gives parameters their default values.
func (s *signature) defaults(settings []setting) {
	if len(s.f.Params) != len(s.params) {
		return // not all of them were read
	}
	for _, d := range settings {
		i := slices.IndexFunc(s.params, func(p goParam) bool { return p.name == d.name })
		if i < 0 {
			s.add(d.pos, "no parameter "+d.name, "write the name as the function has it: %s", s.paramNames())
			continue
		}
		param := &s.f.Params[i]
		if param.Default != "" {
			s.add(d.pos, "a second default for "+d.name, "leave one of them out")
			continue
		}
		literal, wrong := s.literal(param.Kind, s.params[i].typ, d)
		if wrong.message != "" {
			s.add(d.pos, wrong.message, "%s", wrong.instead)
			literal = "..." // so that what follows is not reported as well
		}
		param.Default = literal
	}
	for i := 1; i < len(s.f.Params); i++ {
		if s.f.Params[i-1].Default != "" && s.f.Params[i].Default == "" {
			s.add(s.params[i].pos, fmt.Sprintf("%s has no default, but %s before it has", s.params[i].name, s.params[i-1].name), "write parameters with a default last")
		}
	}
}

func (s *signature) paramNames() string {
	var names []string
	for _, p := range s.params {
		if p.name != "" && p.name != "_" {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return "it has none"
	}
	return strings.Join(names, ", ")
}

// literal is a default in Python.
func (s *signature) literal(kind api.Kind, t types.Type, d setting) (string, refusal) {
	if kind < api.KindBool || kind > api.KindString {
		return "", refusal{"a " + short(t) + " can't have a default", "write defaults for bools, numbers and strings; other parameters are always given"}
	}
	value, err := types.Eval(s.fset, s.pkg.Types, s.scopePos(), d.value)
	if err != nil {
		return "", refusal{fmt.Sprintf("the default %s can't be read: %s", d.value, reason(bare(err))), "write a constant of Go"}
	}
	if value.Value == nil {
		return "", refusal{"the default " + d.value + " is no constant", "write a constant of Go"}
	}
	each := []types.Type{t}
	if types.Unalias(t) == types.Type(s.typeParam) {
		each = s.instances
	}
	for _, t := range each {
		if !fits(value.Value, t) {
			return "", refusal{fmt.Sprintf("the default %s does not fit %s", d.value, short(t)), "write a constant that does"}
		}
	}
	return pythonConstant(kind, value.Value), refusal{}
}

// bare is an error of go/types without the place, which is a place in the directive.
func bare(err error) error {
	text := err.Error()
	if i := strings.Index(text, ": "); i >= 0 && strings.Contains(text[:i], ":") {
		return fmt.Errorf("%s", text[i+2:])
	}
	return err
}

// fits says whether a constant is a value of a plain type.
func fits(v constant.Value, t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	if !ok {
		return false
	}
	switch info := basic.Info(); {
	case info&types.IsBoolean != 0:
		return v.Kind() == constant.Bool
	case info&types.IsString != 0:
		return v.Kind() == constant.String
	case info&types.IsInteger != 0:
		i := constant.ToInt(v)
		if i.Kind() != constant.Int {
			return false
		}
		bits := uint(bitsOf(t))
		if info&types.IsUnsigned != 0 {
			return constant.Sign(i) >= 0 && constant.BitLen(i) <= int(bits)
		}
		if constant.Sign(i) < 0 { // -2^(bits-1) fits
			i = constant.BinaryOp(i, token.ADD, constant.MakeInt64(1))
		}
		return constant.BitLen(i) <= int(bits)-1
	case info&types.IsFloat != 0:
		return finite(v, bitsOf(t))
	case info&types.IsComplex != 0:
		c := constant.ToComplex(v)
		return c.Kind() != constant.Unknown && finite(constant.Real(c), bitsOf(t)/2) && finite(constant.Imag(c), bitsOf(t)/2)
	}
	return false
}

func finite(v constant.Value, bits int) bool {
	f := constant.ToFloat(v)
	if f.Kind() != constant.Float && f.Kind() != constant.Int {
		return false
	}
	if bits == 32 {
		x, _ := constant.Float32Val(f)
		return !math.IsInf(float64(x), 0)
	}
	x, _ := constant.Float64Val(f)
	return !math.IsInf(x, 0)
}

func pythonConstant(kind api.Kind, v constant.Value) string {
	float := func(v constant.Value) string {
		x, _ := constant.Float64Val(constant.ToFloat(v))
		text := strconv.FormatFloat(x, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	}
	switch kind {
	case api.KindBool:
		if constant.BoolVal(v) {
			return "True"
		}
		return "False"
	case api.KindInt, api.KindUint:
		return constant.ToInt(v).ExactString()
	case api.KindFloat:
		return float(v)
	case api.KindComplex:
		c := constant.ToComplex(v)
		if constant.Sign(constant.Real(c)) == 0 {
			return float(constant.Imag(c)) + "j"
		}
		return strings.ReplaceAll(float(constant.Real(c))+"+"+float(constant.Imag(c))+"j", "+-", "-")
	}
	return api.Quote(constant.StringVal(v))
}
