/* Functions of the Go library as functions of Python: made from descriptions that were generated with the library, called with one crossing. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* Views of more bytes than this are about a millisecond of work: other Python threads may run. */
#define NOGIL_VIEW_BYTES (1 << 20)
#define SCRATCH 512

static PyTypeObject *function_type;

static void function_dealloc(PyObject *o)
{
    DlfFunction *f = (DlfFunction *)o;
    PyTypeObject *type = Py_TYPE(o);
    for (int i = 0; i < f->nparams; i++) {
        free(f->params[i].name);
        free(f->params[i].keys);
        Py_XDECREF(f->params[i].fallback);
        Py_XDECREF(f->sig.interned[i]);
    }
    Py_XDECREF(f->sig.seen);
    free(f->name);
    free(f->doc);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

int dlf_call_init_type(void)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, function_dealloc}, {0, NULL}};
    static PyType_Spec spec = {"dlferry.Function", sizeof(DlfFunction), 0, 0, slots};
    function_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return function_type ? 0 : -1;
}

static int read_all(DlfReading *r, PyObject *const *a, DlfSlot *slots, DlfValue *in)
{
    for (int i = 0; i < r->f->nparams; i++) {
        slots[i].held = NULL;
        slots[i].buffer.obj = NULL;
        slots[i].memory = NULL;
        slots[i].foreign = NULL;
        if (dlf_read_param(r, i, a[i], &slots[i], &in[i])) {
            for (int k = 0; k <= i; k++)
                dlf_let_go(&slots[k]);
            return -1;
        }
    }
    return 0;
}

static void let_all_go(const DlfFunction *f, DlfSlot *slots)
{
    for (int i = 0; i < f->nparams; i++)
        dlf_let_go(&slots[i]);
}

/* By hand: what an initialiser compiles to clears the frame first, by an instruction that takes longer than all of this. */
static void open_frame(DlfFrame *frame, const DlfFunction *f, int instance, const DlfValue *in, DlfValue *out, char *scratch)
{
    frame->op = DLF_OP_CALL;
    frame->status = DLF_KIND_OK;
    frame->a = frame->b = NULL;
    frame->flags = 0;
    frame->threads = 0;
    frame->function = f->id + (instance > 0 ? (uint32_t)instance : 0);
    frame->n_in = f->nparams;
    frame->n_out = f->nresults;
    frame->in = in;
    frame->out = out;
    frame->scratch = scratch;
    frame->scratch_size = SCRATCH;
    frame->call = 0;
    frame->pending = 0;
    frame->reserved = 0;
    frame->message = frame->stack = NULL;
    for (int i = 0; i < f->nresults; i++)
        out[i] = (DlfValue){0};
}

static PyObject *invoke(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    DlfFunction *f = (DlfFunction *)self;
    PyObject *a[DLF_MAX_ARGS];
    DlfSlot slots[DLF_MAX_PARAMS];
    DlfValue in[DLF_MAX_PARAMS], out[DLF_MAX_RESULTS];
    char scratch[SCRATCH] __attribute__((aligned(16)));
    DlfReading r = {.f = f, .owning = (f->flags & (DLF_CALL_NOGIL | DLF_CALL_CONTEXT)) != 0, .instance = -1};
    dlf_drain();
    if (dlf_parse(&f->sig, args, nargs, kwnames, a))
        return NULL;
    for (int i = f->sig.required; i < f->nparams; i++)
        if (!a[i])
            a[i] = f->params[i].fallback;
    DlfLike like = {0};
    if (f->takes_like && a[f->nparams] && a[f->nparams] != Py_None && dlf_read_like(&like, a[f->nparams], f->name))
        return NULL;
    if (read_all(&r, a, slots, in))
        goto refused;
    if (!r.owning && r.bytes > NOGIL_VIEW_BYTES && !(f->flags & DLF_CALL_GIL)) {
        let_all_go(f, slots);
        r = (DlfReading){.f = f, .owning = 1, .instance = -1};
        if (read_all(&r, a, slots, in))
            goto refused;
    }
    DlfFrame frame;
    open_frame(&frame, f, r.instance, in, out, scratch);
    if (!like.asked && !(f->flags & DLF_CALL_LIKE_NONE)) {
        like.to = (PyObject *)r.like;
        Py_XINCREF(like.to);
    }
    const int failed = dlf_go_call_function(&frame, r.owning, (f->flags & DLF_CALL_CONTEXT) != 0);
    if (!failed || frame.call) /* Go took over what was handed to it */
        for (int i = 0; i < f->nparams; i++)
            slots[i].foreign = NULL;
    PyObject *error = failed ? dlf_take_error() : NULL;
    let_all_go(f, slots);
    PyObject *result = NULL;
    if (failed || frame.status != DLF_KIND_OK) {
        dlf_drop_results(f, &frame);
        if (failed)
            dlf_set_error(error, NULL);
        else
            dlf_raise_frame(f->name, &frame);
    } else {
        result = dlf_results(f, &frame, &like);
    }
    Py_XDECREF(like.to);
    return result;
refused:
    Py_XDECREF(like.to);
    return NULL;
}

