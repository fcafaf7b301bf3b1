"""A forked child: what C does works, what needs Go raises at once, nothing hangs."""

import pytest
from support import GO_LIBRARY, alone, without_sanitizer

pytestmark = without_sanitizer("its locks do not survive a fork of a process with threads")

CHILD = """
    import os, sys, signal, warnings, dlferry as g, numpy as np
    warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, about fork in a process with threads
    from support import Fake, bad, peek

    def child(work):
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # a hang ends the child, and the parent sees it
            code = 1
            try:
                work(); code = 0
            except BaseException:
                import traceback; traceback.print_exc()
            finally:
                sys.stderr.flush(); os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0, "the child failed"

    def start_go():
        assert g.asarray([1, 2]).astype("float32").tolist() == [1, 2]
        assert g._core._go_state() == "loaded"

    def everything_in_c():
        t = g.zeros((2, 3)); t[0] = 5; t[:, 1] = g.asarray([1.0, 2.0], dtype="float32")
        assert t.tolist() == [[5, 1, 5], [0, 2, 0]] and t.T.contiguous().copy().shape == (3, 2) and "float32" in repr(t)
        assert g.from_dlpack(t.__dlpack__(max_version=(1, 3))).tolist() == t.tolist() and g.from_buffer(b"ab").tolist() == [97, 98]
        import pickle; assert pickle.loads(pickle.dumps(t)).tolist() == t.tolist()
        assert type(bad(lambda: g.from_dlpack(Fake(ndim=-1)))) is BufferError
        assert type(bad(lambda: g.from_dlpack(Fake(shape=(2**62, 4))))) is BufferError
        assert type(bad(lambda: g.from_dlpack(Fake(ver=(2, 0))))) is BufferError
        assert isinstance(bad(lambda: g.full(1, 300, dtype="uint8")), ValueError)
        big = g.full((1 << 20,), 3, dtype="int16"); assert big.copy()[-1].item() == 3 and big[::-1].contiguous()[0].item() == 3
        big[1:] = big[:-1]
        a = np.from_dlpack(t); a[0, 0] = 9; assert t[0, 0].item() == 9
        f = Fake(); u = g.from_dlpack(f); del u; assert f.freed == 1
"""


def test_a_child_of_a_parent_that_never_started_go_can_do_everything():
    assert GO_LIBRARY.exists()
    alone(
        CHILD
        + """
    def work():
        everything_in_c(); start_go()
    child(work)
    everything_in_c(); start_go()
    """
    )


def test_a_child_of_a_parent_with_go_can_do_all_that_c_does():
    # case M01, https://github.com/golang/go/issues/15538
    alone(
        CHILD
        + """
    start_go()
    for _ in range(5):
        child(everything_in_c)
    start_go()
    """
    )


def test_a_child_gets_a_runtime_error_at_once_from_what_needs_go():
    # case M01
    alone(
        CHILD
        + """
    import time
    start_go()
    def work():
        assert g._core._go_state() == "lost by fork"
        t = g.zeros((3,))
        for f in (lambda: t.astype("int32"), g._core._go_info, lambda: t.astype("float64")):
            start = time.monotonic()
            try:
                f()
            except RuntimeError as e:
                assert "spawn" in str(e) and "forkserver" in str(e), e
            else:
                raise AssertionError("no error")
            assert time.monotonic() - start < 1
        assert t.tolist() == [0, 0, 0]
        child(everything_in_c)  # a grandchild
    child(work)
    """
    )


def test_tensors_of_the_parent_live_and_die_in_the_child():
    # case M01
    alone(
        CHILD
        + """
    start_go()
    class Parent(Fake): pass
    f = Parent(); t = g.from_dlpack(f); u = g.full((4,), 7); a = np.from_dlpack(u); c = u.__dlpack__(); m = memoryview(u)
    made_by_go = g.asarray([1, 2, 3]).astype("float64")
    def work():
        global t, u, a, c, m, made_by_go
        assert made_by_go.tolist() == [1, 2, 3] and t.tolist() == [0, 1, 2, 3]
        del t, a, c, m, u, made_by_go
        assert f.freed == 1
        everything_in_c()
    child(work)
    assert t.tolist() == [0, 1, 2, 3] and f.freed == 0 and u.tolist() == [7] * 4
    """
    )


def test_a_child_may_end_normally_with_live_tensors():
    alone(
        CHILD
        + """
    start_go()
    keep = [g.zeros((3,)), g.from_dlpack(Fake())]
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        keep.append(g.from_dlpack(np.arange(3)))
        sys.exit(0)  # with all of Python's clean-up
    assert os.waitpid(pid, 0)[1] == 0
    """
    )


def test_a_fork_while_another_thread_opens_go_never_hangs():
    alone(
        CHILD
        + """
    import threading
    for i in range(3):
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            go = threading.Event()
            def opener():
                go.wait()
                try:
                    g.asarray([1]).astype("int8")
                except RuntimeError:
                    pass
            th = threading.Thread(target=opener); th.start(); go.set()
            grand = os.fork()
            if grand == 0:
                signal.alarm(60)
                everything_in_c()
                try:
                    g.asarray([1]).astype("int8")
                except RuntimeError as e:
                    assert "spawn" in str(e)
                os._exit(0)
            code = os.waitpid(grand, 0)[1]
            th.join()
            os._exit(0 if code == 0 else 1)
        assert os.waitpid(pid, 0)[1] == 0, i
    """
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_pools_work_or_fail_fast(method, tmp_path):
    # case M01
    script = tmp_path / "main.py"
    script.write_text(f"""
import multiprocessing as mp, dlferry as g

def work(t):
    try:
        return t.astype("int32").tolist()
    except RuntimeError as e:
        return "spawn" in str(e)

if __name__ == "__main__":
    t = g.asarray([1.0, 2.0])
    t.astype("float32")
    with mp.get_context({method!r}).Pool(2) as pool:
        r = pool.map_async(work, [t] * 8).get(60)
    assert r == ([True] * 8 if {method!r} == "fork" else [[1, 2]] * 8), r
""")
    alone(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", options=("-W", "ignore::DeprecationWarning"))
