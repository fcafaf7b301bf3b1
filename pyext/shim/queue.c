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

static void end(DlfStorage *st)
{
    if (st->kind == DLF_END_PYOBJECT) {
        PyObject *owner = st->owner;
        st->discard(st);
        Py_DECREF(owner);
    } else if (st->kind == DLF_END_PYBUFFER) {
        Py_buffer *view = st->owner;
        st->discard(st);
        PyBuffer_Release(view);
        free(view);
    } else {
        dlf_storage_finish(st);
    }
}

/* What a foreign deleter does to the exception in flight, or leaves behind as one, must not be seen by our caller. */
static void finish(DlfStorage *st)
{
    PyObject *type = NULL, *value, *traceback;
    if (PyErr_Occurred())
        PyErr_Fetch(&type, &value, &traceback);
    end(st);
    if (PyErr_Occurred())
        PyErr_Clear();
    if (type)
        PyErr_Restore(type, value, traceback);
}

/* A chain of owners (a tensor over a tensor over a tensor ...) would recurse as deep as it is long; beyond this many it goes on from the outermost end. */
#define MAX_DEPTH 32
#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))
static OF_THREAD int depth;
static OF_THREAD DlfStorage *postponed;

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

/*
 * PyTorch gives the GIL up around the end of a tensor and takes it back right after, in a thread of Python; its own deleter for arrays waits for the GIL there
 * too. So waiting adds no lock that was not waited for, and saves a pending call, which costs as much as the exchange.
 */
static int wait_and_finish(DlfStorage *st)
{
    PyThreadState *own = PyGILState_GetThisThreadState();
    if (!own || PyThreadState_GetInterpreter(own) != home)
        return 0;
    PyEval_RestoreThread(own);
    finish_now(st);
    PyEval_SaveThread();
    return 1;
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
    if (st->may_wait && wait_and_finish(st))
        return;
    __atomic_fetch_add(&length, 1, __ATOMIC_RELAXED);
    DlfStorage *head = __atomic_load_n(&dlf_queue_head, __ATOMIC_RELAXED);
    do
        st->next = head;
    while (!__atomic_compare_exchange_n(&dlf_queue_head, &head, st, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    if (!__atomic_exchange_n(&scheduled, 1, __ATOMIC_ACQ_REL) && Py_AddPendingCall(drain_pending, NULL))
        __atomic_store_n(&scheduled, 0, __ATOMIC_RELEASE); /* the interpreter's list is full: the next entry or push drains */
}

void dlf_storage_unref_attached(DlfStorage *st)
{
    if (__atomic_load_n(&st->refs, __ATOMIC_ACQUIRE) != 1 || st->kind == DLF_END_GO || closed)
        dlf_storage_unref(st);
    else if (st->kind <= DLF_END_INLINE || (st->kind == DLF_END_PYOBJECT && dlf_py_let_go(st->owner)))
        dlf_storage_discard(st);
    else
        finish_now(st);
}

void dlf_owner_unref_attached(PyObject *owner)
{
    if (dlf_py_let_go(owner))
        return;
    DlfStorage *st = dlf_storage_wrap(DLF_END_PYOBJECT, owner, 0);
    if (st)
        finish_now(st);
    else
        Py_DECREF(owner);
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
