"""More than 2 and 4 GiB, lazily mapped: sizes and offsets that do not fit 32 bits."""

import mmap
import os

import numpy as np
import pytest
from support import N1, bad, peek, without_sanitizer

import dlferry as g

NIGHTLY = os.environ.get("DLFERRY_NIGHTLY") == "1"


@pytest.fixture
def sparse(tmp_path):
    """A file of 5 GiB that takes a few pages on the disk; some bytes are set."""
    path = tmp_path / "sparse"
    n = 5 << 30
    with path.open("wb") as f:
        f.truncate(n)
        for at in (0, (2 << 30) - 1, 2 << 30, (4 << 30) - 1, 4 << 30, n - 1):
            f.seek(at)
            f.write(bytes([1 + at % 251]))
    with path.open("rb") as f:
        yield mmap.mmap(f.fileno(), n, access=mmap.ACCESS_READ)


@without_sanitizer("mapping gigabytes costs it shadow memory")
def test_offsets_above_4_gib_reach_the_right_byte(sparse):
    # case M07, https://github.com/TileDB-Inc/TileDB-Go/pull/354
    n = 5 << 30
    t = g.from_buffer(sparse)
    assert t.nbytes == t.size == n and t.shape == (n,) and len(t) == n and t.readonly
    for at in (0, (2 << 30) - 1, 2 << 30, (4 << 30) - 1, 4 << 30, n - 1):
        assert t[at].item() == 1 + at % 251 == t[at - n].item() == t[at : at + 1].copy().item()
    assert t[::-1][0].item() == t[n - 1].item() and t[:: n - 1].tolist() == [1, 1 + (n - 1) % 251] and t[-5:].tolist()[-1] == 1 + (n - 1) % 251
    m = t.reshape((5, 1 << 30))
    assert m.T.shape == (1 << 30, 5) and m[4, -1].item() == t[-1].item() and m[:, 0].tolist() == t[:: 1 << 30].tolist()
    assert t[: n - 1 : 1 << 31].astype("float32").tolist() == [1.0, float(1 + (2 << 30) % 251), float(1 + (4 << 30) % 251)]
    p = peek(t[1:].__dlpack__(max_version=(1, 3)))
    assert p["name"] == N1 and p["shape"] == [n - 1] and p["data"] == t.data_ptr() + 1 and p["flags"] & 1
    a = np.from_dlpack(t)
    assert a.nbytes == n and a[4 << 30] == 1 + (4 << 30) % 251 and not a.flags.writeable
    v = memoryview(t)
    assert v.nbytes == n and v[n - 1] == 1 + (n - 1) % 251
    v.release()
    assert "shape" in repr(t) and g.from_dlpack(t.__dlpack__(max_version=(1, 3)))[-1].item() == t[-1].item()
    del a, m
    bad(sparse.close)


@without_sanitizer("mapping gigabytes costs it shadow memory")
def test_strides_above_4_gib_are_carried(sparse):
    # case M07
    t = g.from_buffer(sparse)
    far = t[:: (5 << 30) - 1].reshape((2, 1))
    assert far.strides[0] == (5 << 30) - 1 and far[::-1].tolist() == [[1 + ((5 << 30) - 1) % 251], [1]]
    assert far.copy().tolist() == [[1], [1 + ((5 << 30) - 1) % 251]] and np.from_dlpack(far).strides[0] == (5 << 30) - 1


@pytest.mark.skipif(not NIGHTLY, reason="needs DLFERRY_NIGHTLY=1: 4 GiB of memory and some seconds")
def test_a_copy_of_more_than_2_gib_is_whole(sparse):
    # case M07
    n = (1 << 31) + 8
    t = g.from_buffer(sparse)[:n]
    c = t.copy()
    for at in (0, (2 << 30) - 1, 2 << 30, n - 1):
        assert c[at].item() == t[at].item()
    c[n - 1] = 77
    assert bytes(memoryview(c)[n - 2 : n]) == bytes([0, 77])
    d = g.zeros((n,), dtype="uint8")
    d[...] = c
    assert d[n - 1].item() == 77
