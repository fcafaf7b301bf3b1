"""Forks and exits by the dozen; by the hundred with DLFERRY_NIGHTLY=1. No framework is imported but NumPy where the case is about it."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import support
from support import SANITIZED, alone, c_library, have_compiler, without_sanitizer
from test_exit import HELPER, PRELUDE
from test_fork import CHILD

pytestmark = without_sanitizer("hundreds of instrumented processes take minutes")

NIGHTLY = os.environ.get("DLFERRY_NIGHTLY") == "1"
FORKS = 200 if NIGHTLY else 25
EXITS = 200 if NIGHTLY else 12
SLOW = 4 if SANITIZED else 1
SUPPORT = Path(support.__file__).parent

REFUSES = """
    def refuses():
        try:
            g.zeros((3,)).astype("int32")
        except RuntimeError as e:
            assert "spawn" in str(e)
        else:
            raise AssertionError("no error")
"""


def test_forks_before_go_started():
    # case M01, https://github.com/golang/go/issues/15538
    alone(
        CHILD
        + f"""
    for i in range({FORKS}):
        child(start_go if i % 2 else everything_in_c)
    assert g._core._go_state() == "not loaded"
    start_go()
    """,
        timeout=300 * SLOW,
    )


def test_forks_after_go_started():
    # case M01
    alone(
        CHILD
        + REFUSES
        + f"""
    start_go()
    for i in range({FORKS}):
        child(lambda: (everything_in_c(), refuses(), i % 5 or child(everything_in_c)))
    start_go()
    """,
        timeout=300 * SLOW,
    )


BUSY = """
    import threading
    start_go()
    stop, rounds, failed = False, 0, []
    def busy(dtype):
        global rounds
        t = g.full((2 << 20,), 1)  # above the size where the GIL is given up
        try:
            while not stop:
                u = t.astype(dtype); assert u[-1].item() == 1
                u[...] = t; u.copy()
                rounds += 1
        except BaseException as e:
            failed.append(repr(e))
    threads = [threading.Thread(target=busy, args=(d,)) for d in ("float64", "int8", "float32")]
    [t.start() for t in threads]
