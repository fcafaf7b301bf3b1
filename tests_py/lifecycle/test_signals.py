"""Signals during long work, with and without Go started; handlers that use dlferry."""

import os

from support import alone, without_sanitizer

pytestmark = without_sanitizer("an instrumented Go library takes minutes for the long casts")

NIGHTLY = os.environ.get("DLFERRY_NIGHTLY") == "1"
ELEMENTS = (1 << 30) if NIGHTLY else (1 << 26)  # of two bytes

SETUP = f"""
    import os, signal, sys, threading, time, dlferry as g
    N = {ELEMENTS}
    one = g.full((1,), 3, dtype="int32")
    source = g._core._view(one, (N // 1024, 1024), (0, 0), 0)  # as many elements as wanted over one
    g.asarray([1]).astype("int8")
    def interrupt_after(seconds):
        th = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        th.start()
        return th
"""


def test_ctrl_c_during_a_long_copy_arrives_during_it_or_right_after():
    # case M14, https://github.com/golang/go/issues/14899
    alone(
        SETUP
        + """
    work = {
        "cast": lambda: source.astype("float16"),
        "copy": lambda: source.copy(),
        "assignment": lambda: target.__setitem__(..., source),
        "contiguous": lambda: source.T.contiguous(),
    }
    target = g.empty(source.shape, dtype="int16")
    counts = None
    for name, f in work.items():
        before = g.ledger()
        start = time.monotonic(); f(); whole = time.monotonic() - start
        th = interrupt_after(min(0.05, whole / 4))
        start = time.monotonic()
        try:
            f()
            time.sleep(30)
        except KeyboardInterrupt:
            took = time.monotonic() - start
        else:
            raise SystemExit("no KeyboardInterrupt")
        th.join()
        assert took < 3 * whole + 2, (name, took, whole)
        assert g.ledger() == before, (name, g.ledger(), before)
    assert g.asarray([1.5]).astype("int8").tolist() == [1]
    """,
        timeout=600,
    )


def test_a_handler_may_use_dlferry_and_fork():
    # case M14
    alone(
        SETUP
        + """
    import warnings
    warnings.simplefilter("ignore")
    seen = []
    def handler(*a):
        t = g.from_dlpack(g.zeros(5)); seen.append(t.astype("int8").tolist())
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            ok = t.tolist() == [0] * 5 and g.zeros(1).copy().tolist() == [0]
            os._exit(0 if ok else 1)
        assert os.waitpid(pid, 0)[1] == 0
    signal.signal(signal.SIGUSR1, handler)
    threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    for _ in range(3):
        source.astype("float16")
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert seen and all(s == [0] * 5 for s in seen)
    """,
        timeout=300,
    )


def test_handlers_of_python_stay_what_they_were():
    # case M14
    alone("""
    import signal, faulthandler, dlferry as g
    faulthandler.enable()
    names = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
    before = {s: signal.getsignal(s) for s in names}
    g.zeros(3).tolist()
    assert {s: signal.getsignal(s) for s in names} == before and g._core._go_state() == "not loaded"
    g.zeros(3).astype("int8")
    assert {s: signal.getsignal(s) for s in names} == before and faulthandler.is_enabled()
    import os
    r, w = os.pipe(); os.close(r)
    try:
        os.write(w, b"x")
    except BrokenPipeError:
        pass
    else:
        raise SystemExit("no BrokenPipeError")
    """)


def test_dumps_of_faulthandler_come_during_go():
    # case M14
    alone(
        SETUP
        + """
    import faulthandler, tempfile
    with tempfile.TemporaryFile() as f:
        faulthandler.dump_traceback_later(0.01, repeat=True, file=f)
        for _ in range(4):
            source.astype("float16")
        faulthandler.cancel_dump_traceback_later()
        f.seek(0)
        assert b"most recent call first" in f.read()
    """,
        timeout=300,
    )


def test_profilers_and_timers_at_a_thousand_hertz():
    # case M14
    alone(
        SETUP
        + """
    seen = [0, 0]
    def count(i):
        def handler(*a): seen[i] += 1
        return handler
    signal.signal(signal.SIGPROF, count(0)); signal.signal(signal.SIGALRM, count(1))
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    t = g.full((1 << 20,), 3, dtype="int32")
    for _ in range(100):
        assert t.astype("float16")[-1].item() == 3
    signal.setitimer(signal.ITIMER_PROF, 0); signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen[0] > 5 and seen[1] > 5, seen
    """,
        timeout=300,
    )
