/* A very small Python, enough for the shim's import and export to run without an interpreter, at millions of calls a second. */
#ifndef DLF_FUZZ_PYTHON_H
#define DLF_FUZZ_PYTHON_H

#include "../../pyext/shim/core.h"

typedef void FakeDealloc(PyObject *);

struct _typeobject {
    PyObject ob_base;
    const char *name;
    unsigned long flags;
    FakeDealloc *dealloc;
    int (*getbuffer)(PyObject *, Py_buffer *, int);
    void (*releasebuffer)(PyObject *, Py_buffer *);
};

/* Objects of this type have the buffer that fake_buffer describes; PyBuffer_Release counts. */
extern PyTypeObject fake_exporter_type;
extern Py_buffer fake_buffer;
extern int fake_released;

/* The text of the exception in flight, "" for none. */
const char *fake_error(void);
/* How many Python objects live, immortal ones aside. */
int64_t fake_objects(void);
/* The n-th allocation from now fails, be it Python's or, where the linker wraps them, malloc's or calloc's; 0: none. */
extern unsigned fake_fail_at;
int fake_fails(void);

#endif
