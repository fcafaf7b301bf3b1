"""Producers that lie, raise or break the rules. Whatever happens: an exception of the right class or a right tensor, and every capsule is
either untouched or was consumed and freed exactly once."""

import struct

import numpy as np
import pytest
from support import N0, N1, U0, U1, Fake, alone, api, bad, peek

import dlferry as g


def values(t):
    return t.tolist()


# --- which capsule, which version ---


@pytest.mark.parametrize("ver", [None, (1, 0), (1, 1), (1, 77), (1, 2**32 - 1)])
def test_a_producer_may_answer_with_either_struct(ver):
    # cases E02 https://github.com/NVIDIA/cuda-python/issues/285 and E03 https://github.com/NVIDIA/cutlass/issues/3359
    f = Fake(ver=ver)
    assert values(g.from_dlpack(f)) == [0, 1, 2, 3]
    assert f.balanced()
    h = Fake(ver=ver)
    assert values(g.from_dlpack(h.capsule())) == [0, 1, 2, 3]
    assert h.names() == [U1 if ver else U0]


@pytest.mark.parametrize("ver", [(0, 0), (0, 9), (2, 0), (3, 3), (2**31, 0), (2**32 - 1, 0)])
def test_another_major_version_is_given_back_unread(ver):
    # case E04, https://github.com/dmlc/dlpack/issues/116
    f = Fake(ver=ver, shape_null=True, ndim=9)
    e = bad(lambda: g.from_dlpack(f))
    assert type(e) is BufferError and "version" in str(e) and f.balanced() and f.freed == 1


@pytest.mark.parametrize("flags", [1 << 40, 1 << 63, 2**64 - 1 - 7, 8])
def test_unknown_flags_are_ignored(flags):
    f = Fake(flags=flags)
    t = g.from_dlpack(f)
    assert values(t) == [0, 1, 2, 3] and not t.readonly
    assert peek(t.__dlpack__(max_version=(1, 3)))["flags"] == 0


@pytest.mark.parametrize("name", [b"dltensor_x", b"", b"DLTENSOR", b"dltensor ", b"arrow_array", None])
def test_a_capsule_of_another_name_is_refused_and_left_alone(name):
    f = Fake(cap=name or b"x")
    c = f.capsule()
    if name is None:
        api.PyCapsule_SetName(c, None)
    e = bad(lambda: g.from_dlpack(c))
    assert type(e) in (BufferError, ValueError, TypeError) and "capsule" in str(e) and f.freed == 0
    f.cap = name or b"x"
    bad(lambda: g.from_dlpack(f))
    assert f.freed == 0


@pytest.mark.parametrize("ver", [None, (1, 1)])
def test_a_capsule_is_consumed_once(ver):
    f = Fake(ver=ver)
    c = f.capsule()
    t = g.from_dlpack(c)
    e = bad(lambda: g.from_dlpack(c))
    assert type(e) is BufferError and "consumed" in str(e) and values(t) == [0, 1, 2, 3]
    del t
    assert f.freed == 1
    bad(lambda: g.from_dlpack(c))
    assert f.freed == 1


def test_a_producer_that_hands_the_same_capsule_out_twice_gives_one_tensor():
    class P(Fake):
        def __dlpack__(self, **kw):
            if not self.caps:
                self.capsule()
            return self.caps[0]

    f = P()
    t = g.from_dlpack(f)
    assert type(bad(lambda: g.from_dlpack(f))) is BufferError
    del t
    assert f.balanced()


@pytest.mark.parametrize("answer", [None, 5, "dltensor", object(), [1], b"", type, NotImplemented])
def test_a_producer_that_gives_no_capsule_is_a_type_error(answer):
    class P(Fake):
        def __dlpack__(self, **kw):
            return answer

    e = bad(lambda: g.from_dlpack(P()))
    assert isinstance(e, TypeError) and "__dlpack__" in str(e)


def test_a_producer_without_a_deleter_is_fine():
    for ver in (None, (1, 1)):
        f = Fake(nofree=True, ver=ver)
        t = g.from_dlpack(f)
        assert values(t) == [0, 1, 2, 3]
        del t
        bad(lambda ver=ver: g.from_dlpack(Fake(nofree=True, ver=ver, ndim=-1)))


