/* Tensors as another library's: the short ways for PyTorch, tvm-ffi and their like by their tables, for NumPy by its C interface. The rest is Python's. */
#include "core.h"

/* Gives a managed tensor to a framework through its table. NULL after an error. */
PyObject *dlf_give(DlfManagedTensorVersioned *m, const DlfExchangeApi *api)
{
    void *out = NULL;
    if (!m)
        return NULL;
    if (api->managed_tensor_to_py_object_no_sync(m, &out) == 0 && out) {
        if (PyErr_Occurred())
            PyErr_Clear();
        return out;
    }
    /* Nobody says who owns m now: half of the implementations freed it, so it is left alone. */
    if (!PyErr_Occurred())
        dlf_raise(DLF_KIND_UNSUPPORTED, "convert: exchange table of the target, got a failure without a reason");
    return NULL;
}

/*
 * What every table takes. Frameworks with a table forget READ_ONLY and know no negative strides: the Python layer copies for them. And a table that
 * refuses a dtype leaves open who owns the tensor, so rarer dtypes go by capsule.
 */
int dlf_is_plain(const DlfTensor *t, uint64_t flags)
{
    const DlfDataType dt = t->dtype;
    const int common = dt.code == DLF_CODE_INT || dt.code == DLF_CODE_BOOL || dt.code == DLF_CODE_FLOAT || dt.code == DLF_CODE_BFLOAT ||
                       (dt.code == DLF_CODE_UINT && dt.bits == 8) || (dt.code == DLF_CODE_COMPLEX && dt.bits >= 64);
    DlfElement e;
    if (!common || (flags & DLF_FLAG_READ_ONLY) || dlf_element(dt, flags, &e) || e.kind == DLF_OPAQUE)
        return 0;
    for (int i = 0; i < t->ndim; i++)
        if (t->strides[i] < 0)
            return 0;
    return 1;
}

static PyObject *by_hook(PyObject *x, PyObject *to, PyObject *copy)
{
    PyObject *hook = dlf_hook_convert();
    return hook ? PyObject_CallFunctionObjArgs(hook, x, to, copy ? copy : Py_None, NULL) : NULL;
}

/* An ndarray straight to a table: no Tensor in between. NULL with *unable set: another way must be found. */
static PyObject *array_to_table(PyObject *x, const DlfExchangeApi *api, int is_torch, int *unable)
{
    DlfArrayView v;
    *unable = !dlf_numpy_read(x, &v) || !dlf_is_plain(&v.t, v.flags) || ((uintptr_t)v.t.data & (uintptr_t)(v.lay.element.align - 1));
    if (*unable)
        return NULL;
    DlfStorage *st = dlf_storage_wrap(DLF_END_PYOBJECT, x, 0);
    if (!st)
        return PyErr_NoMemory();
    Py_INCREF(x);
    st->may_wait = is_torch != 0;
    DlfManagedTensorVersioned *m = dlf_export_versioned(&v.t, st, 0);
    dlf_storage_unref_attached(st);
    if (!m)
        PyErr_NoMemory();
    return dlf_give(m, api);
}

static PyObject *to_table(PyObject *x, PyObject *to, const DlfExchangeApi *api, int traits, PyObject *copy_arg, int copy)
{
    int unable;
    if (PyType_IsSubtype(Py_TYPE(x), (PyTypeObject *)to))
        return Py_NewRef(x);
    PyObject *out = array_to_table(x, api, traits & DLF_TRAIT_TORCH, &unable);
    if (!unable)
        return out;
    if (Py_TYPE(x) == dlf_tensor_type) {
        DlfTensorObject *t = dlf_open(x, "convert");
        if (!t)
            return NULL;
        if (dlf_is_plain(&t->t, t->flags) && dlf_is_aligned(t))
            return dlf_give(dlf_export(t, 0), api);
    }
    const int speaks = dlf_speaks_dlpack(x);
    if (speaks <= 0)
        return speaks < 0 ? NULL : by_hook(x, to, copy_arg);
    DlfTensorObject *t = (DlfTensorObject *)dlf_import(x, copy, "convert");
    if (!t)
        return NULL;
    /* The import may have run any code, also some that took the table from the cache. */
    api = dlf_table_of((PyTypeObject *)to, &traits);
    if (traits < 0)
        out = NULL;
    else if (api && api->managed_tensor_to_py_object_no_sync && dlf_is_plain(&t->t, t->flags))
        out = dlf_give(dlf_export(t, 0), api);
    else
        out = by_hook(&t->ob_base, to, copy_arg);
    Py_DECREF(t);
    return out;
}

static PyObject *tensor_to_numpy(DlfTensorObject *t, PyObject *to, PyObject *copy_arg)
{
    int unable;
    DlfStorage *st = dlf_storage_of(t);
    PyObject *out = st ? dlf_numpy_make(&t->t, t->itemsize, t->flags, NULL, st, &unable) : NULL;
    return !st ? NULL : unable ? by_hook(&t->ob_base, to, copy_arg) : out;
}

