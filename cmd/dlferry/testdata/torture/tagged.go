//go:build never

package torture

//dlferry:export
func Never(c chan int) {}
