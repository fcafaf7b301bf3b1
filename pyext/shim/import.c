/* Tensors in: the exchange table of the type, __dlpack__ of the object, raw capsules. One decoder and one check for all of them. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject *stream; /* as the caller gave it; NULL: not given */
    int has_device;
    DlfDevice device;
    int copy; /* -1: as needed */
} Request;

/* Foreign deleters may be anybody's code: an exception in flight must neither be seen nor be lost there. */
static void give_back(uint32_t kind, void *owner)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (kind == DLF_END_VERSIONED)
        dlf_delete_versioned(owner);
    else
        dlf_delete_legacy(owner);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* Takes ownership of owner, the managed tensor around t; on failure gives it back, unless keep. */
static PyObject *adopt(const DlfTensor *t, uint64_t flags, uint32_t kind, void *owner, DlfStorage *ours, int keep, const char *function)
{
    DlfLayout lay;
    DlfRefusal why;
    PyObject *o = NULL;
    if (dlf_check(t, flags, &lay, &why)) {
        dlf_raise_refusal(function, t, flags, &why);
    } else if (ours) { /* our own tensor comes home: no wrapping around wrapping */
        dlf_storage_ref(ours);
        o = dlf_tensor_new(t, &lay, ours, flags);
        keep = keep && !o;
    } else {
        DlfStorage *st = dlf_storage_wrap(kind, owner, 0);
        if (!st)
            PyErr_NoMemory();
        else if (!(o = dlf_tensor_over(t, &lay, st, flags)))
            dlf_storage_discard(st);
        keep = keep || o;
    }
    if (!keep)
        give_back(kind, owner);
    return o;
}

int dlf_is_aligned(const DlfTensorObject *t)
{
    DlfElement e;
    if (((uintptr_t)t->t.data & 15) == 0) /* no element asks for more */
        return 1;
    return !dlf_is_host(t->t.device.type) || t->size == 0 || dlf_element(t->t.dtype, t->flags, &e) || ((uintptr_t)t->t.data & (uintptr_t)(e.align - 1)) == 0;
}

PyObject *dlf_import_versioned(DlfManagedTensorVersioned *m, int keep_on_failure, const char *function)
{
    if (m->version.major != DLF_VERSION_MAJOR) {
        const uint32_t major = m->version.major;
        if (!keep_on_failure)
            give_back(DLF_END_VERSIONED, m);
        return dlf_raise(DLF_KIND_VERSION, "%s: DLPack version of the tensor, got major %u, want %d", function, major, DLF_VERSION_MAJOR);
    }
    return adopt(&m->tensor, m->flags, DLF_END_VERSIONED, m, dlf_export_storage(m), keep_on_failure, function);
}

PyObject *dlf_import_legacy(DlfManagedTensor *m, const char *function)
{
    return adopt(&m->tensor, 0, DLF_END_LEGACY, m, dlf_export_storage_legacy(m), 0, function);
}

/* A capsule's destructor may be anybody's code too; some clear or set the error in flight. */
static void drop(PyObject *o)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_DECREF(o);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static PyObject *from_capsule(PyObject *capsule, int *copied, const char *function)
{
    const char *name = PyCapsule_GetName(capsule);
    if (!name) {
        PyErr_Clear();
        name = "";
    }
    /* The name is changed before anything else, so that a second consumer, in another thread too, finds a used capsule. */
    if (strcmp(name, DLF_CAPSULE_VERSIONED) == 0) {
        DlfManagedTensorVersioned *m = PyCapsule_GetPointer(capsule, DLF_CAPSULE_VERSIONED);
        if (!m || PyCapsule_SetName(capsule, DLF_CAPSULE_VERSIONED_USED))
            return NULL;
        *copied = m->version.major == DLF_VERSION_MAJOR && (m->flags & DLF_FLAG_IS_COPIED) != 0;
        return dlf_import_versioned(m, 0, function);
    }
    if (strcmp(name, DLF_CAPSULE_LEGACY) == 0) {
        DlfManagedTensor *m = PyCapsule_GetPointer(capsule, DLF_CAPSULE_LEGACY);
        if (!m || PyCapsule_SetName(capsule, DLF_CAPSULE_LEGACY_USED))
            return NULL;
        return dlf_import_legacy(m, function);
    }
    if (strcmp(name, DLF_CAPSULE_VERSIONED_USED) == 0 || strcmp(name, DLF_CAPSULE_LEGACY_USED) == 0)
        return dlf_raise(DLF_KIND_CONSUMED, "%s: capsule, got one that was consumed already ('%s'), want a new one; each __dlpack__() gives one", function, name);
    return dlf_raise(DLF_KIND_VALUE, "%s: capsule, got one named '%s', want 'dltensor' or 'dltensor_versioned'", function, name);
}

