import inspect

import pytest
from support import N1, U1, Fake, bad, capsule_name, peek

import dlferry as g

PUBLIC = {
    "from_dlpack": "(x, /, *, device=None, copy=None, stream=Ellipsis)",
    "from_buffer": "(obj, /)",
    "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "empty": "(shape, *, dtype='float32', device='cpu')",
    "zeros": "(shape, *, dtype='float32', device='cpu')",
    "full": "(shape, fill_value, *, dtype='float32', device='cpu')",
    "from_address": "(address, /)",
    "wrap_pointer": "(ptr, shape, dtype, *, strides=None, device='cpu', readonly=False, owner=None)",
    "convert": "(x, to, /, *, copy=None)",
    "ledger": "()",
}
METHODS = {
    "reshape": "(self, shape, /, *, copy=None)",
    "permute_dims": "(self, axes, /)",
    "astype": "(self, dtype, /, *, copy=True)",
    "to": "(self, device, /, *, copy=None)",
    "copy": "(self, /)",
    "contiguous": "(self, /)",
    "is_contiguous": "(self, /)",
    "data_ptr": "(self, /)",
    "item": "(self, /)",
    "tolist": "(self, /)",
    "close": "(self, /)",
    "numpy": "(self, /)",
    "torch": "(self, /)",
    "__dlpack__": "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
    "__dlpack_device__": "(self, /)",
    "__array__": "(self, dtype=None, copy=None)",
}


def bare(f):
    s = inspect.signature(f)
    s = s.replace(parameters=[p.replace(annotation=p.empty) for p in s.parameters.values()], return_annotation=s.empty)
    return str(s)


@pytest.mark.parametrize("name", PUBLIC)
def test_functions_have_the_documented_signature_and_a_text(name):
    f = getattr(g, name)
    assert bare(f).replace("stream=...", "stream=Ellipsis") == PUBLIC[name]
    assert f.__doc__ and not f.__doc__.startswith(name + "(")


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_documented_signature_and_a_text(name):
    f = getattr(g.Tensor, name)
    assert bare(f) == METHODS[name]
    assert f.__doc__ and f.__name__ == name


def test_tensor_has_a_signature_and_public_things_a_module():
    assert bare(g.Tensor) == "(obj, /, *, dtype=None, device=None, copy=None)"
    assert g.Tensor.__module__ == "dlferry" and g.Tensor.__qualname__ == "Tensor" and g.Tensor.reshape.__module__ == "dlferry"


CALLS = [
    lambda: g.from_dlpack(),
    lambda: g.from_dlpack(Fake(), "cpu"),
    lambda: g.from_dlpack(Fake(), None, None),
    lambda: g.from_dlpack(Fake(), dl_device=(1, 0)),
    lambda: g.from_dlpack(x=Fake()),
    lambda: g.from_dlpack(Fake(), Copy=True),
    lambda: g.asarray(),
    lambda: g.asarray([1], "int8"),
    lambda: g.asarray(obj=[1]),
    lambda: g.empty(),
    lambda: g.empty((1,), "int8"),
    lambda: g.empty((1,), size=2),
    lambda: g.empty((1,), shape=(1,)),
    lambda: g.zeros((1,), order="C"),
    lambda: g.full((1,)),
    lambda: g.full((1,), 1, "int8"),
    lambda: g.from_buffer(),
    lambda: g.from_buffer(b"", b""),
    lambda: g.from_address(),
    lambda: g.wrap_pointer(0, (0,)),
    lambda: g.wrap_pointer(0, (0,), "int8", (1,)),
    lambda: g.convert(g.zeros(1)),
    lambda: g.convert(g.zeros(1), to="numpy"),
    lambda: g.convert(x=g.zeros(1), to="numpy"),
    lambda: g.convert(g.zeros(1), "numpy", False),
    lambda: g.ledger(1),
    lambda: g.Tensor(),
    lambda: g.Tensor(1, 2),
    lambda: g.Tensor(1, type="int8"),
    lambda: g.Tensor(obj=1),
    lambda: g.Tensor(1, dtype="int8", device=None, copy=None, more=1),
    lambda: g.zeros(1).__dlpack__(None),
    lambda: g.zeros(1).__dlpack__(device="cpu"),
    lambda: g.zeros(1).__dlpack__(streams=None),
    lambda: g.zeros(1).reshape(1, 1),
    lambda: g.zeros(1).reshape(shape=1),
    lambda: g.zeros(1).astype(),
    lambda: g.zeros(1).astype("int8", False),
    lambda: g.zeros(1).tolist(1),
    lambda: g.zeros(1).permute_dims(axes=(0,)),
    lambda: g.Tensor.tolist(),
    lambda: g.Tensor.tolist(5),
    lambda: g.Tensor.__dlpack__(5),
    lambda: g.Tensor.shape.__get__(5),
]


