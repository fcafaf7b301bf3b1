"""close() in one thread against everything else in others: values, an error that says closed, or an error that says in use; never a crash."""

import gc
import sys
import threading

import numpy as np
import pytest
from support import N1, U1, Fake, api, managed

import dlferry as g

USES = {
    "export": lambda t: t.__dlpack__(max_version=(1, 3)),
    "legacy export": lambda t: t.__dlpack__(),
    "copied export": lambda t: t.__dlpack__(copy=True, max_version=(1, 3)),
    "from_dlpack": lambda t: g.from_dlpack(t),
    "NumPy": lambda t: np.from_dlpack(t),
    "copy": lambda t: t.copy(),
    "cast": lambda t: t.astype("float64"),
    "tolist": lambda t: t.tolist(),
    "item": lambda t: t[3].item(),
    "buffer": lambda t: bytes(memoryview(t)),
    "view": lambda t: t[1:].tolist(),
    "reshape": lambda t: t.reshape((8, 8)).tolist(),
    "repr": lambda t: repr(t),
    "assignment": lambda t: t.__setitem__(0, 0),
    "assignment of itself": lambda t: t.__setitem__(..., t[::-1]),
    "iteration": lambda t: [x.item() for x in t],
    "pickle": lambda t: __import__("pickle").dumps(t),
    "metadata": lambda t: (t.shape, t.strides, t.dtype, t.nbytes, t.device, t.readonly, t.closed),
}


@pytest.fixture(autouse=True)
def switch_often():
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(old)


@pytest.mark.parametrize("name", USES)
def test_close_against(name):
    # case M03, https://github.com/sourcenetwork/defradb/issues/5171
    use = USES[name]
    for _ in range(12):
        f = Fake(bytes(range(64)), (64,))
        t = g.from_dlpack(f)
        errors = []
        barrier = threading.Barrier(3)

        def work(t=t, errors=errors, barrier=barrier):
            barrier.wait()
            for _ in range(3):
                try:
                    use(t)
                except (ValueError, BufferError) as e:
                    if "closed" not in str(e):
                        errors.append(repr(e))
                except BaseException as e:
                    errors.append(repr(e))

        threads = [threading.Thread(target=work) for _ in range(2)]
        [th.start() for th in threads]
        barrier.wait()
        while True:
            try:
                t.close()
                break
            except BufferError:  # a memoryview of it lives just now
                pass
        [th.join(60) for th in threads]
        assert not errors and t.closed, errors[:3]
        del threads, work
        gc.collect()
        assert f.freed == 1


@pytest.mark.parametrize("how", ["from_dlpack", "producer", "from_address", "dropped"])
def test_threads_at_one_export(how):
    for _ in range(25):
        f = Fake()
        c = g.from_dlpack(f).__dlpack__(max_version=(1, 3))
        won, lost = [], []
        barrier = threading.Barrier(4)

        class P:
            def __init__(self, c):
                self.c = c

            def __dlpack__(self, **kw):
                return self.c

        addresses = [api.PyCapsule_GetPointer(c, N1)]
        if how == "from_address":
            api.PyCapsule_SetName(c, U1)

        def work(c=c, won=won, lost=lost, barrier=barrier, addresses=addresses):
            barrier.wait()
            try:
                if how == "from_address":
                    won.append(g.from_address(addresses.pop()))
                elif how == "dropped":
                    won.append(g.from_dlpack(c))
                    won.pop()
                    won.append(None)
                else:
                    won.append(g.from_dlpack(c if how == "from_dlpack" else P(c)))
            except (BufferError, IndexError) as e:
                lost.append(e)

        threads = [threading.Thread(target=work) for _ in range(4)]
        [th.start() for th in threads]
        [th.join(60) for th in threads]
        assert len(won) == 1 and len(lost) == 3
        won.clear(), lost.clear()
        del threads, work, c
        gc.collect()
        assert f.freed == 1


def test_an_item_of_a_list_that_another_thread_empties():
    # case M16, https://github.com/go-python/gopy/pull/351
    for _ in range(20):
        things = [np.ones(100) for _ in range(50)]
        stop = threading.Event()

        def empty(things=things, stop=stop):
            while things and not stop.is_set():
                things.pop()

        th = threading.Thread(target=empty)
        th.start()
        try:
            out = g.convert(things, "dlferry")
            assert all(t.tolist() == [1.0] * 100 for t in out)
        except (RuntimeError, IndexError, ValueError) as e:
            assert "list" in str(e) or "changed" in str(e), e
        finally:
            stop.set()
            th.join(60)


def test_releases_on_every_kind_of_thread_at_once():
    # case B14, https://github.com/SunDoge/dlpark/commit/d560cbd: what an owner ends may run on any thread
    import ctypes as C

    free_type = C.CFUNCTYPE(None, C.c_void_p)  # called without the GIL
    fakes, deleters = [], []
    for _ in range(400):
        f = Fake()
        fakes.append(f)
        c = g.from_dlpack(f).__dlpack__(max_version=(1, 3))
        m = managed(c)
        api.PyCapsule_SetName(c, U1)
        deleters.append((free_type(m.free), C.addressof(m)))
    del c, m

    def work():
        while True:
            try:
                free, m = deleters.pop()
            except IndexError:
                return
            free(m)
            g.from_dlpack(Fake())

    threads = [threading.Thread(target=work) for _ in range(4)]
    [th.start() for th in threads]
    [th.join(60) for th in threads]
    g.zeros(1)
    assert [f.freed for f in fakes] == [1] * 400 and g.ledger()["queued"] == 0


def test_the_same_table_and_types_from_many_threads():
    # case B10, https://github.com/numpy/numpy/issues/28881
    errors = []

    def work(i):
        try:
            for k in range(150):
                P = type(f"P{i}_{k}", (Fake,), {})
                if g.from_dlpack(P()).tolist() != [0, 1, 2, 3]:
                    errors.append((i, k))
        except BaseException as e:
            errors.append(repr(e))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [th.start() for th in threads]
    [th.join(120) for th in threads]
    assert not errors, errors[:3]
