/* The DLPack C exchange API: our table for others, and others' tables for us. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* --- ours: called by others with the GIL, except the allocator --- */

static int refuse_alloc(void *ctx, void (*set_error)(void *, const char *, const char *), const char *kind, const char *message)
{
    if (set_error)
        set_error(ctx, kind, message);
    return -1;
}

/* No Python here: consumers call it without the GIL, with NULL strides, and some with a NULL set_error. */
static int table_allocate(DlfTensor *prototype, DlfManagedTensorVersioned **out, void *ctx, void (*set_error)(void *, const char *, const char *))
{
    if (!prototype || !out)
        return refuse_alloc(ctx, set_error, "ValueError", "dlferry: prototype or out is NULL");
    *out = NULL;
    DlfTensor t = {.data = &t, .device = prototype->device, .ndim = prototype->ndim, .dtype = prototype->dtype, .shape = prototype->shape};
    DlfLayout lay;
    DlfRefusal why;
    if (t.device.type != DLF_DEVICE_CPU)
        return refuse_alloc(ctx, set_error, "BufferError", "dlferry: this build allocates on the cpu only");
    if (dlf_check(&t, 0, &lay, &why))
        return refuse_alloc(ctx, set_error, "ValueError", why.text);
    DlfStorage *st = dlf_storage_new((size_t)lay.nbytes, 0, &t.data);
    if (st) {
        t.strides = lay.strides;
        t.device.id = 0;
        *out = dlf_export_versioned(&t, st, 0);
        dlf_storage_unref(st);
    }
    return *out ? 0 : refuse_alloc(ctx, set_error, "MemoryError", "dlferry: out of memory");
}

static DlfTensorObject *tensor_arg(void *o, const char *function)
{
    if (o && dlf_is_tensor(o))
        return dlf_open(o, function);
    PyErr_Format(PyExc_TypeError, "%s: object, got %R, want a dlferry.Tensor", function, o ? (void *)Py_TYPE(o) : Py_None);
    return NULL;
}

static int table_from(void *o, DlfManagedTensorVersioned **out)
{
    DlfTensorObject *t = tensor_arg(o, "managed_tensor_from_py_object_no_sync");
    *out = t ? dlf_export(t, 0) : NULL;
    return *out ? 0 : -1;
}

/* On failure the tensor stays the caller's: those in the wild free it themselves. */
static int table_to(DlfManagedTensorVersioned *m, void **out)
{
    *out = m ? dlf_import_versioned(m, 1, "managed_tensor_to_py_object_no_sync") : dlf_raise(DLF_KIND_VALUE, "managed_tensor_to_py_object_no_sync: tensor, got NULL");
    return *out ? 0 : -1;
}

static int table_view(void *o, DlfTensor *out)
{
    DlfTensorObject *t = tensor_arg(o, "dltensor_from_py_object_no_sync");
    if (!t)
        return -1;
    *out = t->t;
    return 0;
}

static int table_stream(int32_t type, int32_t id, void **out)
{
    (void)type, (void)id;
    *out = NULL; /* no device work is queued by this build */
    return 0;
}

DlfExchangeApi dlf_table = {
    {{DLF_VERSION_MAJOR, DLF_VERSION_MINOR}, NULL}, table_allocate, table_from, table_to, table_view, table_stream,
};

int dlf_table_install(void)
{
    PyObject *capsule = PyCapsule_New(&dlf_table, DLF_CAPSULE_EXCHANGE, NULL);
    const int bad = !capsule || PyObject_SetAttrString((PyObject *)dlf_tensor_type, DLF_ATTR_EXCHANGE, capsule) ||
                    PyObject_SetAttrString((PyObject *)dlf_tensor_type, DLF_ATTR_EXCHANGE_OLD, capsule);
    Py_XDECREF(capsule);
    return bad ? -1 : 0;
}

/* --- others' --- */

/* A type is asked once; the entry holds it, since an address can be used again. "None" is an answer too. */
static struct {
    PyTypeObject *type;
    PyObject *capsule; /* keeps the table, should its owner think better of it */
    const DlfExchangeApi *api;
    int traits;
} cache[64];

