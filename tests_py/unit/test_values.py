"""Elements to Python objects and back, against NumPy and ml_dtypes."""

import itertools
import math
import random
import struct
import warnings

import numpy as np
import pytest
from support import Fake, bad, requires

import dlferry as g

REAL = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
SMALL = "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()


def same(a, b):
    """Equal, with NaN equal to NaN and zeros of one sign."""
    if isinstance(a, complex) and isinstance(b, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, float) and isinstance(b, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) and math.isnan(b)
    return type(a) is type(b) and a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


def of_bytes(raw, ty, count):
    return g.from_dlpack(Fake(raw, (count,), ty=ty))


@pytest.mark.parametrize("name", REAL)
def test_tolist_and_item_give_numpys_values_for_random_bytes(name):
    raw = random.Random(name).randbytes(4096)
    if name == "bool":
        raw = bytes(b & 1 for b in raw)
    d = g.DType(name)
    a = np.frombuffer(raw, name)
    t = of_bytes(raw, (d.code, d.bits, 1), len(a))
    assert all(map(same, t.tolist(), a.tolist()))
    assert all(same(t[i].item(), a[i].item()) for i in range(0, len(a), 37))
    assert [type(v) for v in t.tolist()[:5]] == [type(v) for v in a.tolist()[:5]]


def test_any_byte_but_zero_is_true():
    assert of_bytes(bytes([0, 1, 2, 255]), (6, 8, 1), 4).tolist() == [False, True, True, True]


def test_every_float16_has_its_value():
    a = np.arange(1 << 16, dtype="uint16")
    t = g.from_dlpack(a)
    h = of_bytes(a.tobytes(), (2, 16, 1), 1 << 16)
    assert all(map(same, h.tolist(), a.view("float16").astype("float64").tolist()))
    assert t.size == h.size


def test_every_bfloat16_has_its_value():
    a = np.arange(1 << 16, dtype="uint16")
    t = of_bytes(a.tobytes(), (4, 16, 1), 1 << 16)
    want = [struct.unpack("<f", struct.pack("<I", u << 16))[0] for u in range(1 << 16)]
    assert all(map(same, t.tolist(), want))


@requires("ml_dtypes")
@pytest.mark.parametrize("name", SMALL)
def test_every_float8_has_ml_dtypes_value(name):
    import ml_dtypes

    d = g.DType(name)
    raw = bytes(range(256))
    want = np.frombuffer(raw, getattr(ml_dtypes, name)).astype("float64").tolist()
    t = of_bytes(raw, (d.code, 8, 1), 256)
    assert all(map(same, t.tolist(), want)), [(i, a, b) for i, (a, b) in enumerate(zip(t.tolist(), want, strict=True)) if not same(a, b)]
    assert all(same(t[i].item(), want[i]) for i in range(256))


@requires("ml_dtypes")
def test_every_packed_float4_pair_has_ml_dtypes_values():
    import ml_dtypes

    nibbles = np.frombuffer(bytes(range(16)), ml_dtypes.float4_e2m1fn).astype("float64").tolist()
    t = of_bytes(bytes(range(256)), (17, 4, 2), 256)
    for i, pair in enumerate(t.tolist()):
        assert same(pair[0], nibbles[i & 15]) and same(pair[1], nibbles[i >> 4])


def test_complex32_is_two_halves():
    raw = np.array([1.5, -2.0, np.inf, 0.0], "float16").tobytes()
    assert of_bytes(raw, (5, 32, 1), 2).tolist() == [1.5 - 2j, complex(math.inf, 0)]


def test_unsigned_64_bits_keep_their_top():
    # case G09, https://github.com/pytorch/pytorch/issues/58734
    assert of_bytes(b"\xff" * 8, (1, 64, 1), 1).item() == 2**64 - 1


def test_zero_axes_give_a_scalar_and_empty_axes_empty_lists():
    # case D11, https://github.com/numpy/numpy/pull/32029
    t = g.from_dlpack(Fake(bytes(8), (), ty=(2, 64, 1), flags=1))
    assert t.shape == () and t.item() == 0.0 and t.tolist() == 0.0
    assert g.zeros((2, 0, 3)).tolist() == [[], []] and g.zeros((0, 2)).tolist() == []
    bad(lambda: g.from_dlpack(np.array("2020-01-01", "M8[D]")))


@pytest.mark.parametrize("shape", [(0,), (2,), (2, 0)])
def test_item_wants_exactly_one_element(shape):
    with pytest.raises(ValueError, match=r"item: tensor, got \d+ elements, want exactly 1"):
        g.zeros(shape).item()


