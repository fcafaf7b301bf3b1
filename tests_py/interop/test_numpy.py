"""NumPy, on every Python."""

import gc

import numpy as np
import pytest
from support import alone, bad, requires

import dlferry as g

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def address(a):
    return a.__array_interface__["data"][0]


def test_one_memory_from_go_through_numpy_and_back():
    t = g.empty((2, 3))
    for a in (np.from_dlpack(t), np.asarray(t), t.numpy(), g.convert(t, np.ndarray), np.asarray(memoryview(t))):
        assert address(a) == t.data_ptr() and a.shape == (2, 3) and a.dtype == "float32" and a.flags.writeable
        a[1, 2] = 7
        assert t[1, 2].item() == 7
        assert g.from_dlpack(a).data_ptr() == t.data_ptr()
        t[1, 2] = 0
        assert a[1, 2] == 0


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_crosses_both_ways(name):
    a = (np.arange(6) % 2 if name == "bool" else np.arange(6)).astype(name).reshape(2, 3)
    for source in (a, a.T, a[:, ::-1], a[::2], a[:0], a[0, 0, None]):
        t = g.from_dlpack(source)
        assert t.dtype == name and t.tolist() == source.tolist() and not t.readonly
        b = np.from_dlpack(t)
        assert (b.dtype == source.dtype and b.tolist() == source.tolist() and b.strides == source.strides) or 0 in source.shape or 1 in source.shape


def test_memory_is_freed_once_whoever_goes_last():
    before = g.ledger()
    t = g.zeros((1000,))
    a = np.from_dlpack(t)
    b = a[::2]
    del t, a
    gc.collect()
    assert g.ledger()["exports"] == before["exports"] + 1 and b.sum() == 0
    del b
    assert g.ledger() == before


def test_read_only_arrays_stay_read_only_both_ways():
    a = np.arange(3)
    a.flags.writeable = False
    t = g.from_dlpack(a)
    assert t.readonly and not np.from_dlpack(t).flags.writeable and t.data_ptr() == address(a)
    assert not g.from_dlpack(a, copy=True).readonly


def test_scalars_and_zero_axes_cross():
    # cases D11 https://github.com/numpy/numpy/pull/32029 and F07
    t = g.from_dlpack(np.array(5.5))
    assert t.shape == () and t.item() == 5.5 and np.from_dlpack(g.full((), 2)).shape == ()


def test_what_numpy_cannot_export_stays_numpys_error():
    for a in (
        np.array(["x"]),
        np.array([None]),
        np.zeros(2, "M8[s]"),
        np.zeros(2, "S3"),
        np.zeros(2, [("a", "i4")]),
        np.zeros(2, "g"),
        np.zeros(2, ">f4"),
    ):
        assert isinstance(bad(lambda a=a: g.from_dlpack(a)), BufferError)


def test_copy_keywords_reach_numpy():
    t = g.zeros((3,))
    a = np.from_dlpack(t, copy=True)
    assert address(a) != t.data_ptr()
    assert address(np.from_dlpack(t, copy=False)) == t.data_ptr() and address(np.from_dlpack(t, device="cpu")) == t.data_ptr()


def test_subclasses_and_memmaps_are_taken(tmp_path):
    m = np.memmap(tmp_path / "m", dtype="int32", mode="w+", shape=(4,))
    m[:] = [1, 2, 3, 4]
    t = g.from_dlpack(m)
    t[0] = 9
    assert m[0] == 9
    r = np.memmap(tmp_path / "m", dtype="int32", mode="r")
    assert g.from_dlpack(r).readonly
    assert g.from_dlpack(np.arange(3).view(np.recarray)).tolist() == [0, 1, 2]
    rec = np.zeros(3, [("x", "f8"), ("y", "f8")])
    assert g.from_dlpack(rec["y"]).strides == (2,)


@requires("ml_dtypes")
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_registered_dtypes_cross_where_numpy_can(name):
    import ml_dtypes

    register = getattr(np.dtypes, "register_dlpack_dtype", None)
    if register is None:
        pytest.skip("needs NumPy 2.5 with register_dlpack_dtype")
    assert hasattr(ml_dtypes, name)
    alone(f"""
    import dlferry as g, ml_dtypes, numpy as np
    d = g.DType({name!r})
    np.dtypes.register_dlpack_dtype((d.code, d.bits), np.dtype(ml_dtypes.{name}))
    t = g.full((3,), 1.5, dtype=d)
    a = t.numpy()
    assert a.dtype == ml_dtypes.{name} and a.astype("f4").tolist() == [1.5] * 3 and a.__array_interface__["data"][0] == t.data_ptr()
    u = g.from_dlpack(a)
    assert u.dtype is d and u.data_ptr() == t.data_ptr()
    """)