/* --- exchange table --- */

/* NULL with *retry set: __dlpack__ knows better what is wrong. */
static PyObject *by_table(PyObject *x, const DlfExchangeApi *api, int *copied, int *retry, const char *function)
{
    DlfManagedTensorVersioned *m = NULL;
    *retry = 0;
    if (api->managed_tensor_from_py_object_no_sync(x, &m) || !m) {
        if (!PyErr_Occurred())
            dlf_raise(DLF_KIND_UNSUPPORTED, "%s: exchange table of the type, got a failure without a reason", function);
        *retry = dlf_error_is_soft();
        return NULL;
    }
    if (PyErr_Occurred())
        PyErr_Clear(); /* success with an exception set is the producer's fault, not ours */
    *copied = m->version.major == DLF_VERSION_MAJOR && (m->flags & DLF_FLAG_IS_COPIED) != 0;
    return dlf_import_versioned(m, 0, function);
}

static PyObject *from_torch(PyObject *x, const DlfExchangeApi *api, int *copied, int *retry, const char *function)
{
    DlfTensor t;
    DlfLayout lay;
    int why = 0;
    *retry = 0;
    if (!api->dltensor_from_py_object_no_sync) {
        PyObject *o = by_table(x, api, copied, retry, function);
        why = o ? dlf_torch_check(x, ((DlfTensorObject *)o)->t.dtype.code, function) : 0;
        if (!why)
            return o;
        Py_DECREF(o);
    } else if (dlf_torch_read(x, api, &t, &lay, &why, function)) {
        return dlf_tensor_over_object(&t, &lay, 0, x);
    }
    *retry = why > 0;
    return NULL;
}

/* --- __dlpack__ --- */

static PyObject *s_dlpack, *s_dlpack_device, *s_stream, *s_max_version, *s_dl_device, *s_copy, *version_asked, *kw_version;

static int init_names(void)
{
    if (kw_version)
        return 0;
    s_dlpack = PyUnicode_InternFromString("__dlpack__");
    s_dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
    s_stream = PyUnicode_InternFromString("stream");
    s_max_version = PyUnicode_InternFromString("max_version");
    s_dl_device = PyUnicode_InternFromString("dl_device");
    s_copy = PyUnicode_InternFromString("copy");
    const int64_t version[2] = {DLF_VERSION_MAJOR, DLF_VERSION_MINOR};
    version_asked = dlf_tuple(version, 2);
    if (!s_dlpack || !s_dlpack_device || !s_stream || !s_max_version || !s_dl_device || !s_copy || !version_asked)
        return -1;
    return (kw_version = PyTuple_Pack(1, s_max_version)) ? 0 : -1;
}

/* Host memory is one place to us, whatever it is called and numbered. */
static int same_device(DlfDevice a, DlfDevice b)
{
    return (dlf_is_host(a.type) && dlf_is_host(b.type)) || (a.type == b.type && a.id == b.id);
}

