/* Arguments of a call: from Python objects to what Go reads, checked, so that Go need not look again. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

void dlf_let_go(DlfSlot *slot)
{
    if (slot->foreign)
        dlf_delete_versioned(slot->foreign);
    free(slot->memory);
    if (slot->buffer.obj)
        PyBuffer_Release(&slot->buffer);
    Py_XDECREF(slot->held);
}

static const char *function_of(const DlfReading *r) { return r->f->name; }

static int refuse(const DlfReading *r, const DlfParam *p, int kind, const char *got, const char *want)
{
    dlf_raise(kind, "%s: %s, got %s, want %s", function_of(r), p->name, got, want);
    return -1;
}

/* --- tensors --- */

static uint32_t key_of(DlfDataType dt) { return dt.code | (uint32_t)dt.bits << 8 | (uint32_t)dt.lanes << 16; }

static int refuse_dtype(const DlfReading *r, const DlfParam *p, DlfDataType got, int first, int n)
{
    char name[48], want[256] = "";
    for (int i = first; i < first + n; i++) {
        const uint32_t key = p->keys[i];
        const DlfDataType dt = {(uint8_t)key, (uint8_t)(key >> 8), (uint16_t)(key >> 16)};
        const size_t used = strlen(want);
        snprintf(want + used, sizeof want - used, "%s%s", used ? " or " : "", dlf_dtype_name(dt, name));
    }
    char text[64];
    snprintf(text, sizeof text, "%s", dlf_dtype_name(got, name));
    return refuse(r, p, DLF_KIND_TYPE, text, want);
}

static int check_dtype(DlfReading *r, const DlfParam *p, DlfDataType dt)
{
    const uint32_t key = key_of(dt);
    if (!p->nkeys)
        return 0;
    if (p->nkeys > 1 && r->instance >= 0)
        return r->instance < p->nkeys && p->keys[r->instance] == key ? 0 : refuse_dtype(r, p, dt, r->instance, 1);
    for (int i = 0; i < p->nkeys; i++) {
        if (p->keys[i] != key)
            continue;
        if (p->nkeys > 1)
            r->instance = i;
        return 0;
    }
    return refuse_dtype(r, p, dt, 0, p->nkeys);
}

/* Whether no two indices meet the same element, by a rule that holds for all layouts but crossed ones. */
static int is_distinct(const DlfTensor *t)
{
    int64_t span = 0; /* of the axes seen, in elements */
    uint64_t seen = 0;
    for (int k = 0; k < t->ndim; k++) {
        int at = -1;
        for (int i = 0; i < t->ndim; i++)
            if (!(seen >> i & 1) && t->shape[i] > 1 && (at < 0 || llabs(t->strides[i]) < llabs(t->strides[at])))
                at = i;
        if (at < 0)
            return 1;
        seen |= UINT64_C(1) << at;
        const int64_t stride = llabs(t->strides[at]);
        if (stride <= span)
            return 0;
        span += stride * (t->shape[at] - 1);
    }
    return 1;
}

/* A Tensor over whatever is one, or has memory to read. */
static PyObject *import_any(const DlfReading *r, const DlfParam *p, PyObject *x)
{
    const int speaks = dlf_speaks_dlpack(x);
    if (speaks)
        return speaks < 0 ? NULL : dlf_import(x, -1, function_of(r));
    if (PyObject_CheckBuffer(x))
        return dlf_import_buffer(x, 0, function_of(r));
    PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want a tensor", function_of(r), p->name, Py_TYPE(x));
    return NULL;
}

