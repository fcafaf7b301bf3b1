import numpy as np
import pytest
from support import N1, bad, peek

import dlferry as g

NUMPY = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def test_our_memory_is_64_byte_aligned_for_a_thousand_sizes():
    # case J01, https://github.com/dmlc/dlpack/issues/99
    kept = []
    for n in range(1000):
        t = (g.empty, g.zeros)[n % 2]((n,), dtype="uint8")
        assert t.data_ptr() % 64 == 0 and peek(t.__dlpack__())["data"] == t.data_ptr()
        kept.append(t)
    for n in range(1, 1000, 7):
        assert g.full((n,), 1.0).data_ptr() % 64 == 0
        assert g.asarray(list(range(n))).data_ptr() % 64 == 0
        assert kept[n].copy().data_ptr() % 64 == 0


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 3), (2, 0, 3), (1,) * 9, (2,) * 12, (1,) * 64])
def test_metadata_of_a_new_tensor_is_numpys(shape):
    t = g.zeros(shape, dtype="int16")
    a = np.zeros(shape, "int16")
    assert t.shape == a.shape and t.ndim == a.ndim and t.size == a.size and t.nbytes == a.nbytes and t.itemsize == 2
    assert t.dtype == "int16" and t.device == "cpu" and not t.readonly and not t.closed and t.is_contiguous()
    if a.size:
        assert t.strides == tuple(s // 2 for s in a.strides)
    assert t.tolist() == a.tolist()


def test_the_default_is_float32_on_the_cpu():
    assert g.empty(3).dtype == g.zeros(3).dtype == g.full(3, 1).dtype == "float32"


def test_shapes_may_be_ints_and_sequences_of_index_likes():
    for shape, want in (
        (3, (3,)),
        ([2, 3], (2, 3)),
        (np.int64(4), (4,)),
        ((np.uint8(2), True), (2, 1)),
        (range(2, 4), (2, 3)),
        (np.array([2, 2]), (2, 2)),
    ):
        assert g.empty(shape).shape == want
        assert g.full(shape, 0, dtype="int8").shape == want


@pytest.mark.parametrize("shape", ["23", 2.0, (2.0,), None, ((1, 2),), {1: 2}, object(), ("2",), {2, 3}])
def test_a_shape_that_is_none_is_a_type_error(shape):
    for make in (g.empty, g.zeros, lambda s: g.full(s, 1)):
        e = bad(lambda make=make: make(shape))
        assert isinstance(e, TypeError), repr(e)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), -1, (2**63,), (2**62, 4), (2**32, 2**32), (2**63 - 1, 2), (1,) * 65, (0, 2**62, 2**62)])
def test_a_shape_that_cannot_be_is_a_value_error(shape):
    before = g.ledger()
    for make in (g.empty, g.zeros, lambda s: g.full(s, 1)):
        try:
            t = make(shape)
        except ValueError as e:
            assert "shape" in str(e)
        else:
            assert 0 in shape and t.size == 0
            del t
    assert g.ledger() == before


def test_memory_that_is_not_there_is_a_memory_error():
    for make in (g.empty, g.zeros):
        with pytest.raises(MemoryError, match=r"(empty|zeros): memory"):
            make((2**62,), dtype="uint8")
    with pytest.raises(MemoryError):
        g.full((2**61,), 0, dtype="uint8")


def test_zeros_are_zero_after_memory_was_used():
    for _ in range(20):
        t = g.full((5000,), 7, dtype="uint8")
        del t
        assert not any(g.zeros((5000,), dtype="uint8").tolist())


@pytest.mark.parametrize("name", NUMPY)
def test_full_repeats_its_value(name):
    value = {"b": True, "i": -3, "u": 3, "f": 1.5, "c": 1 - 2j}[np.dtype(name).kind]
    t = g.full((2, 3), value, dtype=name)
    assert t.tolist() == np.full((2, 3), value, name).tolist()
    assert g.full((), value, dtype=name).item() == value
    assert g.full((0, 2), value, dtype=name).tolist() == []


@pytest.mark.parametrize("name", NUMPY + ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "complex32"])
def test_a_new_tensor_can_be_exported_and_taken_back(name):
    # case G02, https://github.com/NVIDIA/warp/issues/1619
    t = g.zeros((3,), dtype=name)
    p = peek(t.__dlpack__(max_version=(1, 3)))
    assert p["name"] == N1 and p["ty"] == (t.dtype.code, t.dtype.bits, 1) and p["shape"] == [3] and p["strides"] == [1] and p["off"] == 0
    back = g.from_dlpack(t.__dlpack__(max_version=(1, 3)))
    assert back.dtype is t.dtype and back.data_ptr() == t.data_ptr()


def test_vector_and_packed_dtypes_can_be_made_but_not_filled():
    for name in ("float32x4", "uint4x2", "float4_e2m1fn_x2"):
        t = g.empty((5,), dtype=name)
        assert t.nbytes == 5 * t.dtype.itemsize
        assert isinstance(bad(lambda name=name: g.full((2,), 1, dtype=name)), BufferError)


def test_dtypes_without_whole_bytes_are_refused_here_too():
    for name in ("int4", "uint2", "float6_e2m3fn", "float4_e2m1fn"):
        e = bad(lambda name=name: g.empty((8,), dtype=name))
        assert isinstance(e, BufferError) and "dtype" in str(e)


def test_the_address_of_an_empty_tensor_is_no_trap():
    t = g.empty((0,))
    assert isinstance(t.data_ptr(), int) and t.tolist() == [] and bytes(memoryview(t)) == b""
    assert np.from_dlpack(t).shape == (0,)  # case A22, https://github.com/wjakob/nanobind/pull/1299
