/* Opens the library named on the command line as the extension does, and checks what it answers. Prints the answer to INFO. */
#include "../../shim/frame.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static DlfGoCall *go_call;
static int failures;

#define CHECK(condition, ...)                                                                                                                                \
    do {                                                                                                                                                      \
        if (!(condition)) {                                                                                                                                   \
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);                                                                                               \
            fprintf(stderr, "line %d: %s: ", __LINE__, #condition);                                                                                           \
            fprintf(stderr, __VA_ARGS__);                                                                                                                     \
            fputc('\n', stderr);                                                                                                                              \
        }                                                                                                                                                     \
    } while (0)

/* Sends a frame and checks the status; a refusal has a message that holds word, a success has none. */
static void expect(DlfFrame f, int32_t status, const char *word)
{
    f.status = -99;
    f.message = f.stack = (char *)1; /* both must be set */
    go_call(&f);
    CHECK(f.status == status, "got %d (%s), want %d", f.status, f.message ? f.message : "no message", status);
    CHECK(f.stack == NULL, "a stack without a panic");
    if (status == DLF_KIND_OK)
        CHECK(f.message == NULL, "message %s", f.message);
    else
        CHECK(f.message && strstr(f.message, word), "message %s, want %s in it", f.message ? f.message : "NULL", word);
    free(f.message);
}

static DlfTensor tensor(void *data, uint8_t code, uint8_t bits, int32_t ndim, int64_t *shape, int64_t *strides)
{
    return (DlfTensor){.data = data, .device = {DLF_DEVICE_CPU, 0}, .ndim = ndim, .dtype = {code, bits, 1}, .shape = shape, .strides = strides};
}

static void validate(void)
{
    float data[6];
    int64_t shape[] = {2, 3}, strides[] = {1, 2};
    const DlfTensor good = tensor(data, DLF_CODE_FLOAT, 32, 2, shape, strides);
    const DlfFrame f = {.op = DLF_OP_VALIDATE, .a = &good};
    expect(f, DLF_KIND_OK, "");

#define HOSTILE(kind, word, ...)                                                                                                                             \
    do {                                                                                                                                                      \
        DlfTensor t = good;                                                                                                                                   \
        __VA_ARGS__;                                                                                                                                          \
        DlfFrame g = f;                                                                                                                                       \
        g.a = &t;                                                                                                                                             \
        expect(g, kind, word);                                                                                                                                \
    } while (0)
    int64_t negative[] = {2, -3}, huge[] = {INT64_MAX, INT64_MAX}, far[] = {INT64_MAX, 1};
    HOSTILE(DLF_KIND_SHAPE, "ndim", t.ndim = -1);
    HOSTILE(DLF_KIND_SHAPE, "ndim", t.ndim = INT32_MAX);
    HOSTILE(DLF_KIND_NULL, "shape", t.shape = NULL);
    HOSTILE(DLF_KIND_NULL, "data", t.data = NULL);
    HOSTILE(DLF_KIND_SHAPE, "axis 1", t.shape = negative);
    HOSTILE(DLF_KIND_OVERFLOW, "got", t.shape = huge);
    HOSTILE(DLF_KIND_OVERFLOW, "stride", t.strides = far);
    HOSTILE(DLF_KIND_DTYPE, "bit", t.dtype.bits = 0);
    HOSTILE(DLF_KIND_DTYPE, "lane", t.dtype.lanes = 0);
    HOSTILE(DLF_KIND_OFFSET, "offset", t.byte_offset = UINT64_MAX);
    HOSTILE(DLF_KIND_DEVICE, "device", t.device.type = 0);
    HOSTILE(DLF_KIND_ALIGNMENT, "shape", t.shape = (int64_t *)((char *)shape + 1));
    expect((DlfFrame){.op = DLF_OP_VALIDATE}, DLF_KIND_NULL, "tensor");
}

