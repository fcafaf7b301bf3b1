/*
 * What PyTorch's exchange table does not ask, and `torch.Tensor.__dlpack__` does: whether a tensor requires grad, is conjugate or negative. Asking by the
 * methods costs more than the exchange. All three are in the tensor's implementation object, whose layout is private: so it is learned from tensors made for
 * it, whose dispatch keys PyTorch tells, and where nothing or more than one place fits, the methods are asked.
 */
#define _GNU_SOURCE
#include "core.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    int known, attempts;
    size_t impl; /* in the Python object: the pointer to the implementation */
    size_t keys; /* in the implementation: the dispatch keys */
    size_t meta; /* in the implementation: the pointer to what autograd keeps; NULL for most tensors */
    uint64_t bits; /* of the keys: conjugate, negative */
    int (*requires_grad)(const void *implementation); /* a C++ bool: the lowest byte; or NULL */
} layout;

#define MAX_SAMPLES 32
#define IMPL_BYTES 256
typedef struct {
    PyObject *tensor;
    uint64_t keys;
    int requires_grad;
    uint64_t words[IMPL_BYTES / 8];
} Sample;

static uint64_t word_at(const void *p, size_t offset)
{
    uint64_t v;
    memcpy(&v, (const char *)p + offset, sizeof v);
    return v;
}

/* Reads what may be no memory at all. */
static int read_memory(void *into, uint64_t address, size_t n)
{
#ifdef __linux__
    struct iovec local = {into, n}, remote = {(void *)(uintptr_t)address, n};
    return address && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -1;
#else
    (void)into, (void)address, (void)n;
    return -1;
#endif
}

/* The only word that is as it should be in all samples, or -1. */
static int only_word(const Sample *samples, int n, int (*fits)(const Sample *, uint64_t))
{
    int found = -1;
    for (int w = 0; w < IMPL_BYTES / 8; w++) {
        int all = 1;
        for (int i = 0; all && i < n; i++)
            all = fits(&samples[i], samples[i].words[w]);
        if (all && found >= 0)
            return -1;
        if (all)
            found = w;
    }
    return found;
}

static int has_keys(const Sample *s, uint64_t word) { return word == s->keys; }
static int has_meta(const Sample *s, uint64_t word) { return s->requires_grad ? word > 4096 && word % 8 == 0 : word == 0; }

/*
 * The function that tells of tensors with something for autograd, views most often: a method of the implementation, found by its name in the library whose
 * class it is. It must answer right for the samples.
 */
static void learn_function(const Sample *samples, int n)
{
    Dl_info where;
    int (*requires_grad)(const void *);
    if (!dladdr((void *)(uintptr_t)samples[0].words[0], &where) || !where.dli_fname) /* the first word points to the methods of its class */
        return;
    void *library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return;
    *(void **)&requires_grad = dlsym(library, "_ZNK3c1010TensorImpl13requires_gradEv"); /* bool c10::TensorImpl::requires_grad() const */
    dlclose(library);
    for (int i = 0; requires_grad && i < n; i++)
        if ((requires_grad((const void *)(uintptr_t)word_at(samples[i].tensor, layout.impl)) & 0xff) != samples[i].requires_grad)
            return;
    layout.requires_grad = requires_grad;
}

/* samples: ((tensor, keys, requires_grad), ...), of which those that do not require grad are no views of others; bits: of conjugate and negative. */
static int learn(PyObject *samples, uint64_t bits, size_t object_bytes)
{
    static Sample s[MAX_SAMPLES];
    const Py_ssize_t n = PyTuple_Size(samples);
    if (n < 8 || n > MAX_SAMPLES || !bits)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(samples, i);
        if (!item || PyTuple_Size(item) != 3)
            return -1;
        s[i].tensor = PyTuple_GetItem(item, 0);
        s[i].keys = PyLong_AsUnsignedLongLong(PyTuple_GetItem(item, 1));
        s[i].requires_grad = PyObject_IsTrue(PyTuple_GetItem(item, 2));
        if (PyErr_Occurred())
            return -1;
    }
    int found = 0;
    for (size_t at = sizeof(PyObject); at + 8 <= object_bytes; at += 8) {
        int readable = 1;
        for (Py_ssize_t i = 0; readable && i < n; i++)
            readable = read_memory(s[i].words, word_at(s[i].tensor, at), IMPL_BYTES) == 0;
        if (!readable)
            continue;
        const int keys = only_word(s, (int)n, has_keys), meta = only_word(s, (int)n, has_meta);
        if (keys < 0 || meta < 0)
            continue;
        layout.impl = at;
        layout.keys = 8 * (size_t)keys;
        layout.meta = 8 * (size_t)meta;
        found++;
    }
    layout.bits = bits;
    if (found != 1)
        return -1;
    if (!read_memory(s[0].words, word_at(s[0].tensor, layout.impl), IMPL_BYTES))
        learn_function(s, (int)n);
    return 0;
}