/* The capsule of the type's table in *capsule (a new reference) and the table; NULL for none, or, with an error set, for an interruption. */
static const DlfExchangeApi *read_table(PyTypeObject *type, PyObject **capsule)
{
    const DlfExchangeApi *api = NULL;
    *capsule = PyObject_GetAttrString((PyObject *)type, DLF_ATTR_EXCHANGE);
    if (!*capsule && !dlf_error_is_soft())
        return NULL;
    PyErr_Clear();
    if (*capsule && Py_TYPE(*capsule) == &PyCapsule_Type && PyCapsule_IsValid(*capsule, DLF_CAPSULE_EXCHANGE))
        api = PyCapsule_GetPointer(*capsule, DLF_CAPSULE_EXCHANGE);
    /* A newer major hangs older tables behind it; nobody has more than a few, and a cycle must end. */
    for (int i = 0; api && api->header.version.major != DLF_VERSION_MAJOR; i++)
        api = i < 16 && api->header.version.major > DLF_VERSION_MAJOR ? (const DlfExchangeApi *)api->header.prev_api : NULL;
    return api && api->managed_tensor_from_py_object_no_sync ? api : NULL;
}

/* A class of a module that is loaded, as a new reference; nothing can derive from a class of one that is not. */
static PyTypeObject *class_of(const char *module_name, const char *class_name)
{
    PyObject *name = PyUnicode_FromString(module_name);
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *found = module ? PyObject_GetAttrString(module, class_name) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    if (found && dlf_py_has(found, PyType_FLAG_TYPE))
        return (PyTypeObject *)found;
    Py_XDECREF(found);
    return NULL;
}

static int derives_from(PyTypeObject *type, const char *module_name, const char *class_name)
{
    PyTypeObject *base = class_of(module_name, class_name);
    const int yes = base && PyType_IsSubtype(type, base);
    Py_XDECREF(base);
    return yes;
}

static int owns_attribute(PyTypeObject *type)
{
    PyObject *own = PyObject_GetAttrString((PyObject *)type, "__dict__");
    PyObject *value = own ? PyMapping_GetItemString(own, DLF_ATTR_EXCHANGE) : NULL;
    const int yes = value != NULL;
    Py_XDECREF(value);
    Py_XDECREF(own);
    PyErr_Clear();
    return yes;
}

static int is_ndarray(PyTypeObject *type)
{
    PyTypeObject *ndarray = class_of("numpy", "ndarray");
    const int yes = type == ndarray;
    Py_XDECREF(ndarray);
    return yes;
}

static int traits_of(PyTypeObject *type, const DlfExchangeApi *api)
{
    int traits = api && owns_attribute(type) ? DLF_TRAIT_OWN_TABLE : 0;
    if (derives_from(type, "torch", "Tensor"))
        traits |= DLF_TRAIT_TORCH;
    if (derives_from(type, "numpy.ma", "MaskedArray"))
        traits |= DLF_TRAIT_MASKED;
    if (is_ndarray(type))
        traits |= DLF_TRAIT_NDARRAY;
    return traits;
}

/* A type that can still get a table is asked again; classes of C cannot, and NumPy's arrays come too often to be asked. */
static int is_final(PyTypeObject *type, int traits) { return (traits & DLF_TRAIT_NDARRAY) || !(PyType_GetFlags(type) & (1UL << 9)); }

