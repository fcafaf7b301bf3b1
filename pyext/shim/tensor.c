/* The type Tensor: its metadata, and the methods that need no view arithmetic. Its life is in life.c. */
#include "core.h"

#include <stdlib.h>

/* The layout of a new tensor in row-major order: 0, or -1 for what dlf_check has to word. */
static int compact(int ndim, const int64_t *shape, int64_t itemsize, DlfLayout *out)
{
    int64_t step = 1, bytes;
    int empty = 0;
    for (int i = ndim - 1; i >= 0; i--) {
        out->strides[i] = step;
        if (shape[i] < 0 || __builtin_mul_overflow(step, shape[i] > 1 ? shape[i] : 1, &step))
            return -1;
        empty |= shape[i] == 0;
    }
    if (__builtin_mul_overflow(step, itemsize, &bytes))
        return -1;
    out->size = empty ? 0 : step;
    out->nbytes = empty ? 0 : bytes;
    return 0;
}

PyObject *dlf_tensor_empty(int ndim, const int64_t *shape, DlfDataType dt, uint64_t flags, int zeroed, const char *function)
{
    DlfTensor t = {.device = {DLF_DEVICE_CPU, 0}, .ndim = ndim, .dtype = dt, .shape = (int64_t *)shape, .data = &t};
    DlfLayout lay;
    DlfRefusal why;
    if (dlf_element(dt, flags, &lay.element) || compact(ndim, shape, lay.element.size, &lay)) {
        for (int i = 0; i < ndim; i++)
            if (shape[i] < 0)
                return dlf_raise(DLF_KIND_VALUE, "%s: shape, got %lld at axis %d, want 0 or more", function, (long long)shape[i], i);
        const int kind = dlf_check(&t, flags, &lay, &why);
        if (kind == DLF_KIND_OVERFLOW || kind == DLF_KIND_OFFSET)
            return dlf_raise(DLF_KIND_VALUE, "%s: shape, %s, want a smaller one", function, why.text);
        if (kind) {
            dlf_raise_refusal(function, &t, flags, &why);
            return NULL;
        }
    }
    DlfStorage *st = dlf_storage_new((size_t)lay.nbytes, zeroed, &t.data);
    if (!st)
        return dlf_raise(DLF_KIND_MEMORY, "%s: memory, got none for %lld bytes", function, (long long)lay.nbytes);
    return dlf_tensor_new(&t, &lay, st, flags & DLF_FLAG_SUBBYTE_PADDED);
}

int dlf_needs_host(const DlfTensorObject *t, const char *function)
{
    char name[32];
    if (dlf_is_host(t->t.device.type))
        return 0;
    dlf_raise(DLF_KIND_DEVICE, "%s: device, got %s, want host memory; export the tensor to its own library and copy it to the cpu there", function, dlf_device_name(t->t.device, name));
    return -1;
}

PyObject *dlf_tensor_copy(DlfTensorObject *t, DlfDataType dt, const char *function)
{
    DlfStorage *st = dlf_needs_host(t, function) ? NULL : dlf_storage_of(t);
    if (!st)
        return NULL;
    DlfTensorObject *c = (DlfTensorObject *)dlf_tensor_empty(t->t.ndim, t->t.shape, dt, dlf_same_dtype(dt, t->t.dtype) ? t->flags & DLF_FLAG_SUBBYTE_PADDED : 0, 0, function);
    if (c && dlf_copy(&c->t, c->flags, &t->t, t->flags, t->size, st, NULL, function)) {
        Py_DECREF(c);
        return NULL;
    }
    return (PyObject *)c;
}

/* --- metadata: right for closed tensors too --- */

static PyObject *get_shape(PyObject *o, void *x)
{
    (void)x;
    DlfTensorObject *t = (DlfTensorObject *)o;
    if (!t->shape && !(t->shape = dlf_tuple(t->t.shape, t->t.ndim)))
        return NULL;
    return Py_NewRef(t->shape);
}

static PyObject *get_strides(PyObject *o, void *x) { (void)x; return dlf_tuple(((DlfTensorObject *)o)->t.strides, ((DlfTensorObject *)o)->t.ndim); }
static PyObject *get_dtype(PyObject *o, void *x) { (void)x; return dlf_dtype_object(((DlfTensorObject *)o)->t.dtype); }
static PyObject *get_device(PyObject *o, void *x) { (void)x; return dlf_device_object(((DlfTensorObject *)o)->t.device); }
static PyObject *get_ndim(PyObject *o, void *x) { (void)x; return PyLong_FromLongLong(((DlfTensorObject *)o)->t.ndim); }
static PyObject *get_size(PyObject *o, void *x) { (void)x; return PyLong_FromLongLong(((DlfTensorObject *)o)->size); }
static PyObject *get_itemsize(PyObject *o, void *x) { (void)x; return PyLong_FromLongLong(((DlfTensorObject *)o)->itemsize); }
static PyObject *get_nbytes(PyObject *o, void *x) { (void)x; return PyLong_FromLongLong(((DlfTensorObject *)o)->size * ((DlfTensorObject *)o)->itemsize); }
static PyObject *get_readonly(PyObject *o, void *x) { (void)x; return PyBool_FromLong((((DlfTensorObject *)o)->flags & DLF_FLAG_READ_ONLY) != 0); }
static PyObject *get_closed(PyObject *o, void *x) { (void)x; return PyBool_FromLong(!((DlfTensorObject *)o)->kept); }

