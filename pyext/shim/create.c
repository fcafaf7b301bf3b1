/* Tensors made here: empty, zeros, full, from values, over addresses, and asarray. */
#include "core.h"

#include <string.h>

/* A refusal of a shape, strides or address that the caller passed himself is a wrong value, not a failed exchange. */
static void refuse_argument(const char *function, const DlfTensor *t, uint64_t flags, const DlfRefusal *why)
{
    dlf_raise_refusal(function, t, flags, why);
    if (why->kind != DLF_KIND_DTYPE && PyErr_ExceptionMatches(PyExc_BufferError)) {
        PyObject *error = dlf_take_error();
        PyErr_Format(PyExc_ValueError, "%S", error);
        Py_DECREF(error);
    }
}

static int cpu_only(PyObject *device, const char *function)
{
    if (!device)
        return 0;
    DlfDevice d;
    char name[32];
    if (dlf_device_arg(device, &d))
        return -1;
    if (d.type == DLF_DEVICE_CPU)
        return 0;
    dlf_raise(DLF_KIND_DEVICE, "%s: device, got %s, want cpu: this build has no back end for it", function, dlf_device_name(d, name));
    return -1;
}

static PyObject *make(const DlfSignature *sig, PyObject *const *a, int dtype_at, int zeroed)
{
    int64_t shape[DLF_MAX_NDIM];
    DlfDataType dt;
    dlf_drain();
    const int ndim = dlf_dims(a[0], shape, sig->function, "shape");
    if (ndim < 0 || dlf_dtype_arg(a[dtype_at], &dt) || cpu_only(a[dtype_at + 1], sig->function))
        return NULL;
    return dlf_tensor_empty(ndim, shape, dt, 0, zeroed, sig->function);
}

