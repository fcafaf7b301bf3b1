/*
 * The part of CPython's stable ABI (3.11) that the extension uses, declared by hand so that building needs no Python headers.
 * tests_py/unit/test_python_abi.py compares every prototype, constant and struct with the real headers. Valid for builds with a GIL.
 */
#ifndef DLF_PYTHON_ABI_H
#define DLF_PYTHON_ABI_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef intptr_t Py_ssize_t;
typedef struct _typeobject PyTypeObject;

typedef struct _object {
    Py_ssize_t ob_refcnt;
    PyTypeObject *ob_type;
} PyObject;

typedef struct _ts PyThreadState;
typedef struct _is PyInterpreterState;

typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef PyObject *(*getter)(PyObject *, void *);
typedef int (*setter)(PyObject *, PyObject *, void *);
typedef void (*freefunc)(void *);
typedef void (*PyCapsule_Destructor)(PyObject *);

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

typedef struct {
    const char *name;
    getter get;
    setter set;
    const char *doc;
    void *closure;
} PyGetSetDef;

typedef struct {
    const char *name;
    int type;
    Py_ssize_t offset;
    int flags;
    const char *doc;
} PyMemberDef;

typedef struct {
    int slot;
    void *pfunc;
} PyType_Slot;

typedef struct {
    const char *name;
    int basicsize;
    int itemsize;
    unsigned int flags;
    PyType_Slot *slots;
} PyType_Spec;

typedef struct {
    PyObject ob_base;
    PyObject *(*m_init)(void);
    Py_ssize_t m_index;
    PyObject *m_copy;
} PyModuleDef_Base;

typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;

typedef struct {
    PyModuleDef_Base m_base;
    const char *m_name;
    const char *m_doc;
    Py_ssize_t m_size;
    PyMethodDef *m_methods;
    PyModuleDef_Slot *m_slots;
    void *m_traverse;
    void *m_clear;
    void *m_free;
} PyModuleDef;

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} Py_buffer;

#define PyModuleDef_HEAD_INIT {{1, NULL}, NULL, 0, NULL}

#define METH_VARARGS 0x0001
#define METH_KEYWORDS 0x0002
#define METH_NOARGS 0x0004
#define METH_O 0x0008
#define METH_FASTCALL 0x0080

#define Py_TPFLAGS_BASETYPE (1UL << 10)
#define Py_mod_exec 2
#define Py_READONLY_MEMBER 1 /* READONLY */
#define Py_SSIZET_MEMBER 19  /* T_PYSSIZET */

#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2
#define Py_tp_alloc 47
#define Py_tp_dealloc 52
#define Py_tp_doc 56
#define Py_tp_methods 64
#define Py_tp_new 65
#define Py_tp_members 72
#define Py_tp_getset 73
#define Py_tp_free 74

#define PyBUF_SIMPLE 0
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#define PyBUF_STRIDES (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)
#define PyBUF_F_CONTIGUOUS (0x0040 | PyBUF_STRIDES)
#define PyBUF_ANY_CONTIGUOUS (0x0080 | PyBUF_STRIDES)
#define PyBUF_INDIRECT (0x0100 | PyBUF_STRIDES)
#define PyBUF_FULL_RO (PyBUF_INDIRECT | PyBUF_FORMAT)

/* One declaration a line: the test reads them. */
#define DLF_PY extern

DLF_PY PyObject _Py_NoneStruct;
DLF_PY PyObject _Py_EllipsisObject;
DLF_PY PyTypeObject PyBool_Type;
DLF_PY PyTypeObject PyCapsule_Type;
DLF_PY PyTypeObject PyComplex_Type;
DLF_PY PyTypeObject PyFloat_Type;
DLF_PY PyTypeObject PyList_Type;
DLF_PY PyTypeObject PyLong_Type;
DLF_PY PyTypeObject PyTuple_Type;
DLF_PY PyTypeObject PyUnicode_Type;
DLF_PY PyObject *PyExc_AttributeError;
DLF_PY PyObject *PyExc_BufferError;
DLF_PY PyObject *PyExc_ImportError;
DLF_PY PyObject *PyExc_MemoryError;
DLF_PY PyObject *PyExc_OverflowError;
DLF_PY PyObject *PyExc_Exception;
DLF_PY PyObject *PyExc_RuntimeError;
DLF_PY PyObject *PyExc_TypeError;
DLF_PY PyObject *PyExc_ValueError;

