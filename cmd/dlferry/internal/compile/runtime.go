// Package compile builds the Go library of a package: the user's functions, the glue and dlferry's own Go code.
package compile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
)

// Core is the C extension's file name.
const Core = "_core.abi3.so"

// Runtime is the installed Python package dlferry, of which every wheel gets a part.
type Runtime struct {
	Dir   string
	Go    string   // the folder of dlferry's Go module
	Files []string // what a wheel gets, by name in Dir
}

// FindRuntime looks at the folder, or asks python3 for it when dir is empty.
func FindRuntime(dir string) (*Runtime, error) {
	if dir == "" {
		var err error
		if dir, err = askPython(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &Runtime{Dir: dir, Go: filepath.Join(dir, "_go")}
	if _, err := os.Stat(filepath.Join(dir, Core)); err != nil {
		return nil, fmt.Errorf("%s: no %s, so this is no installed dlferry; give --runtime the folder of one, or run `pip install dlferry` and leave it out", dir, Core)
	}
	if _, err := os.Stat(r.Go); err != nil {
		r.Go = filepath.Join(dir, "..", "..") // in a checkout
	}
	if real, err := filepath.EvalSymlinks(r.Go); err == nil {
		r.Go = real
	}
	text, err := os.ReadFile(filepath.Join(r.Go, "go.mod"))
	if err != nil || modfile.ModulePath(text) != gomod.Path {
		return nil, fmt.Errorf("%s: no _go folder with the Go module %s; run `pip install --force-reinstall dlferry`", dir, gomod.Path)
	}
	list, err := os.ReadFile(filepath.Join(dir, "_runtime.txt"))
	if err != nil {
		return nil, fmt.Errorf("%s: no _runtime.txt, so this dlferry is older than the command; run `pip install --upgrade dlferry`", dir)
	}
	r.Files = []string{Core}
	for line := range strings.Lines(string(list)) {
		name := strings.TrimSpace(line)
		if name == "" || strings.HasPrefix(name, "#") || name == Core {
			continue
		}
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: _runtime.txt names %s, which lies elsewhere", dir, name)
		}
		r.Files = append(r.Files, name)
	}
	return r, nil
}

func askPython() (string, error) {
	command := exec.Command("python3", "-c", "import dlferry, os; print(os.path.dirname(dlferry.__file__))")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	answer, err := command.Output()
	if err == nil {
		return strings.TrimSpace(string(answer)), nil
	}
	reason := strings.TrimSpace(stderr.String())
	if errors.Is(err, exec.ErrNotFound) {
		reason = "there is no python3 on PATH"
	}
	return "", fmt.Errorf("python3 can't import dlferry (%s); run `pip install dlferry`, or give --runtime the folder of an installed one", lastLine(reason))
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }
