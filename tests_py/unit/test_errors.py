"""The table of what is wrong and which class says so; messages name the function, the thing, what it got and what it wants."""

import re

import numpy as np
import pytest
from support import Fake, bad

import dlferry as g

RO = g.from_buffer


def close_with_a_view():
    t = g.zeros(2)
    with memoryview(t):
        t.close()


BUFFER = [
    (lambda: g.from_dlpack(Fake(ver=(2, 0))), r"from_dlpack: DLPack version .*got major 2, want 1"),
    (lambda: g.from_dlpack(Fake(ty=(2, 32, 0))), r"from_dlpack: .*dtype.* got .*want"),
    (lambda: g.from_dlpack(Fake(ty=(0, 4, 1))), r"from_dlpack: .*dtype.* got .*want"),
    (lambda: g.from_dlpack(Fake(shape=(-1,), strides=[1])), r"from_dlpack: .*(axis|shape).* got -1.* want"),
    (lambda: g.from_dlpack(Fake(shape=(2**62, 4))), r"from_dlpack: .*axis.* got .*"),
    (lambda: g.from_dlpack(Fake(ndim=-1)), r"from_dlpack: .*got -1.* want"),
    (lambda: g.from_dlpack(Fake(null=True)), r"from_dlpack: .*(data|NULL|null)"),
    (lambda: g.from_dlpack(Fake(shape_null=True)), r"from_dlpack: .*shape"),
    (lambda: g.from_dlpack(Fake(off=2**63)), r"from_dlpack: .*offset.* got"),
    (lambda: g.from_dlpack(Fake(dev=(2, -1))), r"from_dlpack: .*device.* got cuda:-1.* want"),
    (lambda: g.from_dlpack(Fake(), device="cuda:0"), r"from_dlpack: device, got .*cpu.* want cuda:0"),
    (lambda: g.from_dlpack(Fake(flags=2), copy=False), r"from_dlpack: copy=False, got .*"),
    (lambda: g.from_dlpack(Fake(bytes(64), (2,), ty=(2, 32, 1), off=1), copy=False), r"from_dlpack: copy=False, got .*alignment"),
    (lambda: RO(b"a").__dlpack__(), r"__dlpack__: tensor, got a read-only one.* max_version=\(1, 0\)|copy=True"),
    (lambda: g.zeros(1).__dlpack__(dl_device=(2, 0)), r"__dlpack__: dl_device, got cuda:0 .*want"),
    (lambda: g.zeros(1, dtype="float8_e5m2").__dlpack__(max_version=(0, 8)), r"__dlpack__: dtype, got float8_e5m2.*max_version=\(1, \d\)"),
    (lambda: RO(b"a").__setitem__(0, 1), r"Tensor.__setitem__: tensor, got a read-only one, want .*copy\(\)"),
    (lambda: g.from_dlpack(Fake(dev=(2, 0))).tolist(), r"tolist: device, got cuda:0, want"),
    (lambda: g.from_dlpack(Fake(dev=(2, 0))).item(), r"item: device, got cuda:0, want"),
    (lambda: g.from_dlpack(Fake(dev=(2, 0))).copy(), r"copy: device, got cuda:0, want"),
    (lambda: memoryview(g.from_dlpack(Fake(dev=(2, 0)))), r"buffer: device, got cuda:0, want"),
    (lambda: memoryview(g.zeros(1, dtype="bfloat16")), r"buffer: dtype, got bfloat.*want"),
    (lambda: g.from_dlpack(Fake(bytes(16), (1,), ty=(2, 32, 4))).tolist(), r"tolist: dtype, got .*want"),
    (lambda: g.from_buffer(np.zeros(2, ">f4")), r"from_buffer: .*'>f'.* want"),
    (lambda: g.from_buffer(np.zeros(2, "S3")), r"from_buffer: format, got .*want"),
    (lambda: g.asarray([1], copy=False), r"asarray: copy=False, got list, want"),
    (lambda: g.asarray(np.zeros(2), dtype="int8", copy=False), r"asarray: copy=False, got .*want"),
    (lambda: g.asarray([1], device="cuda"), r"asarray: device, got cuda:0, want cpu"),
    (lambda: g.empty(1, device="cuda"), r"empty: device, got cuda:0, want cpu"),
    (lambda: g.full(1, 1, dtype="float32x2"), r"(full|fill): dtype, got .*want"),
    (lambda: g.zeros((2, 3)).T.reshape(6, copy=False), r"Tensor.reshape: layout, got .*\(1, 3\).* want .*\(6,\)"),  # case F20
    (lambda: close_with_a_view(), r"close: tensor, got one with 1 open buffer"),
]
VALUE = [
    (lambda: g.empty((-1,)), r"empty: shape, got -1 at axis 0, want"),
    (lambda: g.zeros((2**62, 4)), r"zeros: shape, .*want"),
    (lambda: g.full((1,) * 65, 1), r"full: shape, got 65 axes, want at most 64"),
    (lambda: g.empty((2**70,)), r"empty: shape, got .*want"),
    (lambda: g.full(1, 300, dtype="uint8"), r"(full|fill): value, got 300, want .*uint"),
    (lambda: g.full(1, 10**400), r"(full|fill): value, got 1000.*want"),
    (lambda: g.zeros(2).item(), r"item: tensor, got 2 elements, want exactly 1"),
    (lambda: g.zeros(6).reshape((4, 2)), r"Tensor.reshape: shape, got \(4, 2\) of 8 elements, want .*6"),
    (lambda: g.zeros((2, 3)).permute_dims((0, 0)), r"Tensor.permute_dims: axes, got \(0, 0\), want"),
    (lambda: g.zeros(3).T, r"Tensor.T: ndim, got 1, want 2"),
    (lambda: g.zeros((2, 3)).__setitem__(..., [1, 2]), r"Tensor.__setitem__: value, got shape \(2,\), want .*\(2, 3\)"),
    (lambda: g.asarray([[1], [1, 2]]), r"asarray: nested sequences, axis 1, got length 2"),
    (lambda: g.empty(1, dtype="float33x"), r"dtype: got 'float33x', want .*float32"),
    (lambda: g.empty(1, device="gpu"), r"device: name, got 'gpu', want .*cpu"),
    (lambda: g.convert(g.zeros(1), "nothing"), r"convert: to, got 'nothing', want"),
    (lambda: g.from_address(0), r"from_address: address, got"),
    (lambda: g.wrap_pointer(8, 1, "int8", strides=(1, 1)), r"wrap_pointer: strides, got 2, want one for each of the 1"),
    (lambda: g.zeros(4)[::0], r"Tensor.__getitem__: step .*got 0, want"),
]
TYPE = [
    (lambda: g.from_dlpack([1]), r"from_dlpack: x, got .*list.* want .*asarray"),
    (lambda: g.from_dlpack(None), r"from_dlpack: x, got .*NoneType"),
    (lambda: g.from_buffer(5), r"from_buffer: obj, got .*int.* want"),
    (lambda: g.asarray("text"), r"asarray: object, got str, want"),
    (lambda: g.empty("3"), r"empty: shape, got '3', want"),
    (lambda: g.empty(1, dtype=5), r"dtype: got 5 .*want"),
    (lambda: g.empty(1, device=5), r"device: got 5 .*want"),
    (lambda: g.empty(1, nothing=5), r"empty: keyword argument, got 'nothing', want"),
    (lambda: g.empty(1, 2), r"empty: positional arguments, got 2, want at most 1"),
    (lambda: g.full(1, "1"), r"(full|fill): value, got '1', want"),
    (lambda: g.full(1, 1.5, dtype="int8"), r"(full|fill): value, got 1.5, want an int"),
    (lambda: g.zeros(3)["a"], r"Tensor.__getitem__: index of axis 0, got str, want"),
    (lambda: g.zeros(3)[[0, 1]], r"Tensor.__getitem__: index of axis 0, got list, want .*numpy"),
    (lambda: g.zeros(1).__dlpack__(stream="x"), r"__dlpack__: stream, got 'x', want"),
    (lambda: g.zeros(1).__dlpack__(max_version=1), r"__dlpack__: max_version, got 1, want"),
    (lambda: g.convert(g.zeros(1), 5), r"convert: to, got 5 .*want"),
    (lambda: g.Tensor(), r"Tensor: positional arguments, got 0, want 1"),
    (lambda: g.wrap_pointer("1", 1, "int8"), r"wrap_pointer: ptr, got '1', want"),
    (lambda: len(g.zeros(())), r"Tensor.__len__: tensor, got one without axes, want"),
    (lambda: int(g.zeros(2)), r"Tensor.__int__: size, got 2, want 1"),
]
ROWS = [(BufferError, *row) for row in BUFFER] + [(ValueError, *row) for row in VALUE] + [(TypeError, *row) for row in TYPE]


