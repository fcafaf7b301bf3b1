"""t[key] = value against NumPy."""

import random

import numpy as np
import pytest
from support import Fake, alone, bad
from test_views import random_key, twin

import dlferry as g


def test_assignment_of_numbers_and_arrays_does_what_numpy_does():
    r = random.Random(7)
    for _ in range(800):
        a, _ = twin([r.randint(0, 5) for _ in range(r.randint(0, 4))])
        b = a.copy()
        t = g.from_dlpack(b)
        key = random_key(r, a.shape)
        part = a[key]
        shape = part.shape
        if r.random() < 0.3:
            value = r.randint(-99, 99)
        else:
            cut = [1 if r.random() < 0.3 else n for n in shape][r.randint(0, len(shape)) :]
            value = np.array([r.randint(-9, 9) for _ in range(int(np.prod(cut)))], "int32").reshape(cut)
        a[key] = value
        t[key] = value
        assert b.tolist() == a.tolist(), (key, np.shape(value))


def test_overlapping_assignment_reads_before_it_writes():
    r = random.Random(8)
    for _ in range(600):
        a, _ = twin(r.choice([(10,), (4, 5), (3, 3, 3)]))
        b = a.copy()
        t = g.from_dlpack(b)
        source, target = random_key(r, a.shape), random_key(r, a.shape)
        try:
            a[target] = a[source]
        except ValueError:
            bad(lambda t=t, s=source, k=target: t.__setitem__(k, t[s]))
            continue
        t[target] = t[source]
        assert b.tolist() == a.tolist(), (target, source)


def test_overlap_of_large_tensors_reads_before_it_writes():
    n = 300_000
    a = np.arange(n, dtype="int32")
    t = g.from_dlpack(a.copy())
    t[1:] = t[:-1]
    assert t[:3].tolist() == [0, 0, 1] and t[-1].item() == n - 2
    t = g.from_dlpack(a.copy())
    t[::-1] = t
    assert t[0].item() == n - 1 and t[-1].item() == 0


@pytest.mark.parametrize("source", ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int16", "uint32", "float32", "float64", "complex64"])
def test_assignment_casts_as_numpy_does(source, target):
    a = np.array([0, 1, 1, 0, 100], source)
    t = g.zeros((2, 5), dtype=target)
    t[...] = a
    assert t.tolist() == np.broadcast_to(a.astype(target), (2, 5)).tolist()


def test_values_of_every_kind_are_taken():
    t = g.zeros((3,))
    for value, want in (
        ([1, 2, 3], [1, 2, 3]),
        ((4.0, 5, 6), [4, 5, 6]),
        (np.arange(3.0), [0, 1, 2]),
        (g.full((1,), 7), [7] * 3),
        (memoryview(b"abc"), [97, 98, 99]),
        (True, [1] * 3),
        (np.float32(2), [2] * 3),
        (np.int8(3), [3] * 3),
        (Fake(bytes([9, 8, 7]), (3,)), [9, 8, 7]),
        (g.full((), 5), [5] * 3),
        ([[1, 2, 3]], [1, 2, 3]),
    ):
        t[:] = value
        assert t.tolist() == want


def test_shapes_that_do_not_broadcast_are_a_value_error_that_names_both():
    t = g.zeros((2, 3))
    for value in ([1, 2], np.zeros((3, 2)), np.zeros((3, 2, 3)), []):
        with pytest.raises(ValueError, match=r"__setitem__: value, got shape .* broadcasts to \(2, 3\)"):
            t[...] = value
    assert not any(map(any, t.tolist()))


def test_senseless_values_are_type_errors():
    t = g.zeros((2,))
    for value in (None, "12", object(), {1: 2}, [None, 1], ["1", "2"]):
        with pytest.raises(TypeError):
            t[:] = value


def test_nothing_is_written_into_read_only_memory():
    # case D06, https://github.com/NVIDIA/MatX/pull/1157
    f = Fake(bytes(8), (8,), flags=1)
    t = g.from_dlpack(f)
    for write in (
        lambda: t.__setitem__(0, 1),
        lambda: t.__setitem__(slice(0, 2), [1, 2]),
        lambda: t[2:].__setitem__(..., t[:-2]),
        lambda: g._core._fill(t, 1),
        lambda: g._core._assign(t, g.zeros((8,), dtype="uint8")),
    ):
        e = bad(write)
        assert type(e) is BufferError and "read-only" in str(e) and "copy()" in str(e)
    with pytest.raises(BufferError):
        t[0:0] = []
    assert bytes(f.buf)[:8] == bytes(8)


def test_nothing_is_deleted():
    t = g.zeros((3,))
    with pytest.raises((TypeError, AttributeError)):
        del t[0]


def test_a_write_into_a_read_only_mapping_raises_instead_of_crashing():
    # case D05, https://github.com/pytorch/pytorch/issues/46741
    alone("""
        import mmap, tempfile, dlferry as g
        from support import bad, peek
        f = tempfile.TemporaryFile()
        f.write(bytes(4096)); f.flush()
        m = mmap.mmap(f.fileno(), 4096, access=mmap.ACCESS_READ)
        t = g.from_buffer(m)
        assert type(bad(lambda: t.__setitem__(0, 1))) is BufferError
        assert type(bad(lambda: g._core._fill(t, 0))) is BufferError
        assert peek(t.__dlpack__(max_version=(1, 0)))["flags"] & 1
        del t
        m.close()
    """)
