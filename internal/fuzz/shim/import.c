/*
 * A libFuzzer target for what the extension does with tensors of others: descriptions, capsules and buffers in, views, copies and exports out. Whatever the
 * description says, the outcome is a tensor that an arithmetic of 128 bits agrees with, or an exception; the owner is called once; nothing is left.
 *
 * The shim's sources are linked as they are, over the small Python of the folder above. With -DREPLAY it has a main of its own that runs corpus.txt.
 */
#include "../python.h"

#include <stdlib.h>
#include <string.h>

/* --- the input --- */

typedef struct {
    const uint8_t *at, *end;
} Source;

static uint8_t byte(Source *s) { return s->at < s->end ? *s->at++ : 0; }

static uint64_t word(Source *s)
{
    uint64_t v = 0;
    for (int i = 0; i < 64; i += 8)
        v |= (uint64_t)byte(s) << i;
    return v;
}

/* Small numbers and those at the edges take one byte. */
static int64_t number(Source *s)
{
    const uint8_t b = byte(s);
    if (b < 192)
        return (int64_t)b - 32;
    if (b == 255)
        return (int64_t)word(s);
    const int64_t power = (int64_t)(UINT64_C(1) << (b - 192));
    return byte(s) & 1 ? power : (int64_t)((uint64_t)power - 1);
}

static int64_t extent(Source *s)
{
    const uint8_t b = byte(s);
    return b < 240 ? b % 6 : number(s);
}

/* --- the producer --- */

#define MEMORY 4096
static char memory[MEMORY];
static int deleted;
static void *given;

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s; exception: %s\n", what, fake_error());
    abort();
}

static void delete_versioned(DlfManagedTensorVersioned *m)
{
    must(m == given, "the deleter gets what was given");
    deleted++;
}

static void delete_legacy(DlfManagedTensor *m)
{
    must((void *)m == given, "the deleter gets what was given");
    deleted++;
}

static int64_t *array(Source *s, int n, int64_t (*next)(Source *))
{
    int64_t *a = malloc((size_t)n * sizeof *a); /* as long as it has to be, so that a read beyond is seen */
    for (int i = 0; i < n; i++)
        a[i] = next(s);
    return a;
}

static DlfTensor tensor(Source *s)
{
    static const uint8_t codes[] = {DLF_CODE_INT, DLF_CODE_UINT, DLF_CODE_FLOAT, DLF_CODE_BFLOAT, DLF_CODE_COMPLEX, DLF_CODE_BOOL, DLF_CODE_FLOAT8_E4M3, DLF_CODE_FLOAT4_E2M1FN};
    static const uint8_t widths[] = {8, 16, 32, 64, 128, 4, 1, 6};
    const uint8_t how = byte(s);
    const uint8_t kind = byte(s);
    DlfTensor t = {.device = {DLF_DEVICE_CPU, 0}, .dtype = {codes[kind & 7], widths[kind >> 3 & 7], 1 + (kind >> 6)}};
    if (how & 1)
        t.dtype = (DlfDataType){byte(s), byte(s), (uint16_t)number(s)};
    if (how & 2)
        t.device = (DlfDevice){(int32_t)number(s), (int32_t)number(s)};
    t.data = how & 4 ? (void *)(uintptr_t)number(s) : memory + (uint16_t)(byte(s) << 4 | (kind & 15)) % MEMORY;
    if (how & 8)
        t.byte_offset = (uint64_t)number(s);
    const uint8_t n = byte(s);
    t.ndim = n < 224 ? n % 6 : n < 248 ? 41 + n % 24 : (int32_t)number(s);
    const int dims = t.ndim < 0 || t.ndim > DLF_MAX_NDIM ? 1 : t.ndim;
    t.shape = array(s, dims, extent);
    if (how & 16)
        t.strides = array(s, dims, number);
    return t;
}

/* --- the reference --- */

typedef __int128 Wide;
typedef struct {
    int valid;
    Wide size, item, low, high;
    int own; /* all elements lie in memory */
} Expected;

static int is_one_of(int32_t x, const char *set) { return x > 0 && x < 32 && strchr(set, x) != NULL; }

static int is_pointers(int32_t type) { return is_one_of(type, "\1\2\3\12\13\15"); }

static int fits(Wide x) { return x <= INT64_MAX && x > INT64_MIN; }