/* --- made from a description --- */

static char *text_of(PyObject *o, const char *what)
{
    const char *s = dlf_py_has(o, PyType_FLAG_UNICODE) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
    char *copy = s ? strdup(s) : NULL;
    if (s && !copy)
        PyErr_NoMemory();
    else if (!copy && !PyErr_Occurred())
        dlf_raise(DLF_KIND_TYPE, "_function: %s, want a str", what);
    return copy;
}

/* (name, kind, spec, default) */
static int read_description(DlfParam *p, PyObject *o)
{
    int64_t kind, number;
    if (!dlf_py_has(o, PyType_FLAG_TUPLE) || PyTuple_Size(o) != 4 || !dlf_py_has(PyTuple_GetItem(o, 2), PyType_FLAG_TUPLE)) {
        dlf_raise(DLF_KIND_TYPE, "_function: params, want tuples of (name, kind, spec, default)");
        return -1;
    }
    PyObject *spec = PyTuple_GetItem(o, 2), *fallback = PyTuple_GetItem(o, 3);
    const Py_ssize_t n = PyTuple_Size(spec);
    if (dlf_int64(PyTuple_GetItem(o, 1), &kind, "_function", "kind") || !(p->name = text_of(PyTuple_GetItem(o, 0), "name")))
        return -1;
    p->kind = (int)kind;
    p->fallback = fallback == Py_Ellipsis ? NULL : Py_NewRef(fallback);
    p->nkeys = (int)n;
    if (n && !(p->keys = malloc((size_t)n * sizeof *p->keys))) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (dlf_int64(PyTuple_GetItem(spec, i), &number, "_function", "spec"))
            return -1;
        p->keys[i] = (uint32_t)number;
    }
    p->bits = n ? (int)p->keys[0] : 64;
    return 0;
}

static int describe(DlfFunction *f, PyObject *const *args)
{
    int64_t id, flags, kind;
    if (!(f->name = text_of(args[1], "name")) || !(f->doc = text_of(args[2], "doc")) || dlf_int64(args[3], &id, "_function", "id") || dlf_int64(args[6], &flags, "_function", "flags"))
        return -1;
    if (!dlf_py_has(args[4], PyType_FLAG_TUPLE) || !dlf_py_has(args[5], PyType_FLAG_TUPLE) || PyTuple_Size(args[4]) > DLF_MAX_PARAMS || PyTuple_Size(args[5]) > DLF_MAX_RESULTS) {
        dlf_raise(DLF_KIND_TYPE, "_function: params and results, want tuples of at most %d and %d", DLF_MAX_PARAMS, DLF_MAX_RESULTS);
        return -1;
    }
    f->id = (uint32_t)id;
    f->flags = (uint32_t)flags;
    f->sig.function = f->name;
    for (Py_ssize_t i = 0; i < PyTuple_Size(args[4]); i++) {
        DlfParam *p = &f->params[f->nparams++];
        if (read_description(p, PyTuple_GetItem(args[4], i)))
            return -1;
        f->sig.names[i] = p->name;
        f->sig.positional = f->nparams;
        if (!p->fallback)
            f->sig.required = f->nparams;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(args[5]); i++) {
        if (dlf_int64(PyTuple_GetItem(args[5], i), &kind, "_function", "results"))
            return -1;
        f->results[f->nresults++] = (uint8_t)kind;
        f->takes_like |= kind == DLF_PARAM_VIEW || kind == DLF_PARAM_MUT_VIEW; /* tensors, as results */
    }
    for (int i = 0; i < f->nparams; i++)
        f->takes_like &= strcmp(f->params[i].name, "like") != 0;
    if (f->takes_like)
        f->sig.names[f->nparams] = "like";
    return 0;
}

PyObject *dlf_function(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 7)
        return dlf_raise(DLF_KIND_TYPE, "_function: want module, name, doc, id, params, results, flags");
    DlfFunction *f = (DlfFunction *)((PyObject * (*)(PyTypeObject *, Py_ssize_t)) PyType_GetSlot(function_type, Py_tp_alloc))(function_type, 0);
    if (!f)
        return NULL;
    PyObject *made = NULL;
    if (!describe(f, args)) {
        f->def = (PyMethodDef){f->name, (PyCFunction)(void (*)(void))invoke, METH_FASTCALL | METH_KEYWORDS, f->doc};
        made = PyCFunction_NewEx(&f->def, &f->ob_base, args[0]);
    }
    Py_DECREF(f);
    return made;
}
