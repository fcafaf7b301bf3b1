package compile

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
)

//go:embed licenses/Go.txt
var goLicense string

// Licenses is the licences of what the library is linked with: Go itself, dlferry, and the modules of others. missing is the modules that carry none.
func (j *Job) Licenses() (text string, missing []string, err error) {
	linked, err := j.linked()
	if err != nil {
		return "", nil, err
	}
	parts := []string{"Go, its runtime and standard library\n\n" + goLicense}
	for _, m := range linked.modules {
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
