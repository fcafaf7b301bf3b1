package kernel

import (
	"runtime"
	"sync"

	"github.com/dlferry/dlferry/internal/kernel/carry"
)

// parallelBytes is the least amount of memory, read and written, that is worth a goroutine. Starting and joining one costs some microseconds, the time of
// copying about 64 KiB, but many times that where other processes keep the processors busy.
const parallelBytes = 2 << 20

// parallelCopyBytes is the same for copies of rows: one goroutine alone gets most of what the memory gives.
const parallelCopyBytes = 16 << 20

// workers says how many goroutines a job gets, each with at least so many bytes. threads <= 0 means as many as Go has processors.
func workers(bytes, least int64, threads int) int {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return int(max(1, min(bytes/least, int64(threads))))
}

// parallel runs the parts, the first on the caller's goroutine, and returns when all have returned. A panic of any part is raised again here, with
// the stack of where it happened; the others run to their end first.
func parallel(parts []*plan, run func(*plan)) {
	if len(parts) == 1 {
		run(parts[0])
		return
	}
	panics := make([]*carry.Panic, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts[1:] {
		wg.Go(func() {
			panics[i+1] = carry.Call(func() { run(p) }, nil)
		})
	}
	panics[0] = carry.Call(func() { run(parts[0]) }, nil)
	wg.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}