/* A torch tensor straight to NumPy, which keeps it as the array's base, as its own numpy() does. NULL with *unable set: another way must be found. */
static PyObject *torch_to_numpy(PyObject *x, const DlfExchangeApi *api, int *unable)
{
    DlfTensor t;
    DlfLayout lay;
    int why;
    *unable = 1;
    if (!api || !api->dltensor_from_py_object_no_sync)
        return NULL;
    if (!dlf_torch_read(x, api, &t, &lay, &why, "convert")) {
        *unable = why > 0;
        if (why > 0)
            PyErr_Clear();
        return NULL;
    }
    if ((uintptr_t)t.data & (uintptr_t)(lay.element.align - 1) || t.byte_offset)
        return NULL;
    return dlf_numpy_make(&t, lay.element.size, 0, x, NULL, unable);
}

static PyObject *to_numpy(PyObject *x, PyObject *to, PyObject *copy_arg, int copy)
{
    int traits, unable;
    if (Py_TYPE(x) == dlf_tensor_type) {
        DlfTensorObject *t = dlf_open(x, "convert");
        return t ? tensor_to_numpy(t, to, copy_arg) : NULL;
    }
    const DlfExchangeApi *api = dlf_table_of(Py_TYPE(x), &traits);
    if (traits < 0)
        return NULL;
    if (traits & DLF_TRAIT_TORCH) {
        PyObject *out = torch_to_numpy(x, api, &unable);
        if (!unable)
            return out;
    }
    if (PyType_IsSubtype(Py_TYPE(x), (PyTypeObject *)to))
        return Py_NewRef(x);
    const int speaks = dlf_speaks_dlpack(x);
    if (speaks <= 0)
        return speaks < 0 ? NULL : by_hook(x, to, copy_arg);
    PyObject *t = dlf_import(x, copy, "convert");
    PyObject *out = t ? tensor_to_numpy((DlfTensorObject *)t, to, copy_arg) : NULL;
    Py_XDECREF(t);
    return out;
}

/* Name -> tensor type, of libraries that have a short way here; filled by the Python layer when it first resolves a name. */
static PyObject *named;

PyObject *dlf_name_target(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 2 || Py_TYPE(args[0]) != &PyUnicode_Type || !dlf_py_has(args[1], PyType_FLAG_TYPE))
        return dlf_raise(DLF_KIND_TYPE, "_name_target: want a str and a type");
    if ((!named && !(named = PyDict_New())) || PyDict_SetItem(named, args[0], args[1]))
        return NULL;
    return Py_NewRef(Py_None);
}

PyObject *dlf_named_type(PyObject *name) { return named ? PyDict_GetItemWithError(named, name) : NULL; }

PyObject *dlf_convert(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static DlfSignature sig = {"convert", {"x", "to", "copy"}, 2, 2, 2, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    int traits;
    dlf_drain();
    if (nargs == 2 && !kwnames)
        a[0] = args[0], a[1] = args[1], a[2] = NULL;
    else if (dlf_parse(&sig, args, nargs, kwnames, a))
        return NULL;
    const int copy = dlf_optional_bool(a[2]);
    if (copy == -2)
        return NULL;
    PyObject *x = a[0], *to = a[1];
    if (Py_TYPE(to) == &PyUnicode_Type) {
        PyObject *type = dlf_named_type(to);
        if (type)
            to = type;
        else if (PyErr_Occurred())
            return NULL;
    }
    if (to == (PyObject *)dlf_array_type && copy != 1)
        return to_numpy(x, to, a[2], copy);
    if (dlf_py_has(to, PyType_FLAG_TYPE) && copy != 1) {
        const DlfExchangeApi *api = dlf_table_of((PyTypeObject *)to, &traits);
        if (traits < 0)
            return NULL;
        if ((traits & DLF_TRAIT_NDARRAY) && dlf_numpy_is_open())
            return to_numpy(x, to, a[2], copy);
        if (api && api->managed_tensor_to_py_object_no_sync && (traits & (DLF_TRAIT_OWN_TABLE | DLF_TRAIT_OURS)) == DLF_TRAIT_OWN_TABLE)
            return to_table(x, to, api, traits, a[2], copy);
    }
    return by_hook(x, to, a[2]);
}

PyObject *dlf_to_framework(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    int traits;
    if (nargs != 2 || !dlf_is_tensor(args[0]) || !dlf_py_has(args[1], PyType_FLAG_TYPE))
        return dlf_raise(DLF_KIND_TYPE, "_to_framework: want a Tensor and a type");
    const DlfExchangeApi *api = dlf_table_of((PyTypeObject *)args[1], &traits);
    if (traits < 0)
        return NULL;
    if (!api || !api->managed_tensor_to_py_object_no_sync)
        return dlf_raise(DLF_KIND_TYPE, "_to_framework: type, got one without an exchange table");
    DlfTensorObject *t = dlf_open(args[0], "convert");
    return t ? dlf_give(dlf_export(t, 0), api) : NULL;
}

PyObject *dlf_exchange_table(PyObject *self, PyObject *type)
{
    (void)self;
    int traits;
    if (!dlf_py_has(type, PyType_FLAG_TYPE))
        return dlf_raise(DLF_KIND_TYPE, "_exchange_table: got %R, want a type", type);
    const DlfExchangeApi *api = dlf_table_of((PyTypeObject *)type, &traits);
    if (traits < 0)
        return NULL;
    return PyBool_FromLong(api && api->managed_tensor_to_py_object_no_sync && (traits & DLF_TRAIT_OWN_TABLE));
}