def test_a_tensor_of_one_element_converts_to_numbers():
    assert int(g.full((1, 1), 7, dtype="uint8")) == 7 and float(g.full((), 1.5)) == 1.5 and complex(g.full((1,), 2j, dtype="complex64")) == 2j
    assert [10, 20, 30][g.full((), 1, dtype="int32")] == 20
    assert bool(g.full((1,), 0.5)) and not g.zeros((1,))
    for f in (int, float, complex):
        with pytest.raises(TypeError, match="want 1"):
            f(g.zeros((2,)))
    with pytest.raises(ValueError, match="__bool__"):
        bool(g.zeros((2,)))
    with pytest.raises(ValueError, match="__bool__"):
        bool(g.zeros((0,)))
    with pytest.raises(TypeError, match="__index__"):
        [1, 2][g.full((), 1.0)]


# --- storing ---


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_integers_store_up_to_their_limits_and_not_beyond(kind, bits):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "int" else (0, (1 << bits) - 1)
    name = f"{kind}{bits}"
    for v in (low, high, 0, 1):
        assert g.full((2,), v, dtype=name).tolist() == [v, v]
        assert g.asarray([v], dtype=name).item() == v
    for v in (low - 1, high + 1, 2**64, -(2**64), 10**30):
        with pytest.raises(ValueError, match=rf"full: value, got {v}|fill: value, got {v}"):
            g.full((2,), v, dtype=name)
        t = g.zeros((3,), dtype=name)
        with pytest.raises(ValueError, match="fits"):
            t[1] = v
        assert t.tolist() == [0, 0, 0]
        with pytest.raises(ValueError, match="fits"):
            g.asarray([v], dtype=name)


def test_floats_do_not_go_into_integers_unasked():
    for v in (1.5, 1.0, math.nan, math.inf, 1j, "1", None, [1], object()):
        e = bad(lambda v=v: g.full((1,), v, dtype="int32"))
        assert isinstance(e, TypeError), (v, e)
        assert "value" in str(e)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128", "bfloat16", "complex32"])
def test_what_is_no_number_does_not_go_into_floats(name):
    for v in ("1", None, [1], object(), b"1"):
        e = bad(lambda v=v: g.full((1,), v, dtype=name))
        assert isinstance(e, TypeError), (v, e)
        assert "value" in str(e)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128", "bfloat16"])
def test_an_integer_too_large_for_a_double_is_a_value_error(name):
    for v in (10**400, -(10**400)):
        with pytest.raises(ValueError, match="value, got"):
            g.full((1,), v, dtype=name)


@pytest.mark.parametrize(
    "v",
    [
        0.0,
        -0.0,
        1.0,
        -1.5,
        65504.0,
        65519.99,
        65520.0,
        1e-8,
        2**-24,
        2**-25,
        2**-25 * 1.0001,
        6.1e-5,
        2**-14,
        2**-14 - 2**-26,
        math.inf,
        -math.inf,
        math.nan,
        1 + 2**-11,
        1 + 2**-11 + 2**-40,
        1 + 3 * 2**-11,
        2048.5,
        1e300,
    ],
)
def test_a_float16_is_rounded_as_numpy_rounds(v):
    with np.errstate(over="ignore"):
        want = float(np.float64(v).astype("float16"))
    assert same(g.full((1,), v, dtype="float16").item(), want)
    assert same(g.full((1,), complex(v, -v), dtype="complex32").item(), complex(want, -want))


def test_random_doubles_round_to_float16_as_numpy_rounds():
    r = random.Random(1)
    values = [r.uniform(-1, 1) * 2.0 ** r.randint(-30, 17) for _ in range(3000)]
    with np.errstate(over="ignore"):
        want = np.array(values).astype("float16").astype("float64").tolist()
    assert all(map(same, g.asarray(values, dtype="float16").tolist(), want))


