"""Index, reshape, permute and their like against NumPy, on the same memory."""

import random

import numpy as np
import pytest
from support import Fake, bad, peek

import dlferry as g


def twin(shape, dtype="int32"):
    a = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    return a, g.from_dlpack(a)


def agree(t, a):
    assert t.shape == a.shape
    assert t.tolist() == a.tolist()
    if a.size:
        assert t.data_ptr() == a.__array_interface__["data"][0]
        steps = [(n, s) for n, s in zip(a.shape, t.strides, strict=True) if n > 1]
        assert steps == [(n, s // a.itemsize) for n, s in zip(a.shape, a.strides, strict=True) if n > 1]


def random_key(r, shape):
    key = []
    for n in shape:
        kind = r.random()
        if kind < 0.25 and n:
            key.append(r.randrange(-n, n))
        elif kind < 0.8:
            ends = [None, *range(-n - 2, n + 3)]
            key.append(slice(r.choice(ends), r.choice(ends), r.choice([None, 1, 1, 2, 3, -1, -2, -7])))
        else:
            key.append(slice(None))
    if r.random() < 0.4:
        i = r.randint(0, len(key))
        key[i : r.randint(i, len(key))] = [Ellipsis]
    else:
        key = key[: r.randint(0, len(key))]
    for _ in range(r.choice([0, 0, 1, 2])):
        key.insert(r.randint(0, len(key)), None)
    return key[0] if len(key) == 1 and r.random() < 0.5 else tuple(key)


def test_basic_indexing_does_what_numpy_does():
    r = random.Random(3)
    for _ in range(1500):
        a, t = twin([r.randint(0, 5) for _ in range(r.randint(0, 4))])
        for _ in range(r.randint(1, 3)):  # views of views
            key = random_key(r, a.shape)
            a, t = a[key], t[key]
            a = np.asarray(a) if isinstance(a, np.ndarray) else None
            if a is None:  # NumPy gave a scalar
                assert t.shape == ()
                break
            agree(t, a)


def test_indices_outside_of_their_axis_are_index_errors():
    _, t = twin((3, 4))
    for key in (3, -4, (0, 4), (0, -5), (0, 0, 0), (..., 0, 0, 0), (..., ...), 2**70, -(2**70)):
        with pytest.raises(IndexError, match="__getitem__: index"):
            t[key]


@pytest.mark.parametrize(
    "key", [1.0, "0", [0], np.array([0]), np.array([True, False, True]), True, np.bool_(True), slice(1.0, None), slice("a"), {}, (0, [1]), object()]
)
def test_advanced_and_senseless_indices_are_type_errors(key):
    _, t = twin((3, 4))
    with pytest.raises(TypeError, match="__getitem__"):
        t[key]
    with pytest.raises(TypeError, match="item__"):
        t[key] = 1


def test_a_slice_step_of_zero_is_a_value_error():
    with pytest.raises(ValueError, match="step"):
        twin((3,))[1][::0]


def test_numpy_integers_are_indices():
    a, t = twin((3, 4))
    agree(t[np.int8(-1), np.uint64(2) : np.int64(4)], a[-1, 2:4])


def test_reshape_shares_whenever_numpy_does_and_copies_otherwise():
    r = random.Random(4)
    shared = copied = 0
    for _ in range(1500):
        a, t = twin(r.choice([(12,), (3, 4), (2, 3, 4), (2, 1, 6), (4, 6), (2, 2, 2, 3), (0, 3), (1,), ()]))
        if a.ndim and r.random() < 0.7:
            axes = list(range(a.ndim))
            r.shuffle(axes)
            a, t = a.transpose(axes), t.permute_dims(axes)
        if r.random() < 0.5:
            key = random_key(r, a.shape)
            if not isinstance(a[key], np.ndarray):
                continue
            a, t = a[key], t[key]
        new = r.choice([(-1,), (a.size,), (2, -1), (-1, 3), (a.size, 1), (1, -1, 1), a.shape[::-1], (3, -1, 2), (4, 3), (2, 6), (6, 2)])
        try:
            want = a.reshape(new)
        except ValueError:
            with pytest.raises(ValueError, match="reshape: shape"):
                t.reshape(new)
            continue
        got = t.reshape(new)
        assert got.tolist() == want.tolist() and got.shape == want.shape
        if a.size:
            does_share = np.shares_memory(a, want)
            shared += does_share
            copied += not does_share
            assert (got.data_ptr() == want.__array_interface__["data"][0]) == does_share, (a.shape, a.strides, new)
            if does_share:
                assert t.reshape(new, copy=False).tolist() == want.tolist()
            else:
                assert isinstance(bad(lambda t=t, new=new: t.reshape(new, copy=False)), BufferError)
            fresh = t.reshape(new, copy=True)
            assert fresh.tolist() == want.tolist() and not (t.data_ptr() <= fresh.data_ptr() < t.data_ptr() + 4)
    assert shared > 200 and copied > 50


@pytest.mark.parametrize("shape", [(5,), (-1, -1), (-2, 3), (2, 2), (0,), (0, -1), (7, -1), (2**40, 2**40), (-1, 0)])
def test_a_shape_of_another_size_is_a_value_error(shape):
    with pytest.raises(ValueError, match="reshape: shape"):
        g.zeros((2, 3)).reshape(shape)


def test_a_shape_of_the_wrong_type_is_a_type_error():
    for shape in ("6", 6.0, (6.0,), None, ("6",), object()):
        with pytest.raises(TypeError, match="reshape: shape"):
            g.zeros((2, 3)).reshape(shape)


def test_permute_transpose_and_mt_are_numpys():
    r = random.Random(5)
    for _ in range(200):
        a, t = twin([r.randint(0, 4) for _ in range(r.randint(0, 5))])
        axes = list(range(a.ndim))
        r.shuffle(axes)
        signed = [x - a.ndim if r.random() < 0.5 else x for x in axes]
        agree(t.permute_dims(signed), a.transpose(axes))
        agree(t.permute_dims(tuple(axes)), a.transpose(axes))
        if a.ndim == 2:
            agree(t.T, a.T)
        else:
            with pytest.raises(ValueError, match=r"Tensor\.T: ndim"):
                t.T  # noqa: B018
        if a.ndim >= 2:
            agree(t.mT, a.swapaxes(-1, -2))
        else:
            with pytest.raises(ValueError, match=r"Tensor\.mT: ndim"):
                t.mT  # noqa: B018


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (-3, 0), (0, 1, 2), ()])
def test_axes_that_are_no_permutation_are_a_value_error(axes):
    with pytest.raises(ValueError, match="permute_dims: axes"):
        g.zeros((2, 3)).permute_dims(axes)


