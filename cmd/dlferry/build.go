package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/api"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/compile"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/glue"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/project"
	"github.com/dlferry/dlferry/cmd/dlferry/internal/source"
)

const buildUsage = `dlferry build [options] DIR...

Compiles the Go packages in the folders into one Python package, and prints the path of the wheel that it wrote. Of several packages each becomes a submodule.
Name, version and the rest of the metadata are those of pyproject.toml, where there is one. DIR may also be the folder of a pyproject.toml that names the Go packages:

    [tool.dlferry]
    packages = ["./ops", "./index"]

Errors in the Go files are printed with file, line and column.

Go is $DLFERRY_GO or that of PATH, the C compiler $CC or gcc, cc or clang.

`

type options struct {
	runtime, out, name, version string
	editable, keep, verbose     bool
	dirs                        []string // of the Go packages
	project                     string   // the folder whose pyproject.toml names them, if one does
}

func buildOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("dlferry build", flag.ContinueOnError)
	flags.StringVar(&o.runtime, "runtime", "", "`DIR` of the installed Python package dlferry (default: the one that python3 imports)")
	flags.StringVar(&o.out, "out", "", "`DIR` that the wheel is written to (default: dist in the project's folder)")
	flags.StringVar(&o.name, "name", "", "`NAME` of the Python package (default: that of pyproject.toml, else the folder's)")
	flags.StringVar(&o.version, "version", "", "`VERSION` of the wheel (default: that of pyproject.toml, else 0.1.0)")
	flags.BoolVar(&o.editable, "editable", false, "put the package into .dlferry in the project's folder, and write a wheel that only points there: once that\nis installed, building again with --editable is enough to see a change")
	flags.BoolVar(&o.keep, "keep", false, "keep the folder with the generated files, and print its path")
	flags.BoolVar(&o.verbose, "v", false, "print the commands that are run")
	flags.Usage = func() {
		say(stderr, "%s", buildUsage)
		flags.PrintDefaults()
	}
	dirs, err := parse(flags, args, stderr)
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		say(stderr, "dlferry build: no folder given; for this one write: dlferry build .\n")
		return nil, errUsage
	}
	for _, dir := range dirs {
		full, err := realFolder(dir)
		if err != nil {
			return nil, err
		}
		packages, err := project.Packages(full)
		if err != nil {
			return nil, err
		}
		if packages == nil {
			packages = []string{full}
		} else if o.project == "" {
			o.project = full
		}
		for _, name := range packages {
			if name, err = realFolder(name); err != nil {
				return nil, err
			}
			if !slices.Contains(o.dirs, name) {
				o.dirs = append(o.dirs, name)
			}
		}
	}
	return o, nil
}

// realFolder is the path as the go command will have it.
func realFolder(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return "", fmt.Errorf("%s: %w", dir, errors.Unwrap(err))
	}
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s: not a folder; give the folder of a Go package", dir)
	}
	return full, nil
}

// errorText is what the user reads: lines of the sources as they are, the rest behind the command's name.
func errorText(err error) string {
	var problems source.Problems
	var compiler source.CompileErrors
	if errors.As(err, &problems) || errors.As(err, &compiler) {
		return err.Error()
	}
	return "dlferry: " + err.Error()
}

func build(args []string, stdout, stderr io.Writer) (err error) {
	o, err := buildOptions(args, stderr)
	if err != nil {
		return err
	}
	log := func(format string, args ...any) {
		if o.verbose {
			say(stderr, "dlferry: "+format+"\n", args...)
		}
	}
	runtime, err := compile.FindRuntime(o.runtime)
	if err != nil {
		return err
	}
	root, err := oneModule(o.dirs)
	if err != nil {
		return err
	}
	start := o.dirs[0]
	switch {
	case o.project != "":
		start = o.project
	case len(o.dirs) > 1:
		start = root
	}
	p, err := project.Load(start, root, o.name, o.version)
	if err != nil {
		return err
	}
	// Ctrl-C ends the go command that is running, and what follows from that cleans up.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	work, err := os.MkdirTemp("", "dlferry-")
	if err != nil {
		return err
	}
	if o.keep {
		say(stderr, "dlferry: the generated files are in %s\n", work)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	b := &builder{o: o, project: p, runtime: runtime, work: work, log: log}
	b.warn = func(format string, args ...any) { say(stderr, "dlferry: "+format+"\n", args...) }
	if err := b.read(root); err != nil {
		return err
	}
	if err := b.compile(); err != nil {
		return err
	}
	made, err := b.write()
	if err != nil {
		return err
	}
	say(stdout, "%s\n", made)
	return nil
}

// oneModule is the folder of the module that all packages are of: a library has one.
func oneModule(dirs []string) (string, error) {
	root := ""
	for _, dir := range dirs {
		found, err := gomod.Find(dir)
		if err != nil {
			return "", err
		}
		if root != "" && found != root {
			return "", fmt.Errorf("%s and %s are of different Go modules; build each by itself, or move them into one", dirs[0], dir)
		}
		root = found
	}
	return root, nil
}

// builder carries a build from step to step.
type builder struct {
	o       *options
	project *project.Project
	runtime *compile.Runtime
	work    string
	log     func(format string, args ...any) // with -v only
	warn    func(format string, args ...any)

	job      compile.Job
	packages []*api.Package
}

// read loads the packages and checks them.
func (b *builder) read(root string) error {
	module, err := gomod.Prepare(root, b.runtime.Go, b.work)
	if err != nil {
		return err
	}
	command, err := gomod.Go()
	if err != nil {
		return err
	}
	env, err := gomod.Environment(command)
	if err != nil {
		return err
	}
	flags := append(slices.Clone(module.Flags), compile.Flags(b.runtime)...)
	b.packages, err = source.Load(b.o.dirs, source.Options{Root: root, Flags: flags, Env: env})
	if err != nil {
		return err
	}
	b.job = compile.Job{Go: command, Env: env, Module: module, Runtime: b.runtime, Dir: b.o.dirs[0], Work: b.work, Log: b.log}
	if len(b.packages) == 1 {
		return nil
	}
	dirs := map[string]string{}
	for _, p := range b.packages {
		if first, twice := dirs[p.Name]; twice {
			return fmt.Errorf("%s and %s would both be the submodule %s; give one of the Go packages another name", first, p.Dir, p.Name)
		}
		if !api.IsIdentifier(p.Name) || strings.HasPrefix(p.Name, "_") {
			return fmt.Errorf("%s: the Go package %s can't be a submodule of Python; give it a name in ASCII that does not begin with _", p.Dir, p.Name)
		}
		dirs[p.Name] = p.Dir
	}
	return nil
}

// compile writes the glue and the library.
func (b *builder) compile() error {
	main, err := glue.Main(b.packages)
	if err != nil {
		return err
	}
	b.job.Main = main
	b.job.Output = filepath.Join(b.work, "libdlferry.so")
	return b.job.Library()
}