@pytest.mark.parametrize("i", range(len(CALLS)))
def test_a_wrong_call_is_a_type_error(i):
    # case D09, https://github.com/cupy/cupy/pull/8683
    with pytest.raises(TypeError):
        CALLS[i]()


def test_keyword_names_are_compared_by_value_in_every_order():
    # case E05, https://github.com/wjakob/nanobind/pull/1371
    t = g.asarray([1])
    key = "".join(["co", "py"])
    for keywords in (
        {"max_version": (1, 0), key: True},
        {key: True, "max_version": (1, 0)},
        {key: True, "stream": None, "max_version": (1, 0), "dl_device": None},
    ):
        assert peek(t.__dlpack__(**keywords))["flags"] & 2


def test_what_is_no_text_cannot_be_a_keyword():
    with pytest.raises(TypeError):
        g.empty((1,), **{"dty\0pe": "int8"})
    with pytest.raises(TypeError):
        g.empty((1,), **{"\ud800": 1})


def test_max_version_decides_the_capsule():
    # case D10, https://github.com/NVIDIA/DALI/pull/6307
    t = g.asarray([1])
    for v, name in ((None, b"dltensor"), ((0, 8), b"dltensor"), ((0, 0), b"dltensor"), ((1, 0), N1), ((1, 99), N1), ((2, 0), N1), ((2**40, 0), N1)):
        p = peek(t.__dlpack__(max_version=v))
        assert p["name"] == name and (p["ver"] is None or p["ver"] == g.DLPACK_VERSION)
    for v in (1, "1.0", (1,), (1, 0, 0), ("1", 0), (1.0, 0), object()):
        assert isinstance(bad(lambda v=v: t.__dlpack__(max_version=v)), TypeError)
    assert g.DLPACK_VERSION[0] == 1 and g.DLPACK_VERSION >= (1, 3)


def test_stream_on_the_cpu_is_none_or_ignored():
    t = g.asarray([1])
    for s in (None, -1, 0, 1, 2, 2**40):
        assert t.__dlpack__(stream=s) is not None
    for s in ("x", 1.5, object(), (1,)):
        assert isinstance(bad(lambda s=s: t.__dlpack__(stream=s)), TypeError)


def test_dl_device_is_ours_or_refused():
    t = g.asarray([1])
    assert t.__dlpack__(dl_device=None) and t.__dlpack__(dl_device=(1, 0))
    for d in ((2, 0), (99, 1), (2**32 + 1, 0), (0, 0)):
        assert type(bad(lambda d=d: t.__dlpack__(dl_device=d))) is BufferError
    for d in ("cpu", 1, (1,), (1, 0, 0), (1, None)):
        assert isinstance(bad(lambda d=d: t.__dlpack__(dl_device=d)), TypeError)


def test_copy_true_exports_a_private_copy_that_says_so():
    # case D07, https://github.com/jax-ml/jax/issues/29810
    t = g.from_buffer(b"abc")
    p = peek(c := t.__dlpack__(max_version=(1, 0), copy=True))
    assert p["flags"] == 2 and p["data"] != t.data_ptr() and capsule_name(c) == N1
    assert peek(t.__dlpack__(max_version=(1, 0), copy=False))["data"] == t.data_ptr() == peek(t.__dlpack__(max_version=(1, 0)))["data"]
    legacy = peek(t.__dlpack__(copy=True))
    assert legacy["data"] != t.data_ptr()
    u = g.from_dlpack(c)
    assert capsule_name(c) == U1 and not u.readonly
