/* Tensors out: __dlpack__, capsules, and what both kinds can say. */
#include "core.h"

#include <string.h>

/* PyCapsule keeps the pointer, so the names are static, and mostly told by their address. */
static const char versioned_name[] = DLF_CAPSULE_VERSIONED, legacy_name[] = DLF_CAPSULE_LEGACY;

/* Comparing first sets no error over one in flight. */
static void capsule_destroy(PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    if (name == NULL)
        return;
    if (name == versioned_name || strcmp(name, versioned_name) == 0)
        dlf_delete_versioned(PyCapsule_GetPointer(capsule, name));
    else if (name == legacy_name || strcmp(name, legacy_name) == 0)
        dlf_delete_legacy(PyCapsule_GetPointer(capsule, name));
}

DlfManagedTensorVersioned *dlf_export(DlfTensorObject *t, uint64_t extra_flags)
{
    DlfStorage *st = dlf_storage_of(t);
    DlfManagedTensorVersioned *m = st ? dlf_export_versioned(&t->t, st, t->flags | extra_flags) : NULL;
    if (!m)
        PyErr_NoMemory();
    return m;
}

static PyObject *versioned_capsule(DlfTensorObject *t, uint64_t extra_flags)
{
    DlfManagedTensorVersioned *m = dlf_export(t, extra_flags);
    PyObject *c = m ? PyCapsule_New(m, versioned_name, capsule_destroy) : NULL;
    if (m && !c)
        dlf_delete_versioned(m);
    return c;
}

static PyObject *legacy_capsule(DlfTensorObject *t)
{
    DlfStorage *st = dlf_storage_of(t);
    DlfManagedTensor *m = st ? dlf_export_legacy(&t->t, st) : NULL;
    PyObject *c = m ? PyCapsule_New(m, legacy_name, capsule_destroy) : NULL;
    if (m && !c)
        dlf_delete_legacy(m);
    return m ? c : PyErr_NoMemory();
}

/* Two ints in a tuple or another sequence of two: 0, or -1 with TypeError. */
static int pair(PyObject *o, int64_t out[2], const char *what)
{
    /* Versions are constants of those who ask, and a tuple of ints does not change. */
    static PyObject *seen;
    static int64_t numbers[2];
    if (o == seen) {
        out[0] = numbers[0];
        out[1] = numbers[1];
        return 0;
    }
    const Py_ssize_t n = Py_TYPE(o) == &PyTuple_Type || dlf_py_has(o, PyType_FLAG_TUPLE) ? PyTuple_Size(o) : -1;
    if (n != 2) {
        PyErr_Format(PyExc_TypeError, "__dlpack__: %s, got %R, want None or a tuple of two ints", what, o);
        return -1;
    }
    PyObject *first = PyTuple_GetItem(o, 0), *second = PyTuple_GetItem(o, 1);
    if (dlf_int64(first, out, "__dlpack__", what) || dlf_int64(second, out + 1, "__dlpack__", what))
        return -1;
    if (Py_TYPE(o) == &PyTuple_Type && Py_TYPE(first) == &PyLong_Type && Py_TYPE(second) == &PyLong_Type) {
        PyObject *old = seen;
        seen = Py_NewRef(o);
        numbers[0] = out[0];
        numbers[1] = out[1];
        Py_XDECREF(old);
    }
    return 0;
}

/* What a consumer's stream means for a tensor of ours: 0, or -1 with the refusal. */
static int accept_stream(const DlfTensorObject *t, PyObject *stream)
{
    const int32_t type = t->t.device.type;
    char name[32];
    int64_t s;
    if (stream == NULL || stream == Py_None)
        return 0;
    if (dlf_int64(stream, &s, "__dlpack__", "stream"))
        return -1;
    if (dlf_is_host(type))
        return 0; /* host memory has no pending work */
    dlf_device_name(t->t.device, name);
    if (type == DLF_DEVICE_CUDA || type == DLF_DEVICE_CUDA_MANAGED) {
        if (s == 0)
            dlf_raise(DLF_KIND_DEVICE, "__dlpack__: stream, got 0 for %s, want 1 (legacy default), 2 (per-thread default), -1 (no order) or a stream's address", name);
        else if (s != -1 && s != 1)
            dlf_raise(DLF_KIND_DEVICE, "__dlpack__: stream, got %lld for %s, want 1, -1 or None: the tensor was imported on stream 1 and this build cannot order other streams", (long long)s, name);
        else
            return 0;
    } else if (type == DLF_DEVICE_ROCM) {
        if (s == 0 || s == -1)
            return 0;
        dlf_raise(DLF_KIND_DEVICE, "__dlpack__: stream, got %lld for %s, want 0, -1 or None: this build cannot order other streams", (long long)s, name);
    } else {
        dlf_raise(DLF_KIND_DEVICE, "__dlpack__: stream, got %lld for %s, want None: dlferry has no stream rule for this device", (long long)s, name);
    }
    return -1;
}

static int accept_device(const DlfTensorObject *t, PyObject *dl_device, int64_t want[2])
{
    char name[32], other[32];
    if (!dl_device || dl_device == Py_None)
        return 0;
    if (pair(dl_device, want, "dl_device"))
        return -1;
    if ((want[0] == t->t.device.type && want[1] == t->t.device.id) || (want[0] == DLF_DEVICE_CPU && dlf_is_host(t->t.device.type)))
        return 0;
    const DlfDevice d = {(int32_t)want[0], (int32_t)want[1]};
    dlf_raise(DLF_KIND_DEVICE, "__dlpack__: dl_device, got %s for a tensor on %s, want the tensor's own device", dlf_device_name(d, other), dlf_device_name(t->t.device, name));
    return -1;
}

