// Package scaffold starts projects.
package scaffold

import (
	"embed"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// The files of a new project. NAME stands for the project's name, in names and in texts; names have .tmpl behind them, and a dot in front is written DOT.
//
//go:embed templates
var templates embed.FS

// Write makes the folder name with a project of that name in it.
func Write(name string) error {
	if err := check(filepath.Base(name)); err != nil {
		return err
	}
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s is there already; give another name, or move it away", name)
	}
	return fs.WalkDir(templates, "templates", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := templates.ReadFile(file)
		if err != nil {
			return err
		}
		target := filepath.Join(name, filepath.FromSlash(targetName(file, filepath.Base(name))))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, []byte(strings.ReplaceAll(string(text), "NAME", filepath.Base(name))), 0o644)
	})
}

func targetName(file, name string) string {
	file = strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".tmpl")
	return strings.NewReplacer("DOT", ".", "NAME", name).Replace(file)
}

// ending is what gives a Go file another meaning when its name ends so: tests, and systems that it is for.
var ending = strings.Fields("test linux darwin windows freebsd netbsd openbsd android ios js wasip1 plan9 solaris aix illumos dragonfly " +
	"amd64 arm64 arm 386 wasm riscv64 ppc64 ppc64le mips mipsle mips64 mips64le s390x loong64")

func check(name string) error {
	switch {
	case !api.IsIdentifier(name) || strings.HasPrefix(name, "_"):
		return fmt.Errorf("%q can't be the name of a Python package; write ASCII letters, digits and underscores, with a letter first", name)
	case api.IsKeyword(name):
		return fmt.Errorf("%s is a keyword of Python; write another name", name)
	case token.IsKeyword(name) || name == "main" || name == "init" || name == "dlferry" || name == "dlpack" || name == "exchange":
		return fmt.Errorf("%s means something else in Go or in dlferry; write another name", name)
	}
	if i := strings.LastIndexByte(name, '_'); i >= 0 && slices.Contains(ending, name[i+1:]) {
		return fmt.Errorf("a file %s.go is read only for %s; write a name that does not end in %s", name, name[i+1:], name[i:])
	}
	return nil
}