PyObject *dlf_empty(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static DlfSignature sig = {"empty", {"shape", "dtype", "device"}, 0, 1, 1, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    if (nargs == 1 && !kwnames)
        return make(&sig, (PyObject *[]){args[0], NULL, NULL}, 1, 0);
    return dlf_parse(&sig, args, nargs, kwnames, a) ? NULL : make(&sig, a, 1, 0);
}

PyObject *dlf_zeros(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static DlfSignature sig = {"zeros", {"shape", "dtype", "device"}, 0, 1, 1, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    return dlf_parse(&sig, args, nargs, kwnames, a) ? NULL : make(&sig, a, 1, 1);
}

PyObject *dlf_full(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static DlfSignature sig = {"full", {"shape", "fill_value", "dtype", "device"}, 0, 2, 2, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    if (dlf_parse(&sig, args, nargs, kwnames, a))
        return NULL;
    (void)self;
    PyObject *t = make(&sig, a, 2, 0);
    if (t && dlf_fill_with((DlfTensorObject *)t, a[1], sig.function)) {
        Py_DECREF(t);
        return NULL;
    }
    return t;
}

static int address(PyObject *o, void **out, const char *function, const char *what)
{
    PyObject *i = PyNumber_Index(o);
    if (!i) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want an address as an int", function, what, o);
        return -1;
    }
    const unsigned long long v = PyLong_AsUnsignedLongLong(i);
    Py_DECREF(i);
    if (v == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s: %s, got %R, want an address of 64 bits", function, what, o);
        return -1;
    }
    *out = (void *)(uintptr_t)v;
    return 0;
}

PyObject *dlf_from_address(PyObject *self, PyObject *o)
{
    (void)self;
    void *p;
    dlf_drain();
    if (address(o, &p, "from_address", "address"))
        return NULL;
    if (!p || (uintptr_t)p % _Alignof(DlfManagedTensorVersioned))
        return dlf_raise(DLF_KIND_VALUE, "from_address: address, got %p, want that of a DLManagedTensorVersioned", p);
    return dlf_import_versioned(p, 0, "from_address");
}

PyObject *dlf_wrap_pointer(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static DlfSignature sig = {"wrap_pointer", {"ptr", "shape", "dtype", "strides", "device", "readonly", "owner"}, 0, 3, 3, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    int64_t shape[DLF_MAX_NDIM], strides[DLF_MAX_NDIM];
    DlfTensor t = {.shape = shape};
    dlf_drain();
    if (dlf_parse(&sig, args, nargs, kwnames, a) || address(a[0], &t.data, sig.function, "ptr"))
        return NULL;
    t.ndim = dlf_dims(a[1], shape, sig.function, "shape");
    if (t.ndim < 0 || dlf_dtype_arg(a[2], &t.dtype) || dlf_device_arg(a[4], &t.device))
        return NULL;
    if (a[3] && a[3] != Py_None) {
        const int n = dlf_dims(a[3], strides, sig.function, "strides");
        if (n < 0)
            return NULL;
        if (n != t.ndim)
            return dlf_raise(DLF_KIND_VALUE, "wrap_pointer: strides, got %d, want one for each of the %d axes", n, t.ndim);
        t.strides = strides;
    }
    const int readonly = dlf_optional_bool(a[5]);
    if (readonly == -2)
        return NULL;
    const uint64_t flags = readonly == 1 ? DLF_FLAG_READ_ONLY : 0;
    DlfLayout lay;
    DlfRefusal why;
    if (dlf_check(&t, flags, &lay, &why)) {
        refuse_argument(sig.function, &t, flags, &why);
        return NULL;
    }
    if (dlf_is_host(t.device.type) && lay.size && (uintptr_t)t.data & (uintptr_t)(lay.element.align - 1))
        return dlf_raise(DLF_KIND_VALUE, "wrap_pointer: ptr, got %p, want a multiple of the element's alignment %d", t.data, lay.element.align);
    PyObject *owner = a[6] && a[6] != Py_None ? a[6] : NULL;
    DlfStorage *st = dlf_storage_wrap(owner ? DLF_END_PYOBJECT : DLF_END_NOTHING, owner, 0);
    if (!st)
        return PyErr_NoMemory();
    if (owner)
        Py_INCREF(owner);
    return dlf_tensor_new(&t, &lay, st, flags);
}

PyObject *dlf_from_values(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    int64_t shape[DLF_MAX_NDIM];
    DlfDataType dt;
    DlfElement e;
    if (nargs != 3)
        return dlf_raise(DLF_KIND_TYPE, "_from_values: want values, shape, dtype");
    const int ndim = dlf_dims(args[1], shape, "asarray", "shape");
    if (ndim < 0 || dlf_dtype_arg(args[2], &dt))
        return NULL;
    DlfTensorObject *t = (DlfTensorObject *)dlf_tensor_empty(ndim, shape, dt, 0, 0, "asarray");
    if (!t)
        return NULL;
    dlf_element(dt, 0, &e);
    int bad = PySequence_Size(args[0]) != t->size;
    if (bad && !PyErr_Occurred())
        dlf_raise(DLF_KIND_VALUE, "asarray: values, got another number than the shape's %lld elements", (long long)t->size);
    for (int64_t i = 0; !bad && i < t->size; i++) {
        PyObject *v = PySequence_GetItem(args[0], (Py_ssize_t)i);
        bad = !v || dlf_store(&e, dt, (char *)t->t.data + i * e.size, v, "asarray");
        Py_XDECREF(v);
    }
    if (bad) {
        Py_DECREF(t);
        return NULL;
    }
    return &t->ob_base;
}

/* The tensor with the dtype, and a private copy where asked. Takes the reference. */
static PyObject *as_wanted(PyObject *o, int has_dtype, DlfDataType dt, int copy)
{
    DlfTensorObject *t = (DlfTensorObject *)o;
    const int cast = has_dtype && !dlf_same_dtype(t->t.dtype, dt);
    const int must = !dlf_is_aligned(t);
    if (!cast && !must && copy != 1)
        return o;
    PyObject *result;
    char a[48], b[48];
    if (copy == 0 && !cast)
        result = dlf_raise(DLF_KIND_ALIGNMENT, "asarray: copy=False, got data at an address that is not a multiple of the element's alignment; allow a copy with copy=None");
    else if (copy == 0)
        result = dlf_raise(DLF_KIND_COPY, "asarray: copy=False, got %s for dtype %s, want the same or copy=None", dlf_dtype_name(t->t.dtype, a), dlf_dtype_name(dt, b));
    else
        result = dlf_tensor_copy(t, has_dtype ? dt : t->t.dtype, "asarray");
    Py_DECREF(o);
    return result;
}

PyObject *dlf_asarray(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static DlfSignature sig = {"asarray", {"obj", "dtype", "device", "copy"}, 1, 1, 1, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    DlfDataType dt = {0};
    dlf_drain();
    if (dlf_parse(&sig, args, nargs, kwnames, a))
        return NULL;
    const int has_dtype = a[1] && a[1] != Py_None;
    const int copy = dlf_optional_bool(a[3]);
    if (copy == -2 || (has_dtype && dlf_dtype_arg(a[1], &dt)) || cpu_only(a[2], sig.function))
        return NULL;
    PyObject *x = a[0];
    if (dlf_is_tensor(x))
        return dlf_open(x, sig.function) ? as_wanted(Py_NewRef(x), has_dtype, dt, copy) : NULL;
    int unable = 1;
    PyObject *o = copy != 0 ? dlf_from_nested(x, has_dtype ? &dt : NULL, &unable) : NULL;
    if (!unable)
        return o;
    const int speaks = dlf_speaks_dlpack(x);
    if (speaks < 0)
        return NULL;
    if (speaks)
        o = dlf_import(x, copy, sig.function);
    else if (PyObject_CheckBuffer(x))
        o = dlf_import_buffer(x, 1, sig.function);
    else if (!dlf_hook_asarray())
        return NULL;
    else
        return PyObject_CallFunctionObjArgs(dlf_hook_asarray(), x, has_dtype ? a[1] : Py_None, a[2] ? a[2] : Py_None, a[3] ? a[3] : Py_None, NULL);
    return o ? as_wanted(o, has_dtype, dt, copy) : NULL;
}
