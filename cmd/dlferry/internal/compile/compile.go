package compile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
)

// GlueFolder is the folder of the main package, which exists for the go command only.
const GlueFolder = "dlferry_glue"

// Job is one build of a library.
type Job struct {
	Go      string // the go command
	Env     []string
	Module  *gomod.Module
	Runtime *Runtime
	Dir     string // of the package that the glue lies under
	Main    []byte // the glue
	Work    string // a folder of our own
	Output  string
	Log     func(format string, args ...any)

	list *linked
}

// Library compiles. The error has what the go command printed.
func (j *Job) Library() error {
	if entries, err := os.ReadDir(filepath.Join(j.Dir, GlueFolder)); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s: the folder is in the way of the glue; give it another name", filepath.Join(j.Dir, GlueFolder))
	}
	source := filepath.Join(j.Work, "main.go")
	if err := os.WriteFile(source, j.Main, 0o644); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(j.Dir, GlueFolder, "main.go"): source}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.overlayFile(), overlay, 0o644); err != nil {
		return err
	}
	exports, err := j.exports()
	if err != nil {
		return err
	}
	linked, err := j.linked()
	if err != nil {
		return err
	}
	args := []string{"build", "-overlay=" + j.overlayFile()}
	args = append(args, j.Module.Flags...)
	args = append(args, Flags(j.Runtime)...)
	args = append(args, "-buildmode=c-shared", "-ldflags=-s -w -buildid= -extldflags=-Wl,--version-script="+exports+linked.infoFlag(), "-o", j.Output, "./"+GlueFolder)
	command := exec.Command(j.Go, args...)
	command.Dir, command.Env = j.Dir, j.Env
	j.Log("%s %s", j.Go, strings.ReplaceAll(strings.ToValidUTF8(strings.Join(args, " "), ""), "\n", " "))
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	if err := command.Run(); err != nil {
		return fmt.Errorf("compiling the library: %w\n%s", err, bytes.TrimSpace(printed.Bytes()))
	}
	if text := strings.TrimSpace(printed.String()); text != "" {
		j.Log("%s", text)
	}
	return nil
}

func (j *Job) overlayFile() string { return filepath.Join(j.Work, "overlay.json") }

// exports copies the list of exports to a path without blanks, which Go's linker can pass on.
func (j *Job) exports() (string, error) {
	text, err := os.ReadFile(filepath.Join(j.Runtime.Go, "pyext", "host", "exports.map"))
	if err != nil {
		return "", fmt.Errorf("dlferry's Go module is incomplete: %w; run `pip install --force-reinstall dlferry`", err)
	}
	name := filepath.Join(j.Work, "exports.map")
	if strings.ContainsAny(name, " \t\"'") {
		return "", fmt.Errorf("the folder for temporary files, %s, has a blank in its name, which Go's linker can't pass on; set TMPDIR to another", j.Work)
	}
	return name, os.WriteFile(name, text, 0o644)
}

// Flags is what go list and go build need alike, so that one uses what the other has compiled.
func Flags(r *Runtime) []string {
	return []string{"-trimpath", "-buildvcs=false", "-gcflags=" + gomod.Path + "/...=-I=headers-" + headers(r.Go)}
}

// headers is a hash of the C files that lie outside the packages which include them: Go's cache does not see when those change.
func headers(root string) string {
	sum := sha256.New()
	var names []string
	for _, folder := range []string{"exchange", "internal", "pyext"} {
		// What can't be read fails in the build, with a better message.
		_ = filepath.WalkDir(filepath.Join(root, folder), func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains([]string{".c", ".h"}, filepath.Ext(name)) {
				names = append(names, name)
			}
			return nil
		})
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fmt.Fprintf(sum, "%s %d\n", strings.TrimPrefix(name, root), len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
