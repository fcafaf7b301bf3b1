/*
 * The floor of the benchmarks: what the exchanges of dlferry cost when nothing is checked. Every owned object is made and destroyed by the same route as
 * dlferry's (a type cache with negative answers, the array struct of NumPy, the exchange table of torch, one record an export), everything from pools.
 *
 * Not a library: no validation, one interpreter, one thread (the pools have no lock, though torch calls deleters without the GIL), CPU only, at most 8 axes.
 * Built with the full headers of the Python that runs it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stddef.h>

#include "dlpack_abi.h"

#ifdef Py_GIL_DISABLED
#error "the floor's pools need the GIL"
#endif

#define NDIM 8
enum { END_DATA, END_MANAGED, END_PYOBJECT };

/* Storage, shape and small data in one allocation. */
typedef struct Holder {
    int64_t refs;
    int end;
    void *owner; /* a managed tensor or a PyObject; in the pool: the next one */
    DlfTensor t;
    int64_t shape[NDIM], strides[NDIM];
    _Alignas(64) char data[64];
} Holder;

typedef struct {
    PyObject_HEAD
    Holder *h;
} Object;

static PyTypeObject *Tensor; /* of the heap, as that of an extension against the stable ABI has to be */

/* --- pools: last in, first out; they only grow --- */

static Holder *holders;
static Object *objects;
static DlfManagedTensorVersioned *records;

static Holder *holder_new(int end, void *owner)
{
    Holder *h = holders;
    if (h)
        holders = h->owner;
    else if (!(h = aligned_alloc(64, sizeof(Holder))))
        return (Holder *)PyErr_NoMemory();
    h->refs = 1;
    h->end = end;
    h->owner = owner;
    return h;
}

static inline void holder_free(Holder *h)
{
    h->owner = holders;
    holders = h;
}

static inline int is_last(Holder *h) { return __atomic_load_n(&h->refs, __ATOMIC_ACQUIRE) == 1 || __atomic_fetch_sub(&h->refs, 1, __ATOMIC_ACQ_REL) == 1; }

/* With the GIL. */
static inline void holder_unref(Holder *h)
{
    if (!is_last(h))
        return;
    if (h->end == END_PYOBJECT)
        Py_DECREF((PyObject *)h->owner);
    else if (h->end == END_MANAGED)
        ((DlfManagedTensorVersioned *)h->owner)->deleter(h->owner);
    holder_free(h);
}

/* Python objects whose last reference went in a deleter; the next entry from Python lets go of them. */
static PyObject *pending[64];
static int waiting;

static inline void drain(void)
{
    while (waiting)
        Py_DECREF(pending[--waiting]);
}

static inline PyObject *object_new(Holder *h)
{
    Object *o = objects;
    if (o) {
        objects = (Object *)o->h;
        PyObject_Init((PyObject *)o, Tensor);
    } else if (!(o = PyObject_New(Object, Tensor))) {
        return NULL;
    }
    o->h = h;
    return (PyObject *)o;
}

static void object_dealloc(PyObject *self)
{
    Object *o = (Object *)self;
    holder_unref(o->h);
    o->h = (Holder *)objects;
    objects = o;
    Py_DECREF(Tensor);
}

/* Perhaps without the GIL. */
static void record_delete(DlfManagedTensorVersioned *m)
{
    Holder *h = m->manager_ctx;
    if (is_last(h)) {
        if (h->end == END_MANAGED)
            ((DlfManagedTensorVersioned *)h->owner)->deleter(h->owner);
        else if (h->end == END_PYOBJECT && waiting < 64) /* else lost: nobody makes that many between two entries here */
            pending[waiting++] = h->owner;
        holder_free(h);
    }
    m->manager_ctx = records;
    records = m;
}

/* A managed tensor that holds h: takes the reference. */
static inline DlfManagedTensorVersioned *record_new(Holder *h)
{
    DlfManagedTensorVersioned *m = records;
    if (m)
        records = m->manager_ctx;
    else if (!(m = malloc(sizeof *m)))
        return (DlfManagedTensorVersioned *)PyErr_NoMemory();
    m->version = (DlfVersion){DLF_VERSION_MAJOR, DLF_VERSION_MINOR};
    m->manager_ctx = h;
    m->deleter = record_delete;
    m->flags = 0;
    m->tensor = h->t;
    return m;
}

static inline DlfManagedTensorVersioned *export(Holder *h)
{
    __atomic_fetch_add(&h->refs, 1, __ATOMIC_RELAXED);
    return record_new(h);
}

/* --- NumPy: the public layout of its structs, and two functions of its table --- */