# --- keywords and fallbacks ---


def test_a_producer_from_before_2023_is_asked_without_the_new_keywords():
    f = Fake(old_api=True, ver=None)
    assert values(g.from_dlpack(f)) == [0, 1, 2, 3]
    assert len(f.calls) == 2 and f.calls[1] == {} and f.calls[0].get("max_version") == g.DLPACK_VERSION


def test_a_type_error_of_the_producer_is_not_lost():
    # case E01, https://github.com/IntelPython/dpctl/pull/1789
    f = Fake(raises=TypeError("real"))
    e = bad(lambda: g.from_dlpack(f))
    assert isinstance(e, TypeError) and ("real" in repr(e) or "real" in repr(e.__cause__ or e.__context__)) and len(f.calls) <= 2

    class Twice(Fake):
        def __dlpack__(self, **kw):
            self.calls.append(kw)
            raise (TypeError("first") if len(self.calls) == 1 else RuntimeError("second"))

    with pytest.raises(RuntimeError, match="second") as caught:
        g.from_dlpack(Twice())
    assert "first" in repr(caught.value.__cause__ or caught.value.__context__)


def test_only_a_type_error_is_retried():
    for raised in (ValueError("v"), BufferError("b"), AttributeError("a"), RuntimeError("r"), NotImplementedError("n")):
        f = Fake(raises=raised)
        with pytest.raises(type(raised)) as e:
            g.from_dlpack(f)
        assert e.value is raised and len(f.calls) == 1


def test_a_missing_device_method_is_no_obstacle():
    class P:
        def __init__(self):
            self.f = Fake()

        def __dlpack__(self, **kw):
            return self.f.capsule()

    p = P()
    assert values(g.from_dlpack(p)) == [0, 1, 2, 3]
    assert p.f.balanced()


@pytest.mark.parametrize("raised", [RuntimeError("d"), TypeError("d"), AttributeError("d"), KeyboardInterrupt()])
def test_an_exception_of_the_device_method_arrives_unchanged(raised):
    class P(Fake):
        def __dlpack_device__(self):
            raise raised

    f = P()
    with pytest.raises(type(raised)) as e:
        g.from_dlpack(f)
    assert e.value is raised and f.calls == []


def test_attributes_that_raise_are_not_swallowed():
    class P:
        @property
        def __dlpack__(self):
            raise ZeroDivisionError("mine")

    for take in (g.from_dlpack, g.asarray, lambda x: g.convert(x, "numpy")):
        with pytest.raises(ZeroDivisionError, match="mine"):
            take(P())


def test_classes_and_modules_are_no_tensors():
    for thing in (np.ndarray, Fake, g.Tensor, np, 5, "x", {}, lambda: 0):
        bad(lambda thing=thing: g.from_dlpack(thing))


# --- streams and devices ---


def test_a_cuda_producer_is_never_asked_on_stream_0_nor_without_a_stream():
    # cases C01 https://github.com/pytorch/pytorch/pull/67618 and C03 https://github.com/pytorch/pytorch/pull/150217
    for given in ({}, {"stream": 0}, {"stream": 1}, {"stream": 2}, {"stream": -1}, {"stream": 2**47}):
        f = Fake(dev=(2, 0), raises=RuntimeError("stop"))
        with pytest.raises(RuntimeError, match="stop"):
            g.from_dlpack(f, **given)
        assert f.calls[0]["stream"] == (given.get("stream") or 1)


def test_a_rocm_producer_is_not_given_cudas_numbers():
    # case C08, https://github.com/cupy/cupy/pull/5485
    f = Fake(dev=(10, 0), raises=RuntimeError("stop"))
    with pytest.raises(RuntimeError):
        g.from_dlpack(f)
    assert f.calls[0].get("stream") not in (1, 2)


def test_a_cpu_producer_is_asked_without_a_stream():
    # case C03
    for given in ({}, {"stream": None}, {"stream": -1}):
        f = Fake()
        g.from_dlpack(f, **given)
        assert f.calls[0].get("stream") is None


