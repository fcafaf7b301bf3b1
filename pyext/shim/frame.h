/*
 * The one crossing between the extension (C) and the Go library: C fills a frame, Go answers in it. Go keeps no pointer of a frame after it returned.
 */
#ifndef DLF_FRAME_H
#define DLF_FRAME_H

#include "../../exchange/block.h"
#include "../../internal/abi/kinds.h"

/* Raised whenever this file changes meaning; both sides must agree. */
#define DLF_GO_ABI 2

enum {
    DLF_OP_VALIDATE = 1, /* Validate a with flags; status and message say why it is refused */
    DLF_OP_COPY = 2,     /* write the elements of b into a: same shape, any strides; another dtype is cast. Both are valid CPU tensors */
    DLF_OP_INFO = 3,     /* message: a JSON object about the Go side */
    DLF_OP_CALL = 4,     /* call function with in, write out; docs/dev/functions.md */
    DLF_OP_START = 5,    /* the same on a goroutine, with a context: call is its number. The frame stays valid until a wait has answered other than pending */
    DLF_OP_WAIT = 6,     /* for the call, for at most a tenth of a second: pending, or as after DLF_OP_CALL */
    DLF_OP_CANCEL = 7    /* the call's context; it still has to be waited for */
};

/* A parameter or a result. What the words mean depends on its kind (DLF_PARAM_*). */
typedef struct {
    union {
        int64_t i;
        uint64_t u;
        double f;
        const void *p;
    } a;
    union {
        int64_t n;
        uint64_t u;
        double f;
    } b;
} DlfValue;

enum {
    DLF_PARAM_VIEW = 1,     /* in: p a DlfTensor with strides, n flags. out: p a DlfManagedTensorVersioned that the receiver owns, or NULL for None */
    DLF_PARAM_MUT_VIEW = 2, /* in: as VIEW */
    DLF_PARAM_ANY_VIEW = 3, /* in: as VIEW */
    DLF_PARAM_VIEWS = 4,    /* in: p an array of n values as VIEW. out, as 2: p an array of n values as out of VIEW */
    DLF_PARAM_FOREIGN = 5,  /* in: p a DlfManagedTensorVersioned that Go owns from then on */
    DLF_PARAM_BOOL = 6,     /* i 0 or 1 */
    DLF_PARAM_INT = 7,      /* i */
    DLF_PARAM_UINT = 8,     /* u */
    DLF_PARAM_FLOAT = 9,    /* f */
    DLF_PARAM_COMPLEX = 10, /* a.f real, b.f imaginary */
    DLF_PARAM_STRING = 11,  /* p the address of n bytes of UTF-8 */
    DLF_PARAM_BYTES = 12,   /* p the address of n bytes */
    DLF_PARAM_STRINGS = 13, /* p an array of n values as STRING */
    DLF_PARAM_INTS = 14,    /* p an array of n int64_t */
    DLF_PARAM_FLOATS = 15   /* p an array of n double */
};

#define DLF_MAX_PARAMS 16
#define DLF_MAX_RESULTS 8

/* The caller zeroes it: Go leaves what is out untouched where a call of a function succeeds. */
typedef struct {
    uint32_t op;
    int32_t status;      /* out: DLF_KIND_* */
    const DlfTensor *a;
    const DlfTensor *b;
    uint64_t flags;      /* DLPack flags of a */
    int32_t threads;     /* most goroutines a kernel may use; 0: as many as Go has processors */
    uint32_t function;
    int32_t n_in, n_out;
    const DlfValue *in;
    DlfValue *out;       /* zeroed by the caller, who owns what is written, also after a failure: arrays and bytes are malloc'd where they lie outside scratch */
    char *scratch;       /* memory of the caller for small results */
    uint64_t scratch_size;
    uint64_t call;       /* number of a started call */
    int32_t pending;     /* out, of DLF_OP_WAIT */
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
