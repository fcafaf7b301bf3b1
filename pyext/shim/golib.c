/*
 * The Go library: opened by the first call that needs it, so that importing starts no thread and touches no signal; lost in a forked child, whose copy of
 * the Go runtime has no threads.
 */
#define _GNU_SOURCE /* dladdr */
#include "core.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOT_LOADED, LOADED, LOST, MISSING };
static int state;
static int touched; /* opening has begun: from here on a forked child has half a runtime */
static DlfGoCall *go_call;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* Go reserves address space at start; below this it would end the process instead of failing. */
#define MIN_ADDRESS_SPACE (UINT64_C(2) << 30)

static void in_child(void)
{
    if (touched)
        state = LOST;
    loading = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int dlf_golib_init(void)
{
    if (pthread_atfork(NULL, NULL, in_child) == 0)
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* Goroutines that a kernel may use; 0: as many as Go has processors. Go does not see changes of os.environ, so C reads the setting and passes it in. */
static int threads = -1;

static int thread_limit(void)
{
    if (threads < 0) {
        const char *text = getenv("DLFERRY_NUM_THREADS");
        const long n = text ? strtol(text, NULL, 10) : 0;
        threads = n > 0 && n <= INT32_MAX ? (int)n : 0;
    }
    return threads;
}

PyObject *dlf_set_num_threads(PyObject *self, PyObject *o)
{
    (void)self;
    int64_t n;
    if (dlf_int64(o, &n, "set_num_threads", "n"))
        return NULL;
    if (n < 0 || n > INT32_MAX)
        return dlf_raise(DLF_KIND_VALUE, "set_num_threads: n, got %lld, want 1 or more, or 0 for as many as the machine has", (long long)n);
    threads = (int)n;
    return Py_NewRef(Py_None);
}

PyObject *dlf_get_num_threads(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyLong_FromLongLong(thread_limit());
}

static int library_path(char *out, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)library_path, &info) || !info.dli_fname)
        return -1;
    const char *slash = strrchr(info.dli_fname, '/');
    const int directory = slash ? (int)(slash - info.dli_fname) + 1 : 0;
    return snprintf(out, size, "%.*slibdlferry.so", directory, info.dli_fname) < (int)size ? 0 : -1;
}

/* DLFERRY_AFTER_FORK=reload: a forked child may open a Go runtime of its own. The parent's stays in memory, dead. */
static int may_reload(void)
{
    const char *policy = getenv("DLFERRY_AFTER_FORK");
    return policy && strcmp(policy, "reload") == 0;
}

/*
 * Another file with the same content, so that dlopen does not hand out the library that is open already. The descriptor stays open: its number is part of the
 * name that dlopen remembers, and must not come again in a child of this child.
 */
static int private_copy(char *path, size_t size)
{
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (from < 0)
        return -1;
    int to = (int)syscall(SYS_memfd_create, "libdlferry", 1 /* MFD_CLOEXEC */);
    int64_t left = to < 0 || fstat(from, &info) ? -1 : (int64_t)info.st_size;
    while (left > 0) {
        const ssize_t n = sendfile(to, from, NULL, (size_t)left);
        left = n > 0 ? left - n : -1;
    }
    close(from);
    if (left == 0 && snprintf(path, size, "/proc/self/fd/%d", to) < (int)size)
        return 0;
    if (to >= 0)
        close(to);
    return -1;
}

/* Runs without the GIL: opening starts the Go runtime, which takes milliseconds. NULL, or why it failed. */
static const char *load(int private, char *text, size_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < MIN_ADDRESS_SPACE) {
        snprintf(text, size, "the address space limit (ulimit -v) is %llu MiB, want at least 2048 or none", (unsigned long long)limit.rlim_cur >> 20);
        return text;
    }
    char path[4096];
    if (library_path(path, sizeof path))
        return "the folder of the extension is unknown";
    if (private && private_copy(path, sizeof path))
        return "no private copy of it could be made for the forked child";
    __atomic_store_n(&touched, 1, __ATOMIC_RELEASE);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        __atomic_store_n(&touched, 0, __ATOMIC_RELEASE);
    DlfGoInit *init = NULL;
    if (library) {
        *(void **)&init = dlsym(library, DLF_GO_INIT);
        *(void **)&go_call = dlsym(library, DLF_GO_CALL);
    }
    if (!init || !go_call) {
        const char *why = dlerror();
        snprintf(text, size, "%s", why ? why : "a function is missing");
        return text;
    }
    const DlfGoHost host = {DLF_GO_ABI, dlf_python_end};
    const uint32_t abi = init(&host);
    if (abi != DLF_GO_ABI) {
        snprintf(text, size, "%s has interface %u, want %u; reinstall dlferry", path, abi, DLF_GO_ABI);
        return text;
    }
    return NULL;
}

