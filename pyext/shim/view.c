/* Views, assignment and casts for the Python layer, which does the arithmetic; the bounds are checked here once more. */
#include "core.h"

#include <string.h>

/* Maybe closed: reading the other arguments may run code that closes it, so callers look afterwards. */
static DlfTensorObject *first_tensor(PyObject *const *args, Py_ssize_t nargs, Py_ssize_t want, const char *function)
{
    if (nargs == want && dlf_is_tensor(args[0]))
        return (DlfTensorObject *)args[0];
    dlf_raise(DLF_KIND_TYPE, "%s: want a Tensor and %zd more arguments", function, want - 1);
    return NULL;
}

PyObject *dlf_view(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    int64_t shape[DLF_MAX_NDIM], strides[DLF_MAX_NDIM], offset, bytes;
    DlfTensorObject *t = first_tensor(args, nargs, 4, "Tensor view");
    if (!t)
        return NULL;
    const int ndim = dlf_dims(args[1], shape, "Tensor view", "shape");
    const int n = ndim < 0 ? -1 : dlf_dims(args[2], strides, "Tensor view", "strides");
    if (n < 0 || dlf_int64(args[3], &offset, "Tensor view", "offset") || !dlf_open(args[0], "Tensor view"))
        return NULL;
    if (n != ndim)
        return dlf_raise(DLF_KIND_VALUE, "Tensor view: strides, got %d, want %d", n, ndim);
    DlfTensor v = t->t;
    DlfLayout of, to;
    DlfRefusal why;
    v.ndim = ndim;
    v.shape = shape;
    v.strides = strides;
    const int has_pointers = dlf_device_has_pointers(v.device.type);
    /* An empty view reads nothing, so where it points does not matter; it stays at the start. */
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            offset = 0;
    /* Moved before it is checked: what goes backwards from the end need not fit before the start. */
    int bad = __builtin_mul_overflow(offset, t->itemsize, &bytes);
    if (!bad && !has_pointers)
        bad = __builtin_add_overflow((int64_t)v.byte_offset, bytes, (int64_t *)&v.byte_offset) || (int64_t)v.byte_offset < 0;
    if (bad)
        return dlf_raise(DLF_KIND_VALUE, "Tensor view: offset and strides, got a view that leaves the tensor's memory");
    if (has_pointers && v.data)
        v.data = (void *)((uintptr_t)v.data + (uintptr_t)bytes);
    if (dlf_check(&t->t, t->flags, &of, &why) || dlf_check(&v, t->flags, &to, &why)) {
        dlf_raise_refusal("Tensor view", &v, t->flags, &why);
        return NULL;
    }
    if (__builtin_add_overflow(to.low, bytes, &to.low) || __builtin_add_overflow(to.high, bytes, &to.high) || (to.size && (to.low < of.low || to.high > of.high)))
        return dlf_raise(DLF_KIND_VALUE, "Tensor view: offset and strides, got a view that leaves the tensor's memory");
    DlfStorage *st = dlf_storage_of(t);
    if (!st)
        return NULL;
    dlf_storage_ref(st);
    return dlf_tensor_new(&v, &to, st, t->flags);
}

PyObject *dlf_view_dtype(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    DlfTensorObject *t = first_tensor(args, nargs, 2, "view");
    DlfTensor v;
    DlfLayout lay;
    DlfRefusal why;
    DlfElement e;
    int64_t length;
    if (!t)
        return NULL;
    v = t->t;
    if (dlf_dtype_arg(args[1], &v.dtype) || !dlf_open(args[0], "view"))
        return NULL;
    if (dlf_element(v.dtype, 0, &e)) {
        char name[48];
        return dlf_raise(DLF_KIND_DTYPE, "view: dtype, got %s, want one whose elements are whole bytes", dlf_dtype_name(v.dtype, name));
    }
    if (e.size != t->itemsize) {
        /* Another element size: only flat memory can be cut anew. */
        if (!dlf_is_contiguous(t->t.ndim, t->t.shape, t->t.strides) || e.size < 1 || (t->size * t->itemsize) % e.size)
            return dlf_raise(DLF_KIND_LAYOUT, "view: dtype, got one of %lld bytes for elements of %lld, want the same size, or a contiguous tensor of a multiple of it", (long long)e.size, (long long)t->itemsize);
        length = t->size * t->itemsize / e.size;
        v.ndim = 1;
        v.shape = &length;
        v.strides = NULL;
        if (dlf_check(&v, 0, &lay, &why)) {
            dlf_raise_refusal("view", &v, 0, &why);
            return NULL;
        }
    } else if (dlf_check(&v, 0, &lay, &why)) {
        dlf_raise_refusal("view", &v, 0, &why);
        return NULL;
    }
    if (dlf_is_host(v.device.type) && lay.size && (uintptr_t)v.data & (uintptr_t)(e.align - 1))
        return dlf_raise(DLF_KIND_ALIGNMENT, "view: dtype, got data at an address that is not a multiple of its alignment %d; use copy() first", e.align);
    DlfStorage *st = dlf_storage_of(t);
    if (!st)
        return NULL;
    dlf_storage_ref(st);
    return dlf_tensor_new(&v, &lay, st, t->flags & DLF_FLAG_READ_ONLY);
}

