// Casts of adjacent elements, 32 at a time: n is a multiple of that. They answer how many they have done: those from floats to integers stop before 32 elements
// of which one does not fit, which the caller then does one by one.

#define ARGS \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ n+16(FP), CX

#define NEXT(srcBytes, dstBytes) \
	ADDQ $srcBytes, SI \
	ADDQ $dstBytes, DI \
	SUBQ $32, CX

// AHEAD asks for a line of src well before its turn: the processor itself does not look beyond the end of a page.
#define AHEAD(at) PREFETCHT0 (1024+at)(SI)

#define DONE \
	MOVQ n+16(FP), AX  \
	SUBQ CX, AX        \
	MOVQ AX, ret+24(FP) \
	VZEROUPPER         \
	RET

#define BROADCAST(value, xmm, ymm) \
	MOVL         $value, AX \
	VMOVD        AX, xmm    \
	VPBROADCASTD xmm, ymm

#define STORE128 \
	VMOVDQU Y0, (DI)   \
	VMOVDQU Y1, 32(DI) \
	VMOVDQU Y2, 64(DI) \
	VMOVDQU Y3, 96(DI)
