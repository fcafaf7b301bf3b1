import array
import ctypes
import decimal
import fractions
import random

import numpy as np
import pytest
from support import Fake, bad, requires

import dlferry as g


@pytest.mark.parametrize(
    "value",
    [
        0,
        True,
        1.5,
        2j,
        [],
        [[]],
        [[], []],
        [1, 2],
        [[1], [2]],
        (1, [2][0]),
        [True, False],
        [1, 2.5],
        [1, True],
        [1j, 2],
        [[[]]],
        [2**62, -(2**62)],
        [[1.5, 2], [3, 4j]],
        [-(2**63), 2**63 - 1],
    ],
)
def test_nested_lists_have_numpys_shape_values_and_dtype(value):
    a, t = np.asarray(value), g.asarray(value)
    assert t.shape == a.shape and t.dtype == a.dtype.name and t.tolist() == a.tolist() and not t.readonly
    assert g.Tensor(value).tolist() == a.tolist()


def test_random_nested_lists_agree_with_numpy():
    r = random.Random(9)

    def nest(shape, leaf):
        return [nest(shape[1:], leaf) for _ in range(shape[0])] if shape else leaf()

    for _ in range(200):
        leaf = r.choice([lambda: r.randint(-9, 9), r.random, lambda: r.random() < 0.5, lambda: complex(r.random(), 1)])
        value = nest([r.randint(0, 3) for _ in range(r.randint(0, 5))], leaf)
        a, t = np.asarray(value), g.asarray(value)
        if a.size:
            assert (t.shape, t.dtype, t.tolist()) == (a.shape, a.dtype.name, a.tolist())


def test_integers_beyond_int64_become_uint64_or_are_refused():
    assert g.asarray([2**63, 0]).dtype == "uint64" and g.asarray(2**64 - 1).item() == 2**64 - 1
    for value in (2**64, [-1, 2**63], -(2**63) - 1):
        with pytest.raises(ValueError, match="asarray: value, got"):
            g.asarray(value)
    assert g.asarray([-1, 2**63], dtype="float64").tolist() == [-1.0, 2.0**63]


@pytest.mark.parametrize("value", [[1, [2]], [[1], 2], [[1, 2], [3]], [[], [1]], [[1], []], [[[1]], [[1, 2]]], [1, (2,)]])
def test_ragged_lists_are_a_value_error_that_names_the_place(value):
    with pytest.raises(ValueError, match=r"asarray: nested sequences, axis \d.*obj\["):
        g.asarray(value)


@pytest.mark.parametrize(
    "value", [None, "abc", ["a"], [None], {}, {1}, object(), [object()], [b"a"], int, [[1], [None]], [[1, 2], [3, "4"]], iter([1])]
)
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(TypeError, match="asarray: "):
        g.asarray(value)


def test_other_number_types_are_refused_or_exact():
    for value in (decimal.Decimal("1.5"), fractions.Fraction(1, 2)):
        bad(lambda value=value: g.asarray([value]))


def test_a_list_that_contains_itself_is_an_error_and_not_a_crash():
    x = []
    x.append(x)
    with pytest.raises((ValueError, RecursionError)):
        g.asarray(x)
    deep = 1
    for _ in range(65):
        deep = [deep]
    with pytest.raises(ValueError, match="64"):
        g.asarray(deep)


def test_lists_of_scalars_of_other_libraries_are_numbers():
    assert g.asarray([np.float32(1.5), 2]).tolist() == [1.5, 2] and g.asarray(np.int8(3)).item() == 3
    assert g.asarray([np.int64(1), np.uint8(2)]).dtype == "int64"
    assert g.asarray([g.full((), 2.0), 1]).tolist() == [2, 1]


def test_a_list_that_changes_while_it_is_read_does_no_harm():
    class Evil:
        def __index__(self):
            values.clear()
            return 1

    values = [1, Evil(), 3, 4]
    try:
        g.asarray(values)
    except (ValueError, TypeError, IndexError, RuntimeError):
        pass


def test_what_has_memory_is_shared():
    for source in (
        array.array("d", [1, 2]),
        np.array([1.0, 2.0]),
        memoryview(array.array("d", [1, 2])),
        (ctypes.c_double * 2)(1, 2),
        g.asarray([1.0, 2.0]),
    ):
        t = g.asarray(source)
        assert (
            t.tolist() == [1, 2]
            and g.asarray(source, copy=False).data_ptr() == t.data_ptr()
            and g.asarray(source, copy=True).data_ptr() != t.data_ptr()
        )
        assert g.asarray(source, dtype="float64", device="cpu").data_ptr() == t.data_ptr()
        e = bad(lambda source=source: g.asarray(source, dtype="float32", copy=False))
        assert isinstance(e, BufferError) and "copy=False" in str(e)
        assert g.asarray(source, dtype="int8").tolist() == [1, 2]
    t = g.asarray([1])
    assert g.asarray(t) is t and g.Tensor(t) is t


