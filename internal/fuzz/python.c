/* The functions of Python that the fuzzed part of the shim calls; missing.c has the others, which end the process. */
#include "python.h"

#include <stdlib.h>
#include <string.h>

unsigned fake_fail_at;
Py_buffer fake_buffer;
int fake_released;
static int64_t objects;

int fake_fails(void) { return fake_fail_at && --fake_fail_at == 0; }
int64_t fake_objects(void) { return objects; }

/* --- objects --- */

typedef struct {
    PyObject ob_base;
    void *pointer;
    const char *name;
    PyCapsule_Destructor destructor;
} Capsule;

typedef struct {
    PyObject ob_base;
    Py_ssize_t size;
    PyObject *items[];
} Sequence;

typedef struct {
    PyObject ob_base;
    double value[2];
    long long integer;
} Number;

static void plain_dealloc(PyObject *o)
{
    objects--;
    free(o);
}

static void sequence_dealloc(PyObject *o)
{
    for (Py_ssize_t i = 0; i < ((Sequence *)o)->size; i++)
        Py_XDECREF(((Sequence *)o)->items[i]);
    plain_dealloc(o);
}

static void capsule_dealloc(PyObject *o)
{
    if (((Capsule *)o)->destructor)
        ((Capsule *)o)->destructor(o);
    plain_dealloc(o);
}

#define IMMORTAL ((Py_ssize_t)1 << 40)
#define TYPE(symbol, text, bits, f) PyTypeObject symbol = {.ob_base = {IMMORTAL, NULL}, .name = text, .flags = bits, .dealloc = f}
TYPE(PyBool_Type, "bool", PyType_FLAG_LONG, plain_dealloc);
TYPE(PyFloat_Type, "float", 0, plain_dealloc);
TYPE(PyCapsule_Type, "capsule", 0, capsule_dealloc);
TYPE(PyComplex_Type, "complex", 0, plain_dealloc);
TYPE(PyUnicode_Type, "str", PyType_FLAG_UNICODE, plain_dealloc);
TYPE(fake_exporter_type, "exporter", 0, plain_dealloc);
TYPE(PyTuple_Type, "tuple", PyType_FLAG_TUPLE, sequence_dealloc);
TYPE(PyList_Type, "list", 0, sequence_dealloc);
static TYPE(number_type, "number", 0, plain_dealloc);
TYPE(PyLong_Type, "int", PyType_FLAG_LONG, plain_dealloc);

PyObject _Py_NoneStruct = {IMMORTAL, NULL};
PyObject _Py_EllipsisObject = {IMMORTAL, NULL};
static PyObject truths[2] = {{IMMORTAL, &PyLong_Type}, {IMMORTAL, &PyLong_Type}};

void *PyObject_Malloc(size_t n)
{
    void *p = fake_fails() ? NULL : malloc(n);
    objects += p != NULL;
    return p;
}

void PyObject_Free(void *p)
{
    objects -= p != NULL;
    free(p);
}

PyObject *PyObject_Init(PyObject *o, PyTypeObject *type)
{
    o->ob_refcnt = 1;
    o->ob_type = type;
    Py_INCREF(type);
    return o;
}

static void *make(PyTypeObject *type, size_t size)
{
    PyObject *o = fake_fails() ? NULL : calloc(1, size);
    if (!o) {
        PyErr_NoMemory();
        return NULL;
    }
    objects++;
    *o = (PyObject){1, type};
    return o;
}

void _Py_Dealloc(PyObject *o) { Py_TYPE(o)->dealloc(o); }
int PyType_IsSubtype(PyTypeObject *a, PyTypeObject *b) { return a == b; }
unsigned long PyType_GetFlags(PyTypeObject *type) { return type->flags; }

PyObject *PyType_FromSpec(PyType_Spec *spec)
{
    static PyTypeObject type;
    type = (PyTypeObject){.ob_base = {IMMORTAL, NULL}, .name = spec->name};
    for (const PyType_Slot *slot = spec->slots; slot->slot; slot++) {
        if (slot->slot == Py_tp_dealloc)
            *(void **)&type.dealloc = slot->pfunc;
        else if (slot->slot == Py_bf_getbuffer)
            *(void **)&type.getbuffer = slot->pfunc;
        else if (slot->slot == Py_bf_releasebuffer)
            *(void **)&type.releasebuffer = slot->pfunc;
    }
    return &type.ob_base;
}

static PyObject *sequence(PyTypeObject *type, Py_ssize_t n)
{
    Sequence *s = make(type, sizeof *s + (size_t)n * sizeof(PyObject *));
    if (s)
        s->size = n;
    return (PyObject *)s;
}

PyObject *PyTuple_New(Py_ssize_t n) { return sequence(&PyTuple_Type, n); }
PyObject *PyList_New(Py_ssize_t n) { return sequence(&PyList_Type, n); }
Py_ssize_t PyTuple_Size(PyObject *t) { return ((Sequence *)t)->size; }
PyObject *PyTuple_GetItem(PyObject *t, Py_ssize_t i) { return ((Sequence *)t)->items[i]; }

int PyTuple_SetItem(PyObject *t, Py_ssize_t i, PyObject *item)
{
    Py_XDECREF(((Sequence *)t)->items[i]);
    ((Sequence *)t)->items[i] = item;
    return 0;
}

Py_ssize_t PyList_Size(PyObject *t) { return PyTuple_Size(t); }
PyObject *PyList_GetItem(PyObject *t, Py_ssize_t i) { return PyTuple_GetItem(t, i); }
int PyList_SetItem(PyObject *t, Py_ssize_t i, PyObject *item) { return PyTuple_SetItem(t, i, item); }

PyObject *PyTuple_Pack(Py_ssize_t n, ...)
{
    PyObject *t = PyTuple_New(n);
    va_list args;
    va_start(args, n);
    for (Py_ssize_t i = 0; t && i < n; i++)
        PyTuple_SetItem(t, i, Py_NewRef(va_arg(args, PyObject *)));
    va_end(args);
    return t;
}

static PyObject *number(PyTypeObject *type, double re, double im)
{
    Number *v = make(type, sizeof *v);
    if (v)
        v->value[0] = re, v->value[1] = im;
    return (PyObject *)v;
}

PyObject *PyLong_FromLongLong(long long v)
{
    PyObject *o = number(&PyLong_Type, (double)v, 0);
    if (o)
        ((Number *)o)->integer = v;
    return o;
}

PyObject *PyLong_FromUnsignedLongLong(unsigned long long v) { return PyLong_FromLongLong((long long)v); }
long long PyLong_AsLongLong(PyObject *o) { return ((Number *)o)->integer; }

PyObject *PyNumber_Index(PyObject *o)
{
    if (Py_TYPE(o) == &PyLong_Type)
        return Py_NewRef(o);
    PyErr_SetString(PyExc_TypeError, "no int");
    return NULL;
}

PyObject *PyFloat_FromDouble(double v) { return number(&number_type, v, 0); }
PyObject *PyComplex_FromDoubles(double re, double im) { return number(&number_type, re, im); }
PyObject *PyBool_FromLong(long v) { return Py_NewRef(&truths[v != 0]); }
PyObject *PyUnicode_InternFromString(const char *s) { return (void)s, number(&number_type, 0, 0); }

PyObject *PyCapsule_New(void *pointer, const char *name, PyCapsule_Destructor destructor)
{
    Capsule *c = make(&PyCapsule_Type, sizeof *c);
    if (c)
        c->pointer = pointer, c->name = name, c->destructor = destructor;
    return (PyObject *)c;
}

const char *PyCapsule_GetName(PyObject *o) { return ((Capsule *)o)->name; }

void *PyCapsule_GetPointer(PyObject *o, const char *name)
{
    if (strcmp(((Capsule *)o)->name, name) == 0)
        return ((Capsule *)o)->pointer;
    PyErr_SetString(PyExc_ValueError, "the capsule has another name");
    return NULL;
}

int PyCapsule_SetName(PyObject *o, const char *name)
{
    ((Capsule *)o)->name = name;
    return 0;
}

int PyObject_GetBuffer(PyObject *o, Py_buffer *view, int flags)
{
    (void)flags;
    *view = fake_buffer;
    view->obj = Py_NewRef(o);
    return 0;
}

void PyBuffer_Release(Py_buffer *view)
{
    fake_released++;
    Py_XDECREF(view->obj);
    view->obj = NULL;
}

/* --- threads: this one holds the interpreter --- */

PyThreadState *PyGILState_GetThisThreadState(void) { return (PyThreadState *)truths; }
PyThreadState *PyThreadState_GetUnchecked(void);
PyThreadState *PyThreadState_GetUnchecked(void) { return (PyThreadState *)truths; }
PyInterpreterState *PyInterpreterState_Get(void) { return (PyInterpreterState *)truths; }
PyInterpreterState *PyThreadState_GetInterpreter(PyThreadState *);
PyInterpreterState *PyThreadState_GetInterpreter(PyThreadState *state) { return (PyInterpreterState *)state; }
int Py_IsInitialized(void);
int Py_IsInitialized(void) { return 1; }
int PyErr_CheckSignals(void);
int PyErr_CheckSignals(void) { return 0; }

