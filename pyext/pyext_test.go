package pyext

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

func none() *dlpack.Error { return nil }

func explode() { panic("boom") }

func TestRunSaysHowACallEnded(t *testing.T) {
	var zero []int
	for _, c := range []struct {
		name string
		f    func() (string, error)
		want Outcome
	}{
		{"answer", func() (string, error) { return "yes", nil }, Outcome{Message: "yes"}},
		{"dlpack error", func() (string, error) {
			return "", fmt.Errorf("blur: %w", &dlpack.Error{Op: "x", Kind: dlpack.KindShape, Axis: dlpack.NoAxis, Got: "1", Want: "2"})
		}, Outcome{Kind: dlpack.KindShape, Message: "blur: x: shape, got 1, want 2"}},
		{"foreign error", func() (string, error) { return "", io.ErrUnexpectedEOF }, Outcome{Kind: dlpack.KindValue, Message: "unexpected EOF"}},
		{"panic", func() (string, error) { explode(); return "", nil }, Outcome{Kind: dlpack.KindPanic, Message: "panic: boom", Stack: "pyext.explode"}},
		{"index", func() (string, error) { return fmt.Sprint(zero[len(zero)]), nil },
			Outcome{Kind: dlpack.KindPanic, Message: "panic: runtime error: index out of range [0] with length 0", Stack: "TestRunSaysHowACallEnded"}},
		{"nil pointer", func() (string, error) { return none().Op, nil },
			Outcome{Kind: dlpack.KindPanic, Message: "panic: runtime error: invalid memory address or nil pointer dereference", Stack: "goroutine"}},
	} {
		got := Run(c.f)
		if got.Kind != c.want.Kind || got.Message != c.want.Message || !strings.Contains(got.Stack, c.want.Stack) || (c.want.Stack == "") != (got.Stack == "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestAPanicReachesWhoWaits(t *testing.T) {
	got := Run(func() (string, error) { return "", Go(func() error { explode(); return nil })() })
	if got.Kind != dlpack.KindPanic || got.Message != "panic: boom" {
		t.Fatalf("%+v", got)
	}
	// The stack is that of the goroutine that panicked, not that of the one that waited.
	if !strings.Contains(got.Stack, "pyext.explode") {
		t.Error(got.Stack)
	}
}

func TestGoexitReachesWhoWaits(t *testing.T) {
	got := Run(func() (string, error) { return "", Go(func() error { runtime.Goexit(); return nil })() })
	if got.Kind != dlpack.KindPanic || got.Message != "panic: runtime.Goexit was called" {
		t.Fatalf("%+v", got)
	}
}

func TestAPanicThatIsAnErrorUnwraps(t *testing.T) {
	defer func() {
		err, _ := recover().(error)
		var p *Panic
		if !errors.As(err, &p) || !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}()
	_ = Go(func() error { panic(io.EOF) })()
}

func TestAGroupRunsAllAndKeepsTheFirstError(t *testing.T) {
	var g Group
	var ran atomic.Int64
	for i := range 100 {
		g.Go(func() error {
			ran.Add(1)
			if i == 50 {
				return io.EOF
			}
			return nil
		})
	}
	if err := g.Wait(); err != io.EOF || ran.Load() != 100 {
		t.Error(err, ran.Load())
	}
}

func TestPanicsOfManyThreadsAtOnce(t *testing.T) {
	var g Group
	for range 8 {
		g.Go(func() error {
			for range 1000 {
				if o := Run(func() (string, error) { explode(); return "", nil }); o.Kind != dlpack.KindPanic {
					return fmt.Errorf("%+v", o)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func ExampleGo() {
	wait := Go(func() error {
		var s []int
		s[3] = 1 // a bare go statement would end the interpreter here
		return nil
	})
	o := Run(func() (string, error) { return "", wait() })
	fmt.Println(o.Kind, "-", o.Message)
	// Output: panic - panic: runtime error: index out of range [3] with length 0
}
