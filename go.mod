module github.com/dlferry/dlferry

go 1.26
