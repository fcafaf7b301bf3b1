package wheel

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// floor is manylinux2014: no wheel is tagged older, whatever its libraries would allow.
const floor = 17

var (
	// system is what every manylinux level lets a library take from the machine that it runs on.
	system = regexp.MustCompile(`^(lib(c|m|dl|rt|pthread|gcc_s|resolv|nsl|util)\.so\.\d+|ld-linux.*\.so\.\d+)$`)
	glibc  = regexp.MustCompile(`^GLIBC_2\.(\d+)`)
)

// Platform is the platform tag of a wheel that holds the ELF libraries. foreign is the libraries that they need and that not every machine has: with one of those the
// tag is linux_…, which package indexes do not take.
func Platform(libraries ...string) (tag string, foreign []string, err error) {
	minor, machine := floor, ""
	for _, library := range libraries {
		f, err := elf.Open(library)
		if err != nil {
			return "", nil, fmt.Errorf("%s is no ELF library: %w", library, err)
		}
		own, needs, err := look(f)
		_ = f.Close() // nothing was written
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", library, err)
		}
		foreign = append(foreign, needs...)
		name, ok := map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}[f.Machine]
		if !ok {
			return "", nil, fmt.Errorf("%s is for %s, want x86_64 or aarch64", library, f.Machine)
		}
		if machine != "" && name != machine {
			return "", nil, fmt.Errorf("%s is for %s, but the other libraries are for %s; set GOARCH and CC to the processor of dlferry's wheel", filepath.Base(library), name, machine)
		}
		machine, minor = name, max(minor, own)
	}
	if machine == "" {
		return "", nil, errors.New("no library to look at")
	}
	if len(foreign) > 0 {
		return "linux_" + machine, foreign, nil
	}
	return fmt.Sprintf("manylinux_2_%d_%s", minor, machine), nil, nil
}

// look is the minor version of glibc 2 that a library needs, and the libraries that it needs besides.
func look(f *elf.File) (minor int, foreign []string, err error) {
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return 0, nil, err
	}
	for _, name := range libraries {
		if strings.Contains(name, "musl") || name == "libc.so" {
			return 0, nil, errors.New("it is linked to musl, where a Go shared library can't be loaded; build with a C compiler for glibc")
		}
		if !system.MatchString(name) {
			foreign = append(foreign, name)
		}
	}
	needs, err := f.DynamicVersionNeeds()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return 0, nil, err
	}
	for _, library := range needs {
		for _, need := range library.Needs {
			switch found := glibc.FindStringSubmatch(need.Dep); {
			case found != nil:
				n, err := strconv.Atoi(found[1])
				if err != nil {
					return 0, nil, err
				}
				minor = max(minor, n)
			case need.Dep == "GLIBC_ABI_DT_RELR":
				minor = max(minor, 36)
			case need.Dep == "GLIBC_PRIVATE":
				return 0, nil, errors.New("it uses private symbols of glibc")
			}
		}
	}
	return minor, foreign, nil
}
