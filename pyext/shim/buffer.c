/* The buffer protocol, both ways. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

PyObject *dlf_import_buffer(PyObject *obj, int may_copy, const char *function)
{
    Py_buffer *view = calloc(1, sizeof *view);
    if (!view)
        return PyErr_NoMemory();
    if (PyObject_GetBuffer(obj, view, PyBUF_FULL_RO)) {
        free(view);
        if (PyErr_ExceptionMatches(PyExc_TypeError) && !PyObject_CheckBuffer(obj)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: obj, got %R, want an object with the buffer protocol (bytes, array, mmap, memoryview, ndarray)", function, Py_TYPE(obj));
        }
        return NULL;
    }
    DlfTensor t = {.data = view->buf, .device = {DLF_DEVICE_CPU, 0}, .ndim = view->ndim};
    int64_t strides[DLF_MAX_NDIM];
    int bad = dlf_from_buffer_format(view->format, view->itemsize, &t.dtype);
    if (!bad && (view->ndim > DLF_MAX_NDIM || view->suboffsets || (view->ndim > 1 && !view->shape))) {
        dlf_raise(DLF_KIND_LAYOUT, "%s: buffer, got one with indirect axes or more than %d of them, want plain strides", function, DLF_MAX_NDIM);
        bad = -1;
    }
    /* A one-dimensional buffer may leave the shape out. */
    int64_t length = view->itemsize > 0 ? view->len / view->itemsize : 0;
    t.shape = view->shape ? (int64_t *)view->shape : &length;
    for (int i = 0; !bad && i < view->ndim; i++) {
        if (!view->strides)
            break;
        if (view->strides[i] % view->itemsize) {
            if (t.shape[i] > 1) {
                dlf_raise(DLF_KIND_STRIDES, "%s: strides[%d], got %zd bytes, want a multiple of the element's %zd; copy the data first", function, i, view->strides[i], view->itemsize);
                bad = -1;
            }
            strides[i] = 0;
        } else {
            strides[i] = view->strides[i] / view->itemsize;
        }
    }
    t.strides = view->strides ? strides : NULL;
    DlfLayout lay;
    DlfRefusal why;
    if (!bad && dlf_check(&t, 0, &lay, &why)) {
        dlf_raise_refusal(function, &t, 0, &why);
        bad = -1;
    }
    if (!bad && lay.size && (uintptr_t)t.data & (uintptr_t)(lay.element.align - 1) && !may_copy) {
        dlf_raise(DLF_KIND_ALIGNMENT, "%s: buffer, got one at an address that is not a multiple of the element's alignment %d, want an aligned one; asarray(obj) copies it", function, lay.element.align);
        bad = -1;
    }
    DlfStorage *st = bad ? NULL : dlf_storage_wrap(DLF_END_PYBUFFER, view, 0);
    if (!st) {
        if (!bad)
            PyErr_NoMemory();
        PyBuffer_Release(view);
        free(view);
        return NULL;
    }
    return dlf_tensor_new(&t, &lay, st, view->readonly ? DLF_FLAG_READ_ONLY : 0);
}

PyObject *dlf_from_buffer(PyObject *self, PyObject *obj)
{
    (void)self;
    dlf_drain();
    return dlf_import_buffer(obj, 0, "from_buffer");
}

static int is_column_major(const DlfTensor *t)
{
    int64_t step = 1;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] == 1)
            continue;
        if (t->strides[i] != step)
            return 0;
        step *= t->shape[i];
    }
    return 1;
}

static int want_layout(const DlfTensorObject *t, int flags)
{
    const int c = dlf_is_contiguous(t->t.ndim, t->t.shape, t->t.strides);
    const int f = t->size == 0 || is_column_major(&t->t);
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS)
        return c || f;
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
        return f;
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)
        return c;
    return c || (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
}

int dlf_getbuffer(PyObject *o, Py_buffer *view, int flags)
{
    DlfTensorObject *t = dlf_open(o, "buffer");
    view->obj = NULL;
    if (!t || dlf_needs_host(t, "buffer"))
        return -1;
    char name[48];
    const char *format = dlf_buffer_format(t->t.dtype);
    if (!format) {
        dlf_raise(DLF_KIND_DTYPE, "buffer: dtype, got %s, want one with a struct format; exchange it by DLPack instead", dlf_dtype_name(t->t.dtype, name));
        return -1;
    }
    if ((flags & PyBUF_WRITABLE) && (t->flags & DLF_FLAG_READ_ONLY)) {
        dlf_raise(DLF_KIND_READ_ONLY, "buffer: tensor, got a read-only one, want a writable one; use copy()");
        return -1;
    }
    if (!want_layout(t, flags)) {
        dlf_raise(DLF_KIND_LAYOUT, "buffer: strides, got a layout that the caller did not ask for, want a contiguous one; use contiguous()");
        return -1;
    }
    const size_t ndim = (size_t)t->t.ndim;
    Py_ssize_t *dims = malloc((2 * ndim + 1) * sizeof *dims);
    if (!dims) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < ndim; i++) {
        dims[i] = (Py_ssize_t)t->t.shape[i];
        dims[ndim + i] = (Py_ssize_t)((uint64_t)t->t.strides[i] * (uint64_t)t->itemsize); /* wraps only where no step is taken */
    }
    static char nothing[1];
    view->buf = t->t.data ? t->t.data : nothing;
    view->len = (Py_ssize_t)(t->size * t->itemsize);
    view->itemsize = (Py_ssize_t)t->itemsize;
    view->readonly = (t->flags & DLF_FLAG_READ_ONLY) != 0;
    view->ndim = flags & PyBUF_ND ? (int)ndim : 1;
    view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)format : NULL;
    view->shape = flags & PyBUF_ND ? dims : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims + ndim : NULL;
    view->suboffsets = NULL;
    view->internal = dims;
    view->obj = Py_NewRef(o);
    t->buffers++;
    return 0;
}

void dlf_releasebuffer(PyObject *o, Py_buffer *view)
{
    ((DlfTensorObject *)o)->buffers--;
    free(view->internal);
}
