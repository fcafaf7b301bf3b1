package gomod

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheCopyOfGoModRequiresDlferry(t *testing.T) {
	library := filepath.Join(t.TempDir(), "a b")
	if err := os.Mkdir(library, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(library, "go.mod"), "module "+Path+"\n\ngo 1.26\n")
	for name, c := range map[string]struct{ text, has, lacks string }{
		"fresh":    {"module m\n\ngo 1.26\n", Path + ` => "` + library + `"`, ""},
		"required": {"module m\n\ngo 1.26.3\n\nrequire " + Path + " v0.3.0\n", Path + " v0.3.0", noVersion},
		"replaced": {"module m\n\ngo 1.27\n\nrequire " + Path + " v0.3.0\n\nreplace " + Path + " => ../mine\n", Path + " => ../mine", library},
		"itself":   {"module " + Path + "\n\ngo 1.26\n", "module " + Path, "replace"},
	} {
		root, work := t.TempDir(), t.TempDir()
		write(t, filepath.Join(root, "go.mod"), c.text)
		write(t, filepath.Join(root, "go.sum"), "sums\n")
		m, err := Prepare(root, library, work)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := os.ReadFile(filepath.Join(work, "go.mod"))
		if err != nil || !strings.Contains(string(text), c.has) || c.lacks != "" && strings.Contains(string(text), c.lacks) {
			t.Errorf("%s: got %v\n%s", name, err, text)
		}
		if sums, err := os.ReadFile(filepath.Join(work, "go.sum")); err != nil || string(sums) != "sums\n" {
			t.Errorf("%s: go.sum: %q, %v", name, sums, err)
		}
		if m.Flags[0] != "-modfile="+filepath.Join(work, "go.mod") {
			t.Errorf("%s: got %v", name, m.Flags)
		}
	}
}

func TestGoModThatCannotBeUsed(t *testing.T) {
	library := t.TempDir()
	write(t, filepath.Join(library, "go.mod"), "module "+Path+"\n\ngo 1.26\n")
	for text, want := range map[string]string{
		"module m\n":                 "the module is of Go 1.16, want 1.26",
		"module m\n\ngo 1.25rc1\n":   "go mod edit -go=1.26",
		"go 1.26\n":                  "no module line",
		"module m\nrequire what\n":   "go.mod:2",
		"module m m m\ngo 1.26\n":    "go.mod:1",
		"module \"\"\n\ngo 1.26\n":   "module",
		"\x00\xff":                   "go.mod:1",
		"module m\n\ngo one\n":       "go.mod:3",
		"module m\n\ngo 1.9.9\n":     "the module is of Go 1.9.9",
		"module m\n\ngo 1.26rc1\n\n": "",
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, "go.mod"), text)
		_, err := Prepare(root, library, t.TempDir())
		if want == "" {
			if err != nil {
				t.Errorf("%q: got %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
