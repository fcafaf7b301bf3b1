/*
 * NumPy's arrays read and made by its C interface, declared here as far as it is used. Its layout has been the same since NumPy 1.7 and is part of
 * the binary interface whose version is asked for; an array of our own making is looked at before any other. Whatever is unusual goes by __dlpack__, which
 * knows what to say about it.
 */
#include "core.h"

#include <string.h>

typedef struct {
    PyObject ob_base;
    PyTypeObject *typeobj;
    char kind, type, byteorder, flags;
    int type_num;
} Descr;

typedef struct {
    PyObject ob_base;
    char *data;
    int nd;
    Py_ssize_t *dimensions;
    Py_ssize_t *strides; /* bytes */
    PyObject *base;
    Descr *descr;
    int flags;
} Array;

#define ARRAY_WRITEABLE 0x0400
#define ARRAY_WARN_ON_WRITE (1U << 31) /* the result of a broadcast, which is about to become read-only */
#define ARRAY_MAX_NDIM 32              /* of NumPy 1 */

PyTypeObject *dlf_array_type;
static PyObject *(*array_new)(PyTypeObject *, int, const Py_ssize_t *, int type_num, const Py_ssize_t *strides, void *data, int itemsize, int flags, PyObject *like);
static int (*array_set_base)(PyObject *array, PyObject *base); /* takes the reference on base */

/* By NumPy's type number, as on machines whose long has 64 bits. */
static const DlfDataType dtypes[] = {
    [0] = {DLF_CODE_BOOL, 8, 1}, [1] = {DLF_CODE_INT, 8, 1}, [2] = {DLF_CODE_UINT, 8, 1}, [3] = {DLF_CODE_INT, 16, 1}, [4] = {DLF_CODE_UINT, 16, 1},
    [5] = {DLF_CODE_INT, 32, 1}, [6] = {DLF_CODE_UINT, 32, 1}, [7] = {DLF_CODE_INT, 64, 1}, [8] = {DLF_CODE_UINT, 64, 1}, [9] = {DLF_CODE_INT, 64, 1},
    [10] = {DLF_CODE_UINT, 64, 1}, [11] = {DLF_CODE_FLOAT, 32, 1}, [12] = {DLF_CODE_FLOAT, 64, 1}, [14] = {DLF_CODE_COMPLEX, 64, 1},
    [15] = {DLF_CODE_COMPLEX, 128, 1}, [23] = {DLF_CODE_FLOAT, 16, 1},
};
#define TYPE_NUMS ((int)(sizeof dtypes / sizeof *dtypes))

static int type_num_of(DlfDataType dt)
{
    if (dlf_same_dtype(dt, dtypes[11]))
        return 11;
    for (int i = 0; i < TYPE_NUMS; i++)
        if (dlf_same_dtype(dtypes[i], dt))
            return i;
    return -1;
}

/* Whether the fields lie where we think: on an array that is known. */
static int looks_right(void)
{
    static int16_t values[6];
    const Py_ssize_t dims[2] = {2, 3};
    Array *a = (Array *)array_new(dlf_array_type, 2, dims, 3, NULL, values, 0, ARRAY_WRITEABLE, NULL);
    Array *r = (Array *)array_new(dlf_array_type, 2, dims, 3, NULL, values, 0, 0, NULL);
    const int right = a && r && a->data == (char *)values && a->nd == 2 && a->dimensions && a->dimensions[0] == 2 && a->dimensions[1] == 3 && a->strides &&
                      a->strides[0] == 6 && a->strides[1] == 2 && a->descr && a->descr->type_num == 3 && a->descr->kind == 'i' && a->descr->byteorder == '=' &&
                      (a->flags & ARRAY_WRITEABLE) && !(r->flags & ARRAY_WRITEABLE) && a->base == NULL;
    Py_XDECREF(a);
    Py_XDECREF(r);
    return right;
}

