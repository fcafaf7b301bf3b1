"""One check for every way in: what a capsule may hold is the same for objects, raw capsules of both kinds, tables and addresses."""

import ctypes as C
import struct

import numpy as np
import pytest
from support import Fake, Table, api, bad, exchange_type, our_table, peek

import dlferry as g

BYTES = bytes(range(64))


def by_our_table(f):
    out = C.c_void_p()
    TABLE.to_py(f.address, out)
    t = C.cast(out, C.py_object).value
    api.Py_DecRef(t)
    return t


TABLE = our_table(g.Tensor)
GIVES = exchange_type(Table(lambda p: p.f.address).capsule(), object, __init__=lambda self, f: setattr(self, "f", f))
OBJECTS = {
    "from_dlpack": g.from_dlpack,
    "asarray": g.asarray,
    "Tensor": g.Tensor,
    "convert": lambda x: g.convert(x, "dlferry"),
    "convert in a list": lambda x: g.convert([(x,)], "dlferry")[0][0],
    "device=": lambda x: g.from_dlpack(x, device="cpu"),
    "stream=": lambda x: g.from_dlpack(x, stream=None),
    "after another": lambda x: g.from_dlpack(g.from_dlpack(x).__dlpack__(max_version=(1, 3))),
}
CAPSULES = {f"{name} of a capsule": (lambda f, take=OBJECTS[name]: take(f.capsule())) for name in ("from_dlpack", "asarray", "convert")}
VERSIONED = {
    "from_address": lambda f: g.from_address(f.address),
    "our table": by_our_table,
    "a table": lambda f: g.from_dlpack(GIVES(f)),
    "asarray of a table": lambda f: g.asarray(GIVES(f)),
    "convert of a table": lambda f: g.convert(GIVES(f), "dlferry"),
}
WAYS = [(name, ver) for name in {**OBJECTS, **CAPSULES} for ver in (None, (1, 0), (1, 3))] + [(name, (1, 3)) for name in VERSIONED]
ALL = {**OBJECTS, **CAPSULES, **VERSIONED}
ways = pytest.mark.parametrize(("way", "ver"), WAYS, ids=lambda x: x if isinstance(x, str) else "legacy" if x is None else f"{x[0]}.{x[1]}")


@ways
def test_good_tensors_arrive(way, ver):
    # cases E03 https://github.com/NVIDIA/cutlass/issues/3359, F03, F05, F07, F10, F12, J01
    for keywords, want in (
        ({}, [0, 1, 2, 3]),
        ({"shape": (2, 3)}, [[0, 1, 2], [3, 4, 5]]),
        ({"shape": (2, 3), "strides": None}, [[0, 1, 2], [3, 4, 5]]),
        ({"shape": (2, 3), "strides": [1, 2]}, [[0, 2, 4], [1, 3, 5]]),
        ({"shape": (2, 2), "strides": [-2, 1], "off": 9}, [[9, 10], [7, 8]]),
        ({"off": 5}, [5, 6, 7, 8]),
        ({"shape": (), "shape_null": True, "strides": None, "off": 7}, 7),
        ({"shape": (0, 3), "null": True}, []),
        ({"shape": (2, 0), "strides": [2**62, -9], "null": True}, [[], []]),
        ({"shape": (1, 2), "strides": [2**62, 1]}, [[0, 1]]),
        ({"shape": (3,), "strides": [0], "off": 2}, [2, 2, 2]),
        ({"dev": (1, 5)}, [0, 1, 2, 3]),
        ({"dev": (3, 0)}, [0, 1, 2, 3]),
        ({"nofree": True}, [0, 1, 2, 3]),
    ):
        f = Fake(BYTES, ver=ver, **keywords)
        if f.dev != (1, 0) and way in ("device=", "after another") and f.dev[0] != 1:
            continue  # asks for a move that nobody makes
        t = ALL[way](f)
        assert t.tolist() == want and t.readonly is False, keywords
        del t
        assert f.freed == (0 if f.m.free is None else 1), keywords


