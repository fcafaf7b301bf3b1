package python

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

const protocol = `class SupportsDLPack(Protocol):
    """A tensor of any library."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...
`

// A named tensor type would be too narrow for results: they are of the library that the first tensor argument is of.
var resultTypes = map[api.Kind]string{
	api.KindTensor: "Any", api.KindTensors: "list[Any]", api.KindBool: "bool", api.KindInt: "int", api.KindUint: "int", api.KindFloat: "float", api.KindComplex: "complex",
	api.KindString: "str", api.KindBytes: "bytes", api.KindStrings: "list[str]", api.KindInts: "list[int]", api.KindFloats: "list[float]",
}

// Sequence where a list's type would have to be exact: a list of arrays is no list[SupportsDLPack].
var paramTypes = map[api.Kind]string{
	api.KindView: "SupportsDLPack", api.KindMutView: "SupportsDLPack", api.KindAnyView: "SupportsDLPack", api.KindForeign: "SupportsDLPack",
	api.KindViews: "Sequence[SupportsDLPack]", api.KindBool: "bool", api.KindInt: "int", api.KindUint: "int", api.KindFloat: "float",
	api.KindComplex: "complex", api.KindString: "str", api.KindBytes: "Buffer", api.KindStrings: "list[str] | tuple[str, ...]",
	api.KindInts: "list[int] | tuple[int, ...]", api.KindFloats: "Sequence[float]",
}

// builtinTypes is what annotations name; a function of such a name would hide the type.
var builtinTypes = []string{"bool", "bytes", "complex", "float", "int", "list", "str", "tuple"}

// typed writes annotations for a module.
type typed struct{ hidden []string }

func (t typed) text(annotation string) string {
	for _, name := range t.hidden {
		words := strings.FieldsFunc(annotation, func(r rune) bool { return strings.ContainsRune("[], |.", r) })
		if slices.Contains(words, name) {
			annotation = replaceWord(annotation, name, "builtins."+name)
		}
	}
	return annotation
}

func replaceWord(text, word, with string) string {
	var out strings.Builder
	for text != "" {
		end := strings.IndexAny(text, "[], |.")
		switch {
		case end < 0:
			end = len(text)
		case end == 0:
			end = 1
		}
		if text[:end] == word {
			out.WriteString(with)
		} else {
			out.WriteString(text[:end])
		}
		text = text[end:]
	}
	return out.String()
}

// stub is the .pyi file of a module; the top package's has a version.
func stub(p *api.Package, top bool) string {
	names := exported(p)
	var t typed
	for _, name := range builtinTypes {
		if slices.Contains(names, name) {
			t.hidden = append(t.hidden, name)
		}
	}
	var body strings.Builder
	for _, f := range p.Functions {
		t.function(&body, f)
	}
	text := body.String()
	var out strings.Builder
	if p.Doc != "" {
		out.WriteString(docstring(p.Doc, "") + "\n\n")
	}
	imports := 0
	if strings.Contains(text, "builtins.") {
		out.WriteString("import builtins\n")
		imports++
	}
	if strings.Contains(text, "Sequence[") {
		out.WriteString("from collections.abc import Sequence\n")
		imports++
	}
	tensors := strings.Contains(text, "SupportsDLPack")
	switch {
	case tensors:
		out.WriteString("from typing import Any, Protocol\n")
		imports++
	case strings.Contains(text, "Any"):
		out.WriteString("from typing import Any\n")
		imports++
	}
	if strings.Contains(text, ": Buffer") {
		if imports > 0 {
			out.WriteString("\n")
		}
		out.WriteString("from typing_extensions import Buffer\n")
		imports++
	}
	if imports > 0 {
		out.WriteString("\n")
	}
	out.WriteString(all(names))
	if top {
		out.WriteString("__version__: " + t.text("str") + "\n")
	}
	out.WriteString("\n")
	if tensors {
		out.WriteString(strings.ReplaceAll(protocol, "tuple[Any, int]", t.text("tuple[Any, int]")) + "\n")
	}
	return out.String() + text
}

func (t typed) function(out *strings.Builder, f *api.Function) {
	var params []string
	for _, p := range f.Params {
		text := p.Name + ": " + t.text(paramTypes[p.Kind])
		switch {
		case p.Kind == api.KindComplex && p.Default != "":
			text += " = ..."
		case p.Default != "":
			text += " = " + p.Default
		}
		params = append(params, text)
	}
	if f.Like() {
		params = append(params, "*, like: Any = None")
	}
	returns := "None"
	var each []string
	for _, r := range f.Results {
		each = append(each, t.text(resultTypes[r.Kind]))
	}
	switch len(each) {
	case 0:
	case 1:
		returns = each[0]
	default:
		returns = t.text("tuple") + "[" + strings.Join(each, ", ") + "]"
	}
	fmt.Fprintf(out, "def %s(%s) -> %s:", f.Name, strings.Join(params, ", "), returns)
	if f.Doc == "" {
		out.WriteString(" ...\n")
		return
	}
	out.WriteString("\n    " + docstring(f.Doc, "    ") + "\n")
}
