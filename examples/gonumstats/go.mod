module example.com/gonumstats

go 1.26

require github.com/dlferry/dlferry v0.0.0

require gonum.org/v1/gonum v0.17.0

replace github.com/dlferry/dlferry => ../..
