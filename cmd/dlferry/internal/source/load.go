// Package source reads Go packages: it finds the functions that are exported to Python, and checks by go/types that their signatures can be.
package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// Options is what the go command needs to know.
type Options struct {
	Root  string   // the module's folder
	Flags []string // of go list
	Env   []string
}

// CompileErrors is what the Go compiler says about packages, a line each, as it prints them.
type CompileErrors []string

func (e CompileErrors) Error() string { return strings.Join(e, "\n") }

// Load reads the packages in the folders. The error is Problems, CompileErrors or ErrNothing when the sources are at fault.
func Load(dirs []string, options Options) ([]*api.Package, error) {
	fset := token.NewFileSet()
	config := &packages.Config{Mode: packages.LoadSyntax | packages.NeedModule, Dir: options.Root, Env: options.Env, BuildFlags: options.Flags, Fset: fset}
	patterns := make([]string, len(dirs))
	for i, dir := range dirs {
		name, err := filepath.Rel(options.Root, dir)
		if err != nil {
			return nil, err
		}
		patterns[i] = "./" + filepath.ToSlash(name)
	}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		return nil, fmt.Errorf("reading the Go packages: %w", err)
	}
	if err := compileErrors(loaded, options.Root); err != nil {
		return nil, err
	}
	ps := &problems{fset: fset}
	var out []*api.Package
	id := 0
	for _, dir := range dirs {
		i := slices.IndexFunc(loaded, func(p *packages.Package) bool { return samePackage(p, dir) })
		if i < 0 {
			return nil, fmt.Errorf("%s: no Go package there", dir)
		}
		pkg := readPackage(loaded[i], ps)
		pkg.Dir = dir
		for _, f := range pkg.Functions {
			f.ID = id
			id += f.IDs()
		}
		out = append(out, pkg)
	}
	if err := ps.err(); err != nil {
		return nil, err
	}
	if id == 0 {
		return nil, ErrNothing
	}
	for _, pkg := range out {
		if len(pkg.Functions) == 0 {
			return nil, fmt.Errorf("%s: %w", pkg.Dir, ErrNothing)
		}
	}
	return out, nil
}

func samePackage(p *packages.Package, dir string) bool {
	if p.Dir != "" {
		return p.Dir == dir
	}
	return len(p.GoFiles) > 0 && filepath.Dir(p.GoFiles[0]) == dir
}

// compileErrors gathers what the go command and the type checker say.
func compileErrors(loaded []*packages.Package, root string) error {
	var out CompileErrors
	add := func(line string) {
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	fromGo := false
	packages.Visit(loaded, nil, func(p *packages.Package) {
		fromGo = fromGo || slices.ContainsFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.ListError && !isCompilerOutput(e) })
	})
	packages.Visit(loaded, nil, func(p *packages.Package) {
		typed := slices.ContainsFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.TypeError })
		printed := slices.ContainsFunc(p.Errors, isCompilerOutput)
		if slices.ContainsFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.ParseError }) && printed {
			typed = false // of a file that is not whole: the compiler says it better
		}
		for _, e := range p.Errors {
			switch {
			case e.Kind == packages.TypeError && fromGo, e.Kind != packages.ListError && printed && !typed:
				// It follows from what the go command says, or the compiler says it.
			case isCompilerOutput(e) && typed:
				// The type checker says the same.
			case isCompilerOutput(e):
				for line := range strings.Lines(e.Msg) {
					if line = strings.TrimRight(line, "\n"); line != "" && line[0] != '#' {
						add(placed(line, root))
					}
				}
			case e.Pos == "" || e.Pos == "-":
				add(e.Msg)
			default:
				add(placed(e.Error(), root))
			}
		}
	})
	if out == nil {
		return nil
	}
	return out
}

// isCompilerOutput says whether an error is all that the compiler printed for a package.
func isCompilerOutput(e packages.Error) bool {
	return e.Kind == packages.ListError && strings.HasPrefix(e.Msg, "# ")
}

// placed is a line file:line:col: message with the file as the user would name it.
func placed(line, root string) string {
	file, rest, ok := strings.Cut(line, ":")
	if !ok || !strings.HasSuffix(file, ".go") {
		return line
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(root, file)
	}
	return place(token.Position{Filename: file}) + ":" + rest
}

// reader reads a package.
type reader struct {
	*problems
	pkg   *packages.Package
	names map[string]token.Pos // the Python names so far
}

func readPackage(p *packages.Package, ps *problems) *api.Package {
	out := &api.Package{Path: p.PkgPath, Name: api.Snake(p.Name)}
	r := &reader{problems: ps, pkg: p, names: map[string]token.Pos{}}
	for _, file := range p.Syntax {
		if out.Doc == "" {
			out.Doc = strings.TrimSpace(file.Doc.Text())
		}
		attached := map[*ast.Comment]bool{}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			ds := directives(f.Doc)
			for _, d := range ds {
				attached[d.comment] = true
			}
			if function := r.function(f, ds); function != nil {
				out.Functions = append(out.Functions, function)
			}
		}
		r.strays(file, attached)
	}
	if p.Name == "main" && len(p.Syntax) > 0 && (len(out.Functions) > 0 || len(r.found) > 0) {
		r.add(p.Syntax[0].Name.Pos(), "package main can't be imported", "move the exported functions into a package of their own")
	}
	return out
}

// strays reports directives that belong to no function, and lines that look like one.
func (r *reader) strays(file *ast.File, attached map[*ast.Comment]bool) {
	for _, group := range file.Comments {
		for _, d := range directives(group) {
			if attached[d.comment] {
				continue
			}
			instead := "write it as the last line of a function's doc comment, with no blank line between"
			for _, decl := range file.Decls {
				if g, ok := decl.(*ast.GenDecl); ok && g.Doc == group && g.Tok == token.TYPE {
					instead = "export functions only: types do not become Python classes yet, so write a function for each thing that Python shall do"
				}
			}
			r.add(d.pos, "//dlferry:"+d.verb+" belongs to no function", "%s", instead)
		}
	}
}
