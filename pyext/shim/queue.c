/*
 * Ends of storage that need Python. On a thread attached to the interpreter they happen at once; elsewhere they wait in a list that any thread may push to,
 * drained at entries called from Python and by one outstanding pending call. After exit began, what comes is leaked on purpose: the process frees it.
 */
#include "core.h"

#include <dlfcn.h>
#include <stdlib.h>

DlfStorage *dlf_queue_head;
static int closed;
static int scheduled;
static int64_t length;

static PyThreadState *(*current_thread_state)(void);
static PyInterpreterState *home;

/*
 * PyGILState_Check answers yes for every thread once a sub-interpreter was made, hence the comparison. Up to 3.11 the current thread state is the
 * runtime's, not the thread's: it differs from this thread's own while another one holds the GIL. From 3.12 on both may be those of a sub-interpreter, where
 * the main interpreter's objects must not be touched.
 */
static int attached(void)
{
    PyThreadState *now = current_thread_state();
    return now && now == PyGILState_GetThisThreadState() && PyThreadState_GetInterpreter(now) == home;
}

static void finish(DlfStorage *st)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (st->kind == DLF_END_PYOBJECT) {
        PyObject *owner = st->owner;
        dlf_storage_discard(st);
        Py_DECREF(owner);
    } else if (st->kind == DLF_END_PYBUFFER) {
        Py_buffer *view = st->owner;
        dlf_storage_discard(st);
        PyBuffer_Release(view);
        free(view);
    } else {
        dlf_storage_finish(st);
    }
    /* What a foreign deleter left behind must not look like our caller's. */
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* A chain of owners (a tensor over a tensor over a tensor ...) would recurse as deep as it is long; beyond this many it goes on from the outermost end. */
#define MAX_DEPTH 32
static __thread int depth;
static __thread DlfStorage *postponed;

static void finish_now(DlfStorage *st)
{
    if (depth == MAX_DEPTH) {
        st->next = postponed;
        postponed = st;
        return;
    }
    depth++;
    finish(st);
    while (depth == 1 && (st = postponed)) {
        postponed = st->next;
        finish(st);
    }
    depth--;
}

void dlf_queue_drain_now(void)
{
    DlfStorage *st = __atomic_exchange_n(&dlf_queue_head, NULL, __ATOMIC_ACQUIRE);
    while (st) {
        DlfStorage *next = st->next;
        __atomic_fetch_sub(&length, 1, __ATOMIC_RELAXED);
        finish_now(st);
        st = next;
    }
}

static int drain_pending(void *unused)
{
    (void)unused;
    __atomic_store_n(&scheduled, 0, __ATOMIC_RELEASE);
    dlf_queue_drain_now();
    return 0;
}

static void python_end(DlfStorage *st)
{
    const int exiting = __atomic_load_n(&closed, __ATOMIC_ACQUIRE);
    /* Once finalization began, the thread states that attached() compares may be gone. */
    if (exiting && !Py_IsInitialized())
        return;
    if (attached()) {
        finish_now(st);
        return;
    }
    if (exiting)
        return;
    __atomic_fetch_add(&length, 1, __ATOMIC_RELAXED);
    DlfStorage *head = __atomic_load_n(&dlf_queue_head, __ATOMIC_RELAXED);
    do
        st->next = head;
    while (!__atomic_compare_exchange_n(&dlf_queue_head, &head, st, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    if (!__atomic_exchange_n(&scheduled, 1, __ATOMIC_ACQ_REL) && Py_AddPendingCall(drain_pending, NULL))
        __atomic_store_n(&scheduled, 0, __ATOMIC_RELEASE); /* the interpreter's list is full: the next entry or push drains */
}

int64_t dlf_queue_length(void) { return __atomic_load_n(&length, __ATOMIC_RELAXED); }

void dlf_queue_close(void)
{
    dlf_queue_drain_now();
    __atomic_store_n(&closed, 1, __ATOMIC_RELEASE);
}

int dlf_queue_closed(void) { return __atomic_load_n(&closed, __ATOMIC_ACQUIRE); }

int dlf_queue_init(void)
{
    home = PyInterpreterState_Get();
    *(void **)&current_thread_state = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked"); /* 3.13 */
    if (!current_thread_state)
        *(void **)&current_thread_state = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    if (!current_thread_state) {
        PyErr_SetString(PyExc_ImportError, "dlferry: this interpreter has neither PyThreadState_GetUnchecked nor _PyThreadState_UncheckedGet; CPython 3.11 or newer is needed");
        return -1;
    }
    __atomic_store_n(&dlf_python_end, python_end, __ATOMIC_RELEASE);
    return 0;
}
