package abi_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
)

// structs pairs our C structs with those of dlpack.h and with the Go mirror; the fields stand in the order of declaration.
var structs = []struct {
	ours, theirs string
	mirror       any
	fields       []string // "ours theirs Go"
}{
	{"DlfVersion", "DLPackVersion", dlpack.Version{}, []string{"major major Major", "minor minor Minor"}},
	{"DlfDevice", "DLDevice", dlpack.Device{}, []string{"type device_type Type", "id device_id ID"}},
	{"DlfDataType", "DLDataType", dlpack.DataType{}, []string{"code code Code", "bits bits Bits", "lanes lanes Lanes"}},
	{"DlfTensor", "DLTensor", dlpack.Tensor{}, []string{"data data Data", "device device Device", "ndim ndim NDim", "dtype dtype DType",
		"shape shape Shape", "strides strides Strides", "byte_offset byte_offset ByteOffset"}},
	{"DlfManagedTensor", "DLManagedTensor", dlpack.ManagedTensor{}, []string{"tensor dl_tensor Tensor", "manager_ctx manager_ctx ManagerCtx",
		"deleter deleter Deleter"}},
	{"DlfManagedTensorVersioned", "DLManagedTensorVersioned", dlpack.ManagedTensorVersioned{}, []string{"version version Version",
		"manager_ctx manager_ctx ManagerCtx", "deleter deleter Deleter", "flags flags Flags", "tensor dl_tensor Tensor"}},
	{"DlfExchangeHeader", "DLPackExchangeAPIHeader", dlpack.ExchangeHeader{}, []string{"version version Version", "prev_api prev_api PrevAPI"}},
	{"DlfExchangeApi", "DLPackExchangeAPI", dlpack.ExchangeAPI{}, []string{"header header Header",
		"managed_tensor_allocator managed_tensor_allocator ManagedTensorAllocator",
		"managed_tensor_from_py_object_no_sync managed_tensor_from_py_object_no_sync ManagedTensorFromPyObjectNoSync",
		"managed_tensor_to_py_object_no_sync managed_tensor_to_py_object_no_sync ManagedTensorToPyObjectNoSync",
		"dltensor_from_py_object_no_sync dltensor_from_py_object_no_sync DLTensorFromPyObjectNoSync",
		"current_work_stream current_work_stream CurrentWorkStream"}},
}

// constants pairs ours with those of dlpack.h.
var constants = map[string]string{
	"DLF_VERSION_MAJOR": "DLPACK_MAJOR_VERSION", "DLF_VERSION_MINOR": "DLPACK_MINOR_VERSION",
	"DLF_FLAG_READ_ONLY": "DLPACK_FLAG_BITMASK_READ_ONLY", "DLF_FLAG_IS_COPIED": "DLPACK_FLAG_BITMASK_IS_COPIED",
	"DLF_FLAG_SUBBYTE_PADDED": "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED",
	"DLF_DEVICE_CPU":          "kDLCPU", "DLF_DEVICE_CUDA": "kDLCUDA", "DLF_DEVICE_CUDA_HOST": "kDLCUDAHost", "DLF_DEVICE_OPENCL": "kDLOpenCL",
	"DLF_DEVICE_VULKAN": "kDLVulkan", "DLF_DEVICE_METAL": "kDLMetal", "DLF_DEVICE_VPI": "kDLVPI", "DLF_DEVICE_ROCM": "kDLROCM",
	"DLF_DEVICE_ROCM_HOST": "kDLROCMHost", "DLF_DEVICE_EXT_DEV": "kDLExtDev", "DLF_DEVICE_CUDA_MANAGED": "kDLCUDAManaged",
	"DLF_DEVICE_ONEAPI": "kDLOneAPI", "DLF_DEVICE_WEBGPU": "kDLWebGPU", "DLF_DEVICE_HEXAGON": "kDLHexagon", "DLF_DEVICE_MAIA": "kDLMAIA",
	"DLF_DEVICE_TRN": "kDLTrn", "DLF_DEVICE_TPU": "kDLTPU", "DLF_DEVICE_TPU_HOST": "kDLTPUHost", "DLF_DEVICE_ASCEND": "kDLAscend",
	"DLF_CODE_INT": "kDLInt", "DLF_CODE_UINT": "kDLUInt", "DLF_CODE_FLOAT": "kDLFloat", "DLF_CODE_OPAQUE_HANDLE": "kDLOpaqueHandle",
	"DLF_CODE_BFLOAT": "kDLBfloat", "DLF_CODE_COMPLEX": "kDLComplex", "DLF_CODE_BOOL": "kDLBool", "DLF_CODE_FLOAT8_E3M4": "kDLFloat8_e3m4",
	"DLF_CODE_FLOAT8_E4M3": "kDLFloat8_e4m3", "DLF_CODE_FLOAT8_E4M3B11FNUZ": "kDLFloat8_e4m3b11fnuz",
	"DLF_CODE_FLOAT8_E4M3FN": "kDLFloat8_e4m3fn", "DLF_CODE_FLOAT8_E4M3FNUZ": "kDLFloat8_e4m3fnuz", "DLF_CODE_FLOAT8_E5M2": "kDLFloat8_e5m2",
	"DLF_CODE_FLOAT8_E5M2FNUZ": "kDLFloat8_e5m2fnuz", "DLF_CODE_FLOAT8_E8M0FNU": "kDLFloat8_e8m0fnu",
	"DLF_CODE_FLOAT6_E2M3FN": "kDLFloat6_e2m3fn", "DLF_CODE_FLOAT6_E3M2FN": "kDLFloat6_e3m2fn",
	"DLF_CODE_FLOAT4_E2M1FN": "kDLFloat4_e2m1fn", "DLF_CODE_BCOMPLEX": "kDLBcomplex",
}

