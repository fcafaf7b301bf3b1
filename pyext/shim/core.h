/* What the files of the extension share. The state is the process's: the extension serves the main interpreter only. */
#ifndef DLF_CORE_H
#define DLF_CORE_H

#include "frame.h"
#include "python_abi.h"

#define DLF_MAX_NDIM 64
#define DLF_SMALL_COPY (64 * 1024)        /* below: a plain C loop beats a crossing */
#define DLF_SIGNAL_BYTES (128 * 1024 * 1024) /* between two looks for Ctrl-C */
#define DLF_NOGIL_BYTES (4 * 1024 * 1024) /* above: about 1 ms of work, so other Python threads may run */

/* --- errors.c --- */

/* Sets the Python exception that belongs to the kind; always NULL. */
PyObject *dlf_raise(int kind, const char *format, ...);
/* Gives the exception in flight, normalised, and clears it; NULL if none. */
PyObject *dlf_take_error(void);
/* Sets an exception object taken by dlf_take_error, with a cause (may be NULL). Takes both references. */
void dlf_set_error(PyObject *error, PyObject *cause);
/* Whether a failed call may be retried another way: everything but KeyboardInterrupt, SystemExit and MemoryError. */
int dlf_error_is_soft(void);

/* --- args.c --- */

#define DLF_MAX_ARGS 17 /* DLF_MAX_PARAMS and like= */
typedef struct {
    const char *function;             /* for messages */
    const char *names[DLF_MAX_ARGS];  /* all parameters, NULL-terminated */
    int positional_only, positional;  /* how many must / may be given by position */
    int required;
    PyObject *interned[DLF_MAX_ARGS]; /* filled by the first call with keywords */
    PyObject *seen;                   /* the names of the last call by keywords alone, and which parameters they are */
    int seen_size;
    uint8_t seen_at[DLF_MAX_ARGS];
} DlfSignature;
/* Fills out (borrowed references, NULL where not given). 0, or -1 with TypeError. */
int dlf_parse(DlfSignature *sig, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out);
/* None or absent: -1; else the truth value; -2 after an error. */
int dlf_optional_bool(PyObject *o);
/* An index-like object as int64: 0, or -1 with TypeError/ValueError that names what. */
int dlf_int64(PyObject *o, int64_t *out, const char *function, const char *what);
/* An int or a sequence of ints. Returns how many, or -1 after an error. */
int dlf_dims(PyObject *o, int64_t out[DLF_MAX_NDIM], const char *function, const char *what);
PyObject *dlf_tuple(const int64_t *values, int n);

/* --- dtype.c --- */

typedef enum { DLF_BOOL, DLF_INT, DLF_UINT, DLF_FLOAT, DLF_HALF, DLF_BFLOAT, DLF_COMPLEX, DLF_MINIFLOAT, DLF_FLOAT4X2, DLF_OPAQUE } DlfKind;
typedef struct {
    DlfKind kind;
    int align;
    int64_t size; /* bytes of one element */
} DlfElement;
/* What an element is: 0, or -1 for a dtype that is refused. */
int dlf_element(DlfDataType dt, uint64_t flags, DlfElement *out);
static inline int dlf_same_dtype(DlfDataType a, DlfDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }
/* The buffer protocol's format, NULL for none. */
const char *dlf_buffer_format(DlfDataType dt);
/* The dtype of a buffer's format: 0, or -1 with BufferError. */
int dlf_from_buffer_format(const char *format, Py_ssize_t itemsize, DlfDataType *out);
/* Writes the dtype's name for messages. */
const char *dlf_dtype_name(DlfDataType dt, char out[48]);
float dlf_minifloat(uint8_t code, uint8_t bits);
/* One element as a Python object; NULL with BufferError where values have no Python form. */
PyObject *dlf_load(const DlfElement *e, DlfDataType dt, const void *p);
/* A Python scalar into one element: 0, or -1 with an error. */
int dlf_store(const DlfElement *e, DlfDataType dt, void *p, PyObject *value, const char *function);

/* --- objects.c: what Python installed, and the objects of dtypes and devices --- */

