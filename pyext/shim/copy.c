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

/* A step of an axis of extent 1 is never taken, and may be any number. */
static int64_t step_of(const DlfTensor *t, int axis, size_t size) { return t->shape[axis] > 1 ? t->strides[axis] * (int64_t)size : 0; }

static void strided(const DlfTensor *dst, const DlfTensor *src, int axis, char *d, const char *s, size_t size)
{
    const int64_t n = dst->shape[axis], dstep = step_of(dst, axis, size), sstep = step_of(src, axis, size);
    if (axis == dst->ndim - 1) {
        run(d, s, n, dstep, sstep, size);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        strided(dst, src, axis + 1, d + i * dstep, s + i * sstep, size);
}

static int both_contiguous(const DlfTensor *dst, const DlfTensor *src)
{
    return dlf_is_contiguous(dst->ndim, dst->shape, dst->strides) && dlf_is_contiguous(src->ndim, src->shape, src->strides);
}

static void plain_copy(const DlfTensor *dst, const DlfTensor *src, int64_t size, size_t bytes)
{
    if (dst->ndim == 0)
        memcpy(dst->data, src->data, bytes);
    else if (both_contiguous(dst, src))
        memcpy(dst->data, src->data, (size_t)size * bytes);
    else
        strided(dst, src, 0, dst->data, src->data, bytes);
}

int dlf_overlap(const DlfTensorObject *a, const DlfTensorObject *b)
{
    DlfLayout la, lb;
    DlfRefusal why;
    if (dlf_check(&a->t, a->flags, &la, &why) || dlf_check(&b->t, b->flags, &lb, &why) || !la.size || !lb.size)
        return 0;
    const char *pa = a->t.data, *pb = b->t.data;
    return pa + la.low < pb + lb.high && pb + lb.low < pa + la.high;
}

typedef struct {
    DlfElement to, from;
    int by_go;
    int64_t limit; /* bytes of one piece */
    const char *function;
} Job;

/* One piece: 0, -1 with an error, or 1 when Go cannot run here. */
static int copy_once(const Job *job, const DlfTensor *dst, const DlfTensor *src, int64_t size)
{
    if (!job->by_go) {
        PyThreadState *ts = size * job->to.size > DLF_NOGIL_BYTES ? PyEval_SaveThread() : NULL;
        plain_copy(dst, src, size, (size_t)job->to.size);
        if (ts)
            PyEval_RestoreThread(ts);
        return 0;
    }
    DlfFrame frame = {.op = DLF_OP_COPY, .a = dst, .b = src};
    if (dlf_go_call(&frame))
        return dlf_go_usable() ? -1 : 1;
    if (frame.status == DLF_KIND_OK)
        return 0;
    dlf_raise_frame(job->function, &frame);
    return -1;
}

static void narrow(DlfTensor *t, int64_t *shape, const DlfTensor *of, int axis, int64_t start, int64_t count, int64_t size)
{
    *t = *of;
    t->shape = shape;
    memcpy(shape, of->shape, (size_t)of->ndim * sizeof *shape);
    shape[axis] = count;
    t->data = (char *)of->data + start * step_of(of, axis, (size_t)size);
}

/* An outer axis if it is long enough for even pieces: the pieces then have the form of the whole, and rows as long. The longest one if not. */
static int axis_to_cut(const DlfTensor *dst, int64_t pieces)
{
    int longest = 0;
    for (int i = 0; i < dst->ndim; i++) {
        if (dst->shape[i] >= 8 * pieces)
            return i;
        if (dst->shape[i] > dst->shape[longest])
            longest = i;
    }
    return longest;
}

/* In pieces of less than a tenth of a second, with a look for Ctrl-C after each: an interrupted copy leaves the target half written. */
static int copy_pieces(const Job *job, const DlfTensor *dst, const DlfTensor *src, int64_t size)
{
    const int64_t pieces = size * job->to.size / job->limit + 1;
    if (pieces == 1) {
        const int r = copy_once(job, dst, src, size);
        return r || size * job->to.size < job->limit / 2 ? r : PyErr_CheckSignals();
    }
    const int axis = axis_to_cut(dst, pieces);
    const int64_t extent = dst->shape[axis];
    int64_t step = extent > pieces ? (extent + pieces - 1) / pieces : 1;
    if (step > 256)
        step &= ~(int64_t)63; /* whole lines of memory, where the tensor has such */
    for (int64_t start = 0; start < extent; start += step) {
        DlfTensor d, s;
        int64_t shape[2][DLF_MAX_NDIM];
        const int64_t count = extent - start < step ? extent - start : step;
        narrow(&d, shape[0], dst, axis, start, count, job->to.size);
        narrow(&s, shape[1], src, axis, start, count, job->from.size);
        const int r = copy_pieces(job, &d, &s, size / extent * count);
        if (r)
            return r;
    }
    return 0;
}

static int is_unaligned(const DlfTensor *t, const DlfElement *e) { return ((uintptr_t)t->data & (uintptr_t)(e->align - 1)) != 0; }

int dlf_copy(const DlfTensor *dst, uint64_t dst_flags, const DlfTensor *src, uint64_t src_flags, int64_t size, DlfStorage *keep, DlfStorage *keep_too, const char *function)
{
    if (size == 0)
        return 0;
    Job job = {.function = function, .limit = DLF_SIGNAL_BYTES};
    dlf_element(dst->dtype, dst_flags, &job.to);
    dlf_element(src->dtype, src_flags, &job.from);
    const int same = dlf_same_dtype(dst->dtype, src->dtype);
    if (same && job.to.size != job.from.size) {
        dlf_raise(DLF_KIND_DTYPE, "%s: dtype, got one that is padded to a byte a value and one that is not, want both alike", function);
        return -1;
    }
    if (!same && (job.to.kind == DLF_OPAQUE || job.from.kind == DLF_OPAQUE)) {
        char a[48], b[48];
        dlf_raise(DLF_KIND_DTYPE, "%s: dtype, got %s for %s, want two with values", function, dlf_dtype_name(src->dtype, a), dlf_dtype_name(dst->dtype, b));
        return -1;
    }
    const int64_t bytes = size * job.to.size;
    const int plain = same && (bytes < DLF_SMALL_COPY || job.to.kind == DLF_OPAQUE || is_unaligned(dst, &job.to) || is_unaligned(src, &job.from) || !dlf_go_usable());
    if (plain && bytes < DLF_SMALL_COPY) {
        plain_copy(dst, src, size, (size_t)job.to.size);
        return 0;
    }
    job.by_go = !plain;
    if (!both_contiguous(dst, src))
        job.limit /= same && job.by_go ? 4 : 16;
    DlfStorage *const held[] = {keep, keep_too};
    for (int i = 0; i < 2; i++)
        if (held[i])
            dlf_storage_ref(held[i]);
    int r = copy_pieces(&job, dst, src, size);
    if (r == 1 && same) {
        PyErr_Clear();
        job.by_go = 0;
        r = copy_pieces(&job, dst, src, size);
    }
    for (int i = 0; i < 2; i++)
        if (held[i])
            dlf_storage_unref(held[i]);
    return r ? -1 : 0;
}
