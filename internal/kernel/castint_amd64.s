//go:build !purego

#include "textflag.h"
#include "cast_amd64.h"

#define DOUBLE(CONVERT, at) \
	CONVERT at(SI), Y0           \
	CONVERT (at+16)(SI), Y1      \
	VMOVDQU Y0, (2*at)(DI)       \
	VMOVDQU Y1, (2*at+32)(DI)

// func float64OfFloat32(dst, src unsafe.Pointer, n int64) int64
TEXT ·float64OfFloat32(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	AHEAD(64)
	DOUBLE(VCVTPS2PD, 0)
	DOUBLE(VCVTPS2PD, 32)
	DOUBLE(VCVTPS2PD, 64)
	DOUBLE(VCVTPS2PD, 96)
	NEXT(128, 256)
	JG loop
	DONE

// func float64OfInt32(dst, src unsafe.Pointer, n int64) int64
TEXT ·float64OfInt32(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	AHEAD(64)
	DOUBLE(VCVTDQ2PD, 0)
	DOUBLE(VCVTDQ2PD, 32)
	DOUBLE(VCVTDQ2PD, 64)
	DOUBLE(VCVTDQ2PD, 96)
	NEXT(128, 256)
	JG loop
	DONE

// func int64OfInt32(dst, src unsafe.Pointer, n int64) int64
TEXT ·int64OfInt32(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	AHEAD(64)
	DOUBLE(VPMOVSXDQ, 0)
	DOUBLE(VPMOVSXDQ, 32)
	DOUBLE(VPMOVSXDQ, 64)
	DOUBLE(VPMOVSXDQ, 96)
	NEXT(128, 256)
	JG loop
	DONE

// func int64OfUint32(dst, src unsafe.Pointer, n int64) int64
TEXT ·int64OfUint32(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	AHEAD(64)
	DOUBLE(VPMOVZXDQ, 0)
	DOUBLE(VPMOVZXDQ, 32)
	DOUBLE(VPMOVZXDQ, 64)
	DOUBLE(VPMOVZXDQ, 96)
	NEXT(128, 256)
	JG loop
	DONE

#define LOWER(at) \
	VMOVDQU (2*at)(SI), Y0                   \
	VSHUFPS $0x88, (2*at+32)(SI), Y0, Y0     \
	VPERMQ  $0xd8, Y0, Y0                    \
	VMOVDQU Y0, at(DI)

// func int32OfInt64(dst, src unsafe.Pointer, n int64) int64
TEXT ·int32OfInt64(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	AHEAD(64)
	AHEAD(128)
	AHEAD(192)
	LOWER(0)
	LOWER(32)
	LOWER(64)
	LOWER(96)
	NEXT(256, 128)
	JG loop
	DONE

// TRUNCATE makes integers of 32 floats, and leaves if one may not fit: the processor then answers what is in Y8.
#define TRUNCATE(leave) \
	VCVTTPS2DQ (SI), Y0      \
	VCVTTPS2DQ 32(SI), Y1    \
	VCVTTPS2DQ 64(SI), Y2    \
	VCVTTPS2DQ 96(SI), Y3    \
	VPCMPEQD   Y8, Y0, Y4    \
	VPCMPEQD   Y8, Y1, Y5    \
	VPCMPEQD   Y8, Y2, Y6    \
	VPCMPEQD   Y8, Y3, Y7    \
	VPOR       Y4, Y5, Y5    \
	VPOR       Y6, Y7, Y7    \
	VPOR       Y5, Y7, Y7    \
	VPTEST     Y7, Y7        \
	JNZ        leave

// func int32OfFloat32(dst, src unsafe.Pointer, n int64) int64
TEXT ·int32OfFloat32(SB), NOSPLIT, $0-32
	ARGS
	BROADCAST(0x80000000, X8, Y8)

loop:
	AHEAD(0)
	AHEAD(64)
	TRUNCATE(leave)
	STORE128
	NEXT(128, 128)
	JG loop

leave:
	DONE

// func int8OfFloat32(dst, src unsafe.Pointer, n int64) int64
TEXT ·int8OfFloat32(SB), NOSPLIT, $0-32
	ARGS
	BROADCAST(0x80000000, X8, Y8)
	BROADCAST(0xff, X9, Y9)
	MOVQ      $0x0703060205010400, AX
	VMOVQ     AX, X10
	VPMOVZXBD X10, Y10

loop:
	AHEAD(0)
	AHEAD(64)
	TRUNCATE(leave)
	VPAND     Y9, Y0, Y0
	VPAND     Y9, Y1, Y1
	VPAND     Y9, Y2, Y2
	VPAND     Y9, Y3, Y3
	VPACKUSDW Y1, Y0, Y0
	VPACKUSDW Y3, Y2, Y2
	VPACKUSWB Y2, Y0, Y0
	VPERMD    Y0, Y10, Y0
	VMOVDQU   Y0, (DI)
	NEXT(128, 32)
	JG        loop

leave:
	DONE

// The processor has no instruction for several of these. What does not fit becomes the smallest integer, as truncate has it.

// func int64OfFloat32(dst, src unsafe.Pointer, n int64) int64
TEXT ·int64OfFloat32(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	CVTTSS2SQ (SI), AX
	CVTTSS2SQ 4(SI), BX
	CVTTSS2SQ 8(SI), R8
	CVTTSS2SQ 12(SI), R9
	MOVQ      AX, (DI)
	MOVQ      BX, 8(DI)
	MOVQ      R8, 16(DI)
	MOVQ      R9, 24(DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	SUBQ      $4, CX
	JG        loop
	DONE

// func int64OfFloat64(dst, src unsafe.Pointer, n int64) int64
TEXT ·int64OfFloat64(SB), NOSPLIT, $0-32
	ARGS

loop:
	AHEAD(0)
	CVTTSD2SQ (SI), AX
	CVTTSD2SQ 8(SI), BX
	CVTTSD2SQ 16(SI), R8
	CVTTSD2SQ 24(SI), R9
	MOVQ      AX, (DI)
	MOVQ      BX, 8(DI)
	MOVQ      R8, 16(DI)
	MOVQ      R9, 24(DI)
	ADDQ      $32, SI
	ADDQ      $32, DI
	SUBQ      $4, CX
	JG        loop
	DONE

// FROM64 is given a register of zeros, so that a conversion does not wait for the one before.
#define FROM64(CONVERT) \
	CONVERT (SI), X4, X0    \
	CONVERT 8(SI), X4, X1   \
	CONVERT 16(SI), X4, X2  \
	CONVERT 24(SI), X4, X3

// func float32OfInt64(dst, src unsafe.Pointer, n int64) int64
TEXT ·float32OfInt64(SB), NOSPLIT, $0-32
	ARGS
	VPXOR X4, X4, X4

loop:
	AHEAD(0)
	FROM64(VCVTSI2SSQ)
	VMOVSS X0, (DI)
	VMOVSS X1, 4(DI)
	VMOVSS X2, 8(DI)
	VMOVSS X3, 12(DI)
	ADDQ   $32, SI
	ADDQ   $16, DI
	SUBQ   $4, CX
	JG     loop
	DONE

// func float64OfInt64(dst, src unsafe.Pointer, n int64) int64
TEXT ·float64OfInt64(SB), NOSPLIT, $0-32
	ARGS
	VPXOR X4, X4, X4

loop:
	AHEAD(0)
	FROM64(VCVTSI2SDQ)
	VMOVSD X0, (DI)
	VMOVSD X1, 8(DI)
	VMOVSD X2, 16(DI)
	VMOVSD X3, 24(DI)
	ADDQ   $32, SI
	ADDQ   $32, DI
	SUBQ   $4, CX
	JG     loop
	DONE