static Expected expect(const DlfTensor *t, uint64_t flags)
{
    const Wide bits = (Wide)t->dtype.bits * t->dtype.lanes;
    Expected e = {0};
    Wide product, step = 1;
    if (t->ndim < 0 || t->ndim > 64 || (t->ndim && !t->shape) || bits == 0 || t->device.type < 1)
        return e;
    if (t->device.id < 0 && !is_one_of(t->device.type, "\1\3\13"))
        return e;
    e.item = t->dtype.bits < 8 && flags & DLF_FLAG_SUBBYTE_PADDED ? t->dtype.lanes : bits / 8;
    if (e.item * 8 != bits && !(t->dtype.bits < 8 && flags & DLF_FLAG_SUBBYTE_PADDED))
        return e;
    e.size = 1;
    product = e.item;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] < 0 || (t->shape[i] && !fits(product * t->shape[i])))
            return e;
        e.size *= t->shape[i];
        product *= t->shape[i] ? t->shape[i] : 1;
    }
    if (e.size)
        e.high = e.item;
    for (int i = t->ndim - 1; i >= 0 && e.size; i--) {
        const Wide stride = t->strides ? t->strides[i] : step;
        const Wide reach = stride * (t->shape[i] - 1);
        if (!fits(reach) || !fits(reach * e.item)) /* so that no sum below overflows even 128 bits */
            return e;
        *(reach < 0 ? &e.low : &e.high) += reach * e.item;
        if (!fits(e.low) || !fits(e.high))
            return e;
        step *= t->shape[i];
    }
    const Wide first = (Wide)(uintptr_t)t->data + t->byte_offset;
    if (t->byte_offset > INT64_MAX || (e.size && !t->data))
        return e;
    if (is_pointers(t->device.type)) {
        if (first > UINT64_MAX || first + e.high > UINT64_MAX || first + e.low < 0)
            return e;
    } else if (!fits(e.high + t->byte_offset) || (is_one_of(t->device.type, "\4\7\10\17") && (Wide)t->byte_offset + e.low < 0)) {
        return e;
    }
    e.valid = 1;
    e.own = first + e.low >= (Wide)(uintptr_t)memory && first + e.high <= (Wide)(uintptr_t)(memory + MEMORY);
    return e;
}

/* --- what is done with a tensor --- */

static void same(const DlfTensorObject *t, const DlfTensor *x, const Expected *e)
{
    Wide step = 1;
    must(t->size == e->size && t->itemsize == e->item, "size and itemsize are as computed");
    must(t->t.ndim == x->ndim && dlf_same_dtype(t->t.dtype, x->dtype), "ndim and dtype are the producer's");
    for (int i = x->ndim - 1; i >= 0; i--) {
        must(t->t.shape[i] == x->shape[i], "the shape is the producer's");
        must(t->t.strides[i] == (x->strides ? x->strides[i] : (int64_t)step), "the strides are the producer's, or compact");
        step *= x->shape[i] ? x->shape[i] : 1;
    }
}

/* The address of element number n in row-major order. */
static const char *element(const DlfTensor *t, int64_t n, int64_t item)
{
    const char *p = t->data;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->strides[i] && t->shape[i] > 1)
            p += n % t->shape[i] * t->strides[i] * item;
        n /= t->shape[i];
    }
    return p;
}

static void get_buffers(PyObject *o)
{
    static const int wanted[] = {PyBUF_SIMPLE, PyBUF_WRITABLE, PyBUF_ND, PyBUF_STRIDES, PyBUF_FULL_RO, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT, PyBUF_F_CONTIGUOUS, PyBUF_ANY_CONTIGUOUS};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        Py_buffer view = {0};
        if (Py_TYPE(o)->getbuffer(o, &view, wanted[i])) {
            must(PyErr_Occurred() != NULL && !view.obj, "a refused buffer has an exception and no owner");
            PyErr_Clear();
            continue;
        }
        must(view.obj == o && view.len == ((DlfTensorObject *)o)->size * view.itemsize, "the buffer is the tensor's");
        Py_TYPE(o)->releasebuffer(o, &view);
        Py_DECREF(o);
    }
}

