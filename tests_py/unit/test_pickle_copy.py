import copy
import pickle

import numpy as np
import pytest
from support import Fake, bad

import dlferry as g

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Sub(g.Tensor):
    pass


class Slotted(g.Tensor):
    __slots__ = ("note",)


def tensors():
    base = g.asarray(list(range(24)), dtype="int16").reshape((2, 3, 4))
    yield base
    yield base.T if base.ndim == 2 else base.mT
    yield base[::-1, ::2]
    yield base[0, 0, 0]
    yield g.zeros((0, 3))
    yield g.zeros((2, 0))
    yield g.full((3,), 1.5, dtype="bfloat16")
    yield g.from_dlpack(Fake(bytes(range(16)), (2,), ty=(2, 32, 2)))
    yield g.from_dlpack(Fake(bytes(range(16)), (4,), ty=(200, 24, 1)))
    yield g.from_dlpack(Fake(bytes(range(16)), (4,), ty=(17, 4, 2)))
    yield g.from_buffer(b"read-only")
    yield g.full((2,), 1 - 2j, dtype="complex64")


def raw(t):
    t = t.contiguous()
    return bytes(memoryview(g._core._view_dtype(g._core._view(t, (t.size,), (1,), 0), g.uint8))) if t.size else b""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickled_tensor_comes_back_equal(protocol):
    for t in tensors():
        u = pickle.loads(pickle.dumps(t, protocol))
        assert type(u) is g.Tensor and u.shape == t.shape and u.dtype is t.dtype and u.readonly == t.readonly and u.device == "cpu"
        assert raw(u) == raw(t) and u.is_contiguous()
        if not u.readonly and u.size:
            assert not (t.data_ptr() <= u.data_ptr() < t.data_ptr() + t.nbytes)


def test_protocol_5_hands_the_bytes_out_of_band_without_a_copy():
    t = g.zeros((1000,), dtype="float64")
    buffers = []
    stream = pickle.dumps(t, 5, buffer_callback=buffers.append)
    assert len(stream) < 500 and len(buffers) == 1
    m = buffers[0].raw()
    assert np.frombuffer(m, "u1").__array_interface__["data"][0] == t.data_ptr()
    u = pickle.loads(stream, buffers=buffers)
    assert u.data_ptr() == t.data_ptr()  # shared, as NumPy's arrays are
    t[3] = 5
    assert u[3].item() == 5 and not u.readonly
    m.release()
    v = pickle.loads(stream, buffers=[bytes(8000)])
    v[0] = 1
    assert not v.readonly and v[0].item() == 1


def test_a_read_only_tensor_stays_read_only_out_of_band():
    t = g.from_buffer(b"12345678")
    buffers = []
    stream = pickle.dumps(t, 5, buffer_callback=buffers.append)
    for given in (buffers, [bytearray(b"12345678")]):
        u = pickle.loads(stream, buffers=given)
        assert u.readonly and u.tolist() == t.tolist()


def test_unaligned_out_of_band_bytes_are_copied():
    t = g.asarray([1.0, 2.0])
    buffers = []
    stream = pickle.dumps(t, 5, buffer_callback=buffers.append)
    odd = memoryview(bytearray(b"x" + bytes(memoryview(t).cast("B"))))[1:]
    u = pickle.loads(stream, buffers=[odd])
    assert u.tolist() == [1, 2] and u.data_ptr() % 8 == 0


@pytest.mark.parametrize("size", [0, 1, 15, 17, 160])
def test_out_of_band_bytes_of_the_wrong_size_are_refused(size):
    t = g.asarray([1.0, 2.0])
    buffers = []
    stream = pickle.dumps(t, 5, buffer_callback=buffers.append)
    bad(lambda: pickle.loads(stream, buffers=[bytearray(size)]))


def test_a_subclass_keeps_its_class_and_its_attributes():
    for cls in (Sub, Slotted):
        t = cls([1, 2, 3])
        t.note = ["kept"]
        for protocol in PROTOCOLS:
            if cls is Slotted and protocol < 2:
                continue
            u = pickle.loads(pickle.dumps(t, protocol))
            assert type(u) is cls and u.tolist() == [1, 2, 3] and u.note == ["kept"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, g.Tensor.copy])
def test_copies_are_private_and_writable(duplicate):
    for t in tensors():
        u = duplicate(t)
        assert u.shape == t.shape and u.dtype is t.dtype and not u.readonly and u.is_contiguous() and raw(u) == raw(t)
        if t.size:
            assert u.data_ptr() != t.data_ptr() and u.data_ptr() % 64 == 0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_of_a_subclass_keep_class_and_attributes_as_pickle_does(duplicate):
    t = Sub([1, 2])
    t.note = ["kept"]
    u = duplicate(t)
    assert type(u) is Sub and u.note == ["kept"]


def test_deepcopy_of_a_structure_copies_a_shared_tensor_once():
    t = g.asarray([1, 2])
    a, b = copy.deepcopy([t, t])
    assert a is b and a is not t


def test_device_and_closed_tensors_cannot_be_pickled():
    t = g.from_dlpack(Fake(dev=(2, 0)))
    for protocol in PROTOCOLS:
        assert isinstance(bad(lambda p=protocol: pickle.dumps(t, p)), BufferError)
    u = g.zeros((2,))
    u.close()
    assert isinstance(bad(lambda: pickle.dumps(u)), ValueError)


def test_padded_sub_byte_elements_survive_pickling_or_are_refused_when_written():
    t = g.from_dlpack(Fake(bytes(range(8)), (8,), ty=(0, 4, 1), flags=4))
    try:
        stream = pickle.dumps(t)
    except BufferError:
        return
    u = pickle.loads(stream)
    assert u.dtype is t.dtype and u.shape == (8,) and u.nbytes == 8


def test_copies_of_padded_sub_byte_elements_stay_padded():
    t = g.from_dlpack(Fake(bytes(range(8)), (8,), ty=(0, 4, 1), flags=4))
    u = t.copy()
    assert u.nbytes == 8 and u.dtype is t.dtype
    assert g.from_dlpack(u.__dlpack__(max_version=(1, 3))).nbytes == 8


def test_pickles_travel_between_processes():
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        u = pool.submit(g.Tensor.copy, g.asarray([1, 2, 3])).result(60)
    assert u.tolist() == [1, 2, 3]
