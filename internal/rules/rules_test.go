package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dlferry/dlferry/"

// layers order the packages: a package imports only from layers before its own, or from its own.
var layers = []string{"dlpack", "streams", "exchange", "adapters pyext", "cmd"}

// source is a file of the tree, by its path from the root.
type source struct{ name, text string }

func tree(t *testing.T, suffixes ...string) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || slices.Contains([]string{"testdata", "vendor", "dist", "build", "node_modules"}, base)) {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.Contains(suffixes, path.Ext(name)) {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			out = append(out, source{name, string(text)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("no %v files found: the test looks in the wrong place", suffixes)
	}
	return out
}

// layer is the number of the layer that a path from the root lies in, or -1.
func layer(name string) int {
	top, _, _ := strings.Cut(name, "/")
	for i, names := range layers {
		if slices.Contains(strings.Fields(names), top) {
			return i
		}
	}
	return -1
}

func inside(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

func parseGo(file source) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), file.name, file.text, parser.SkipObjectResolution)
}

func imports(f *ast.File) []string {
	var out []string
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// checkImports says what is wrong with the imports of a file.
func checkImports(file source) (wrong []string, err error) {
	f, err := parseGo(file)
	if err != nil {
		return nil, err
	}
	folder := path.Dir(file.name)
	for _, p := range imports(f) {
		if p == "C" && (inside(folder, "dlpack") || inside(folder, "streams")) {
			wrong = append(wrong, `imports "C": dlpack and streams are plain Go`)
		}
		target, ok := strings.CutPrefix(p, module)
		if !ok {
			continue
		}
		if inside(target, "pyext/core") {
			wrong = append(wrong, "imports "+target+": nothing does")
		} else if inside(folder, "cmd") && !inside(target, "cmd") {
			wrong = append(wrong, "imports "+target+": a command is a module of its own, which does not require the library's")
		}
		test := strings.HasSuffix(file.name, "_test.go")
		if from, to := layer(folder), layer(target); from >= 0 && to > from && !test {
			wrong = append(wrong, fmt.Sprintf("imports %s: dependencies go %s", target, strings.Join(layers, " <- ")))
		}
		if from, to := layer(folder), layer(target); !test && from == to && from >= 0 && strings.HasPrefix(folder, "adapters/") != strings.HasPrefix(target, "adapters/") {
			wrong = append(wrong, "imports "+target+": adapters and pyext do not know each other")
		}
	}
	return wrong, nil
}

// checkExported says which exported declarations name a type of cgo. Functions of main packages are exempt: their exports are for C.
func checkExported(file source) (wrong []string, err error) {
	f, err := parseGo(file)
	if err != nil {
		return nil, err
	}
	if f.Name.Name == "main" || !slices.Contains(imports(f), "C") {
		return nil, nil
	}
	look := func(name string, nodes ...ast.Node) {
		for _, node := range nodes {
			if node == nil {
				continue
			}
			ast.Inspect(node, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok && len(field.Names) > 0 && !slices.ContainsFunc(field.Names, func(id *ast.Ident) bool { return id.IsExported() }) {
					if _, isParam := node.(*ast.FuncType); !isParam {
						return false // an unexported field of a struct
					}
				}
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "C" {
						wrong = append(wrong, fmt.Sprintf("%s names C.%s", name, sel.Sel.Name))
					}
				}
				return true
			})
		}
	}
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						look(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					if s.Type != nil && slices.ContainsFunc(s.Names, func(id *ast.Ident) bool { return id.IsExported() }) {
						look(s.Names[0].Name, s.Type)
					}
				}
			}
		}
	}
	return wrong, nil
}

var (
	comment    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	stringText = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	pythonName = regexp.MustCompile(`\b_?Py[A-Z]\w*|\bPy_\w+|\bPy[A-Z]\w+_\w+`)
)

// pythonNames is the names of Python's API in C code, outside comments and strings.
func pythonNames(text string) []string {
	text = stringText.ReplaceAllString(comment.ReplaceAllString(text, " "), `""`)
	return pythonName.FindAllString(text, -1)
}

