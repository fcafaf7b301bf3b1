/* Tells callgrind what to count, from Python. Every function does nothing outside of valgrind. */
#include <Python.h>
#include <valgrind/callgrind.h>

/* Counting begins, from nothing. */
static PyObject *begin(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    CALLGRIND_ZERO_STATS;
    Py_RETURN_NONE;
}

/* What was counted since then goes to a file that carries the name. */
static PyObject *end(PyObject *self, PyObject *name)
{
    (void)self;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return NULL;
    CALLGRIND_DUMP_STATS_AT(text);
    Py_RETURN_NONE;
}

/* From here on instructions are counted at all: everything before runs ten times as fast. */
static PyObject *start(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    CALLGRIND_START_INSTRUMENTATION;
    return PyBool_FromLong(RUNNING_ON_VALGRIND);
}

static PyMethodDef functions[] = {
    {"start", start, METH_NOARGS, NULL},
    {"begin", begin, METH_NOARGS, NULL},
    {"end", end, METH_O, NULL},
    {0},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "probe", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_probe(void);
PyMODINIT_FUNC PyInit_probe(void) { return PyModule_Create(&definition); }