def test_devices_without_a_rule_are_carried_and_never_touched():
    # case C07, https://github.com/pytorch/pytorch/issues/195825
    for d in ((8, 0), (14, 0), (15, 0), (10, 0), (4, 1), (16, 0)):
        f = Fake(dev=d, data=0x10, ty=(1, 8, 1))
        t = g.from_dlpack(f)
        assert t.device == d and t.shape == (4,) and t.data_ptr() == 0x10
        for use in (t.tolist, t.copy, t.numpy, lambda t=t: t.__setitem__(0, 1), lambda t=t: t.astype("int16"), lambda t=t: memoryview(t)):
            assert isinstance(bad(use), (BufferError, TypeError))
        assert type(bad(lambda t=t: t.__dlpack__(stream=5))) is BufferError
        p = peek(t.__dlpack__(max_version=(1, 3)))
        assert (p["dev"] == d and p["data"] == 0x10 and "stream" not in f.calls[0]) or d[0] == 10
        assert repr(t)
        del t, use
        assert f.balanced()


def test_what_is_said_and_what_is_sent_must_agree():
    # case H04, https://github.com/tensorflow/tensorflow/issues/41307
    class P(Fake):
        def __dlpack_device__(self):
            return (1, 0)

    f = P(dev=(2, 0))
    assert type(bad(lambda: g.from_dlpack(f))) is BufferError
    assert f.balanced()

    class Q(Fake):
        def __dlpack_device__(self):
            return (2, 0)

    f = Q(dev=(1, 0))
    assert type(bad(lambda: g.from_dlpack(f))) is BufferError
    assert f.balanced()

    class R(Fake):
        def __dlpack_device__(self):
            return (2, 1)

    f = R(dev=(2, 0))
    bad(lambda: g.from_dlpack(f))
    assert f.balanced()

    class S(Fake):
        def __dlpack_device__(self):
            return (3, 0)

    assert values(g.from_dlpack(S(dev=(1, 0)))) == [0, 1, 2, 3]  # both are host memory


def test_a_move_is_asked_of_the_producer_and_checked():
    class Moves(Fake):
        def __dlpack__(self, **kw):
            self.calls.append(kw)
            if tuple(kw.get("dl_device") or ()) == (1, 0):
                return moved.capsule()
            return self.capsule()

    moved = Fake(flags=2)
    f = Moves(dev=(2, 0))
    t = g.from_dlpack(f, device="cpu")
    assert values(t) == [0, 1, 2, 3] and f.calls[0]["dl_device"] == (1, 0) and f.calls[0].get("stream") is None
    assert type(f.calls[0]["dl_device"]) is tuple
    moved = Fake(flags=2)
    assert type(bad(lambda: g.from_dlpack(Moves(dev=(2, 0)), device="cpu", copy=False))) is BufferError
    assert moved.balanced()
    stays = Fake(dev=(2, 0))
    assert type(bad(lambda: g.from_dlpack(stays, device="cpu"))) is BufferError
    assert stays.balanced()
    assert type(bad(lambda: g.from_dlpack(Fake(dev=(2, 0)), device="cpu", copy=False))) is BufferError  # case D07


def test_an_old_producer_that_cannot_move_is_not_asked_twice_in_silence():
    f = Fake(dev=(2, 0), old_api=True)
    e = bad(lambda: g.from_dlpack(f, device="cpu"))
    assert isinstance(e, (BufferError, TypeError)) and f.balanced()


# --- read-only and copies ---


def test_read_only_is_what_the_flag_says():
    # case D01, https://github.com/numpy/numpy/issues/28599
    f = Fake(flags=0)
    m = memoryview(g.from_dlpack(f))
    assert not m.readonly
    m[0] = 99
    assert bytes(f.buf)[0] == 99
    assert memoryview(g.from_dlpack(Fake(flags=1))).readonly
    assert not memoryview(g.from_dlpack(Fake(ver=None))).readonly
    a = np.from_dlpack(g.from_dlpack(Fake(flags=1)))
    assert not a.flags.writeable  # case D06


def test_a_read_only_tensor_goes_out_versioned_or_not_at_all():
    # cases D02 https://github.com/numpy/numpy/issues/20742 and D03 https://github.com/developmentseed/zarrista/issues/108
    t = g.from_buffer(b"abcd")
    p = peek(t.__dlpack__(max_version=(1, 0)))
    assert p["flags"] & 1 and p["name"] == N1
    for keywords in ({}, {"max_version": (0, 8)}, {"copy": False}):
        assert type(bad(lambda k=keywords: t.__dlpack__(**k))) is BufferError
    assert peek(t.__dlpack__(copy=True))["name"] == N0