FAULTS = {
    "negative ndim": {"ndim": -1},
    "65 axes": {"ndim": 65},
    "no shape": {"shape_null": True},
    "no data": {"null": True},
    "negative extent": {"shape": (2, -1)},
    "negative extent of an empty tensor": {"shape": (0, -(2**63))},
    "elements that overflow": {"shape": (2**32, 2**32)},
    "bytes that overflow": {"shape": (2**61,), "ty": (2, 64, 1)},
    "bytes that overflow though empty": {"shape": (0, 2**62, 4), "ty": (2, 64, 1)},
    "a span that overflows": {"shape": (3, 2), "strides": [2**62, 1]},
    "a span that overflows backwards": {"shape": (3,), "strides": [-(2**62)]},
    "an offset that wraps": {"off": 2**64 - 8},
    "an offset above int64": {"off": 2**63},
    "no lanes": {"ty": (2, 32, 0)},
    "no bits": {"ty": (2, 0, 1)},
    "half bytes": {"ty": (0, 4, 1)},
    "odd bits": {"ty": (2, 33, 1)},
    "bits times lanes": {"ty": (255, 255, 65535)},
}


@ways
@pytest.mark.parametrize("fault", FAULTS)
def test_bad_tensors_are_given_back(way, ver, fault):
    # cases F04, F18 https://github.com/tensorflow/tensorflow/pull/116201, G04, E04
    f = Fake(BYTES, ver=ver, strides=FAULTS[fault].get("strides"), **{k: v for k, v in FAULTS[fault].items() if k != "strides"})
    e = bad(lambda: ALL[way](f))
    assert type(e) is BufferError, repr(e)
    assert f.freed == (0 if way == "our table" else 1), "our table leaves a refused tensor its caller's"


@pytest.mark.parametrize("way", ALL)
def test_another_major_version_is_given_back_unread_by_every_way(way):
    # case E04, https://github.com/dmlc/dlpack/issues/116
    for ver in ((0, 1), (2, 0), (2**32 - 1, 2**32 - 1)):
        f = Fake(ver=ver, shape_null=True, null=True, ndim=2**31 - 1, ty=(255, 0, 0), dev=(1, 0))
        e = bad(lambda f=f: ALL[way](f))
        assert type(e) is BufferError and "version" in str(e) and f.freed == (0 if way == "our table" else 1)


@ways
def test_read_only_is_kept_by_every_way_in_and_out(way, ver):
    # cases D01 https://github.com/numpy/numpy/issues/28599, D02, D05, D06 https://github.com/NVIDIA/MatX/pull/1157
    if ver is None:
        return
    f = Fake(flags=1, ver=ver)
    t = ALL[way](f)
    for u in (
        t,
        t[1:],
        t.reshape((2, 2)),
        t.reshape((2, 2)).T,
        g.from_dlpack(t),
        g.from_dlpack(t.__dlpack__(max_version=(1, 3))),
        g.from_buffer(t),
        g.convert(t, "dlferry"),
    ):
        assert u.readonly and memoryview(u).readonly and peek(u.__dlpack__(max_version=(1, 0)))["flags"] & 1
        assert type(bad(lambda u=u: u.__dlpack__())) is BufferError
        assert isinstance(bad(lambda u=u: u.__setitem__(..., 0)), BufferError)
        assert not np.asarray(u).flags.writeable and not np.from_dlpack(u).flags.writeable
    assert not t.copy().readonly and not t.astype("int16").readonly and not g.from_dlpack(t, copy=True).readonly
    with pytest.raises((ValueError, TypeError)):
        memoryview(t)[0] = 1
    assert bytes(f.buf)[:4] == bytes(range(4))


