"""Arrow arrays: bit-packed bools and nulls have no DLPack form; the offset of a slice counts."""

import pytest
from support import bad, requires

import dlferry as g

pytestmark = requires("pyarrow")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow, not installed for this Python")

TAKES = [g.from_dlpack, g.asarray, lambda x: g.convert(x, "numpy"), lambda x: g.convert([x], "dlferry")]


@pytest.mark.parametrize("take", TAKES, ids=["from_dlpack", "asarray", "convert", "in a list"])
def test_nulls_and_packed_bools_and_strings_are_refused(take):
    # case G15, https://github.com/apache/arrow/pull/38472
    for x in (
        pa.array([1, None]),
        pa.array([1.5, None])[:2],
        pa.array([True]),
        pa.array([True, False, None]),
        pa.array(["a"]),
        pa.array([[1], [2]]),
        pa.array([None, None]),
        pa.array([b"ab"], pa.binary(2)),
        pa.array([{"a": 1}]),
        pa.array(["a", "a"]).dictionary_encode(),
    ):
        try:
            e = bad(lambda x=x: take(x))
        except (NotImplementedError, pa.ArrowException) as of_arrow:
            e = of_arrow
        assert not isinstance(e, SystemError)


@pytest.mark.parametrize("name", "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split())
def test_a_slice_starts_where_it_starts(name):
    # case G15, https://github.com/apache/arrow/issues/51223
    import numpy as np

    a = pa.array(np.arange(10).astype(name))
    for x in (a[1:], a[3:7], a[10:], a[2:][1:], a[9:]):
        t = g.from_dlpack(x)
        assert t.tolist() == x.to_pylist() and t.dtype == name
        assert g.convert(x, "numpy").tolist() == x.to_pylist() and g.asarray(x).tolist() == x.to_pylist()


def test_arrow_memory_is_immutable():
    # cases D03 https://github.com/developmentseed/zarrista/issues/108 and G15: what Arrow shares by a legacy capsule cannot say so
    x = pa.array([1, 2, 3])
    t = g.from_dlpack(x)
    assert t.data_ptr() == x.buffers()[1].address
    before = g.ledger()["imports"]
    del x
    assert t.tolist() == [1, 2, 3] and g.ledger()["imports"] == before


def test_a_slice_whose_null_is_outside_of_it():
    # case G15
    x = pa.array([1, 2, None])[:2]
    try:
        t = g.from_dlpack(x)
    except (BufferError, TypeError, ValueError, pa.ArrowException):
        return
    assert t.tolist() == [1, 2]


def test_buffers_of_arrow_are_read_only():
    b = pa.py_buffer(b"abc")
    t = g.from_buffer(b)
    assert t.readonly and bytes(memoryview(t)) == b"abc"
