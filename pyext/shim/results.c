/* Results of a call, as Python objects: tensors as the caller's library has them. */
#include "core.h"

#include <stdlib.h>

static int is_scratch(const DlfFrame *frame, const void *p) { return (const char *)p >= frame->scratch && (const char *)p < frame->scratch + frame->scratch_size; }

static void drop_memory(const DlfFrame *frame, const void *p)
{
    if (p && !is_scratch(frame, p))
        free((void *)(uintptr_t)p);
}

static void drop_tensor(DlfValue *v)
{
    if (v->a.p)
        dlf_delete_versioned((DlfManagedTensorVersioned *)(uintptr_t)v->a.p);
    v->a.p = NULL;
}

static void drop(const DlfFrame *frame, int kind, DlfValue *v)
{
    switch (kind) {
    case DLF_PARAM_VIEW:
        drop_tensor(v);
        return;
    case DLF_PARAM_MUT_VIEW: /* a list of them */
        for (int64_t i = 0; i < v->b.n; i++)
            drop_tensor((DlfValue *)(uintptr_t)v->a.p + i);
        break;
    case DLF_PARAM_STRING:
    case DLF_PARAM_BYTES:
    case DLF_PARAM_STRINGS:
    case DLF_PARAM_INTS:
    case DLF_PARAM_FLOATS:
        break;
    default:
        return;
    }
    drop_memory(frame, v->a.p);
    *v = (DlfValue){0};
}

void dlf_drop_results(const DlfFunction *f, DlfFrame *frame)
{
    for (int i = 0; i < f->nresults; i++)
        drop(frame, f->results[i], &frame->out[i]);
}

int dlf_read_like(DlfLike *like, PyObject *x, const char *function)
{
    int traits = 0;
    const int is_name = dlf_py_has(x, PyType_FLAG_UNICODE);
    PyObject *to = is_name ? dlf_named_type(x) : dlf_py_has(x, PyType_FLAG_TYPE) ? x : (PyObject *)Py_TYPE(x);
    if (!to && PyErr_Occurred())
        return -1;
    const DlfExchangeApi *api = to && !is_name ? dlf_table_of((PyTypeObject *)to, &traits) : NULL;
    if (traits < 0)
        return -1;
    if (to && (is_name || api || (traits & DLF_TRAIT_NDARRAY))) {
        like->to = Py_NewRef(to);
    } else {
        PyObject *hook = dlf_hook_like(), *name = hook ? PyUnicode_FromString(function) : NULL;
        like->to = name ? PyObject_CallFunctionObjArgs(hook, name, x, NULL) : NULL;
        Py_XDECREF(name);
    }
    like->asked = 1;
    return like->to ? 0 : -1;
}

/* The value gives its tensor up. */
static PyObject *tensor(DlfValue *v, const DlfLike *like, const char *function)
{
    int traits = 0, unable;
    DlfManagedTensorVersioned *m = (DlfManagedTensorVersioned *)(uintptr_t)v->a.p;
    v->a.p = NULL;
    if (!m)
        return Py_NewRef(Py_None);
    PyObject *to = like->to == (PyObject *)dlf_tensor_type ? NULL : like->to;
    const DlfExchangeApi *api = to && (!like->asked || dlf_py_has(to, PyType_FLAG_TYPE)) ? dlf_table_of((PyTypeObject *)to, &traits) : NULL;
    if (traits < 0) {
        dlf_delete_versioned(m);
        return NULL;
    }
    if (api && !(traits & DLF_TRAIT_OURS) && api->managed_tensor_to_py_object_no_sync && dlf_is_plain(&m->tensor, m->flags))
        return dlf_give(m, api);
    DlfTensorObject *t = (DlfTensorObject *)dlf_import_versioned(m, 0, function);
    if (!t || !to || (traits & DLF_TRAIT_OURS))
        return (PyObject *)t;
    PyObject *made = NULL;
    if ((traits & DLF_TRAIT_NDARRAY) && dlf_numpy_is_open()) {
        DlfStorage *st = dlf_storage_of(t);
        made = st ? dlf_numpy_make(&t->t, t->itemsize, t->flags, NULL, st, &unable) : NULL;
    }
    if (!made && !PyErr_Occurred()) {
        PyObject *hook = dlf_hook_convert();
        made = hook ? PyObject_CallFunctionObjArgs(hook, t, to, Py_None, NULL) : NULL;
        /* Any object with __dlpack__ may be an argument; not each has a library that takes tensors. */
        if (!made && !like->asked && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            return &t->ob_base;
        }
    }
    Py_DECREF(t);
    return made;
}