DLF_PY void _Py_Dealloc(PyObject *);
DLF_PY PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
DLF_PY PyObject *PySequence_Tuple(PyObject *);
DLF_PY PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
DLF_PY PyObject *PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *);
DLF_PY int PyType_IsSubtype(PyTypeObject *, PyTypeObject *);
DLF_PY PyObject *PyType_FromSpec(PyType_Spec *);
DLF_PY void *PyType_GetSlot(PyTypeObject *, int);
DLF_PY unsigned long PyType_GetFlags(PyTypeObject *);
DLF_PY PyObject *PyType_GenericAlloc(PyTypeObject *, Py_ssize_t);
DLF_PY PyObject *PyObject_Init(PyObject *, PyTypeObject *);
DLF_PY void *PyObject_Malloc(size_t);
DLF_PY void PyObject_Free(void *);
DLF_PY void PyObject_ClearWeakRefs(PyObject *);
DLF_PY PyObject *PyObject_GetAttr(PyObject *, PyObject *);
DLF_PY PyObject *PyObject_GetAttrString(PyObject *, const char *);
DLF_PY int PyObject_SetAttrString(PyObject *, const char *, PyObject *);
DLF_PY PyObject *PyObject_Call(PyObject *, PyObject *, PyObject *);
DLF_PY PyObject *PyObject_CallNoArgs(PyObject *);
DLF_PY PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
DLF_PY int PyObject_IsTrue(PyObject *);
DLF_PY int PyObject_IsInstance(PyObject *, PyObject *);
DLF_PY int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
DLF_PY int PyObject_CheckBuffer(PyObject *);
DLF_PY void PyBuffer_Release(Py_buffer *);
DLF_PY PyObject *PyNumber_Index(PyObject *);
DLF_PY PyObject *PyNumber_Float(PyObject *);
DLF_PY PyObject *PySequence_Fast(PyObject *, const char *);
DLF_PY Py_ssize_t PySequence_Size(PyObject *);
DLF_PY PyObject *PySequence_GetItem(PyObject *, Py_ssize_t);
DLF_PY PyObject *PyUnicode_FromString(const char *);
DLF_PY PyObject *PyUnicode_InternFromString(const char *);
DLF_PY int PyUnicode_CompareWithASCIIString(PyObject *, const char *);
DLF_PY const char *PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);
DLF_PY PyObject *PyLong_FromLongLong(long long);
DLF_PY PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
DLF_PY PyObject *PyLong_FromVoidPtr(void *);
DLF_PY long long PyLong_AsLongLong(PyObject *);
DLF_PY unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
DLF_PY PyObject *PyBool_FromLong(long);
DLF_PY PyObject *PyFloat_FromDouble(double);
DLF_PY double PyFloat_AsDouble(PyObject *);
DLF_PY PyObject *PyComplex_FromDoubles(double, double);
DLF_PY double PyComplex_RealAsDouble(PyObject *);
DLF_PY double PyComplex_ImagAsDouble(PyObject *);
DLF_PY PyObject *PyTuple_New(Py_ssize_t);
DLF_PY int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
DLF_PY PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
DLF_PY Py_ssize_t PyTuple_Size(PyObject *);
DLF_PY PyObject *PyTuple_Pack(Py_ssize_t, ...);
DLF_PY PyObject *PyList_New(Py_ssize_t);
DLF_PY Py_ssize_t PyList_Size(PyObject *);
DLF_PY PyObject *PyList_GetItem(PyObject *, Py_ssize_t);
DLF_PY int PyList_SetItem(PyObject *, Py_ssize_t, PyObject *);
DLF_PY PyObject *PyDict_New(void);
DLF_PY int PyDict_SetItemString(PyObject *, const char *, PyObject *);
DLF_PY PyObject *PyDict_GetItemString(PyObject *, const char *);
DLF_PY PyObject *PyMapping_GetItemString(PyObject *, const char *);
DLF_PY int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
DLF_PY PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
DLF_PY Py_ssize_t PyDict_Size(PyObject *);
DLF_PY int PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **);
DLF_PY PyObject *PyCapsule_New(void *, const char *, PyCapsule_Destructor);
DLF_PY void *PyCapsule_GetPointer(PyObject *, const char *);
DLF_PY const char *PyCapsule_GetName(PyObject *);
DLF_PY int PyCapsule_IsValid(PyObject *, const char *);
DLF_PY int PyCapsule_SetName(PyObject *, const char *);
DLF_PY void PyErr_SetString(PyObject *, const char *);
DLF_PY PyObject *PyErr_FormatV(PyObject *, const char *, va_list);
DLF_PY PyObject *PyErr_Format(PyObject *, const char *, ...);
DLF_PY PyObject *PyErr_NoMemory(void);
DLF_PY PyObject *PyErr_Occurred(void);
DLF_PY void PyErr_Clear(void);
DLF_PY int PyErr_CheckSignals(void);
DLF_PY int PyErr_ExceptionMatches(PyObject *);
DLF_PY void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
DLF_PY void PyErr_Restore(PyObject *, PyObject *, PyObject *);
DLF_PY void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **);
DLF_PY void PyErr_WriteUnraisable(PyObject *);
DLF_PY void PyException_SetCause(PyObject *, PyObject *);
DLF_PY PyObject *PyModuleDef_Init(PyModuleDef *);
DLF_PY int PyModule_AddObjectRef(PyObject *, const char *, PyObject *);
DLF_PY PyObject *PyImport_ImportModule(const char *);
DLF_PY PyObject *PyImport_GetModule(PyObject *);
DLF_PY PyThreadState *PyEval_SaveThread(void);
DLF_PY void PyEval_RestoreThread(PyThreadState *);
DLF_PY PyThreadState *PyGILState_GetThisThreadState(void);
DLF_PY int Py_IsInitialized(void);
DLF_PY PyInterpreterState *PyThreadState_GetInterpreter(PyThreadState *);
DLF_PY int Py_AddPendingCall(int (*)(void *), void *);
DLF_PY PyInterpreterState *PyInterpreterState_Get(void);
DLF_PY int64_t PyInterpreterState_GetID(PyInterpreterState *);

