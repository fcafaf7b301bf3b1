"""The end of the process: live tensors, live exports, releases that come late and from elsewhere."""

import pytest
from support import SANITIZED, alone, have_compiler, without_sanitizer

HELPER = r"""
#include <pthread.h>
#include <stdlib.h>
typedef void (*deleter)(void *);
static deleter late; static void *late_arg;
static void *run(void *p) { void **a = p; ((deleter)a[0])(a[1]); free(p); return 0; }
static void start(pthread_t *t, deleter f, void *m) { void **a = malloc(2 * sizeof *a); a[0] = (void *)f; a[1] = m; pthread_create(t, 0, run, a); }
void on_thread(deleter f, void *m) { pthread_t t; start(&t, f, m); pthread_join(t, 0); }          /* returns when the deleter has */
void detached(deleter f, void *m) { pthread_t t; start(&t, f, m); pthread_detach(t); }
static void at_end(void) { late(late_arg); }
void at_exit(deleter f, void *m) { late = f; late_arg = m; atexit(at_end); }
static void *slow(void *p) { struct timespec; void **a = p; for (volatile long i = 0; i < 300000000; i++); ((deleter)a[0])(a[1]); return 0; }
void slowly(deleter f, void *m) { void **a = malloc(2 * sizeof *a); a[0] = (void *)f; a[1] = m; pthread_t t; pthread_create(&t, 0, slow, a); pthread_detach(t); }
"""

PRELUDE = """
    import ctypes as C, gc, sys, builtins, dlferry as g, numpy as np
    from support import FREE, Fake, N1, U1, New, api, c_library, managed, peek
    def take(t):
        "The managed tensor of t, as a C library would own it: (deleter, address)."
        c = t.__dlpack__(max_version=(1, 3))
        m = managed(c)
        api.PyCapsule_SetName(c, U1)
        return m.free, C.addressof(m)
"""


def helper(tmp_path):
    return f"""
    lib = c_library({str(tmp_path)!r}, {HELPER!r})
    for f in (lib.on_thread, lib.detached, lib.at_exit, lib.slowly):
        f.argtypes = [C.c_void_p, C.c_void_p]; f.restype = None
"""


@pytest.mark.parametrize("options", [(), ("-X", "dev"), ("-X", "faulthandler")])
def test_a_process_ends_quietly_with_live_tensors_of_every_kind(options):
    # case B06, https://github.com/cupy/cupy/pull/2809
    alone(
        PRELUDE
        + """
    class Sub(g.Tensor):
        pass
    f = Fake()
    builtins.keep = [g.asarray([1]), g.from_dlpack(f), g.from_dlpack(np.arange(9)), g.from_buffer(bytearray(4)), g.zeros(3).__dlpack__(), np.from_dlpack(g.zeros(3)),
                     memoryview(g.zeros(3)), Sub([1, 2]), iter(g.zeros((2, 2))), g.wrap_pointer(f.pointer, 4, "uint8", owner=[f]), g.zeros((1,) * 12)]
    keep[7].cycle = keep
    sys.keep = keep
    import threading; threading.current_thread().keep = keep
    """,
        options=options,
    )


def test_a_process_ends_quietly_with_go_started():
    # case B03, https://github.com/llvm/llvm-project/pull/150561
    alone(
        PRELUDE
        + """
    builtins.keep = [g.asarray([1.5]).astype("float16"), g.from_dlpack(np.arange(9)).astype("int8")]
    """
    )


def test_python_exit_functions_and_finalisers_may_use_tensors():
    alone(
        PRELUDE
        + """
    import atexit
    t = g.asarray([1, 2])
    def late():
        assert t.tolist() == [1, 2] and g.zeros(2).tolist() == [0, 0] and g.ledger()["tensors"] >= 1
        g.from_dlpack(Fake())
        np.from_dlpack(t)
    atexit.register(late)
    class D:
        def __del__(self):
            self.t.tolist(); g.from_dlpack(self.t)
    builtins.d = D(); d.t = t
    """,
        quiet=True,
    )


@have_compiler()
def test_a_deleter_on_a_foreign_thread_frees_our_memory_at_once(tmp_path):
    # case B09, https://github.com/apache/tvm-ffi/pull/529: our own memory needs no interpreter, so no thread state, with a GIL or without
    alone(
        PRELUDE
        + helper(tmp_path)
        + """
    before = g.ledger()
    for _ in range(100):
        t = g.zeros((1000,))
        free, m = take(t)
        del t
        lib.on_thread(free, m)
    assert g.ledger() == before
    """
    )