var (
	ourConstant   = regexp.MustCompile(`(?m)^\s*(?:#define )?(DLF_(?:VERSION|FLAG|DEVICE|CODE)_[A-Z0-9_]+)\b.*$`)
	theirConstant = regexp.MustCompile(`(?m)^\s*(kDL\w+)\s*=|^\s*#\s*define\s+(DLPACK_FLAG_\w+)`)
)

// TestDeclarationsAgreeWithDLPackHeader compares our C header and the Go mirror with the dlpack.h that DLFERRY_DLPACK_H names.
func TestDeclarationsAgreeWithDLPackHeader(t *testing.T) {
	theirs := os.Getenv("DLFERRY_DLPACK_H")
	if theirs == "" {
		t.Skip("DLFERRY_DLPACK_H names no dlpack.h to compare with")
	}
	theirText := read(t, theirs)
	ourText := read(t, "dlpack_abi.h")

	// Both lists are complete: a constant that the table does not pair would go unchecked.
	paired := map[string]bool{}
	for _, name := range constants {
		paired[name] = true
	}
	for _, m := range theirConstant.FindAllStringSubmatch(theirText, -1) {
		if name := m[1] + m[2]; !paired[name] {
			t.Errorf("%s of %s stands in no table", name, theirs)
		}
	}
	var names []string // the constants to compare
	for _, m := range ourConstant.FindAllStringSubmatch(ourText, -1) {
		name := m[1]
		other, ok := constants[name]
		switch has := regexp.MustCompile(`\b` + other + `\b`).MatchString(theirText); {
		case !ok:
			t.Errorf("%s stands in no table", name)
		case has:
			names = append(names, name)
		case !strings.Contains(m[0], "(unreleased)"):
			t.Errorf("%s: %s is not in %s", name, other, theirs)
		}
	}
	if len(names) < len(constants)-4 {
		t.Errorf("constants found in both headers, got %d, want at least %d", len(names), len(constants)-4)
	}

	var c strings.Builder
	p := func(f string, args ...any) { fmt.Fprintf(&c, f+"\n", args...) }
	abs, err := filepath.Abs("dlpack_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	p("#include <stddef.h>\n#include <stdio.h>\n#include %q\n#include %q", theirs, abs)
	p("#define ALIGN(type) offsetof(struct { char c; type t; }, t)")
	p("int main(void) {")
	for _, name := range names {
		p(`printf("%s %%llu %%llu\n", (unsigned long long)%s, (unsigned long long)%s);`, name, name, constants[name])
	}
	for _, s := range structs {
		p(`printf("%s %%zu %%zu\n", sizeof(%s), sizeof(%s));`, s.ours, s.ours, s.theirs)
		p(`printf("%s/align %%zu %%zu\n", ALIGN(%s), ALIGN(%s));`, s.ours, s.ours, s.theirs)
		for _, f := range s.fields {
			f := strings.Fields(f)
			p(`printf("%s.%s %%zu %%zu\n", offsetof(%s, %s), offsetof(%s, %s));`, s.ours, f[0], s.ours, f[0], s.theirs, f[1])
			p(`printf("%s.%s/size %%zu %%zu\n", sizeof(((%s *)0)->%s), sizeof(((%s *)0)->%s));`, s.ours, f[0], s.ours, f[0], s.theirs, f[1])
		}
	}
	p("return 0; }")

	measured := runC(t, c.String())
	checked := 0
	for name, pair := range measured {
		checked++
		if pair[0] != pair[1] {
			t.Errorf("%s: ours %d, dlpack.h %d", name, pair[0], pair[1])
		}
	}
	for _, s := range structs {
		typ := reflect.TypeOf(s.mirror)
		compare := func(name string, got uintptr) {
			if pair, ok := measured[name]; !ok || uint64(got) != pair[1] {
				t.Errorf("%s: Go %d, dlpack.h %d", name, got, pair[1])
			}
		}
		compare(s.ours, typ.Size())
		compare(s.ours+"/align", uintptr(typ.Align()))
		if typ.NumField() != len(s.fields) {
			t.Errorf("%s: Go has %d fields, want %d", s.ours, typ.NumField(), len(s.fields))
		}
		for _, f := range s.fields {
			f := strings.Fields(f)
			field, ok := typ.FieldByName(f[2])
			if !ok {
				t.Errorf("%s: no field %s in Go", s.ours, f[2])
				continue
			}
			compare(s.ours+"."+f[0], field.Offset)
			compare(s.ours+"."+f[0]+"/size", field.Type.Size())
		}
	}
	t.Logf("%d sizes, alignments, offsets and constants are the same", checked)
}

// runC builds and runs a program whose lines are "name ours theirs".
func runC(t *testing.T, source string) map[string][2]uint64 {
	t.Helper()
	cc := os.Getenv("CC")
	for _, name := range []string{"cc", "gcc"} {
		if _, err := exec.LookPath(name); err == nil && cc == "" {
			cc = name
		}
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "abi")
	if err := os.WriteFile(program+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(cc), "-std=c11", "-o", program, program+".c")
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string][2]uint64{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		var pair [2]uint64
		for i := range pair {
			if pair[i], err = strconv.ParseUint(f[i+1], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		measured[f[0]] = pair
	}
	return measured
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
