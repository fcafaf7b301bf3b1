// Command gen writes the constants of the C headers in internal/abi into Go (dlpack/zconst.go) and Python (python/dlferry/_zconst.py).
//
//	go run ./internal/gen          # write
//	go run ./internal/gen -check   # exit 1, showing the first difference, when a file is out of date
//
// It runs from anywhere inside the module.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// headers are the sources, relative to the module root.
var headers = []string{"internal/abi/dlpack_abi.h", "internal/abi/kinds.h"}

func main() {
	check := flag.Bool("check", false, "write nothing; exit 1 when a generated file is out of date")
	flag.Parse()
	root, err := moduleRoot()
	if err == nil {
		err = run(root, *check, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run generates below root; with check it compares instead, and its error tells what differs.
func run(root string, check bool, out io.Writer) error {
	h := &header{}
	for _, name := range headers {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if err := h.parse(name, string(text)); err != nil {
			return err
		}
	}
	if err := h.complete(); err != nil {
		return err
	}
	goText, err := goSource(h)
	if err != nil {
		return err
	}
	var stale []error
	for _, f := range []struct{ name, text string }{
		{"dlpack/zconst.go", goText},
		{"python/dlferry/_zconst.py", pythonSource(h)},
	} {
		path := filepath.Join(root, f.name)
		old, err := os.ReadFile(path)
		switch {
		case err == nil && string(old) == f.text:
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		case check:
			stale = append(stale, fmt.Errorf("%s is out of date; run: go run ./internal/gen\n%s", f.name, difference(f.name, string(old), f.text)))
		default:
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
				return err
			}
			fmt.Fprintln(out, "wrote", f.name)
		}
	}
	return errors.Join(stale...)
}

// difference shows the lines around the first difference, the way diff -u would.
func difference(name, have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	var s strings.Builder
	fmt.Fprintf(&s, "--- %s\n+++ %s (generated)\n@@ line %d @@\n", name, name, start+1)
	for _, line := range a[start:min(start+4, len(a))] {
		fmt.Fprintln(&s, "-"+line)
	}
	for _, line := range b[start:min(start+4, len(b))] {
		fmt.Fprintln(&s, "+"+line)
	}
	return s.String()
}

// moduleRoot is the nearest folder above the working directory that holds the headers' module.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, headers[0])); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("%s not found in any parent folder; run inside the module", headers[0])
		}
		dir = parent
	}
}