func report(t *testing.T, check func(source) ([]string, error), files []source) {
	t.Helper()
	for _, file := range files {
		wrong, err := check(file)
		if err != nil {
			t.Error(err)
		}
		for _, w := range wrong {
			t.Errorf("%s: %s", file.name, w)
		}
	}
}

func TestDependenciesPointOneWay(t *testing.T) { report(t, checkImports, tree(t, ".go")) }

func TestNoCgoTypeIsExported(t *testing.T) { report(t, checkExported, tree(t, ".go")) }

func TestOnlyTheShimNamesPythonsAPI(t *testing.T) {
	report(t, func(file source) (wrong []string, err error) {
		// Tests and benchmarks of the C code may stand beside, the fuzzer's make-believe Python among them; the rule is about what is built into the product.
		if slices.ContainsFunc([]string{"pyext/shim", "tests_py", "internal/fuzz", "benchmarks"}, func(folder string) bool { return inside(file.name, folder) }) {
			return nil, nil
		}
		for _, name := range pythonNames(file.text) {
			wrong = append(wrong, name+": only pyext/shim names Python's API")
		}
		return wrong, nil
	}, tree(t, ".c", ".h"))
}

// The checks see what they are for.
func TestChecksFindViolations(t *testing.T) {
	for _, c := range []struct {
		check func(source) ([]string, error)
		file  source
		want  int
	}{
		{checkImports, source{"dlpack/a.go", "package dlpack\nimport \"C\""}, 1},
		{checkImports, source{"streams/x/a.go", "package x\nimport \"C\""}, 1},
		{checkImports, source{"exchange/a.go", "package exchange\nimport \"C\""}, 0},
		{checkImports, source{"dlpack/a.go", "package dlpack\nimport \"" + module + "streams\""}, 1},
		{checkImports, source{"streams/a.go", "package streams\nimport \"" + module + "dlpack\""}, 0},
		{checkImports, source{"exchange/a.go", "package exchange\nimport \"" + module + "adapters/image\""}, 1},
		{checkImports, source{"adapters/image/a.go", "package image\nimport \"" + module + "pyext\""}, 1},
		{checkImports, source{"cmd/dlferry/a.go", "package main\nimport \"" + module + "pyext/core\""}, 1},
		{checkImports, source{"cmd/dlferry/a.go", "package main\nimport \"" + module + "pyext\""}, 1},
		{checkImports, source{"cmd/dlferry/a.go", "package main\nimport \"" + module + "cmd/dlferry/internal/api\""}, 0},
		{checkImports, source{"pyext/a.go", "package pyext\nimport \"" + module + "cmd/dlferry/internal/api\""}, 1},
		{checkExported, source{"exchange/a.go", "package exchange\nimport \"C\"\nfunc F(x C.int) {}"}, 1},
		{checkExported, source{"exchange/a.go", "package exchange\nimport \"C\"\nfunc F() *C.DlfTensor { return nil }"}, 1},
		{checkExported, source{"exchange/a.go", "package exchange\nimport \"C\"\nfunc f(x C.int) {}"}, 0},
		{checkExported, source{"exchange/a.go", "package exchange\nimport \"C\"\ntype T struct { p *C.DlfTensor }"}, 0},
		{checkExported, source{"exchange/a.go", "package exchange\nimport \"C\"\ntype T struct { P *C.DlfTensor }"}, 1},
		{checkExported, source{"exchange/a.go", "package exchange\nimport \"C\"\nvar V C.int"}, 1},
		{checkExported, source{"pyext/core/a.go", "package main\nimport \"C\"\nfunc F(x C.int) {}"}, 0},
	} {
		wrong, err := c.check(c.file)
		if err != nil || len(wrong) != c.want {
			t.Errorf("%s: %q: got %d findings (%v), want %d", c.file.name, c.file.text, len(wrong), err, c.want)
		}
	}
	for text, want := range map[string]int{
		"PyObject *o; Py_DECREF(o); PyGILState_Check();": 3,
		"/* PyObject */ // Py_buffer\nint x;":            0,
		"const char *s = \"PyObject\";":                  0,
		"int DLF_END_PYOBJECT, python_end;":              0,
	} {
		if got := pythonNames(text); len(got) != want {
			t.Errorf("%q: got %v, want %d names", text, got, want)
		}
	}
}