PyObject *dlf_readonly_view(PyObject *self, PyObject *o)
{
    (void)self;
    DlfTensorObject *t = first_tensor(&o, 1, 1, "_readonly");
    DlfTensorObject *v = t && dlf_open(o, "_readonly") ? (DlfTensorObject *)dlf_tensor_share(t) : NULL;
    if (v)
        v->flags |= DLF_FLAG_READ_ONLY;
    return (PyObject *)v;
}

static int writable(DlfTensorObject *t, const char *function)
{
    if (dlf_needs_host(t, function))
        return 0;
    if (!(t->flags & DLF_FLAG_READ_ONLY))
        return 1;
    dlf_raise(DLF_KIND_READ_ONLY, "%s: tensor, got a read-only one, want a writable one; use copy()", function);
    return 0;
}

PyObject *dlf_assign(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    DlfTensorObject *dst = first_tensor(args, nargs, 2, "assignment");
    if (!dst || !dlf_open(args[0], "assignment"))
        return NULL;
    if (!dlf_is_tensor(args[1]))
        return dlf_raise(DLF_KIND_TYPE, "assignment: value, got %R, want a Tensor", args[1]);
    DlfTensorObject *src = dlf_open(args[1], "assignment");
    if (!src || !writable(dst, "assignment") || dlf_needs_host(src, "assignment"))
        return NULL;
    if (src->t.ndim != dst->t.ndim || (dst->t.ndim && memcmp(src->t.shape, dst->t.shape, (size_t)dst->t.ndim * sizeof(int64_t))))
        return dlf_raise(DLF_KIND_VALUE, "assignment: shape, got values of another shape, want the target's");
    /* As if the values were taken first. Taking them may run signal handlers and other threads, which may close the target. */
    DlfStorage *target = dlf_storage_of(dst);
    if (!target || !dlf_storage_of(src))
        return NULL;
    dlf_storage_ref(target);
    PyObject *packed = dlf_overlap(dst, src) ? dlf_tensor_copy(src, src->t.dtype, "assignment") : Py_NewRef(src);
    DlfTensorObject *from = (DlfTensorObject *)packed;
    const int bad = !packed || dlf_copy(&dst->t, dst->flags, &from->t, from->flags, dst->size, target, dlf_storage_of(from), "assignment");
    Py_XDECREF(packed);
    dlf_storage_unref(target);
    return bad ? NULL : Py_NewRef(Py_None);
}

int dlf_fill_with(DlfTensorObject *dst, PyObject *number, const char *function)
{
    DlfElement e;
    uint64_t value[2] = {0, 0};
    int64_t still[DLF_MAX_NDIM] = {0};
    DlfTensor src = dst->t;
    if (dlf_element(dst->t.dtype, dst->flags, &e))
        return -1;
    if (e.kind == DLF_MINIFLOAT) { /* Go rounds to the small formats, from double so that it happens once */
        src.dtype = (DlfDataType){DLF_CODE_FLOAT, 64, 1};
        dlf_element(src.dtype, 0, &e);
    }
    /* Reading the value may run code that closes the tensor. */
    if (dlf_store(&e, src.dtype, value, number, function) || !dlf_open(&dst->ob_base, function))
        return -1;
    src.data = value;
    src.strides = still;
    src.byte_offset = 0;
    DlfStorage *st = dlf_storage_of(dst);
    return st ? dlf_copy(&dst->t, dst->flags, &src, dst->flags, dst->size, st, NULL, function) : -1;
}

PyObject *dlf_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    DlfTensorObject *dst = first_tensor(args, nargs, 2, "assignment");
    if (!dst || !dlf_open(args[0], "assignment") || !writable(dst, "assignment") || dlf_fill_with(dst, args[1], "assignment"))
        return NULL;
    return Py_NewRef(Py_None);
}

PyObject *dlf_astype(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static DlfSignature sig = {"astype", {"dtype", "copy"}, 1, 1, 1, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    DlfDataType dt;
    dlf_drain();
    if (dlf_parse(&sig, args, nargs, kwnames, a) || dlf_dtype_arg(a[0], &dt))
        return NULL;
    const int copy = a[1] ? PyObject_IsTrue(a[1]) : 1;
    if (copy == 0 && dlf_same_dtype(dt, ((DlfTensorObject *)o)->t.dtype))
        return Py_NewRef(o);
    /* Last, since reading the arguments may run code that closes the tensor. */
    DlfTensorObject *t = copy < 0 ? NULL : dlf_open(o, "astype");
    return t ? dlf_tensor_copy(t, dt, "astype") : NULL;
}

PyObject *dlf_cast(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    DlfTensorObject *t = first_tensor(args, nargs, 2, "astype");
    DlfDataType dt;
    if (!t || dlf_dtype_arg(args[1], &dt) || !dlf_open(args[0], "astype"))
        return NULL;
    return dlf_tensor_copy(t, dt, "astype");
}