typedef struct {
    PyObject_HEAD
    PyTypeObject *typeobj;
    char kind, type, byteorder, flags;
    int type_num;
} Descr;

typedef struct {
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base;
    Descr *descr;
    int flags;
} Array;

typedef PyObject *ArrayNew(PyTypeObject *, int, Py_ssize_t const *, int, Py_ssize_t const *, void *, int, int, PyObject *);
static PyTypeObject *ndarray;
static ArrayNew *array_new;
static int (*set_base)(PyObject *array, PyObject *base);
enum { ARRAY_TYPE = 2, ARRAY_NEW = 93, ARRAY_SET_BASE = 282, ALIGNED = 0x100, WRITEABLE = 0x400 };

/* By NumPy's type number; long is 64 bits. The rest (longdouble, object, ...) has bits 0. */
static const DlfDataType dtypes[24] = {
    {DLF_CODE_BOOL, 8, 1}, {DLF_CODE_INT, 8, 1},    {DLF_CODE_UINT, 8, 1}, {DLF_CODE_INT, 16, 1},   {DLF_CODE_UINT, 16, 1},    {DLF_CODE_INT, 32, 1},
    {DLF_CODE_UINT, 32, 1}, {DLF_CODE_INT, 64, 1},  {DLF_CODE_UINT, 64, 1}, {DLF_CODE_INT, 64, 1},  {DLF_CODE_UINT, 64, 1},    {DLF_CODE_FLOAT, 32, 1},
    {DLF_CODE_FLOAT, 64, 1}, {0, 0, 0},             {DLF_CODE_COMPLEX, 64, 1}, {DLF_CODE_COMPLEX, 128, 1}, [23] = {DLF_CODE_FLOAT, 16, 1},
};

static int load_numpy(void)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!module) {
        PyErr_Clear();
        module = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    if (!table)
        return -1;
    ndarray = table[ARRAY_TYPE];
    *(void **)&array_new = table[ARRAY_NEW];
    *(void **)&set_base = table[ARRAY_SET_BASE];
    return 0;
}

static Holder *from_array(Array *a)
{
    Holder *h = holder_new(END_PYOBJECT, Py_NewRef((PyObject *)a));
    const DlfDataType dt = dtypes[a->descr->type_num];
    const int64_t size = dt.bits / 8;
    h->t = (DlfTensor){a->data, {DLF_DEVICE_CPU, 0}, a->nd, dt, h->shape, h->strides, 0};
    for (int i = 0; i < a->nd; i++) {
        h->shape[i] = a->dimensions[i]; /* a copy: setting a.shape frees the array's own */
        h->strides[i] = a->strides[i] / size;
    }
    return h;
}

/* --- what a type is --- */

enum { KIND_OWN = 1, KIND_NDARRAY, KIND_TABLE, KIND_METHOD };
typedef struct {
    PyTypeObject *type;
    const DlfExchangeApi *api;
    int kind;
} Entry;
static Entry cache[64];

static Entry *fill(PyTypeObject *type, Entry *e)
{
    PyObject *capsule = type == Tensor || type == ndarray ? NULL : PyObject_GetAttrString((PyObject *)type, DLF_ATTR_EXCHANGE);
    PyErr_Clear();
    const DlfExchangeApi *api = capsule ? PyCapsule_GetPointer(capsule, DLF_CAPSULE_EXCHANGE) : NULL;
    Py_XDECREF(capsule);
    if (capsule && !api)
        return NULL;
    Py_XSETREF(e->type, (PyTypeObject *)Py_NewRef((PyObject *)type));
    e->api = api;
    e->kind = type == Tensor ? KIND_OWN : type == ndarray ? KIND_NDARRAY : api ? KIND_TABLE : KIND_METHOD;
    return e;
}

static inline Entry *lookup(PyTypeObject *type)
{
    Entry *e = &cache[((uintptr_t)type >> 4) & 63];
    return e->type == type ? e : fill(type, e);
}

/* --- in --- */

static PyObject *s_dlpack, *version_asked, *kw_version;

static DlfManagedTensorVersioned *by_method(PyObject *x)
{
    PyObject *args[3] = {NULL, x, version_asked};
    PyObject *capsule = PyObject_VectorcallMethod(s_dlpack, args + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, kw_version);
    DlfManagedTensorVersioned *m = capsule ? PyCapsule_GetPointer(capsule, DLF_CAPSULE_VERSIONED) : NULL;
    if (m)
        PyCapsule_SetName(capsule, DLF_CAPSULE_VERSIONED_USED);
    Py_XDECREF(capsule);
    return m;
}