@ways
def test_unaligned_elements_are_right_by_every_way(way, ver):
    # case J02, https://github.com/VoVAllen/tf-dlpack/issues/4
    for ty, code, size in (((2, 32, 1), "f", 4), ((0, 64, 1), "q", 8), ((1, 16, 1), "H", 2), ((2, 64, 1), "d", 8)):
        for off in (1, 3, 5):
            f = Fake(BYTES, (3,), ty=ty, off=off, ver=ver)
            want = list(struct.unpack_from(f"<3{code}", BYTES, off))
            try:
                t = ALL[way](f)
            except BufferError:
                assert way in ("from_address", "our table"), way  # they take what they are given or nothing
                assert f.freed == (way != "our table")
                continue
            assert (
                t.tolist() == want
                and t.copy().tolist() == want
                and t[::-1].tolist() == want[::-1]
                and t.astype("float64").tolist() == [float(x) for x in want]
            )
            a = np.from_dlpack(t)
            assert a.tolist() == want and size
            del t, a
            assert f.freed == 1


@ways
def test_types_without_values_are_carried_by_every_way(way, ver):
    # cases G04 https://github.com/cupy/cupy/pull/5045, G05 https://github.com/cupy/cupy/pull/9670
    for ty in ((2, 32, 4), (1, 24, 1), (3, 64, 1), (99, 8, 1), (4, 32, 1), (2, 128, 1)):
        f = Fake(BYTES, (2,), ty=ty, ver=ver)
        t = ALL[way](f)
        assert (t.dtype.code, t.dtype.bits, t.dtype.lanes) == ty and t.itemsize == ty[1] * ty[2] // 8
        assert isinstance(bad(t.tolist), BufferError) and peek(t.__dlpack__(max_version=(1, 3)))["ty"] == ty and repr(t)
        bad(lambda t=t: memoryview(t))
        bad(lambda t=t: t.astype("int8"))
        bad(lambda t=t: t.__setitem__(0, 1))
        del t
        assert f.freed == 1


@pytest.mark.parametrize("way", [w for w in ALL if w not in ("device=", "after another", "stream=")])
def test_devices_are_carried_by_every_way(way):
    # cases C07 https://github.com/pytorch/pytorch/issues/195825, H02
    for dev in ((2, 1), (10, 0), (8, 0), (14, 3), (15, 0), (4, 0), (7, 0)):
        f = Fake(dev=dev, data=0x1000)
        t = ALL[way](f)
        assert t.device == dev and t.shape == (4,) and isinstance(bad(t.tolist), BufferError) and repr(t)
        del t
        assert f.freed == 1
    f = Fake(dev=(2, -1))
    assert type(bad(lambda: ALL[way](f))) is BufferError


def test_a_value_to_assign_passes_the_same_check():
    for fault in FAULTS.values():
        keywords = {"strides": None, **fault}
        f = Fake(BYTES, **keywords)
        t = g.zeros(4)
        assert type(bad(lambda f=f, t=t: t.__setitem__(..., f))) is BufferError and f.freed == 1 and t.tolist() == [0] * 4
    f = Fake(BYTES, (4,), ty=(1, 16, 1), off=1)
    t = g.zeros(4)
    t[...] = f
    assert t.tolist() == [float(x) for x in struct.unpack_from("<4H", BYTES, 1)] and f.freed == 1


def test_all_verbs_agree_on_who_speaks_dlpack():
    """A table alone, a method found by __getattr__ (as proxies have it), and a method of the instance are enough for one verb if they are for another."""

    class Proxy:
        def __init__(self, x):
            self.__dict__["x"] = x

        def __getattr__(self, name):
            return getattr(self.x, name)

    class Instance:
        def __init__(self, x):
            self.__dlpack__ = x.__dlpack__

    for make in (GIVES, Proxy, Instance):
        for name, take in OBJECTS.items():
            if make is GIVES and name in ("stream=", "device="):
                continue
            f = Fake()
            x = make(f)
            t = take(x)
            assert t.tolist() == [0, 1, 2, 3] and t.data_ptr() == f.pointer, (make, name)
            del t
            assert f.freed == 1
        f = Fake()
        a = g.convert(make(f), "numpy")
        assert a.tolist() == [0, 1, 2, 3] and a.ctypes.data == f.pointer
        del a
        assert f.freed == 1
