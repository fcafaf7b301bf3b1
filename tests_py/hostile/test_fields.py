"""Every field of a capsule at once, against a slow reference in Python that knows the rules and nothing of C."""

import struct

from hypothesis import given, settings
from hypothesis import strategies as st
from support import Fake, peek

import dlferry as g

MEMORY = bytes((7 * i + 3) % 251 for i in range(4096))
MIDDLE = 2048  # where data points: views may go both ways
POINTERS = (1, 2, 3, 10, 11, 13)
HANDLES = (4, 7, 8, 15)  # data names a buffer, whose elements count from its start
HOST = (1, 3, 11)  # memory that the CPU reads at any time; CUDA's managed memory has streams
VALUES = {
    (0, 8): "b",
    (0, 16): "h",
    (0, 32): "i",
    (0, 64): "q",
    (1, 8): "B",
    (1, 16): "H",
    (1, 32): "I",
    (1, 64): "Q",
    (2, 16): "e",
    (2, 32): "f",
    (2, 64): "d",
    (6, 8): "?",
}
INT64 = range(-(2**63), 2**63)


def element_size(code, bits, lanes, flags):
    """Bytes, or None for a dtype that is refused."""
    total = bits * lanes
    if total == 0:
        return None
    if bits < 8 and flags & 4:
        return lanes
    return total // 8 if total % 8 == 0 else None


def alignment(code, bits, lanes):
    """What an address must be a multiple of, for the elements that anything computes with."""
    if lanes == 1 and ((code, bits) in VALUES or (code, bits) == (4, 16)):
        return bits // 8
    if lanes == 1 and code == 5 and bits in (32, 64, 128):
        return bits // 16
    return 1


def reference(f):
    """None if the tensor must be refused, "far" if it reaches beyond the memory that the test owns, else its strides."""
    t = f.m.t
    size = element_size(t.ty.code, t.ty.bits, t.ty.lanes, f.m.flags if f.ver else 0)
    if f.ver and f.ver[0] != 1:
        return None
    if not 0 <= t.ndim <= 64 or size is None or (t.ndim and not t.shape):
        return None
    if t.dev.type not in HOST and t.dev.id < 0:
        return None
    shape = t.shape[: t.ndim] if t.ndim else []
    if any(n < 0 for n in shape):
        return None
    product = 1
    for n in shape:
        product *= n or 1
    if t.dev.type < 1:
        return None
    if product * size not in INT64 or t.off >= 2**63:
        return None
    strides = []
    step = 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= max(n, 1)
    if t.strides and t.ndim:
        strides = t.strides[: t.ndim]
    if 0 in shape:
        return strides
    if not t.data:
        return None
    low = sum((n - 1) * s * size for n, s in zip(shape, strides, strict=True) if s < 0)
    high = sum((n - 1) * s * size for n, s in zip(shape, strides, strict=True) if s > 0) + size
    if low not in INT64 or high not in INT64:
        return None
    start = t.data + t.off
    if t.dev.type in POINTERS and not (start + low >= 0 and start + high <= 2**64):
        return None
    if t.dev.type not in POINTERS and (t.off + high > 2**63 - 1 or (t.dev.type in HANDLES and t.off + low < 0)):
        return None
    if low == -(2**63):
        return None
    base = f.pointer
    return strides if base <= start + low and start + high <= base + len(MEMORY) else "far"


def read(f, strides):
    """The values, element by element."""
    t = f.m.t
    size = element_size(t.ty.code, t.ty.bits, t.ty.lanes, 0)
    code = VALUES[t.ty.code, t.ty.bits]
    at = t.data + t.off - f.pointer if t.data else 0

    def nest(shape, steps, where):
        if not shape:
            return struct.unpack_from("<" + code, MEMORY, where)[0]
        return [nest(shape[1:], steps[1:], where + i * steps[0] * size) for i in range(shape[0])]

    return nest(t.shape[: t.ndim] if t.ndim else [], strides, at)


small = st.integers(0, 5)
extent = st.one_of(small, small, small, st.sampled_from([-1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63)]))
step = st.one_of(st.integers(-8, 8), st.sampled_from([2**31, 2**61, 2**62, 2**63 - 1, -(2**63), -(2**62)]))
dtype = st.one_of(
    st.sampled_from([(c, b, 1) for c, b in VALUES]),
    st.tuples(
        st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 14, 15, 17, 18, 99, 255]),
        st.sampled_from([0, 1, 4, 6, 8, 16, 24, 32, 64, 128, 255]),
        st.sampled_from([0, 1, 1, 2, 3, 8, 65535]),
    ),
)
device = st.one_of(st.just((1, 0)), st.tuples(st.sampled_from([1, 2, 3, 4, 8, 10, 11, 13, 14, 99]), st.sampled_from([0, 1, -1, 2**31 - 1])))
offset = st.one_of(st.just(0), st.integers(0, 64), st.sampled_from([2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 8]))
version = st.one_of(st.none(), st.just((1, 1)), st.just((1, 3)), st.tuples(st.sampled_from([0, 1, 2, 2**32 - 1]), st.integers(0, 9)))


