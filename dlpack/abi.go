package dlpack

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unsafe"
)

// The structs of this file have the layout of their C namesakes (DLTensor, DLManagedTensor, …), byte for byte.
//
// Pointers into memory that a producer owns are uintptr, not unsafe.Pointer: the garbage collector must neither follow nor check them, a hostile producer may
// put any bits there (the runtime stops the process when it meets a bad pointer in a pointer field), and a struct that holds only integers may itself lie in C memory.
// The price is that a uintptr keeps no Go memory alive: whoever points one at Go memory pins it or uses runtime.KeepAlive. A View is where
// addresses become pointers.

// Version is the version of the ABI that a managed tensor was made for.
type Version struct {
	Major, Minor uint32
}

// CurrentVersion is the version whose rules this module keeps, and that tensors made by it carry.
var CurrentVersion = Version{VersionMajor, VersionMinor}

// Compare orders versions: negative when v is older than w, 0 when they are the same, positive when v is newer.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

// Compatible says whether the structs of version v can be read: same major version. A newer minor version may bring device types, type codes and
// flags that are unknown here, and changes no layout.
func (v Version) Compatible() bool { return v.Major == VersionMajor }

// String prints "1.3".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// DeviceType says what kind of memory a tensor lies in. Values without a constant are carried.
type DeviceType int32

// Device is a device type and the number of the device among those of its type.
type Device struct {
	Type DeviceType
	ID   int32
}

// TypeCode is the family of an element type. Values without a constant are carried.
type TypeCode uint8

// DataType is an element type: Lanes values of Bits bits each, read as Code says.
type DataType struct {
	Code  TypeCode
	Bits  uint8
	Lanes uint16
}

// Flags are the flags of a versioned managed tensor. Bits without a constant are carried.
type Flags uint64

// Tensor mirrors DLTensor: a description of memory, owned by nobody. Shape and Strides point to NDim int64 values each; strides count elements, and
// Strides 0 means compact row-major order. The first element lies ByteOffset bytes after Data.
type Tensor struct {
	Data       uintptr
	Device     Device
	NDim       int32
	DType      DataType
	Shape      uintptr
	Strides    uintptr
	ByteOffset uint64
}

// ManagedTensor mirrors the legacy DLManagedTensor. Deleter is a C function that frees everything, the struct included, and may be 0.
type ManagedTensor struct {
	Tensor     Tensor
	ManagerCtx uintptr
	Deleter    uintptr
}

// ManagedTensorVersioned mirrors DLManagedTensorVersioned. When Version is not Compatible, only Deleter may be used.
type ManagedTensorVersioned struct {
	Version    Version
	ManagerCtx uintptr
	Deleter    uintptr
	Flags      Flags
	Tensor     Tensor
}

// ExchangeHeader mirrors DLPackExchangeAPIHeader. PrevAPI is an older table, or 0.
type ExchangeHeader struct {
	Version Version
	PrevAPI uintptr
}

// ExchangeAPI mirrors DLPackExchangeAPI: the exchange table of one Python type. The fields after Header are C functions; DLTensorFromPyObjectNoSync may be 0.
type ExchangeAPI struct {
	Header                          ExchangeHeader
	ManagedTensorAllocator          uintptr
	ManagedTensorFromPyObjectNoSync uintptr
	ManagedTensorToPyObjectNoSync   uintptr
	DLTensorFromPyObjectNoSync      uintptr
	CurrentWorkStream               uintptr
}

// pointer turns an address into a pointer. The address is C memory or Go memory that the caller keeps alive; going through memory keeps vet's unsafeptr check,
// which cannot know that, meaningful elsewhere.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// ShapeUnchecked is the tensor's shape, in place: nil when NDim is not positive or Shape is 0. Nothing is checked, see Validate; the slice is valid as
// long as the tensor is, and must not be written to.
func (t *Tensor) ShapeUnchecked() []int64 { return dimsAt(t.Shape, t.NDim) }

// StridesUnchecked is the tensor's strides, in place, as ShapeUnchecked: nil when they are not given.
func (t *Tensor) StridesUnchecked() []int64 { return dimsAt(t.Strides, t.NDim) }

func dimsAt(address uintptr, ndim int32) []int64 {
	if address == 0 || ndim <= 0 {
		return nil
	}
	return unsafe.Slice((*int64)(pointer(address)), ndim)
}

// String names the type: "cuda_host", or "device99" when it is unknown.
func (t DeviceType) String() string {
	if t > 0 && int(t) < len(deviceNames) && deviceNames[t] != "" {
		return deviceNames[t]
	}
	return "device" + strconv.Itoa(int(t))
}

// String names the flags, joined by "|": "read_only|is_copied". Bits without a name follow in hexadecimal; no flags print "0x0".
func (f Flags) String() string {
	var names []string
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
			f &^= n.flag
		}
	}
	if f != 0 || names == nil {
		names = append(names, "0x"+strconv.FormatUint(uint64(f), 16))
	}
	return strings.Join(names, "|")
}

// ReadOnly says whether the data must not be written to.
func (f Flags) ReadOnly() bool { return f&FlagReadOnly != 0 }

// Copied says whether the producer made the data for this exchange, so that it is shared with nobody.
func (f Flags) Copied() bool { return f&FlagIsCopied != 0 }

// SubbytePadded says whether values of less than 8 bits take a byte each.
func (f Flags) SubbytePadded() bool { return f&FlagSubbytePadded != 0 }
