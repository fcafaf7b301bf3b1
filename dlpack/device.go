package dlpack

import (
	"strconv"
	"strings"
)

// CPU is the device of ordinary memory.
var CPU = Device{DeviceCPU, 0}

// IsHost says whether the CPU may read and write memory of this type without asking the device's driver: plain and page-locked memory. Managed CUDA memory
// is not among them, because a running kernel may own it.
func (t DeviceType) IsHost() bool {
	return t == DeviceCPU || t == DeviceCUDAHost || t == DeviceROCmHost
}

// HasPointers says whether Tensor.Data of this device type is an address that arithmetic may move. Where it is not known to be, Data and
// ByteOffset are carried apart.
func (t DeviceType) HasPointers() bool {
	return t.IsHost() || t == DeviceCUDA || t == DeviceCUDAManaged || t == DeviceROCm
}

// hasHandles says whether Data is known to name a buffer object, so that nothing can lie before its start.
func (t DeviceType) hasHandles() bool {
	return t == DeviceOpenCL || t == DeviceVulkan || t == DeviceMetal || t == DeviceWebGPU
}

// IsHost says whether the CPU may read and write memory of the device; see DeviceType.IsHost.
func (d Device) IsHost() bool { return d.Type.IsHost() }

// String prints "cuda:0", and "cpu" without the number for device 0 of the host types. Unknown types print "device99:1".
func (d Device) String() string {
	if d.ID == 0 && d.IsHost() {
		return d.Type.String()
	}
	return d.Type.String() + ":" + strconv.Itoa(int(d.ID))
}

// ParseDevice reads what Device.String prints; a name without a number is device 0 of its type, so "cuda" is "cuda:0". ErrDevice: another text,
// or a negative number.
func ParseDevice(s string) (Device, error) {
	refuse := func(want string) (Device, error) {
		return Device{}, &Error{Op: "ParseDevice", Kind: KindDevice, Axis: NoAxis, Got: strconv.Quote(s), Want: want}
	}
	name, number, numbered := strings.Cut(s, ":")
	var d Device
	for i, known := range deviceNames {
		if known != "" && known == name {
			d.Type = DeviceType(i)
		}
	}
	if n, ok := parseDecimal(strings.TrimPrefix(name, "device")); ok && strings.HasPrefix(name, "device") {
		d.Type = DeviceType(n)
	}
	if d.Type == 0 {
		return refuse(`a name such as "cpu", "cuda:0" or "device99:1"`)
	}
	if numbered {
		n, ok := parseDecimal(number)
		if !ok {
			return refuse("a device number from 0 to 2147483647 after the colon")
		}
		d.ID = n
	}
	return d, nil
}

// parseDecimal reads digits only: no sign, no needless zero in front.
func parseDecimal(s string) (int32, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int32(n), err == nil && (s == "0" || s[0] != '0')
}