const DlfExchangeApi *dlf_table_of(PyTypeObject *type, int *out_traits)
{
    const size_t slot = ((uintptr_t)type >> 4) % (sizeof cache / sizeof *cache);
    if (cache[slot].type == type) {
        *out_traits = cache[slot].traits;
        return cache[slot].api;
    }
    PyObject *capsule;
    Py_INCREF(type); /* asking it may run code that drops it */
    const DlfExchangeApi *api = read_table(type, &capsule);
    if (PyErr_Occurred()) {
        *out_traits = -1;
        Py_DECREF(type);
        return NULL;
    }
    const int traits = traits_of(type, api);
    *out_traits = traits;
    if (!api && !is_final(type, traits)) {
        Py_XDECREF(capsule);
        Py_DECREF(type);
        return NULL;
    }
    PyTypeObject *old = cache[slot].type;
    PyObject *old_capsule = cache[slot].capsule;
    cache[slot].type = type;
    cache[slot].capsule = capsule;
    cache[slot].api = api;
    cache[slot].traits = traits;
    Py_XDECREF(old_capsule);
    Py_XDECREF(old);
    /* Dropping the old entry may have run code that took the slot. */
    return cache[slot].type == type ? cache[slot].api : dlf_table_of(type, out_traits);
}

/* Gives t to a framework through its table. NULL after an error, and *tried says whether the framework was asked. */
static PyObject *to_framework(DlfTensorObject *t, const DlfExchangeApi *api)
{
    void *out = NULL;
    DlfManagedTensorVersioned *m = dlf_export(t, 0);
    if (!m)
        return NULL;
    if (api->managed_tensor_to_py_object_no_sync(m, &out) == 0 && out) {
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
static int plain(const DlfTensorObject *t)
{
    const DlfDataType dt = t->t.dtype;
    const int common = dt.code == DLF_CODE_INT || dt.code == DLF_CODE_BOOL || dt.code == DLF_CODE_FLOAT || dt.code == DLF_CODE_BFLOAT ||
                       (dt.code == DLF_CODE_UINT && dt.bits == 8) || (dt.code == DLF_CODE_COMPLEX && dt.bits >= 64);
    DlfElement e;
    if (!common || dlf_element(dt, t->flags, &e) || e.kind == DLF_OPAQUE)
        return 0;
    for (int i = 0; i < t->t.ndim; i++)
        if (t->t.strides[i] < 0)
            return 0;
    return !(t->flags & DLF_FLAG_READ_ONLY);
}

PyObject *dlf_convert(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static const DlfSignature sig = {"convert", {"x", "to", "copy"}, 2, 2, 2};
    PyObject *a[DLF_MAX_ARGS];
    int traits;
    dlf_drain();
    if (dlf_parse(&sig, args, nargs, kwnames, a))
        return NULL;
    const int copy = dlf_optional_bool(a[2]);
    if (copy == -2)
        return NULL;
    PyObject *x = a[0], *to = a[1];
    if (dlf_py_has(to, PyType_FLAG_TYPE) && (PyTypeObject *)to != dlf_tensor_type && copy != 1) {
        const DlfExchangeApi *api = dlf_table_of((PyTypeObject *)to, &traits);
        if (traits < 0)
            return NULL;
        if (api && api->managed_tensor_to_py_object_no_sync && (traits & DLF_TRAIT_OWN_TABLE)) {
            if (PyType_IsSubtype(Py_TYPE(x), (PyTypeObject *)to))
                return Py_NewRef(x);
            const int speaks = dlf_speaks_dlpack(x);
            if (speaks < 0)
                return NULL;
            DlfTensorObject *t = speaks ? (DlfTensorObject *)dlf_import(x, copy, "convert") : NULL;
            if (speaks && !t)
                return NULL;
            if (t && plain(t) && (api = dlf_table_of((PyTypeObject *)to, &traits)) && api->managed_tensor_to_py_object_no_sync) {
                PyObject *out = to_framework(t, api);
                Py_DECREF(t);
                return out;
            }
            if (traits < 0) {
                Py_XDECREF(t);
                return NULL;
            }
            if (t) {
                PyObject *out = PyObject_CallFunctionObjArgs(dlf_hook_convert(), t, to, a[2] ? a[2] : Py_None, NULL);
                Py_DECREF(t);
                return out;
            }
        }
    }
    PyObject *hook = dlf_hook_convert();
    return hook ? PyObject_CallFunctionObjArgs(hook, x, to, a[2] ? a[2] : Py_None, NULL) : NULL;
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
    return t ? to_framework(t, api) : NULL;
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