static PyObject *text(const DlfValue *v) { return PyUnicode_DecodeUTF8(v->a.p ? v->a.p : "", (Py_ssize_t)v->b.n, "strict"); }

static PyObject *item(int kind, DlfValue *v, int64_t i, const DlfLike *like, const char *function)
{
    switch (kind) {
    case DLF_PARAM_MUT_VIEW:
        return tensor((DlfValue *)(uintptr_t)v->a.p + i, like, function);
    case DLF_PARAM_STRINGS:
        return text((const DlfValue *)v->a.p + i);
    case DLF_PARAM_INTS:
        return PyLong_FromLongLong(((const int64_t *)v->a.p)[i]);
    default:
        return PyFloat_FromDouble(((const double *)v->a.p)[i]);
    }
}

static PyObject *list(int kind, DlfValue *v, const DlfLike *like, const char *function)
{
    PyObject *made = PyList_New((Py_ssize_t)v->b.n);
    for (int64_t i = 0; made && i < v->b.n; i++) {
        PyObject *o = item(kind, v, i, like, function);
        if (!o || PyList_SetItem(made, (Py_ssize_t)i, o)) {
            Py_DECREF(made);
            return NULL;
        }
    }
    return made;
}

static PyObject *one(const DlfFunction *f, int kind, DlfValue *v, const DlfLike *like)
{
    switch (kind) {
    case DLF_PARAM_VIEW:
        return tensor(v, like, f->name);
    case DLF_PARAM_BOOL:
        return PyBool_FromLong(v->a.i != 0);
    case DLF_PARAM_INT:
        return PyLong_FromLongLong(v->a.i);
    case DLF_PARAM_UINT:
        return PyLong_FromUnsignedLongLong(v->a.u);
    case DLF_PARAM_FLOAT:
        return PyFloat_FromDouble(v->a.f);
    case DLF_PARAM_COMPLEX:
        return PyComplex_FromDoubles(v->a.f, v->b.f);
    case DLF_PARAM_STRING:
        return text(v);
    case DLF_PARAM_BYTES:
        return PyBytes_FromStringAndSize(v->a.p, (Py_ssize_t)v->b.n);
    case DLF_PARAM_MUT_VIEW:
    case DLF_PARAM_STRINGS:
    case DLF_PARAM_INTS:
    case DLF_PARAM_FLOATS:
        return list(kind, v, like, f->name);
    default:
        return dlf_raise(DLF_KIND_UNSUPPORTED, "%s: result, got a kind that this version does not know", f->name);
    }
}

PyObject *dlf_results(const DlfFunction *f, DlfFrame *frame, const DlfLike *like)
{
    PyObject *made = NULL;
    if (f->nresults == 0) {
        made = Py_NewRef(Py_None);
    } else if (f->nresults == 1) {
        made = one(f, f->results[0], &frame->out[0], like);
    } else {
        made = PyTuple_New(f->nresults);
        for (int i = 0; made && i < f->nresults; i++) {
            PyObject *o = one(f, f->results[i], &frame->out[i], like);
            if (!o || PyTuple_SetItem(made, i, o)) {
                Py_DECREF(made);
                made = NULL;
            }
        }
    }
    /* What is left: memory, and tensors after a failure. */
    PyObject *error = made ? NULL : dlf_take_error();
    dlf_drop_results(f, frame);
    if (error)
        dlf_set_error(error, NULL);
    return made;
}