static void use(PyObject *o, const Expected *e)
{
    DlfTensorObject *t = (DlfTensorObject *)o;
    get_buffers(o);
    DlfManagedTensorVersioned *m = dlf_export(t, 0);
    if (m) {
        must(m->flags == t->flags && m->tensor.data == t->t.data && m->tensor.ndim == t->t.ndim, "an export says what the tensor is");
        PyObject *home = dlf_import_versioned(m, 0, "home");
        if (home)
            must(dlf_storage_of((DlfTensorObject *)home) == dlf_storage_of(t), "our own export comes home");
        else
            must(PyErr_ExceptionMatches(PyExc_MemoryError), "our own export is taken");
        PyErr_Clear();
        Py_XDECREF(home);
    }
    PyErr_Clear();
    if (!e->own || !dlf_is_host(t->t.device.type) || t->size > MEMORY)
        return;
    PyObject *copy = dlf_tensor_copy(t, t->t.dtype, "copy");
    must(copy || PyErr_ExceptionMatches(PyExc_MemoryError), "memory of ours can be copied");
    PyErr_Clear();
    for (int64_t i = 0; i < t->size; i++) {
        const char *p = element(&t->t, i, t->itemsize);
        if (copy)
            must(memcmp((char *)((DlfTensorObject *)copy)->t.data + i * t->itemsize, p, (size_t)t->itemsize) == 0, "a copy has the elements in their order");
        DlfElement kind;
        must(dlf_element(t->t.dtype, t->flags, &kind) == 0, "the dtype of a tensor is known");
        PyObject *value = dlf_load(&kind, t->t.dtype, p);
        must(value || PyErr_ExceptionMatches(PyExc_MemoryError) || kind.kind == DLF_OPAQUE, "an element that has a value can be read");
        PyErr_Clear();
        Py_XDECREF(value);
    }
    Py_XDECREF(copy);
}

static PyObject *view_of(PyObject *o, int ndim, const int64_t *shape, const int64_t *strides, int64_t offset)
{
    PyObject *args[4] = {o, dlf_tuple(shape, ndim), dlf_tuple(strides, ndim), PyLong_FromLongLong(offset)};
    PyObject *v = args[1] && args[2] && args[3] ? dlf_view(NULL, args, 4) : NULL;
    for (int i = 1; i < 4; i++)
        Py_XDECREF(args[i]);
    return v;
}

/* Views never leave the tensor's memory, and an assignment is as if the values had been taken first, however the two overlap. */
static void views(PyObject *o, const Expected *e, Source *s)
{
    static char taken[MEMORY * 16], before[MEMORY];
    DlfTensorObject *t = (DlfTensorObject *)o;
    const int ndim = byte(s) % 4;
    int64_t shape[4], strides[2][4];
    PyObject *v[2] = {NULL, NULL};
    Wide size = 1;
    for (int i = 0; i < ndim; i++)
        size *= shape[i] = extent(s), size = fits(size) ? size : INT64_MAX;
    for (int k = 0; k < 2; k++) {
        DlfTensor x = t->t;
        for (int i = 0; i < ndim; i++)
            strides[k][i] = number(s);
        const int64_t offset = number(s);
        x.ndim = ndim, x.shape = shape, x.strides = strides[k];
        /* What it is once moved; without elements it stays where it is. */
        const Wide shift = size ? (Wide)offset * e->item : 0, start = (Wide)(is_pointers(x.device.type) ? (uintptr_t)x.data : x.byte_offset) + shift;
        if (is_pointers(x.device.type))
            x.data = (void *)(uintptr_t)start;
        else
            x.byte_offset = (uint64_t)start;
        const Expected want = expect(&x, t->flags);
        const int inside = want.valid && start >= 0 && start <= UINT64_MAX && (!size || (want.low + shift >= e->low && want.high + shift <= e->high));
        v[k] = view_of(o, ndim, shape, strides[k], offset);
        must(v[k] ? inside : !inside || PyErr_ExceptionMatches(PyExc_MemoryError), "a view is taken if it lies inside");
        must(!v[k] == !!PyErr_Occurred(), "a view or an exception");
        PyErr_Clear();
    }
    if (v[0] && v[1] && e->own && dlf_is_host(t->t.device.type) && size * e->item <= (Wide)sizeof taken && size <= MEMORY) {
        const DlfTensor *to = &((DlfTensorObject *)v[0])->t, *from = &((DlfTensorObject *)v[1])->t;
        const size_t item = (size_t)e->item;
        int alone = 1; /* whether no two elements of the target meet: else the order decides */
        memcpy(before, memory, MEMORY);
        for (int64_t i = 0; i < (int64_t)size; i++)
            memcpy(taken + (size_t)i * item, element(from, i, e->item), item);
        for (int64_t i = 0; i < (int64_t)size && size < 64; i++)
            for (int64_t k = 0; k < i; k++)
                if (labs(element(to, i, e->item) - element(to, k, e->item)) < (long)item)
                    alone = 0;
        PyObject *r = dlf_assign(NULL, v, 2);
        must(r || PyErr_ExceptionMatches(PyExc_MemoryError) || t->flags & DLF_FLAG_READ_ONLY, "a view of the same dtype can be assigned");
        for (int64_t i = 0; r && alone && size < 64 && i < (int64_t)size; i++)
            must(memcmp(element(to, i, e->item), taken + (size_t)i * item, item) == 0, "the target has the values from before");
        must(r || memcmp(before, memory, MEMORY) == 0, "a refused assignment writes nothing");
        memcpy(memory, before, MEMORY);
        PyErr_Clear();
        Py_XDECREF(r);
    }
    Py_XDECREF(v[0]);
    Py_XDECREF(v[1]);
}

