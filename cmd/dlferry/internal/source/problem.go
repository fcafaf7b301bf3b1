package source

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is something in a Go file that can't become Python, and what to write instead.
type Problem struct {
	Pos     token.Position
	Message string
	Instead string
}

// String is the line that the user sees: file:line:col: message; what to write instead.
func (p Problem) String() string {
	text := p.Message
	if p.Instead != "" {
		text += "; " + p.Instead
	}
	return place(p.Pos) + ": " + text
}

func place(pos token.Position) string {
	if here, err := os.Getwd(); err == nil {
		if name, err := filepath.Rel(here, pos.Filename); err == nil && !strings.HasPrefix(name, "..") {
			pos.Filename = name
		}
	}
	return pos.String()
}

// Problems is all that is wrong, in the order of the files.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// problems collects.
type problems struct {
	fset  *token.FileSet
	found Problems
}

func (ps *problems) add(pos token.Pos, message, instead string, args ...any) {
	ps.found = append(ps.found, Problem{ps.fset.Position(pos), message, fmt.Sprintf(instead, args...)})
}

// err is nil when nothing was found.
func (ps *problems) err() error {
	if len(ps.found) == 0 {
		return nil
	}
	slices.SortStableFunc(ps.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Filename, b.Pos.Filename), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return slices.Compact(ps.found)
}

// ErrNothing: no function of the packages is exported to Python.
var ErrNothing = errors.New("no function has the directive //dlferry:export; write it as the last line of the doc comment of each function that Python shall have")