/* --- exceptions --- */

#define EXCEPTION(name)                                                                   \
    static PyTypeObject type_##name = {{IMMORTAL, NULL}, #name, 0, plain_dealloc, NULL, NULL}; \
    PyObject *PyExc_##name = (PyObject *)&type_##name
EXCEPTION(AttributeError);
EXCEPTION(BufferError);
EXCEPTION(ImportError);
EXCEPTION(MemoryError);
EXCEPTION(OverflowError);
EXCEPTION(Exception);
EXCEPTION(RuntimeError);
EXCEPTION(TypeError);
EXCEPTION(ValueError);

static PyObject *error, *error_value;
static char text[1024];

const char *fake_error(void) { return error ? text : ""; }
PyObject *PyErr_Occurred(void) { return error; }
int PyErr_ExceptionMatches(PyObject *type) { return error == type || (error && type == PyExc_Exception); }

void PyErr_Restore(PyObject *type, PyObject *value, PyObject *traceback)
{
    Py_XDECREF(error_value);
    Py_XDECREF(traceback);
    error = type;
    error_value = value;
}

void PyErr_Fetch(PyObject **type, PyObject **value, PyObject **traceback)
{
    *type = error;
    *value = error_value;
    *traceback = error = error_value = NULL;
}

void PyErr_NormalizeException(PyObject **type, PyObject **value, PyObject **traceback)
{
    (void)traceback;
    if (!*value)
        *value = make((PyTypeObject *)*type, sizeof(Number));
}

void PyErr_Clear(void) { PyErr_Restore(NULL, NULL, NULL); }

PyObject *PyErr_NoMemory(void)
{
    PyErr_SetString(PyExc_MemoryError, "no memory");
    return NULL;
}

void PyErr_SetString(PyObject *type, const char *message)
{
    PyErr_Restore(type, NULL, NULL);
    snprintf(text, sizeof text, "%s", message);
}

/* As Python formats: every argument is read as its letter says, so that a wrong one is seen by the sanitizers. */
PyObject *PyErr_FormatV(PyObject *type, const char *format, va_list args)
{
    char out[sizeof text], *to = out, one[256];
    const char *from = format;
    while (*from && to < out + sizeof out - sizeof one) {
        if (*from != '%') {
            *to++ = *from++;
            continue;
        }
        const size_t length = strspn(from + 1, "lzu") + 1;
        char letter[8] = "";
        memcpy(letter, from, length < 7 ? length + 1 : 7);
        const char *kind = letter + 1;
        if (strcmp(kind, "%") == 0)
            strcpy(one, "%");
        else if (strcmp(kind, "s") == 0)
            snprintf(one, sizeof one, "%s", va_arg(args, const char *));
        else if (strcmp(kind, "R") == 0)
            snprintf(one, sizeof one, "<%p>", (void *)va_arg(args, PyObject *));
        else if (strcmp(kind, "d") == 0)
            snprintf(one, sizeof one, "%d", va_arg(args, int));
        else if (kind[0] == 'u')
            snprintf(one, sizeof one, "%u", va_arg(args, unsigned)), letter[2] = 0;
        else if (strcmp(kind, "zd") == 0)
            snprintf(one, sizeof one, "%zd", va_arg(args, Py_ssize_t));
        else if (strcmp(kind, "lld") == 0)
            snprintf(one, sizeof one, "%lld", va_arg(args, long long));
        else {
            fprintf(stderr, "a format that is not known here: %s\n", format);
            abort();
        }
        from += strlen(letter);
        to += strlen(strcpy(to, one));
    }
    *to = 0;
    PyErr_Restore(type, NULL, NULL);
    memcpy(text, out, sizeof text);
    return NULL;
}

PyObject *PyErr_Format(PyObject *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyErr_FormatV(type, format, args);
    va_end(args);
    return NULL;
}

void PyException_SetCause(PyObject *o, PyObject *cause)
{
    (void)o;
    Py_XDECREF(cause);
}

PyObject *(*dlf_vectorcall_method)(PyObject *name, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* --- the Go library, which is never there --- */

int dlf_go_usable(void) { return 0; }

int dlf_go_call(DlfFrame *frame)
{
    (void)frame;
    PyErr_SetString(PyExc_RuntimeError, "no Go here");
    return -1;
}

void dlf_raise_frame(const char *function, DlfFrame *frame) { dlf_raise(frame->status, "%s", function); }
