#include "core.h"

/* The one table from kinds to Python classes; the documentation prints it. */
static PyObject *class_of(int kind)
{
    switch (kind) {
    case DLF_KIND_VALUE:
    case DLF_KIND_CLOSED:
        return PyExc_ValueError;
    case DLF_KIND_TYPE:
        return PyExc_TypeError;
    case DLF_KIND_MEMORY:
        return PyExc_MemoryError;
    case DLF_KIND_PANIC:
        return PyExc_RuntimeError;
    default:
        return PyExc_BufferError;
    }
}

PyObject *dlf_raise(int kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyErr_FormatV(class_of(kind), format, args);
    va_end(args);
    return NULL;
}

PyObject *dlf_take_error(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!type)
        return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyObject_SetAttrString(value, "__traceback__", traceback);
    Py_XDECREF(traceback);
    Py_DECREF(type);
    return value;
}

void dlf_set_error(PyObject *error, PyObject *cause)
{
    if (cause && cause != error)
        PyException_SetCause(error, cause);
    else
        Py_XDECREF(cause);
    PyErr_Restore(Py_NewRef(Py_TYPE(error)), error, NULL);
}

int dlf_error_is_soft(void) { return PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError); }