def test_copy_is_kept_whatever_the_producer_does():
    # case D07
    f = Fake()
    a = g.from_dlpack(f, copy=False)
    f.buf[0] = 77
    assert a[0].item() == 77 and f.calls[0].get("copy") in (None, False)
    f = Fake(flags=1)
    b = g.from_dlpack(f, copy=True)
    assert f.freed == 1 and b.data_ptr() != f.pointer and not b.readonly and values(b) == [0, 1, 2, 3]
    b[0] = 5
    f = Fake(flags=2)
    assert type(bad(lambda: g.from_dlpack(f, copy=False))) is BufferError
    assert f.balanced()
    f = Fake(flags=3)
    c = g.from_dlpack(f, copy=True)
    assert not c.readonly
    f = Fake()
    assert values(g.from_dlpack(f.capsule(), copy=True)) == [0, 1, 2, 3]
    assert f.freed == 1


def test_copy_takes_any_truth_and_passes_its_errors_on():
    class Truth:
        def __bool__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        g.from_dlpack(Fake(), copy=Truth())
    with pytest.raises(ZeroDivisionError):
        g.zeros(1).__dlpack__(copy=Truth())


def test_read_only_arrays_of_an_old_numpy_come_through_the_buffer():
    class Old:
        def __init__(self, a):
            self.a = a

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, stream=None):
            raise BufferError("Cannot export readonly array")

        def __buffer__(self, flags):
            return memoryview(b"abc")

    try:
        memoryview(Old(None))
    except TypeError:
        return  # before Python 3.12 classes have no __buffer__
    t = g.from_dlpack(Old(None))
    assert t.readonly and values(t) == [97, 98, 99]


# --- offsets, strides, shapes ---


def test_byte_offsets_are_added():
    # case F03, https://github.com/NVIDIA/cutlass/issues/3450
    f = Fake(off=4, ty=(2, 32, 1))
    t = g.from_dlpack(f)
    assert values(t) == list(struct.unpack_from("<4f", bytes(range(64)), 4)) and t.data_ptr() == f.pointer + 4
    for k in range(16):
        assert values(g.from_dlpack(Fake(off=k))) == [k, k + 1, k + 2, k + 3]  # case J01
        assert peek(g.from_dlpack(Fake(off=k)).__dlpack__())["off"] == 0


@pytest.mark.parametrize("off", [2**64 - 1, 2**63, 2**64 - 8, 2**64 - 2**40])
def test_offsets_that_wrap_are_refused(off):
    # case F04, https://github.com/tensor4all/tenferro-rs/issues/474
    for dev in ((1, 0), (2, 0)):
        f = Fake(off=off, dev=dev)
        bad(lambda f=f: g.from_dlpack(f))
        assert f.balanced()


def test_null_strides_mean_row_major():
    # case F05, https://github.com/cupy/cupy/issues/2095
    for ver in (None, (1, 0), (1, 1)):
        t = g.from_dlpack(Fake(bytes(range(6)), (2, 3), strides=None, ver=ver))
        assert t.strides == (3, 1) and values(t) == [[0, 1, 2], [3, 4, 5]]
        assert peek(t.__dlpack__(max_version=(1, 3)))["strides"] == [3, 1]


def test_a_scalar_needs_neither_shape_nor_strides():
    # case F07, https://github.com/numpy/numpy/pull/29872
    assert g.from_dlpack(Fake(bytes(8), (), ty=(0, 64, 1), shape_null=True, strides=None)).item() == 0
    assert peek(g.asarray(5).__dlpack__())["ndim"] == 0 and np.from_dlpack(g.asarray(5)).shape == ()