@pytest.mark.parametrize("i", range(len(ROWS)))
def test_each_fault_has_its_class_and_names_what_is_wrong(i):
    cls, call, pattern = ROWS[i]
    e = bad(call)
    assert type(e) is cls, repr(e)
    assert re.search(pattern, str(e)), str(e)
    assert len(str(e)) < 1500 and "\n" not in str(e)


def test_an_index_outside_is_an_index_error():
    with pytest.raises(IndexError, match=r"Tensor.__getitem__: index of axis 1, got 7, want -3 <= index < 3"):
        g.zeros((2, 3))[0, 7]


def test_too_much_memory_is_a_memory_error():
    with pytest.raises(MemoryError, match=r"zeros: memory, got none for \d+ bytes"):
        g.zeros((2**60,), dtype="int8")


def test_what_a_producer_raises_arrives_unchanged():
    for raised in (
        KeyError("k"),
        RuntimeError("r"),
        BufferError("b"),
        MemoryError("m"),
        KeyboardInterrupt(),
        SystemExit(3),
        OSError(2, "o"),
        ZeroDivisionError(),
    ):
        with pytest.raises(type(raised)) as e:
            g.from_dlpack(Fake(raises=raised))
        assert e.value is raised


def test_messages_of_refused_dtypes_name_code_bits_and_lanes():
    # case G05
    for ty in ((200, 12, 1), (0, 4, 1), (2, 32, 0), (15, 6, 1)):
        message = str(bad(lambda ty=ty: g.from_dlpack(Fake(ty=ty))))
        assert all(str(x) in message for x in ty[:2]), message


def test_refusals_name_the_function_once_and_no_function_of_go():
    for f in (Fake(shape=(-1,), strides=[1]), Fake(off=2**63), Fake(null=True), Fake(ty=(2, 32, 0)), Fake(shape=(2**62, 4))):
        message = str(bad(lambda f=f: g.from_dlpack(f)))
        assert message.startswith("from_dlpack: ") and "Validate" not in message, message
