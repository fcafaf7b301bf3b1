"""The ways in and out that test_loops.py does not take: tables, addresses, refusals, releases on other threads."""

import ctypes as C
import gc
import sys

import numpy as np
import pytest
from support import FREE, N1, U0, U1, Fake, Table, api, bad, exchange_type, managed, our_table
from test_loops import N, grows

import dlferry as g

LIMIT = 2 << 20
OURS = our_table(g.Tensor)


def emptied(f):
    f.caps.clear()
    f.calls.clear()
    f.freed = 0


def by_table(f):
    emptied(f)
    g.from_dlpack(GIVES(f))


def by_our_table(f):
    out = C.c_void_p()
    OURS.to_py(f.address, out)
    api.Py_DecRef(C.cast(out, C.py_object))


def out_by_our_table(t):
    out = C.c_void_p()
    OURS.from_py(t, out)
    FREE(New_free(out.value))(out.value)


def New_free(address):
    from support import New

    return New.from_address(address).free


def fails(p):
    raise RuntimeError


GIVES = exchange_type(Table(lambda p: p.f.address).capsule(), object, __init__=lambda self, f: setattr(self, "f", f), __slots__=("f",))
FAILS = exchange_type(Table(fails).capsule(), object)
NULL = exchange_type(Table(lambda p: None).capsule(), object)


def wrap():
    return g.wrap_pointer(F.pointer, (4,), "uint8", owner=[F])


def raised(fake):
    emptied(fake)
    try:
        g.from_dlpack(fake)
    except RuntimeError:
        pass


def twice(f):
    emptied(f)
    c = f.capsule()
    g.from_dlpack(c)
    bad(lambda: g.from_dlpack(c))


def moved(t):
    for keywords, used in (({}, U0), ({"max_version": (1, 3)}, U1)):
        c = t.__dlpack__(**keywords)
        m = managed(c)
        api.PyCapsule_SetName(c, used)
        FREE(m.free)(C.addressof(m))
    g.ledger()


def address():
    c = T.__dlpack__(max_version=(1, 3))
    a = api.PyCapsule_GetPointer(c, N1)
    api.PyCapsule_SetName(c, U1)
    g.from_address(a)


F = T = None
WORK = {
    "a table": lambda: by_table(F),
    "a table that fails": lambda: bad(lambda: g.from_dlpack(FAILS())),
    "a table that gives NULL": lambda: bad(lambda: g.from_dlpack(NULL())),
    "our table in": lambda: by_our_table(F),
    "our table out": lambda: out_by_our_table(T),
    "our table, no tensor": lambda: bad(lambda: OURS.from_py(5, C.c_void_p())),
    "an address": address,
    "an address that is refused": lambda: bad(lambda: g.from_address(0)),
    "an owner": wrap,
    "a producer that raises": lambda: raised(RAISES),
    "a producer from before 2023": lambda: (emptied(OLD), g.from_dlpack(OLD)),
    "a capsule taken twice": lambda: twice(F),
    "deleters without the GIL": lambda: moved(T),
    "a capsule of another name": lambda: bad(lambda: g.from_dlpack(OTHER.capsule())) and OTHER.caps.clear(),
    "unaligned": lambda: (emptied(ODD), g.from_dlpack(ODD)),
    "a container that fails": lambda: (emptied(F), bad(lambda: g.convert([F, {"a": (T, object())}, 5, BROKEN], "numpy"))),
    "another major version": lambda: (emptied(NEWER), bad(lambda: g.from_dlpack(NEWER))),
    "iteration": lambda: list(T),
    "closed": lambda: bad(CLOSED.tolist),
    "a with block that raises": lambda: with_block(),
    "NumPy and back": lambda: g.from_dlpack(np.from_dlpack(g.from_dlpack(np.from_dlpack(T)))),
}
RAISES = OLD = OTHER = ODD = BROKEN = NEWER = CLOSED = None


def with_block():
    try:
        with g.zeros(3):
            raise KeyError
    except KeyError:
        pass


@pytest.fixture(autouse=True)
def things():
    global F, T, RAISES, OLD, OTHER, ODD, BROKEN, NEWER, CLOSED
    F, T = Fake(), g.from_dlpack(np.arange(6.0).reshape(2, 3))
    RAISES, OLD, OTHER, ODD = Fake(raises=RuntimeError("no")), Fake(old_api=True, ver=None), Fake(cap=b"other"), Fake(ty=(2, 32, 1), off=1)
    BROKEN, NEWER, CLOSED = Fake(ndim=-1), Fake(ver=(2, 0)), g.zeros(3)
    CLOSED.close()
    yield
    F = T = RAISES = OLD = OTHER = ODD = BROKEN = NEWER = CLOSED = None


@pytest.mark.parametrize("name", WORK)
def test_nothing_grows_by_this_way(name):
    # case M10, https://github.com/go-python/gopy/issues/210
    work = WORK[name]

    def once():
        work()
        emptied(BROKEN)
        RAISES.calls.clear()
        if RAISES.raises is not None:
            RAISES.raises.__traceback__ = None

    growth = grows(once, N // 10, warm=300)
    if growth > LIMIT:
        growth = grows(once, N // 10, warm=300)
    assert growth < LIMIT, growth
    counts = [sys.getrefcount(x) for x in (g.Tensor, None, np.ndarray, F, T, OURS)]
    for _ in range(200):
        once()
    gc.collect()
    after = [sys.getrefcount(x) for x in (g.Tensor, None, np.ndarray, F, T, OURS)]
    assert all(b - a < 100 for a, b in zip(counts, after, strict=True)), (counts, after)
