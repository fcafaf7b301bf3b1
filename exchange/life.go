package exchange

import (
	"runtime"
	"sync/atomic"
)

// life is the reference that a handle holds on a storage: given back once, by Release or by the garbage collector's cleanup, and never while somebody looks.
type life struct {
	word    atomic.Int64 // twice the number of lookers, plus one when released
	storage uintptr
	net     runtime.Cleanup
}

const (
	released = 1
	looker   = 2
)

// hold keeps the storage alive until drop. It fails after release.
func (l *life) hold() bool {
	for {
		w := l.word.Load()
		if w&released != 0 {
			return false
		}
		if l.word.CompareAndSwap(w, w+looker) {
			return true
		}
	}
}

func (l *life) drop() {
	if l.word.Add(-looker) == released {
		l.end()
	}
}

// release marks the handle; whoever brings the word to released ends it, and since nobody can hold any more, that happens once.
func (l *life) release() {
	for {
		w := l.word.Load()
		if w&released != 0 {
			return
		}
		if l.word.CompareAndSwap(w, w|released) {
			if w == 0 {
				l.end()
			}
			return
		}
	}
}

func (l *life) end() {
	l.net.Stop()
	storageUnref(l.storage)
}
