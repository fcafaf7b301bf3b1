/*
 * Exchange tables for programs without Python: our static table, whose "objects" are managed tensors that this library exported, and the calls of others' tables.
 *
 * An object stands for one owner: whoever got it from managed_tensor_to_py_object_no_sync calls its deleter when done with it.
 */
#include "bridge.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(void *error_ctx, void (*set_error)(void *, const char *, const char *), const char *kind, const char *message)
{
    if (set_error)
        set_error(error_ctx, kind, message);
    return -1;
}

/* Row-major strides of shape; 0, or -1 where the extents make no tensor (negative, or bytes that overflow). */
static int compact(int32_t ndim, const int64_t *shape, int64_t item, int64_t *strides, int64_t *bytes)
{
    int64_t step = 1, total = item;
    int empty = 0;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        if (shape[i] < 0)
            return -1;
        strides[i] = step;
        if (shape[i] == 0)
            empty = 1;
        else if (__builtin_mul_overflow(step, shape[i], &step) || __builtin_mul_overflow(total, shape[i], &total))
            return -1;
    }
    *bytes = empty ? 0 : total;
    return 0;
}

static int well_formed(const DlfTensor *t) { return t->ndim >= 0 && (t->ndim == 0 || t->shape) && t->dtype.bits && t->dtype.lanes; }

static int64_t *strides_new(int32_t ndim) { return malloc(ndim ? (size_t)ndim * sizeof(int64_t) : 1); }

static int allocator(DlfTensor *prototype, DlfManagedTensorVersioned **out, void *error_ctx, void (*set_error)(void *, const char *, const char *))
{
    if (!out)
        return fail(error_ctx, set_error, "ValueError", "exchange: out, got NULL, want a place for the tensor");
    *out = NULL;
    if (!prototype || !well_formed(prototype))
        return fail(error_ctx, set_error, "ValueError", "exchange: prototype, got one without shape or dtype, want ndim >= 0, a shape and a dtype");
    if (prototype->device.type != DLF_DEVICE_CPU)
        return fail(error_ctx, set_error, "BufferError", "exchange: prototype device, got another device, want cpu: this table allocates host memory only");
    const int64_t bits = (int64_t)prototype->dtype.bits * prototype->dtype.lanes;
    if (bits % 8)
        return fail(error_ctx, set_error, "BufferError", "exchange: prototype dtype, got elements of part of a byte, want whole bytes");

    DlfTensor t = *prototype;
    t.byte_offset = 0;
    t.strides = strides_new(t.ndim);
    int64_t bytes;
    if (!t.strides)
        return fail(error_ctx, set_error, "MemoryError", "exchange: out of memory for the strides");
    int status = -1;
    if (compact(t.ndim, t.shape, bits / 8, t.strides, &bytes)) {
        fail(error_ctx, set_error, "ValueError", "exchange: prototype shape, got a negative extent or more bytes than int64 counts");
    } else {
        DlfStorage *st = dlf_storage_new((size_t)bytes, 0, &t.data);
        if (st) {
            *out = dlf_export_versioned(&t, st, 0);
            dlf_storage_unref(st);
        }
        status = *out ? 0 : fail(error_ctx, set_error, "MemoryError", "exchange: out of memory for the elements");
    }
    free(t.strides);
    return status;
}

static int from_object(void *object, DlfManagedTensorVersioned **out)
{
    if (!object || !out)
        return -1;
    const DlfManagedTensorVersioned *m = object;
    DlfStorage *st = dlf_export_storage(m);
    *out = st ? dlf_export_versioned(&m->tensor, st, m->flags) : NULL;
    return *out ? 0 : -1;
}

