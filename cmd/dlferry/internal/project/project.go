// Package project reads pyproject.toml: the name, the version and the other metadata of a wheel.
package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
)

// Table is [project] of pyproject.toml, as PyPA's specification has it.
type Table struct {
	Name           string                       `toml:"name"`
	Version        string                       `toml:"version"`
	Description    string                       `toml:"description"`
	Readme         any                          `toml:"readme"`
	RequiresPython string                       `toml:"requires-python"`
	License        any                          `toml:"license"`
	LicenseFiles   []string                     `toml:"license-files"`
	Authors        []Person                     `toml:"authors"`
	Maintainers    []Person                     `toml:"maintainers"`
	Keywords       []string                     `toml:"keywords"`
	Classifiers    []string                     `toml:"classifiers"`
	URLs           map[string]string            `toml:"urls"`
	Dependencies   []string                     `toml:"dependencies"`
	Optional       map[string][]string          `toml:"optional-dependencies"`
	Scripts        map[string]string            `toml:"scripts"`
	GUIScripts     map[string]string            `toml:"gui-scripts"`
	EntryPoints    map[string]map[string]string `toml:"entry-points"`
	Dynamic        []string                     `toml:"dynamic"`
}

// Person is an author or a maintainer.
type Person struct {
	Name  string `toml:"name"`
	Email string `toml:"email"`
}

// Project is what a wheel is made for.
type Project struct {
	Table
	Dir     string // the project's folder
	Package string // the Python package
}

var (
	validName    = regexp.MustCompile(`^(?i)([A-Z0-9]|[A-Z0-9][A-Z0-9._-]*[A-Z0-9])$`)
	validVersion = regexp.MustCompile(`^([0-9]+!)?[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?$`)
)

// Load reads the project of a folder; name and version, where not empty, come before what the file says.
//
// The project is the nearest folder with a pyproject.toml, from dir up to the module's root, else dir itself.
func Load(dir, root, name, version string) (*Project, error) {
	p := &Project{Dir: dir}
	for folder := dir; ; folder = filepath.Dir(folder) {
		file := filepath.Join(folder, "pyproject.toml")
		if _, err := os.Stat(file); err == nil {
			if err := p.read(file); err != nil {
				return nil, err
			}
			p.Dir = folder
			break
		}
		if folder == root || folder == filepath.Dir(folder) {
			break
		}
	}
	if name != "" {
		p.Name = name
	} else if p.Name == "" {
		p.Name = filepath.Base(p.Dir)
	}
	if version != "" {
		p.Version = version
	} else if p.Version == "" {
		p.Version = "0.1.0"
	}
	p.Package = strings.NewReplacer("-", "_", ".", "_").Replace(p.Name)
	if !validName.MatchString(p.Name) || !api.IsIdentifier(p.Package) || api.IsKeyword(p.Package) {
		return nil, fmt.Errorf("%q can't be the name of a Python package; give --name or write another in pyproject.toml: letters, digits and -, not a digit first", p.Name)
	}
	if !validVersion.MatchString(p.Version) {
		return nil, fmt.Errorf("%q is no version of a wheel; write one such as 1.2.0, 1.2.0rc1 or 1.2.0.dev3", p.Version)
	}
	return p, nil
}

// Packages is the Go packages that [tool.dlferry] of the folder's pyproject.toml names, as paths; nil when it names none.
func Packages(dir string) ([]string, error) {
	file := filepath.Join(dir, "pyproject.toml")
	var all struct {
		Tool struct {
			Dlferry struct {
				Packages []string `toml:"packages"`
			} `toml:"dlferry"`
		} `toml:"tool"`
	}
	if _, err := toml.DecodeFile(file, &all); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var out []string
	for _, name := range all.Tool.Dlferry.Packages {
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: packages: %q lies outside the project; write folders of it, such as \"./ops\"", file, name)
		}
		out = append(out, filepath.Join(dir, name))
	}
	return out, nil
}

func (p *Project) read(file string) error {
	var all struct {
		Project *Table `toml:"project"`
	}
	if _, err := toml.DecodeFile(file, &all); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if all.Project == nil {
		return nil
	}
	p.Table = *all.Project
	if p.Name == "" {
		return fmt.Errorf("%s: [project] has no name; add one", file)
	}
	if len(p.Dynamic) > 0 {
		return fmt.Errorf("%s: dynamic = %q, but nothing computes these; write the values", file, p.Dynamic)
	}
	return nil
}

// Distribution is the name as wheels spell it.
func (p *Project) Distribution() string {
	return strings.ToLower(regexp.MustCompile(`[-_.]+`).ReplaceAllString(p.Name, "_"))
}
