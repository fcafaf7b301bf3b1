package host

import (
	"context"
	"sync"
	"time"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/pyext"
)

// A call that the caller can cancel runs on a goroutine of its own, and the caller looks in now and then.
type job struct {
	done    chan struct{}
	cancel  context.CancelFunc
	outcome *pyext.Outcome // nil: success
}

// step is how long a look may take: Ctrl-C is noticed in between.
const step = 100 * time.Millisecond

var jobs = struct {
	sync.Mutex
	last uint64
	open map[uint64]*job
}{open: map[uint64]*job{}}

func start(run func(context.Context) *pyext.Outcome) uint64 {
	ctx, cancel := context.WithCancel(context.Background())
	j := &job{done: make(chan struct{}), cancel: cancel}
	// Stays if the goroutine ends by runtime.Goexit.
	j.outcome = &pyext.Outcome{Kind: dlpack.KindPanic, Message: "runtime.Goexit was called"}
	go func() {
		defer close(j.done)
		j.outcome = run(ctx)
	}()
	jobs.Lock()
	defer jobs.Unlock()
	jobs.last++
	jobs.open[jobs.last] = j
	return jobs.last
}

func find(id uint64) *job {
	jobs.Lock()
	defer jobs.Unlock()
	return jobs.open[id]
}

func wait(id uint64) (o *pyext.Outcome, done bool) {
	j := find(id)
	if j == nil {
		return &pyext.Outcome{Kind: dlpack.KindValue, Message: "no such call"}, true
	}
	timer := time.NewTimer(step)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
		return nil, false
	}
	j.cancel()
	jobs.Lock()
	delete(jobs.open, id)
	jobs.Unlock()
	return j.outcome, true
}

func cancel(id uint64) {
	if j := find(id); j != nil {
		j.cancel()
	}
}
