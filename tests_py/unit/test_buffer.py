"""The buffer protocol, both ways."""

import array
import ctypes as C
import gc
import mmap
import struct

import numpy as np
import pytest
from support import Fake, api, bad, requires

import dlferry as g


class View(C.Structure):
    _fields_ = [
        ("buf", C.c_void_p),
        ("obj", C.c_void_p),
        ("len", C.c_ssize_t),
        ("itemsize", C.c_ssize_t),
        ("readonly", C.c_int),
        ("ndim", C.c_int),
        ("format", C.c_char_p),
        ("shape", C.POINTER(C.c_ssize_t)),
        ("strides", C.POINTER(C.c_ssize_t)),
        ("suboffsets", C.POINTER(C.c_ssize_t)),
        ("internal", C.c_void_p),
    ]


api.PyObject_GetBuffer.argtypes = [C.py_object, C.POINTER(View), C.c_int]
api.PyBuffer_Release.argtypes = [C.POINTER(View)]
api.PyBuffer_Release.restype = None
WRITABLE, FORMAT, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT = 1, 4, 8, 0x18, 0x38, 0x58, 0x98, 0x118
REQUESTS = [
    w | f | layout for w in (0, WRITABLE) for f in (0, FORMAT) for layout in (0, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT)
]


def layouts():
    base = g.asarray(list(range(24)), dtype="int16").reshape((2, 3, 4))
    return {
        "row-major": base,
        "column-major": base.permute_dims((2, 1, 0)),
        "strided": base[:, ::2],
        "reversed": base[::-1],
        "vector": base.reshape(24),
        "scalar": base[0, 0, 0],
        "empty": base[:0],
        "one": base[:1, :1, :1],
        "repeated": g._core._view(base, (2, 3), (0, 1), 0),
    }


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("name", layouts())
def test_every_request_is_answered_as_numpy_answers_it(name, readonly):
    # case N02, https://github.com/youknowone/pyre/pull/469
    t = layouts()[name]
    if readonly:
        t = g._core._readonly(t)
    a = np.from_dlpack(t)
    for flags in REQUESTS:
        ours, theirs = View(), View()
        try:
            api.PyObject_GetBuffer(a, theirs, flags)
        except (BufferError, ValueError):
            with pytest.raises(BufferError, match="buffer: "):
                api.PyObject_GetBuffer(t, ours, flags)
            assert ours.obj is None
            continue
        assert api.PyObject_GetBuffer(t, ours, flags) == 0, hex(flags)
        try:
            assert ours.obj == id(t) and ours.len == theirs.len == t.nbytes and ours.itemsize == 2 and ours.readonly == readonly
            if t.size:
                assert ours.buf == t.data_ptr()
            assert (ours.format is None) == (not flags & FORMAT) and (ours.format or b"h") == b"h"
            assert bool(ours.shape) == bool(flags & ND) or t.ndim == 0
            if ours.shape:
                assert ours.ndim == t.ndim and ours.shape[: t.ndim] == list(t.shape)
            elif not flags & ND:
                assert ours.ndim <= 1, "no shape was asked for: the memory is a run of bytes, as in NumPy (0) and memoryview (1)"
            if flags & 0x10 and t.ndim:
                assert [s // 2 for s in ours.strides[: t.ndim]] == list(t.strides)
            elif not flags & 0x10:
                assert not ours.strides
            assert not ours.suboffsets
        finally:
            api.PyBuffer_Release(ours)
            api.PyBuffer_Release(theirs)


DTYPES = [n for n in dir(g) if isinstance(getattr(g, n), g.DType)]


@pytest.mark.parametrize("name", DTYPES)
def test_a_format_has_the_size_of_its_element_or_there_is_no_buffer(name):
    # case G11, https://github.com/ml-explore/mlx/issues/3974
    try:
        t = g.zeros((3,), dtype=name)
    except BufferError:
        return
    try:
        m = memoryview(t)
    except BufferError as e:
        assert "dtype" in str(e) and name not in ("int8", "float32", "complex64")
        return
    size = {"Zf": 8, "Zd": 16}.get(m.format) or struct.calcsize(m.format)
    assert size == m.itemsize == t.itemsize
    assert np.asarray(m).dtype == np.dtype(name)
    assert g.from_buffer(m).dtype == name


def test_types_without_a_struct_format_refuse_the_buffer_protocol():
    for name in ("bfloat16", "float8_e4m3fn", "float4_e2m1fn_x2", "float32x4", "complex32"):
        assert type(bad(lambda name=name: memoryview(g.empty((2,), dtype=name)))) is BufferError


def test_a_memoryview_of_ours_reads_and_writes_the_memory():
    t = g.zeros((2, 3), dtype="int32")
    m = memoryview(t)
    m[1, 2] = 7
    assert t[1, 2].item() == 7 and m.obj is t and m.shape == (2, 3) and m.strides == (12, 4) and not m.readonly and m.format == "i"
    assert bytes(m.cast("B"))[-4:] == b"\x07\0\0\0"
    assert memoryview(t.T).strides == (4, 12)
    bad(lambda: memoryview(t.T).cast("B"))


def test_close_waits_for_memoryviews():
    # case N02
    t = g.zeros((4,))
    m = memoryview(t)
    inner = m[1:]
    e = bad(t.close)
    assert type(e) is BufferError and "release" in str(e)
    m.release()
    bad(t.close)
    inner.release()
    t.close()
    assert t.closed
    with pytest.raises(ValueError, match="closed"):
        memoryview(t)


def test_a_memoryview_keeps_the_tensor_alive():
    t = g.asarray([1, 2, 3])
    m = memoryview(t)
    del t
    gc.collect()
    assert m.tolist() == [1, 2, 3]


def test_device_memory_has_no_buffer():
    t = g.from_dlpack(Fake(dev=(2, 0)))
    assert type(bad(lambda: memoryview(t))) is BufferError


def test_bytes_and_file_writes_take_tensors(tmp_path):
    t = g.asarray([1, 2, 3], dtype="uint8")
    assert bytes(t) == b"\1\2\3" and b"".join([memoryview(t), b"x"]) == b"\1\2\3x"
    with (tmp_path / "f").open("wb") as f:
        f.write(t)
    assert (tmp_path / "f").read_bytes() == b"\1\2\3"
    u = g.zeros((3,), dtype="uint8")
    with (tmp_path / "f").open("rb") as f:
        assert f.readinto(u) == 3
    assert u.tolist() == [1, 2, 3]
    assert type(bad(lambda: struct.pack_into("B", g._core._readonly(u), 0, 1))) in (BufferError, TypeError)


# --- from_buffer ---


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_arrays_of_every_typecode_are_shared(code):
    a = array.array(code, [1, 2, 3])
    t = g.from_buffer(a)
    assert t.tolist() == [1, 2, 3] and t.itemsize == a.itemsize and t.data_ptr() == a.buffer_info()[0]
    t[1] = 9
    assert a[1] == 9
    with pytest.raises(BufferError):
        a.append(1)
    del t
    a.append(4)


def test_the_source_stays_locked_until_the_tensor_and_all_exports_are_gone():
    # case N01, https://github.com/numpy/numpy/issues/9537
    m = mmap.mmap(-1, 4096)
    t = g.from_buffer(m)
    bad(m.close)
    view, array_ = t[5:], np.from_dlpack(t)
    del t
    bad(m.close)
    del view
    bad(m.close)
    capsule = g.from_dlpack(array_).__dlpack__()
    del array_
    bad(m.close)
    del capsule
    gc.collect()
    m.close()
    b = bytearray(8)
    u = g.from_buffer(b)
    bad(lambda: b.append(1))
    u.close()
    b.append(1)


def test_bytes_are_read_only_for_ever():
    # case D02, https://github.com/numpy/numpy/issues/20742
    t = g.from_buffer(b"abcd")
    assert t.readonly and t.tolist() == [97, 98, 99, 100] and t.dtype == "uint8"
    assert type(bad(lambda: t.__dlpack__())) is BufferError


def test_strided_and_reversed_memoryviews_are_shared():
    b = bytearray(range(24))
    m = memoryview(b).cast("h")
    for key in (slice(None, None, 2), slice(None, None, -1), slice(3, 3), slice(10, 2, -3)):
        t = g.from_buffer(m[key])
        assert t.tolist() == m[key].tolist()
        del t
    a = np.arange(24, dtype="int16").reshape(2, 3, 4)
    for view in (a, a.T, a[:, ::-1], a[1:, :, ::3], a[..., None], np.broadcast_to(a, (5, 2, 3, 4)), np.array(5.0), a[:0]):
        t = g.from_buffer(view)
        assert t.tolist() == view.tolist() and t.readonly == (not view.flags.writeable)


@pytest.mark.parametrize(
    "make",
    [
        lambda: array.array("u", "abc"),
        lambda: np.array([b"ab"]),
        lambda: np.array([(1, 2)], dtype=[("a", "i4"), ("b", "f4")]),
        lambda: np.array([object()]),
        lambda: np.zeros(2, ">f4"),
        lambda: np.zeros(2, ">i2"),
        lambda: np.zeros(2, "g"),
        lambda: np.zeros(2, "G"),
        lambda: np.zeros(3, "U2"),
        lambda: (C.c_void_p * 2)(),
        lambda: (C.c_char_p * 2)(),
        lambda: C.c_wchar("x"),
        lambda: (type("S", (C.Structure,), {"_fields_": [("x", C.c_int)]}) * 2)(),
        lambda: (C.c_int32.__ctype_be__ * 2)(),
        lambda: np.zeros(2, "V3"),
    ],
)
def test_formats_without_a_dtype_are_refused_by_name(make):
    e = bad(lambda: g.from_buffer(make()))
    assert type(e) is BufferError and "from_buffer: " in str(e) and "format" in str(e), e


def test_ctypes_arrays_are_shared_in_all_their_shapes():
    x = ((C.c_float * 3) * 2)()
    x[1][2] = 2.5
    assert g.from_buffer(x).tolist() == [[0, 0, 0], [0, 0, 2.5]]
    assert g.from_buffer((C.c_int64 * 2)(5, 6)).tolist() == [5, 6] and g.from_buffer(C.c_double(1.5)).item() == 1.5
    assert g.from_buffer((C.c_bool * 2)(True, False)).tolist() == [True, False]
    assert g.from_buffer((C.c_char * 2)(b"a", b"b")).tolist() == [97, 98]


def test_single_bytes_have_no_byte_order():
    assert g.from_buffer(np.zeros(2, ">i1")).tolist() == [0, 0]


def test_strides_that_are_no_multiple_of_the_element_are_refused():
    a = np.zeros(4, dtype=[("x", "u1"), ("y", "<f4")])
    for f in (lambda: g.from_buffer(a["y"]), lambda: g.from_buffer(np.lib.stride_tricks.as_strided(np.zeros(9, "f4"), (2,), (6,)))):
        e = bad(f)
        assert type(e) is BufferError and ("strides" in str(e) or "multiple" in str(e))


def test_an_unaligned_buffer_never_becomes_an_unaligned_export():
    # case J02: from_dlpack copies, wrap_pointer refuses; a buffer must not slip through
    m = memoryview(bytearray(41))[1:].cast("f")
    try:
        t = g.from_buffer(m)
    except BufferError:
        return
    assert t.data_ptr() % 4 == 0


def test_what_has_no_buffer_is_a_type_error():
    for thing in (5, "text", None, [1], object(), int):
        with pytest.raises(TypeError, match="from_buffer: obj, got"):
            g.from_buffer(thing)


def test_a_released_memoryview_is_refused():
    m = memoryview(b"abc")
    m.release()
    assert isinstance(bad(lambda: g.from_buffer(m)), ValueError)


@requires("torch")
def test_torch_reads_our_buffer():
    import torch

    t = g.asarray([1.0, 2.0], dtype="float32")
    x = torch.frombuffer(t, dtype=torch.float32)
    assert x.data_ptr() == t.data_ptr() and x.tolist() == [1, 2]