static PyGetSetDef getset[] = {
    {"shape", get_shape, NULL, "Extent of each axis.", NULL},
    {"strides", get_strides, NULL, "Step of each axis, in elements (not bytes).", NULL},
    {"dtype", get_dtype, NULL, "Element type; equal to its name.", NULL},
    {"device", get_device, NULL, "Where the memory is, as Device(type, id).", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements: size * itemsize.", NULL},
    {"readonly", get_readonly, NULL, "Whether the elements must not be written.", NULL},
    {"closed", get_closed, NULL, "Whether close() gave the memory back.", NULL},
    {0},
};

static PyObject *data_ptr(PyObject *o, PyObject *none)
{
    (void)none;
    DlfTensorObject *t = dlf_open(o, "data_ptr");
    return t ? PyLong_FromVoidPtr(t->t.data) : NULL;
}

static PyObject *is_contiguous(PyObject *o, PyObject *none)
{
    (void)none;
    DlfTensorObject *t = (DlfTensorObject *)o;
    return PyBool_FromLong(dlf_is_contiguous(t->t.ndim, t->t.shape, t->t.strides));
}

static PyObject *contiguous(PyObject *o, PyObject *none)
{
    (void)none;
    dlf_drain();
    DlfTensorObject *t = dlf_open(o, "contiguous");
    if (!t)
        return NULL;
    if (dlf_is_contiguous(t->t.ndim, t->t.shape, t->t.strides))
        return Py_NewRef(o);
    return dlf_tensor_copy(t, t->t.dtype, "contiguous");
}

static PyObject *copy(PyObject *o, PyObject *none)
{
    (void)none;
    dlf_drain();
    DlfTensorObject *t = dlf_open(o, "copy");
    return t ? dlf_tensor_copy(t, t->t.dtype, "copy") : NULL;
}

static PyObject *item(PyObject *o, PyObject *none)
{
    (void)none;
    DlfTensorObject *t = dlf_open(o, "item");
    DlfElement e;
    if (!t || dlf_needs_host(t, "item"))
        return NULL;
    if (t->size != 1)
        return dlf_raise(DLF_KIND_VALUE, "item: tensor, got %lld elements, want exactly 1; use tolist() or index it", (long long)t->size);
    dlf_element(t->t.dtype, t->flags, &e);
    return dlf_load(&e, t->t.dtype, t->t.data);
}

static PyObject *nested(const DlfTensor *t, const DlfElement *e, int axis, const char *p)
{
    if (axis == t->ndim)
        return dlf_load(e, t->dtype, p);
    PyObject *list = PyList_New((Py_ssize_t)t->shape[axis]);
    for (int64_t i = 0; list && i < t->shape[axis]; i++) {
        if ((axis < t->ndim - 1 || (i & 0xffff) == 0xffff) && PyErr_CheckSignals()) {
            Py_DECREF(list);
            return NULL;
        }
        /* Without elements, data may be NULL and strides may be anything: unsigned arithmetic, which may wrap. */
        PyObject *v = nested(t, e, axis + 1, (const char *)((uintptr_t)p + (uintptr_t)i * (uintptr_t)t->strides[axis] * (uintptr_t)e->size));
        if (!v || PyList_SetItem(list, (Py_ssize_t)i, v)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *tolist(PyObject *o, PyObject *none)
{
    (void)none;
    DlfTensorObject *t = dlf_open(o, "tolist");
    DlfElement e;
    if (!t || dlf_needs_host(t, "tolist"))
        return NULL;
    dlf_element(t->t.dtype, t->flags, &e);
    /* Making objects may run other code: the memory must outlive a close() there. */
    DlfStorage *st = dlf_storage_of(t);
    if (!st)
        return NULL;
    dlf_storage_ref(st);
    PyObject *list = nested(&t->t, &e, 0, t->t.data);
    dlf_storage_unref(st);
    return list;
}

static PyObject *close(PyObject *o, PyObject *none)
{
    (void)none;
    DlfTensorObject *t = (DlfTensorObject *)o;
    if (t->buffers)
        return dlf_raise(DLF_KIND_COPY, "close: tensor, got one with %lld open buffer(s), want none; release the memoryviews first", (long long)t->buffers);
    dlf_tensor_let_go(t);
    return Py_NewRef(Py_None);
}

static PyObject *enter(PyObject *o, PyObject *none)
{
    (void)none;
    return dlf_open(o, "__enter__") ? Py_NewRef(o) : NULL;
}

static PyObject *leave(PyObject *o, PyObject *args)
{
    (void)args;
    return close(o, NULL);
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef methods[] = {
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr($self, /)\n--\n\nAddress of the first element, as an int (a handle on devices that have no pointers)."},
    {"is_contiguous", is_contiguous, METH_NOARGS, "is_contiguous($self, /)\n--\n\nWhether the elements lie in row-major order without gaps. Axes of extent 1 and empty tensors do not matter."},
    {"contiguous", contiguous, METH_NOARGS, "contiguous($self, /)\n--\n\nThe tensor itself if it is contiguous, else a contiguous copy."},
    {"copy", copy, METH_NOARGS, "copy($self, /)\n--\n\nA writable, contiguous copy in memory of its own, 64-byte aligned."},
    {"astype", FAST(dlf_astype), METH_FASTCALL | METH_KEYWORDS,
     "astype($self, dtype, /, *, copy=True)\n--\n\n"
     "The elements as another dtype (a name, a DType or a framework's dtype object), in a new writable tensor in row-major order.\n\n"
     "copy=False gives the tensor itself where it has the dtype already. BufferError when one of the dtypes has no values that can be cast, or the memory is not the CPU's."},
    {"item", item, METH_NOARGS, "item($self, /)\n--\n\nThe only element, as a Python scalar. ValueError unless there is exactly one."},
    {"tolist", tolist, METH_NOARGS, "tolist($self, /)\n--\n\nNested lists of Python scalars; a bare scalar for ndim 0."},
    {"close", close, METH_NOARGS,
     "close($self, /)\n--\n\nGives this tensor's share of the memory back now; using the tensor afterwards is a ValueError. Views and exported tensors keep theirs.\nBufferError while a memoryview of it is open. Closing twice does nothing."},
    {"__enter__", enter, METH_NOARGS, "Returns the tensor; leaving the with-block closes it."},
    {"__exit__", leave, METH_VARARGS, "Closes the tensor."},
    {"__dlpack__", FAST(dlf_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule that shares the memory and keeps it alive.\n\n"
     "max_version with a major of 1 or more gives a versioned capsule, None or (0, x) the legacy one. copy=True exports a private copy, flagged as such.\n"
     "BufferError where the capsule cannot say what the tensor is (read-only in a legacy one), or the device or copy=False cannot be met."},
    {"__dlpack_device__", dlf_dlpack_device, METH_NOARGS, "__dlpack_device__($self, /)\n--\n\nThe pair (device type, device id) as DLPack numbers them."},
    {0},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", Py_SSIZET_MEMBER, offsetof(DlfTensorObject, weakrefs), Py_READONLY_MEMBER, NULL},
    {0},
};

PyObject *dlf_tensor_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *values[4], *names = NULL;
    if (PyTuple_Size(args) != 1)
        return dlf_raise(DLF_KIND_TYPE, "Tensor: positional arguments, got %zd, want 1; empty(), zeros() and full() make tensors of a shape", PyTuple_Size(args));
    Py_ssize_t n = 0, pos = 0;
    PyObject *key, *value;
    values[n++] = PyTuple_GetItem(args, 0);
    if (kwargs && PyDict_Size(kwargs) > 3)
        return dlf_raise(DLF_KIND_TYPE, "Tensor: keyword arguments, got %zd, want dtype, device, copy", PyDict_Size(kwargs));
    if (kwargs && PyDict_Size(kwargs) > 0) {
        names = PyTuple_New(PyDict_Size(kwargs));
        while (names && PyDict_Next(kwargs, &pos, &key, &value) && n < 4) {
            PyTuple_SetItem(names, n - 1, Py_NewRef(key));
            values[n++] = value;
        }
        if (!names)
            return NULL;
    }
    PyObject *t = dlf_asarray(NULL, values, 1, names);
    Py_XDECREF(names);
    if (!t || type == dlf_tensor_type)
        return t;
    PyObject *as = dlf_tensor_share_as(type, (DlfTensorObject *)t);
    Py_DECREF(t);
    return as;
}

int dlf_tensor_init_type(void)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, dlf_tensor_dealloc},
        {Py_tp_new, dlf_tensor_tp_new},
        {Py_tp_methods, methods},
        {Py_tp_getset, getset},
        {Py_tp_members, members},
        {Py_bf_getbuffer, dlf_getbuffer},
        {Py_bf_releasebuffer, dlf_releasebuffer},
        {Py_tp_doc, "Tensor(obj, /, *, dtype=None, device=None, copy=None)\n--\n\n"
                    "A view of memory with shape, strides, dtype and device, exchanged by DLPack with every array library.\n\n"
                    "The memory is kept by a count shared by all views and exports; the last one to go frees it, whichever side that is.\n"
                    "Tensor(obj) is asarray(obj); from_dlpack, empty, zeros, full, from_buffer and wrap_pointer make tensors too."},
        {0, NULL},
    };
    static PyType_Spec spec = {"dlferry.Tensor", sizeof(DlfTensorObject), 0, Py_TPFLAGS_BASETYPE, slots};
    dlf_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return dlf_tensor_type ? 0 : -1;
}
