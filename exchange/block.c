#include "block.h"

#include <stdlib.h>
#include <string.h>

void (*dlf_python_end)(DlfStorage *st);
void (*dlf_go_wake)(void);
DlfStorage *dlf_go_queue;

static struct {
    int64_t storages, exports, imports, bytes;
} live;

static void count(int64_t *word, int64_t by) { __atomic_fetch_add(word, by, __ATOMIC_RELAXED); }

void dlf_ledger(DlfLedger *out)
{
    out->storages = __atomic_load_n(&live.storages, __ATOMIC_RELAXED);
    out->exports = __atomic_load_n(&live.exports, __ATOMIC_RELAXED);
    out->imports = __atomic_load_n(&live.imports, __ATOMIC_RELAXED);
    out->bytes = __atomic_load_n(&live.bytes, __ATOMIC_RELAXED);
}

DlfStorage *dlf_storage_new(size_t size, int zeroed, void **data)
{
    const size_t slack = sizeof(DlfStorage) + DLF_ALIGNMENT - 1;
    if (size > SIZE_MAX / 2 - slack)
        return NULL;
    DlfStorage *st = zeroed ? calloc(1, slack + size) : malloc(slack + size);
    if (!st)
        return NULL;
    *st = (DlfStorage){.refs = 1, .kind = DLF_END_INLINE, .size = size};
    *data = (void *)(((uintptr_t)(st + 1) + DLF_ALIGNMENT - 1) & ~(uintptr_t)(DLF_ALIGNMENT - 1));
    count(&live.storages, 1);
    count(&live.bytes, (int64_t)size);
    return st;
}

static int is_import(uint32_t kind) { return kind == DLF_END_LEGACY || kind == DLF_END_VERSIONED; }

DlfStorage *dlf_storage_wrap(uint32_t kind, void *owner, uint64_t slot)
{
    DlfStorage *st = malloc(sizeof *st);
    if (!st)
        return NULL;
    *st = (DlfStorage){.refs = 1, .kind = kind, .owner = owner, .slot = slot};
    count(&live.storages, 1);
    if (is_import(kind))
        count(&live.imports, 1);
    return st;
}

void dlf_storage_ref(DlfStorage *st) { __atomic_fetch_add(&st->refs, 1, __ATOMIC_RELAXED); }

void dlf_storage_discard(DlfStorage *st)
{
    count(&live.storages, -1);
    if (is_import(st->kind))
        count(&live.imports, -1);
    if (st->size)
        count(&live.bytes, -(int64_t)st->size);
    free(st);
}

void dlf_storage_finish(DlfStorage *st)
{
    if (st->kind == DLF_END_LEGACY)
        dlf_delete_legacy(st->owner);
    else if (st->kind == DLF_END_VERSIONED)
        dlf_delete_versioned(st->owner);
    dlf_storage_discard(st);
}