#define Py_None (&_Py_NoneStruct)
#define Py_Ellipsis (&_Py_EllipsisObject)

static inline PyTypeObject *Py_TYPE(PyObject *o) { return o->ob_type; }

/* Immortal objects (3.12) have the sign bit of the lower half set. Counting them as 3.11 would is tolerated, but lets their counts drift. */
static inline int dlf_py_is_immortal(void *o) { return (int32_t)((PyObject *)o)->ob_refcnt < 0; }

static inline void Py_INCREF(void *o)
{
    if (!dlf_py_is_immortal(o))
        ((PyObject *)o)->ob_refcnt++;
}

static inline void Py_DECREF(void *o)
{
    if (!dlf_py_is_immortal(o) && --((PyObject *)o)->ob_refcnt == 0)
        _Py_Dealloc(o);
}

/* Gives a reference back if it is not the last one, so that no code runs: whether it did. */
static inline int dlf_py_let_go(void *o)
{
    if (!dlf_py_is_immortal(o) && ((PyObject *)o)->ob_refcnt == 1)
        return 0;
    Py_DECREF(o);
    return 1;
}

static inline void Py_XDECREF(void *o)
{
    if (o)
        Py_DECREF(o);
}

static inline void Py_XINCREF(void *o)
{
    if (o)
        Py_INCREF(o);
}

static inline PyObject *Py_NewRef(void *o)
{
    Py_INCREF(o);
    return o;
}

#define PyType_FLAG_DISALLOW_INSTANTIATION (1UL << 7)
#define PyType_FLAG_HEAPTYPE (1UL << 9)
#define PyType_FLAG_LONG (1UL << 24)
#define PyType_FLAG_LIST (1UL << 25)
#define PyType_FLAG_TUPLE (1UL << 26)
#define PyType_FLAG_UNICODE (1UL << 28)
#define PyType_FLAG_TYPE (1UL << 31)

static inline int dlf_py_has(PyObject *o, unsigned long flag) { return (PyType_GetFlags(Py_TYPE(o)) & flag) != 0; }

#endif
