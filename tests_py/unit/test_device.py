import copy
import enum
import pickle

import pytest
from support import Fake, bad, requires

import dlferry as g

TYPES = {
    1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 11: "rocm_host", 12: "ext_dev",
    13: "cuda_managed", 14: "oneapi", 15: "webgpu", 16: "hexagon", 17: "maia", 18: "trn",
}  # fmt: skip


def test_a_device_equals_its_pair_and_its_name():
    d = g.Device("cuda:1")
    assert d == (2, 1) == d and d == "cuda:1" and d != "cuda:0" and d != "cuda" and d != (2, 0)
    assert g.Device(2, 1) == d == g.Device((2, 1)) == g.Device(d)
    assert hash(d) == hash((2, 1)) and {d: 1}[2, 1] == 1
    assert (d.type, d.id, d.name, str(d)) == (2, 1, "cuda", "cuda:1")
    assert str(g.Device("cpu")) == "cpu" and g.Device("cpu:0") == "cpu"


def test_every_device_type_has_a_name_that_reads_back():
    for number, name in TYPES.items():
        d = g.Device(number, 0)
        assert d.name == name and g.Device(str(d)) == d


def test_an_unknown_device_type_is_carried_by_number():
    t = g.from_dlpack(Fake(dev=(99, 3)))
    assert t.device == (99, 3) and str(t.device) == "device99:3" and g.Device("device99:3") == t.device
    assert "device99:3" in repr(t)


def test_devices_pickle_and_copy():
    for d in (g.Device("cuda:3"), g.Device("cpu"), g.Device(99, 1)):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(d, protocol)) == d
        assert copy.deepcopy(d) == d and type(copy.copy(d)) is g.Device


@pytest.mark.parametrize(
    "spelling",
    ["cuda:-1", "cuda:x", "gpu", "cpu:1", "cuda:", "cuda:01", "cuda: 1", "", ":1", "cuda:9999999999", (1, 7), (2, -1), (0, 0), (1,), (1, 0, 0)],
)
def test_a_device_that_does_not_exist_is_a_value_error(spelling):
    # case H06, https://github.com/IntelPython/dpctl/pull/1560
    with pytest.raises(ValueError, match="device: "):
        g.Device(spelling)
    f = Fake()
    assert isinstance(bad(lambda: g.from_dlpack(f, device=spelling)), ValueError)
    assert f.balanced()


@pytest.mark.parametrize("thing", [object(), 5, 1.5, ("1", "0"), (1, None), (1.0, 0), b"cpu"])
def test_what_is_no_device_is_a_type_error(thing):
    with pytest.raises(TypeError, match="device: "):
        g.Device(thing)
    assert isinstance(bad(lambda: g.from_dlpack(Fake(), device=thing)), TypeError)


def test_a_device_that_is_not_here_is_a_buffer_error():
    f = Fake()
    assert isinstance(bad(lambda: g.from_dlpack(f, device=(2, 4096))), BufferError)
    assert f.balanced()
    assert isinstance(bad(lambda: g.empty((2,), device="cuda")), BufferError)
    assert isinstance(bad(lambda: g.asarray([1], device="cuda:1")), BufferError)


def test_int_enums_and_int_subclasses_are_integers():
    # case H03, https://github.com/ml-explore/mlx/pull/1165
    class Kind(enum.IntEnum):
        CPU = 1

    class P(Fake):
        def __dlpack_device__(self):
            return Kind.CPU, Kind(1) - 1

    assert g.from_dlpack(P()).tolist() == [0, 1, 2, 3]
    assert g.Device(Kind.CPU, 0) == "cpu"


def test_our_device_pair_is_two_plain_ints():
    # case H02, https://github.com/PaddlePaddle/Paddle/pull/69632
    for t in (g.empty((1,)), g.from_dlpack(Fake(dev=(2, 3)))):
        d = t.__dlpack_device__()
        assert type(d) is tuple and len(d) == 2 and all(type(x) is int for x in d)


@pytest.mark.parametrize("number", [0, -1, 5, 2**31 - 1, -(2**31)])
def test_the_id_of_host_memory_is_ignored_on_import_and_zero_on_export(number):
    # case H02
    for kind in (1, 3, 11):
        t = g.from_dlpack(Fake(dev=(kind, number)))
        assert t.device == (kind, 0) and t.__dlpack_device__() == (kind, 0)


@pytest.mark.parametrize("said", [(1, None)])
def test_a_cpu_device_without_id_is_accepted(said):
    # case H02
    f = Fake()
    f.dev = said
    f.__class__ = type("P", (Fake,), {"__dlpack_device__": lambda self: said})
    assert g.from_dlpack(f).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("said", [1, (1,), ("1", "0"), (1, 0, 0), None, [1, 0], "cpu", (None, 0), (2**40, 0), (1, 2**70), (-1, 0), (1, 2**31), 2.5])
def test_a_device_that_is_no_pair_of_ints_is_a_type_error(said):
    # case H02
    class P(Fake):
        def __dlpack_device__(self):
            return said

    f = P()
    e = bad(lambda: g.from_dlpack(f))
    assert isinstance(e, (TypeError, ValueError)) and "__dlpack_device__" in str(e), repr(e)
    assert f.calls == []


@pytest.mark.parametrize("kind", [0, -1, -(2**31), 5, 6, 20, 2**31 - 1])
def test_a_struct_with_a_strange_device_type_is_refused_or_fully_usable(kind):
    class P(Fake):
        def __dlpack_device__(self):
            return (kind, 0)

    f = P(dev=(kind, 0))
    try:
        t = g.from_dlpack(f)
    except (BufferError, TypeError, ValueError):
        assert f.balanced()
        return
    assert t.device == (kind, 0)
    assert repr(t) and str(t.device)
    assert isinstance(bad(t.tolist), BufferError)
    # the same without the method, where only the struct speaks
    assert g.from_dlpack(Fake(dev=(kind, 0)).capsule()).device == (kind, 0)


@pytest.mark.parametrize("kind", [0, -1, -(2**31)])
def test_a_raw_capsule_with_an_impossible_device_type_is_refused_or_fully_usable(kind):
    f = Fake(dev=(kind, 0))
    try:
        t = g.from_dlpack(f.capsule())
    except BufferError:
        assert f.balanced()
        return
    assert t.device == (kind, 0) and repr(t)


def test_a_negative_device_id_is_refused_before_it_is_used():
    # case H02
    for kind in (2, 10, 13, 14, 99):
        f = Fake(dev=(kind, -1))
        if kind != 13:
            bad(lambda f=f: g.from_dlpack(f))
        assert f.balanced()


def test_the_device_outlives_its_producer():
    # case H07, https://github.com/tensorflow/tensorflow/issues/37986
    t = g.from_dlpack(Fake(dev=(2, 1)))
    d = t.device
    del t
    assert str(d) == "cuda:1"


@requires("torch")
def test_torch_devices_name_theirs():
    import torch

    assert g.Device(torch.device("cpu")) == "cpu"
    assert g.Device(torch.device("cuda", 1)) == "cuda:1"
    assert g.Device(torch.device("cuda")) == "cuda:0"
    assert g.Device(torch.device("mps")) == "metal:0"
    bad(lambda: g.Device(torch.device("meta")))


@requires("jax")
def test_jax_devices_name_theirs():
    import jax

    assert g.Device(jax.devices("cpu")[0]) == "cpu"