@st.composite
def fakes(draw):
    shape = draw(st.lists(extent, max_size=4))
    strides = draw(st.one_of(st.none(), st.just("c"), st.lists(step, min_size=len(shape), max_size=len(shape))))
    f = Fake(
        MEMORY,
        shape,
        strides,
        ty=draw(dtype),
        off=draw(offset),
        dev=draw(device),
        ver=draw(version),
        flags=draw(st.sampled_from([0, 0, 1, 2, 3, 4, 5, 8, 2**40])),
        null=draw(st.sampled_from([False] * 9 + [True])),
        ndim=draw(st.sampled_from([None] * 12 + [-1, 65, 0, 2**31 - 1])),
        shape_null=draw(st.sampled_from([False] * 12 + [True])),
    )
    if f.m.t.data:
        f.m.t.data += MIDDLE
    return f


@settings(max_examples=settings.default.max_examples * 4)
@given(fakes(), st.sampled_from([None, None, True, False]))
def test_what_is_accepted_is_right_and_what_is_not_is_given_back(f, copy):
    expected = reference(f)
    t = f.m.t
    size = element_size(t.ty.code, t.ty.bits, t.ty.lanes, f.m.flags if f.ver else 0)
    host = t.dev.type in HOST
    count = 1
    for n in t.shape[: t.ndim] if expected is not None and t.ndim else ():
        count *= n
    unaligned = host and expected is not None and count and (t.data + t.off) % alignment(t.ty.code, t.ty.bits, t.ty.lanes)
    if expected == "far" and host and (copy or unaligned):
        return  # reads memory that is not there
    if host and (copy or unaligned) and count > 1 << 16:
        return  # strides of zero make a small memory large: the copy is as large
    try:
        x = g.from_dlpack(f, copy=copy)
    except BufferError:
        refused = expected is None or (copy is False and (unaligned or (f.ver and f.m.flags & 2))) or (copy and not host)
        assert refused, (expected, copy)
        x = None
    else:
        assert expected is not None, "accepted what must be refused"
        assert (
            x.shape == tuple(t.shape[: t.ndim] if t.ndim else ())
            and x.itemsize == size
            and (x.dtype.code, x.dtype.bits, x.dtype.lanes) == (t.ty.code, t.ty.bits, t.ty.lanes)
        )
        trusted = f.ver and f.m.flags & 3 == 2  # the producer says that it made a private copy
        assert x.device == ((1, 0) if unaligned or (copy and not trusted) else (t.dev.type, 0 if host else t.dev.id))
        shares = x.size == 0 or x.data_ptr() == (t.data or 0) + t.off or t.dev.type not in POINTERS
        if shares and not copy:
            assert x.readonly == bool(f.ver and f.m.flags & 1)
        if copy:
            assert not x.readonly
        if expected != "far":
            if shares and x.size and not copy:
                assert list(x.strides) == list(expected)
            listable = max(x.shape, default=0) < 1000  # (2**31, 0) has no elements and very many lists
            if host and listable and (t.ty.code, t.ty.bits) in VALUES and t.ty.lanes == 1:
                want = read(f, expected)
                assert repr(x.tolist()) == repr(want)
                assert repr(x.copy().tolist()) == repr(want)
                assert repr(x.reshape(-1).tolist()) == repr(g.asarray(want, dtype=x.dtype).reshape(-1).tolist())
        p = peek(x.__dlpack__(max_version=(1, 3)))
        assert p["shape"] == list(x.shape) and p["strides"] == (list(x.strides) if x.ndim else None) and p["ty"] == (t.ty.code, t.ty.bits, t.ty.lanes)
        assert bool(p["flags"] & 1) == x.readonly
        y = g.from_dlpack(x.__dlpack__(max_version=(1, 3)))
        assert (y.shape, y.strides, y.dtype, y.device, y.readonly) == (x.shape, x.strides, x.dtype, x.device, x.readonly)
        del y
    del x
    assert f.balanced()


@given(st.lists(st.integers(0, 4), max_size=4), st.data())
def test_views_of_views_stay_inside_and_agree_with_the_indices_of_the_original(shape, data):
    import numpy as np

    a = np.arange(int(np.prod(shape)), dtype="int16").reshape(shape)
    t = g.from_dlpack(a)
    for _ in range(data.draw(st.integers(0, 4))):
        if not a.ndim:
            break
        axis = data.draw(st.integers(0, a.ndim - 1))
        key = (slice(None),) * axis + (data.draw(st.slices(a.shape[axis])),)
        a, t = a[key], t[key]
        order = data.draw(st.permutations(range(a.ndim)))
        a, t = a.transpose(order), t.permute_dims(order)
    assert t.tolist() == a.tolist()
    u = g.from_dlpack(t.__dlpack__())
    assert u.tolist() == a.tolist() and np.asarray(t).tolist() == a.tolist() and g.from_buffer(t).tolist() == a.tolist()
