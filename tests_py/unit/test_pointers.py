"""from_address and wrap_pointer."""

import gc
import weakref

import numpy as np
import pytest
from support import U1, Fake, api, bad, peek

import dlferry as g


def test_from_address_takes_ownership_and_frees_once():
    f = Fake(bytes(range(8)), (2, 4), strides=[1, 2])
    t = g.from_address(f.address)
    assert t.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]] and f.freed == 0
    view = t[0]
    del t
    assert f.freed == 0
    del view
    assert f.freed == 1


def test_from_address_takes_our_own_exports():
    t = g.asarray([1, 2, 3])
    c = t.__dlpack__(max_version=(1, 3))
    address = peek(c)["address"]
    api.PyCapsule_SetName(c, U1)  # somebody consumed it
    u = g.from_address(address)
    assert u.data_ptr() == t.data_ptr()


@pytest.mark.parametrize(
    "fault",
    [{"ver": (2, 0)}, {"ndim": -1}, {"ndim": 65}, {"null": True}, {"ty": (2, 0, 1)}, {"shape": (2**62, 4)}, {"off": 2**63}, {"shape_null": True}],
)
def test_from_address_frees_what_it_refuses(fault):
    f = Fake(**fault)
    assert type(bad(lambda: g.from_address(f.address))) is BufferError
    assert f.freed == 1


@pytest.mark.parametrize("address", [0, 1, 4, 2**64, -8, 2**80])
def test_an_address_that_cannot_be_is_a_value_error(address):
    with pytest.raises(ValueError, match="from_address: address, got"):
        g.from_address(address)


@pytest.mark.parametrize("address", [None, "8", 8.0, b"8", object()])
def test_an_address_that_is_no_int_is_a_type_error(address):
    with pytest.raises(TypeError, match="from_address: address, got"):
        g.from_address(address)


def test_wrap_pointer_shares_the_memory_and_keeps_its_owner():
    a = np.arange(12, dtype="int32")
    w = weakref.ref(a)
    t = g.wrap_pointer(a.ctypes.data, (3, 4), "int32", owner=a)
    assert t.tolist() == a.reshape(3, 4).tolist() and not t.readonly and t.data_ptr() == a.ctypes.data
    t[0, 0] = 99
    assert a[0] == 99
    del a
    capsule = t[1:].__dlpack__()
    del t
    gc.collect()
    assert w() is not None
    del capsule
    gc.collect()
    assert w() is None


def test_wrap_pointer_takes_strides_readonly_and_devices():
    a = np.arange(12, dtype="int32")
    p = a.ctypes.data
    assert g.wrap_pointer(p + 44, (3, 4), np.int32, strides=(-4, -1), owner=a).tolist() == a.reshape(3, 4)[::-1, ::-1].tolist()
    assert g.wrap_pointer(p, 4, "int32", strides=[0], owner=a).tolist() == [0] * 4
    t = g.wrap_pointer(p, (2,), "int32", readonly=True, owner=a)
    assert t.readonly and type(bad(lambda: t.__setitem__(0, 1))) is BufferError
    d = g.wrap_pointer(0x1000, (2,), "float32", device="cuda:1")
    assert d.device == "cuda:1" and d.data_ptr() == 0x1000
    assert g.wrap_pointer(0, (0, 5), "float32").tolist() == [] and g.wrap_pointer(0, (5, 0), "float32").shape == (5, 0)
    assert g.wrap_pointer(p, (), "int32", owner=a).item() == 0


def test_wrap_pointer_refuses_what_cannot_be():
    a = np.zeros(8)
    p = a.ctypes.data
    for f, want in (
        (lambda: g.wrap_pointer(0, (1,), "float32"), "NULL|null|data"),
        (lambda: g.wrap_pointer(p, (-1,), "float32"), "axis 0|shape"),
        (lambda: g.wrap_pointer(p, (2**62, 8), "float32"), "shape|elements|overflow"),
        (lambda: g.wrap_pointer(p, (2,), "float64", strides=(2**62,)), "stride"),
        (lambda: g.wrap_pointer(p, (2,), "float64", strides=(1, 1)), "strides"),
        (lambda: g.wrap_pointer(p + 1, (2,), "float64"), "multiple"),
        (lambda: g.wrap_pointer(2**64, (2,), "float64"), "ptr"),
        (lambda: g.wrap_pointer(-1, (2,), "float64"), "ptr"),
        (lambda: g.wrap_pointer(2**64 - 8, (4,), "float64"), "address space|offset|wrap"),
        (lambda: g.wrap_pointer(p, (2,), "nope"), "dtype"),
        (lambda: g.wrap_pointer(p, (2,), "float64", device="nope"), "device"),
    ):
        with pytest.raises(ValueError, match=want):
            f()
    for f in (
        lambda: g.wrap_pointer("1", (1,), "int8"),
        lambda: g.wrap_pointer(p, "1", "int8"),
        lambda: g.wrap_pointer(p, (1,), None),
        lambda: g.wrap_pointer(p, (1,), "int8", strides="1"),
        lambda: g.wrap_pointer(p, (1,), "int8", device=7),
        lambda: g.wrap_pointer(p, (1,)),
        lambda: g.wrap_pointer(p, (1,), "int8", (1,)),
        lambda: g.wrap_pointer(p, (1,), "int8", own=a),
    ):
        with pytest.raises(TypeError, match="wrap_pointer|device|dtype"):
            f()
    assert isinstance(bad(lambda: g.wrap_pointer(p, (8,), "int4")), BufferError)


def test_a_refused_wrap_does_not_keep_the_owner():
    a = np.zeros(8)
    w = weakref.ref(a)
    for _ in range(10):
        bad(lambda: g.wrap_pointer(a.ctypes.data + 1, (1,), "float64", owner=a))
        bad(lambda: g.wrap_pointer(0, (1,), "float64", owner=a))
    del a
    gc.collect()
    assert w() is None
