// Package pyext is the Go side of a Python extension: what turns the end of a Go function, whichever way it ends, into an answer for the C side, and
// goroutines whose panics reach their caller.
//
// Go is a leaf here: Python calls C, C calls Go, Go returns. Nothing in this package calls Python or waits for its lock, and it names none of Python's symbols.
//
// A panic that leaves a goroutine ends the whole interpreter, and no one can stop that from outside the goroutine. Functions that are called from Python therefore
// start goroutines with Go or Group. Not stoppable at all are runtime.Goexit on the goroutine that C called, and the runtime's fatal errors
// (concurrent map writes, out of memory, a fault in memory that is not there).
package pyext