@have_compiler()
def test_a_python_owner_released_on_a_foreign_thread_ends_on_a_python_thread(tmp_path):
    # cases B09 and B14 https://github.com/SunDoge/dlpark/commit/d560cbd: a thread that Python does not know calls nothing of Python
    alone(
        PRELUDE
        + helper(tmp_path)
        + """
    import threading, time
    class F(Fake):
        def _free(self, p):
            super()._free(p)
            self.thread = threading.current_thread()
    for _ in range(20):
        f = F(); t = g.from_dlpack(f)
        free, m = take(t); del t
        assert f.freed == 0
        lib.on_thread(free, m)
        g.ledger()  # an entry drains
        assert f.freed == 1 and f.thread is threading.main_thread()
        a = np.arange(5); t = g.from_dlpack(a); free, m = take(t); del t, a
        lib.on_thread(free, m)
        b = bytearray(5); t = g.from_buffer(b); free, m = take(t); del t
        lib.on_thread(free, m)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:  # without any entry: the pending call
            try:
                b.append(1)
                break
            except BufferError:
                pass
        else:
            raise SystemExit("never released")
    assert g.ledger()["queued"] == 0 and g.ledger()["storages"] == 0
    """
    )


@have_compiler()
def test_an_exception_in_flight_survives_a_drain(tmp_path):
    alone(
        PRELUDE
        + helper(tmp_path)
        + """
    class F(Fake):
        def _free(self, p):
            super()._free(p)
            raise KeyError("in the deleter")
    sys.unraisablehook = lambda u: None
    f = F(); t = g.from_dlpack(f); free, m = take(t); del t
    lib.on_thread(free, m)
    try:
        try:
            raise ValueError("mine")
        finally:
            g.zeros(1)
    except ValueError as e:
        assert str(e) == "mine"
    assert f.freed == 1
    """
    )


@have_compiler()
def test_a_deleter_called_by_an_atexit_handler_of_c_is_harmless(tmp_path):
    # case B03
    for owner in (
        "g.from_dlpack(np.arange(9))",
        "g.from_dlpack(Fake())",
        "g.from_buffer(bytearray(9))",
        "g.zeros(9)",
        "g.wrap_pointer(np.zeros(9).ctypes.data, 1, 'int8', owner=np.zeros(9))",
    ):
        alone(
            PRELUDE
            + helper(tmp_path)
            + f"""
    f = Fake()
    t = {owner}
    lib.at_exit(*take(t))
    del t
        """
        )


@have_compiler()
def test_releases_that_arrive_while_the_interpreter_ends_are_harmless(tmp_path):
    alone(
        PRELUDE
        + helper(tmp_path)
        + """
    builtins.keep = []
    for _ in range(50):
        f = Fake(); keep.append(f)
        t = g.from_dlpack(f); free, m = take(t); del t
        lib.detached(free, m)
    for _ in range(2):
        t = g.from_buffer(bytearray(9)); free, m = take(t); del t
        lib.slowly(free, m)
    """
    )


def test_a_queue_with_many_entries_is_emptied(tmp_path):
    # ctypes calls the deleter without the GIL held, on a thread that has an interpreter state: not attached
    alone(
        PRELUDE
        + """
    fakes = []
    free_type = C.CFUNCTYPE(None, C.c_void_p)
    for _ in range(2000):
        f = Fake(); fakes.append(f)
        t = g.from_dlpack(f); free, m = take(t); del t
        free_type(free)(m)
    g.ledger(); g.zeros(1)
    assert all(f.freed == 1 for f in fakes) and g.ledger()["queued"] == 0 and g.ledger()["imports"] == 0, g.ledger()
    """
    )


def test_faulthandler_and_signals_of_python_still_work_after_go_started():
    # case M14, https://github.com/golang/go/issues/14899
    alone(
        PRELUDE
        + f"    N = {1 << (16 if SANITIZED else 20)}"  # an instrumented Go library takes half a second to cast a million
        + """
    import faulthandler, os, signal, tempfile
    g.asarray([1]).astype("float32")
    seen = []
    signal.signal(signal.SIGUSR1, lambda *a: seen.append(1))
    signal.signal(signal.SIGPROF, lambda *a: seen.append(2))
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    t = g.full((N,), 1.5)
    for _ in range(200):
        t.astype("float16"); os.kill(os.getpid(), signal.SIGUSR1)
    signal.setitimer(signal.ITIMER_PROF, 0)
    assert seen.count(1) > 100
    try:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**6): pass
    except KeyboardInterrupt:
        pass
    else:
        raise SystemExit("no KeyboardInterrupt")
    with tempfile.TemporaryFile() as f:
        faulthandler.dump_traceback(f)
        f.seek(0); assert b"most recent call first" in f.read()
    """
    )


def test_a_crash_elsewhere_is_still_reported_by_faulthandler_after_go_started():
    from support import run

    done = run(
        PRELUDE
        + """
    g.asarray([1]).astype("float32")
    import faulthandler
    faulthandler._sigsegv()
    """
    )
    assert (done.returncode == -11 and "Segmentation fault" in done.stderr and "_sigsegv" in done.stderr) or done.returncode < 0, done.stderr[-2000:]


@without_sanitizer("its shadow memory needs more address space than the limit leaves")
def test_a_low_address_space_limit_is_an_error_and_not_the_end():
    alone("""
    import resource, dlferry as g
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        g.zeros(3).astype("int8")
    except RuntimeError as e:
        assert "ulimit" in str(e) or "address space" in str(e)
    else:
        raise SystemExit("no error")
    assert g.zeros(3).tolist() == [0, 0, 0]
    """)
