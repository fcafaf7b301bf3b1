package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// linked is what a library is made of, as go list says it.
type linked struct {
	glue    string   // the import path of the main package
	own     module   // the user's
	modules []module // the others, in the order of their paths
}

type module struct {
	Path, Version, Sum, Dir string
	Main                    bool
	Replace                 *module
}

// linked asks once.
func (j *Job) linked() (*linked, error) {
	if j.list != nil {
		return j.list, nil
	}
	args := append([]string{"list", "-overlay=" + j.overlayFile()}, j.Module.Flags...)
	command := exec.Command(j.Go, append(args, "-deps", "-json=ImportPath,Module", "./"+GlueFolder)...)
	command.Dir, command.Env = j.Dir, j.Env
	var printed bytes.Buffer
	command.Stderr = &printed
	answer, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules that are linked: %w\n%s", err, bytes.TrimSpace(printed.Bytes()))
	}
	j.list, err = readList(answer)
	return j.list, err
}

// readList takes the list in go list's order, in which the main package is the last.
func readList(text []byte) (*linked, error) {
	out := &linked{}
	seen := map[string]bool{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			ImportPath string
			Module     *module
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list says: %w", err)
		}
		out.glue = p.ImportPath
		switch {
		case p.Module == nil || seen[p.Module.Path]:
			continue
		case p.Module.Main:
			out.own = *p.Module
		default:
			out.modules = append(out.modules, *p.Module)
		}
		seen[p.Module.Path] = true
	}
	slices.SortFunc(out.modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}
