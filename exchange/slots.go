package exchange

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// A slot is what Go has to end once the last deleter of a storage ran: pins to lift, functions to call.
//
// The pinner sits behind a pointer in the table below and nowhere else: a runtime.Pinner that becomes garbage while it pins ends the process.
type slot struct {
	pinner *runtime.Pinner
	keep   []any
	ends   []func()
}

// end lifts the pins and then calls the functions, last given first, each guarded: there is no caller that a panic could reach.
func (s *slot) end() {
	if s.pinner != nil {
		s.pinner.Unpin()
	}
	s.keep = nil
	for i := len(s.ends) - 1; i >= 0; i-- {
		callEnd(s.ends[i])
	}
}

func callEnd(f func()) {
	defer func() {
		if r := recover(); r != nil {
			endPanics.Add(1)
			fmt.Fprintf(os.Stderr, "dlferry: exchange: a function given to Builder.OnRelease panicked: %v\n", r)
		}
	}()
	f()
}

var endPanics atomic.Int64

// slotTable hands out numbers for slots: the index in the low half, a generation in the high half, so that a stale number finds nothing.
type slotTable struct {
	mu      sync.Mutex
	entries []slotEntry
	free    []uint32
	live    int64
}

type slotEntry struct {
	generation uint32
	slot       *slot
}

var slots slotTable

func (t *slotTable) put(s *slot) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		i = uint32(len(t.entries))
		t.entries = append(t.entries, slotEntry{})
	}
	e := &t.entries[i]
	e.generation++
	e.slot = s
	t.live++
	return uint64(e.generation)<<32 | uint64(i)
}

// take removes and returns the slot of a number; nil for one that is stale or was never given out.
func (t *slotTable) take(id uint64) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, generation := uint32(id), uint32(id>>32)
	if uint64(i) >= uint64(len(t.entries)) {
		return nil
	}
	e := &t.entries[i]
	if e.slot == nil || e.generation != generation {
		return nil
	}
	s := e.slot
	e.slot = nil
	t.free = append(t.free, i)
	t.live--
	return s
}

func (t *slotTable) count() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Drain ends what waits for Go: it lifts the pins and calls the OnRelease functions of every tensor whose last deleter ran since, and says of how many.
//
// A background goroutine, woken by the deleters, does the same; Drain is for callers that want it done by now, and for every entry into Go from C.
// With nothing waiting it costs one atomic load. Safe for concurrent use.
func Drain() int {
	if !goQueueWaits() {
		return 0
	}
	n := 0
	for st := goQueueTake(); st != 0; n++ {
		var id uint64
		id, st = goQueuePop(st)
		if s := slots.take(id); s != nil {
			s.end()
		}
	}
	return n
}

var waker sync.Once

// startWaker starts the goroutine that drains when deleters ask for it. It runs for the life of the process; only programs that lend Go memory have it.
func startWaker() {
	waker.Do(func() {
		fd := wakeOpen()
		if fd < 0 {
			return // every later Go entry drains
		}
		f := os.NewFile(uintptr(fd), "dlferry-wake")
		go func() {
			var word [8]byte
			for {
				if _, err := f.Read(word[:]); err != nil {
					return
				}
				Drain()
			}
		}()
	})
}
