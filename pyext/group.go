package pyext

import (
	"sync"

	"github.com/dlferry/dlferry/internal/kernel/carry"
)

// Panic is a panic that was carried to another goroutine: its value and the stack of where it happened. As an error it unwraps to the value if that is one.
type Panic = carry.Panic

// Group is goroutines that one caller waits for. Unlike bare go statements they cannot end the process: a panic, or a runtime.Goexit, is raised again in
// Wait. The zero Group is ready. A Group must not be copied.
type Group struct {
	wg       sync.WaitGroup
	mu       sync.Mutex
	err      error
	panicked *Panic
}

// Go runs f on a goroutine of its own.
func (g *Group) Go(f func() error) {
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		if p := carry.Call(func() { g.failed(f()) }, g.carry); p != nil {
			g.carry(p)
		}
	}()
}

func (g *Group) failed(err error) {
	if err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
}

func (g *Group) carry(p *Panic) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.panicked == nil {
		g.panicked = p
	}
}

// Wait returns when all goroutines have ended: with the first error, if any. If one of them panicked, Wait panics with the first *Panic, after the
// others have ended.
func (g *Group) Wait() error {
	g.wg.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
	return g.err
}

// Go runs f on a goroutine of its own; the function it returns waits for f, as Group.Wait does. Not waiting loses what f has to say.
func Go(f func() error) (wait func() error) {
	g := new(Group)
	g.Go(f)
	return g.Wait
}
