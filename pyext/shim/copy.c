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

static int go_copy_once(const DlfTensor *dst, const DlfTensor *src, const char *function)
{
    DlfFrame frame = {.op = DLF_OP_COPY, .a = dst, .b = src};
    if (dlf_go_call(&frame))
        return -1;
    if (frame.status == DLF_KIND_OK)
        return 0;
    dlf_raise_frame(function, &frame);
    return -1;
}

static void narrow(DlfTensor *t, int64_t *shape, const DlfTensor *of, int axis, int64_t start, int64_t count)
{
    DlfElement e;
    dlf_element(of->dtype, DLF_FLAG_SUBBYTE_PADDED, &e);
    *t = *of;
    t->shape = shape;
    memcpy(shape, of->shape, (size_t)of->ndim * sizeof *shape);
    shape[axis] = count;
    t->data = (char *)of->data + start * of->strides[axis] * e.size;
}

/* In pieces of a tenth of a second or so, with a look for Ctrl-C in between: an interrupted copy leaves the target half written. */
static int go_copy(const DlfTensor *dst, const DlfTensor *src, int64_t bytes, const char *function)
{
    const int64_t pieces = bytes / DLF_SIGNAL_BYTES + 1;
    if (pieces == 1)
        return go_copy_once(dst, src, function);
    int axis = 0;
    for (int i = 1; i < dst->ndim; i++)
        if (dst->shape[i] > dst->shape[axis])
            axis = i;
    const int64_t extent = dst->shape[axis], step = (extent + pieces - 1) / pieces;
    for (int64_t start = 0; start < extent; start += step) {
        DlfTensor d, s;
        int64_t shape[2][DLF_MAX_NDIM];
        const int64_t count = extent - start < step ? extent - start : step;
        narrow(&d, shape[0], dst, axis, start, count);
        narrow(&s, shape[1], src, axis, start, count);
        if (go_copy_once(&d, &s, function) || PyErr_CheckSignals())
            return -1;
    }
    return 0;
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
    int bad = go_copy(dst, src, size * e.size, function);
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