def test_copy_false_refuses_lists():
    with pytest.raises(BufferError, match="copy=False"):
        g.asarray([1, 2], copy=False)


def test_bytes_are_the_bytes():
    t = g.asarray(b"ab")
    assert t.dtype == "uint8" and t.tolist() == [97, 98] and t.readonly and not g.asarray(b"ab", copy=True).readonly


def test_dlpack_wins_over_every_other_protocol():
    # case E09, https://github.com/pytorch/pytorch/pull/197532
    class Both(Fake):
        def __array__(self, dtype=None, copy=None):
            return np.full(4, 7)

        def __buffer__(self, flags):
            return memoryview(b"zzzz")

        @property
        def __array_interface__(self):
            return np.full(4, 8).__array_interface__

    for take in (g.from_dlpack, g.asarray, lambda x: g.convert(x, "numpy"), lambda x: g.convert(x, "dlferry")):
        assert take(Both()).tolist() == [0, 1, 2, 3]


def test_the_array_interface_is_shared_and_keeps_its_object():
    class Has:
        def __init__(self, a):
            self.a = a

        @property
        def __array_interface__(self):
            return {k: v for k, v in self.a.__array_interface__.items() if k != "descr"}

    for a in (
        np.arange(6.0),
        np.arange(24, dtype="i2").reshape(2, 3, 4)[::-1, :, ::2],
        np.array(3, "u1"),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.array([1j]),
    ):
        t = g.asarray(Has(a))
        assert t.tolist() == a.tolist() and (not a.size or t.data_ptr() == a.__array_interface__["data"][0])
    ro = np.arange(3)
    ro.flags.writeable = False
    assert g.asarray(Has(ro)).readonly
    for a in (np.zeros(2, ">f4"), np.array([b"a"]), np.array([None]), np.zeros(2, "M8[s]")):
        assert isinstance(bad(lambda a=a: g.asarray(Has(a))), BufferError)


@pytest.mark.parametrize(
    "interface",
    [
        {},
        {"version": 3},
        {"typestr": "<f4", "version": 3},
        {"typestr": "<f4", "shape": (2**40,), "data": bytearray(8)},
        {"typestr": "<f4", "shape": (2,), "data": bytearray(4)},
        {"typestr": "<f4", "shape": (2,), "data": bytearray(8), "offset": 4},
        {"typestr": "<f4", "shape": (2,), "data": bytearray(8), "offset": -4},
        {"typestr": "<f4", "shape": (2,), "strides": (-4,), "data": bytearray(8)},
        {"typestr": "<f4", "shape": (2,), "strides": (6,), "data": bytearray(16)},
        {"typestr": "<f4", "shape": (2,), "strides": (4, 4), "data": bytearray(16)},
        {"typestr": "<f4", "shape": (-1,), "data": bytearray(16)},
        {"typestr": "<f4", "shape": 2, "data": bytearray(8)},
        {"typestr": "<f4", "shape": None, "data": bytearray(8)},
        {"typestr": "<f4", "shape": (2,), "data": (0, False)},
        {"typestr": "<f4", "shape": (2,), "data": ("x", False)},
        {"typestr": "<f4", "shape": (2,), "data": 5},
        {"typestr": "<f0", "shape": (2,), "data": bytearray(8)},
        {"typestr": "<f", "shape": (2,), "data": bytearray(8)},
        {"typestr": 5, "shape": (2,), "data": bytearray(8)},
        {"typestr": "<f4", "shape": ("2",), "data": bytearray(8)},
        {"typestr": "<f4", "shape": (2,), "data": (1 << 70, False)},
        {"typestr": "<f4", "shape": (2,), "data": ()},
    ],
)
def test_a_broken_array_interface_is_refused(interface):
    thing = type("Has", (), {"__array_interface__": interface})()
    bad(lambda: g.asarray(thing))


def test_dunder_array_is_a_last_resort():
    class Has:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    assert g.asarray(Has()).tolist() == [0, 1, 2]

    class Liar:
        def __array__(self, dtype=None, copy=None):
            return [1, 2]

    bad(lambda: g.asarray(Liar()))


