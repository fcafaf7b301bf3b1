"""tvm-ffi takes a dlferry.Tensor as an argument of a call through our exchange table."""

import numpy as np
import pytest
from support import requires

import dlferry as g

pytestmark = requires("tvm_ffi")
tvm_ffi = pytest.importorskip("tvm_ffi", reason="needs apache-tvm-ffi, not installed for this Python")


@pytest.fixture
def seen():
    return []


@pytest.fixture
def identity():
    return tvm_ffi.convert(lambda x: x)


def describe(x):
    return tuple(x.shape), str(x.dtype), np.from_dlpack(x).__array_interface__["data"][0]


def test_a_tensor_is_an_argument_of_a_call(seen):
    t = g.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype="float32")
    f = tvm_ffi.convert(lambda x: seen.append(describe(x)))
    f(t)
    assert seen == [((2, 3), "float32", t.data_ptr())]


def test_the_call_goes_through_the_table_and_not_through_dlpack():
    class Counted(g.Tensor):
        calls = 0

        def __dlpack__(self, **kw):
            Counted.calls += 1
            return super().__dlpack__(**kw)

    t = Counted([1, 2, 3])
    pointers = []
    tvm_ffi.convert(lambda x: pointers.append(describe(x)[2]))(t)
    assert pointers == [t.data_ptr()] and Counted.calls == 0
    # and the plain type: no Python method can be on the way
    exports = g.ledger()["exports"]
    inside = []
    u = g.asarray([1, 2, 3])
    tvm_ffi.convert(lambda x: inside.append(g.ledger()["exports"]))(u)
    assert g.ledger()["exports"] == exports and inside[0] in (exports, exports + 1)


def test_what_the_function_returns_is_the_same_memory(identity):
    t = g.asarray([1, 2, 3])
    r = identity(t)
    back = g.from_dlpack(r)
    assert back.data_ptr() == t.data_ptr() and back.tolist() == [1, 2, 3]
    del r, back
    u = g.from_dlpack(tvm_ffi.from_dlpack(t))
    assert u.data_ptr() == t.data_ptr()


def test_convert_knows_tvm_ffi_both_ways():
    t = g.asarray([1.5, 2.5])
    for to in ("tvm_ffi", tvm_ffi.Tensor):
        x = g.convert(t, to)
        assert isinstance(x, tvm_ffi.Tensor) and describe(x)[2] == t.data_ptr() and g.from_dlpack(x).data_ptr() == t.data_ptr()


def test_everything_is_freed_once(identity):
    before = g.ledger()
    for _ in range(500):
        t = g.asarray([1, 2, 3])
        r = identity(t)
        del t
        assert np.from_dlpack(r).tolist() == [1, 2, 3]
        del r
    assert g.ledger() == before


def test_memory_of_others_goes_through_us_into_tvm(seen):
    a = np.arange(6, dtype="int16").reshape(2, 3)
    tvm_ffi.convert(lambda x: seen.append(describe(x)))(g.from_dlpack(a))
    assert seen == [((2, 3), "int16", a.__array_interface__["data"][0])]


def test_a_closed_tensor_is_an_error_of_the_call(identity):
    t = g.zeros((2,))
    t.close()
    with pytest.raises(Exception, match="closed"):
        identity(t)


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "bfloat16", "float8_e4m3fn", "float64"])
def test_dtypes_arrive_as_they_are(name, seen):
    t = g.zeros((2,), dtype=name)
    tvm_ffi.convert(lambda x: seen.append(str(x.dtype)))(t)
    assert seen == [name]


def test_strided_views_arrive_with_their_strides(seen):
    t = g.asarray(list(range(12)), dtype="int32").reshape((3, 4))[:, ::2]
    tvm_ffi.convert(lambda x: seen.append((tuple(x.shape), tuple(x.strides))))(t)
    assert seen == [((3, 2), (4, 2))]