void dlf_numpy_open(PyTypeObject *ndarray)
{
    static const char *const modules[] = {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}; /* NumPy 2, NumPy 1 */
    void **api = NULL;
    for (size_t i = 0; !api && i < 2; i++) {
        PyObject *name = PyUnicode_FromString(modules[i]);
        PyObject *module = name ? PyImport_GetModule(name) : NULL;
        PyObject *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
        /* The capsule lives as long as the module, which is never unloaded. */
        if (capsule && Py_TYPE(capsule) == &PyCapsule_Type && PyCapsule_IsValid(capsule, NULL))
            api = PyCapsule_GetPointer(capsule, NULL);
        Py_XDECREF(capsule);
        Py_XDECREF(module);
        Py_XDECREF(name);
    }
    PyErr_Clear();
    if (!api)
        return;
    unsigned (*version)(void);
    memcpy(&version, &api[0], sizeof version);
    const unsigned abi = version();
    if ((abi != 0x02000000 && abi != 0x01000009) || api[2] != ndarray)
        return;
    memcpy(&array_new, &api[93], sizeof array_new);
    memcpy(&array_set_base, &api[282], sizeof array_set_base);
    dlf_array_type = ndarray;
    if (!looks_right())
        dlf_array_type = NULL;
    PyErr_Clear();
}

/* Whether its dtype is one of ours, or else NumPy should answer. */
static inline int is_usual(const Array *a)
{
    const Descr *d = a->descr;
    const unsigned num = (unsigned)d->type_num;
    return num < TYPE_NUMS && dtypes[num].bits && (d->byteorder == '=' || d->byteorder == '|') && !((unsigned)a->flags & ARRAY_WARN_ON_WRITE) && a->data;
}

/* Writes shape and strides, in elements, of what most arrays are: in row-major order and not empty. Its bytes, or -1 for others. */
static inline int64_t read_compact(const Array *a, int shift, int64_t *shape, int64_t *strides)
{
    int64_t step = (int64_t)1 << shift;
    int odd = 0;
    for (int i = a->nd - 1; i >= 0; i--) {
        const int64_t extent = a->dimensions[i], bytes = a->strides[i];
        shape[i] = extent;
        strides[i] = bytes >> shift;
        odd |= ((bytes != step) & (extent != 1)) | (extent < 1);
        odd |= __builtin_mul_overflow(step, extent, &step);
    }
    return odd ? -1 : step;
}

static inline int wraps(const Array *a, int64_t low, int64_t high)
{
    uintptr_t last;
    return __builtin_add_overflow((uintptr_t)a->data, (uintptr_t)high, &last) || (uintptr_t)a->data < (uintptr_t)-low;
}

/* One pass, with the rules of dlf_check: an array that fits them all is what most are; the rest goes by __dlpack__. */
static int read_strided(const Array *a, int shift, DlfLayout *lay)
{
    const int64_t bytes = (int64_t)1 << shift;
    int64_t size = 1, low = 0, high = bytes, reach;
    int bad = 0, empty = 0;
    for (int i = 0; i < a->nd; i++) {
        const int64_t extent = a->dimensions[i], step = a->strides[i];
        lay->strides[i] = step >> shift;
        empty |= extent == 0;
        if (extent == 1)
            continue;
        bad |= (step & (bytes - 1)) != 0;
        bad |= __builtin_mul_overflow(size, extent, &size);
        bad |= __builtin_mul_overflow(extent - 1, step, &reach);
        bad |= reach < 0 ? __builtin_add_overflow(low, reach, &low) : __builtin_add_overflow(high, reach, &high);
    }
    if (empty)
        size = low = high = 0;
    else if (bad || low == INT64_MIN || size > INT64_MAX >> shift || wraps(a, low, high))
        return 0;
    lay->size = size;
    lay->low = low;
    lay->high = high;
    return 1;
}