def test_masked_arrays_do_not_lose_their_mask_in_silence():
    # case G16, https://github.com/mdhaber/marray/issues/28
    m = np.ma.array([1, 2], mask=[0, 1])
    for take in (g.from_dlpack, g.asarray, lambda x: g.convert(x, "dlferry")):
        e = bad(lambda take=take: take(m))
        assert "mask" in str(e)


@requires("torch")
def test_torch_tensors_are_shared():
    import torch

    x = torch.arange(3)
    assert g.asarray(x).data_ptr() == x.data_ptr() and g.asarray(x, dtype=torch.int64).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("to", "int8 uint8 int64 float16 float32 float64 complex64 bool".split())
@pytest.mark.parametrize("of", "int8 uint16 int64 float16 float32 float64 bool".split())
def test_astype_is_numpys_for_values_that_fit(of, to):
    a = np.array([0, 1, 2, 100, 7], of).reshape(5, 1)
    t = g.from_dlpack(a)
    assert t.astype(to).tolist() == a.astype(to).tolist() and t.astype(to).dtype == to
    assert t.T.astype(to).tolist() == a.T.astype(to).tolist()
    assert (t.astype(of, copy=False) is t) and t.astype(of).data_ptr() != t.data_ptr()


def test_complex_to_real_is_refused_or_keeps_the_real_part():
    t = g.asarray([1 + 2j])
    try:
        u = t.astype("float64")
    except BufferError:
        return
    assert u.tolist() == [1.0]


def test_opaque_dtypes_are_not_cast():
    t = g.from_dlpack(Fake(bytes(16), (2,), ty=(2, 32, 2)))
    for f in (lambda: t.astype("float32"), lambda: g.zeros((2,)).astype("float32x2"), lambda: g.zeros((2,)).astype("int4")):
        assert isinstance(bad(f), BufferError)
    assert t.astype("float32x2").tolist is not None and t.astype("float32x2").dtype == "float32x2"


def test_astype_reads_misaligned_and_strided_elements():
    t = g.from_dlpack(Fake(bytes(range(64)), (3,), ty=(2, 32, 1), off=1))
    assert t.astype("float64").tolist() == t.tolist()


def test_to_moves_nowhere_on_the_cpu():
    t = g.asarray([1, 2])
    assert t.to("cpu") is t and t.to((1, 0), copy=True).data_ptr() != t.data_ptr()
    assert isinstance(bad(lambda: t.to("cuda:0")), BufferError)
    assert isinstance(bad(lambda: t.to("cuda:x")), ValueError)


class Slow(list):
    """A list that is not exactly one, so that the Python layer reads it."""


NUMBERS = [
    True, 3, 2.5, 1j, [], [[]], [[], []], [True, False], [True, 2], [1, -1], [1.0, 2], [1, 2j], [[1, 2], (3, 4.5)], ((1,), [2]), [[[True]]],
    [2**63 - 1], [2**63], [2**63, -1], [2**70], [2**70, 1.5], [-(2**63)], [float("nan"), float("inf")], [[1], [2, 3]], [[1], 2], [1, [2]], [1, None],
    [1, "2"], [[1, 2], [3, b"4"]], [0.1] * 7, list(range(100)), [[float(i + j) for i in range(5)] for j in range(6)],
]  # fmt: skip


@pytest.mark.parametrize(
    "dtype", [None, "bool", "int8", "uint64", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn"]
)
@pytest.mark.parametrize("numbers", NUMBERS, ids=lambda n: str(n)[:20])
def test_the_short_way_for_lists_is_the_long_one(numbers, dtype):
    def slow(x):
        return Slow(slow(i) for i in x) if isinstance(x, (list, tuple)) else x

    def outcome(x):
        try:
            t = g.asarray(x, dtype=dtype)
        except Exception as e:
            return type(e), str(e).replace("Slow", "list")
        return t.shape, t.dtype, repr(t.tolist())

    short, long = outcome(numbers), outcome(slow(numbers) if isinstance(numbers, (list, tuple)) else numbers)
    assert short == long or (isinstance(short[0], type) and short[0] is long[0])


def test_a_list_that_contains_itself_ends():
    a = [1]
    a[0] = a
    with pytest.raises((ValueError, RecursionError)):
        g.asarray(a)


def test_lists_give_their_references_back():
    import sys

    x = 1234567.25
    numbers = [[x, x], [x, x]]
    before = sys.getrefcount(x), sys.getrefcount(numbers), g.ledger()
    for _ in range(100):
        g.asarray(numbers)
        with pytest.raises((ValueError, TypeError)):
            g.asarray([[x, x], [x, None]])
    assert (sys.getrefcount(x), sys.getrefcount(numbers), g.ledger()) == before
