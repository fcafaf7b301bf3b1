package exchange

// Counts are live counts. A process that let go of everything shows zeros, but for Panics.
type Counts struct {
	Storages int64 `json:"storages"` // storages not yet ended
	Exports  int64 `json:"exports"`  // managed tensors handed out whose deleter has not run
	Imports  int64 `json:"imports"`  // foreign managed tensors not yet given back
	Bytes    int64 `json:"bytes"`    // bytes of data in C memory
	Slots    int64 `json:"slots"`    // tensors whose end Go still has to see to: pins, functions to call
	Panics   int64 `json:"panics"`   // functions given to Builder.OnRelease that panicked, ever
}

// Ledger reads the counts. They are always kept, and read one by one: while other goroutines work they need not fit together.
func Ledger() Counts {
	var c Counts
	c.Storages, c.Exports, c.Imports, c.Bytes = blockLedger()
	c.Slots = slots.count()
	c.Panics = endPanics.Load()
	return c
}

// SetPythonEnd is for a library that was opened by a Python extension: end is the C function (void (*)(DlfStorage *), see block.h) that takes over every
// storage whose end may need the interpreter. 0 lets foreign deleters be called directly again.
//
// Call it before the first import: it holds for storages that end from now on.
func SetPythonEnd(end uintptr) { setPythonEnd(end) }
