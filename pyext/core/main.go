// Command core is the Go library that dlferry's own Python extension opens:
//
//	go build -buildmode=c-shared -trimpath -buildvcs=false \
//		-ldflags='-s -w -buildid= -extldflags=-Wl,--version-script=/abs/pyext/host/exports.map' -o libdlferry.so ./pyext/core
//
// It exports dlf_go_init and dlf_go_call of pyext/shim/frame.h and nothing else, and needs no symbol of Python.
package main

import _ "github.com/dlferry/dlferry/pyext/host"

func main() {}
