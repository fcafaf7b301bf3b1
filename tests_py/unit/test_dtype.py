import pickle

import numpy as np
import pytest
from support import Fake, bad, requires

import dlferry as g

NAMED = [n for n in dir(g) if isinstance(getattr(g, n), g.DType)]
NUMPY = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def test_every_dtype_is_one_object_equal_to_its_name():
    assert len(NAMED) >= 34
    for name in NAMED:
        d = getattr(g, name)
        assert d == name and name == d and hash(d) == hash(name)
        assert g.DType(name) is d
        assert {name: 1}[d] == 1


def test_dtypes_pickle_to_the_same_object():
    for name in [*NAMED, "code200_24", "float32x4", "uint4x2"]:
        d = g.DType(name)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(d, protocol)) is d


def test_dtypes_cannot_be_changed():
    with pytest.raises(AttributeError):
        g.float32.bits = 16
    with pytest.raises(AttributeError):
        del g.float32.code


def test_name_code_bits_and_lanes_round_trip_for_every_code_and_width():
    for code in range(0, 256, 5):
        for bits in (0, 1, 4, 6, 7, 8, 12, 16, 24, 32, 64, 80, 128, 255):
            for lanes in (1, 2, 4, 300, 65535):
                f = Fake(bytes(1), (0,), ty=(code, bits, lanes), null=True)
                try:
                    t = g.from_dlpack(f)
                except BufferError:
                    continue
                d = t.dtype
                assert (d.code, d.bits, d.lanes) == (code, bits, lanes)
                assert g.DType(str(d)) is d


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_dtypes_in_every_spelling_name_the_same_dtype(name):
    d = g.DType(name)
    assert g.DType(np.dtype(name)) is d
    assert g.DType(np.dtype(name).type) is d
    assert g.empty((1,), dtype=np.dtype(name)).dtype is d
    assert np.dtype(str(d)) == np.dtype(name)
    assert np.zeros(1, d).dtype == np.dtype(name)


def test_python_types_stand_for_their_widest_dtypes():
    assert [g.DType(t) for t in (bool, int, float, complex)] == ["bool", "int64", "float64", "complex128"]


@requires("ml_dtypes")
def test_ml_dtypes_name_their_dtypes():
    import ml_dtypes

    for name in NAMED:
        if hasattr(ml_dtypes, name) and "x2" not in name:
            assert g.DType(getattr(ml_dtypes, name)) == name
            assert g.DType(np.dtype(getattr(ml_dtypes, name))) == name


@requires("torch")
def test_torch_dtypes_name_their_dtypes():
    import torch

    kinds = {v for v in vars(torch).values() if isinstance(v, torch.dtype)}
    known = 0
    for d in kinds:
        try:
            ours = g.DType(d)
        except ValueError:
            continue  # quantised and shell types
        if ours.bits < 8 and ours.lanes == 1:
            continue  # torch keeps its int1 to int7 in whole bytes
        known += 1
        t = torch.empty(2, dtype=d)
        try:
            theirs = g.from_dlpack(t).dtype
        except (BufferError, RuntimeError):
            continue  # no DLPack form in torch either
        assert theirs == ours, d
    assert known >= 20


@requires("jax")
def test_jax_dtypes_name_their_dtypes():
    import jax.numpy as jnp

    for name in ("float32", "bfloat16", "int8", "uint16", "complex64"):
        assert g.DType(getattr(jnp, name)) == name


@pytest.mark.parametrize(
    "name", ["", "float", "float33x", "f4", "<f4", "int7.", "Float32", "float32x0x1", "float032", "code300_8", "x4", "float32 ", "ﬂoat32"]
)
def test_a_name_of_no_dtype_is_a_value_error_that_quotes_it(name):
    with pytest.raises(ValueError, match="dtype: got"):
        g.DType(name)
    with pytest.raises(ValueError, match="dtype: got"):
        g.empty((1,), dtype=name)


@pytest.mark.parametrize("thing", [None, 5, object(), [], b"float32", np.generic, print, object])
def test_what_is_no_dtype_is_a_type_error(thing):
    with pytest.raises(TypeError, match="dtype: got"):
        g.DType(thing)


def test_big_endian_and_structured_numpy_dtypes_are_refused():
    for d in (np.dtype(">f4"), np.dtype("O"), np.dtype("M8[s]"), np.dtype("S3"), np.dtype([("a", "f4")]), np.dtype("g")):
        bad(lambda d=d: g.DType(d))


def test_the_documented_pairs_have_values_the_whole_byte_rest_is_opaque_and_everything_else_is_refused():
    # case G05, https://github.com/cupy/cupy/pull/9670
    valued = {(0, b) for b in (8, 16, 32, 64)} | {(1, b) for b in (8, 16, 32, 64)} | {(2, b) for b in (16, 32, 64)}
    valued |= {(4, 16), (5, 32), (5, 64), (5, 128), (6, 8)} | {(c, 8) for c in range(7, 15)}
    for code in range(256):
        for bits in (0, 1, 4, 6, 7, 8, 12, 16, 24, 32, 64, 80, 128, 255):
            f = Fake(bytes(64), (1,), ty=(code, bits, 1))
            if bits == 0 or bits % 8:
                e = bad(lambda f=f: g.from_dlpack(f))
                assert type(e) is BufferError, (code, bits)
            else:
                t = g.from_dlpack(f)
                if (code, bits) in valued:
                    t.tolist()
                else:
                    assert type(bad(t.tolist)) is BufferError, (code, bits)
                    assert type(bad(t.item)) is BufferError
                assert t.itemsize == bits // 8
                del t
            assert f.balanced()


def test_kinds_tell_floats_complex_and_integers_apart():
    assert g.bfloat16.is_floating and g.float8_e4m3fn.is_floating and not g.int8.is_floating
    assert g.complex64.is_complex and not g.float64.is_complex
    assert g.uint8.is_integer and g.int64.is_integer and not g.DType("bool").is_integer
    assert g.int8.is_signed and g.float16.is_signed and not g.uint8.is_signed and not g.float8_e8m0fnu.is_signed
    assert g.float32.itemsize == 4 and g.complex128.itemsize == 16 and g.float4_e2m1fn_x2.itemsize == 1


def test_made_up_names_do_not_grow_anything_for_ever():
    for i in range(2000):
        bad(lambda i=i: g.empty((1,), dtype=f"nothing{i}"))
    for i in range(2, 2000):
        assert g.empty((0,), dtype=f"float32x{i}").dtype.lanes == i
