/* The module `_core`. */
#include "core.h"

#include <dlfcn.h>

PyObject *(*dlf_vectorcall_method)(PyObject *, PyObject *const *, size_t, PyObject *);

static PyObject *ledger(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    dlf_drain();
    DlfLedger live;
    dlf_ledger(&live);
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {{"tensors", dlf_tensor_count()}, {"storages", live.storages}, {"exports", live.exports}, {"imports", live.imports}, {"bytes", live.bytes}, {"queued", dlf_queue_length()}};
    PyObject *d = PyDict_New();
    for (size_t i = 0; d && i < sizeof rows / sizeof *rows; i++) {
        PyObject *v = PyLong_FromLongLong(rows[i].value);
        const int bad = !v || PyDict_SetItemString(d, rows[i].name, v);
        Py_XDECREF(v);
        if (bad) {
            Py_DECREF(d);
            return NULL;
        }
    }
    return d;
}

static PyObject *at_exit(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    dlf_queue_close();
    return Py_NewRef(Py_None);
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef methods[] = {
    {"from_dlpack", FAST(dlf_from_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack($module, x, /, *, device=None, copy=None, stream=...)\n--\n\n"
     "A Tensor over the memory of x: any object with __dlpack__, or a DLPack capsule (which is consumed).\n\n"
     "copy=True gives a private writable copy, copy=False refuses to copy, None copies only what could not be used otherwise (unaligned data).\n"
     "device asks the producer to move the tensor. stream is handed to the producer as given; left out, the device's default stream is named.\n"
     "BufferError if the tensor cannot be exchanged so, TypeError if x is no tensor; what the producer raises arrives unchanged."},
    {"from_buffer", dlf_from_buffer, METH_O,
     "from_buffer($module, obj, /)\n--\n\nA Tensor over the memory of an object with the buffer protocol, which stays locked until the tensor and all its exports are gone."},
    {"asarray", FAST(dlf_asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray($module, obj, /, *, dtype=None, device=None, copy=None)\n--\n\n"
     "A Tensor of anything: a Tensor (itself), what speaks DLPack or the buffer protocol (shared), nested lists and scalars (new).\n\n"
     "dtype casts what has elements, as NumPy's astype does; numbers of lists must fit it. copy=False is a BufferError where that needs a copy."},
    {"empty", FAST(dlf_empty), METH_FASTCALL | METH_KEYWORDS,
     "empty($module, shape, *, dtype='float32', device='cpu')\n--\n\nA new contiguous tensor, 64-byte aligned, with whatever values its memory holds."},
    {"zeros", FAST(dlf_zeros), METH_FASTCALL | METH_KEYWORDS, "zeros($module, shape, *, dtype='float32', device='cpu')\n--\n\nA new contiguous tensor of zeros, 64-byte aligned."},
    {"full", FAST(dlf_full), METH_FASTCALL | METH_KEYWORDS,
     "full($module, shape, fill_value, *, dtype='float32', device='cpu')\n--\n\nA new contiguous tensor of one value, 64-byte aligned. ValueError if an integer does not fit the dtype; a float beyond the range becomes infinite."},
    {"from_address", dlf_from_address, METH_O,
     "from_address($module, address, /)\n--\n\n"
     "Takes ownership of the DLManagedTensorVersioned at an address, exactly once: its deleter runs when the tensor and its exports are gone, or at once if it is refused.\n"
     "For callers that can pass only integers (gopy, ctypes). An address of anything else crashes the process."},
    {"wrap_pointer", FAST(dlf_wrap_pointer), METH_FASTCALL | METH_KEYWORDS,
     "wrap_pointer($module, ptr, shape, dtype, *, strides=None, device='cpu', readonly=False, owner=None)\n--\n\n"
     "A Tensor over memory at an address. strides count elements. owner is kept until the tensor and its exports are gone; without one the caller keeps the memory valid."},
    {"convert", FAST(dlf_convert), METH_FASTCALL | METH_KEYWORDS,
     "convert($module, x, to, /, *, copy=None)\n--\n\n"
     "x as another library's tensor: to is a tensor type (torch.Tensor) or a name ('numpy', 'torch', 'cupy', 'jax', ...).\n\n"
     "Memory is shared where both sides allow it. Dicts, lists and tuples are converted item by item. copy=True always copies;\n"
     "copy=False is a BufferError where sharing is impossible, also for read-only data and a target that would hand out writable views of it."},
    {"ledger", ledger, METH_NOARGS,
     "ledger($module, /)\n--\n\nLive counts: Tensor objects, storages, exported and imported managed tensors, bytes allocated, releases that wait for the interpreter."},
    {"set_num_threads", dlf_set_num_threads, METH_O,
     "set_num_threads($module, n, /)\n--\n\nHow many goroutines a long copy or cast may use at most; 0: as many as the machine has. DLFERRY_NUM_THREADS sets it at start."},
    {"get_num_threads", dlf_get_num_threads, METH_NOARGS, "get_num_threads($module, /)\n--\n\nThe limit that set_num_threads or DLFERRY_NUM_THREADS set; 0: none."},
    {"_view", FAST(dlf_view), METH_FASTCALL, NULL},
    {"_view_dtype", FAST(dlf_view_dtype), METH_FASTCALL, NULL},
    {"_readonly", dlf_readonly_view, METH_O, NULL},
    {"_assign", FAST(dlf_assign), METH_FASTCALL, NULL},
    {"_fill", FAST(dlf_fill), METH_FASTCALL, NULL},
    {"_cast", FAST(dlf_cast), METH_FASTCALL, NULL},
    {"_from_values", FAST(dlf_from_values), METH_FASTCALL, NULL},
    {"_name_target", FAST(dlf_name_target), METH_FASTCALL, NULL},
    {"_to_framework", FAST(dlf_to_framework), METH_FASTCALL, NULL},
    {"_speaks_dlpack", dlf_speaks, METH_O, NULL},
    {"_exchange_table", dlf_exchange_table, METH_O, NULL},
    {"_function", FAST(dlf_function), METH_FASTCALL, NULL},
    {"_torch_layout_known", dlf_torch_known, METH_NOARGS, NULL},
    {"_go_info", dlf_go_info, METH_NOARGS, NULL},
    {"_go_state", dlf_go_state, METH_NOARGS, NULL},
    {"_at_exit", at_exit, METH_NOARGS, NULL},
    {"_install", FAST(dlf_install), METH_FASTCALL | METH_KEYWORDS, NULL},
    {0},
};

static int register_exit(PyObject *module)
{
    PyObject *function = PyObject_GetAttrString(module, "_at_exit");
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *add = atexit ? PyObject_GetAttrString(atexit, "register") : NULL;
    PyObject *done = add && function ? PyObject_CallFunctionObjArgs(add, function, NULL) : NULL;
    const int bad = !done;
    Py_XDECREF(done);
    Py_XDECREF(add);
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    return bad ? -1 : 0;
}

static int set_up(PyObject *module)
{
    *(void **)&dlf_vectorcall_method = dlsym(RTLD_DEFAULT, "PyObject_VectorcallMethod");
    return dlf_queue_init() || dlf_golib_init() || dlf_tensor_init_type() || dlf_memory_init_type() || dlf_call_init_type() || dlf_table_install() || register_exit(module) ? -1 : 0;
}

static int exec(PyObject *module)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "dlferry: sub-interpreters are not supported; import it in the main interpreter");
        return -1;
    }
    static int is_set_up;
    if (dlf_queue_closed()) {
        PyErr_SetString(PyExc_ImportError, "dlferry: the interpreter that imported it has ended; an embedding program must not import it again after Py_Finalize");
        return -1;
    }
    if (!is_set_up && set_up(module))
        return -1;
    is_set_up = 1;
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)dlf_tensor_type);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, exec}, {0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_core", "The C side of dlferry.", 0, methods, slots, NULL, NULL, NULL};

__attribute__((visibility("default"))) PyObject *PyInit__core(void) { return PyModuleDef_Init(&definition); }