@requires("ml_dtypes")
def test_random_doubles_round_to_bfloat16_to_nearest_even():
    def reference(v):
        # exact: the two neighbours among bfloat16, the nearer one, the even one on a tie
        u = struct.unpack("<I", struct.pack("<f", v))[0] & 0xFFFF0000
        best = None
        for c in (u - 0x10000, u, u + 0x10000):
            c &= 0xFFFFFFFF
            x = struct.unpack("<f", struct.pack("<I", c))[0]
            if math.isfinite(x):
                key = (abs(x - v), c >> 16 & 1)
                if best is None or key < best[0]:
                    best = key, x
        return best[1]

    r = random.Random(2)
    values = [r.uniform(-1, 1) * 2.0 ** r.randint(-100, 100) for _ in range(2000)]
    ties = [struct.unpack("<f", struct.pack("<I", (r.getrandbits(14) + 0x3000) << 16 | 0x8000))[0] for _ in range(500)]
    values += ties + [t * (1 + 2**-45) for t in ties] + [t * (1 - 2**-45) for t in ties]
    got = g.asarray(values, dtype="bfloat16").tolist()
    wrong = [(v, a, reference(v)) for v, a in zip(values, got, strict=True) if a != reference(v)]
    assert not wrong, wrong[:5]


@requires("ml_dtypes")
@pytest.mark.parametrize("name", SMALL)
def test_float8_values_that_exist_are_stored_exactly(name):
    import ml_dtypes

    every = np.frombuffer(bytes(range(256)), getattr(ml_dtypes, name)).astype("float64").tolist()
    for v in every[::3]:
        assert same(g.full((1,), v, dtype=name).item(), v), v


@requires("ml_dtypes")
@pytest.mark.parametrize("name", SMALL)
def test_doubles_just_beside_a_tie_round_to_the_nearer_float8(name):
    import ml_dtypes

    every = sorted({v for v in np.frombuffer(bytes(range(256)), getattr(ml_dtypes, name)).astype("float64").tolist() if math.isfinite(v) and v > 0})
    for a, b in list(itertools.pairwise(every))[::5]:
        tie = (a + b) / 2
        assert g.full((1,), tie * (1 + 2**-50), dtype=name).item() == b, (a, b)
        assert g.full((1,), tie * (1 - 2**-50), dtype=name).item() == a, (a, b)


def test_numpy_scalars_are_stored_with_all_their_parts():
    for v in (np.float32(1.5), np.float64(2.5), np.float16(0.5), np.int8(3), np.uint64(4), np.bool_(True)):
        assert g.full((1,), v, dtype="float64").item() == float(v)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns where a reader drops the imaginary part; the assertions say it too
        for v in (np.complex128(1 + 2j), np.complex64(1 + 2j)):
            assert g.full((1,), v, dtype="complex64").item() == 1 + 2j
            t = g.zeros((2,), dtype="complex128")
            t[0] = v
            assert t.tolist() == [1 + 2j, 0]


def test_objects_with_dunder_complex_are_complex_numbers():
    class Z:
        def __complex__(self):
            return 3 - 4j

    try:
        t = g.full((1,), Z(), dtype="complex128")
    except TypeError:
        return  # refused: said plainly
    assert t.item() == 3 - 4j


def test_a_complex_number_does_not_lose_its_imaginary_part_in_a_float():
    for v in (1 + 2j, np.complex128(1 + 2j), np.complex64(1 + 2j)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert isinstance(bad(lambda v=v: g.full((1,), v, dtype="float64")), TypeError)
        t = g.zeros((1,), dtype="float32")
        try:
            t[0] = 1 + 2j
        except (TypeError, ValueError, BufferError):
            pass
        else:
            raise AssertionError(t.tolist())


def test_an_exception_while_a_value_is_read_arrives_unchanged():
    class Boom(Exception):
        pass

    class V:
        def __index__(self):
            raise Boom

        def __float__(self):
            raise Boom

    for name in ("int8", "uint64", "float32"):
        with pytest.raises(Boom):
            g.full((1,), V(), dtype=name)


def test_a_value_that_closes_the_tensor_while_it_is_read_is_not_written_into_freed_memory():
    t = g.zeros((1 << 16,), dtype="uint8")
    taken = []

    class V:
        def __index__(self):
            t.close()
            taken.extend(g.zeros((1 << 16,), dtype="uint8") for _ in range(8))  # the allocator hands the same block out again
            return 255

    try:
        g._core._fill(t, V())
    except ValueError as e:
        assert "closed" in str(e)
    assert len(taken) == 8 and not any(any(x.tolist()) for x in taken)


@requires("ml_dtypes")
@pytest.mark.parametrize("name", SMALL)
def test_lists_become_float8_tensors_too(name):
    assert g.asarray([1.0, 2.0], dtype=name).tolist() == [1.0, 2.0]
    t = g.full((3,), 1.0, dtype=name)
    t[1] = 2.0
    assert t.tolist() == [1.0, 2.0, 1.0]