/* The pair that __dlpack_device__ gives: 1 known, 0 the object has no such method, -1 after an error. */
static int device_of(PyObject *x, DlfDevice *out, const char *function)
{
    PyObject *method = PyObject_GetAttr(x, s_dlpack_device);
    if (!method) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    PyObject *said = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (!said)
        return -1;
    int64_t type, id = 0;
    PyObject *first = NULL, *second = NULL;
    int bad = !dlf_py_has(said, PyType_FLAG_TUPLE) || PyTuple_Size(said) != 2;
    if (!bad) {
        first = PyTuple_GetItem(said, 0);
        second = PyTuple_GetItem(said, 1);
        bad = dlf_int64(first, &type, function, "__dlpack_device__()[0]") != 0;
        /* PaddlePaddle 3.3 says (1, None) for the CPU. */
        if (!bad && second != Py_None)
            bad = dlf_int64(second, &id, function, "__dlpack_device__()[1]") != 0;
        if (!bad && (type < 0 || type > INT32_MAX || id < INT32_MIN || id > INT32_MAX))
            bad = 1;
    }
    if (bad && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s: __dlpack_device__(), got %R, want a tuple of two ints", function, said);
    Py_DECREF(said);
    if (bad)
        return -1;
    *out = (DlfDevice){(int32_t)type, (int32_t)id};
    return 1;
}

/*
 * The stream to ask of a device producer: borrowed, NULL for none. Not passing one makes some producers wait for the default stream, others not at all; so
 * where the standard has a rule we name the default stream ourselves.
 */
static PyObject *stream_for(const Request *r, int32_t type)
{
    static PyObject *one, *zero;
    if (!one) {
        one = PyLong_FromLongLong(1);
        zero = PyLong_FromLongLong(0);
    }
    const int is_cuda = type == DLF_DEVICE_CUDA || type == DLF_DEVICE_CUDA_MANAGED;
    if (r->stream) {
        int64_t s = 1;
        if (dlf_py_has(r->stream, PyType_FLAG_LONG)) {
            s = PyLong_AsLongLong(r->stream);
            PyErr_Clear();
        }
        if (dlf_is_host(type) && (r->stream == Py_None || s == -1))
            return NULL;
        return is_cuda && s == 0 ? one : r->stream; /* 0 is the raw handle of CUDA's default stream; the protocol's number for it is 1 */
    }
    return is_cuda ? one : type == DLF_DEVICE_ROCM ? zero : NULL;
}

PyObject *dlf_call_method(PyObject *name, PyObject **args, PyObject *kwnames)
{
    if (dlf_vectorcall_method) {
        const size_t offset = (size_t)1 << (8 * sizeof(size_t) - 1); /* PY_VECTORCALL_ARGUMENTS_OFFSET: args[-1] may be borrowed */
        return dlf_vectorcall_method(name, args, 1 | offset, kwnames);
    }
    PyObject *method = PyObject_GetAttr(args[0], name);
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *kwargs = none ? PyDict_New() : NULL;
    PyObject *r = NULL;
    int bad = !kwargs;
    for (Py_ssize_t i = 0; !bad && kwnames && i < PyTuple_Size(kwnames); i++)
        bad = PyDict_SetItem(kwargs, PyTuple_GetItem(kwnames, i), args[1 + i]) != 0;
    if (!bad)
        r = PyObject_Call(method, none, kwargs);
    Py_XDECREF(kwargs);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return r;
}

/* Calls x.__dlpack__ with what the request needs; with_all = 0: as a producer from before 2023 takes it. */
static PyObject *ask(PyObject *x, PyObject *stream, PyObject *dl_device, int no_copy, int with_all)
{
    PyObject *slots[6] = {NULL, x}, **args = slots + 1;
    PyObject *names[4];
    Py_ssize_t n = 0;
    if (with_all) {
        names[n] = s_max_version, args[++n] = version_asked;
        if (dl_device)
            names[n] = s_dl_device, args[++n] = dl_device;
    }
    if (stream)
        names[n] = s_stream, args[++n] = stream;
    PyObject *no = with_all && no_copy ? PyBool_FromLong(0) : NULL;
    if (no)
        names[n] = s_copy, args[++n] = no;
    PyObject *kwnames = NULL;
    if (n == 1 && with_all) {
        kwnames = Py_NewRef(kw_version);
    } else if (n) {
        kwnames = PyTuple_New(n);
        for (Py_ssize_t i = 0; kwnames && i < n; i++)
            PyTuple_SetItem(kwnames, i, Py_NewRef(names[i]));
        if (!kwnames) {
            Py_XDECREF(no);
            return NULL;
        }
    }
    PyObject *r = dlf_call_method(s_dlpack, args, kwnames);
    Py_XDECREF(kwnames);
    Py_XDECREF(no);
    return r;
}

/* Old NumPy: read-only arrays refuse the only capsule they know, but the buffer protocol can say read-only. NULL: no better answer, error kept. */
static PyObject *readonly_buffer(PyObject *x, int host, const char *function)
{
    if (!host || !PyErr_ExceptionMatches(PyExc_BufferError) || !PyObject_CheckBuffer(x))
        return NULL;
    PyObject *error = dlf_take_error();
    PyObject *t = dlf_import_buffer(x, 1, function);
    if (t && (((DlfTensorObject *)t)->flags & DLF_FLAG_READ_ONLY)) {
        Py_DECREF(error);
        return t;
    }
    if (!t && !dlf_error_is_soft()) {
        Py_DECREF(error);
        return NULL;
    }
    Py_XDECREF(t);
    PyErr_Clear();
    dlf_set_error(error, NULL);
    return NULL;
}

static PyObject *by_protocol(PyObject *x, const Request *r, int traits, int *copied, const char *function)
{
    DlfDevice said = {DLF_DEVICE_CPU, 0};
    /* NumPy's arrays are on the CPU; asking costs as much as the rest. */
    const int known = traits & DLF_TRAIT_NDARRAY ? 0 : device_of(x, &said, function);
    if (known < 0 || ((traits & DLF_TRAIT_TORCH) && dlf_torch_refuse_negative(x, function)))
        return NULL;
    PyObject *dl_device = NULL;
    if (r->has_device && !same_device(said, r->device)) {
        const int64_t pair[2] = {r->device.type, r->device.id};
        if (!(dl_device = dlf_tuple(pair, 2)))
            return NULL;
    }
    PyObject *stream = stream_for(r, said.type);
    if (dl_device && r->device.type == DLF_DEVICE_CPU)
        stream = NULL; /* the standard: the producer synchronises */
    PyObject *capsule = ask(x, stream, dl_device, r->copy == 0, 1);
    PyObject *first = NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) && !dl_device) {
        first = dlf_take_error();
        capsule = ask(x, stream, NULL, 0, 0);
        if (!capsule) {
            PyObject *buffer = readonly_buffer(x, dlf_is_host(said.type), function);
            if (!buffer) {
                PyObject *second = dlf_take_error();
                dlf_set_error(second, first);
                return NULL;
            }
            Py_DECREF(first);
            return buffer;
        }
    }
    Py_XDECREF(first);
    Py_XDECREF(dl_device);
    if (!capsule)
        return NULL;
    if (Py_TYPE(capsule) != &PyCapsule_Type) {
        PyErr_Format(PyExc_TypeError, "%s: __dlpack__(), got %R, want a capsule", function, capsule);
        drop(capsule);
        return NULL;
    }
    PyObject *o = from_capsule(capsule, copied, function);
    drop(capsule);
    if (!o || dl_device || !known)
        return o;
    const DlfDevice sent = ((DlfTensorObject *)o)->t.device;
    if (!same_device(sent, said)) {
        char a[32], b[32];
        dlf_raise(DLF_KIND_DEVICE, "%s: device, got a tensor on %s from an object whose __dlpack_device__() says %s, want one answer", function, dlf_device_name(sent, a), dlf_device_name(said, b));
        Py_DECREF(o);
        return NULL;
    }
    return o;
}