static void finish(PyObject *o, const DlfTensor *x, const Expected *e, int may_fail, Source *s)
{
    if (!o) {
        must(PyErr_Occurred() != NULL && fake_error()[0], "a refusal has an exception with a text");
        must(!e->valid || may_fail, "a valid tensor is taken");
        must(deleted == 1, "the owner of a refused tensor is called once");
        PyErr_Clear();
        return;
    }
    must(!PyErr_Occurred(), "a tensor comes without an exception");
    must(e->valid, "an invalid tensor is refused");
    if (((DlfTensorObject *)o)->t.data != x->data || deleted == 0) /* else a copy was made, because it was not aligned */
        same((DlfTensorObject *)o, x, deleted ? &(Expected){.size = e->size, .item = e->item} : e);
    use(o, e);
    views(o, e, s);
    Py_DECREF(o);
    must(deleted == 1, "the owner of a tensor is called once, at its end");
}

static void managed(Source *s, uint8_t how)
{
    union {
        DlfManagedTensorVersioned versioned;
        DlfManagedTensor legacy;
    } *m = malloc(how & 1 ? sizeof m->legacy : sizeof m->versioned);
    const uint8_t version = byte(s);
    const uint64_t flags = how & 1 ? 0 : (uint64_t)number(s);
    const int in_capsule = how & 2, used = in_capsule && how & 4;
    DlfTensor x = tensor(s);
    Expected e = expect(&x, flags);
    given = m;
    deleted = 0;
    if (how & 1) {
        m->legacy = (DlfManagedTensor){x, NULL, delete_legacy};
    } else {
        m->versioned = (DlfManagedTensorVersioned){{1, version}, NULL, delete_versioned, flags, x};
        if (version > 250) {
            m->versioned.version.major = version - 249u;
            m->versioned.tensor.shape = (int64_t *)8; /* not to be read */
            e.valid = 0;
        }
    }
    fake_fail_at = how >> 4;
    const int may_fail = how >> 4;
    /* from_dlpack copies what is not aligned, so there the memory must be real. */
    if (in_capsule && (!e.valid || e.own || used || !dlf_is_host(x.device.type))) {
        const char *names[] = {DLF_CAPSULE_VERSIONED, DLF_CAPSULE_LEGACY, DLF_CAPSULE_VERSIONED_USED, DLF_CAPSULE_LEGACY_USED, "", NULL};
        const unsigned failing = fake_fail_at;
        fake_fail_at = 0;
        PyObject *capsule = PyCapsule_New(m, names[used ? 2 + version % 4 : how & 1], NULL);
        fake_fail_at = failing;
        PyObject *o = dlf_from_dlpack(NULL, &capsule, 1, NULL);
        if (used) {
            must(!o && PyErr_Occurred() && !deleted, "a capsule that is no longer a tensor is refused, and left alone");
            PyErr_Clear();
        } else if (o && deleted) { /* a copy */
            must(e.valid && ((DlfTensorObject *)o)->size == e.size, "a copy has the size");
            Py_DECREF(o);
            must(deleted == 1, "the owner of what was copied is called once");
        } else {
            finish(o, &x, &e, may_fail, s);
        }
        fake_fail_at = 0;
        Py_DECREF(capsule);
    } else if (how & 1) {
        finish(dlf_import_legacy(&m->legacy, "import"), &x, &e, may_fail, s);
    } else if (how & 8) {
        PyObject *o = dlf_import_versioned(&m->versioned, 1, "import");
        if (!o) {
            must(!deleted, "who keeps the tensor on failure still has it");
            deleted = 1;
        }
        finish(o, &x, &e, may_fail, s);
    } else {
        finish(dlf_import_versioned(&m->versioned, 0, "import"), &x, &e, may_fail, s);
    }
    fake_fail_at = 0;
    free(x.shape);
    free(x.strides);
    free(m);
}

