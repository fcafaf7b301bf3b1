//go:build !purego

#include "textflag.h"

// Each function below writes the transpose of a block: na rows of src, srcStep bytes apart, of nb elements that lie next to one another, become nb rows of
// dst, dstStep bytes apart. It goes through a few rows of src from left to right, so that each line of src is read once while it is in the nearest cache.
//
// Both lanes of a register hold the same columns, the upper one of rows further down: the transposes within the lanes then give whole rows of dst. Loading
// the halves apart costs no shuffle.

#define PAIR(lo, hi, xmm, ymm) \
	VMOVDQU     lo, xmm          \
	VINSERTI128 $1, hi, ymm, ymm

// ARGS: DI dst, R8 its step, R11 three of them; SI src, R9 its step, R10 three of them; CX rows of src, DX columns.
#define ARGS \
	MOVQ dst+0(FP), DI      \
	MOVQ dstStep+8(FP), R8  \
	MOVQ src+16(FP), SI     \
	MOVQ srcStep+24(FP), R9 \
	MOVQ na+32(FP), CX      \
	MOVQ nb+40(FP), DX      \
	LEAQ (R9)(R9*2), R10    \
	LEAQ (R8)(R8*2), R11

// STORE4 writes four rows of dst and steps R12 past them.
#define STORE4(a, b, c, d) \
	VMOVDQU a, (R12)         \
	VMOVDQU b, (R12)(R8*1)   \
	VMOVDQU c, (R12)(R8*2)   \
	VMOVDQU d, (R12)(R11*1)  \
	LEAQ    (R12)(R8*4), R12

// func transpose2(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)
// na is a multiple of 16, nb of 8.
TEXT ·transpose2(SB), NOSPLIT, $0-48
	ARGS

rows:
	MOVQ SI, AX
	MOVQ DI, R12
	MOVQ DX, R13

block:
	LEAQ (AX)(R9*8), BX
	PAIR((AX), (BX), X0, Y0)
	PAIR((AX)(R9*1), (BX)(R9*1), X1, Y1)
	PAIR((AX)(R9*2), (BX)(R9*2), X2, Y2)
	PAIR((AX)(R10*1), (BX)(R10*1), X3, Y3)
	LEAQ (AX)(R9*4), AX
	LEAQ (BX)(R9*4), BX
	PAIR((AX), (BX), X4, Y4)
	PAIR((AX)(R9*1), (BX)(R9*1), X5, Y5)
	PAIR((AX)(R9*2), (BX)(R9*2), X6, Y6)
	PAIR((AX)(R10*1), (BX)(R10*1), X7, Y7)

	// Rows 0 and 4, 1 and 5, 2 and 6, 3 and 7: columns 0 to 3 in Y8 to Y11, 4 to 7 in Y12 to Y15.
	VPUNPCKLWD Y4, Y0, Y8
	VPUNPCKHWD Y4, Y0, Y12
	VPUNPCKLWD Y5, Y1, Y9
	VPUNPCKHWD Y5, Y1, Y13
	VPUNPCKLWD Y6, Y2, Y10
	VPUNPCKHWD Y6, Y2, Y14
	VPUNPCKLWD Y7, Y3, Y11
	VPUNPCKHWD Y7, Y3, Y15

	// The even rows, then the odd ones, of two columns each.
	VPUNPCKLWD Y10, Y8, Y0
	VPUNPCKHWD Y10, Y8, Y1
	VPUNPCKLWD Y11, Y9, Y2
	VPUNPCKHWD Y11, Y9, Y3
	VPUNPCKLWD Y14, Y12, Y4
	VPUNPCKHWD Y14, Y12, Y5
	VPUNPCKLWD Y15, Y13, Y6
	VPUNPCKHWD Y15, Y13, Y7

	VPUNPCKLWD Y2, Y0, Y8
	VPUNPCKHWD Y2, Y0, Y9
	VPUNPCKLWD Y3, Y1, Y10
	VPUNPCKHWD Y3, Y1, Y11
	VPUNPCKLWD Y6, Y4, Y12
	VPUNPCKHWD Y6, Y4, Y13
	VPUNPCKLWD Y7, Y5, Y14
	VPUNPCKHWD Y7, Y5, Y15
	STORE4(Y8, Y9, Y10, Y11)
	STORE4(Y12, Y13, Y14, Y15)

	LEAQ (R9*4), BX
	SUBQ BX, AX
	ADDQ $16, AX
	SUBQ $8, R13
	JG   block

	LEAQ (SI)(R9*8), SI
	LEAQ (SI)(R9*8), SI
	ADDQ $32, DI
	SUBQ $16, CX
	JG   rows
	VZEROUPPER
	RET

