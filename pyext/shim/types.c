/* What is known about the types of other libraries: their exchange tables, and which of them need care. */
#include "core.h"

/*
 * A type is asked once; the entry holds it, since an address can be used again. "No table" is an answer too, but a class of Python may be given one later:
 * then it is asked again after some uses.
 */
typedef struct {
    PyTypeObject *type;
    PyObject *capsule; /* keeps the table, should its owner think better of it */
    const DlfExchangeApi *api;
    int traits;
    int uses_left; /* of "no table"; 0: the answer stands */
} Entry;

#define SETS 32
#define USES 256
static Entry cache[SETS][2];

/* The capsule of the type's table in *capsule (a new reference) and the table; NULL for none, or, with an error set, for an interruption. */
static const DlfExchangeApi *read_table(PyTypeObject *type, PyObject **capsule)
{
    const DlfExchangeApi *api = NULL;
    *capsule = PyObject_GetAttrString((PyObject *)type, DLF_ATTR_EXCHANGE);
    if (!*capsule && !dlf_error_is_soft())
        return NULL;
    PyErr_Clear();
    if (*capsule && Py_TYPE(*capsule) == &PyCapsule_Type && PyCapsule_IsValid(*capsule, DLF_CAPSULE_EXCHANGE))
        api = PyCapsule_GetPointer(*capsule, DLF_CAPSULE_EXCHANGE);
    /* A newer major hangs older tables behind it; nobody has more than a few, and a cycle must end. */
    for (int i = 0; api && api->header.version.major != DLF_VERSION_MAJOR; i++)
        api = i < 16 && api->header.version.major > DLF_VERSION_MAJOR ? (const DlfExchangeApi *)api->header.prev_api : NULL;
    return api && api->managed_tensor_from_py_object_no_sync ? api : NULL;
}

/* A class of a module that is loaded, as a new reference; nothing can derive from a class of one that is not. */
static PyTypeObject *class_of(const char *module_name, const char *class_name)
{
    PyObject *name = PyUnicode_FromString(module_name);
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *found = module ? PyObject_GetAttrString(module, class_name) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    if (found && dlf_py_has(found, PyType_FLAG_TYPE))
        return (PyTypeObject *)found;
    Py_XDECREF(found);
    return NULL;
}

static int derives_from(PyTypeObject *type, const char *module_name, const char *class_name)
{
    PyTypeObject *base = class_of(module_name, class_name);
    const int yes = base && PyType_IsSubtype(type, base);
    Py_XDECREF(base);
    return yes;
}

static int owns_attribute(PyTypeObject *type)
{
    PyObject *own = PyObject_GetAttrString((PyObject *)type, "__dict__");
    PyObject *value = own ? PyMapping_GetItemString(own, DLF_ATTR_EXCHANGE) : NULL;
    const int yes = value != NULL;
    Py_XDECREF(value);
    Py_XDECREF(own);
    PyErr_Clear();
    return yes;
}

static int is_ndarray(PyTypeObject *type)
{
    PyTypeObject *ndarray = class_of("numpy", "ndarray");
    const int yes = type == ndarray;
    Py_XDECREF(ndarray);
    if (yes && !dlf_numpy_is_open())
        dlf_numpy_open(type);
    return yes;
}

static int traits_of(PyTypeObject *type, const DlfExchangeApi *api)
{
    int traits = api && owns_attribute(type) ? DLF_TRAIT_OWN_TABLE : 0;
    if (PyType_IsSubtype(type, dlf_tensor_type))
        traits |= DLF_TRAIT_OURS;
    if (derives_from(type, "torch", "Tensor"))
        traits |= DLF_TRAIT_TORCH;
    if (derives_from(type, "numpy.ma", "MaskedArray"))
        traits |= DLF_TRAIT_MASKED;
    if (is_ndarray(type))
        traits |= DLF_TRAIT_NDARRAY;
    return traits;
}

static void drop(Entry e)
{
    Py_XDECREF(e.capsule);
    Py_XDECREF(e.type);
}

static const DlfExchangeApi *ask(PyTypeObject *type, Entry *set, int *out_traits)
{
    Entry e = {.type = type};
    Py_INCREF(type); /* asking it may run code that drops it */
    e.api = read_table(type, &e.capsule);
    if (PyErr_Occurred()) {
        *out_traits = -1;
        Py_DECREF(type);
        return NULL;
    }
    e.traits = *out_traits = traits_of(type, e.api);
    if (!e.api && PyType_GetFlags(type) & PyType_FLAG_HEAPTYPE) /* a class of C can be given no table */
        e.uses_left = USES;
    Entry old;
    if (set[0].type == type) {
        old = set[0];
    } else {
        old = set[1];
        set[1] = set[0];
    }
    set[0] = e;
    drop(old);
    /* That may have run code that took both places. */
    return set[0].type == type ? set[0].api : dlf_table_of(type, out_traits);
}

const DlfExchangeApi *dlf_table_of(PyTypeObject *type, int *out_traits)
{
    Entry *set = cache[(uint32_t)((uintptr_t)type >> 4) * 2654435769U >> 27];
    Entry *e = set[0].type == type ? &set[0] : &set[1];
    if (e->type != type || (e->uses_left && --e->uses_left == 0))
        return ask(type, set, out_traits);
    *out_traits = e->traits;
    return e->api;
}
