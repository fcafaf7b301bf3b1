//go:build !purego

#include "textflag.h"

// A pixel is 2, 3 or 4 elements next to one another. 16 bytes of each channel are made of as many registers of pixels as there are channels, and the other way
// round: each result is the union of bytes picked from each register, by the masks that shuffles of pixels.go makes. The two lanes do it for two groups.

// FIRST and MORE pick bytes of a register by the mask at offset(R8).
#define FIRST(offset, in) VPSHUFB offset(R8), in, Y4
#define MORE(offset, in) \
	VPSHUFB offset(R8), in, Y5 \
	VPOR    Y5, Y4, Y4

#define SPLITARGS \
	MOVQ dst+0(FP), DI      \
	MOVQ dstStep+8(FP), R9  \
	MOVQ src+16(FP), SI     \
	MOVQ groups+24(FP), CX  \
	MOVQ masks+32(FP), R10  \
	MOVQ outputs+40(FP), R11

// CHANNELS begins the loop over the channels of a group.
#define CHANNELS \
	MOVQ DI, BX  \
	MOVQ R10, R8 \
	MOVQ R11, DX

#define LOADPIXELS(offset, high, xmm, ymm) \
	VMOVDQU     offset(SI), xmm             \
	VINSERTI128 $1, high(SI), ymm, ymm

// AHEAD asks for a line well before its turn: the processor itself does not look beyond the end of a page.
#define AHEAD(at) PREFETCHT0 (1024+at)(SI)

#define JOINARGS \
	MOVQ dst+0(FP), DI      \
	MOVQ src+8(FP), SI      \
	MOVQ srcStep+16(FP), R9 \
	MOVQ groups+24(FP), CX  \
	MOVQ masks+32(FP), R8   \
	LEAQ (R9)(R9*2), R10

#define STOREPIXELS(offset, high) \
	VMOVDQU      X4, offset(DI)    \
	VEXTRACTI128 $1, Y4, high(DI)

// func split2(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, groups int64, masks *byte, outputs int64)
TEXT ·split2(SB), NOSPLIT, $0-48
	SPLITARGS

group:
	AHEAD(0)
	LOADPIXELS(0, 32, X0, Y0)
	LOADPIXELS(16, 48, X1, Y1)
	CHANNELS

channel:
	FIRST(0, Y0)
	MORE(32, Y1)
	VMOVDQU Y4, (BX)
	ADDQ    R9, BX
	ADDQ    $64, R8
	DECQ    DX
	JNZ     channel
	ADDQ    $64, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET

// func split3(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, groups int64, masks *byte, outputs int64)
TEXT ·split3(SB), NOSPLIT, $0-48
	SPLITARGS

group:
	AHEAD(0)
	AHEAD(64)
	LOADPIXELS(0, 48, X0, Y0)
	LOADPIXELS(16, 64, X1, Y1)
	LOADPIXELS(32, 80, X2, Y2)
	CHANNELS

channel:
	FIRST(0, Y0)
	MORE(32, Y1)
	MORE(64, Y2)
	VMOVDQU Y4, (BX)
	ADDQ    R9, BX
	ADDQ    $96, R8
	DECQ    DX
	JNZ     channel
	ADDQ    $96, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET

// func split4(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, groups int64, masks *byte, outputs int64)
TEXT ·split4(SB), NOSPLIT, $0-48
	SPLITARGS

group:
	AHEAD(0)
	AHEAD(64)
	LOADPIXELS(0, 64, X0, Y0)
	LOADPIXELS(16, 80, X1, Y1)
	LOADPIXELS(32, 96, X2, Y2)
	LOADPIXELS(48, 112, X3, Y3)
	CHANNELS

channel:
	FIRST(0, Y0)
	MORE(32, Y1)
	MORE(64, Y2)
	MORE(96, Y3)
	VMOVDQU Y4, (BX)
	ADDQ    R9, BX
	ADDQ    $128, R8
	DECQ    DX
	JNZ     channel
	ADDQ    $128, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET

// func join2(dst, src unsafe.Pointer, srcStep, groups int64, masks *byte)
TEXT ·join2(SB), NOSPLIT, $0-40
	JOINARGS

group:
	AHEAD(0)
	PREFETCHT0 1024(SI)(R9*1)
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(R9*1), Y1
	FIRST(0, Y0)
	MORE(32, Y1)
	STOREPIXELS(0, 32)
	FIRST(64, Y0)
	MORE(96, Y1)
	STOREPIXELS(16, 48)
	ADDQ    $32, SI
	ADDQ    $64, DI
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET

// func join3(dst, src unsafe.Pointer, srcStep, groups int64, masks *byte)
TEXT ·join3(SB), NOSPLIT, $0-40
	JOINARGS

group:
	AHEAD(0)
	PREFETCHT0 1024(SI)(R9*1)
	PREFETCHT0 1024(SI)(R9*2)
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(R9*1), Y1
	VMOVDQU (SI)(R9*2), Y2
	FIRST(0, Y0)
	MORE(32, Y1)
	MORE(64, Y2)
	STOREPIXELS(0, 48)
	FIRST(96, Y0)
	MORE(128, Y1)
	MORE(160, Y2)
	STOREPIXELS(16, 64)
	FIRST(192, Y0)
	MORE(224, Y1)
	MORE(256, Y2)
	STOREPIXELS(32, 80)
	ADDQ    $32, SI
	ADDQ    $96, DI
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET

// func join4(dst, src unsafe.Pointer, srcStep, groups int64, masks *byte)
TEXT ·join4(SB), NOSPLIT, $0-40
	JOINARGS

group:
	AHEAD(0)
	PREFETCHT0 1024(SI)(R9*1)
	PREFETCHT0 1024(SI)(R9*2)
	PREFETCHT0 1024(SI)(R10*1)
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(R9*1), Y1
	VMOVDQU (SI)(R9*2), Y2
	VMOVDQU (SI)(R10*1), Y3
	FIRST(0, Y0)
	MORE(32, Y1)
	MORE(64, Y2)
	MORE(96, Y3)
	STOREPIXELS(0, 64)
	FIRST(128, Y0)
	MORE(160, Y1)
	MORE(192, Y2)
	MORE(224, Y3)
	STOREPIXELS(16, 80)
	FIRST(256, Y0)
	MORE(288, Y1)
	MORE(320, Y2)
	MORE(352, Y3)
	STOREPIXELS(32, 96)
	FIRST(384, Y0)
	MORE(416, Y1)
	MORE(448, Y2)
	MORE(480, Y3)
	STOREPIXELS(48, 112)
	ADDQ    $32, SI
	ADDQ    $128, DI
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET
