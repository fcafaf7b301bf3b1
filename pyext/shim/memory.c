/* What an ndarray made by us has as its base: an object that holds a storage and can do nothing else. A Tensor there could be closed under the array. */
#include "core.h"

typedef struct {
    PyObject ob_base;
    DlfStorage *st;
} Memory;

/* As for tensors: each with its reference on the type, linked by the first word. */
#define MAX_SPARE (DLF_KEEPS_SPARES ? 64 : 0)
static PyTypeObject *memory_type;
static PyObject *spare;
static int spares;

PyObject *dlf_memory_new(DlfStorage *st)
{
    PyObject *o = spare;
    if (o) {
        spare = *(PyObject **)o;
        spares--;
        o->ob_refcnt = 1;
    } else if ((o = PyObject_Malloc(sizeof(Memory)))) {
        PyObject_Init(o, memory_type);
    } else {
        return PyErr_NoMemory();
    }
    dlf_storage_ref(st);
    ((Memory *)o)->st = st;
    return o;
}

static void memory_dealloc(PyObject *o)
{
    dlf_storage_unref_attached(((Memory *)o)->st);
    if (spares < MAX_SPARE) {
        *(PyObject **)o = spare;
        spare = o;
        spares++;
        return;
    }
    PyObject_Free(o);
    Py_DECREF(memory_type);
}

int dlf_memory_init_type(void)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, memory_dealloc},
        {Py_tp_doc, "Keeps the memory of an array that was made from a Tensor."},
        {0, NULL},
    };
    static PyType_Spec spec = {"dlferry.Memory", sizeof(Memory), 0, PyType_FLAG_DISALLOW_INSTANTIATION, slots};
    memory_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return memory_type ? 0 : -1;
}
