/* Copies of elements: a plain loop for small tensors and wherever Go cannot run, Go's kernels for the rest. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static void run(char *d, const char *s, int64_t n, int64_t dstep, int64_t sstep, size_t size)
{
    if (dstep == (int64_t)size && sstep == (int64_t)size) {
        memcpy(d, s, (size_t)n * size);
        return;
    }
#define LOOP(bytes)                                            \
    for (int64_t i = 0; i < n; i++, d += dstep, s += sstep)    \
        memcpy(d, s, bytes);                                   \
    return;
    switch (size) {
    case 1: LOOP(1)
    case 2: LOOP(2)
    case 4: LOOP(4)
    case 8: LOOP(8)
    default: LOOP(size)
    }
#undef LOOP
}

static void strided(const DlfTensor *dst, const DlfTensor *src, int axis, char *d, const char *s, size_t size)
{
    const int64_t n = dst->shape[axis], dstep = dst->strides[axis] * (int64_t)size, sstep = src->strides[axis] * (int64_t)size;
    if (axis == dst->ndim - 1) {
        run(d, s, n, dstep, sstep, size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        strided(dst, src, axis + 1, d + i * dstep, s + i * sstep, size);
}

static void plain_copy(const DlfTensor *dst, const DlfTensor *src, int64_t size, size_t bytes)
{
    if (dst->ndim == 0)
        memcpy(dst->data, src->data, bytes);
    else if (dlf_is_contiguous(dst->ndim, dst->shape, dst->strides) && dlf_is_contiguous(src->ndim, src->shape, src->strides))
        memcpy(dst->data, src->data, (size_t)size * bytes);
    else
        strided(dst, src, 0, dst->data, src->data, bytes);
}

int dlf_overlap(const DlfTensor *a, const DlfTensor *b)
{
    DlfLayout la, lb;
    DlfRefusal why;
    if (dlf_check(a, DLF_FLAG_SUBBYTE_PADDED, &la, &why) || dlf_check(b, DLF_FLAG_SUBBYTE_PADDED, &lb, &why) || !la.size || !lb.size)
        return 0;
    const char *pa = a->data, *pb = b->data;
    return pa + la.low < pb + lb.high && pb + lb.low < pa + la.high;
}

static int go_copy(const DlfTensor *dst, const DlfTensor *src, const char *function)
{
    DlfFrame frame = {.op = DLF_OP_COPY, .a = dst, .b = src};
    if (dlf_go_call(&frame))
        return -1;
    if (frame.status == DLF_KIND_OK)
        return 0;
    dlf_raise_frame(function, &frame);
    return -1;
}

int dlf_copy(const DlfTensor *dst, const DlfTensor *src, int64_t size, DlfStorage *keep, DlfStorage *keep_too, const char *function)
{
    if (size == 0)
        return 0;
    DlfElement e;
    dlf_element(dst->dtype, DLF_FLAG_SUBBYTE_PADDED, &e);
    const int unaligned = ((uintptr_t)dst->data | (uintptr_t)src->data) & (uintptr_t)(e.align - 1);
    if (dlf_same_dtype(dst->dtype, src->dtype) && (unaligned || e.kind == DLF_OPAQUE || size * e.size < DLF_SMALL_COPY || !dlf_go_usable())) {
        plain_copy(dst, src, size, (size_t)e.size);
        return 0;
    }
    DlfStorage *const held[] = {keep, keep_too};
    for (int i = 0; i < 2; i++)
        if (held[i])
            dlf_storage_ref(held[i]);
    int bad = go_copy(dst, src, function);
    if (bad && !dlf_go_usable() && dlf_same_dtype(dst->dtype, src->dtype)) {
        PyErr_Clear();
        plain_copy(dst, src, size, (size_t)e.size);
        bad = 0;
    }
    for (int i = 0; i < 2; i++)
        if (held[i])
            dlf_storage_unref(held[i]);
    return bad;
}
