package compile

import (
	"runtime/debug"
	"strings"

	"github.com/dlferry/dlferry/cmd/dlferry/internal/gomod"
)

// Go puts 16 bytes before and behind the information, of which its readers only look at the number. Its own have a zero, which no argument can have.
const (
	infoStart = "\x30\x77\xaf\x0c\x92\x74\x08\x02\x41\xe1\xc1\x07\xe6\xd6\x18\xe6"
	infoEnd   = "\xf9\x32\x43\x31\x86\x18\x20\x72\x01\x82\x42\x10\x41\x16\xd8\xf2"
)

// infoFlag is the linker's option for what `go version -m` says about the library. By itself the go command would write down the folder that dlferry's module
// is in, which is another one in every build of pip's.
func (l *linked) infoFlag() string {
	value := infoStart + l.info().String() + infoEnd
	if strings.Contains(value, "'") { // in the path of a replaced module: it can't be quoted
		return ""
	}
	return " -X 'runtime.modinfo=" + value + "'"
}

func (l *linked) info() *debug.BuildInfo {
	info := &debug.BuildInfo{Path: l.glue, Main: debug.Module{Path: l.own.Path, Version: "(devel)"}}
	for _, m := range l.modules {
		made := &debug.Module{Path: m.Path, Version: m.Version, Sum: m.Sum}
		switch r := m.Replace; {
		case r != nil && m.Path == gomod.Path && r.Version == "":
			made.Version, made.Sum = "(devel)", ""
		case r != nil:
			made.Sum = ""
			made.Replace = &debug.Module{Path: r.Path, Version: r.Version, Sum: r.Sum}
		}
		info.Deps = append(info.Deps, made)
	}
	for _, setting := range []string{"-buildmode=c-shared", "-compiler=gc", "-trimpath=true", "CGO_ENABLED=1"} {
		key, value, _ := strings.Cut(setting, "=")
		info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
	}
	return info
}
