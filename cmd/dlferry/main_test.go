package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dlferry runs a command line.
func dlferry(args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

// runtimeFolder is an installed dlferry as far as the checks before compiling look.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "_core.abi3.so"), "")
	write(t, filepath.Join(dir, "_runtime.txt"), "# the run time\n\nno_such.py\n")
	if err := os.Symlink(checkout, filepath.Join(dir, "_go")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheCommandLineExplainsItself(t *testing.T) {
	for _, c := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{nil, 0, "dlferry build", ""},
		{[]string{"--help"}, 0, "dlferry new NAME", ""},
		{[]string{"version"}, 0, "dlferry ", ""},
		{[]string{"bild"}, 2, "", "no command bild"},
		{[]string{"build"}, 2, "", "no folder given"},
		{[]string{"build", "--help"}, 0, "", "--editable is enough"},
		{[]string{"build", "--nope", "."}, 2, "", "flag provided but not defined: -nope"},
		{[]string{"build", "/nowhere/at/all"}, 1, "", "/nowhere/at/all: no such file or directory"},
		{[]string{"build", "main.go"}, 1, "", "main.go: not a folder"},
		{[]string{"new"}, 2, "", "0 names, want one"},
		{[]string{"new", "a", "b"}, 2, "", "2 names, want one"},
	} {
		code, stdout, stderr := dlferry(c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%v: got %d, %q, %q", c.args, code, stdout, stderr)
		}
	}
}

func TestOptionsMayFollowTheFolders(t *testing.T) {
	o, err := buildOptions([]string{".", "--name", "x", "testdata", "-v", ".", "--", "internal"}, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.dirs) != 3 || o.name != "x" || !o.verbose || filepath.Base(o.dirs[2]) != "internal" {
		t.Errorf("got %+v", o)
	}
}

func TestBuildRefusesBeforeItCompiles(t *testing.T) {
	good := runtimeFolder(t)
	root, _ := module(t)
	ok := "package p\n\n//dlferry:export\nfunc F() {}\n"
	write(t, filepath.Join(root, "p", "p.go"), ok)
	write(t, filepath.Join(root, "q", "p.go"), ok)
	write(t, filepath.Join(root, "dynamic", "pyproject.toml"), "[project]\nname = \"x\"\ndynamic = [\"version\"]\n")
	write(t, filepath.Join(root, "toml", "pyproject.toml"), "[project\n")
	write(t, filepath.Join(root, "1a", "p.go"), ok)
	other, _ := module(t)
	old := t.TempDir()
	write(t, filepath.Join(old, "go.mod"), "module example.com/old\n\ngo 1.21\n")
	at := func(names ...string) []string {
		args := []string{"build", "--runtime", good}
		for _, name := range names {
			if strings.HasPrefix(name, "-") || filepath.IsAbs(name) {
				args = append(args, name)
			} else {
				args = append(args, filepath.Join(root, name))
			}
		}
		return args
	}
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no run time":    {[]string{"build", "--runtime", empty, root}, "no _core.abi3.so, so this is no installed dlferry"},
		"no module":      {at(empty), "no go.mod there or above; run `go mod init NAME`"},
		"two modules":    {at("p", other), "are of different Go modules"},
		"old module":     {at(old, "--name=old"), "the module is of Go 1.21, want 1.26 or newer; run `go mod edit -go=1.26`"},
		"version":        {at("p", "--version=one"), "\"one\" is no version of a wheel"},
		"name":           {at("p", "--name=class"), "\"class\" can't be the name of a Python package"},
		"folder's name":  {at("1a"), "\"1a\" can't be the name of a Python package; give --name"},
		"dynamic":        {at("dynamic"), "nothing computes these; write the values"},
		"toml":           {at("toml"), "pyproject.toml"},
		"same submodule": {at("p", "q", "--name=both"), "would both be the submodule p"},
	} {
		code, _, stderr := dlferry(c.args...)
		if code != 1 || !strings.Contains(stderr, c.want) || !strings.HasPrefix(stderr, "dlferry: ") {
			t.Errorf("%s: got %d, %q, want %q", name, code, stderr, c.want)
		}
	}
}

func TestAMissingToolIsNamed(t *testing.T) {
	root, _ := module(t)
	write(t, filepath.Join(root, "p", "p.go"), "package p\n\n//dlferry:export\nfunc F() {}\n")
	args := []string{"build", "--runtime", runtimeFolder(t), filepath.Join(root, "p")}
	t.Setenv("CC", "no-such-compiler")
	if code, _, stderr := dlferry(args...); code != 1 || !strings.Contains(stderr, `no C compiler: CC is "no-such-compiler"`) || !strings.Contains(stderr, "pip install ziglang") {
		t.Errorf("compiler: got %d, %q", code, stderr)
	}
	t.Setenv("DLFERRY_GO", "no-such-go")
	if code, _, stderr := dlferry(args...); code != 1 || !strings.Contains(stderr, "DLFERRY_GO=no-such-go") {
		t.Errorf("go: got %d, %q", code, stderr)
	}
	t.Setenv("DLFERRY_GO", "")
	t.Setenv("PATH", t.TempDir())
	if code, _, stderr := dlferry(args...); code != 1 || !strings.Contains(stderr, "no go command on PATH") {
		t.Errorf("PATH: got %d, %q", code, stderr)
	}
	if code, _, stderr := dlferry("build", filepath.Join(root, "p")); code != 1 || !strings.Contains(stderr, "there is no python3 on PATH") || !strings.Contains(stderr, "pip install dlferry") {
		t.Errorf("python3: got %d, %q", code, stderr)
	}
}

func TestNewStartsAProjectThatPassesTheChecks(t *testing.T) {
	t.Chdir(t.TempDir())
	code, stdout, stderr := dlferry("new", "demo")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "pytest demo") {
		t.Fatalf("got %d, %q, %q", code, stdout, stderr)
	}
	for _, name := range []string{"demo.go", "go.mod", "pyproject.toml", "README.md", ".gitignore", "tests/test_demo.py", ".github/workflows/ci.yml"} {
		text, err := os.ReadFile(filepath.Join("demo", name))
		if err != nil || strings.Contains(string(text), "NAME") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if code, _, stderr := dlferry("new", "demo"); code != 1 || !strings.Contains(stderr, "demo is there already") {
		t.Errorf("again: got %d, %q", code, stderr)
	}
	for name, want := range map[string]string{"a-b": "can't be the name", "1a": "can't be the name", "": "can't be the name", "class": "keyword of Python", "func": "in Go", "main": "in Go", "a_test": "only for test", "x_linux": "only for linux", "ä": "can't be the name", "_a": "can't be the name"} {
		if code, _, stderr := dlferry("new", name); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: got %d, %q", name, code, stderr)
		}
		if _, err := os.Stat(name); name != "" && err == nil {
			t.Errorf("%q: it was made nonetheless", name)
		}
	}
}
