"""What every verb gives back is a full Tensor, for consumers of objects and of capsules alike; stale handles; many exports at once."""

import ctypes as C
import gc
import os

import numpy as np
import pytest
from support import FREE, N1, SANITIZED, U1, Fake, alone, api, bad, managed, requires

import dlferry as g

RESULTS = {
    "from_dlpack": lambda: g.from_dlpack(np.arange(4.0)),
    "from_dlpack of a capsule": lambda: g.from_dlpack(Fake().capsule()),
    "from_buffer": lambda: g.from_buffer(bytearray(4)),
    "asarray": lambda: g.asarray([1, 2, 3]),
    "empty": lambda: g.empty((2, 2)),
    "zeros": lambda: g.zeros((2, 2)),
    "full": lambda: g.full((2,), 1),
    "copy": lambda: g.zeros((2, 2)).T.copy(),
    "contiguous": lambda: g.zeros((2, 2)).T.contiguous(),
    "astype": lambda: g.zeros((2, 2)).astype("int8"),
    "view": lambda: g.zeros((2, 2))[1],
    "reshape": lambda: g.zeros((2, 2)).reshape(4),
    "T": lambda: g.zeros((2, 3)).T,
    "mT": lambda: g.zeros((2, 3)).mT,
    "to": lambda: g.zeros(2).to("cpu"),
    "convert": lambda: g.convert(np.arange(3), "dlferry"),
    "pickle": lambda: __import__("pickle").loads(__import__("pickle").dumps(g.zeros(3))),
    "an element of an iteration": lambda: next(iter(g.zeros((2, 2)))),
    "wrap_pointer": lambda: g.wrap_pointer(OWNER.data_ptr(), (4,), "uint8", owner=OWNER),
}
OWNER = None


@pytest.fixture(autouse=True)
def owner():
    global OWNER
    OWNER = g.zeros(4, dtype="uint8")
    yield
    OWNER = None


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_both_methods_and_numpy_takes_it(name):
    # case E07, https://github.com/p-zubieta/DLPack.jl/issues/32
    r = RESULTS[name]()
    assert type(r) is g.Tensor and hasattr(r, "__dlpack__") and hasattr(r, "__dlpack_device__")
    a = np.from_dlpack(r)
    assert a.shape == r.shape and a.tolist() == r.tolist()
    for capsule in (r.__dlpack__(), r.__dlpack__(max_version=(1, 3))):
        assert g.from_dlpack(capsule).tolist() == r.tolist()


@requires("torch")
@pytest.mark.parametrize("name", RESULTS)
def test_torch_takes_a_result_and_its_capsules(name):
    # case E07
    import torch

    r = RESULTS[name]()
    assert torch.from_dlpack(r).tolist() == r.tolist() and torch.utils.dlpack.from_dlpack(r.__dlpack__()).tolist() == r.tolist()


def test_a_thousand_exports_at_once_keep_their_values():
    # case A18, https://github.com/p-zubieta/DLPack.jl/issues/14
    page = os.sysconf("SC_PAGE_SIZE")

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * page

    def fill():
        arrays = [np.from_dlpack(g.full((20_000,), i, dtype="int32").astype("float32")) for i in range(1000)]
        waste = [g.full((20_000,), 7, dtype="int32").astype("float64") for _ in range(20)]
        gc.collect()
        assert all(a[0] == a[-1] == i for i, a in enumerate(arrays)) and len(waste) == 20
        assert g.ledger()["exports"] >= 1000

    before = g.ledger()
    fill()
    gc.collect()
    assert g.ledger() == before
    settled = resident()
    for _ in range(3):
        fill()
    gc.collect()
    assert g.ledger() == before
    assert SANITIZED or resident() - settled < 80 << 20  # one fill that leaked; the allocator settles below that


def test_a_closed_tensor_is_an_error_everywhere_and_its_exports_are_not():
    # case M03, https://github.com/sourcenetwork/defradb/issues/5171
    f = Fake()
    t = g.from_dlpack(f)
    c = t.__dlpack__(max_version=(1, 3))
    t.close()
    t.close()
    assert isinstance(bad(t.tolist), ValueError) and isinstance(bad(lambda: t.__dlpack__()), ValueError) and g.from_dlpack(c).tolist() == [0, 1, 2, 3]
    c = None
    assert f.freed == 1


def test_a_consumer_may_call_the_deleter_by_a_copy_of_the_struct():
    # case M03: some consumers move the struct to memory of their own; the export is found by manager_ctx
    alone("""
        import ctypes as C, dlferry as g
        from support import FREE, New, Old, U0, U1, Fake, api, managed
        for keywords, kind, used in (({}, Old, U0), ({"max_version": (1, 3)}, New, U1)):
            f = Fake(); t = g.from_dlpack(f)
            c = t.__dlpack__(**keywords); m = managed(c)
            copy = kind.from_buffer_copy(m)
            api.PyCapsule_SetName(c, used)
            del t
            assert f.freed == 0
            copy.t.data = None; copy.t.shape = None; copy.t.ndim = -1
            C.PYFUNCTYPE(None, C.c_void_p)(copy.free)(C.addressof(copy))
            assert f.freed == 1 and g.ledger()["exports"] == 0
            del c
            assert f.freed == 1
    """)


def test_from_address_takes_a_tensor_once():
    # case M03
    f = Fake()
    t = g.from_dlpack(f)
    c = t.__dlpack__(max_version=(1, 3))
    address = api.PyCapsule_GetPointer(c, N1)
    api.PyCapsule_SetName(c, U1)
    u = g.from_address(address)
    del t, c
    assert u.tolist() == [0, 1, 2, 3] and f.freed == 0
    del u
    assert f.freed == 1
    for address in (0, -1, 2**64, None, "x", 1.5):
        bad(lambda address=address: g.from_address(address))
    for fault in ({"ver": (2, 0)}, {"ndim": -1}, {"null": True}, {"shape": (2**62, 4)}, {"ty": (2, 0, 1)}):
        f = Fake(**fault)
        assert type(bad(lambda f=f: g.from_address(f.address))) is BufferError and f.freed == 1
    f = Fake()
    c = f.capsule()
    assert managed(c).major == 1 and FREE and C.sizeof(C.c_void_p) == 8
