package main

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/compile"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/glue"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/python"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/source"
)

var update = flag.Bool("update", false, "write the files in testdata/golden anew")

// module copies packages of testdata into a Go module of their own, and returns their folders.
func module(t *testing.T, packages ...string) (root string, dirs []string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "go.mod"), "module example.com/tests\n\ngo 1.26\n")
	for _, name := range packages {
		dir := filepath.Join(root, filepath.FromSlash(name))
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return root, dirs
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// load reads packages as a build does, with the Go module of this checkout.
func load(t *testing.T, root string, dirs []string) ([]*api.Package, error) {
	t.Helper()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	m, err := gomod.Prepare(root, checkout, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	command, err := gomod.Go()
	if err != nil {
		t.Fatal(err)
	}
	env, err := gomod.Environment(command)
	if err != nil {
		t.Fatal(err)
	}
	flags := append(slices.Clone(m.Flags), compile.Flags(&compile.Runtime{Go: checkout})...)
	return source.Load(dirs, source.Options{Root: root, Flags: flags, Env: env})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		write(t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		t.Errorf("%s is not what is generated; see with git diff after: go test -run %s -update .\n%s", file, t.Name(), got)
	}
}

func TestGeneratedFilesOfEveryKind(t *testing.T) {
	root, dirs := module(t, "torture")
	packages, err := load(t, root, dirs)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(packages[0].Functions); n < 30 {
		t.Errorf("%d functions, want 30 or more", n)
	}
	main, err := glue.Main(packages)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "torture/main.go.txt", string(main))
	for name, text := range python.Files(packages, "1.2.3") {
		golden(t, "torture/"+name+".txt", text)
	}
}

func TestEveryWrongSignatureIsRefusedWithItsLine(t *testing.T) {
	root, dirs := module(t, "wrong")
	_, err := load(t, root, dirs)
	var problems source.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v, want problems", err)
	}
	golden(t, "wrong.txt", strings.ReplaceAll(err.Error(), root+"/", "")+"\n")
	for _, p := range problems {
		if !p.Pos.IsValid() || p.Instead == "" {
			t.Errorf("%v: no place, or nothing to write instead", p)
		}
	}
	// Every exported function and every stray directive is complained about.
	text, err := os.ReadFile(filepath.Join(dirs[0], "wrong.go"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int]bool{}
	for _, p := range problems {
		lines[p.Pos.Line] = true
	}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "func ") && !slices.ContainsFunc([]string{"Detached", "TopK", "Error()"}, func(s string) bool { return strings.Contains(line, s) }) {
			if !lines[i+2] && !lines[i+1] && !lines[i] && !lines[i-1] {
				t.Errorf("nothing about line %d: %s", i+1, line)
			}
		}
	}
}

func TestSeveralPackagesAreSubmodules(t *testing.T) {
	root, _ := module(t)
	write(t, filepath.Join(root, "a", "a.go"), "package a\n\n//dlferry:export\nfunc F() int { return 1 }\n")
	write(t, filepath.Join(root, "b", "b.go"), "// Package b is another.\npackage b\n\n//dlferry:export\nfunc F(x float64) {}\n\n//dlferry:export\nfunc G() error { return nil }\n")
	packages, err := load(t, root, []string{filepath.Join(root, "a"), filepath.Join(root, "b")})
	if err != nil {
		t.Fatal(err)
	}
	main, err := glue.Main(packages)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.Write(main)
	files := python.Files(packages, "0.1.0")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out.WriteString("---- " + name + "\n" + files[name])
	}
	golden(t, "several.txt", out.String())
}

func TestSourcesThatCannotBeExported(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":     {"package p\n\nfunc F() {}\n", "no function has the directive //dlferry:export"},
		"main":        {"package main\n\n//dlferry:export\nfunc F() {}\n\nfunc main() {}\n", "p.go:1:9: package main can't be imported; move the exported functions into a package of their own"},
		"type error":  {"package p\n\n//dlferry:export\nfunc F() int { return \"\" }\n", `p.go:4:23: cannot use "" (untyped string constant) as int value in return statement`},
		"syntax":      {"package p\n\nfunc F( {}\n", "p.go:3:9: syntax error"},
		"no such":     {"package p\n\nimport _ \"example.com/nowhere\"\n", "p.go:3:8: cannot find module providing package example.com/nowhere"},
		"unknown dlp": {"package p\n\nimport \"github.com/dlferry/dlferry/dlpack\"\n\n//dlferry:export\nfunc F(x dlpack.Viev[int8]) {}\n", "p.go:6:17: undefined: dlpack.Viev"},
	} {
		root, _ := module(t)
		write(t, filepath.Join(root, "p", "p.go"), c.text)
		_, err := load(t, root, []string{filepath.Join(root, "p")})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
