module github.com/dlferry/dlferry/cmd/dlferry

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	golang.org/x/mod v0.43.0
	golang.org/x/tools v0.52.0
)

require golang.org/x/sync v0.24.0 // indirect