PyObject *dlf_speaks(PyObject *self, PyObject *x)
{
    (void)self;
    const int speaks = dlf_speaks_dlpack(x);
    return speaks < 0 ? NULL : PyBool_FromLong(speaks);
}

int dlf_speaks_dlpack(PyObject *x)
{
    if (Py_TYPE(x) == dlf_tensor_type || Py_TYPE(x) == &PyCapsule_Type)
        return 1;
    int traits;
    const DlfExchangeApi *api = dlf_table_of(Py_TYPE(x), &traits);
    if (traits < 0)
        return -1;
    if (api || (traits & (DLF_TRAIT_NDARRAY | DLF_TRAIT_OURS)))
        return 1;
    if (dlf_py_has(x, PyType_FLAG_TYPE))
        return 0; /* the class of a tensor has the method, and is none */
    if (init_names())
        return -1;
    PyObject *method = PyObject_GetAttr(x, s_dlpack);
    if (method) {
        Py_DECREF(method);
        return 1;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return 0;
}

static PyObject *share(PyObject *x, const char *function)
{
    DlfTensorObject *t = dlf_open(x, function);
    return t ? dlf_tensor_share(t) : NULL;
}

static PyObject *import_shared(PyObject *x, const Request *r, int *copied, const char *function)
{
    int traits = 0, retry;
    if (Py_TYPE(x) == dlf_tensor_type)
        return share(x, function);
    if (Py_TYPE(x) == &PyCapsule_Type)
        return from_capsule(x, copied, function);
    const DlfExchangeApi *api = dlf_table_of(Py_TYPE(x), &traits);
    if (traits < 0)
        return NULL;
    if (traits & DLF_TRAIT_OURS)
        return share(x, function);
    if ((traits & DLF_TRAIT_NDARRAY) && !r->stream && (!r->has_device || dlf_is_host(r->device.type))) {
        DlfArrayView v;
        if (dlf_numpy_read(x, &v))
            return dlf_tensor_over_object(&v.t, &v.lay, v.flags, x);
    }
    if (init_names())
        return NULL;
    PyObject *failure = NULL;
    if (traits & DLF_TRAIT_MASKED)
        return dlf_raise(DLF_KIND_UNSUPPORTED, "%s: x, got a masked array, whose mask would be lost; pass x.filled(value) or x.data", function);
    if (api && !r->stream) {
        PyObject *o = (traits & DLF_TRAIT_TORCH ? from_torch : by_table)(x, api, copied, &retry, function);
        const int elsewhere = o && r->has_device && !same_device(((DlfTensorObject *)o)->t.device, r->device);
        if (o && !elsewhere)
            return o;
        Py_XDECREF(o);
        if (!o) {
            if (!retry)
                return NULL;
            failure = dlf_take_error();
        }
    }
    PyObject *method = traits & DLF_TRAIT_NDARRAY ? Py_NewRef(s_dlpack) : PyObject_GetAttr(x, s_dlpack);
    if (!method) {
        if (failure) {
            PyErr_Clear();
            dlf_set_error(failure, NULL);
        } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: x, got %R, want an object with __dlpack__ or a DLPack capsule; asarray() and from_buffer() take lists, scalars and buffers", function, Py_TYPE(x));
        }
        return NULL;
    }
    Py_DECREF(method);
    PyObject *o = by_protocol(x, r, traits, copied, function);
    Py_XDECREF(failure);
    return o;
}

