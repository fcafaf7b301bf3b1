package dlpack

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of a refusal. C, Go and Python share the numbers.
type Kind int32

// String names the kind: "shape", "byte offset".
func (k Kind) String() string {
	if k >= 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// NoAxis is Error.Axis when no axis is to blame.
const NoAxis = -1

// Error is the error of this module: what was refused, and why. Its text is "op: thing, got X, want Y", followed by the hint.
//
// errors.Is(err, ErrShape) and its siblings tell the kind, errors.As gives the fields.
type Error struct {
	Op    string // the function
	Kind  Kind
	Thing string // what was refused; "" is the name of the kind
	Axis  int    // the axis to blame, or NoAxis
	Got   string
	Want  string
	Hint  string // what to do instead, or ""
}

// Error writes the text.
func (e *Error) Error() string {
	var s strings.Builder
	if e.Op != "" {
		s.WriteString(e.Op)
		s.WriteString(": ")
	}
	if e.Thing != "" {
		s.WriteString(e.Thing)
	} else {
		s.WriteString(e.Kind.String())
	}
	if e.Axis >= 0 {
		fmt.Fprintf(&s, " of axis %d", e.Axis)
	}
	if e.Got != "" {
		s.WriteString(", got ")
		s.WriteString(e.Got)
	}
	if e.Want != "" {
		s.WriteString(", want ")
		s.WriteString(e.Want)
	}
	if e.Hint != "" {
		s.WriteString("; ")
		s.WriteString(e.Hint)
	}
	return s.String()
}

// Is says whether target is the sentinel of the error's kind.
func (e *Error) Is(target error) bool {
	s, ok := target.(*sentinel)
	return ok && s.kind == e.Kind
}

// sentinel is the type of ErrShape and its siblings, so that nothing else compares equal to them.
type sentinel struct{ kind Kind }

func (s *sentinel) Error() string { return "dlpack: " + s.kind.String() }

// The sentinels, one a kind, for errors.Is.
var (
	ErrNull        error = &sentinel{KindNull}
	ErrShape       error = &sentinel{KindShape}
	ErrStrides     error = &sentinel{KindStrides}
	ErrOffset      error = &sentinel{KindOffset}
	ErrDType       error = &sentinel{KindDType}
	ErrDevice      error = &sentinel{KindDevice}
	ErrVersion     error = &sentinel{KindVersion}
	ErrReadOnly    error = &sentinel{KindReadOnly}
	ErrConsumed    error = &sentinel{KindConsumed}
	ErrOverflow    error = &sentinel{KindOverflow}
	ErrAlignment   error = &sentinel{KindAlignment}
	ErrLayout      error = &sentinel{KindLayout}
	ErrCopy        error = &sentinel{KindCopy}
	ErrValue       error = &sentinel{KindValue}
	ErrType        error = &sentinel{KindType}
	ErrMemory      error = &sentinel{KindMemory}
	ErrClosed      error = &sentinel{KindClosed}
	ErrUnsupported error = &sentinel{KindUnsupported}
	ErrPanic       error = &sentinel{KindPanic}
)

var sentinels = []error{
	ErrNull, ErrShape, ErrStrides, ErrOffset, ErrDType, ErrDevice, ErrVersion, ErrReadOnly, ErrConsumed, ErrOverflow, ErrAlignment,
	ErrLayout, ErrCopy, ErrValue, ErrType, ErrMemory, ErrClosed, ErrUnsupported, ErrPanic,
}

// Sentinel is the error that errors.Is compares with for the kind: ErrShape for KindShape. It is nil for KindOK and for unknown kinds.
func (k Kind) Sentinel() error {
	if k <= KindOK || int(k) > len(sentinels) {
		return nil
	}
	return sentinels[k-1]
}

// KindOf is the kind of an error of this module, anywhere in err's chain: KindOK for nil, KindValue for errors of other origin.
func KindOf(err error) Kind {
	if err == nil {
		return KindOK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	var s *sentinel
	if errors.As(err, &s) {
		return s.kind
	}
	return KindValue
}
