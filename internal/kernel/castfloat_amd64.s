//go:build !purego

#include "textflag.h"
#include "cast_amd64.h"

// WIDEN makes 32 floats of integers of 8 / step * step bytes.
#define WIDEN(EXTEND, step) \
	EXTEND    (SI), Y0           \
	EXTEND    step(SI), Y1       \
	EXTEND    (2*step)(SI), Y2   \
	EXTEND    (3*step)(SI), Y3   \
	VCVTDQ2PS Y0, Y0             \
	VCVTDQ2PS Y1, Y1             \
	VCVTDQ2PS Y2, Y2             \
	VCVTDQ2PS Y3, Y3

// func float32OfUint8(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfUint8(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	WIDEN(VPMOVZXBD, 8)
	STORE128
	NEXT(32, 128)
	JG   loop
	DONE

// func float32OfInt8(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfInt8(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	WIDEN(VPMOVSXBD, 8)
	STORE128
	NEXT(32, 128)
	JG   loop
	DONE

// func float32OfUint16(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfUint16(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	WIDEN(VPMOVZXWD, 16)
	STORE128
	NEXT(64, 128)
	JG   loop
	DONE

// func float32OfInt16(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfInt16(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	WIDEN(VPMOVSXWD, 16)
	STORE128
	NEXT(64, 128)
	JG   loop
	DONE

// func float32OfInt32(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfInt32(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	AHEAD(64)
	WIDEN(VMOVDQU, 32)
	STORE128
	NEXT(128, 128)
	JG   loop
	DONE

// func float32OfBFloat16(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfBFloat16(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VPMOVZXWD 32(SI), Y2
	VPMOVZXWD 48(SI), Y3
	VPSLLD    $16, Y0, Y0
	VPSLLD    $16, Y1, Y1
	VPSLLD    $16, Y2, Y2
	VPSLLD    $16, Y3, Y3
	STORE128
	NEXT(64, 128)
	JG        loop
	DONE

// func float32OfFloat16(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfFloat16(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	VCVTPH2PS (SI), Y0
	VCVTPH2PS 16(SI), Y1
	VCVTPH2PS 32(SI), Y2
	VCVTPH2PS 48(SI), Y3
	STORE128
	NEXT(64, 128)
	JG        loop
	DONE

// func float32OfFloat64(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfFloat64(SB), NOSPLIT, $0-32
	ARGS

#define NARROW(at) \
	VCVTPD2PSY (2*at)(SI), X0      \
	VCVTPD2PSY (2*at+32)(SI), X1   \
	VMOVDQU    X0, at(DI)          \
	VMOVDQU    X1, (at+16)(DI)

loop:
	AHEAD(0)
	AHEAD(64)
	AHEAD(128)
	AHEAD(192)
	NARROW(0)
	NARROW(32)
	NARROW(64)
	NARROW(96)
	NEXT(256, 128)
	JG loop
	DONE

// ROUND rounds eight floats to the upper halves of their bits, ties to even, into the lower halves: adding 0x7fff carries beyond the middle, and one more at
// it if the last bit is set. Of a NaN only the sign stays.
#define ROUND(at, y, high, sum) \
	VMOVDQU   at(SI), y             \
	VPSRLD    $16, y, high          \
	VPAND     Y8, high, sum         \
	VPADDD    Y9, sum, sum          \
	VPADDD    y, sum, sum           \
	VPSRLD    $16, sum, sum         \
	VCMPPS    $3, y, y, y           \
	VPAND     Y10, high, high       \
	VPOR      Y11, high, high       \
	VPBLENDVB y, high, sum, y

// func bfloat16OfFloat32(dst, src unsafe.Pointer, n int64) int64
TEXT ·bfloat16OfFloat32(SB), NOSPLIT, $0-32
	ARGS
	BROADCAST(1, X8, Y8)
	BROADCAST(0x7fff, X9, Y9)
	BROADCAST(0x8000, X10, Y10)
	BROADCAST(0x7fc0, X11, Y11)

loop:
	AHEAD(0)
	AHEAD(64)
	ROUND(0, Y0, Y4, Y5)
	ROUND(32, Y1, Y6, Y7)
	ROUND(64, Y2, Y12, Y13)
	ROUND(96, Y3, Y14, Y15)
	VPACKUSDW Y1, Y0, Y0
	VPACKUSDW Y3, Y2, Y2
	VPERMQ    $0xd8, Y0, Y0
	VPERMQ    $0xd8, Y2, Y2
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y2, 32(DI)
	NEXT(128, 64)
	JG        loop
	DONE

// HALF gives a NaN the one fraction that this package writes; the processor would keep some of its bits.
#define HALF(at, y, nan) \
	VMOVDQU   at(SI), y             \
	VCMPPS    $3, y, y, nan         \
	VPAND     Y8, y, Y10            \
	VPOR      Y9, Y10, Y10          \
	VPBLENDVB nan, Y10, y, y        \
	VCVTPS2PH $0, y, (at/2)(DI)

// func float16OfFloat32(dst, src unsafe.Pointer, n int64) int64
TEXT ·float16OfFloat32(SB), NOSPLIT, $0-32
	ARGS
	BROADCAST(0x80000000, X8, Y8)
	BROADCAST(0x7fc00000, X9, Y9)

loop:
	AHEAD(0)
	AHEAD(64)
	HALF(0, Y0, Y4)
	HALF(32, Y1, Y5)
	HALF(64, Y2, Y6)
	HALF(96, Y3, Y7)
	NEXT(128, 64)
	JG loop
	DONE
