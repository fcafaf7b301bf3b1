#include "core.h"

static int bad_keyword(const DlfSignature *sig, PyObject *key)
{
    PyErr_Format(PyExc_TypeError, "%s: keyword argument, got '%U', want one of those in help(%s)", sig->function, key, sig->function);
    return -1;
}

int dlf_parse(const DlfSignature *sig, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    int n = 0;
    while (n < DLF_MAX_ARGS && sig->names[n])
        out[n++] = NULL;
    if (nargs > sig->positional) {
        PyErr_Format(PyExc_TypeError, "%s: positional arguments, got %zd, want at most %d", sig->function, nargs, sig->positional);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        out[i] = args[i];
    const Py_ssize_t nkw = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nkw; k++) {
        PyObject *key = PyTuple_GetItem(kwnames, k);
        if (!dlf_py_has(key, PyType_FLAG_UNICODE)) { /* f(**{1: 2}) reaches constructors as it is */
            PyErr_Format(PyExc_TypeError, "%s: keyword argument, got %R, want a str", sig->function, key);
            return -1;
        }
        int i = sig->positional_only;
        while (i < n && PyUnicode_CompareWithASCIIString(key, sig->names[i]) != 0)
            i++;
        if (i == n)
            return bad_keyword(sig, key);
        if (out[i]) {
            PyErr_Format(PyExc_TypeError, "%s: argument '%s', got it twice, want it once", sig->function, sig->names[i]);
            return -1;
        }
        out[i] = args[nargs + k];
    }
    for (int i = 0; i < sig->required; i++) {
        if (!out[i]) {
            PyErr_Format(PyExc_TypeError, "%s: argument '%s' is missing", sig->function, sig->names[i]);
            return -1;
        }
    }
    return 0;
}

int dlf_optional_bool(PyObject *o)
{
    if (!o || o == Py_None)
        return -1;
    const int truth = PyObject_IsTrue(o);
    return truth < 0 ? -2 : truth;
}

int dlf_int64(PyObject *o, int64_t *out, const char *function, const char *what)
{
    PyObject *i = PyNumber_Index(o);
    if (!i) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want an int", function, what, o);
        }
        return -1;
    }
    const long long v = PyLong_AsLongLong(i);
    Py_DECREF(i);
    if (v == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s: %s, got %R, want a number of 64 bits", function, what, o);
        return -1;
    }
    *out = v;
    return 0;
}

int dlf_dims(PyObject *o, int64_t out[DLF_MAX_NDIM], const char *function, const char *what)
{
    if (dlf_py_has(o, PyType_FLAG_LONG))
        return dlf_int64(o, out, function, what) ? -1 : 1;
    const int is_tuple = dlf_py_has(o, PyType_FLAG_TUPLE);
    Py_ssize_t n = dlf_py_has(o, PyType_FLAG_UNICODE) ? -1 : is_tuple ? PyTuple_Size(o) : PySequence_Size(o);
    if (n < 0) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        if (dlf_int64(o, out, function, what) == 0) /* NumPy's integer scalars are no int */
            return 1;
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: %s, got %R, want an int or a sequence of ints", function, what, o);
        return -1;
    }
    if (n > DLF_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: %s, got %zd axes, want at most %d", function, what, n, DLF_MAX_NDIM);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = is_tuple ? Py_NewRef(PyTuple_GetItem(o, i)) : PySequence_GetItem(o, i);
        if (!item)
            return -1;
        const int bad = dlf_int64(item, out + i, function, what);
        Py_DECREF(item);
        if (bad)
            return -1;
    }
    return (int)n;
}

PyObject *dlf_tuple(const int64_t *values, int n)
{
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) {
        PyObject *v = PyLong_FromLongLong(values[i]);
        if (!v || PyTuple_SetItem(t, i, v)) {
            Py_DECREF(t);
            return NULL;
        }
    }
    return t;
}
