#include "ctest.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Produced {
    union {
        DlfManagedTensorVersioned versioned;
        DlfManagedTensor legacy;
    } m;
    int dropped;
    struct Produced *next; /* keeps it reachable for the leak checker */
} Produced;

static Produced *produced;
static int64_t drops, double_drops;

static void dropped(Produced *p)
{
    __atomic_fetch_add(__atomic_fetch_add(&p->dropped, 1, __ATOMIC_RELAXED) ? &double_drops : &drops, 1, __ATOMIC_RELAXED);
}

static void drop_versioned(DlfManagedTensorVersioned *m) { dropped((Produced *)m); }
static void drop_legacy(DlfManagedTensor *m) { dropped((Produced *)m); }

static Produced *produce(void)
{
    Produced *p = calloc(1, sizeof *p);
    p->next = __atomic_load_n(&produced, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&produced, &p->next, p, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    return p;
}

uintptr_t ctest_versioned(const DlfTensor *t, uint64_t flags, uint32_t major, uint32_t minor)
{
    Produced *p = produce();
    p->m.versioned = (DlfManagedTensorVersioned){.version = {major, minor}, .deleter = drop_versioned, .flags = flags, .tensor = *t};
    return (uintptr_t)p;
}

uintptr_t ctest_legacy(const DlfTensor *t)
{
    Produced *p = produce();
    p->m.legacy = (DlfManagedTensor){.tensor = *t, .deleter = drop_legacy};
    return (uintptr_t)p;
}

int64_t ctest_drops(void) { return __atomic_load_n(&drops, __ATOMIC_RELAXED); }
int64_t ctest_double_drops(void) { return __atomic_load_n(&double_drops, __ATOMIC_RELAXED); }
int ctest_dropped(uintptr_t m) { return __atomic_load_n(&((Produced *)m)->dropped, __ATOMIC_RELAXED); }

static struct {
    uintptr_t *m;
    int n, next;
} work;

static void *deleter_thread(void *unused)
{
    for (;;) {
        const int i = __atomic_fetch_add(&work.next, 1, __ATOMIC_RELAXED);
        if (i >= work.n)
            return unused;
        DlfManagedTensorVersioned *m = (DlfManagedTensorVersioned *)work.m[i];
        m->deleter(m);
    }
}

void ctest_storm(uintptr_t *m, int n, int threads)
{
    pthread_t ids[16];
    work.m = m;
    work.n = n;
    work.next = 0;
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, deleter_thread, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

double ctest_sum_float32(uintptr_t m)
{
    const DlfTensor *t = &((DlfManagedTensorVersioned *)m)->tensor;
    double sum = 0;
    int64_t n = 1, at[64] = {0};
    for (int i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    for (; n > 0; n--) {
        int64_t offset = 0;
        for (int i = 0; i < t->ndim; i++)
            offset += at[i] * t->strides[i];
        sum += *(const float *)((const char *)t->data + t->byte_offset + offset * 4);
        for (int i = t->ndim - 1; i >= 0 && ++at[i] == t->shape[i]; i--)
            at[i] = 0;
    }
    return sum;
}

/* Defined in the package under test: this package is linked on its own too, so weak. */
__attribute__((weak)) void dlf_storage_finish(DlfStorage *st);

static DlfStorage *taken;
static pthread_mutex_t taken_mutex = PTHREAD_MUTEX_INITIALIZER;

static void python_end(DlfStorage *st)
{
    pthread_mutex_lock(&taken_mutex);
    st->next = taken;
    taken = st;
    pthread_mutex_unlock(&taken_mutex);
}

uintptr_t ctest_python_end(void) { return (uintptr_t)python_end; }

int ctest_python_drain(void)
{
    pthread_mutex_lock(&taken_mutex);
    DlfStorage *st = taken;
    taken = NULL;
    pthread_mutex_unlock(&taken_mutex);
    int n = 0;
    for (DlfStorage *next; st; st = next, n++) {
        next = st->next;
        dlf_storage_finish(st);
    }
    return n;
}

static int refuse_from(void *object, DlfManagedTensorVersioned **out)
{
    (void)object;
    *out = (DlfManagedTensorVersioned *)8; /* what a failure leaves behind is not to be used */
    return -1;
}

static int give_nothing(void *object, DlfManagedTensorVersioned **out)
{
    (void)object;
    *out = NULL;
    return 0;
}

static DlfManagedTensorVersioned *refused;

uintptr_t ctest_refused(void) { return (uintptr_t)refused; }

static int refuse_to(DlfManagedTensorVersioned *m, void **out)
{
    (void)out;
    refused = m;
    return -1;
}

static int refuse_allocation(DlfTensor *prototype, DlfManagedTensorVersioned **out, void *ctx, void (*set_error)(void *, const char *, const char *))
{
    (void)prototype;
    (void)out;
    char long_text[2000];
    for (size_t i = 0; i < sizeof long_text - 1; i++)
        long_text[i] = 'x';
    long_text[sizeof long_text - 1] = 0;
    set_error(ctx, "MemoryError", long_text);
    return -1;
}

static DlfExchangeApi empty = {.header = {.version = {1, 3}}};
static DlfExchangeApi refusing = {.header = {.version = {1, 0}},
                                  .managed_tensor_allocator = refuse_allocation,
                                  .managed_tensor_from_py_object_no_sync = refuse_from,
                                  .managed_tensor_to_py_object_no_sync = refuse_to};
static DlfExchangeApi nothing = {.header = {.version = {1, 3}}, .managed_tensor_from_py_object_no_sync = give_nothing};
/* Only headers of other major versions may be read. */
static DlfExchangeHeader newer = {.version = {2, 0}, .prev_api = &empty.header};
static DlfExchangeHeader newest = {.version = {3, 0}, .prev_api = &newer};
static DlfExchangeHeader alone = {.version = {2, 0}};
static DlfExchangeHeader circle = {.version = {2, 0}, .prev_api = &circle};

uintptr_t ctest_table(int which)
{
    void *tables[] = {&empty, &refusing, &nothing, &newest, &alone, &circle};
    return (uintptr_t)tables[which];
}

/* Read by AddressSanitizer under `go test -asan`: asking for more memory than there is must fail as it does without it, not end the process. */
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
