//go:build !purego

#include "textflag.h"

// MERGE interleaves the bytes of two rows, of columns 0 to 7 (PUNPCK = VPUNPCKLBW) or 8 to 15 (VPUNPCKHBW). The upper lane is of rows 16 further down.
#define MERGE(PUNPCK, r0, r8, r16, r24, out, outX) \
	VMOVDQU     r0, outX            \
	VINSERTI128 $1, r16, out, out   \
	VMOVDQU     r8, X15             \
	VINSERTI128 $1, r24, Y15, Y15   \
	PUNPCK      Y15, out, out

// MERGE4 does it for four rows from AX, BX, R12 and R13, which are 8 rows apart.
#define MERGE4(PUNPCK, a, aX, b, bX, c, cX, d, dX) \
	MERGE(PUNPCK, (AX), (BX), (R12), (R13), a, aX)                                     \
	MERGE(PUNPCK, (AX)(R9*1), (BX)(R9*1), (R12)(R9*1), (R13)(R9*1), b, bX)             \
	MERGE(PUNPCK, (AX)(R9*2), (BX)(R9*2), (R12)(R9*2), (R13)(R9*2), c, cX)             \
	MERGE(PUNPCK, (AX)(R10*1), (BX)(R10*1), (R12)(R10*1), (R13)(R10*1), d, dX)

#define POINTERS(from) \
	MOVQ from, AX         \
	LEAQ (AX)(R9*8), BX   \
	LEAQ (BX)(R9*8), R12  \
	LEAQ (R12)(R9*8), R13

// HALF writes eight rows of dst: rows r and r+8 of src are in Yr already; merge r with r+4, then with r+2, then with r+1.
#define HALF(PUNPCK) \
	POINTERS(R8)                                             \
	MERGE4(PUNPCK, Y0, X0, Y1, X1, Y2, X2, Y3, X3)           \
	LEAQ (R8)(R9*4), AX                                      \
	POINTERS(AX)                                             \
	MERGE4(PUNPCK, Y4, X4, Y5, X5, Y6, X6, Y7, X7)           \
	VPUNPCKLBW Y4, Y0, Y8                                    \
	VPUNPCKHBW Y4, Y0, Y12                                   \
	VPUNPCKLBW Y5, Y1, Y9                                    \
	VPUNPCKHBW Y5, Y1, Y13                                   \
	VPUNPCKLBW Y6, Y2, Y10                                   \
	VPUNPCKHBW Y6, Y2, Y14                                   \
	VPUNPCKLBW Y7, Y3, Y11                                   \
	VPUNPCKHBW Y7, Y3, Y15                                   \
	VPUNPCKLBW Y10, Y8, Y0                                   \
	VPUNPCKHBW Y10, Y8, Y1                                   \
	VPUNPCKLBW Y11, Y9, Y2                                   \
	VPUNPCKHBW Y11, Y9, Y3                                   \
	VPUNPCKLBW Y14, Y12, Y4                                  \
	VPUNPCKHBW Y14, Y12, Y5                                  \
	VPUNPCKLBW Y15, Y13, Y6                                  \
	VPUNPCKHBW Y15, Y13, Y7                                  \
	VPUNPCKLBW Y2, Y0, Y8                                    \
	VPUNPCKHBW Y2, Y0, Y9                                    \
	VPUNPCKLBW Y3, Y1, Y10                                   \
	VPUNPCKHBW Y3, Y1, Y11                                   \
	VPUNPCKLBW Y6, Y4, Y12                                   \
	VPUNPCKHBW Y6, Y4, Y13                                   \
	VPUNPCKLBW Y7, Y5, Y14                                   \
	VPUNPCKHBW Y7, Y5, Y15                                   \
	MOVQ       dstStep+8(FP), AX                             \
	LEAQ       (AX)(AX*2), BX                                \
	VMOVDQU    Y8, (R11)                                     \
	VMOVDQU    Y9, (R11)(AX*1)                               \
	VMOVDQU    Y10, (R11)(AX*2)                              \
	VMOVDQU    Y11, (R11)(BX*1)                              \
	LEAQ       (R11)(AX*4), R11                              \
	VMOVDQU    Y12, (R11)                                    \
	VMOVDQU    Y13, (R11)(AX*1)                              \
	VMOVDQU    Y14, (R11)(AX*2)                              \
	VMOVDQU    Y15, (R11)(BX*1)                              \
	LEAQ       (R11)(AX*4), R11

// func transpose1(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)
// na is a multiple of 32, nb of 16. See transpose_amd64.s. All registers are taken up by half a block; the other half loads its rows anew.
TEXT ·transpose1(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+16(FP), SI
	MOVQ srcStep+24(FP), R9
	MOVQ na+32(FP), CX
	LEAQ (R9)(R9*2), R10

rows:
	MOVQ SI, R8
	MOVQ DI, R11
	MOVQ nb+40(FP), DX

block:
	HALF(VPUNPCKLBW)
	HALF(VPUNPCKHBW)
	ADDQ $16, R8
	SUBQ $16, DX
	JG   block

	LEAQ (SI)(R9*8), SI
	LEAQ (SI)(R9*8), SI
	LEAQ (SI)(R9*8), SI
	LEAQ (SI)(R9*8), SI
	ADDQ $32, DI
	SUBQ $32, CX
	JG   rows
	VZEROUPPER
	RET
