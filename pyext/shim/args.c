#include "core.h"

static int bad_keyword(const DlfSignature *sig, PyObject *key)
{
    PyErr_Format(PyExc_TypeError, "%s: keyword argument, got '%U', want one of those in help(%s)", sig->function, key, sig->function);
    return -1;
}

/* The names as the strings that the compiler put into calls: nearly every keyword is found by its address. */
static int intern(DlfSignature *sig)
{
    for (int i = 0; i < DLF_MAX_ARGS && sig->names[i]; i++)
        if (!sig->interned[i] && !(sig->interned[i] = PyUnicode_InternFromString(sig->names[i])))
            return -1;
    return 0;
}

/* The parameter that a keyword names: its place, n for none, -1 with TypeError for what is no name. */
static int find(const DlfSignature *sig, PyObject *key, int n)
{
    for (int i = sig->positional_only; i < n; i++)
        if (key == sig->interned[i])
            return i;
    if (!dlf_py_has(key, PyType_FLAG_UNICODE)) { /* f(**{1: 2}) reaches constructors as it is */
        PyErr_Format(PyExc_TypeError, "%s: keyword argument, got %R, want a str", sig->function, key);
        return -1;
    }
    int i = sig->positional_only;
    while (i < n && PyUnicode_CompareWithASCIIString(key, sig->names[i]) != 0)
        i++;
    return i;
}

/* The names of a call are a constant of the caller, who comes again. */
static void remember(DlfSignature *sig, PyObject *kwnames, int n)
{
    PyObject *old = sig->seen;
    sig->seen = NULL;
    for (int k = 0; k < n; k++) {
        const int i = find(sig, PyTuple_GetItem(kwnames, k), DLF_MAX_ARGS);
        sig->seen_at[k] = (uint8_t)i;
    }
    sig->seen_size = n;
    sig->seen = Py_NewRef(kwnames);
    Py_XDECREF(old);
}

int dlf_parse(DlfSignature *sig, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
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
    if (nargs == 0 && kwnames && kwnames == sig->seen) {
        for (int i = 0; i < sig->seen_size; i++)
            out[sig->seen_at[i]] = args[i];
        return 0;
    }
    const Py_ssize_t nkw = kwnames ? PyTuple_Size(kwnames) : 0;
    if (nkw && !sig->interned[n - 1] && intern(sig))
        return -1;
    for (Py_ssize_t k = 0; k < nkw; k++) {
        PyObject *key = PyTuple_GetItem(kwnames, k);
        const int i = find(sig, key, n);
        if (i < 0)
            return -1;
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
    if (nargs == 0 && nkw && Py_TYPE(kwnames) == &PyTuple_Type)
        remember(sig, kwnames, (int)nkw);
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
    if (Py_TYPE(o) == &PyLong_Type) {
        *out = PyLong_AsLongLong(o);
        if (*out != -1 || !PyErr_Occurred())
            return 0;
        PyErr_Clear();
    }
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
    const int is_tuple = Py_TYPE(o) == &PyTuple_Type || dlf_py_has(o, PyType_FLAG_TUPLE);
    if (!is_tuple && dlf_py_has(o, PyType_FLAG_LONG))
        return dlf_int64(o, out, function, what) ? -1 : 1;
    Py_ssize_t n = is_tuple ? PyTuple_Size(o) : dlf_py_has(o, PyType_FLAG_UNICODE) ? -1 : PySequence_Size(o);
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
        PyObject *at = is_tuple ? PyTuple_GetItem(o, i) : NULL;
        if (at && Py_TYPE(at) == &PyLong_Type) {
            if (dlf_int64(at, out + i, function, what))
                return -1;
            continue;
        }
        PyObject *item = is_tuple ? Py_NewRef(at) : PySequence_GetItem(o, i);
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
