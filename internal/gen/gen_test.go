package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	if err := run(filepath.Join("..", ".."), true, io.Discard); err != nil {
		t.Error(err)
	}
}

// copyTree makes a module root with the headers alone.
func copyTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range headers {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCheckTellsWhatIsOutOfDate(t *testing.T) {
	root := copyTree(t)
	if err := run(root, true, io.Discard); err == nil || !strings.Contains(err.Error(), "zconst.go is out of date") {
		t.Errorf("without generated files, got %v, want an error that names zconst.go", err)
	}
	if err := run(root, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true, io.Discard); err != nil {
		t.Errorf("freshly written, got %v, want no error", err)
	}
	path := filepath.Join(root, "python/dlferry/_zconst.py")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "DEVICE_CUDA: Final = 2", "DEVICE_CUDA: Final = 3", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	err = run(root, true, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "-DEVICE_CUDA: Final = 3") || !strings.Contains(err.Error(), "+DEVICE_CUDA: Final = 2") {
		t.Errorf("after an edit, got %v, want both lines", err)
	}
}

func TestParseRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, line := range []string{
		"    DLF_DEVICE_CPU = 1,",                                  // no name in a comment
		"    DLF_COLOR_RED = 1, /* red */",                         // no such family
		"    DLF_CODE_INT = 4294967296, /* int */",                 // out of range
		"#define DLF_FLAG_X 8",                                     // not a shift
		"#define DLF_VERSION_PATCH 1",                              // no such part
		"    DLF_CODE_A = 1, /* a */\n    DLF_CODE_B = 1, /* b */", // twice
	} {
		h := &header{}
		if err := h.parse("x.h", line); err == nil {
			t.Errorf("%q: got no error", line)
		}
	}
	if err := (&header{}).complete(); err == nil {
		t.Error("an empty header: got no error")
	}
}

func TestGoNames(t *testing.T) {
	for c, want := range map[string]string{
		"DLF_DEVICE_CUDA_HOST": "DeviceCUDAHost", "DLF_CODE_FLOAT8_E4M3B11FNUZ": "CodeFloat8E4M3B11FNUZ", "DLF_KIND_READ_ONLY": "KindReadOnly",
		"DLF_CODE_BCOMPLEX": "CodeBComplex", "DLF_KIND_DTYPE": "KindDType", "DLF_DEVICE_ROCM": "DeviceROCm",
	} {
		if got := goName(c); got != want {
			t.Errorf("%s: got %s, want %s", c, got, want)
		}
	}
}