/* Describes x in view; may keep a Tensor over it in held. */
static int describe(DlfReading *r, const DlfParam *p, PyObject *x, DlfArrayView *view, PyObject **held)
{
    int traits = 0;
    DlfTensorObject *t = NULL;
    if (!r->owning) {
        if (dlf_numpy_read(x, view))
            return 0;
        const DlfExchangeApi *api = Py_TYPE(x) == dlf_tensor_type ? NULL : dlf_table_of(Py_TYPE(x), &traits);
        if (traits < 0)
            return -1;
        if (Py_TYPE(x) == dlf_tensor_type) {
            if (!(t = dlf_open(x, function_of(r))))
                return -1;
        } else if ((traits & DLF_TRAIT_TORCH) && api && api->dltensor_from_py_object_no_sync) {
            int why;
            view->flags = 0;
            if (dlf_torch_read(x, api, &view->t, &view->lay, &why, function_of(r))) {
                view->t.strides = view->lay.strides;
                return 0;
            }
            if (why < 0)
                return -1;
            PyErr_Clear(); /* x.__dlpack__ says it better */
        } else if (p->kind == DLF_PARAM_VIEW && api && !(traits & DLF_TRAIT_TORCH) && api->dltensor_from_py_object_no_sync) {
            /* A look at it is enough to read: such a description says neither read-only nor padded. */
            DlfRefusal refusal;
            view->flags = 0;
            if (!api->dltensor_from_py_object_no_sync(x, &view->t)) {
                if (view->t.dtype.bits >= 8 && !dlf_check(&view->t, 0, &view->lay, &refusal)) {
                    view->t.strides = view->lay.strides;
                    return 0;
                }
            } else if (PyErr_Occurred() && !dlf_error_is_soft()) {
                return -1;
            }
            PyErr_Clear();
        }
    }
    if (!t) {
        if (!(*held = import_any(r, p, x)))
            return -1;
        t = (DlfTensorObject *)*held;
    }
    view->t = t->t;
    view->flags = t->flags;
    view->lay.size = t->size;
    view->lay.nbytes = t->size * t->itemsize;
    return 0;
}

static int read_tensor(DlfReading *r, const DlfParam *p, PyObject *x, DlfArrayView *view, PyObject **held)
{
    char name[32];
    if (describe(r, p, x, view, held))
        return -1;
    if (!r->like)
        r->like = Py_TYPE(x);
    if (!dlf_is_host(view->t.device.type)) {
        char got[64];
        snprintf(got, sizeof got, "memory on %s", dlf_device_name(view->t.device, name));
        return refuse(r, p, DLF_KIND_DEVICE, got, "host memory: copy it to the cpu with its own library");
    }
    if (check_dtype(r, p, view->t.dtype))
        return -1;
    DlfElement e;
    if (p->nkeys && ((uintptr_t)view->t.data & 15) && !dlf_element(view->t.dtype, view->flags, &e) && ((uintptr_t)view->t.data & (uintptr_t)(e.align - 1))) {
        if (p->kind == DLF_PARAM_MUT_VIEW || *held)
            return refuse(r, p, DLF_KIND_ALIGNMENT, "data at an address that is not a multiple of the element's alignment", "an aligned tensor: copy it first");
        *held = import_any(r, p, x); /* which copies */
        if (!*held)
            return -1;
        view->t = ((DlfTensorObject *)*held)->t;
    }
    if (p->kind == DLF_PARAM_MUT_VIEW) {
        if (view->flags & DLF_FLAG_READ_ONLY)
            return refuse(r, p, DLF_KIND_READ_ONLY, "a read-only tensor", "a writable one");
        if (!dlf_is_contiguous(view->t.ndim, view->t.shape, view->t.strides) && !is_distinct(&view->t))
            return refuse(r, p, DLF_KIND_LAYOUT, "strides by which several indices meet the same element", "a place of its own for each: write into a copy");
    }
    r->bytes += view->lay.nbytes;
    return 0;
}

static int read_foreign(DlfReading *r, const DlfParam *p, PyObject *x, DlfSlot *slot)
{
    PyObject *t = import_any(r, p, x);
    if (!t)
        return -1;
    if (!r->like)
        r->like = Py_TYPE(x);
    slot->foreign = dlf_export((DlfTensorObject *)t, 0);
    Py_DECREF(t);
    return slot->foreign ? 0 : -1;
}

/* A list or tuple as a tuple of our own, which nobody changes meanwhile. */
static Py_ssize_t read_list(const DlfReading *r, const DlfParam *p, PyObject *x, DlfSlot *slot, const char *want)
{
    if (!dlf_py_has(x, PyType_FLAG_TUPLE) && !dlf_py_has(x, PyType_FLAG_LIST)) {
        PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want a list or tuple of %s", function_of(r), p->name, Py_TYPE(x), want);
        return -1;
    }
    slot->held = PySequence_Tuple(x);
    return slot->held ? PyTuple_Size(slot->held) : -1;
}

static void *room(DlfSlot *slot, Py_ssize_t n, size_t size)
{
    slot->memory = calloc((size_t)n + 1, size);
    if (!slot->memory)
        PyErr_NoMemory();
    return slot->memory;
}

