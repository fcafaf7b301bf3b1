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
	if err := compileErrors(loaded); err != nil {
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

func compileErrors(loaded []*packages.Package) error {
	var out CompileErrors
	listed := false
	packages.Visit(loaded, nil, func(p *packages.Package) {
		listed = listed || slices.ContainsFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.ListError })
	})
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if listed && e.Kind == packages.TypeError {
				continue // follows from what the go command says
			}
			line := e.Error()
			if file, rest, ok := strings.Cut(e.Pos, ":"); ok && filepath.IsAbs(file) {
				line = place(token.Position{Filename: file}) + ":" + rest + ": " + e.Msg
			} else if e.Pos == "" || e.Pos == "-" {
				line = e.Msg
			}
			if !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	})
	if out == nil {
		return nil
	}
	return out
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
