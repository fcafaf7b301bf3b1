package wheel

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWheelsAreTheSameByteForByte(t *testing.T) {
	make := func(files ...File) []byte {
		w := &Wheel{Distribution: "a_b", Version: "1.0", Platform: "linux_x86_64", Metadata: "Name: a.b\n", Licenses: map[string][]byte{"B": []byte("b"), "A": []byte("a")}, Files: files}
		data, err := w.bytes()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	a, b := File{Name: "p/x,y.py", Data: []byte("1")}, File{Name: "p/lib.so", Data: []byte("2"), Executable: true}
	one := make(a, b)
	if !bytes.Equal(one, make(b, a)) {
		t.Error("the order of the files changes the wheel")
	}
	z, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
		if want := map[bool]os.FileMode{true: 0o755, false: 0o644}[f.Name == "p/lib.so"]; f.Mode() != want || f.Modified.Year() > 1980 {
			t.Errorf("%s: %v %v", f.Name, f.Mode(), f.Modified)
		}
	}
	const info = "a_b-1.0.dist-info/"
	want := []string{"p/lib.so", "p/x,y.py", info + "METADATA", info + "WHEEL", info + "licenses/A", info + "licenses/B", info + "RECORD"}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("got %v", names)
	}
	record, err := z.Open(info + "RECORD")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(record); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\"p/x,y.py\",sha256=a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s,1\n") {
		t.Errorf("RECORD: %s", text.String())
	}
}

func TestNoNameTwice(t *testing.T) {
	for _, files := range [][]File{{{Name: "a"}, {Name: "a"}}, {{Name: "/a"}}, {{Name: "a/../b"}}} {
		if _, err := (&Wheel{Files: files}).bytes(); err == nil {
			t.Errorf("%v: no error", files)
		}
	}
}

func TestPlatformOfWhatIsNoLibrary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.so")
	if err := os.WriteFile(file, []byte("not ELF"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, libraries := range [][]string{{}, {file}, {file + "2"}} {
		if tag, _, err := Platform(libraries...); err == nil {
			t.Errorf("%v: got %s", libraries, tag)
		}
	}
	// This program: whatever it was linked with, there is a tag for it.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if tag, foreign, err := Platform(self); err != nil || len(foreign) > 0 || !strings.HasPrefix(tag, "manylinux_2_") {
		t.Errorf("got %s, %v, %v", tag, foreign, err)
	}
}