static int read_tensors(DlfReading *r, const DlfParam *p, PyObject *x, DlfSlot *slot, DlfValue *out)
{
    const Py_ssize_t n = read_list(r, p, x, slot, "tensors");
    if (n < 0)
        return -1;
    struct {
        DlfValue value;
        DlfTensor t;
    } *items;
    /* The values lie together, the tensors behind them. Each is imported: a borrowed description has strides of its own to keep. */
    PyObject *kept = PyTuple_New(n);
    DlfValue *values = kept ? room(slot, n, sizeof *items) : NULL;
    DlfTensor *tensors = (DlfTensor *)(values + n);
    for (Py_ssize_t i = 0; values && i < n; i++) {
        DlfArrayView view;
        PyObject *held = NULL;
        const int owning = r->owning;
        r->owning = 1;
        const int bad = read_tensor(r, p, PyTuple_GetItem(slot->held, i), &view, &held);
        r->owning = owning;
        if (bad) {
            Py_XDECREF(held);
            values = NULL;
            break;
        }
        PyTuple_SetItem(kept, i, held);
        tensors[i] = view.t;
        values[i].a.p = &tensors[i];
        values[i].b.u = view.flags;
    }
    Py_DECREF(slot->held);
    slot->held = kept;
    if (!values)
        return -1;
    out->a.p = values;
    out->b.n = n;
    return 0;
}

/* --- numbers and text --- */

/* NumPy's scalars and tensors of one element, for what wants a bool or a number: a new reference; x itself where it has no item(). */
static PyObject *plain_scalar(PyObject *x)
{
    if (Py_TYPE(x) == &PyBool_Type || Py_TYPE(x) == &PyLong_Type || Py_TYPE(x) == &PyFloat_Type)
        return Py_NewRef(x);
    PyObject *item = PyObject_GetAttrString(x, "item");
    if (!item) {
        PyErr_Clear();
        return Py_NewRef(x);
    }
    PyObject *v = PyObject_CallNoArgs(item);
    Py_DECREF(item);
    return v;
}

static int read_bool(const DlfReading *r, const DlfParam *p, PyObject *x, DlfValue *out)
{
    PyObject *v = plain_scalar(x);
    if (!v)
        return -1;
    const int right = Py_TYPE(v) == &PyBool_Type;
    out->a.i = right && PyObject_IsTrue(v);
    Py_DECREF(v);
    if (right)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want a bool", function_of(r), p->name, Py_TYPE(x));
    return -1;
}

static int out_of_range(const DlfReading *r, const DlfParam *p, PyObject *x, const char *type)
{
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: %s, got %R, want a number that fits %s%d", function_of(r), p->name, x, type, p->bits);
    return -1;
}

static int read_int(const DlfReading *r, const DlfParam *p, PyObject *x, DlfValue *out)
{
    const int is_signed = p->kind == DLF_PARAM_INT;
    PyObject *i = Py_TYPE(x) == &PyLong_Type ? Py_NewRef(x) : PyNumber_Index(x);
    if (!i) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want an int", function_of(r), p->name, Py_TYPE(x));
        return -1;
    }
    if (is_signed)
        out->a.i = PyLong_AsLongLong(i);
    else
        out->a.u = PyLong_AsUnsignedLongLong(i);
    Py_DECREF(i);
    if (out->a.i == -1 && PyErr_Occurred())
        return out_of_range(r, p, x, is_signed ? "int" : "uint");
    if (p->bits == 64)
        return 0;
    const int fits = is_signed ? out->a.i >= -(INT64_C(1) << (p->bits - 1)) && out->a.i < INT64_C(1) << (p->bits - 1) : out->a.u < UINT64_C(1) << p->bits;
    return fits ? 0 : out_of_range(r, p, x, is_signed ? "int" : "uint");
}

static int number(PyObject *x, double *re, double *im)
{
    if (Py_TYPE(x) == &PyFloat_Type || !im) {
        *re = PyFloat_AsDouble(x);
        if (im)
            *im = 0;
        return *re == -1 && PyErr_Occurred() ? -1 : 0;
    }
    PyObject *c = dlf_py_has(x, PyType_FLAG_UNICODE) ? NULL : PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, x, NULL);
    if (!c) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "str");
        return -1;
    }
    *re = PyComplex_RealAsDouble(c);
    *im = PyComplex_ImagAsDouble(c);
    Py_DECREF(c);
    return 0;
}

static int read_number(const DlfReading *r, const DlfParam *p, PyObject *x, DlfValue *out)
{
    if (!number(x, &out->a.f, p->kind == DLF_PARAM_COMPLEX ? &out->b.f : NULL))
        return 0;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        return out_of_range(r, p, x, p->kind == DLF_PARAM_COMPLEX ? "complex" : "float");
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want a %s", function_of(r), p->name, Py_TYPE(x), p->kind == DLF_PARAM_COMPLEX ? "number" : "real number");
    return -1;
}

