#include "block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void (*dlf_python_end)(DlfStorage *st);
void (*dlf_go_wake)(void);
DlfStorage *dlf_go_queue;

/*
 * The live counts. A locked addition costs as much as the rest of a small exchange, so each thread adds to a line of its own, and whoever wants the sum reads
 * them all. Lines outlive their threads, with what they counted, and are handed on; threads beyond the number of lines share the first one, with locks.
 */
typedef struct {
    int64_t storages, exports, imports, bytes;
    int taken;
    int spare_headers, spare_cells;
    void *headers, *cells; /* freed memory of two sizes, for this thread's next allocations; linked by the first word */
} __attribute__((aligned(64))) Line;

#define LINES 128
static Line lines[LINES];
static __thread Line *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t line_key;
static pthread_once_t line_once = PTHREAD_ONCE_INIT;
static int line_key_failed;

static void give_line_back(void *line)
{
    mine = NULL;
    __atomic_store_n(&((Line *)line)->taken, 0, __ATOMIC_RELEASE);
}

static void make_line_key(void) { line_key_failed = pthread_key_create(&line_key, give_line_back); }

__attribute__((cold, noinline)) static Line *take_line(void)
{
    mine = lines;
    if (pthread_once(&line_once, make_line_key) || line_key_failed)
        return mine;
    for (int i = 1; i < LINES; i++) {
        int free = 0;
        if (__atomic_load_n(&lines[i].taken, __ATOMIC_RELAXED) || !__atomic_compare_exchange_n(&lines[i].taken, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        if (pthread_setspecific(line_key, &lines[i])) {
            __atomic_store_n(&lines[i].taken, 0, __ATOMIC_RELEASE);
            return mine;
        }
        return mine = &lines[i];
    }
    return mine;
}

static inline Line *my_line(void) { return mine ? mine : take_line(); }

static inline void count(Line *line, int64_t *word, int64_t by)
{
    if (line == lines)
        __atomic_fetch_add(word, by, __ATOMIC_RELAXED);
    else
        __atomic_store_n(word, *word + by, __ATOMIC_RELAXED);
}

#define MAX_SPARES (DLF_KEEPS_SPARES ? 32 : 0)
#define SLACK (sizeof(DlfStorage) + DLF_ALIGNMENT - 1)
#define CELL_BYTES 256 /* an exported tensor of few axes, or a storage with a few elements */

static void *take(Line *line, size_t bytes)
{
    void **list = bytes == sizeof(DlfStorage) ? &line->headers : &line->cells;
    void *p = *list;
    if (line == lines || !p)
        return malloc(bytes);
    *list = *(void **)p;
    --*(bytes == sizeof(DlfStorage) ? &line->spare_headers : &line->spare_cells);
    return p;
}

static void give(Line *line, void *p, size_t bytes)
{
    void **list = bytes == sizeof(DlfStorage) ? &line->headers : &line->cells;
    int *spares = bytes == sizeof(DlfStorage) ? &line->spare_headers : &line->spare_cells;
    if (line == lines || *spares >= MAX_SPARES) {
        free(p);
        return;
    }
    ++*spares;
    *(void **)p = *list;
    *list = p;
}

void dlf_ledger(DlfLedger *out)
{
    *out = (DlfLedger){0};
    for (int i = 0; i < LINES; i++) {
        out->storages += __atomic_load_n(&lines[i].storages, __ATOMIC_RELAXED);
        out->exports += __atomic_load_n(&lines[i].exports, __ATOMIC_RELAXED);
        out->imports += __atomic_load_n(&lines[i].imports, __ATOMIC_RELAXED);
        out->bytes += __atomic_load_n(&lines[i].bytes, __ATOMIC_RELAXED);
    }
}

DlfStorage *dlf_storage_new(size_t size, int zeroed, void **data)
{
    if (size > SIZE_MAX / 2 - SLACK)
        return NULL;
    Line *line = my_line();
    const int small = SLACK + size <= CELL_BYTES;
    DlfStorage *st = small ? take(line, CELL_BYTES) : zeroed ? calloc(1, SLACK + size) : malloc(SLACK + size);
    if (!st)
        return NULL;
    if (small && zeroed)
        memset(st, 0, CELL_BYTES);
    *st = (DlfStorage){.refs = 1, .kind = DLF_END_INLINE, .size = size, .discard = dlf_storage_discard};
    *data = (void *)(((uintptr_t)(st + 1) + DLF_ALIGNMENT - 1) & ~(uintptr_t)(DLF_ALIGNMENT - 1));
    count(line, &line->storages, 1);
    count(line, &line->bytes, (int64_t)size);
    return st;
}

static int is_import(uint32_t kind) { return kind == DLF_END_LEGACY || kind == DLF_END_VERSIONED; }

DlfStorage *dlf_storage_wrap(uint32_t kind, void *owner, uint64_t slot)
{
    Line *line = my_line();
    DlfStorage *st = take(line, sizeof *st);
    if (!st)
        return NULL;
    *st = (DlfStorage){.refs = 1, .kind = kind, .owner = owner, .slot = slot, .discard = dlf_storage_discard};
    count(line, &line->storages, 1);
    if (is_import(kind))
        count(line, &line->imports, 1);
    return st;
}

void dlf_storage_ref(DlfStorage *st) { __atomic_fetch_add(&st->refs, 1, __ATOMIC_RELAXED); }

void dlf_storage_discard(DlfStorage *st)
{
    Line *line = my_line();
    count(line, &line->storages, -1);
    if (is_import(st->kind))
        count(line, &line->imports, -1);
    if (st->size)
        count(line, &line->bytes, -(int64_t)st->size);
    if (st->kind != DLF_END_INLINE)
        give(line, st, sizeof *st);
    else if (st->size <= CELL_BYTES - SLACK)
        give(line, st, CELL_BYTES);
    else
        free(st);
}

void dlf_storage_finish(DlfStorage *st)
{
    if (st->kind == DLF_END_LEGACY)
        dlf_delete_legacy(st->owner);
    else if (st->kind == DLF_END_VERSIONED)
        dlf_delete_versioned(st->owner);
    st->discard(st);
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

/* One allocation an export: the managed struct, then our control words, then shape and strides. */
typedef union {
    DlfManagedTensorVersioned versioned;
    DlfManagedTensor legacy;
} Managed;

typedef struct {
    Managed m;
    DlfStorage *st;
    size_t bytes; /* of this allocation */
    int64_t dims[2 * DLF_FIXED_NDIM];
} Export;

static void export_free(Export *e)
{
    DlfStorage *st = e->st;
    Line *line = my_line();
    if (e->bytes == CELL_BYTES)
        give(line, e, CELL_BYTES);
    else
        free(e);
    count(line, &line->exports, -1);
    dlf_storage_unref(st);
}

/* The record is found by manager_ctx: consumers exist that replace the other pointers of the struct while they hold it. */
static void delete_versioned(DlfManagedTensorVersioned *self) { export_free(self->manager_ctx); }
static void delete_legacy(DlfManagedTensor *self) { export_free(self->manager_ctx); }

_Static_assert(sizeof(Export) <= CELL_BYTES, "an exported tensor of few axes fits a cell");

static Export *export_new(const DlfTensor *t, DlfStorage *st)
{
    const size_t ndim = (size_t)t->ndim;
    const size_t bytes = ndim <= DLF_FIXED_NDIM ? CELL_BYTES : offsetof(Export, dims) + 2 * ndim * sizeof(int64_t);
    Line *line = my_line();
    Export *e = bytes == CELL_BYTES ? take(line, CELL_BYTES) : malloc(bytes);
    if (!e)
        return NULL;
    dlf_storage_ref(st);
    e->st = st;
    e->bytes = bytes;
    count(line, &line->exports, 1);
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
        for (size_t i = 0; i < ndim; i++) { /* a call of memcpy for a few words costs more */
            out->shape[i] = t->shape[i];
            out->strides[i] = t->strides[i];
        }
    }
}

DlfManagedTensorVersioned *dlf_export_versioned(const DlfTensor *t, DlfStorage *st, uint64_t flags)
{
    Export *e = export_new(t, st);
    if (!e)
        return NULL;
    DlfManagedTensorVersioned *m = &e->m.versioned;
    *m = (DlfManagedTensorVersioned){.version = {DLF_VERSION_MAJOR, DLF_VERSION_MINOR}, .manager_ctx = e, .deleter = delete_versioned, .flags = flags};
    fill(&m->tensor, t, e);
    return m;
}

DlfManagedTensor *dlf_export_legacy(const DlfTensor *t, DlfStorage *st)
{
    Export *e = export_new(t, st);
    if (!e)
        return NULL;
    DlfManagedTensor *m = &e->m.legacy;
    *m = (DlfManagedTensor){.manager_ctx = e, .deleter = delete_legacy};
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