/* A reference to a holder of x's memory. */
static Holder *hold(PyObject *x)
{
    drain();
    const Entry *e = lookup(Py_TYPE(x));
    DlfManagedTensorVersioned *m = NULL;
    if (!e)
        return NULL;
    if (e->kind == KIND_NDARRAY)
        return from_array((Array *)x);
    if (e->kind == KIND_OWN) {
        Holder *h = ((Object *)x)->h;
        __atomic_fetch_add(&h->refs, 1, __ATOMIC_RELAXED);
        return h;
    }
    if (e->kind == KIND_METHOD)
        m = by_method(x);
    else if (e->api->managed_tensor_from_py_object_no_sync(x, &m))
        m = NULL;
    Holder *h = m ? holder_new(END_MANAGED, m) : NULL;
    if (h)
        h->t = m->tensor;
    return h;
}

static PyObject *from_dlpack(PyObject *self, PyObject *x)
{
    (void)self;
    Holder *h = hold(x);
    return h ? object_new(h) : NULL;
}

/* By __dlpack__ whatever the type: what NumPy's own route costs. */
static PyObject *from_method(PyObject *self, PyObject *x)
{
    (void)self;
    DlfManagedTensorVersioned *m = by_method(x);
    Holder *h = m ? holder_new(END_MANAGED, m) : NULL;
    if (!h)
        return NULL;
    h->t = m->tensor;
    return object_new(h);
}

/* A look at the memory, nothing owned. */
static PyObject *view(PyObject *self, PyObject *x)
{
    (void)self;
    const Entry *e = lookup(Py_TYPE(x));
    DlfTensor t;
    int64_t strides[NDIM];
    if (!e)
        return NULL;
    if (e->kind == KIND_NDARRAY) {
        const Array *a = (Array *)x;
        t = (DlfTensor){a->data, {DLF_DEVICE_CPU, 0}, a->nd, dtypes[a->descr->type_num], a->dimensions, strides, 0};
        for (int i = 0; i < a->nd; i++)
            strides[i] = a->strides[i] / (t.dtype.bits / 8);
    } else if (e->kind == KIND_OWN) {
        t = ((Object *)x)->h->t;
    } else if (!e->api || e->api->dltensor_from_py_object_no_sync(x, &t)) {
        return NULL;
    }
    __asm__ volatile("" : : "r"(&t) : "memory");
    Py_RETURN_NONE;
}

static PyObject *empty(PyObject *self, PyObject *shape)
{
    (void)self;
    Holder *h = holder_new(END_DATA, NULL);
    const int nd = (int)PyTuple_GET_SIZE(shape);
    int64_t size = 1;
    for (int i = nd - 1; i >= 0; i--) {
        h->strides[i] = size;
        size *= h->shape[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    }
    if (size * 4 > (int64_t)sizeof h->data) {
        holder_unref(h);
        return PyErr_Format(PyExc_ValueError, "empty: shape, got %R, want at most 16 elements", shape);
    }
    h->t = (DlfTensor){h->data, {DLF_DEVICE_CPU, 0}, nd, {DLF_CODE_FLOAT, 32, 1}, h->shape, h->strides, 0};
    return object_new(h);
}

/* --- out --- */

static PyObject *to_array(PyObject *base, const DlfTensor *t)
{
    int type_num = 0;
    Py_ssize_t strides[NDIM];
    while (memcmp(&dtypes[type_num], &t->dtype, sizeof t->dtype))
        type_num++;
    for (int i = 0; i < t->ndim; i++)
        strides[i] = t->strides[i] * (t->dtype.bits / 8);
    PyObject *a = array_new(ndarray, t->ndim, t->shape, type_num, strides, t->data, 0, ALIGNED | WRITEABLE, NULL);
    if (a)
        set_base(a, base);
    else
        Py_DECREF(base);
    return a;
}

static PyObject *convert(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "convert: want two arguments");
    PyObject *x = args[0];
    if (args[1] == (PyObject *)ndarray) {
        PyObject *base = Py_TYPE(x) == Tensor ? Py_NewRef(x) : from_dlpack(NULL, x);
        return base ? to_array(base, &((Object *)base)->h->t) : NULL;
    }
    const Entry *e = lookup((PyTypeObject *)args[1]);
    void *out = NULL;
    Holder *h = e && e->api ? hold(x) : NULL;
    DlfManagedTensorVersioned *m = h ? record_new(h) : NULL;
    if (m)
        e->api->managed_tensor_to_py_object_no_sync(m, &out);
    return out;
}

static void capsule_destroy(PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    if (strcmp(name, DLF_CAPSULE_VERSIONED) == 0)
        record_delete(PyCapsule_GetPointer(capsule, name));
}

