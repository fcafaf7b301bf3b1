package compile

import (
	"runtime/debug"
	"testing"
)

func TestTheLibraryNamesNoFolderOfTheBuild(t *testing.T) {
	l, err := readList([]byte(`
{"ImportPath": "fmt"}
{"ImportPath": "rsc.io/quote", "Module": {"Path": "rsc.io/quote", "Version": "v1.5.2", "Sum": "h1:abc="}}
{"ImportPath": "github.com/dlferry/dlferry/dlpack", "Module": {"Path": "github.com/dlferry/dlferry", "Version": "v0.0.0", "Replace": {"Path": "/tmp/x/_go"}}}
{"ImportPath": "github.com/dlferry/dlferry/pyext", "Module": {"Path": "github.com/dlferry/dlferry", "Version": "v0.0.0", "Replace": {"Path": "/tmp/x/_go"}}}
{"ImportPath": "example.com/a", "Module": {"Path": "example.com/a", "Main": true}}
{"ImportPath": "example.com/a/dlferry_glue", "Module": {"Path": "example.com/a", "Main": true}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "path\texample.com/a/dlferry_glue\nmod\texample.com/a\t(devel)\t\ndep\tgithub.com/dlferry/dlferry\t(devel)\t\ndep\trsc.io/quote\tv1.5.2\th1:abc=\n" +
		"build\t-buildmode=c-shared\nbuild\t-compiler=gc\nbuild\t-trimpath=true\nbuild\tCGO_ENABLED=1\n"
	if got := l.info().String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := debug.ParseBuildInfo(l.info().String()); err != nil {
		t.Error(err)
	}
	if len(infoStart) != 16 || len(infoEnd) != 16 {
		t.Error("the marks have 16 bytes each")
	}
}