def test_axes_of_the_wrong_type_are_a_type_error():
    for axes in (1, None, "01", (0.0, 1.0), object()):
        with pytest.raises(TypeError, match="permute_dims: axes"):
            g.zeros((2, 3)).permute_dims(axes)


def test_views_keep_read_only_and_the_memory_alive():
    f = Fake(bytes(range(24)), (2, 3, 4), flags=1)
    t = g.from_dlpack(f)
    views = [t[0], t[:, 1], t.reshape(24), t.permute_dims((2, 1, 0)), t.mT, t[::-1], next(iter(t)), t[0].T]
    assert all(v.readonly for v in views)
    del t
    assert f.freed == 0
    assert views[0].tolist()[0] == [0, 1, 2, 3] and views[5].tolist()[0][0] == [12, 13, 14, 15]
    del views
    assert f.freed == 1


def test_iteration_gives_views_of_the_first_axis():
    a, t = twin((3, 2))
    for x, y in zip(t, a, strict=True):
        agree(x, y)
    for row in g.zeros((2, 3)):
        row[0] = 1
    assert len(t) == 3 and len(g.zeros((0, 4))) == 0 and list(g.zeros((0, 4))) == []
    for f in (len, iter):
        with pytest.raises(TypeError, match="without axes"):
            f(g.zeros(()))


