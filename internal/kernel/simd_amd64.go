//go:build !purego

package kernel

import "unsafe"

// simd says whether the processor and the system have what the assembly of this package needs. Tests set it to false; the build tag purego leaves the assembly
// out.
var simd = detect()

// detect asks for AVX2 and F16C, and whether the system saves the upper halves of the registers.
func detect() bool {
	const osxsave, avx, f16c = 1 << 27, 1 << 28, 1 << 29 // of leaf 1, ecx
	const avx2 = 1 << 5                                  // of leaf 7, ebx
	const saved = 1<<1 | 1<<2                            // xmm and ymm, of XCR0
	if leaves, _, _, _ := cpuid(0, 0); leaves < 7 {
		return false
	}
	_, _, c, _ := cpuid(1, 0)
	if c&(osxsave|avx|f16c) != osxsave|avx|f16c || xgetbv()&saved != saved {
		return false
	}
	_, b, _, _ := cpuid(7, 0)
	return b&avx2 != 0
}

func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() uint32

//go:noescape
func transpose1(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)

//go:noescape
func transpose2(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)

//go:noescape
func transpose4(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)

//go:noescape
func transpose8(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)

//go:noescape
func transpose16(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)

//go:noescape
func streamRows(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, rows, bytes int64)

//go:noescape
func streamPages(dst, src unsafe.Pointer, quads int64)

func fence()

//go:noescape
func split2(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, groups int64, masks *byte, outputs int64)

//go:noescape
func split3(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, groups int64, masks *byte, outputs int64)

//go:noescape
func split4(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, groups int64, masks *byte, outputs int64)

//go:noescape
func join2(dst, src unsafe.Pointer, srcStep, groups int64, masks *byte)

//go:noescape
func join3(dst, src unsafe.Pointer, srcStep, groups int64, masks *byte)

//go:noescape
func join4(dst, src unsafe.Pointer, srcStep, groups int64, masks *byte)

// blocksOf is the assembly for transposes of elements of size bytes.
func blocksOf(size int64) blocks {
	if !simd {
		return blocks{}
	}
	switch size {
	case 1:
		return blocks{transpose1, 32, 16}
	case 2:
		return blocks{transpose2, 16, 8}
	case 4:
		return blocks{transpose4, 8, 8}
	case 8:
		return blocks{transpose8, 4, 4}
	case 16:
		return blocks{transpose16, 2, 4}
	}
	return blocks{}
}
