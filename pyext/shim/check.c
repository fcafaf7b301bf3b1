/* What a tensor must fulfil before anything trusts it: the arithmetic of dlpack.Validate, in C because it runs at every import. */
#include "core.h"

static int refuse(DlfRefusal *why, int kind, int axis, int64_t got, const char *text)
{
    *why = (DlfRefusal){kind, axis, got, text};
    return kind;
}

void dlf_compact_strides(int ndim, const int64_t *shape, int64_t *out)
{
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        out[i] = step;
        step *= shape[i] > 1 ? shape[i] : 1;
    }
}

int dlf_is_contiguous(int ndim, const int64_t *shape, const int64_t *strides)
{
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            return 1;
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 1)
            continue;
        if (strides[i] != step)
            return 0;
        step *= shape[i];
    }
    return 1;
}

/* Devices whose data names a buffer object, so that nothing can lie before its start. */
static int has_handles(int32_t type)
{
    return type == DLF_DEVICE_OPENCL || type == DLF_DEVICE_VULKAN || type == DLF_DEVICE_METAL || type == DLF_DEVICE_WEBGPU;
}

/* Most tensors: host memory, few axes, strides given, elements there. 1 if all rules hold, 0 if the long way has to look. */
static inline int is_usual(const DlfTensor *t, uint64_t flags, DlfLayout *out)
{
    const int n = t->ndim;
    if (t->device.type != DLF_DEVICE_CPU || n < 0 || n > DLF_FIXED_NDIM || !t->data || (n && (!t->shape || !t->strides)) || (((uintptr_t)t->shape | (uintptr_t)t->strides) & 7) ||
        dlf_element(t->dtype, flags, &out->element) || t->byte_offset)
        return 0;
    int64_t elements = 1, low = 0, high = 1, bytes, reach;
    int bad = 0;
    for (int i = 0; i < n; i++) {
        const int64_t extent = t->shape[i], stride = t->strides[i];
        out->strides[i] = stride;
        bad |= __builtin_mul_overflow(elements, extent, &elements);
        if (extent <= 1) { /* INT64_MIN - 1 is no number */
            bad |= extent < 1;
            continue;
        }
        bad |= __builtin_mul_overflow(extent - 1, stride, &reach);
        bad |= reach < 0 ? __builtin_add_overflow(low, reach, &low) : __builtin_add_overflow(high, reach, &high);
    }
    bad |= __builtin_mul_overflow(elements, out->element.size, &bytes);
    bad |= __builtin_mul_overflow(low, out->element.size, &low);
    bad |= __builtin_mul_overflow(high, out->element.size, &high);
    uintptr_t last;
    if (bad || low == INT64_MIN || __builtin_add_overflow((uintptr_t)t->data, (uintptr_t)high, &last) || (uintptr_t)t->data < (uintptr_t)-low)
        return 0;
    out->size = elements;
    out->nbytes = bytes;
    out->low = low;
    out->high = high;
    return 1;
}

