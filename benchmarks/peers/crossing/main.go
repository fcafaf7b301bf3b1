// Command crossing is a Go library with a function that does nothing: what one call from C into Go costs.
package main

import "C"

func main() {}

//export crossing_noop
func crossing_noop() {}