def test_a_write_through_a_view_is_seen_everywhere():
    a, t = twin((3, 4))
    t[1:, ::2].T[1] = -1
    assert a.tolist() == [[0, 1, 2, 3], [4, 5, -1, 7], [8, 9, -1, 11]]


def test_contiguity_is_numpys():
    r = random.Random(6)
    for _ in range(500):
        a, t = twin([r.randint(0, 3) for _ in range(r.randint(0, 4))])
        key = random_key(r, a.shape)
        if isinstance(a[key], np.ndarray):
            a, t = a[key], t[key]
            assert t.is_contiguous() == a.flags.c_contiguous, (a.shape, a.strides)
            c = t.contiguous()
            assert c.tolist() == a.tolist() and c.is_contiguous() and (c is t) == t.is_contiguous()


def test_an_empty_tensor_takes_any_strides():
    # case F10, https://github.com/microsoft/onnxruntime/issues/27450
    for s in ([0, 0, 0], [20, 20, 1], [1, 1, 1], [-3, 7, 9], None, [2**62, -(2**62), 2**63 - 1]):
        t = g.from_dlpack(Fake(b"", (100, 0, 20), strides=s, null=True))
        assert t.is_contiguous() and t.tolist() == [[]] * 100 and t.size == 0
        assert t[3].shape == (0, 20) and t[:, :, 5].shape == (100, 0) and t.mT.shape == (100, 20, 0) and t.reshape(0, copy=False).shape == (0,)
        assert t[None].shape == (1, 100, 0, 20) and t[::-1].copy().shape == (100, 0, 20)
        assert [x.shape for x in t][:1] == [(0, 20)]
        repr(t)


def test_negative_strides_are_counted_in_elements():
    # case F13, https://github.com/cupy/cupy/issues/10172
    t = g.asarray(list(range(12)), dtype="uint32").reshape((3, 4))[:, ::-1].T
    p = peek(t.__dlpack__())
    assert p["strides"] == [-1, 4] and p["off"] == 0
    assert g.from_buffer(memoryview(np.arange(8, dtype="u4"))[::-1]).tolist() == list(range(8))[::-1]


def test_a_flipped_export_starts_at_its_first_element():
    # case F04, https://github.com/tensor4all/tenferro-rs/issues/474
    t = g.asarray([1, 2, 3], dtype="int8")[::-1]
    p = peek(t.__dlpack__())
    assert p["off"] == 0 and p["strides"] == [-1] and p["data"] == t.data_ptr()
    assert g.from_dlpack(t.__dlpack__()).tolist() == [3, 2, 1]


def test_views_of_memory_without_pointers_move_the_byte_offset():
    # case C07: handles are never added to
    f = Fake(bytes(64), (8,), ty=(2, 32, 1), dev=(8, 0), data=0x5000, off=16)
    t = g.from_dlpack(f)[3:]
    p = peek(t.__dlpack__(max_version=(1, 3)))
    assert p["data"] == 0x5000 and p["off"] == 16 + 12 and p["shape"] == [5] and t.device == (8, 0)
    assert isinstance(bad(t.tolist), BufferError) and isinstance(bad(t.copy), BufferError)


def test_no_view_leaves_the_memory_of_its_tensor():
    t = g.zeros((4,), dtype="int32")
    for shape, strides, offset in (
        ((5,), (1,), 0),
        ((4,), (1,), 1),
        ((4,), (2,), 0),
        ((4,), (-1,), 0),
        ((1,), (1,), -1),
        ((1,), (1,), 4),
        ((2,), (2**62,), 0),
        ((1,), (1,), 2**62),
        ((1,), (1,), -(2**63)),
        ((2, 2), (1, 3), 0),
    ):
        assert isinstance(bad(lambda a=(shape, strides, offset): g._core._view(t, *a)), (ValueError, BufferError))
    assert g._core._view(t, (2, 2), (1, 2), 0).tolist() == [[0, 0], [0, 0]]


def test_membership_is_by_value_or_refused():
    t = g.asarray([1, 2, 3])
    try:
        found = 2 in t
    except TypeError:
        return
    assert found