static int raise_lost(void)
{
    PyErr_SetString(PyExc_RuntimeError, "dlferry: Go cannot run in a forked child whose parent had started it, got a call that needs Go; use the spawn or forkserver start method, fork before the first such call, or set DLFERRY_AFTER_FORK=reload");
    return -1;
}

static int ensure(void)
{
    const int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (now == LOADED)
        return 0;
    if (now == LOST && !may_reload())
        return raise_lost();
    if (now == MISSING) {
        PyErr_SetString(PyExc_RuntimeError, "dlferry: the Go library did not open when it was first needed; python -m dlferry demo in a new process says why");
        return -1;
    }
    char text[4608];
    const char *why = NULL;
    PyThreadState *ts = PyEval_SaveThread();
    pthread_mutex_lock(&loading);
    if ((state == NOT_LOADED || state == LOST) && !(why = load(state == LOST, text, sizeof text)))
        __atomic_store_n(&state, LOADED, __ATOMIC_RELEASE);
    if (why)
        __atomic_store_n(&state, MISSING, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&loading);
    PyEval_RestoreThread(ts);
    if (!why)
        return 0;
    PyErr_Format(PyExc_RuntimeError, "dlferry: the Go library did not open: %s", why);
    return -1;
}

int dlf_go_usable(void)
{
    const int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    return now <= LOADED || (now == LOST && may_reload());
}

static int64_t frame_bytes(const DlfFrame *frame)
{
    int64_t n = frame->a ? 16 : 0;
    for (int i = 0; frame->op == DLF_OP_COPY && i < frame->a->ndim; i++)
        if (__builtin_mul_overflow(n, frame->a->shape[i], &n))
            return INT64_MAX;
    return n;
}

int dlf_go_call(DlfFrame *frame)
{
    if (ensure())
        return -1;
    frame->threads = thread_limit();
    if (frame->op == DLF_OP_COPY && frame_bytes(frame) > DLF_NOGIL_BYTES) {
        PyThreadState *ts = PyEval_SaveThread();
        go_call(frame);
        PyEval_RestoreThread(ts);
    } else {
        go_call(frame);
    }
    return 0;
}

/* Steps of a tenth of a second, with a look for signals in between. A call that is cancelled is waited for all the same: its arguments are in use. */
static int call_interruptibly(DlfFrame *frame)
{
    PyObject *interrupt = NULL;
    frame->op = DLF_OP_START;
    go_call(frame);
    do {
        frame->op = DLF_OP_WAIT;
        PyThreadState *ts = PyEval_SaveThread();
        go_call(frame);
        PyEval_RestoreThread(ts);
        if (!frame->pending || interrupt || !PyErr_CheckSignals())
            continue;
        interrupt = dlf_take_error();
        frame->op = DLF_OP_CANCEL;
        go_call(frame);
    } while (frame->pending);
    if (!interrupt)
        return 0;
    if (frame->status == DLF_KIND_OK)
        frame->status = DLF_KIND_VALUE;
    free(frame->message);
    free(frame->stack);
    frame->message = frame->stack = NULL;
    dlf_set_error(interrupt, NULL);
    return -1;
}

int dlf_go_call_function(DlfFrame *frame, int release, int interruptible)
{
    if (ensure())
        return -1;
    frame->threads = thread_limit();
    if (interruptible)
        return call_interruptibly(frame);
    PyThreadState *ts = release ? PyEval_SaveThread() : NULL;
    go_call(frame);
    if (ts)
        PyEval_RestoreThread(ts);
    return 0;
}

void dlf_raise_frame(const char *function, DlfFrame *frame)
{
    const char *message = frame->message ? frame->message : "no reason given";
    dlf_raise(frame->status, "%s: %s", function, message);
    if (frame->stack) {
        PyObject *error = dlf_take_error();
        PyObject *add_note = error ? PyObject_GetAttrString(error, "add_note") : NULL;
        PyObject *note = PyUnicode_FromString(frame->stack);
        PyObject *done = add_note && note ? PyObject_CallFunctionObjArgs(add_note, note, NULL) : NULL;
        Py_XDECREF(done);
        Py_XDECREF(note);
        Py_XDECREF(add_note);
        PyErr_Clear();
        if (error)
            dlf_set_error(error, NULL);
    }
    free(frame->message);
    free(frame->stack);
}

PyObject *dlf_go_info(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    DlfFrame frame = {.op = DLF_OP_INFO};
    if (dlf_go_call(&frame))
        return NULL;
    if (frame.status != DLF_KIND_OK) {
        dlf_raise_frame("_go_info", &frame);
        return NULL;
    }
    PyObject *text = PyUnicode_FromString(frame.message ? frame.message : "{}");
    free(frame.message);
    return text;
}

PyObject *dlf_go_state(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    static const char *const names[] = {"not loaded", "loaded", "lost by fork", "missing"};
    return PyUnicode_FromString(names[__atomic_load_n(&state, __ATOMIC_ACQUIRE)]);
}