static void copy(int32_t threads)
{
    int32_t src[] = {1, -2, 3, -4, 5, -6};
    double dst[6] = {0};
    int64_t shape[] = {3, 2}, transposed[] = {1, 3}, other[] = {3, 1};
    const DlfTensor b = tensor(src, DLF_CODE_INT, 32, 2, shape, transposed);
    const DlfTensor a = tensor(dst, DLF_CODE_FLOAT, 64, 2, shape, NULL);
    const DlfFrame f = {.op = DLF_OP_COPY, .a = &a, .b = &b, .threads = threads};
    expect(f, DLF_KIND_OK, "");
    const double want[] = {1, -4, -2, 5, 3, -6};
    CHECK(!memcmp(dst, want, sizeof want), "got %g %g %g %g %g %g", dst[0], dst[1], dst[2], dst[3], dst[4], dst[5]);

    DlfFrame g = f;
    g.flags = DLF_FLAG_READ_ONLY;
    expect(g, DLF_KIND_READ_ONLY, "read-only");
    g = f;
    DlfTensor c = b;
    c.shape = other;
    g.b = &c;
    expect(g, DLF_KIND_SHAPE, "axis 1");
    g.b = NULL;
    expect(g, DLF_KIND_NULL, "tensor");
    g.b = &c;
    c = b;
    c.device.type = DLF_DEVICE_CUDA;
    expect(g, DLF_KIND_DEVICE, "cuda");

    /* Values of 4 bits, padded to a byte each. */
    uint8_t from[] = {1, 2, 3, 4, 5, 6}, to[6] = {0};
    DlfTensor p = tensor(from, DLF_CODE_FLOAT4_E2M1FN, 4, 2, shape, NULL), q = p;
    q.data = to;
    g = (DlfFrame){.op = DLF_OP_COPY, .a = &q, .b = &p, .flags = DLF_FLAG_SUBBYTE_PADDED};
    expect(g, DLF_KIND_OK, "");
    CHECK(!memcmp(to, from, sizeof from), "padded values");
    g.flags = 0;
    expect(g, DLF_KIND_DTYPE, "whole bytes");
}

static void large(void)
{
    enum { N = 1 << 22 };
    float *src = malloc(N * sizeof *src), *dst = malloc(N * sizeof *dst);
    for (int i = 0; i < N; i++)
        src[i] = (float)i;
    int64_t shape[] = {N}, backwards[] = {-1};
    const DlfTensor a = tensor(dst, DLF_CODE_FLOAT, 32, 1, shape, NULL), b = tensor(src + N - 1, DLF_CODE_FLOAT, 32, 1, shape, backwards);
    expect((DlfFrame){.op = DLF_OP_COPY, .a = &a, .b = &b, .threads = 4}, DLF_KIND_OK, "");
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += dst[i] != src[N - 1 - i];
    CHECK(wrong == 0, "%d elements", wrong);
    free(src);
    free(dst);
}

static void *storm(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        copy(i % 3);
        if (i % 10 == 0)
            validate();
    }
    return unused;
}

static void python_end(DlfStorage *st) { (void)st; }

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    DlfGoInit *init = (DlfGoInit *)dlsym(library, DLF_GO_INIT);
    go_call = (DlfGoCall *)dlsym(library, DLF_GO_CALL);
    if (!init || !go_call)
        return 2;
    DlfGoHost host = {.abi = DLF_GO_ABI + 1, .python_end = python_end};
    CHECK(init(&host) == DLF_GO_ABI, "another abi");
    host.abi = DLF_GO_ABI;
    CHECK(init(&host) == DLF_GO_ABI, "abi");

    go_call(NULL);
    validate();
    copy(0);
    large();
    expect((DlfFrame){.op = 4711}, DLF_KIND_UNSUPPORTED, "4711");

    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, storm, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);

    DlfFrame info = {.op = DLF_OP_INFO};
    go_call(&info);
    CHECK(info.status == DLF_KIND_OK && info.message, "info: %d", info.status);
    puts(info.message ? info.message : "");
    free(info.message);
    return failures != 0;
}
