package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func load(t *testing.T, toml, name, version string) (*Project, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "go-blur")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if toml != "" {
		if err := os.WriteFile(filepath.Join(dir, "pyproject.toml"), []byte(toml), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Load(dir, dir, name, version)
}

func TestNamesAndVersions(t *testing.T) {
	for _, c := range []struct{ toml, name, version, want string }{
		{"", "", "", "go_blur go_blur 0.1.0"},
		{"", "X.y", "2.0.post1+local.1", "x_y X_y 2.0.post1+local.1"},
		{"[build-system]\nrequires = []\n", "", "", "go_blur go_blur 0.1.0"},
		{"[project]\nname = \"n\"\nversion = \"3\"\n", "", "", "n n 3"},
		{"[project]\nname = \"n\"\nversion = \"3\"\n", "m", "4", "m m 4"},
	} {
		p, err := load(t, c.toml, c.name, c.version)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if got := p.Distribution() + " " + p.Package + " " + p.Version; got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

func TestWrongProjects(t *testing.T) {
	for toml, want := range map[string]string{
		"[project]\nversion = \"1\"\n":                  "has no name",
		"[project]\nname = \"-a\"\n":                    "can't be the name",
		"[project]\nname = \"a\"\nversion = \"v1\"\n":   "is no version",
		"[project]\nname = 3\n":                         "pyproject.toml",
		"[project]\nname = \"a\"\ndynamic = [\"x\"]\n":  "write the values",
		"project = 3\n":                                 "pyproject.toml",
		"[project]\nname = \"a\"\nname = \"b\"\n":       "pyproject.toml",
		"[project]\nname = \"a\"\nkeywords = \"one\"\n": "pyproject.toml",
	} {
		if _, err := load(t, toml, "", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", toml, err, want)
		}
	}
	for toml, want := range map[string]string{
		"readme = \"no.md\"":                        "write it, or take the line out",
		"readme = \"../../etc/passwd\"":             "lies outside the project",
		"readme = 3":                                "write a file's name",
		"license = 3":                               "write an expression",
		"license-files = [\"../*\"]":                "lies outside the project",
		"license-files = [\"none\"]":                "no file matches none",
		"license = { file = \"no\" }":               "no file matches no",
		"readme = { file = \"/etc/passwd\" }":       "lies outside the project",
		"license-files = [\"[\"]":                   "no file matches [",
		"readme = { text = \"x\" }\nlicense = \"\"": "",
	} {
		p, err := load(t, "[project]\nname = \"a\"\n"+toml+"\n", "", "")
		if err != nil {
			t.Errorf("%q: %v", toml, err)
			continue
		}
		if _, _, err := p.Metadata(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", toml, err, want)
		}
	}
}

func TestPackagesThatPyprojectNames(t *testing.T) {
	for toml, want := range map[string]string{
		"": "", "[tool.other]\n": "", "[tool.dlferry]\npackages = [\"./a\", \"b/c\"]\n": "a b/c", "[tool.dlferry]\npackages = [\".\"]\n": ".",
	} {
		dir := t.TempDir()
		if toml != "" {
			if err := os.WriteFile(filepath.Join(dir, "pyproject.toml"), []byte(toml), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		packages, err := Packages(dir)
		var got []string
		for _, name := range packages {
			inside, err := filepath.Rel(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, inside)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, %v", toml, got, err)
		}
	}
	for _, toml := range []string{"[tool.dlferry]\npackages = [\"../a\"]\n", "[tool.dlferry]\npackages = \"a\"\n", "tool = 1\n", "["} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pyproject.toml"), []byte(toml), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := Packages(dir); err == nil {
			t.Errorf("%q: got %v", toml, got)
		}
	}
}
