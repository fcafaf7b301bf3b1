"""Two copies of dlferry in one process: two extensions and two Go runtimes, each with tables and deleters of its own."""

import shutil
from pathlib import Path

import pytest
from support import alone, without_sanitizer

import dlferry


@pytest.fixture
def second(tmp_path):
    folder = Path(dlferry.__file__).parent
    shutil.copytree(folder, tmp_path / "dlferry_second", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@without_sanitizer("two runtimes of Go under one sanitizer")
def test_two_go_runtimes_work_side_by_side(second):
    # case M11, https://github.com/golang/go/issues/65050
    alone(f"""
        import gc, sys, threading
        sys.path.insert(0, {str(second)!r})
        import dlferry as g, dlferry_second as h
        assert g.Tensor is not h.Tensor and g._core.__file__ != h._core.__file__
        for m in (g, h, g):
            assert m.asarray([1, 2]).astype("float32").tolist() == [1, 2] and m._core._go_state() == "loaded"
        with open("/proc/self/maps") as f:
            assert len({{line.split()[-1] for line in f if line.rstrip().endswith("libdlferry.so")}}) == 2
        errors = []
        def work(a, b):
            try:
                for i in range(600):
                    t = a.full((20_000,), i % 100, dtype="int16")
                    u = b.from_dlpack(t)  # by the other's table
                    assert u.data_ptr() == t.data_ptr() and u.astype("float64")[7].item() == i % 100
                    v = a.from_dlpack(u.__dlpack__(max_version=(1, 3)))
                    del t, u
                    assert v.astype("int32")[-1].item() == i % 100
                    if i % 50 == 0:
                        gc.collect()
            except BaseException as e:
                errors.append(repr(e))
        threads = [threading.Thread(target=work, args=p) for p in ((g, h), (h, g), (g, h), (h, g))]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert not errors, errors[:2]
        gc.collect()
        assert not any(g.ledger().values()) and not any(h.ledger().values()), (g.ledger(), h.ledger())
    """)


@without_sanitizer("two runtimes of Go under one sanitizer")
def test_each_takes_the_others_tensors_by_every_way(second):
    # case M11
    alone(f"""
        import sys
        sys.path.insert(0, {str(second)!r})
        import dlferry as g, dlferry_second as h
        from support import Fake
        for a, b in ((g, h), (h, g)):
            f = Fake(); t = a.from_dlpack(f)
            ways = [b.from_dlpack(t), b.from_dlpack(t.__dlpack__()), b.from_dlpack(t.__dlpack__(max_version=(1, 0))), b.from_buffer(t), b.asarray(t), b.convert(t, b.Tensor),
                    a.convert(t, b.Tensor), b.convert([t], "dlferry")[0]]
            assert all(u.data_ptr() == f.pointer and u.tolist() == [0, 1, 2, 3] for u in ways)
            back = [a.from_dlpack(u) for u in ways]
            del t, ways
            assert f.freed == 0
            del back
            assert f.freed == 1
    """)


@without_sanitizer("two runtimes of Go under one sanitizer")
def test_a_forked_child_loses_both_and_may_reload_both(second):
    # case M11
    for after in ("", "reload"):
        alone(
            f"""
        import os, signal, sys, warnings
        warnings.simplefilter("ignore")
        sys.path.insert(0, {str(second)!r})
        import dlferry as g, dlferry_second as h
        for m in (g, h):
            m.asarray([1]).astype("int8")
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            code = 1
            try:
                for m in (g, h):
                    try:
                        assert m.asarray([3]).astype("int8").tolist() == [3] and {after!r}
                    except RuntimeError as e:
                        assert "spawn" in str(e) and not {after!r}
                    assert m.zeros(2).tolist() == [0, 0]
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
    """,
            env={"DLFERRY_AFTER_FORK": after},
        )