int dlf_check(const DlfTensor *t, uint64_t flags, DlfLayout *out, DlfRefusal *why)
{
    if (is_usual(t, flags, out))
        return 0;
    if (t->ndim < 0 || t->ndim > DLF_MAX_NDIM)
        return refuse(why, DLF_KIND_SHAPE, -1, t->ndim, "want 0 to 64 axes");
    if (t->ndim > 0 && !t->shape)
        return refuse(why, DLF_KIND_NULL, -1, 0, "shape is NULL");
    if (t->ndim > 0 && (((uintptr_t)t->shape | (uintptr_t)t->strides) & 7))
        return refuse(why, DLF_KIND_ALIGNMENT, -1, 0, "want shape and strides at multiples of 8");
    if (dlf_element(t->dtype, flags, &out->element))
        return refuse(why, DLF_KIND_DTYPE, -1, t->dtype.code, "want a dtype whose elements are whole bytes");
    if (t->device.type < 1)
        return refuse(why, DLF_KIND_DEVICE, -1, t->device.type, "want a device type of 1 or more");
    if (!dlf_is_host(t->device.type) && t->device.id < 0)
        return refuse(why, DLF_KIND_DEVICE, -1, t->device.id, "want a device id of 0 or more");

    /* The product leaves out empty axes, so that the strides of an empty tensor can be computed too. */
    int64_t elements = 1, bytes;
    int empty = 0;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] < 0)
            return refuse(why, DLF_KIND_SHAPE, i, t->shape[i], "want an extent of 0 or more");
        if (t->shape[i] == 0)
            empty = 1;
        else if (__builtin_mul_overflow(elements, t->shape[i], &elements))
            return refuse(why, DLF_KIND_OVERFLOW, i, t->shape[i], "the number of elements does not fit 64 bits");
    }
    if (__builtin_mul_overflow(elements, out->element.size, &bytes))
        return refuse(why, DLF_KIND_OVERFLOW, -1, elements, "the number of bytes does not fit 64 bits");
    out->size = empty ? 0 : elements;
    out->nbytes = empty ? 0 : bytes;

    if (t->strides) {
        for (int i = 0; i < t->ndim; i++)
            out->strides[i] = t->strides[i];
    } else {
        dlf_compact_strides(t->ndim, t->shape, out->strides);
    }
    out->low = 0;
    out->high = out->element.size;
    for (int i = 0; i < t->ndim && !empty; i++) {
        int64_t reach;
        if (t->shape[i] == 1)
            continue;
        if (__builtin_mul_overflow(t->shape[i] - 1, out->strides[i], &reach) || __builtin_mul_overflow(reach, out->element.size, &reach) ||
            __builtin_add_overflow(reach < 0 ? out->low : out->high, reach, reach < 0 ? &out->low : &out->high) || out->low == INT64_MIN)
            return refuse(why, DLF_KIND_OVERFLOW, i, out->strides[i], "the memory that the strides reach does not fit 64 bits");
    }

    if (empty)
        out->low = out->high = 0;
    else if (!t->data)
        return refuse(why, DLF_KIND_NULL, -1, 0, "data is NULL although the tensor has elements");
    if (t->byte_offset > INT64_MAX)
        return refuse(why, DLF_KIND_OFFSET, -1, (int64_t)t->byte_offset, "want a byte offset below 2**63");
    if (dlf_device_has_pointers(t->device.type)) {
        uintptr_t base = (uintptr_t)t->data, first, last;
        if (__builtin_add_overflow(base, (uintptr_t)t->byte_offset, &base))
            return refuse(why, DLF_KIND_OFFSET, -1, (int64_t)t->byte_offset, "data + byte offset leaves the address space");
        if (__builtin_add_overflow(base, (uintptr_t)out->high, &last) || __builtin_sub_overflow(base, (uintptr_t)-out->low, &first))
            return refuse(why, DLF_KIND_OVERFLOW, -1, (int64_t)t->byte_offset, "the memory that the strides reach leaves the address space");
    } else if (has_handles(t->device.type) && (int64_t)t->byte_offset + out->low < 0) {
        return refuse(why, DLF_KIND_OFFSET, -1, (int64_t)t->byte_offset, "elements lie before the start of the buffer");
    } else if (out->high > INT64_MAX - (int64_t)t->byte_offset) {
        return refuse(why, DLF_KIND_OVERFLOW, -1, (int64_t)t->byte_offset, "the memory that the strides reach does not fit 64 bits");
    }
    return 0;
}

void dlf_raise_refusal(const char *function, const DlfTensor *t, uint64_t flags, const DlfRefusal *why)
{
    if (dlf_go_usable()) {
        DlfFrame frame = {.op = DLF_OP_VALIDATE, .a = t, .flags = flags};
        if (dlf_go_call(&frame)) {
            PyErr_Clear();
        } else if (frame.status != DLF_KIND_OK) {
            dlf_raise_frame(function, &frame);
            return;
        }
    }
    if (why->kind == DLF_KIND_DTYPE) {
        char name[48];
        dlf_raise(why->kind, "%s: dtype, got %s, %s", function, dlf_dtype_name(t->dtype, name), why->text);
    } else if (why->axis >= 0) {
        dlf_raise(why->kind, "%s: axis %d, got %lld, %s", function, why->axis, (long long)why->got, why->text);
    } else {
        dlf_raise(why->kind, "%s: got %lld, %s", function, (long long)why->got, why->text);
    }
}
