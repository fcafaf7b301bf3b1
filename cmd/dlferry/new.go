package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/scaffold"
)

const newUsage = `dlferry new NAME

Starts a project in the new folder NAME: a Go package with two functions, a test in Python, pyproject.toml, and a workflow that runs the test.
NAME is that of the Python and of the Go package.
`

func newProject(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("dlferry new", flag.ContinueOnError)
	flags.Usage = func() { say(stderr, "%s", newUsage) }
	names, err := parse(flags, args, stderr)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		say(stderr, "dlferry new: %d names, want one\n\n%s", len(names), newUsage)
		return errUsage
	}
	if err := scaffold.Write(names[0]); err != nil {
		return fmt.Errorf("new: %w", err)
	}
	say(stdout, "%s is there. Next:\n\n    pip install './%s[test]'\n    pytest %s\n", names[0], names[0], names[0])
	return nil
}
