package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// function reads a declaration with its directives; nil when it is not exported to Python, or when something is wrong with it.
func (r *reader) function(decl *ast.FuncDecl, ds []directive) *api.Function {
	before := len(r.found)
	f := &api.Function{GoName: decl.Name.Name, Doc: strings.TrimSpace(decl.Doc.Text())}
	exported := false
	var typeWords []word
	var defaults []setting
	for _, d := range ds {
		switch {
		case d.spaced:
			r.add(d.pos, "a directive with blanks before it is only text", "write //dlferry:%s", d.verb)
		case d.verb == "export" && exported:
			r.add(d.pos, "a second //dlferry:export", "write all options in one")
		case d.verb == "export":
			exported = true
			typeWords = r.options(f, d)
		case d.verb == "default":
			settings, ok := d.settings()
			if !ok {
				r.add(d.argsPos, "defaults that can't be read", `write name=value for each, as in //dlferry:default bins=256 mode="edge"`)
			}
			defaults = append(defaults, settings...)
		default:
			r.add(d.pos, "no directive //dlferry:"+d.verb, "write //dlferry:export or //dlferry:default")
		}
	}
	if len(ds) > 0 && !exported && len(r.found) == before {
		r.add(ds[0].pos, "//dlferry:default without //dlferry:export", "write //dlferry:export as well")
	}
	if !exported {
		return nil
	}
	object, _ := r.pkg.TypesInfo.Defs[decl.Name].(*types.Func)
	switch {
	case object == nil:
		return nil // it did not compile
	case decl.Recv != nil:
		r.add(decl.Name.Pos(), "a method can't be exported yet", "write a function that takes what the method needs")
		return nil
	case !decl.Name.IsExported():
		r.add(decl.Name.Pos(), decl.Name.Name+" is not exported in Go", "%s", exportedName(decl.Name.Name))
		return nil
	}
	r.name(f, decl.Name.Pos())
	s := &signature{reader: r, decl: decl, sig: object.Signature(), f: f}
	s.read(typeWords)
	s.defaults(defaults)
	if len(r.found) > before {
		return nil
	}
	return f
}

// exportedName says what to do about a name that Go does not export.
func exportedName(name string) string {
	name = strings.TrimLeft(name, "_")
	if name == "" {
		return "give it a name with a capital letter first"
	}
	first, size := utf8.DecodeRuneInString(name)
	return "name it " + string(unicode.ToUpper(first)) + name[size:]
}

// options reads an export directive; the words that are no options are type arguments.
func (r *reader) options(f *api.Function, d directive) (typeWords []word) {
	for _, w := range d.words() {
		key, value, isSetting := strings.Cut(w.text, "=")
		switch {
		case w.text == "nogil":
			f.NoGIL = true
		case w.text == "gil":
			f.GIL = true
		case w.text == "like=none":
			f.LikeNone = true
		case key == "name" && isSetting:
			if !api.IsIdentifier(value) || api.IsKeyword(value) || strings.HasPrefix(value, "_") {
				r.add(w.pos, fmt.Sprintf("name=%s can't be a function's name in Python", value), "write an ASCII identifier that is no keyword and does not begin with _")
			}
			f.Name = value
		case isSetting:
			r.add(w.pos, "no option "+w.text, "write name=…, nogil, gil or like=none")
		default:
			typeWords = append(typeWords, w)
		}
	}
	if f.NoGIL && f.GIL {
		r.add(d.pos, "nogil and gil exclude each other", "write one of them, or none")
	}
	return typeWords
}

// name gives the function its Python name, which nothing else may have.
func (r *reader) name(f *api.Function, pos token.Pos) {
	if f.Name == "" {
		f.Name = api.Snake(f.GoName)
		if !api.IsIdentifier(f.Name) {
			r.add(pos, f.Name+" is no ASCII identifier", "add name=… to the directive")
		}
	}
	if first, taken := r.names[f.Name]; taken {
		r.add(pos, fmt.Sprintf("Python's name %s is taken by the function in line %d", f.Name, r.fset.Position(first).Line), "add name=… to one of the directives")
		return
	}
	r.names[f.Name] = pos
}

// paramName is the Python name of parameter i, counted without the context.
func paramName(goName string, i int) string {
	if name := api.Snake(goName); goName != "_" && api.IsIdentifier(name) && name != "_" {
		return name
	}
	return "arg" + strconv.Itoa(i)
}