static int read_string(const DlfReading *r, const DlfParam *p, PyObject *x, DlfValue *out)
{
    Py_ssize_t n;
    if (!dlf_py_has(x, PyType_FLAG_UNICODE)) {
        PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want a str", function_of(r), p->name, Py_TYPE(x));
        return -1;
    }
    out->a.p = PyUnicode_AsUTF8AndSize(x, &n); /* UnicodeEncodeError for surrogates */
    out->b.n = n;
    return out->a.p ? 0 : -1;
}

static int read_bytes(const DlfReading *r, const DlfParam *p, PyObject *x, DlfSlot *slot, DlfValue *out)
{
    if (!PyObject_CheckBuffer(x)) {
        PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want bytes or another buffer", function_of(r), p->name, Py_TYPE(x));
        return -1;
    }
    if (PyObject_GetBuffer(x, &slot->buffer, PyBUF_SIMPLE)) {
        slot->buffer.obj = NULL;
        return -1;
    }
    out->a.p = slot->buffer.buf;
    out->b.n = slot->buffer.len;
    return 0;
}

static int read_items(const DlfReading *r, const DlfParam *p, PyObject *x, DlfSlot *slot, DlfValue *out)
{
    static const char *const what[] = {[DLF_PARAM_STRINGS] = "str", [DLF_PARAM_INTS] = "ints", [DLF_PARAM_FLOATS] = "floats"};
    const Py_ssize_t n = read_list(r, p, x, slot, what[p->kind]);
    if (n < 0)
        return -1;
    DlfParam of = *p;
    of.bits = 64;
    of.kind = p->kind == DLF_PARAM_STRINGS ? DLF_PARAM_STRING : p->kind == DLF_PARAM_INTS ? DLF_PARAM_INT : DLF_PARAM_FLOAT;
    char *at = room(slot, n, p->kind == DLF_PARAM_STRINGS ? sizeof(DlfValue) : 8);
    for (Py_ssize_t i = 0; at && i < n; i++) {
        PyObject *item = PyTuple_GetItem(slot->held, i);
        DlfValue v = {0};
        if (of.kind == DLF_PARAM_STRING ? read_string(r, &of, item, &v) : of.kind == DLF_PARAM_INT ? read_int(r, &of, item, &v) : read_number(r, &of, item, &v))
            return -1;
        if (p->kind == DLF_PARAM_STRINGS)
            ((DlfValue *)at)[i] = v;
        else
            memcpy(at + 8 * i, &v.a, 8);
    }
    if (!at)
        return -1;
    out->a.p = at;
    out->b.n = n;
    return 0;
}

int dlf_read_param(DlfReading *r, int i, PyObject *x, DlfSlot *slot, DlfValue *out)
{
    const DlfParam *p = &r->f->params[i];
    *out = (DlfValue){0};
    switch (p->kind) {
    case DLF_PARAM_VIEW:
    case DLF_PARAM_MUT_VIEW:
    case DLF_PARAM_ANY_VIEW:
        if (read_tensor(r, p, x, &slot->view, &slot->held))
            return -1;
        out->a.p = &slot->view.t;
        out->b.u = slot->view.flags;
        return 0;
    case DLF_PARAM_VIEWS:
        return read_tensors(r, p, x, slot, out);
    case DLF_PARAM_FOREIGN:
        if (read_foreign(r, p, x, slot))
            return -1;
        out->a.p = slot->foreign;
        return 0;
    case DLF_PARAM_BOOL:
        return read_bool(r, p, x, out);
    case DLF_PARAM_INT:
    case DLF_PARAM_UINT:
        return read_int(r, p, x, out);
    case DLF_PARAM_FLOAT:
    case DLF_PARAM_COMPLEX:
        return read_number(r, p, x, out);
    case DLF_PARAM_STRING:
        if (r->owning)
            slot->held = Py_NewRef(x);
        return read_string(r, p, x, out);
    case DLF_PARAM_BYTES:
        return read_bytes(r, p, x, slot, out);
    case DLF_PARAM_STRINGS:
    case DLF_PARAM_INTS:
    case DLF_PARAM_FLOATS:
        return read_items(r, p, x, slot, out);
    default:
        dlf_raise(DLF_KIND_UNSUPPORTED, "%s: %s, got a kind of parameter that this version does not know", function_of(r), p->name);
        return -1;
    }
}
