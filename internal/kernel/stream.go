package kernel

import "unsafe"

// stream copies adjacent bytes past the caches. The caller calls fence when all is done.
func stream(dst, src unsafe.Pointer, n int64) {
	const quad = 4 * 4096
	// An assembly function is not interrupted for the garbage collector: no more than some ten microseconds at a time.
	const most = 64 * quad
	if n < 2*quad {
		streamRows(dst, 0, src, 0, 1, n)
		return
	}
	done := int64(-uintptr(dst) % 64)
	streamRows(dst, 0, src, 0, 1, done)
	for n-done >= quad {
		m := min(most, n-done) &^ (quad - 1)
		streamPages(unsafe.Add(dst, done), unsafe.Add(src, done), m/quad)
		done += m
	}
	if done < n {
		streamRows(unsafe.Add(dst, done), 0, unsafe.Add(src, done), 0, 1, n-done)
	}
}
