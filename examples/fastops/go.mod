module example.com/fastops

go 1.26

require github.com/dlferry/dlferry v0.0.0

replace github.com/dlferry/dlferry => ../..
