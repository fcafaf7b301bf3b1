/*
 * Storage and exported tensors in C memory: the one place that decides who frees what.
 *
 * The Go package exchange compiles this file through cgo, and the Python extension compiles it again. Nothing here needs Python or Go, takes a lock or
 * waits, so a deleter may run on any thread, without the GIL, after the interpreter is gone and in a forked child.
 */
#ifndef DLF_BLOCK_H
#define DLF_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "../internal/abi/dlpack_abi.h"

#define DLF_ALIGNMENT 64
#define DLF_FIXED_NDIM 8

/* Whether freed memory is kept for the next allocation. Not under AddressSanitizer, which shall see every end. */
#define DLF_KEEPS_SPARES 1
#ifdef __SANITIZE_ADDRESS__
#undef DLF_KEEPS_SPARES
#define DLF_KEEPS_SPARES 0
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#undef DLF_KEEPS_SPARES
#define DLF_KEEPS_SPARES 0
#endif
#endif

/* How a storage ends when its last reference goes. */
enum {
    DLF_END_NOTHING = 0,   /* memory of somebody else who promised to keep it */
    DLF_END_INLINE = 1,    /* the data lies behind the header, in the same allocation */
    DLF_END_LEGACY = 2,    /* owner is a DlfManagedTensor: call its deleter */
    DLF_END_VERSIONED = 3, /* owner is a DlfManagedTensorVersioned: call its deleter */
    DLF_END_PYOBJECT = 4,  /* owner is a PyObject: give the reference back */
    DLF_END_PYBUFFER = 5,  /* owner is a Py_buffer in C memory: release and free it */
    DLF_END_GO = 6         /* slot names what Go has to end: queue it for Go */
};

typedef struct DlfStorage {
    int64_t refs; /* atomic */
    uint32_t kind;
    uint32_t may_wait; /* the last reference goes where waiting for Python is no harm; see dlf_python_end */
    void *owner;
    uint64_t slot;
    size_t size; /* bytes that dlferry allocated for the data; 0 for memory of others */
    struct DlfStorage *next; /* while it waits in a queue */
    void (*discard)(struct DlfStorage *); /* dlf_storage_discard of the library that made it, whose ledger it is in */
} DlfStorage;

/* The live counts; a process that let go of everything shows zeros. */
typedef struct {
    int64_t storages; /* storages not yet ended */
    int64_t exports;  /* managed tensors handed out whose deleter has not run */
    int64_t imports;  /* foreign managed tensors not yet given back */
    int64_t bytes;    /* bytes of data that dlferry allocated */
} DlfLedger;

/* A new storage with one reference and size bytes of DLF_ALIGNMENT-aligned data at *data. NULL when out of memory. */
DlfStorage *dlf_storage_new(size_t size, int zeroed, void **data);

/* A new storage, with one reference, for memory that ends as kind says. On NULL (out of memory) the caller still owns owner. */
DlfStorage *dlf_storage_wrap(uint32_t kind, void *owner, uint64_t slot);

void dlf_storage_ref(DlfStorage *st);

/* Drops one reference; the last one ends the storage. Any thread. */
void dlf_storage_unref(DlfStorage *st);

/* Ends a storage that dlf_python_end or the Go queue took over; kinds PYOBJECT and PYBUFFER are not for this function. */
void dlf_storage_finish(DlfStorage *st);

/* Frees the header alone, after the owner was ended elsewhere. */
void dlf_storage_discard(DlfStorage *st);

/*
 * Set while a Python interpreter is in the process: takes over storages whose end may need it (LEGACY, VERSIONED, PYOBJECT, PYBUFFER), and may be called
 * on any thread. NULL: foreign deleters are called directly.
 */
extern void (*dlf_python_end)(DlfStorage *st);

/* Storages of kind GO whose last reference went, newest first, linked by next; the caller owns them and calls dlf_storage_discard on each. */
DlfStorage *dlf_go_take(void);

/* The head of that queue, so that Go can see without a call whether anything waits. Only dlf_go_take takes. */
extern DlfStorage *dlf_go_queue;

/* Called (when set) after a storage of kind GO entered the empty queue, on whatever thread; must not block. */
extern void (*dlf_go_wake)(void);

/*
 * Copies t (with the byte offset folded into data where device memory is addressed by pointers), its shape and its strides into a new managed tensor that holds a reference on st.
 * t->strides must not be NULL for ndim > 0. The caller keeps its own reference on st. NULL when out of memory.
 */
DlfManagedTensorVersioned *dlf_export_versioned(const DlfTensor *t, DlfStorage *st, uint64_t flags);
DlfManagedTensor *dlf_export_legacy(const DlfTensor *t, DlfStorage *st);

/* The storage behind a managed tensor that this copy of the code exported; NULL for anybody else's. */
DlfStorage *dlf_export_storage(const DlfManagedTensorVersioned *m);
DlfStorage *dlf_export_storage_legacy(const DlfManagedTensor *m);

/* Calls the deleter of a foreign managed tensor, if it has one. */
void dlf_delete_versioned(DlfManagedTensorVersioned *m);
void dlf_delete_legacy(DlfManagedTensor *m);

/* Whether memory of a device type is addressed by pointers that arithmetic may move (not by handles). */
static inline int dlf_device_has_pointers(int32_t device_type)
{
    switch (device_type) {
    case DLF_DEVICE_CPU:
    case DLF_DEVICE_CUDA:
    case DLF_DEVICE_CUDA_HOST:
    case DLF_DEVICE_CUDA_MANAGED:
    case DLF_DEVICE_ROCM:
    case DLF_DEVICE_ROCM_HOST:
        return 1;
    default:
        return 0;
    }
}

void dlf_ledger(DlfLedger *out);

#endif
