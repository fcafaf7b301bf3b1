/*
 * What the Go side of package exchange calls in C. Addresses cross as integers: a hostile producer may put any bits in a pointer, and Go's runtime stops the
 * process when it meets bits that are no pointer in a pointer variable. The arguments are flat, so that no Go pointer hides behind another.
 */
#ifndef DLF_BRIDGE_H
#define DLF_BRIDGE_H

#include "block.h"

uintptr_t dlfx_storage_new(size_t size, int zeroed, uintptr_t *data);
uintptr_t dlfx_storage_wrap(uint32_t kind, uintptr_t owner, uint64_t slot);
void dlfx_storage_ref(uintptr_t st);
void dlfx_storage_unref(uintptr_t st);

/*
 * A new storage that owns a foreign managed tensor (kind LEGACY or VERSIONED). 0 when out of memory: the tensor has then been freed, or, next to
 * Python, whose lock this thread may lack, leaked.
 */
uintptr_t dlfx_import(uint32_t kind, uintptr_t owner);

/* A new owning export of the storage, of kind VERSIONED or LEGACY; dims holds ndim extents followed by ndim strides. 0 when out of memory. */
uintptr_t dlfx_export(uint32_t kind, uintptr_t st, uintptr_t data, DlfDevice device, DlfDataType dtype, int32_t ndim, int64_t *dims, uint64_t offset,
                      uint64_t flags);

/* Makes the file descriptor that becomes readable when storages wait for Go, and sets dlf_go_wake. -1 where there is none. */
int dlfx_wake_open(void);

/* Takes the queue of storages that Go has to end. */
uintptr_t dlfx_go_take(void);

/* Takes st out of its list: frees the header, gives the number of what Go has to end, returns the next. */
uintptr_t dlfx_go_pop(uintptr_t st, uint64_t *slot);

/* The static exchange table of this library. Its "objects" are managed tensors that dlf_export_versioned made. */
uintptr_t dlfx_table(void);

/* Calls of a foreign table. Each answers the function's result, or -2 where the entry is NULL. */
int dlfx_table_from_object(uintptr_t api, uintptr_t object, uintptr_t *out);
int dlfx_table_to_object(uintptr_t api, uintptr_t m, uintptr_t *out);
int dlfx_table_borrow(uintptr_t api, uintptr_t object, DlfTensor *out);
int dlfx_table_stream(uintptr_t api, DlfDevice device, uintptr_t *out);

typedef struct {
    char kind[64];
    char message[512];
} DlfxTableError;

int dlfx_table_allocate(uintptr_t api, DlfDevice device, DlfDataType dtype, int32_t ndim, int64_t *shape, uintptr_t *out, DlfxTableError *error);

#endif