static void buffer(Source *s, uint8_t how)
{
    static const char *const formats[] = {NULL, "B", "f", "d", "?", "e", "l", "=i", ">h", "Zd", "Zf", "c", "q", "n", "2i", "", "<", "Z", "Zq", "T{f:x:}", "x", ">B"};
    char text[8];
    const uint8_t pick = byte(s);
    Py_buffer *view = &fake_buffer;
    *view = (Py_buffer){.buf = memory + 512 + (byte(s) & 31), .itemsize = (Py_ssize_t)number(s), .readonly = how >> 1 & 1};
    if (pick < 200) {
        view->format = (char *)(uintptr_t)formats[pick % (sizeof formats / sizeof *formats)];
        if (pick & 1) /* the size that belongs to it */
            view->itemsize = view->format ? (view->format[0] == 'Z' ? 16 : strchr("fi", view->format[0]) ? 4 : strchr("dlqn", view->format[0]) ? 8 : 1) : 1;
    } else {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)byte(s);
        text[sizeof text - 1] = 0;
        view->format = text;
    }
    const uint8_t n = byte(s);
    view->ndim = n < 240 ? n % 5 : (int)number(s);
    const int dims = view->ndim < 0 || view->ndim > DLF_MAX_NDIM ? 1 : view->ndim;
    view->shape = (Py_ssize_t *)array(s, dims, extent);
    view->strides = how & 4 ? (Py_ssize_t *)array(s, dims, number) : NULL;
    Wide length = view->itemsize;
    for (int i = 0; i < dims; i++)
        length = fits(length * view->shape[i]) ? length * view->shape[i] : 0;
    view->len = (Py_ssize_t)length;
    Py_ssize_t *shape = view->shape;
    if (how & 8)
        view->shape = NULL;
    fake_fail_at = how >> 4;
    fake_released = 0;
    PyObject exporter = {1, &fake_exporter_type};
    PyObject *o = dlf_from_buffer(NULL, &exporter);
    if (o) {
        DlfTensorObject *t = (DlfTensorObject *)o;
        DlfTensor x = t->t;
        x.data = view->buf;
        const Expected e = expect(&x, 0);
        must(!PyErr_Occurred() && e.valid && t->size == e.size && t->itemsize == view->itemsize, "a buffer is taken as it says");
        must(t->t.ndim == view->ndim && (t->flags & DLF_FLAG_READ_ONLY) == (uint64_t)(view->readonly != 0), "a buffer is taken as it says");
        must(t->t.data == view->buf && e.item == t->itemsize, "a buffer is not copied");
        use(o, &e);
        Py_DECREF(o);
    } else {
        must(PyErr_Occurred() != NULL && fake_error()[0], "a refusal has an exception with a text");
        PyErr_Clear();
    }
    must(exporter.ob_refcnt == 1, "the exporter's reference is given back");
    must(fake_released == (how >> 4 && !fake_released ? 0 : 1), "a buffer is released once");
    fake_fail_at = 0;
    free(shape);
    free(view->strides);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Source s = {data, data + size};
    if (!dlf_tensor_type) {
        for (int i = 0; i < MEMORY; i++)
            memory[i] = (char)(i * 37 + i / 251);
        must(dlf_tensor_init_type() == 0 && dlf_queue_init() == 0, "the extension starts");
    }
    const int64_t objects = fake_objects();
    DlfLedger before, after;
    dlf_ledger(&before);
    const uint8_t what = byte(&s);
    const uint8_t how = byte(&s);
    if (what % 4 == 3)
        buffer(&s, how);
    else
        managed(&s, how);
    dlf_ledger(&after);
    must(memcmp(&before, &after, sizeof before) == 0 && dlf_tensor_count() == 0, "the ledger returns to where it was");
    must(fake_objects() == objects, "no object is left");
    must(!PyErr_Occurred(), "no exception is left");
    return 0;
}

/* Put in by the linker: allocations of the shim fail where the input says so. */
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__wrap_malloc(size_t n) { return fake_fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fake_fails() ? NULL : __real_calloc(n, size); }

#ifdef REPLAY
/* The inputs of corpus.txt, one a line in hexadecimal. */
int main(int argc, char **argv)
{
    char line[4096];
    int n = 0;
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!f) {
        fprintf(stderr, "usage: %s corpus.txt\n", argv[0]);
        return 2;
    }
    while (fgets(line, sizeof line, f)) {
        const size_t size = strcspn(line, "\n") / 2;
        uint8_t *data = malloc(size + 1), *exact;
        for (size_t i = 0; i < size; i++)
            must(sscanf(line + 2 * i, "%2hhx", data + i) == 1, "the corpus is hexadecimal");
        exact = malloc(size); /* as long as it is, so that a read beyond is seen */
        memcpy(exact, data, size);
        fprintf(stderr, "%s", getenv("VERBOSE") ? line : "");
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        free(data);
        n++;
    }
    fclose(f);
    printf("%d inputs\n", n);
    return n ? 0 : 2;
}
#endif