"""


@pytest.mark.parametrize("after", ["refuse", "reload"])
def test_forks_while_threads_are_deep_in_go(after):
    # case M01
    count = FORKS if after == "refuse" else max(5, FORKS // 4)
    alone(
        CHILD
        + REFUSES
        + BUSY
        + f"""
    try:
        for i in range({count}):
            child(lambda: (everything_in_c(), refuses() if {after == "refuse"} else start_go()))
    finally:
        stop = True
        [t.join() for t in threads]
    assert not failed and rounds > 3, (failed, rounds)
    start_go()
    """,
        env={"DLFERRY_AFTER_FORK": after},
        timeout=300 * SLOW,
    )


def test_forks_from_threads_that_are_not_the_main_one():
    alone(
        CHILD
        + REFUSES
        + f"""
    import threading
    start_go()
    shared = g.from_dlpack(np.arange(64)); errors = []
    def forks():
        try:
            for _ in range({max(3, FORKS // 5)}):
                child(lambda: (everything_in_c(), refuses(), shared[1:].copy()))
        except BaseException as e:
            errors.append(repr(e))
    threads = [threading.Thread(target=forks) for _ in range(3)]
    [t.start() for t in threads]; [t.join() for t in threads]
    assert not errors, errors
    """,
        timeout=300 * SLOW,
    )


@have_compiler()
def test_forks_with_a_full_queue(tmp_path):
    """What waits for Python in the parent is a child's too: it ends there, in the child's own copy, and in the parent as before."""
    c_library(tmp_path, HELPER)
    alone(
        CHILD
        + f"""
    import ctypes as C
    from support import U1, api, managed
    lib = C.CDLL({str(tmp_path / "helper.so")!r})
    lib.on_thread.argtypes = [C.c_void_p, C.c_void_p]
    for i in range({max(5, FORKS // 5)}):
        fakes = [Fake() for _ in range(20)]
        taken = []
        for f in fakes:
            c = g.from_dlpack(f).__dlpack__(max_version=(1, 3)); m = managed(c); api.PyCapsule_SetName(c, U1)
            taken.append((m.free, C.addressof(m)))
        c = m = None
        for free, m in taken[:10]:
            lib.on_thread(free, m)
        def work():
            for free, m in taken[10:]:
                lib.on_thread(free, m)
            g.ledger(); g.zeros(1)
            assert [f.freed for f in fakes] == [1] * 20 and g.ledger()["queued"] == 0
        child(work)
        g.zeros(1)
        assert [f.freed for f in fakes] == [1] * 10 + [0] * 10, [f.freed for f in fakes]
        for free, m in taken[10:]:
            lib.on_thread(free, m)
        g.zeros(1)
        assert [f.freed for f in fakes] == [1] * 20
    """,
        timeout=300 * SLOW,
    )


EXIT = """
    import ctypes as C, builtins, sys, threading, dlferry as g
    sys.path.insert(0, SUPPORT)  # the package would import pytest, each time
    from fake import U1, Fake, api, managed
    def take(t):
        c = t.__dlpack__(max_version=(1, 3)); m = managed(c); api.PyCapsule_SetName(c, U1)
        return m.free, C.addressof(m)
    lib = C.CDLL(LIBRARY)
    for f in (lib.on_thread, lib.detached, lib.at_exit, lib.slowly):
        f.argtypes = [C.c_void_p, C.c_void_p]; f.restype = None
    builtins.keep = []
"""

ENDS = {
    "stashed tensors": """
        keep.extend([g.zeros(3), g.from_dlpack(Fake()), g.from_buffer(bytearray(4)), g.zeros(2).__dlpack__(), memoryview(g.zeros(2)), g.asarray([1.5]).astype("int8")])
        sys.modules["builtins"].keep.append(keep)
    """,
    "a full queue": """
        for i in range(200):
            f = Fake(); keep.append(f)
            lib.on_thread(*take(g.from_dlpack(f) if i % 2 else g.from_buffer(bytearray(9))))
    """,
    "deleters on foreign threads during the end": """
        for i in range(40):
            f = Fake(); keep.append(f)
            (lib.detached if i % 10 > 1 else lib.slowly)(*take([g.from_dlpack(f), g.from_buffer(bytearray(9)), g.zeros(9), g.wrap_pointer(f.pointer, 4, "uint8", owner=f)][i % 4]))
    """,
    "deleters in exit handlers of C": """
        lib.at_exit(*take(g.from_dlpack(Fake())))
        lib.on_thread(*take(g.from_buffer(bytearray(9))))
    """,
    "running copies in daemon threads": """
        def busy():
            t = g.full((2 << 20,), 1)
            while True:
                t.astype("float64"); t.copy()
        for _ in range(2):
            threading.Thread(target=busy, daemon=True).start()
        g.full((2 << 20,), 1).astype("int8")
    """,
    "daemon threads that make and drop": """
        def busy():
            while True:
                f = Fake(); t = g.from_dlpack(f); u = t[1:]; c = u.__dlpack__(); g.from_dlpack(c); del t, u, c
        for _ in range(3):
            threading.Thread(target=busy, daemon=True).start()
        g.zeros(1)
    """,
    "an exception": """
        keep.append(g.from_dlpack(Fake()))
        class E(BaseException): pass
        def h():
            t = g.from_dlpack(Fake()); keep.append(t[1:])
            raise SystemExit(0)
        h()
    """,
}


@have_compiler()
@pytest.mark.parametrize("end", ENDS)
def test_exits(end, tmp_path):
    # case B03, https://github.com/llvm/llvm-project/pull/150561
    c_library(tmp_path, HELPER)
    code = EXIT.replace("LIBRARY", repr(str(tmp_path / "helper.so"))).replace("SUPPORT", repr(str(SUPPORT))) + ENDS[end].replace("\n    ", "\n")
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(alone, code, timeout=60 * SLOW, options=() if i % 4 else ("-X", "dev")) for i in range(EXITS)]:
            done.result()


def test_exits_by_every_way_out():
    for how, code in (
        ("sys.exit(0)", 0),
        ("os._exit(0)", 0),
        ("raise SystemExit", 0),
        ("sys.exit('text')", 1),
        ("raise KeyError", 1),
        ("os.kill(os.getpid(), 15)", -15),
    ):
        done = support.run(
            PRELUDE
            + f"""
    import os
    builtins.keep = [g.from_dlpack(Fake()), g.from_dlpack(np.arange(3)).astype("float32"), g.zeros(2).__dlpack__()]
    {how}
    """
        )
        assert done.returncode == code and "Fatal" not in done.stderr, (how, done.returncode, done.stderr[-2000:])
