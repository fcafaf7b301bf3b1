package compile

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
)

//go:embed licenses/Go.txt
var goLicense string

// Licenses is the licences of what the library is linked with: Go itself, dlferry, and the modules of others. missing is the modules that carry none.
func (j *Job) Licenses() (text string, missing []string, err error) {
	modules, err := j.linked()
	if err != nil {
		return "", nil, err
	}
	parts := []string{"Go, its runtime and standard library\n\n" + goLicense}
	for _, m := range modules {
		found := 0
		for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "PATENTS*"} {
			names, err := filepath.Glob(filepath.Join(m.Dir, pattern))
			if err != nil {
				return "", nil, err
			}
			for _, name := range names {
				content, err := os.ReadFile(name)
				if err != nil {
					continue // a folder
				}
				parts = append(parts, fmt.Sprintf("%s: %s\n\n%s", m.Path, filepath.Base(name), content))
				found++
			}
		}
		if found == 0 && m.Path != gomod.Path {
			missing = append(missing, m.Path)
		}
	}
	return strings.Join(parts, "\n"+strings.Repeat("-", 80)+"\n\n"), missing, nil
}

type linkedModule struct {
	Path, Dir string
	Main      bool
}

// linked is the modules that the glue is made of, but for the user's own.
func (j *Job) linked() ([]linkedModule, error) {
	args := append([]string{"list", "-overlay=" + j.overlayFile()}, j.Module.Flags...)
	command := exec.Command(j.Go, append(args, "-deps", "-json=Module", "./"+GlueFolder)...)
	command.Dir, command.Env = j.Dir, j.Env
	answer, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules that are linked: %w", err)
	}
	var out []linkedModule
	for decoder := json.NewDecoder(strings.NewReader(string(answer))); ; {
		var p struct{ Module *linkedModule }
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil && !p.Module.Main && !slices.Contains(out, *p.Module) {
			out = append(out, *p.Module)
		}
	}
	slices.SortFunc(out, func(a, b linkedModule) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}