/* A failure frees nothing: callers in the wild then free the tensor themselves. */
static int to_object(DlfManagedTensorVersioned *m, void **out)
{
    if (!m || !out)
        return -1;
    *out = NULL;
    if (m->version.major != DLF_VERSION_MAJOR || !well_formed(&m->tensor))
        return -1;
    if (dlf_export_storage(m)) {
        *out = m;
        return 0;
    }
    DlfTensor t = m->tensor;
    int64_t bytes, *strides = NULL;
    if (t.ndim && !t.strides) {
        t.strides = strides = strides_new(t.ndim);
        if (!strides)
            return -1;
        if (compact(t.ndim, t.shape, 1, strides, &bytes)) {
            free(strides);
            return -1;
        }
    }
    DlfStorage *st = dlf_storage_wrap(DLF_END_VERSIONED, m, 0);
    if (st) {
        *out = dlf_export_versioned(&t, st, m->flags);
        if (*out)
            dlf_storage_unref(st); /* the object holds the other reference */
        else
            dlf_storage_discard(st); /* without calling the deleter: the caller still owns m */
    }
    free(strides);
    return *out ? 0 : -1;
}

static int borrow(void *object, DlfTensor *out)
{
    if (!object || !out || !dlf_export_storage(object))
        return -1;
    *out = ((const DlfManagedTensorVersioned *)object)->tensor;
    return 0;
}

static int stream(int32_t device_type, int32_t device_id, void **out)
{
    (void)device_id;
    if (!out)
        return -1;
    *out = NULL; /* host memory has no queue of work */
    return device_type == DLF_DEVICE_CPU ? 0 : -1;
}

uintptr_t dlfx_table(void)
{
    static const DlfExchangeApi table = {
        .header = {.version = {DLF_VERSION_MAJOR, DLF_VERSION_MINOR}},
        .managed_tensor_allocator = allocator,
        .managed_tensor_from_py_object_no_sync = from_object,
        .managed_tensor_to_py_object_no_sync = to_object,
        .dltensor_from_py_object_no_sync = borrow,
        .current_work_stream = stream,
    };
    return (uintptr_t)&table;
}

static const DlfExchangeApi *foreign(uintptr_t api) { return (const DlfExchangeApi *)api; }

int dlfx_table_from_object(uintptr_t api, uintptr_t object, uintptr_t *out)
{
    if (!foreign(api)->managed_tensor_from_py_object_no_sync)
        return -2;
    DlfManagedTensorVersioned *m = NULL;
    const int status = foreign(api)->managed_tensor_from_py_object_no_sync((void *)object, &m);
    *out = (uintptr_t)m;
    return status;
}

int dlfx_table_to_object(uintptr_t api, uintptr_t m, uintptr_t *out)
{
    if (!foreign(api)->managed_tensor_to_py_object_no_sync)
        return -2;
    void *object = NULL;
    const int status = foreign(api)->managed_tensor_to_py_object_no_sync((DlfManagedTensorVersioned *)m, &object);
    *out = (uintptr_t)object;
    return status;
}

int dlfx_table_borrow(uintptr_t api, uintptr_t object, DlfTensor *out)
{
    if (!foreign(api)->dltensor_from_py_object_no_sync)
        return -2;
    DlfTensor t = {0};
    const int status = foreign(api)->dltensor_from_py_object_no_sync((void *)object, &t);
    *out = t;
    return status;
}

int dlfx_table_stream(uintptr_t api, DlfDevice device, uintptr_t *out)
{
    if (!foreign(api)->current_work_stream)
        return -2;
    void *queue = NULL;
    const int status = foreign(api)->current_work_stream(device.type, device.id, &queue);
    *out = (uintptr_t)queue;
    return status;
}

static void keep_error(void *error_ctx, const char *kind, const char *message)
{
    DlfxTableError *e = error_ctx;
    if (kind)
        snprintf(e->kind, sizeof e->kind, "%s", kind);
    if (message)
        snprintf(e->message, sizeof e->message, "%s", message);
}

int dlfx_table_allocate(uintptr_t api, DlfDevice device, DlfDataType dtype, int32_t ndim, int64_t *shape, uintptr_t *out, DlfxTableError *error)
{
    if (!foreign(api)->managed_tensor_allocator)
        return -2;
    DlfTensor prototype = {.device = device, .ndim = ndim, .dtype = dtype, .shape = shape};
    DlfManagedTensorVersioned *m = NULL;
    const int status = foreign(api)->managed_tensor_allocator(&prototype, &m, error, keep_error);
    *out = (uintptr_t)m;
    return status;
}