// func transpose4(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)
// na and nb are multiples of 8.
TEXT ·transpose4(SB), NOSPLIT, $0-48
	ARGS

rows:
	MOVQ SI, AX
	LEAQ (SI)(R9*4), BX
	MOVQ DI, R12
	MOVQ DX, R13

block:
	PAIR((AX), (BX), X0, Y0)
	PAIR((AX)(R9*1), (BX)(R9*1), X1, Y1)
	PAIR((AX)(R9*2), (BX)(R9*2), X2, Y2)
	PAIR((AX)(R10*1), (BX)(R10*1), X3, Y3)
	PAIR(16(AX), 16(BX), X4, Y4)
	PAIR(16(AX)(R9*1), 16(BX)(R9*1), X5, Y5)
	PAIR(16(AX)(R9*2), 16(BX)(R9*2), X6, Y6)
	PAIR(16(AX)(R10*1), 16(BX)(R10*1), X7, Y7)

	VPUNPCKLDQ  Y1, Y0, Y8
	VPUNPCKHDQ  Y1, Y0, Y9
	VPUNPCKLDQ  Y3, Y2, Y10
	VPUNPCKHDQ  Y3, Y2, Y11
	VPUNPCKLDQ  Y5, Y4, Y12
	VPUNPCKHDQ  Y5, Y4, Y13
	VPUNPCKLDQ  Y7, Y6, Y14
	VPUNPCKHDQ  Y7, Y6, Y15
	VPUNPCKLQDQ Y10, Y8, Y0
	VPUNPCKHQDQ Y10, Y8, Y1
	VPUNPCKLQDQ Y11, Y9, Y2
	VPUNPCKHQDQ Y11, Y9, Y3
	VPUNPCKLQDQ Y14, Y12, Y4
	VPUNPCKHQDQ Y14, Y12, Y5
	VPUNPCKLQDQ Y15, Y13, Y6
	VPUNPCKHQDQ Y15, Y13, Y7
	STORE4(Y0, Y1, Y2, Y3)
	STORE4(Y4, Y5, Y6, Y7)

	ADDQ $32, AX
	ADDQ $32, BX
	SUBQ $8, R13
	JG   block

	LEAQ (SI)(R9*8), SI
	ADDQ $32, DI
	SUBQ $8, CX
	JG   rows
	VZEROUPPER
	RET

// func transpose8(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)
// na and nb are multiples of 4.
TEXT ·transpose8(SB), NOSPLIT, $0-48
	ARGS

rows:
	MOVQ SI, AX
	MOVQ DI, R12
	MOVQ DX, R13

block:
	PAIR((AX), (AX)(R9*2), X0, Y0)
	PAIR((AX)(R9*1), (AX)(R10*1), X1, Y1)
	PAIR(16(AX), 16(AX)(R9*2), X2, Y2)
	PAIR(16(AX)(R9*1), 16(AX)(R10*1), X3, Y3)
	VPUNPCKLQDQ Y1, Y0, Y4
	VPUNPCKHQDQ Y1, Y0, Y5
	VPUNPCKLQDQ Y3, Y2, Y6
	VPUNPCKHQDQ Y3, Y2, Y7
	STORE4(Y4, Y5, Y6, Y7)
	ADDQ $32, AX
	SUBQ $4, R13
	JG   block

	LEAQ (SI)(R9*4), SI
	ADDQ $32, DI
	SUBQ $4, CX
	JG   rows
	VZEROUPPER
	RET

// func transpose16(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, na, nb int64)
// na is a multiple of 2, nb of 4.
TEXT ·transpose16(SB), NOSPLIT, $0-48
	ARGS

rows:
	MOVQ SI, AX
	MOVQ DI, R12
	MOVQ DX, R13

block:
	PAIR((AX), (AX)(R9*1), X0, Y0)
	PAIR(16(AX), 16(AX)(R9*1), X1, Y1)
	PAIR(32(AX), 32(AX)(R9*1), X2, Y2)
	PAIR(48(AX), 48(AX)(R9*1), X3, Y3)
	STORE4(Y0, Y1, Y2, Y3)
	ADDQ $64, AX
	SUBQ $4, R13
	JG   block

	LEAQ (SI)(R9*2), SI
	ADDQ $32, DI
	SUBQ $2, CX
	JG   rows
	VZEROUPPER
	RET
