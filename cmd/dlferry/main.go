// Command dlferry makes Python packages of Go packages: `dlferry build` compiles one, `dlferry new` starts one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

const usage = `dlferry makes Python packages of Go packages.

    dlferry build [options] DIR...   write a wheel with the functions that have //dlferry:export
    dlferry new NAME                 start a project in the new folder NAME
    dlferry version                  say which version this is

dlferry COMMAND --help says more about a command.
`

// version is set by the linker in dlferry's own wheel.
var version = ""

// errUsage is an error of the command line whose text has been printed.
var errUsage = errors.New("usage")

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	command := "--help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case "build":
		err = build(args, stdout, stderr)
	case "new":
		err = newProject(args, stdout, stderr)
	case "version", "--version":
		say(stdout, "dlferry %s\n", versionText())
	case "help", "--help", "-h":
		say(stdout, "%s", usage)
	default:
		say(stderr, "dlferry: no command %s\n\n%s", command, usage)
		return 2
	}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	say(stderr, "%s\n", errorText(err))
	return 1
}

// say prints. Where the reader has gone there is nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// parse reads options and other arguments in any order.
func parse(flags *flag.FlagSet, args []string, stderr io.Writer) ([]string, error) {
	flags.SetOutput(stderr)
	var rest []string
	for {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, errUsage // flags has printed it
		}
		left := flags.Args()
		if len(left) == 0 {
			return rest, nil
		}
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			return append(rest, left...), nil
		}
		rest = append(rest, left[0])
		args = left[1:]
	}
}
