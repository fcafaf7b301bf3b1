module example.com/tokenizer

go 1.26

require github.com/dlferry/dlferry v0.0.0

require github.com/rivo/uniseg v0.4.7

replace github.com/dlferry/dlferry => ../..
