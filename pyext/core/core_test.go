package main

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// build makes the library as the wheel does.
func build(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("no version script outside of Linux: the library is built and opened there only")
	}
	exports, err := filepath.Abs("../host/exports.map")
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(t.TempDir(), "libdlferry.so")
	out, err := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -extldflags=-Wl,--version-script="+exports, "-o", library, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

func TestTheLibraryAnswersAProgramInC(t *testing.T) {
	library := build(t)
	driver := filepath.Join(filepath.Dir(library), "driver")
	cc := strings.Fields(compiler())
	args := append(cc[1:], "-std=gnu11", "-Wall", "-Wextra", "-O1", "-o", driver, "testdata/driver.c", "-ldl", "-lpthread")
	if out, err := exec.Command(cc[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(driver, library)
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Go     string
		ABI    int
		Ledger map[string]int64
	}
	if err := json.Unmarshal(out, &info); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info.Go != runtime.Version() || info.ABI != 2 {
		t.Errorf("info %+v", info)
	}
	for name, n := range info.Ledger {
		if n != 0 {
			t.Errorf("%d %s are alive", n, name)
		}
	}
	if len(info.Ledger) == 0 {
		t.Error("no ledger")
	}
}

func TestTheLibraryExportsTwoNamesAndWantsNoneOfPython(t *testing.T) {
	f, err := elf.Open(build(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF:
			if strings.HasPrefix(s.Name, "Py") || strings.HasPrefix(s.Name, "_Py") {
				t.Errorf("wants %s", s.Name)
			}
		case elf.ST_BIND(s.Info) != elf.STB_LOCAL:
			exported = append(exported, s.Name)
		}
	}
	slices.Sort(exported)
	if !slices.Equal(exported, []string{"dlf_go_call", "dlf_go_init"}) {
		t.Errorf("exports %v", exported)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries {
		if strings.Contains(l, "python") {
			t.Errorf("needs %s", l)
		}
	}
}
