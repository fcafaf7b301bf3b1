"""convert without the frameworks; tests_py/interop has the rest."""

import collections
import struct

import numpy as np
import pytest
from support import FREE, Fake, New, Table, bad, exchange_type

import dlferry as g


def address(a):
    return a.__array_interface__["data"][0]


@pytest.mark.parametrize("to", [np.ndarray, "numpy", "numpy.ndarray", np])
def test_every_spelling_of_numpy_shares_the_memory(to):
    f = Fake(bytes(range(6)), (2, 3))
    a = g.convert(f, to)
    assert type(a) is np.ndarray and address(a) == f.pointer and a.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert g.convert(a, to) is a and g.convert(a, to, copy=False) is a and address(g.convert(a, to, copy=True)) != address(a)


@pytest.mark.parametrize("to", [g.Tensor, "dlferry", "dlferry.Tensor"])
def test_convert_to_our_own_type_shares(to):
    a = np.arange(4)
    t = g.convert(a, to)
    assert type(t) is g.Tensor and t.data_ptr() == address(a) and g.convert(t, to) is t and g.convert(t, to, copy=True).data_ptr() != t.data_ptr()

    class Sub(g.Tensor):
        pass

    assert type(g.convert(a, Sub)) is Sub


def test_read_only_stays_read_only_in_numpy():
    a = g.convert(g.from_buffer(b"abc"), "numpy")
    assert not a.flags.writeable
    assert g.convert(a, "dlferry").readonly and g.convert(g.from_buffer(b"abc"), "numpy", copy=True).flags.writeable


def test_containers_keep_their_kind_and_what_is_no_tensor_stays():
    Pair = collections.namedtuple("Pair", "x y")
    t = g.asarray([1, 2])
    d = collections.defaultdict(list, a=t)
    o = collections.OrderedDict(b=t, a=5)

    class L(list):
        pass

    x = {"a": t, "b": [t, (t, None, "text", 1.5)], "c": Pair(t, 3), "d": d, "o": o, "l": L([t]), "e": {}, "f": (), "g": []}
    y = g.convert(x, "numpy")
    assert type(y) is dict and list(y) == list(x)
    arrays = [y["a"], y["b"][0], y["b"][1][0], y["c"].x, y["d"]["a"], y["o"]["b"], y["l"][0]]
    assert all(type(a) is np.ndarray and address(a) == t.data_ptr() for a in arrays)
    assert y["a"] is y["b"][0], "one tensor is converted once"
    assert y["b"][1][1:] == (None, "text", 1.5) and type(y["c"]) is Pair and y["c"].y == 3
    assert (
        type(y["d"]) is collections.defaultdict
        and y["d"].default_factory is list
        and type(y["o"]) is collections.OrderedDict
        and list(y["o"]) == ["b", "a"]
    )
    assert type(y["l"]) is L and y["e"] == {} and y["f"] == () and y["g"] == []
    assert x["a"] is t and x["d"]["a"] is t, "the argument is left as it was"


def test_copy_true_reaches_into_containers():
    t = g.asarray([1])
    a, b = g.convert([t, t], "numpy", copy=True)
    assert address(a) != t.data_ptr() and a is b


def test_containers_that_contain_themselves_are_a_value_error():
    x = []
    x.append(x)
    d = {}
    d["d"] = [d]
    for thing in (x, d):
        with pytest.raises(ValueError, match="contains itself"):
            g.convert(thing, "numpy")
    y = [1]
    assert g.convert([y, y], "numpy") == [[1], [1]]


def test_an_error_in_a_container_leaves_nothing_behind():
    # case A07, https://github.com/microsoft/onnxruntime/pull/32732
    first, second = Fake(), Fake(raises=KeyError("second"))
    with pytest.raises(KeyError, match="second"):
        g.convert([first, second, Fake()], "numpy")
    second.raises = None  # its traceback holds the frames of convert
    assert first.balanced()


@pytest.mark.parametrize("to", ["nothing", "", "numpy.matrix", "os", "Torch", "dlferry.asarray", "sys.modules"])
def test_an_unknown_name_is_a_value_error_that_lists_the_known(to):
    with pytest.raises(ValueError, match=r"convert: to, got .*numpy, torch"):
        g.convert(g.zeros((1,)), to)