/* Under a mode that makes other tensors of all tensors nothing can be learned; so more than once. */
#define ATTEMPTS 4

__attribute__((cold, noinline)) static void try_to_learn(void)
{
    layout.attempts++;
    PyObject *hook = dlf_hook_torch_samples();
    PyObject *told = hook ? PyObject_CallNoArgs(hook) : NULL; /* (samples, bits, bytes of the Python object) */
    if (told && told != Py_None && PyTuple_Size(told) == 3) {
        const uint64_t bits = PyLong_AsUnsignedLongLong(PyTuple_GetItem(told, 1));
        const uint64_t bytes = PyLong_AsUnsignedLongLong(PyTuple_GetItem(told, 2));
        if (!PyErr_Occurred() && bytes <= 256)
            layout.known = learn(PyTuple_GetItem(told, 0), bits, bytes) == 0;
    }
    Py_XDECREF(told);
}

PyObject *dlf_torch_known(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyBool_FromLong(layout.known);
}

/* 1 yes, 0 no, -1 after an error. */
static int says(PyObject *x, const char *attribute, int call)
{
    PyObject *v = PyObject_GetAttrString(x, attribute);
    if (v && call) {
        PyObject *r = PyObject_CallNoArgs(v);
        Py_DECREF(v);
        v = r;
    }
    const int truth = v ? PyObject_IsTrue(v) : -1;
    Py_XDECREF(v);
    return truth;
}

int dlf_torch_refuse_negative(PyObject *x, const char *function)
{
    const int negative = says(x, "is_neg", 1);
    if (negative > 0)
        dlf_raise(DLF_KIND_UNSUPPORTED, "%s: torch tensor, got one with the negative bit set, whose memory holds the opposite values; pass x.resolve_neg()", function);
    return negative;
}

__attribute__((cold, noinline)) static int ask(PyObject *x, uint8_t code, const char *function)
{
    const int differentiable = code != DLF_CODE_INT && code != DLF_CODE_UINT && code != DLF_CODE_BOOL;
    const int grad = differentiable ? says(x, "requires_grad", 0) : 0;
    const int conj = grad == 0 && (code == DLF_CODE_COMPLEX || code == DLF_CODE_BCOMPLEX) ? says(x, "is_conj", 1) : 0;
    if (grad < 0 || conj < 0)
        return -1;
    if (grad || conj) {
        dlf_raise(DLF_KIND_UNSUPPORTED, "%s: torch tensor, got one that requires grad or is conjugate, want a plain one; pass x.detach() or x.resolve_conj()", function);
        return 1;
    }
    return dlf_torch_refuse_negative(x, function) ? -1 : 0;
}

int dlf_torch_check(PyObject *x, uint8_t code, const char *function)
{
    if (!layout.known && layout.attempts < ATTEMPTS) {
        try_to_learn();
        if (PyErr_Occurred()) {
            if (!dlf_error_is_soft())
                return -1;
            PyErr_Clear();
        }
    }
    if (layout.known) {
        const void *impl = (const void *)(uintptr_t)word_at(x, layout.impl);
        if (!(word_at(impl, layout.keys) & layout.bits)) {
            if (!word_at(impl, layout.meta) || code == DLF_CODE_INT || code == DLF_CODE_UINT || code == DLF_CODE_BOOL)
                return 0;
            if (layout.requires_grad && !(layout.requires_grad(impl) & 0xff))
                return 0;
        }
    }
    return ask(x, code, function);
}

/* No managed tensor is made: PyTorch's tensors are never read-only, and the object keeps the memory. */
int dlf_torch_read(PyObject *x, const DlfExchangeApi *api, DlfTensor *t, DlfLayout *lay, int *why, const char *function)
{
    DlfRefusal refusal;
    if (api->dltensor_from_py_object_no_sync(x, t)) {
        if (!PyErr_Occurred())
            dlf_raise(DLF_KIND_UNSUPPORTED, "%s: exchange table of the type, got a failure without a reason", function);
        *why = dlf_error_is_soft() ? 1 : -1;
        return 0;
    }
    *why = dlf_torch_check(x, t->dtype.code, function);
    if (*why)
        return 0;
    if (!dlf_check(t, 0, lay, &refusal))
        return 1;
    dlf_raise_refusal(function, t, 0, &refusal);
    *why = -1;
    return 0;
}
