/*
 * Numbers in nested lists and tuples, of exactly Python's own types: none of them runs any code, so what was counted is what is stored. Everything else, and
 * everything that is wrong, is left to the Python layer, which knows what to say.
 */
#include "core.h"

enum { HAS_BOOL = 1, HAS_INT = 2, HAS_FLOAT = 4, HAS_COMPLEX = 8 };

typedef struct {
    int ndim;
    int64_t shape[DLF_MAX_NDIM];
    int kinds;
    int64_t count;
} Nested;

static int is_list(PyObject *o) { return Py_TYPE(o) == &PyList_Type; }
static int is_container(PyObject *o) { return is_list(o) || Py_TYPE(o) == &PyTuple_Type; }
static Py_ssize_t length(PyObject *o) { return is_list(o) ? PyList_Size(o) : PyTuple_Size(o); }
static PyObject *item(PyObject *o, Py_ssize_t i) { return is_list(o) ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i); }

static int kind_of(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    return type == &PyFloat_Type ? HAS_FLOAT : type == &PyLong_Type ? HAS_INT : type == &PyBool_Type ? HAS_BOOL : type == &PyComplex_Type ? HAS_COMPLEX : 0;
}

/* The shape that the first items have. */
static int measure(PyObject *o, Nested *n)
{
    n->ndim = 0;
    while (is_container(o)) {
        if (n->ndim == DLF_MAX_NDIM)
            return -1;
        const Py_ssize_t size = length(o);
        n->shape[n->ndim++] = size;
        if (size == 0)
            return 0;
        o = item(o, 0);
    }
    return 0;
}

/* Whether all others have it too, and numbers only. */
static int look(PyObject *o, int axis, Nested *n)
{
    if (axis == n->ndim) {
        const int kind = kind_of(o);
        n->kinds |= kind;
        n->count++;
        return kind ? 0 : -1;
    }
    if (!is_container(o) || length(o) != n->shape[axis])
        return -1;
    for (Py_ssize_t i = 0; i < n->shape[axis]; i++)
        if (look(item(o, i), axis + 1, n))
            return -1;
    return 0;
}

typedef struct {
    const Nested *n;
    DlfElement e;
    DlfDataType dt;
    char *p;
} Target;

static int store(PyObject *o, int axis, Target *t)
{
    if (axis < t->n->ndim) {
        for (Py_ssize_t i = 0; i < t->n->shape[axis]; i++)
            if (store(item(o, i), axis + 1, t))
                return -1;
        return 0;
    }
    const int is_float = t->e.kind == DLF_FLOAT && Py_TYPE(o) == &PyFloat_Type;
    if (is_float && t->e.size == 8)
        *(double *)t->p = PyFloat_AsDouble(o);
    else if (is_float)
        *(float *)t->p = (float)PyFloat_AsDouble(o);
    else if (dlf_store(&t->e, t->dt, t->p, o, "asarray"))
        return -1;
    t->p += t->e.size;
    return 0;
}

/* The dtype that holds all values, but for ints beyond 64 bits with a sign. */
static DlfDataType dtype_of(int kinds)
{
    if (kinds & HAS_COMPLEX)
        return (DlfDataType){DLF_CODE_COMPLEX, 128, 1};
    if (kinds & HAS_FLOAT || !kinds)
        return (DlfDataType){DLF_CODE_FLOAT, 64, 1};
    return kinds & HAS_INT ? (DlfDataType){DLF_CODE_INT, 64, 1} : (DlfDataType){DLF_CODE_BOOL, 8, 1};
}

PyObject *dlf_from_nested(PyObject *o, const DlfDataType *asked, int *unable)
{
    Nested n = {0};
    Target t = {.n = &n};
    *unable = 1;
    if (!is_container(o) && !kind_of(o))
        return NULL;
    if (measure(o, &n) || look(o, 0, &n))
        return NULL;
    t.dt = asked ? *asked : dtype_of(n.kinds);
    if (dlf_element(t.dt, 0, &t.e) || t.e.kind == DLF_MINIFLOAT || t.e.kind == DLF_FLOAT4X2 || t.e.kind == DLF_OPAQUE)
        return NULL;
    DlfTensorObject *made = (DlfTensorObject *)dlf_tensor_empty(n.ndim, n.shape, t.dt, 0, 0, "asarray");
    if (!made) {
        *unable = 0;
        return NULL;
    }
    t.p = made->t.data;
    if (n.count && store(o, 0, &t)) {
        /* Too large an integer, most often, which another dtype may hold. */
        Py_DECREF(made);
        PyErr_Clear();
        return NULL;
    }
    *unable = 0;
    return &made->ob_base;
}