@pytest.mark.parametrize("to", [5, None, int, object, dict, [np.ndarray], np.float64])
def test_a_target_that_holds_no_tensors_is_a_type_error(to):
    with pytest.raises(TypeError, match="convert: to, got"):
        g.convert(g.zeros((1,)), to)


def test_a_library_that_is_not_there_is_an_import_error_with_advice():
    with pytest.raises(ImportError) as e:
        g.convert(g.zeros((1,)), "cupy")
    assert any("install" in n for n in e.value.__notes__)


@pytest.mark.parametrize("x", [5, None, "text", object(), int])
def test_a_source_that_is_no_tensor_is_a_type_error(x):
    with pytest.raises(TypeError):
        g.convert(x, "numpy")


def test_buffers_and_raw_capsules_are_sources_too():
    b = bytearray(b"abc")
    a = g.convert(b, "numpy")
    a[0] = 0
    assert b[0] == 0
    f = Fake()
    a = g.convert(f.capsule(), "numpy")
    assert a.tolist() == [0, 1, 2, 3] and f.freed == 0
    del a
    assert f.balanced()


def test_copy_false_never_copies_what_is_unaligned():
    # case J02, https://github.com/VoVAllen/tf-dlpack/issues/4
    for to in ("numpy", "dlferry"):
        f = Fake(bytes(range(64)), (3,), ty=(2, 32, 1), off=1)
        assert g.convert(f, to).tolist() == list(struct.unpack_from("<3f", bytes(range(64)), 1))
        e = bad(lambda to=to: g.convert(Fake(bytes(range(64)), (3,), ty=(2, 32, 1), off=1), to, copy=False))
        assert type(e) is BufferError


def test_copy_false_refuses_what_the_producer_copied():
    # case D07: the flag says that the producer copied
    for to in ("numpy", "dlferry"):
        assert type(bad(lambda to=to: g.convert(Fake(flags=2), to, copy=False))) is BufferError


def test_a_type_with_an_exchange_table_is_a_target():
    taken = []

    class Got:
        pass

    def take(m):
        taken.append(m)
        return got

    got = Got()
    table = Table(lambda o: 0, take)
    P = exchange_type(table.capsule())
    t = g.asarray([1, 2, 3])
    assert g.convert(t, P) is got and len(taken) == 1
    m = New.from_address(taken[0])
    assert m.t.data == t.data_ptr() and (m.major, m.minor) == g.DLPACK_VERSION and m.flags == 0
    FREE(m.free)(taken[0])
    del got


@pytest.mark.parametrize("source", [lambda: g.from_buffer(b"abc"), lambda: g.asarray([1, 2, 3])[::-1]])
def test_a_table_target_gets_no_read_only_and_no_reversed_memory(source):
    def take(m):
        s = New.from_address(m)
        seen.append((s.flags, s.t.data, [s.t.strides[i] for i in range(s.t.ndim)]))
        FREE(s.free)(m)
        return "object"

    seen = []
    P = exchange_type(Table(lambda o: 0, take).capsule())
    t = source()
    try:
        g.convert(t, P)
    except BufferError:
        pass
    else:
        assert seen[0][0] & 1 == 0 or seen[0][1] != t.data_ptr()
        assert seen[0][1] != t.data_ptr() or not t.readonly
    try:
        g.convert(t, P, copy=False)
    except BufferError:
        pass
    else:
        assert not t.readonly, "read-only memory was handed out writable with copy=False"


def test_a_class_is_known_by_its_package_and_the_end_of_its_name():
    from dlferry import _convert

    odd = type("Array", (), {"__module__": "numpy", "__qualname__": "_core._multiarray.ndarray"})  # as JAX 0.10 names jax.Array
    assert _convert._resolve_type(odd)[0] is _convert._TARGETS["numpy"]


@pytest.mark.parametrize("name", ["numpy.ndarray", "torch.Tensor", "jax.Array", "tvm_ffi.Tensor"])
def test_the_public_type_of_a_library_is_a_target(name):
    package, _, cls = name.partition(".")
    module = pytest.importorskip(package, reason=f"needs {package}, not installed for this Python")
    made = g.convert(g.zeros((3,)), getattr(module, cls))
    assert isinstance(made, getattr(module, cls)) and made.shape == (3,)