@pytest.mark.parametrize("fault", [
    {"ndim": -1}, {"ndim": 65}, {"ndim": 2**31 - 1}, {"ndim": -(2**31)}, {"shape_null": True}, {"null": True}, {"null": True, "shape": ()}, {"shape": (-1,)}, {"shape": (4, -(2**63))},
    {"shape": (-1,), "strides": [1]}, {"shape": (4, -(2**63)), "strides": [1, 1]}, {"shape": (-(2**63), 4), "strides": [4, 1]}, {"shape": (-(2**63),), "strides": [-(2**63)]},
    {"shape": (0, -1)}, {"shape": (-1, 0)}, {"ty": (2, 32, 0)}, {"ty": (2, 0, 1)}, {"ty": (0, 4, 1)}, {"ty": (2, 33, 1)}, {"ty": (255, 255, 65535)}, {"dev": (2, -1)}, {"dev": (2, -(2**31))},
])  # fmt: skip
@pytest.mark.parametrize("ver", [None, (1, 1)])
def test_a_broken_field_is_a_buffer_error_and_the_tensor_is_given_back(fault, ver):
    for make in (lambda f: f, lambda f: f.capsule()):
        f = Fake(**{"strides": None, **fault}, ver=ver)
        e = bad(lambda f=f, make=make: g.from_dlpack(make(f)))
        assert type(e) is BufferError and f.balanced() and f.freed == 1, repr(e)
        with pytest.raises(BufferError):
            g.asarray(make(Fake(**{"strides": None, **fault}, ver=ver)))


def test_sizes_that_overflow_are_refused():
    # case F18, https://github.com/tensorflow/tensorflow/pull/116201
    alone("""
        import dlferry as g
        from support import Fake, bad
        for shape in ((2**32, 2**32, 16), (2**62, 4), (2**63 - 1,), (3, 2**62), (2**31, 2**31, 2), (2**61,)):
            f = Fake(shape=shape, ty=(0, 32, 1))
            assert type(bad(lambda: g.from_dlpack(f))) is BufferError
            assert f.balanced() and f.freed == 1
        for strides, shape in (([2**62], (2,)), ([-(2**63)], (2,)), ([2**63 - 1, 1], (2, 2)), ([2**60, 2**60], (9, 9)), ([2**62, -(2**62)], (2, 2)), ([-(2**62)], (3,))):
            f = Fake(shape=shape, strides=strides, ty=(0, 64, 1))
            assert type(bad(lambda: g.from_dlpack(f))) is BufferError, (strides, shape)
            assert f.balanced()
        for dev in ((1, 0), (2, 0)):  # the span leaves the address space though every product fits
            f = Fake(shape=(2,), strides=[2**62], ty=(1, 8, 1), dev=dev, data=2**64 - 2**20)
            assert type(bad(lambda: g.from_dlpack(f))) is BufferError
            f = Fake(shape=(2,), strides=[-(2**40)], ty=(1, 8, 1), dev=dev, data=2**20)
            assert type(bad(lambda: g.from_dlpack(f))) is BufferError
        f = Fake(shape=(0, 2**62, 2**62))
        try:
            t = g.from_dlpack(f)
        except BufferError:
            pass
        else:
            assert t.size == 0 and t.copy().shape == t.shape
    """)


def test_a_huge_empty_tensor_can_be_printed():
    alone(
        """
        import dlferry as g
        from support import Fake
        for shape in ((2**40, 0), (0, 2**40), (3, 2**40, 0), (2**20, 2**20, 0, 5)):
            assert "shape" in repr(g.from_dlpack(Fake(shape=shape, strides=None, null=True)))
            assert "shape" in repr(g.empty(shape))
    """,
        timeout=30,
    )


def test_the_extents_of_one_element_may_have_any_stride():
    t = g.from_dlpack(Fake(bytes([9]), (1, 1), strides=[2**62, -(2**62)]))
    assert values(t) == [[9]] and values(t[::-1]) == [[9]] and t.is_contiguous() and t.copy().tolist() == [[9]] and repr(t)
    assert values(t[None, :, :, None]) == [[[[9]]]] and values(t.reshape(1, copy=False)) == [9] and values(t.T) == [[9]]


def test_negative_strides_are_read_backwards():
    # case F12, https://github.com/pytorch/pytorch/issues/188023
    alone("""
        import dlferry as g, numpy as np
        assert g.from_dlpack(np.arange(6.)[::-1]).tolist() == [5, 4, 3, 2, 1, 0]
        assert sum(map(sum, g.from_dlpack(np.arange(12.).reshape(3, 4)[:, ::-1]).tolist())) == 66
    """)