static PyObject *dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    (void)args, (void)n, (void)names;
    return PyCapsule_New(export(((Object *)self)->h), DLF_CAPSULE_VERSIONED, capsule_destroy);
}

static PyObject *cpu;

static PyObject *dlpack_device(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return Py_NewRef(cpu);
}

static PyObject *data_ptr(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromVoidPtr(((Object *)self)->h->t.data);
}

static int table_from(void *o, DlfManagedTensorVersioned **out) { return (*out = export(((Object *)o)->h)) ? 0 : -1; }

static int table_view(void *o, DlfTensor *out)
{
    *out = ((Object *)o)->h->t;
    return 0;
}

static int table_to(DlfManagedTensorVersioned *m, void **out)
{
    Holder *h = holder_new(END_MANAGED, m);
    h->t = m->tensor;
    return (*out = object_new(h)) ? 0 : -1;
}

static int table_stream(int32_t type, int32_t id, void **out)
{
    (void)type, (void)id;
    *out = NULL;
    return 0;
}

static int table_allocate(DlfTensor *prototype, DlfManagedTensorVersioned **out, void *ctx, void (*set_error)(void *, const char *, const char *))
{
    (void)prototype;
    *out = NULL;
    if (set_error)
        set_error(ctx, "BufferError", "the floor allocates for nobody");
    return -1;
}

static DlfExchangeApi api = {{{DLF_VERSION_MAJOR, DLF_VERSION_MINOR}, NULL}, table_allocate, table_from, table_to, table_view, table_stream};

/* --- calls alone --- */

static PyObject *noop(PyObject *self, PyObject *x)
{
    (void)self, (void)x;
    Py_RETURN_NONE;
}

static PyObject *noop_fast(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self, (void)args, (void)n;
    Py_RETURN_NONE;
}

static void (*go_function)(void);

static PyObject *go_open(PyObject *self, PyObject *path)
{
    (void)self;
    const char *name = PyUnicode_AsUTF8(path);
    void *library = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library)
        *(void **)&go_function = dlsym(library, "crossing_noop");
    if (!go_function)
        return name ? PyErr_Format(PyExc_OSError, "go_open: %s", dlerror()) : NULL;
    Py_RETURN_NONE;
}

static PyObject *go_noop(PyObject *self, PyObject *x)
{
    (void)self, (void)x;
    if (go_function)
        go_function();
    Py_RETURN_NONE;
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", FAST(dlpack), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {"data_ptr", data_ptr, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot slots[] = {{Py_tp_dealloc, object_dealloc}, {Py_tp_methods, tensor_methods}, {0}};
static PyType_Spec spec = {"floor.Tensor", sizeof(Object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

static PyMethodDef functions[] = {
    {"from_dlpack", from_dlpack, METH_O, "An owned object over x's memory."},
    {"from_method", from_method, METH_O, "The same by __dlpack__, whatever the type."},
    {"view", view, METH_O, "A look at x's memory that owns nothing."},
    {"empty", empty, METH_O, "A float32 tensor of at most 16 elements in memory of its own."},
    {"convert", FAST(convert), METH_FASTCALL, "x as numpy.ndarray, or as a type with an exchange table."},
    {"noop", noop, METH_O, "A call."},
    {"noop_fast", FAST(noop_fast), METH_FASTCALL, "A call."},
    {"go_open", go_open, METH_O, "Opens the Go library whose crossing_noop go_noop calls."},
    {"go_noop", go_noop, METH_O, "A call that enters Go."},
    {0},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "floor", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_floor(void);

PyMODINIT_FUNC PyInit_floor(void)
{
    s_dlpack = PyUnicode_InternFromString("__dlpack__");
    version_asked = Py_BuildValue("(ii)", DLF_VERSION_MAJOR, DLF_VERSION_MINOR);
    kw_version = Py_BuildValue("(s)", "max_version");
    cpu = Py_BuildValue("(ii)", DLF_DEVICE_CPU, 0);
    if (!s_dlpack || !version_asked || !kw_version || !cpu || load_numpy() || !(Tensor = (PyTypeObject *)PyType_FromSpec(&spec)))
        return NULL;
    PyObject *capsule = PyCapsule_New(&api, DLF_CAPSULE_EXCHANGE, NULL), *type = (PyObject *)Tensor;
    if (!capsule || PyObject_SetAttrString(type, DLF_ATTR_EXCHANGE, capsule) || PyObject_SetAttrString(type, DLF_ATTR_EXCHANGE_OLD, capsule))
        return NULL;
    Py_DECREF(capsule);
    return PyModule_Create(&definition);
}