int dlf_dtype_arg(PyObject *o, DlfDataType *out);
int dlf_device_arg(PyObject *o, DlfDevice *out);
PyObject *dlf_dtype_object(DlfDataType dt);
PyObject *dlf_device_object(DlfDevice d);
const char *dlf_device_name(DlfDevice d, char out[32]);
PyObject *dlf_hook_asarray(void);
PyObject *dlf_hook_convert(void);
PyObject *dlf_hook_torch_samples(void);
PyObject *dlf_hook_like(void);
PyObject *dlf_install(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* Not managed memory: a running kernel may own it. */
static inline int dlf_is_host(int32_t type) { return type == DLF_DEVICE_CPU || type == DLF_DEVICE_CUDA_HOST || type == DLF_DEVICE_ROCM_HOST; }

/* --- check.c --- */

typedef struct {
    DlfElement element;
    int64_t size;           /* elements */
    int64_t nbytes;         /* size * element size */
    int64_t low, high;      /* byte offsets from data of the first byte and past the last one that an index can reach */
    int64_t strides[DLF_MAX_NDIM];
} DlfLayout;
typedef struct {
    int kind;
    int axis; /* -1: none */
    int64_t got;
    const char *text;
} DlfRefusal;
/* The rules of dlpack.Validate, by the same arithmetic. 0, or the kind of the refusal. The tensor may be anybody's. */
int dlf_check(const DlfTensor *t, uint64_t flags, DlfLayout *out, DlfRefusal *why);
/* Raises the refusal: in Go's words where Go runs, else in our own. */
void dlf_raise_refusal(const char *function, const DlfTensor *t, uint64_t flags, const DlfRefusal *why);
int dlf_is_contiguous(int ndim, const int64_t *shape, const int64_t *strides);
void dlf_compact_strides(int ndim, const int64_t *shape, int64_t *out);

/* --- life.c --- */

typedef struct {
    PyObject ob_base;
    DlfTensor t;        /* byte_offset is folded into data where data is a pointer; shape and strides are ours */
    uintptr_t kept;      /* what keeps the memory: a DlfStorage, or a PyObject with DLF_KEPT_BY_OBJECT set, or 0: closed */
    uint64_t flags;
    PyObject *weakrefs;
    PyObject *shape;    /* the tuple, once somebody asked */
    int64_t buffers;    /* live Py_buffer exports */
    int64_t size;       /* elements */
    int64_t itemsize;
    int64_t dims[2 * DLF_FIXED_NDIM];
} DlfTensorObject;

#define DLF_KEPT_BY_OBJECT ((uintptr_t)1)

extern PyTypeObject *dlf_tensor_type;
int64_t dlf_tensor_count(void);
int dlf_is_tensor(PyObject *o);
void dlf_tensor_dealloc(PyObject *o);
/* Gives back what keeps the memory; the tensor is closed. */
void dlf_tensor_let_go(DlfTensorObject *t);
/* A new Tensor over a checked tensor. Takes the reference on st, also on failure. */
PyObject *dlf_tensor_new(const DlfTensor *t, const DlfLayout *lay, DlfStorage *st, uint64_t flags);
/* The same, but on failure the reference stays the caller's. */
PyObject *dlf_tensor_over(const DlfTensor *t, const DlfLayout *lay, DlfStorage *st, uint64_t flags);
/* A new Tensor over a checked tensor whose memory a Python object keeps. */
PyObject *dlf_tensor_over_object(const DlfTensor *t, const DlfLayout *lay, uint64_t flags, PyObject *owner);
/* Another Tensor, of a subclass too, over the memory of an open one. */
PyObject *dlf_tensor_share(DlfTensorObject *t);
PyObject *dlf_tensor_share_as(PyTypeObject *type, DlfTensorObject *t);
/* The tensor if it is open, else ValueError. */
DlfTensorObject *dlf_open(PyObject *o, const char *function);
/* The storage of an open tensor, borrowed; made now if an object alone kept the memory. NULL with MemoryError. */
DlfStorage *dlf_storage_of(DlfTensorObject *t);

/*
 * Objects of the type itself that ended, kept for the next ones, each with its reference on the type; linked by their first word, held by the GIL. The next one
 * may be filled where it lies, weakrefs, shape and buffers excepted, which are zero, and is alive once it is taken: no Python code may run in between.
 */
extern PyObject *dlf_tensor_spare;
extern int dlf_tensor_spares;
extern int64_t dlf_tensors; /* alive */
int dlf_tensor_add_spare(void);
/* NULL with MemoryError. */
static inline DlfTensorObject *dlf_tensor_next(void)
{
    return dlf_tensor_spare || dlf_tensor_add_spare() ? (DlfTensorObject *)dlf_tensor_spare : NULL;
}
static inline PyObject *dlf_tensor_take(DlfTensorObject *next)
{
    dlf_tensor_spare = *(PyObject **)next;
    dlf_tensor_spares--;
    dlf_tensors++;
    next->ob_base.ob_refcnt = 1;
    return &next->ob_base;
}

/* --- tensor.c --- */

int dlf_tensor_init_type(void);
/* A new contiguous writable Tensor; NULL after an error. */
PyObject *dlf_tensor_empty(int ndim, const int64_t *shape, DlfDataType dt, uint64_t flags, int zeroed, const char *function);
PyObject *dlf_tensor_copy(DlfTensorObject *t, DlfDataType dt, const char *function);
int dlf_needs_host(const DlfTensorObject *t, const char *function);

/* --- copy.c --- */

/*
 * Copies (casts when the dtypes differ) src into dst of the same shape: 0, or -1 with an error. May give the GIL up, so it holds the storages meanwhile (keep
 * may be NULL): another thread may close the tensors.
 */
int dlf_copy(const DlfTensor *dst, uint64_t dst_flags, const DlfTensor *src, uint64_t src_flags, int64_t size, DlfStorage *keep, DlfStorage *keep_too, const char *function);
int dlf_overlap(const DlfTensorObject *a, const DlfTensorObject *b);

/* --- create.c --- */

PyObject *dlf_empty(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_zeros(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_full(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_from_address(PyObject *, PyObject *);
PyObject *dlf_wrap_pointer(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_from_values(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *dlf_asarray(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_tensor_tp_new(PyTypeObject *, PyObject *, PyObject *);

/* --- nested.c --- */

/* A new tensor of a number or of numbers in nested lists and tuples; asked may be NULL. NULL with *unable set: without an error, the Python layer must look. */
PyObject *dlf_from_nested(PyObject *o, const DlfDataType *asked, int *unable);

/* --- view.c --- */

PyObject *dlf_view(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *dlf_view_dtype(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *dlf_readonly_view(PyObject *, PyObject *);
PyObject *dlf_assign(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *dlf_fill(PyObject *, PyObject *const *, Py_ssize_t);
/* One number into every element of an open, writable host tensor: 0, or -1 with an error. */
int dlf_fill_with(DlfTensorObject *dst, PyObject *number, const char *function);
PyObject *dlf_astype(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_cast(PyObject *, PyObject *const *, Py_ssize_t);

/* --- import.c --- */

PyObject *dlf_from_dlpack(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
/* Imports x by its exchange table or its __dlpack__, sharing the memory. NULL after an error. */
PyObject *dlf_import(PyObject *x, int copy, const char *function);
/* Whether the type (or the object) speaks DLPack. */
int dlf_speaks_dlpack(PyObject *x);
PyObject *dlf_speaks(PyObject *, PyObject *);
/* Whether the elements lie at multiples of their own alignment: vector code faults on others. */
int dlf_is_aligned(const DlfTensorObject *t);
/* Takes ownership of a managed tensor of anybody, and ends it on failure, unless keep_on_failure. */
PyObject *dlf_import_versioned(DlfManagedTensorVersioned *m, int keep_on_failure, const char *function);
PyObject *dlf_import_legacy(DlfManagedTensor *m, const char *function);

/* --- buffer.c --- */

PyObject *dlf_from_buffer(PyObject *, PyObject *);
/* may_copy: the caller copies what is not aligned. */
PyObject *dlf_import_buffer(PyObject *obj, int may_copy, const char *function);
int dlf_getbuffer(PyObject *, Py_buffer *, int);
void dlf_releasebuffer(PyObject *, Py_buffer *);

/* --- export.c --- */

PyObject *dlf_dlpack(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_dlpack_device(PyObject *, PyObject *);
DlfManagedTensorVersioned *dlf_export(DlfTensorObject *t, uint64_t extra_flags);

/* --- table.c --- */

extern DlfExchangeApi dlf_table;
int dlf_table_install(void);

/* --- types.c --- */

/* The table of a type, or NULL for none; *traits is -1 after an error that must not be swallowed. Valid until other code runs. */
const DlfExchangeApi *dlf_table_of(PyTypeObject *type, int *traits);
#define DLF_TRAIT_TORCH 1     /* derives from torch.Tensor */
#define DLF_TRAIT_OWN_TABLE 2 /* the table is the type's own, not inherited: what it makes is of this type */
#define DLF_TRAIT_MASKED 4    /* derives from numpy.ma.MaskedArray */
#define DLF_TRAIT_NDARRAY 8   /* is numpy.ndarray itself: on the CPU, with __dlpack__ since NumPy 1.22 */
#define DLF_TRAIT_OURS 16     /* derives from dlferry.Tensor */

/* --- torch.c --- */

/* Describes a tensor by PyTorch's table, in shape and strides of PyTorch: 1; 0 with *why 1: ask x.__dlpack__; 0 with *why -1: refused for good. */
int dlf_torch_read(PyObject *x, const DlfExchangeApi *api, DlfTensor *t, DlfLayout *lay, int *why, const char *function);
/* Whether PyTorch would refuse to export x: 0, or 1 with its kind of error (ask x.__dlpack__), or -1 with ours. */
int dlf_torch_check(PyObject *x, uint8_t dtype_code, const char *function);
int dlf_torch_refuse_negative(PyObject *x, const char *function);
PyObject *dlf_torch_known(PyObject *, PyObject *);

/* --- memory.c --- */

int dlf_memory_init_type(void);
/* An object that holds a reference on st. */
PyObject *dlf_memory_new(DlfStorage *st);

/* --- numpy.c --- */

typedef struct {
    DlfTensor t; /* shape and strides are those here */
    uint64_t flags;
    DlfLayout lay; /* the element's kind is not told */
    int64_t shape[DLF_MAX_NDIM];
} DlfArrayView;
void dlf_numpy_open(PyTypeObject *ndarray);
extern PyTypeObject *dlf_array_type; /* NULL until it is open */
static inline int dlf_numpy_is_open(void) { return dlf_array_type != NULL; }
/* A new Tensor over an ndarray that is as most are. NULL without an error: one that is not. */
PyObject *dlf_numpy_import(PyObject *ndarray);
/* Describes an array without calling anything: 1, or 0 (without an error) for what is no ndarray or needs NumPy's own answer. */
int dlf_numpy_read(PyObject *o, DlfArrayView *out);
/* An ndarray over the memory of a checked tensor, kept by owner or, without one, by st. NULL with *unable set: without an error, another way must be found. */
PyObject *dlf_numpy_make(const DlfTensor *t, int64_t itemsize, uint64_t flags, PyObject *owner, DlfStorage *st, int *unable);

/* --- convert.c --- */

PyObject *dlf_convert(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *dlf_name_target(PyObject *, PyObject *const *, Py_ssize_t);
/* The type that a name was found to mean, borrowed; NULL, perhaps with an error. */
PyObject *dlf_named_type(PyObject *name);
PyObject *dlf_to_framework(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *dlf_exchange_table(PyObject *, PyObject *);

PyObject *dlf_give(DlfManagedTensorVersioned *m, const DlfExchangeApi *api);
/* Whether every table takes such a tensor. */
int dlf_is_plain(const DlfTensor *t, uint64_t flags);

/* --- call.c --- */

#define DLF_CALL_NOGIL 1   /* the GIL is released around every call */
#define DLF_CALL_GIL 2     /* never */
#define DLF_CALL_CONTEXT 4 /* cancelled by Ctrl-C */
#define DLF_CALL_LIKE_NONE 8
#define DLF_CALL_GENERIC 16

typedef struct {
    char *name;
    int kind; /* DLF_PARAM_* */
    int bits; /* of numbers */
    int nkeys;
    uint32_t *keys;     /* dtypes of views, one for each instance */
    PyObject *fallback; /* NULL: required */
} DlfParam;

/* A function of the Go library as Python sees it; the self of its PyCFunction. */
typedef struct {
    PyObject ob_base;
    PyMethodDef def;
    DlfSignature sig;
    char *name, *doc;
    uint32_t id, flags;
    int nparams, nresults;
    int takes_like; /* as the keyword behind the parameters */
    DlfParam params[DLF_MAX_PARAMS];
    uint8_t results[DLF_MAX_RESULTS];
} DlfFunction;

int dlf_call_init_type(void);
PyObject *dlf_function(PyObject *, PyObject *const *, Py_ssize_t);

/* --- params.c --- */

/* What an argument needs while the call runs. */
typedef struct {
    DlfArrayView view;
    PyObject *held;
    Py_buffer buffer;
    void *memory;
    DlfManagedTensorVersioned *foreign; /* not yet Go's */
} DlfSlot;

typedef struct {
    const DlfFunction *f;
    int owning;        /* the GIL will be released: nothing may be borrowed that another thread can end */
    int instance;      /* of a generic function; -1: not chosen yet */
    int64_t bytes;     /* of all views */
    PyTypeObject *like; /* of the first tensor, borrowed; NULL: none */
} DlfReading;

/* Reads an argument. 0, or -1 with an error. The slot must be let go in both cases. */
int dlf_read_param(DlfReading *r, int i, PyObject *x, DlfSlot *slot, DlfValue *out);
void dlf_let_go(DlfSlot *slot);

/* --- results.c --- */

/* What tensors become. */
typedef struct {
    PyObject *to; /* a type, or a name that `convert` takes; NULL: our own */
    int asked;    /* by like=: what can't be made so is an error */
} DlfLike;
/* What an argument like= means, as a new reference. 0, or -1 with an error. */
int dlf_read_like(DlfLike *like, PyObject *x, const char *function);
/* The results as Python objects; what the frame holds of them is given back, also on failure. */
PyObject *dlf_results(const DlfFunction *f, DlfFrame *frame, const DlfLike *like);
void dlf_drop_results(const DlfFunction *f, DlfFrame *frame);

/* --- golib.c --- */

int dlf_golib_init(void);
/* Crosses into Go once. 0: frame answered (frame->status may still refuse); -1: Go cannot run here, with RuntimeError. */
int dlf_go_call(DlfFrame *frame);
/* The same for functions. release: without the GIL. interruptible: on a goroutine that Ctrl-C cancels; -1 also for the error that a signal raised. */
int dlf_go_call_function(DlfFrame *frame, int release, int interruptible);
/* Whether a call would work, or at least be tried. */
int dlf_go_usable(void);
void dlf_raise_frame(const char *function, DlfFrame *frame);
PyObject *dlf_go_info(PyObject *, PyObject *);
PyObject *dlf_go_state(PyObject *, PyObject *);
PyObject *dlf_set_num_threads(PyObject *, PyObject *);
PyObject *dlf_get_num_threads(PyObject *, PyObject *);

/* --- queue.c --- */

int dlf_queue_init(void);
void dlf_queue_close(void);
int dlf_queue_closed(void);
int64_t dlf_queue_length(void);
void dlf_queue_drain_now(void);
/* dlf_storage_unref for a caller that holds the GIL of the main interpreter. */
void dlf_storage_unref_attached(DlfStorage *st);
/* Py_DECREF for such a caller; chains of owners do not recurse. */
void dlf_owner_unref_attached(PyObject *owner);
extern DlfStorage *dlf_queue_head;
/* At every entry from Python, before arguments are read. */
static inline void dlf_drain(void)
{
    if (__atomic_load_n(&dlf_queue_head, __ATOMIC_RELAXED))
        dlf_queue_drain_now();
}

/* --- optional functions of newer interpreters, or NULL --- */

extern PyObject *(*dlf_vectorcall_method)(PyObject *name, PyObject *const *args, size_t nargsf, PyObject *kwnames);
/* obj.name(**{kwnames: values}); args[0] is the object. */
PyObject *dlf_call_method(PyObject *name, PyObject **args, PyObject *kwnames);

#endif
