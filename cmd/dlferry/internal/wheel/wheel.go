// Package wheel writes wheels, byte for byte the same from the same files.
package wheel

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// PythonTag and ABITag: the extension is built for the stable ABI of Python 3.11.
const (
	PythonTag = "cp311"
	ABITag    = "abi3"
)

// File is a member of a wheel.
type File struct {
	Name       string
	Data       []byte
	Executable bool
}

// Wheel is what is written.
type Wheel struct {
	Distribution, Version, Platform string

	Metadata    string
	EntryPoints string
	Licenses    map[string][]byte
	ThirdParty  string // the licences of what the library is linked with
	Files       []File
}

// Name is the file name.
func (w *Wheel) Name() string {
	return fmt.Sprintf("%s-%s-%s-%s-%s.whl", w.Distribution, w.Version, PythonTag, ABITag, w.Platform)
}

// Write makes the file, in one step for those who look.
func (w *Wheel) Write(file string) error {
	data, err := w.bytes()
	if err != nil {
		return err
	}
	return Replace(file, data, 0o644)
}

// Replace writes a file beside its place and moves it there, so that a program that has the old one open keeps it.
func Replace(file string, data []byte, mode os.FileMode) error {
	temporary := fmt.Sprintf("%s.%d.tmp", file, os.Getpid())
	if err := os.WriteFile(temporary, data, mode); err != nil {
		return err
	}
	if err := os.Rename(temporary, file); err != nil {
		_ = os.Remove(temporary) // the rename's error says more
		return err
	}
	return nil
}

func (w *Wheel) bytes() ([]byte, error) {
	info := fmt.Sprintf("%s-%s.dist-info/", w.Distribution, w.Version)
	files := slices.Clone(w.Files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	own := []File{
		{Name: info + "METADATA", Data: []byte(w.Metadata)},
		{Name: info + "WHEEL", Data: fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: dlferry\nRoot-Is-Purelib: false\nTag: %s-%s-%s\n", PythonTag, ABITag, w.Platform)},
	}
	if w.EntryPoints != "" {
		own = append(own, File{Name: info + "entry_points.txt", Data: []byte(w.EntryPoints)})
	}
	if w.ThirdParty != "" {
		own = append(own, File{Name: info + "THIRD_PARTY_LICENSES.txt", Data: []byte(w.ThirdParty)})
	}
	for name, data := range w.Licenses {
		own = append(own, File{Name: info + "licenses/" + name, Data: data})
	}
	slices.SortFunc(own, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	files = append(files, own...)
	record, err := recordOf(files, info+"RECORD")
	if err != nil {
		return nil, err
	}
	return archive(append(files, record))
}

func recordOf(files []File, name string) (File, error) {
	var out bytes.Buffer
	table := csv.NewWriter(&out)
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f.Name] || f.Name != path.Clean(f.Name) || strings.HasPrefix(f.Name, "/") {
			return File{}, fmt.Errorf("the wheel would hold %s twice, or by a path that is not clean", f.Name)
		}
		seen[f.Name] = true
		sum := sha256.Sum256(f.Data)
		if err := table.Write([]string{f.Name, "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), fmt.Sprint(len(f.Data))}); err != nil {
			return File{}, err
		}
	}
	if err := table.Write([]string{name, "", ""}); err != nil {
		return File{}, err
	}
	table.Flush()
	return File{Name: name, Data: out.Bytes()}, table.Error()
}

func archive(files []File) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		header.SetMode(0o644)
		if f.Executable {
			header.SetMode(0o755)
		}
		member, err := z.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := member.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
