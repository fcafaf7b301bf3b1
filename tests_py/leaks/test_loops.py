"""A hundred thousand of each: the live counts end where they began, and memory does not grow."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from support import SANITIZED, Fake, bad, requires

import dlferry as g

# A sanitizer keeps freed memory aside on purpose and is slow: there the ledger judges alone.
N = int(os.environ.get("DLFERRY_LEAK_LOOPS", "2000" if SANITIZED else "100000"))
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def producer():
    return T  # a tensor of ours; see setup_module


T = None
SMALL = {
    "empty": lambda: g.empty((3,)),
    "zeros by dtype name": lambda: g.zeros((2, 3), dtype="int8"),
    "full": lambda: g.full((3,), 1.5),
    "view": lambda: T[1:],
    "reshape": lambda: T.reshape(6),
    "permute": lambda: T.permute_dims((1, 0)),
    "tolist": lambda: T.tolist(),
    "item": lambda: T[0, 0].item(),
    "metadata": lambda: (T.shape, T.strides, T.dtype, T.device, T.nbytes, T.data_ptr()),
    "repr": lambda: repr(T),
    "legacy capsule, dropped": lambda: T.__dlpack__(),
    "versioned capsule, dropped": lambda: T.__dlpack__(max_version=(1, 3)),
    "copied capsule, dropped": lambda: T.__dlpack__(max_version=(1, 3), copy=True),
    "capsule home": lambda: g.from_dlpack(T.__dlpack__(max_version=(1, 3))),
    "from_dlpack of a tensor": lambda: g.from_dlpack(T),
    "import from NumPy": lambda: g.from_dlpack(A),
    "import from NumPy, copied": lambda: g.from_dlpack(A, copy=True),
    "export to NumPy": lambda: np.from_dlpack(T),
    "__array__": lambda: np.asarray(T),
    "buffer in": lambda: g.from_buffer(B),
    "buffer out": lambda: memoryview(T).release(),
    "asarray of a list": lambda: g.asarray([1, 2, 3]),
    "convert": lambda: g.convert(T, "numpy"),
    "convert a container": lambda: g.convert({"a": [T]}, "numpy"),
    "copy": lambda: T.copy(),
    "cast": lambda: T.astype("float64"),
    "assignment": lambda: T.__setitem__((0, 0), 1),
    "assignment of a tensor": lambda: T.__setitem__(0, T[1]),
    "pickle": lambda: __import__("pickle").loads(__import__("pickle").dumps(T, 5)),
    "deepcopy": lambda: __import__("copy").deepcopy(T),
    "subclass": lambda: Sub(T),
    "weakref": lambda: __import__("weakref").ref(g.empty(1)),
    "close": lambda: g.empty(1).close(),
    "ledger": g.ledger,
    "refused dtype name": lambda: bad(lambda: g.empty(1, dtype="nothing")),
    "refused value": lambda: bad(lambda: g.full(1, 300, dtype="int8")),
    "refused keyword": lambda: bad(lambda: g.empty(1, nothing=1)),
    "refused device": lambda: bad(lambda: T.__dlpack__(dl_device=(2, 0))),
    "refused index": lambda: bad(lambda: T["x"]),
    "refused object": lambda: bad(lambda: g.from_dlpack(5)),
}


class Sub(g.Tensor):
    pass


A = np.arange(6.0).reshape(2, 3)
B = bytearray(64)


@pytest.fixture(autouse=True)
def tensor():
    global T
    T = g.full((2, 3), 1.5)
    yield
    T = None


def grows(work, n, warm=2000):
    for _ in range(warm):
        work()
    gc.collect()
    before, counts = resident(), g.ledger()
    for _ in range(n):
        work()
    gc.collect()
    assert g.ledger() == counts
    return 0 if SANITIZED else resident() - before


@pytest.mark.parametrize("name", SMALL)
def test_nothing_grows(name):
    # case M10, https://github.com/go-python/gopy/issues/210
    growth = grows(SMALL[name], N)
    if growth > 2 << 20:  # an allocator may still be settling: what leaks grows again
        growth = grows(SMALL[name], N)
    assert growth < 2 << 20, growth


@pytest.mark.parametrize(
    "fault",
    [
        {},
        {"ver": None},
        {"flags": 1},
        {"ndim": -1},
        {"ver": (2, 0)},
        {"ty": (2, 32, 0)},
        {"null": True},
        {"off": 1, "ty": (2, 32, 1)},
        {"shape": (1,) * 12},
    ],
)
def test_foreign_tensors_accepted_and_refused_leave_nothing(fault):
    f = Fake(**fault)

    def work():
        f.freed = 0
        c = f.capsule()
        f.caps.clear()
        try:
            g.from_dlpack(c)
        except BufferError:
            pass
        assert f.freed == 1

    growth = grows(work, N // 4)
    if growth > 2 << 20:  # Go words refusals; its heap grows to its first collection, and then no more
        growth = grows(work, N // 4)
    assert growth < 2 << 20, growth


def test_a_producer_that_raises_leaves_nothing():
    class P:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **kw):
            raise TypeError("no")

    p = P()
    assert grows(lambda: bad(lambda: g.from_dlpack(p)), N // 4) < 2 << 20


def test_types_that_come_and_go_do_not_pile_up():
    class Base:
        def __init__(self, f):
            self.f = f

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **kw):
            f = self.f
            c = f.capsule()
            f.caps.clear()
            return c

    f = Fake()

    def work():
        g.from_dlpack(type("P", (Base,), {})(f))

    growth = grows(work, 3000, warm=500)
    assert growth < 4 << 20, growth


@requires("torch")
@pytest.mark.parametrize("name", ["in", "out", "convert", "read-only", "refused"])
def test_torch_both_ways_leaves_nothing(name):
    import torch

    x = torch.arange(6.0)
    grad = torch.ones(3, requires_grad=True)
    ro = g.from_buffer(b"abcd")
    work = {
        "in": lambda: g.from_dlpack(x),
        "out": lambda: torch.from_dlpack(T),
        "convert": lambda: g.convert(T, torch.Tensor),
        "read-only": lambda: g.convert(ro, torch.Tensor),
        "refused": lambda: bad(lambda: g.from_dlpack(grad)),
    }[name]
    growth = grows(work, N // 4)
    assert growth < 4 << 20, growth
