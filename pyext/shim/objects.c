/* The Python objects that stand for dtypes and devices, and the callables that the Python layer installed at import. */
#include "core.h"

#include <string.h>

static PyObject *cpu;

static struct {
    PyObject *dtype, *dtype_of_key, *device, *asarray, *convert, *torch_samples, *like;
} hooks;
#define HOOKS 7

/* key -> DType, name -> DType, (type << 32 | id) -> Device: interned, so never evicted. */
static PyObject *dtypes_by_key, *dtypes_by_name, *devices;

/* The dtypes seen last, before the dictionary: no int object, no hash. */
#define RECENT 16
static struct {
    uint32_t key;
    PyObject *object;
} recent[RECENT];

/* What dtypes were lately given as: constants of the caller, found by their address. Strings and our own objects alone: they do not change. */
static struct {
    PyObject *given;
    DlfDataType dt;
} given[RECENT];

static uint32_t key_of(DlfDataType dt) { return dt.code | (uint32_t)dt.bits << 8 | (uint32_t)dt.lanes << 16; }

PyObject *dlf_install(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)self;
    static DlfSignature sig = {"_install", {"dtype", "dtype_of_key", "device", "asarray", "convert", "torch_samples", "like"}, 0, 0, HOOKS, {0}, NULL, 0, {0}};
    PyObject *a[DLF_MAX_ARGS];
    if (dlf_parse(&sig, args, nargs, kwnames, a))
        return NULL;
    PyObject **into[] = {&hooks.dtype, &hooks.dtype_of_key, &hooks.device, &hooks.asarray, &hooks.convert, &hooks.torch_samples, &hooks.like};
    for (int i = 0; i < HOOKS; i++) {
        if (!a[i])
            return dlf_raise(DLF_KIND_TYPE, "_install: argument '%s' is missing", sig.names[i]);
    }
    for (int i = 0; i < HOOKS; i++) {
        PyObject *old = *into[i];
        *into[i] = Py_NewRef(a[i]);
        Py_XDECREF(old);
    }
    /* Imported again, the package has new classes. */
    PyObject **caches[] = {&dtypes_by_key, &dtypes_by_name, &devices};
    for (int i = 0; i < 3; i++) {
        PyObject *fresh = PyDict_New(), *old = *caches[i];
        if (!fresh)
            return NULL;
        *caches[i] = fresh;
        Py_XDECREF(old);
    }
    for (int i = 0; i < RECENT; i++) {
        PyObject *old = recent[i].object;
        recent[i].object = NULL;
        Py_XDECREF(old);
    }
    for (int i = 0; i < RECENT; i++) {
        PyObject *old = given[i].given;
        given[i].given = NULL;
        Py_XDECREF(old);
    }
    PyObject *old = cpu;
    cpu = NULL;
    Py_XDECREF(old);
    return Py_NewRef(Py_None);
}

static int ready(void)
{
    if (devices)
        return 1;
    PyErr_SetString(PyExc_RuntimeError, "dlferry: the extension was loaded without its package; import dlferry");
    return 0;
}

PyObject *dlf_hook_asarray(void) { return ready() ? hooks.asarray : NULL; }
PyObject *dlf_hook_convert(void) { return ready() ? hooks.convert : NULL; }
PyObject *dlf_hook_torch_samples(void) { return ready() ? hooks.torch_samples : NULL; }
PyObject *dlf_hook_like(void) { return ready() ? hooks.like : NULL; }

PyObject *dlf_dtype_object(DlfDataType dt)
{
    const uint32_t key = key_of(dt);
    const uint32_t slot = (key ^ key >> 8 ^ key >> 3) % RECENT;
    if (recent[slot].object && recent[slot].key == key)
        return Py_NewRef(recent[slot].object);
    if (!ready())
        return NULL;
    PyObject *k = PyLong_FromUnsignedLongLong(key);
    if (!k)
        return NULL;
    PyObject *o = PyDict_GetItemWithError(dtypes_by_key, k);
    if (o) {
        Py_INCREF(o);
    } else if (!PyErr_Occurred() && (o = PyObject_CallFunctionObjArgs(hooks.dtype_of_key, k, NULL)) && PyDict_SetItem(dtypes_by_key, k, o)) {
        Py_DECREF(o);
        o = NULL;
    }
    Py_DECREF(k);
    if (o) {
        PyObject *old = recent[slot].object;
        recent[slot].key = key;
        recent[slot].object = Py_NewRef(o);
        Py_XDECREF(old);
    }
    return o;
}

static int key_from(PyObject *dtype, DlfDataType *out)
{
    PyObject *k = PyObject_GetAttrString(dtype, "key");
    if (!k)
        return -1;
    const unsigned long long key = PyLong_AsUnsignedLongLong(k);
    Py_DECREF(k);
    if (key == (unsigned long long)-1 && PyErr_Occurred())
        return -1;
    *out = (DlfDataType){(uint8_t)key, (uint8_t)(key >> 8), (uint16_t)(key >> 16)};
    return 0;
}

static size_t place_of(PyObject *o) { return ((uintptr_t)o >> 4 ^ (uintptr_t)o >> 9) % RECENT; }

