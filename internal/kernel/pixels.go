package kernel

import "unsafe"

// Pixels of two to four channels, with the channels next to one another, are planes too narrow for blocks: they are split into channels, or joined from them,
// by picking bytes.

// groupBytes is how much of each channel a step of the assembly takes: 16 in each of the two lanes of a register.
const groupBytes = 32

// shuffles holds masks for VPSHUFB, twice each: mask [i][k] picks from register k what belongs into register i. 0x80 picks nothing.
type shuffles [4 * 4 * groupBytes]byte

type pixelMasks struct{ split, join shuffles }

// pixels holds the masks for elements of 1, 2, 4 and 8 bytes in pixels of 2, 3 and 4.
var pixels = makePixels()

func makePixels() *[4][3]pixelMasks {
	all := new([4][3]pixelMasks)
	for power := range all {
		size := 1 << power
		for i := range all[power] {
			channels := i + 2
			m := &all[power][i]
			for j := range m.split {
				m.split[j], m.join[j] = 0x80, 0x80
			}
			for at := range 16 * channels { // a byte of 16 / size pixels
				pixel, channel, low := at/(size*channels), at/size%channels, at%size
				inChannel := pixel*size + low
				for lane := 0; lane < groupBytes; lane += 16 {
					m.split[(channel*channels+at/16)*groupBytes+lane+inChannel] = byte(at % 16)
					m.join[(at/16*channels+channel)*groupBytes+lane+at%16] = byte(inChannel)
				}
			}
		}
	}
	return all
}

// power is the exponent of sizes that have masks, or -1.
func power(size int64) int {
	switch size {
	case 1:
		return 0
	case 2:
		return 1
	case 4:
		return 2
	case 8:
		return 3
	}
	return -1
}

// split copies pixels of src into rows of dst, one a channel, as far as the assembly can, and says how many pixels that is. Not all channels need be wanted.
func split(dst uintptr, dstStep int64, src uintptr, srcStep, size, n, channels int64) int64 {
	k, all := power(size), srcStep/size
	if !simd || k < 0 || srcStep%size != 0 || all < 2 || all > 4 || channels > all {
		return 0
	}
	if channels < all {
		n-- // what follows the last channel that is wanted may be nobody's memory
	}
	groups := n * size / groupBytes
	if groups <= 0 {
		return 0
	}
	masks := unsafe.SliceData(pixels[k][all-2].split[:])
	switch all {
	case 2:
		split2(pointer(dst), dstStep, pointer(src), groups, masks, channels)
	case 3:
		split3(pointer(dst), dstStep, pointer(src), groups, masks, channels)
	case 4:
		split4(pointer(dst), dstStep, pointer(src), groups, masks, channels)
	}
	return groups * groupBytes / size
}

// join makes pixels without gaps of rows of src, and says how many.
func join(dst uintptr, dstStep int64, src uintptr, srcStep, size, channels, n int64) int64 {
	k, groups := power(size), n*size/groupBytes
	if !simd || k < 0 || channels < 2 || channels > 4 || dstStep != channels*size || groups == 0 {
		return 0
	}
	masks := unsafe.SliceData(pixels[k][channels-2].join[:])
	switch channels {
	case 2:
		join2(pointer(dst), pointer(src), srcStep, groups, masks)
	case 3:
		join3(pointer(dst), pointer(src), srcStep, groups, masks)
	case 4:
		join4(pointer(dst), pointer(src), srcStep, groups, masks)
	}
	return groups * groupBytes / size
}