/* The promises of device= and copy=, kept whatever the producer did. Takes the reference. */
static PyObject *settle(PyObject *o, const Request *r, int copied, const char *function)
{
    DlfTensorObject *t = (DlfTensorObject *)o;
    PyObject *result = o;
    char got[32], want[32];
    if (r->has_device && !same_device(t->t.device, r->device)) {
        result = dlf_raise(DLF_KIND_DEVICE, "%s: device, got a tensor on %s that its library did not move, want %s; move it there with its own library first", function,
                           dlf_device_name(t->t.device, got), dlf_device_name(r->device, want));
    } else if (r->copy == 0 && copied) {
        result = dlf_raise(DLF_KIND_COPY, "%s: copy=False, got a tensor that its producer had to copy; allow it with copy=None", function);
    } else if (r->copy == 0 && !dlf_is_aligned(t)) {
        result = dlf_raise(DLF_KIND_ALIGNMENT, "%s: copy=False, got data at an address that is not a multiple of the element's alignment; allow a copy with copy=None", function);
    } else if ((r->copy == 1 && (!copied || (t->flags & DLF_FLAG_READ_ONLY))) || !dlf_is_aligned(t)) {
        result = dlf_tensor_copy(t, t->t.dtype, function);
    }
    if (result != o)
        Py_DECREF(o);
    return result;
}

/* Without wishes, and the shortest way first for what is asked most. */
static PyObject *plain(PyObject *x, const char *function)
{
    PyObject *o = NULL;
    if (Py_TYPE(x) == dlf_array_type) {
        if ((o = dlf_numpy_import(x)) || PyErr_Occurred())
            return o;
    } else if (Py_TYPE(x) == dlf_tensor_type) {
        o = share(x, function);
    }
    const Request r = {.copy = -1};
    int copied = 0;
    if (!o)
        o = PyErr_Occurred() ? NULL : import_shared(x, &r, &copied, function);
    return o && ((uintptr_t)((DlfTensorObject *)o)->t.data & 15) ? settle(o, &r, copied, function) : o;
}

PyObject *dlf_import(PyObject *x, int copy, const char *function)
{
    if (copy < 0)
        return plain(x, function);
    const Request r = {.copy = copy};
    int copied = 0;
    PyObject *o = import_shared(x, &r, &copied, function);
    return o ? settle(o, &r, copied, function) : NULL;
}

PyObject *dlf_from_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static DlfSignature sig = {"from_dlpack", {"x", "device", "copy", "stream"}, 1, 1, 1, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    dlf_drain();
    if (nargs == 1 && !kwnames)
        return plain(args[0], "from_dlpack");
    Request r = {.copy = -1};
    int copied = 0;
    if (dlf_parse(&sig, args, nargs, kwnames, a))
        return NULL;
    if (a[1] && a[1] != Py_None) {
        if (dlf_device_arg(a[1], &r.device))
            return NULL;
        r.has_device = 1;
    }
    if ((r.copy = dlf_optional_bool(a[2])) == -2)
        return NULL;
    if (a[3] && a[3] != Py_Ellipsis)
        r.stream = a[3];
    PyObject *o = import_shared(a[0], &r, &copied, "from_dlpack");
    return o ? settle(o, &r, copied, "from_dlpack") : NULL;
}