def test_overlapping_elements_are_read():
    assert values(g.from_dlpack(Fake(bytes(range(8)), (4, 3), strides=[1, 1]))) == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert values(g.from_dlpack(Fake(bytes([5]), (2, 3), strides=[0, 0]))) == [[5] * 3] * 2


def test_up_to_64_axes_are_taken():
    for n in (8, 9, 32, 64):
        f = Fake(bytes(2), (1,) * (n - 1) + (2,))
        t = g.from_dlpack(f)
        assert t.ndim == n and t.reshape(2).tolist() == [0, 0] and g.from_dlpack(t.__dlpack__(max_version=(1, 3))).shape == t.shape and repr(t)
        assert t.copy().shape == t.shape and t[0].ndim == n - 1
        del t
        assert f.balanced()


# --- element types ---


def test_vector_types_are_carried_without_values():
    # case G04, https://github.com/cupy/cupy/pull/5045
    assert type(bad(lambda: g.from_dlpack(Fake(ty=(2, 32, 0))))) is BufferError
    t = g.from_dlpack(Fake(ty=(2, 32, 4), shape=(1,)))
    assert t.itemsize == 16 and isinstance(bad(t.tolist), BufferError) and peek(t.__dlpack__())["ty"] == (2, 32, 4) and t.dtype == "float32x4"
    assert "no values" in repr(t)
    assert peek(g.asarray([1j]).__dlpack__())["ty"] == (5, 128, 1)


def test_padded_sub_byte_types_are_carried_and_keep_their_flag():
    t = g.from_dlpack(Fake(bytes(8), (8,), ty=(0, 4, 1), flags=4))
    assert t.itemsize == 1 and t.nbytes == 8
    assert peek(t.__dlpack__(max_version=(1, 3)))["flags"] & 4 and peek(t[2:].__dlpack__(max_version=(1, 3)))["flags"] & 4
    assert type(bad(lambda: t.__dlpack__())) is BufferError


def test_unaligned_elements_are_copied_or_refused():
    # case J02, https://github.com/VoVAllen/tf-dlpack/issues/4
    for ty, code in (((2, 32, 1), "f"), ((0, 64, 1), "q"), ((5, 64, 1), "ff"), ((1, 16, 1), "H")):
        f = Fake(bytes(range(64)), (3,), ty=ty, off=1)
        assert type(bad(lambda f=f: g.from_dlpack(f, copy=False))) is BufferError
        assert f.balanced()
        t = g.from_dlpack(f)
        raw = struct.unpack_from("<" + code * 3, bytes(range(64)), 1)
        assert values(t) == (list(raw) if len(code) == 1 else [complex(*raw[i : i + 2]) for i in (0, 2, 4)])
        assert t.data_ptr() % 16 == 0 and f.freed == 2
    f = Fake(bytes(range(64)), (3,), ty=(2, 32, 1), off=1, flags=1)
    assert g.from_dlpack(f).readonly in (False, True)
    assert f.balanced()


def test_a_producer_that_drops_its_memory_after_the_export_is_its_own_fault_but_the_struct_is_ours():
    f = Fake(bytes(range(6)), (2, 3))
    t = g.from_dlpack(f)
    f.shape[0], f.shape[1], f.strides[0] = 2**40, 7, -5
    f.m.t.data = None
    assert t.shape == (2, 3) and t.strides == (3, 1) and values(t) == [[0, 1, 2], [3, 4, 5]]


def test_a_deleter_that_raises_is_heard_by_nobody_else():
    alone("""
        import dlferry as g, sys
        from support import Fake
        seen = []
        sys.unraisablehook = lambda u: seen.append(type(u.exc_value))
        class F(Fake):
            def _free(self, p):
                super()._free(p)
                raise KeyError("deleter")
        f = F()
        t = g.from_dlpack(f)
        del t
        assert f.freed == 1 and seen == [KeyError]
        f = F(ndim=-1)
        try:
            g.from_dlpack(f)
        except BufferError:
            pass
        else:
            raise SystemExit("accepted")
        assert f.freed == 1
    """)