/*
 * The questions asked last: libraries ask with constants of theirs, the same objects each time. Kept are those that a tensor of the CPU answers with a versioned
 * capsule and without a copy, whatever it is otherwise.
 */
#define MOST_NAMES 4
static struct {
    PyObject *kwnames;
    PyObject *values[MOST_NAMES];
} asked_before[2];
static unsigned next_to_forget;

/* None, or an int, or a pair of ints: what cannot change while it is held. */
static int is_constant(PyObject *o)
{
    if (o == Py_None || Py_TYPE(o) == &PyLong_Type)
        return 1;
    return Py_TYPE(o) == &PyTuple_Type && PyTuple_Size(o) == 2 && Py_TYPE(PyTuple_GetItem(o, 0)) == &PyLong_Type && Py_TYPE(PyTuple_GetItem(o, 1)) == &PyLong_Type;
}

static void keep_question(PyObject *const *args, PyObject *kwnames)
{
    const Py_ssize_t n = Py_TYPE(kwnames) == &PyTuple_Type ? PyTuple_Size(kwnames) : 0;
    if (n < 1 || n > MOST_NAMES)
        return;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_constant(args[i]))
            return;
    PyObject *old[MOST_NAMES + 1];
    const unsigned at = next_to_forget++ % 2;
    old[MOST_NAMES] = asked_before[at].kwnames;
    asked_before[at].kwnames = Py_NewRef(kwnames);
    for (int i = 0; i < MOST_NAMES; i++) {
        old[i] = asked_before[at].values[i];
        asked_before[at].values[i] = i < n ? Py_NewRef(args[i]) : NULL;
    }
    for (int i = 0; i <= MOST_NAMES; i++)
        Py_XDECREF(old[i]);
}

static int is_kept(PyObject *const *args, PyObject *kwnames)
{
    for (int at = 0; at < 2; at++) {
        PyObject *const *values = asked_before[at].values;
        int i = 0;
        if (asked_before[at].kwnames != kwnames)
            continue;
        while (i < MOST_NAMES && values[i] && values[i] == args[i])
            i++;
        if (i == MOST_NAMES || !values[i])
            return 1;
    }
    return 0;
}

PyObject *dlf_dlpack(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static DlfSignature sig = {"__dlpack__", {"stream", "max_version", "dl_device", "copy"}, 0, 0, 0, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    int64_t version[2] = {0, 0}, device[2];
    char name[48];
    DlfTensorObject *t = (DlfTensorObject *)o;
    dlf_drain();
    const int short_question = nargs == 0 && kwnames && t->t.device.type == DLF_DEVICE_CPU;
    if (short_question && is_kept(args, kwnames) && t->kept)
        return versioned_capsule(t, 0);
    if (dlf_parse(&sig, args, nargs, kwnames, a))
        return NULL;
    if (accept_stream(t, a[0]))
        return NULL;
    const int asked = a[1] && a[1] != Py_None;
    if (asked && pair(a[1], version, "max_version"))
        return NULL;
    if (accept_device(t, a[2], device))
        return NULL;
    const int copy = dlf_optional_bool(a[3]);
    /* Last, since reading the arguments may run code that closes the tensor. */
    if (copy == -2 || !dlf_open(o, "__dlpack__"))
        return NULL;
    const int versioned = version[0] >= 1;
    if (!versioned) {
        if (asked && t->t.dtype.code > DLF_CODE_BOOL)
            return dlf_raise(DLF_KIND_DTYPE, "__dlpack__: dtype, got %s, want one that DLPack 0.x has; ask for max_version=(1, 1)", dlf_dtype_name(t->t.dtype, name));
        if (t->flags & DLF_FLAG_SUBBYTE_PADDED)
            return dlf_raise(DLF_KIND_DTYPE, "__dlpack__: dtype, got padded %s, want max_version=(1, 1) or later: a legacy capsule cannot say that it is padded", dlf_dtype_name(t->t.dtype, name));
        if ((t->flags & DLF_FLAG_READ_ONLY) && copy != 1)
            return dlf_raise(DLF_KIND_READ_ONLY, "__dlpack__: tensor, got a read-only one for a legacy capsule, which cannot say so; ask for max_version=(1, 0) or copy=True");
    }
    if (short_question && versioned && copy != 1)
        keep_question(args, kwnames);
    if (copy != 1)
        return versioned ? versioned_capsule(t, 0) : legacy_capsule(t);
    DlfTensorObject *c = (DlfTensorObject *)dlf_tensor_copy(t, t->t.dtype, "__dlpack__");
    if (!c)
        return NULL;
    PyObject *capsule = versioned ? versioned_capsule(c, DLF_FLAG_IS_COPIED) : legacy_capsule(c);
    Py_DECREF(c);
    return capsule;
}

PyObject *dlf_dlpack_device(PyObject *o, PyObject *none)
{
    (void)none;
    const DlfDevice d = ((DlfTensorObject *)o)->t.device;
    static PyObject *cpu;
    const int64_t pair[2] = {d.type, d.id};
    if (d.type != DLF_DEVICE_CPU || d.id)
        return dlf_tuple(pair, 2);
    if (!cpu && !(cpu = dlf_tuple(pair, 2)))
        return NULL;
    return Py_NewRef(cpu);
}