static void go_push(DlfStorage *st)
{
    DlfStorage *head = __atomic_load_n(&dlf_go_queue, __ATOMIC_RELAXED);
    do
        st->next = head;
    while (!__atomic_compare_exchange_n(&dlf_go_queue, &head, st, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    void (*wake)(void) = __atomic_load_n(&dlf_go_wake, __ATOMIC_ACQUIRE);
    if (wake && !head) /* the push that found the queue empty has woken Go for all that follow it */
        wake();
}

DlfStorage *dlf_go_take(void) { return __atomic_exchange_n(&dlf_go_queue, NULL, __ATOMIC_ACQUIRE); }

void dlf_storage_unref(DlfStorage *st)
{
    /* The only holder left needs no read-modify-write: nobody else can hand out a reference. */
    if (__atomic_load_n(&st->refs, __ATOMIC_ACQUIRE) != 1 && __atomic_fetch_sub(&st->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    void (*python_end)(DlfStorage *) = __atomic_load_n(&dlf_python_end, __ATOMIC_ACQUIRE);
    switch (st->kind) {
    case DLF_END_LEGACY:
    case DLF_END_VERSIONED:
    case DLF_END_PYOBJECT:
    case DLF_END_PYBUFFER:
        if (python_end)
            python_end(st);
        else
            dlf_storage_finish(st);
        return;
    case DLF_END_GO:
        go_push(st);
        return;
    default:
        dlf_storage_discard(st);
    }
}

void dlf_delete_versioned(DlfManagedTensorVersioned *m)
{
    if (m->deleter)
        m->deleter(m);
}

void dlf_delete_legacy(DlfManagedTensor *m)
{
    if (m->deleter)
        m->deleter(m);
}

int dlf_device_has_pointers(int32_t device_type)
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

/* One allocation an export: the managed struct, then our control words, then shape and strides. */
typedef struct {
    union {
        DlfManagedTensorVersioned versioned;
        DlfManagedTensor legacy;
    } m;
    DlfStorage *st;
    int64_t dims[2 * DLF_FIXED_NDIM];
} Export;

static void export_free(Export *e)
{
    DlfStorage *st = e->st;
    free(e);
    count(&live.exports, -1);
    dlf_storage_unref(st);
}

/* The record is found by manager_ctx: consumers exist that replace the other pointers of the struct while they hold it. */
static void delete_versioned(DlfManagedTensorVersioned *self) { export_free(self->manager_ctx); }
static void delete_legacy(DlfManagedTensor *self) { export_free(self->manager_ctx); }

static Export *export_new(const DlfTensor *t, DlfStorage *st)
{
    const size_t ndim = (size_t)t->ndim;
    const size_t dims = ndim <= DLF_FIXED_NDIM ? sizeof(((Export *)0)->dims) : 2 * ndim * sizeof(int64_t);
    Export *e = calloc(1, offsetof(Export, dims) + dims);
    if (!e)
        return NULL;
    dlf_storage_ref(st);
    e->st = st;
    count(&live.exports, 1);
    return e;
}

static void fill(DlfTensor *out, const DlfTensor *t, Export *e)
{
    const size_t ndim = (size_t)t->ndim;
    *out = *t;
    if (dlf_device_has_pointers(t->device.type)) {
        /* Older PyTorch, PaddlePaddle, Warp and TensorFlow ignore byte_offset. */
        if (t->data)
            out->data = (char *)t->data + t->byte_offset;
        out->byte_offset = 0;
    }
    out->shape = out->strides = NULL;
    if (ndim) {
        int64_t *dims = (int64_t *)((char *)e + offsetof(Export, dims)); /* more than dims declares when ndim is above DLF_FIXED_NDIM */
        out->shape = dims;
        out->strides = dims + ndim;
        memcpy(out->shape, t->shape, ndim * sizeof(int64_t));
        memcpy(out->strides, t->strides, ndim * sizeof(int64_t));
    }
}

DlfManagedTensorVersioned *dlf_export_versioned(const DlfTensor *t, DlfStorage *st, uint64_t flags)
{
    Export *e = export_new(t, st);
    if (!e)
        return NULL;
    DlfManagedTensorVersioned *m = &e->m.versioned;
    m->version = (DlfVersion){DLF_VERSION_MAJOR, DLF_VERSION_MINOR};
    m->manager_ctx = e;
    m->deleter = delete_versioned;
    m->flags = flags;
    fill(&m->tensor, t, e);
    return m;
}

DlfManagedTensor *dlf_export_legacy(const DlfTensor *t, DlfStorage *st)
{
    Export *e = export_new(t, st);
    if (!e)
        return NULL;
    DlfManagedTensor *m = &e->m.legacy;
    m->manager_ctx = e;
    m->deleter = delete_legacy;
    fill(&m->tensor, t, e);
    return m;
}

DlfStorage *dlf_export_storage(const DlfManagedTensorVersioned *m)
{
    return m->deleter == delete_versioned ? ((Export *)m->manager_ctx)->st : NULL;
}

DlfStorage *dlf_export_storage_legacy(const DlfManagedTensor *m)
{
    return m->deleter == delete_legacy ? ((Export *)m->manager_ctx)->st : NULL;
}