int dlf_numpy_read(PyObject *o, DlfArrayView *out)
{
    const Array *a = (const Array *)o;
    if (Py_TYPE(o) != dlf_array_type || !is_usual(a) || a->nd > DLF_MAX_NDIM)
        return 0;
    const DlfDataType dt = dtypes[a->descr->type_num];
    const int shift = __builtin_ctz(dt.bits) - 3;
    DlfLayout *lay = &out->lay;
    const int64_t nbytes = read_compact(a, shift, out->shape, lay->strides);
    if (nbytes > 0 && !wraps(a, 0, nbytes)) {
        lay->size = nbytes >> shift;
        lay->low = 0;
        lay->high = nbytes;
    } else if (!read_strided(a, shift, lay)) {
        return 0;
    }
    const int bytes = 1 << shift;
    lay->element = (DlfElement){DLF_OPAQUE, dt.code == DLF_CODE_COMPLEX ? bytes / 2 : bytes, bytes};
    lay->nbytes = lay->size << shift;
    out->t = (DlfTensor){.data = a->data, .device = {DLF_DEVICE_CPU, 0}, .ndim = a->nd, .dtype = dt, .shape = out->shape, .strides = lay->strides};
    out->flags = a->flags & ARRAY_WRITEABLE ? 0 : DLF_FLAG_READ_ONLY;
    return 1;
}

PyObject *dlf_numpy_import(PyObject *o)
{
    const Array *a = (const Array *)o;
    if (!is_usual(a) || a->nd > DLF_FIXED_NDIM || (uintptr_t)a->data & 15)
        return NULL;
    DlfTensorObject *t = dlf_tensor_next();
    if (!t)
        return NULL;
    const DlfDataType dt = dtypes[a->descr->type_num];
    const int shift = __builtin_ctz(dt.bits) - 3;
    const int64_t nbytes = read_compact(a, shift, t->dims, t->dims + a->nd);
    if (nbytes < 0 || wraps(a, 0, nbytes))
        return NULL;
    t->t = (DlfTensor){.data = a->data, .device = {DLF_DEVICE_CPU, 0}, .ndim = a->nd, .dtype = dt, .shape = t->dims, .strides = t->dims + a->nd};
    t->kept = (uintptr_t)o | DLF_KEPT_BY_OBJECT;
    t->flags = a->flags & ARRAY_WRITEABLE ? 0 : DLF_FLAG_READ_ONLY;
    t->size = nbytes >> shift;
    t->itemsize = (int64_t)1 << shift;
    Py_INCREF(o);
    return dlf_tensor_take(t);
}

PyObject *dlf_numpy_make(const DlfTensor *t, int64_t itemsize, uint64_t flags, PyObject *owner, DlfStorage *st, int *unable)
{
    int num = t->device.type == DLF_DEVICE_CPU && t->ndim <= ARRAY_MAX_NDIM && dlf_array_type ? type_num_of(t->dtype) : -1;
    Py_ssize_t strides[ARRAY_MAX_NDIM];
    for (int i = 0; num >= 0 && i < t->ndim; i++) {
        strides[i] = (Py_ssize_t)((uint64_t)t->strides[i] * (uint64_t)itemsize); /* wraps only where no step is taken */
        if (t->shape[i] == 0)
            num = -1; /* data may be NULL, for which NumPy would allocate */
    }
    *unable = num < 0;
    if (num < 0)
        return NULL;
    if (owner)
        Py_INCREF(owner);
    else if (!(owner = dlf_memory_new(st)))
        return NULL;
    PyObject *array = array_new(dlf_array_type, t->ndim, (Py_ssize_t *)t->shape, num, strides, t->data, 0, flags & DLF_FLAG_READ_ONLY ? 0 : ARRAY_WRITEABLE, NULL);
    if (!array) {
        Py_DECREF(owner);
        return NULL;
    }
    if (array_set_base(array, owner)) {
        Py_DECREF(array);
        return NULL;
    }
    return array;
}
