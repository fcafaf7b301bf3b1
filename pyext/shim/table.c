/* The DLPack C exchange API: our table, called by others with the GIL, except the allocator. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

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
