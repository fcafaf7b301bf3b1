package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/compile"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/python"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/wheel"
)

// write makes the wheel, and returns its path.
func (b *builder) write() (string, error) {
	platform, foreign, err := wheel.Platform(b.job.Output, filepath.Join(b.runtime.Dir, compile.Core))
	if err != nil {
		return "", err
	}
	for _, name := range foreign {
		b.warn("the library needs %s, so the wheel works only where that is installed, and package indexes do not take it; `auditwheel repair` can put it into the wheel", name)
	}
	files, err := b.files()
	if err != nil {
		return "", err
	}
	if b.o.editable {
		home := filepath.Join(b.project.Dir, ".dlferry")
		if err := place(home, b.project.Package, files); err != nil {
			return "", err
		}
		b.warn("the package is in %s", filepath.Join(home, b.project.Package))
		files = []wheel.File{{Name: "__editable__." + b.project.Package + ".pth", Data: []byte(home + "\n")}}
	}
	w := &wheel.Wheel{Distribution: b.project.Distribution(), Version: b.project.Version, Platform: platform, EntryPoints: b.project.EntryPointsText(), Files: files}
	if w.Metadata, w.Licenses, err = b.project.Metadata(); err != nil {
		return "", err
	}
	if !b.o.editable {
		linked, missing, err := b.job.Licenses()
		if err != nil {
			return "", err
		}
		for _, name := range missing {
			b.warn("the module %s carries no licence; ask its authors before you pass the wheel on", name)
		}
		w.ThirdParty = linked
	}
	out := b.o.out
	if out == "" {
		out = filepath.Join(b.project.Dir, "dist")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	made := filepath.Join(out, w.Name())
	return made, w.Write(made)
}

// files is the package: what is generated, dlferry's run time, and the library.
func (b *builder) files() ([]wheel.File, error) {
	var out []wheel.File
	generated := python.Files(b.packages, b.project.Version)
	for _, name := range slices.Sorted(maps.Keys(generated)) {
		out = append(out, wheel.File{Name: path.Join(b.project.Package, name), Data: []byte(generated[name])})
	}
	add := func(name, from string) error {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		out = append(out, wheel.File{Name: path.Join(b.project.Package, python.RuntimeFolder, name), Data: data, Executable: filepath.Ext(name) == ".so"})
		return nil
	}
	for _, name := range b.runtime.Files {
		if err := add(filepath.ToSlash(name), filepath.Join(b.runtime.Dir, name)); err != nil {
			return nil, err
		}
	}
	return out, add(filepath.Base(b.job.Output), b.job.Output)
}

// place writes the package into a folder that git ignores. What is not generated any more goes.
func place(home, name string, files []wheel.File) error {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(home, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, f := range files {
		target := filepath.Join(home, filepath.FromSlash(f.Name))
		wanted[target] = true
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if f.Executable {
			mode = 0o755
		}
		if err := wheel.Replace(target, f.Data, mode); err != nil {
			return err
		}
	}
	old, err := filepath.Glob(filepath.Join(home, name, "*.py*"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !wanted[file] {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}
