//go:build !purego

#include "textflag.h"

// SMALL moves size bytes if that bit of the count is set.
#define SMALL(count, size, skip, LOAD, STORE, reg) \
	TESTQ $size, count \
	JZ    skip         \
	LOAD  (AX), reg    \
	STORE reg, (BX)    \
	ADDQ  $size, AX    \
	ADDQ  $size, BX

// func streamRows(dst unsafe.Pointer, dstStep int64, src unsafe.Pointer, srcStep int64, rows, bytes int64)
//
// It copies rows past the caches: whole lines of dst with non-temporal stores, what is before and behind them, if not aligned to lines, with ordinary ones.
// fence makes the stores visible to other processors.
TEXT ·streamRows(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ dstStep+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcStep+24(FP), R9
	MOVQ rows+32(FP), CX

row:
	MOVQ  DI, BX
	MOVQ  SI, AX
	MOVQ  bytes+40(FP), DX
	MOVQ  DI, R10
	NEGQ  R10
	ANDQ  $63, R10
	JZ    aligned
	CMPQ  DX, R10
	CMOVQLT DX, R10
	SUBQ  R10, DX
	SMALL(R10, 1, head2, MOVB, MOVB, R11)

head2:
	SMALL(R10, 2, head4, MOVW, MOVW, R11)

head4:
	SMALL(R10, 4, head8, MOVL, MOVL, R11)

head8:
	SMALL(R10, 8, head16, MOVQ, MOVQ, R11)

head16:
	SMALL(R10, 16, head32, VMOVDQU, VMOVDQU, X0)

head32:
	SMALL(R10, 32, aligned, VMOVDQU, VMOVDQU, Y0)

aligned:
	SUBQ $256, DX
	JL   few

many:
	VMOVDQU  (AX), Y0
	VMOVDQU  32(AX), Y1
	VMOVDQU  64(AX), Y2
	VMOVDQU  96(AX), Y3
	VMOVDQU  128(AX), Y4
	VMOVDQU  160(AX), Y5
	VMOVDQU  192(AX), Y6
	VMOVDQU  224(AX), Y7
	VMOVNTDQ Y0, (BX)
	VMOVNTDQ Y1, 32(BX)
	VMOVNTDQ Y2, 64(BX)
	VMOVNTDQ Y3, 96(BX)
	VMOVNTDQ Y4, 128(BX)
	VMOVNTDQ Y5, 160(BX)
	VMOVNTDQ Y6, 192(BX)
	VMOVNTDQ Y7, 224(BX)
	ADDQ     $256, AX
	ADDQ     $256, BX
	SUBQ     $256, DX
	JGE      many

few:
	ADDQ $192, DX
	JL   tail

line:
	VMOVDQU  (AX), Y0
	VMOVDQU  32(AX), Y1
	VMOVNTDQ Y0, (BX)
	VMOVNTDQ Y1, 32(BX)
	ADDQ     $64, AX
	ADDQ     $64, BX
	SUBQ     $64, DX
	JGE      line

tail:
	ADDQ $64, DX
	JZ   next
	SMALL(DX, 32, tail16, VMOVDQU, VMOVDQU, Y0)

tail16:
	SMALL(DX, 16, tail8, VMOVDQU, VMOVDQU, X0)

tail8:
	SMALL(DX, 8, tail4, MOVQ, MOVQ, R11)

tail4:
	SMALL(DX, 4, tail2, MOVL, MOVL, R11)

tail2:
	SMALL(DX, 2, tail1, MOVW, MOVW, R11)

tail1:
	SMALL(DX, 1, next, MOVB, MOVB, R11)

next:
	ADDQ R8, DI
	ADDQ R9, SI
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

// func fence()
TEXT ·fence(SB), NOSPLIT, $0-0
	SFENCE
	RET

// LINE copies a line of each of four pages.
#define LINE \
	PREFETCHT0 256(AX)           \
	PREFETCHT0 4352(AX)          \
	PREFETCHT0 8448(AX)          \
	PREFETCHT0 12544(AX)         \
	VMOVDQU    (AX), Y0          \
	VMOVDQU    32(AX), Y1        \
	VMOVDQU    4096(AX), Y2      \
	VMOVDQU    4128(AX), Y3      \
	VMOVDQU    8192(AX), Y4      \
	VMOVDQU    8224(AX), Y5      \
	VMOVDQU    12288(AX), Y6     \
	VMOVDQU    12320(AX), Y7     \
	VMOVNTDQ   Y0, (BX)          \
	VMOVNTDQ   Y1, 32(BX)        \
	VMOVNTDQ   Y2, 4096(BX)      \
	VMOVNTDQ   Y3, 4128(BX)      \
	VMOVNTDQ   Y4, 8192(BX)      \
	VMOVNTDQ   Y5, 8224(BX)      \
	VMOVNTDQ   Y6, 12288(BX)     \
	VMOVNTDQ   Y7, 12320(BX)     \
	ADDQ       $64, AX           \
	ADDQ       $64, BX

// func streamPages(dst, src unsafe.Pointer, quads int64)
//
// It copies quads of four pages of 4096 bytes, past the caches, side by side: processors fetch ahead within a page, so that four of them keep more of memory
// busy than one. dst is aligned to 64 bytes.
TEXT ·streamPages(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), BX
	MOVQ src+8(FP), AX
	MOVQ quads+16(FP), DX

quad:
	MOVQ $64, CX

line:
	LINE
	DECQ CX
	JNZ  line
	ADDQ $12288, AX
	ADDQ $12288, BX
	DECQ DX
	JNZ  quad
	VZEROUPPER
	RET
