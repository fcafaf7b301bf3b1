/*
 * The one crossing between the extension (C) and the Go library: C fills a frame, Go answers in it. Go keeps no pointer of a frame after it returned.
 */
#ifndef DLF_FRAME_H
#define DLF_FRAME_H

#include "../../exchange/block.h"
#include "../../internal/abi/kinds.h"

/* Raised whenever this file changes meaning; both sides must agree. */
#define DLF_GO_ABI 1

enum {
    DLF_OP_VALIDATE = 1, /* Validate a with flags; status and message say why it is refused */
    DLF_OP_COPY = 2,     /* write the elements of b into a: same shape, any strides; another dtype is cast. Both are valid CPU tensors */
    DLF_OP_INFO = 3      /* message: a JSON object about the Go side */
};

typedef struct {
    uint32_t op;
    int32_t status;      /* out: DLF_KIND_* */
    const DlfTensor *a;
    const DlfTensor *b;
    uint64_t flags;      /* DLPack flags of a */
    int32_t threads;     /* most goroutines a kernel may use; 0: as many as Go has processors */
    uint32_t reserved;
    char *message;       /* out: malloc'd, freed by the caller, or NULL */
    char *stack;         /* out: malloc'd Go stack of a panic, freed by the caller, or NULL */
} DlfFrame;

/* What the Go library needs from the process that opened it. */
typedef struct {
    uint32_t abi; /* DLF_GO_ABI of the caller */
    void (*python_end)(DlfStorage *st);
} DlfGoHost;

/* The library's two exports. init answers DLF_GO_ABI and may be called once. */
typedef uint32_t DlfGoInit(const DlfGoHost *host);
typedef void DlfGoCall(DlfFrame *frame);
#define DLF_GO_INIT "dlf_go_init"
#define DLF_GO_CALL "dlf_go_call"

#endif