static void keep_given(PyObject *o, DlfDataType dt)
{
    PyObject *old = given[place_of(o)].given;
    given[place_of(o)].given = Py_NewRef(o);
    given[place_of(o)].dt = dt;
    Py_XDECREF(old);
}

int dlf_dtype_arg(PyObject *o, DlfDataType *out)
{
    if (!o) {
        *out = (DlfDataType){DLF_CODE_FLOAT, 32, 1};
        return 0;
    }
    if (given[place_of(o)].given == o) {
        *out = given[place_of(o)].dt;
        return 0;
    }
    if (!ready())
        return -1;
    const int is_name = Py_TYPE(o) == &PyUnicode_Type; /* a subclass may hash and compare as it likes */
    PyObject *known = is_name ? PyDict_GetItemWithError(dtypes_by_name, o) : NULL;
    if (known) {
        if (key_from(known, out))
            return -1;
        keep_given(o, *out);
        return 0;
    }
    if (is_name && PyErr_Occurred())
        return -1;
    PyObject *dtype = PyObject_CallFunctionObjArgs(hooks.dtype, o, NULL);
    if (!dtype)
        return -1;
    int bad = key_from(dtype, out);
    /* Spellings are few, but a program that makes names up must not grow the table for ever. */
    if (!bad && is_name && PyDict_Size(dtypes_by_name) < 256)
        bad = PyDict_SetItem(dtypes_by_name, o, dtype);
    if (!bad && dtype == o) /* one of ours is its own answer */
        keep_given(o, *out);
    Py_DECREF(dtype);
    return bad;
}

PyObject *dlf_device_object(DlfDevice d)
{
    if (d.type == DLF_DEVICE_CPU && d.id == 0 && cpu)
        return Py_NewRef(cpu);
    if (!ready())
        return NULL;
    PyObject *k = PyLong_FromLongLong((int64_t)d.type << 32 | (uint32_t)d.id);
    if (!k)
        return NULL;
    PyObject *o = PyDict_GetItemWithError(devices, k);
    if (o) {
        Py_INCREF(o);
    } else if (!PyErr_Occurred()) {
        const int64_t pair[2] = {d.type, d.id};
        PyObject *t = dlf_tuple(pair, 2);
        if (t && (o = PyObject_CallFunctionObjArgs(hooks.device, t, NULL)) && PyDict_SetItem(devices, k, o)) {
            Py_DECREF(o);
            o = NULL;
        }
        Py_XDECREF(t);
    }
    Py_DECREF(k);
    if (o && d.type == DLF_DEVICE_CPU && d.id == 0)
        cpu = Py_NewRef(o);
    return o;
}

int dlf_device_arg(PyObject *o, DlfDevice *out)
{
    *out = (DlfDevice){DLF_DEVICE_CPU, 0};
    if (!o || o == Py_None)
        return 0;
    if (dlf_py_has(o, PyType_FLAG_UNICODE) && PyUnicode_CompareWithASCIIString(o, "cpu") == 0)
        return 0;
    if (!ready())
        return -1;
    PyObject *device = PyObject_CallFunctionObjArgs(hooks.device, o, NULL);
    if (!device)
        return -1;
    int64_t pair[2];
    for (int i = 0; i < 2; i++) {
        PyObject *v = PySequence_GetItem(device, i);
        const int bad = !v || dlf_int64(v, pair + i, "device", "id");
        Py_XDECREF(v);
        if (bad) {
            Py_DECREF(device);
            return -1;
        }
    }
    Py_DECREF(device);
    *out = (DlfDevice){(int32_t)pair[0], (int32_t)pair[1]};
    return 0;
}

const char *dlf_device_name(DlfDevice d, char out[32])
{
    static const char *const names[] = {[DLF_DEVICE_CPU] = "cpu", [DLF_DEVICE_CUDA] = "cuda", [DLF_DEVICE_CUDA_HOST] = "cuda_host", [DLF_DEVICE_OPENCL] = "opencl", [DLF_DEVICE_VULKAN] = "vulkan",
        [DLF_DEVICE_METAL] = "metal", [DLF_DEVICE_VPI] = "vpi", [DLF_DEVICE_ROCM] = "rocm", [DLF_DEVICE_ROCM_HOST] = "rocm_host", [DLF_DEVICE_EXT_DEV] = "ext_dev", [DLF_DEVICE_CUDA_MANAGED] = "cuda_managed",
        [DLF_DEVICE_ONEAPI] = "oneapi", [DLF_DEVICE_WEBGPU] = "webgpu", [DLF_DEVICE_HEXAGON] = "hexagon", [DLF_DEVICE_MAIA] = "maia", [DLF_DEVICE_TRN] = "trn", [DLF_DEVICE_TPU] = "tpu",
        [DLF_DEVICE_TPU_HOST] = "tpu_host", [DLF_DEVICE_ASCEND] = "ascend"};
    const char *name = d.type >= 0 && d.type <= DLF_DEVICE_ASCEND ? names[d.type] : NULL;
    if (d.type == DLF_DEVICE_CPU)
        return "cpu";
    if (name)
        snprintf(out, 32, "%s:%d", name, d.id);
    else
        snprintf(out, 32, "device%d:%d", d.type, d.id);
    return out;
}
