/* The life of a Tensor object: made, shared, closed, ended. */
#include "core.h"

#include <stdlib.h>

PyTypeObject *dlf_tensor_type;
PyObject *dlf_tensor_spare;
int dlf_tensor_spares;
int64_t dlf_tensors;

#define MAX_SPARE (DLF_KEEPS_SPARES ? 64 : 0)
#define BY_OBJECT DLF_KEPT_BY_OBJECT

int64_t dlf_tensor_count(void) { return dlf_tensors; }

int dlf_is_tensor(PyObject *o) { return Py_TYPE(o) == dlf_tensor_type || PyType_IsSubtype(Py_TYPE(o), dlf_tensor_type); }

int dlf_tensor_add_spare(void)
{
    DlfTensorObject *o = PyObject_Malloc(sizeof *o);
    if (!o) {
        PyErr_NoMemory();
        return 0;
    }
    PyObject_Init(&o->ob_base, dlf_tensor_type);
    o->weakrefs = NULL;
    o->shape = NULL;
    o->buffers = 0;
    *(PyObject **)o = dlf_tensor_spare;
    dlf_tensor_spare = &o->ob_base;
    dlf_tensor_spares++;
    return 1;
}

static DlfTensorObject *allocate(PyTypeObject *type)
{
    if (type == dlf_tensor_type) {
        DlfTensorObject *o = dlf_tensor_next();
        if (o)
            dlf_tensor_take(o);
        return o;
    }
    PyObject *o = ((PyObject * (*)(PyTypeObject *, Py_ssize_t)) PyType_GetSlot(type, Py_tp_alloc))(type, 0); /* all zero */
    if (o)
        dlf_tensors++;
    return (DlfTensorObject *)o;
}

/* The object has no GC flag: what a storage keeps (an owner, a buffer) is not shown to the collector. The caller's reference on what keeps the memory is taken on success only. */
static PyObject *new_of(PyTypeObject *type, const DlfTensor *t, const int64_t *strides, int64_t size, int64_t itemsize, uintptr_t kept, uint64_t flags)
{
    const int ndim = t->ndim;
    int64_t *long_dims = NULL;
    if (ndim > DLF_FIXED_NDIM && !(long_dims = malloc(2 * (size_t)ndim * sizeof *long_dims)))
        return PyErr_NoMemory();
    DlfTensorObject *self = allocate(type);
    if (!self) {
        free(long_dims);
        return NULL;
    }
    int64_t *dims = long_dims ? long_dims : self->dims;
    self->t = *t;
    self->t.shape = dims;
    self->t.strides = dims + ndim;
    for (int i = 0; i < ndim; i++) { /* a call of memcpy for a few words costs more */
        dims[i] = t->shape[i];
        dims[ndim + i] = strides[i];
    }
    if (t->byte_offset && dlf_device_has_pointers(t->device.type)) {
        if (t->data)
            self->t.data = (char *)t->data + t->byte_offset;
        self->t.byte_offset = 0;
    }
    if (dlf_is_host(t->device.type))
        self->t.device.id = 0;
    self->kept = kept;
    self->flags = flags & (DLF_FLAG_READ_ONLY | DLF_FLAG_SUBBYTE_PADDED);
    self->size = size;
    self->itemsize = itemsize;
    return &self->ob_base;
}

PyObject *dlf_tensor_over(const DlfTensor *t, const DlfLayout *lay, DlfStorage *st, uint64_t flags)
{
    return new_of(dlf_tensor_type, t, lay->strides, lay->size, lay->element.size, (uintptr_t)st, flags);
}

PyObject *dlf_tensor_over_object(const DlfTensor *t, const DlfLayout *lay, uint64_t flags, PyObject *owner)
{
    PyObject *o = new_of(dlf_tensor_type, t, lay->strides, lay->size, lay->element.size, (uintptr_t)owner | BY_OBJECT, flags);
    if (o)
        Py_INCREF(owner);
    return o;
}

/* Most imports are looked at and dropped: a storage is made for those that are shared further. */
DlfStorage *dlf_storage_of(DlfTensorObject *t)
{
    if (t->kept & BY_OBJECT) {
        DlfStorage *st = dlf_storage_wrap(DLF_END_PYOBJECT, (void *)(t->kept & ~BY_OBJECT), 0);
        if (!st) {
            PyErr_NoMemory();
            return NULL;
        }
        t->kept = (uintptr_t)st;
    }
    return (DlfStorage *)t->kept;
}

PyObject *dlf_tensor_new(const DlfTensor *t, const DlfLayout *lay, DlfStorage *st, uint64_t flags)
{
    PyObject *o = dlf_tensor_over(t, lay, st, flags);
    if (!o)
        dlf_storage_unref(st);
    return o;
}

void dlf_tensor_let_go(DlfTensorObject *self)
{
    const uintptr_t kept = self->kept;
    self->kept = 0;
    if (kept & BY_OBJECT)
        dlf_owner_unref_attached((PyObject *)(kept & ~BY_OBJECT));
    else if (kept)
        dlf_storage_unref_attached((DlfStorage *)kept);
}

void dlf_tensor_dealloc(PyObject *o)
{
    DlfTensorObject *self = (DlfTensorObject *)o;
    PyTypeObject *type = Py_TYPE(o);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(o);
    dlf_tensor_let_go(self);
    if (self->shape) {
        Py_DECREF(self->shape);
        self->shape = NULL;
    }
    if (self->t.shape != self->dims)
        free(self->t.shape);
    dlf_tensors--;
    if (type != dlf_tensor_type) {
        ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    } else if (dlf_tensor_spares < MAX_SPARE) {
        *(PyObject **)o = dlf_tensor_spare;
        dlf_tensor_spare = o;
        dlf_tensor_spares++;
        return;
    } else {
        PyObject_Free(o);
    }
    Py_DECREF(type);
}

DlfTensorObject *dlf_open(PyObject *o, const char *function)
{
    DlfTensorObject *self = (DlfTensorObject *)o;
    if (self->kept)
        return self;
    dlf_raise(DLF_KIND_CLOSED, "%s: tensor, got one that was closed, want an open one", function);
    return NULL;
}

PyObject *dlf_tensor_share_as(PyTypeObject *type, DlfTensorObject *t)
{
    DlfStorage *st = dlf_storage_of(t);
    if (!st)
        return NULL;
    dlf_storage_ref(st); /* first: making an object of a subclass may run code that closes t */
    PyObject *o = new_of(type, &t->t, t->t.strides, t->size, t->itemsize, (uintptr_t)st, t->flags);
    if (!o)
        dlf_storage_unref(st);
    return o;
}

PyObject *dlf_tensor_share(DlfTensorObject *t)
{
    const int n = 2 * t->t.ndim;
    DlfStorage *st = dlf_storage_of(t);
    DlfTensorObject *o = st && n <= 2 * DLF_FIXED_NDIM ? dlf_tensor_next() : NULL;
    if (!o)
        return st && n > 2 * DLF_FIXED_NDIM ? dlf_tensor_share_as(dlf_tensor_type, t) : NULL;
    dlf_storage_ref(st);
    o->t = t->t;
    o->t.shape = o->dims;
    o->t.strides = o->dims + t->t.ndim;
    for (int i = 0; i < n; i++)
        o->dims[i] = t->dims[i];
    o->kept = (uintptr_t)st;
    o->flags = t->flags;
    o->size = t->size;
    o->itemsize = t->itemsize;
    return dlf_tensor_take(o);
}
