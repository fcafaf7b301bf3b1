"""PyTorch: both ways over one memory, and tensors that mean more than their bytes."""

import gc

import numpy as np
import pytest
from support import Fake, alone, bad, peek, requires

import dlferry as g

pytestmark = requires("torch")
torch = pytest.importorskip("torch", reason="needs torch, not installed for this Python")

DTYPES = sorted({d for d in vars(torch).values() if isinstance(d, torch.dtype)}, key=str)


def bad_or_runtime(f):
    try:
        f()
    except (BufferError, ValueError, TypeError, RuntimeError, NotImplementedError) as e:
        return e
    raise AssertionError("accepted")


def test_one_memory_from_go_through_torch_and_back():
    t = g.empty((2, 3))
    for x in (torch.from_dlpack(t), g.convert(t, torch.Tensor), g.convert(t, "torch"), t.torch(), torch.utils.dlpack.from_dlpack(t.__dlpack__())):
        assert x.data_ptr() == t.data_ptr() and x.shape == (2, 3) and x.dtype == torch.float32 and x.stride() == (3, 1)
        x[1, 2] = 7
        assert t[1, 2].item() == 7
        back = g.from_dlpack(x)
        assert back.data_ptr() == t.data_ptr()
        t[1, 2] = 0
        assert x[1, 2] == 0


def test_one_memory_from_torch_and_back():
    x = torch.arange(6.0).reshape(2, 3)
    for t in (
        g.from_dlpack(x),
        g.asarray(x),
        g.from_dlpack(torch.utils.dlpack.to_dlpack(x)),
        g.from_dlpack(x.__dlpack__(max_version=(1, 3))),
        g.convert(x, g.Tensor),
    ):
        assert t.data_ptr() == x.data_ptr() and t.tolist() == x.tolist() and t.device == "cpu" and not t.readonly
    y = g.convert(np.arange(6.0), torch.Tensor)
    assert y.tolist() == [0, 1, 2, 3, 4, 5]


def test_numpy_to_torch_through_us_is_the_same_pointer():
    a = np.arange(6.0)
    x = g.convert(a, torch.Tensor)
    assert x.data_ptr() == a.__array_interface__["data"][0] and type(x) is torch.Tensor


def test_memory_is_kept_and_freed_once():
    before = g.ledger()
    x = torch.from_dlpack(g.asarray(list(range(1000))))
    gc.collect()
    waste = [torch.full((1 << 16,), 3) for _ in range(50)]
    assert x.tolist() == list(range(1000)) and len(waste) == 50
    del x
    assert g.ledger() == before
    y = torch.arange(1000)
    t = g.from_dlpack(y)
    del y
    gc.collect()
    assert t.tolist() == list(range(1000))
    del t
    assert g.ledger() == before


def test_imports_go_through_the_exchange_table(monkeypatch):
    assert g._core._exchange_table(torch.Tensor)
    calls = []
    monkeypatch.setattr(torch.Tensor, "__dlpack__", lambda self, **kw: calls.append(kw))
    t = g.from_dlpack(torch.arange(3))
    assert t.tolist() == [0, 1, 2] and calls == []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_that_torch_exports_comes_back_as_it_was(dtype):
    # cases G06, G09, I05 https://github.com/apache/tvm-ffi/pull/323
    x = torch.empty(4, dtype=dtype)
    try:
        capsule = x.__dlpack__(max_version=(1, 3))
    except (BufferError, RuntimeError, NotImplementedError, TypeError):
        bad_or_runtime(lambda: g.from_dlpack(x))
        return
    said = peek(capsule)["ty"]
    theirs = torch.from_dlpack(x).dtype  # torch itself sends its int1 to int7 as int8
    x.view(torch.uint8)[:] = torch.arange(x.nbytes, dtype=torch.uint8) % 2 if dtype == torch.bool else torch.arange(x.nbytes, dtype=torch.uint8)
    for make in (g.from_dlpack, lambda x: g.from_dlpack(x.__dlpack__(max_version=(1, 3)))):
        t = make(x)
        assert (t.dtype.code, t.dtype.bits, t.dtype.lanes) == said and t.data_ptr() == x.data_ptr() and t.nbytes == x.nbytes
        for y in (torch.from_dlpack(t), g.convert(t, torch.Tensor)):
            assert y.dtype == theirs and y.data_ptr() == x.data_ptr() and y.nbytes == x.nbytes
        if t.dtype.lanes == 1 and theirs == dtype:
            want = (
                x.to(torch.float64 if not dtype.is_complex else torch.complex128).tolist()
                if dtype.is_floating_point or dtype.is_complex
                else x.tolist()
            )
            assert repr(t.tolist()) == repr(want)


def test_bfloat16_crosses():
    # case G06, https://github.com/dmlc/dlpack/issues/45
    assert torch.from_dlpack(g.from_dlpack(torch.arange(4).bfloat16())).tolist() == [0, 1, 2, 3]
    assert g.full((2,), 1.5, dtype=torch.bfloat16).torch().tolist() == [1.5, 1.5]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (1, 1, 1), (2,) * 10, (1,) * 40])
def test_shapes_cross_both_ways(shape):
    t = g.zeros(shape)
    assert tuple(torch.from_dlpack(t).shape) == shape and g.from_dlpack(torch.zeros(shape)).shape == shape


def test_strided_views_cross_both_ways():
    x = torch.arange(24).reshape(2, 3, 4)
    for v in (x.mT, x[:, ::2], x[1:, 1:], x.permute(2, 0, 1), x[0].expand(5, 3, 4), x[:, 1:2].squeeze(1)):
        t = g.from_dlpack(v)
        assert t.strides == v.stride() and t.tolist() == v.tolist() and t.data_ptr() == v.data_ptr()
        assert torch.from_dlpack(t).tolist() == v.tolist()


def test_read_only_memory_is_copied_for_torch_and_refused_without_a_copy():
    t = g.from_buffer(b"abcd")
    for to in (torch.Tensor, "torch"):
        x = g.convert(t, to)
        assert x.data_ptr() != t.data_ptr()
        x[0] = 0
        assert t.tolist() == [97, 98, 99, 100]
        assert type(bad(lambda to=to: g.convert(t, to, copy=False))) is BufferError
    a = np.arange(3)
    a.flags.writeable = False
    y = g.convert(a, torch.Tensor)
    y[0] = 9
    assert a[0] == 0 and type(bad(lambda: g.convert(a, torch.Tensor, copy=False))) is BufferError


def test_negative_strides_are_copied_for_torch():
    # case F12, https://github.com/pytorch/pytorch/issues/188023
    t = g.asarray([1, 2, 3])[::-1]
    assert g.convert(t, torch.Tensor).tolist() == [3, 2, 1] and t.torch().tolist() == [3, 2, 1]
    assert type(bad(lambda: g.convert(t, torch.Tensor, copy=False))) is BufferError


def test_unaligned_memory_is_never_copied_with_copy_false():
    f = Fake(bytes(range(64)), (3,), ty=(2, 32, 1), off=1)
    assert type(bad(lambda: g.convert(f, torch.Tensor, copy=False))) is BufferError and f.balanced()
    assert type(bad(lambda: g.convert(Fake(flags=2), torch.Tensor, copy=False))) is BufferError


def test_copy_true_is_private():
    t = g.asarray([1, 2, 3])
    x = g.convert(t, torch.Tensor, copy=True)
    y = torch.arange(3)
    assert x.data_ptr() != t.data_ptr() and g.convert(y, torch.Tensor, copy=True).data_ptr() != y.data_ptr() and g.convert(y, torch.Tensor) is y
    assert g.from_dlpack(y, copy=True).data_ptr() != y.data_ptr()


def test_containers_of_numpy_become_containers_of_torch():
    a = np.arange(3.0)
    out = g.convert({"w": a, "b": [a, ("x", a)], "n": 5}, torch.Tensor)
    assert (
        out["w"].data_ptr() == a.__array_interface__["data"][0] and out["b"][1][0] == "x" and type(out["b"][1][1]) is torch.Tensor and out["n"] == 5
    )
    back = g.convert(out, "numpy")
    assert back["w"].tolist() == [0, 1, 2]
    assert g.convert(torch.Size([1, 2]), "numpy") == torch.Size([1, 2])


# --- tensors that mean more than their bytes ---


def test_a_tensor_that_requires_grad_is_refused_with_the_way_out():
    x = torch.ones(3, requires_grad=True)
    for make in (g.from_dlpack, g.asarray, lambda x: g.convert(x, g.Tensor), lambda x: g.convert(x, "numpy")):
        for y in (x, x * 2, torch.nn.Parameter(torch.ones(2))):
            e = bad(lambda make=make, y=y: make(y))
            assert type(e) is BufferError and ("grad" in str(e) or "detach" in str(e)), e
    assert g.from_dlpack(x.detach()).data_ptr() == x.data_ptr()
    with torch.no_grad():
        y = x * 2
    assert g.from_dlpack(y).tolist() == [2, 2, 2]
    assert g.from_dlpack(torch.nn.Parameter(torch.arange(3), requires_grad=False)).tolist() == [0, 1, 2]


def test_a_conjugate_is_never_read_without_its_conjugation():
    z = torch.full((2,), 1 + 2j).conj()
    for make in (g.from_dlpack, g.asarray, lambda z: g.convert(z, "numpy")):
        e = bad(lambda make=make: make(z))
        assert type(e) is BufferError and "conj" in str(e)
    assert g.from_dlpack(z.resolve_conj()).tolist() == [1 - 2j] * 2


def test_a_negative_view_is_never_read_without_its_sign():
    z = torch.full((2,), 1 + 2j).conj().imag
    assert z.is_neg()
    views = [
        z,
        torch._neg_view(torch.ones(2)),
        torch._neg_view(torch.arange(3)),
        torch._neg_view(torch.arange(3, dtype=torch.int8)),
        torch._neg_view(torch.ones(2).bfloat16()),
    ]
    for v in views:
        for make in (
            g.from_dlpack,
            g.asarray,
            lambda v: g.convert(v, "numpy"),
            lambda v: g.from_dlpack(v, stream=None),
            lambda v: g.from_dlpack(v, copy=True),
        ):
            e = bad(lambda make=make, v=v: make(v))
            assert type(e) is BufferError and "neg" in str(e), (v, e)
    assert g.from_dlpack(z.resolve_neg()).tolist() == [-2, -2]


def test_sparse_meta_and_fake_tensors_are_refused_without_a_crash():
    # case I03, https://github.com/pytorch/pytorch/issues/81361
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(3)
    things = [
        torch.ones(2, 2).to_sparse(),
        torch.zeros(2, device="meta"),
        fake,
        torch.ones(2, 2).to_sparse_csr(),
        torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    ]
    for x in things:
        for make in (g.from_dlpack, g.asarray, lambda x: g.convert(x, "numpy"), lambda x: g.convert(x, g.Tensor)):
            e = bad_or_runtime(lambda make=make, x=x: make(x))
            assert len(str(e)) < 2000, e


def test_a_functionalised_or_batched_tensor_is_refused_without_a_crash():
    seen = []

    def f(x):
        seen.append(bad_or_runtime(lambda: g.from_dlpack(x).tolist()))
        return x

    torch.func.vmap(f)(torch.ones(3, 2))
    torch.func.grad(lambda x: f(x).sum())(torch.ones(2))
    assert len(seen) == 2


def test_subclasses_are_taken_by_their_memory():
    class Sub(torch.Tensor):
        pass

    x = torch.arange(3).as_subclass(Sub)
    t = g.from_dlpack(x)
    assert t.tolist() == [0, 1, 2] and t.data_ptr() == x.data_ptr()
    buffer = torch.nn.Buffer(torch.arange(2))
    assert g.from_dlpack(buffer).tolist() == [0, 1]


def test_a_subclass_that_changes_torch_functions_is_still_taken_by_its_memory_or_refused():
    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("not mine")

    x = torch.ones(3).as_subclass(Sub)
    try:
        t = g.from_dlpack(x)
    except (RuntimeError, BufferError, TypeError) as e:
        assert "not mine" in str(e)
    else:
        assert t.tolist() == [1, 1, 1]


def test_conversion_to_a_subclass_or_parameter_gives_that_or_an_error():
    t = g.asarray([1.0, 2.0])
    for cls in (torch.nn.Parameter, type("Sub", (torch.Tensor,), {})):
        try:
            x = g.convert(t, cls)
        except TypeError:
            continue
        assert isinstance(x, cls)


def test_float4_crosses_with_its_lanes():
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("needs torch with float4_e2m1fn_x2")
    x = torch.arange(8, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    t = g.from_dlpack(x)
    assert (t.dtype.code, t.dtype.bits, t.dtype.lanes) == (17, 4, 2) and t.dtype == "float4_e2m1fn_x2"
    assert torch.from_dlpack(t).dtype == torch.float4_e2m1fn_x2 and t.tolist()[3] == (1.5, 0.0)


def test_inference_mode_and_deterministic_flags_do_not_matter():
    with torch.inference_mode():
        x = torch.arange(3)
        t = g.from_dlpack(x)
        assert t.data_ptr() == x.data_ptr() and torch.from_dlpack(t).tolist() == [0, 1, 2]


def test_a_resized_storage_does_not_pull_the_memory_away():
    x = torch.arange(4)
    t = g.from_dlpack(x)
    try:
        x.resize_(1 << 16)
    except RuntimeError:
        pass
    assert t.tolist() == [0, 1, 2, 3] or t.shape == (4,)


def test_a_data_loader_with_workers_takes_our_tensors():
    # case M01
    alone(
        """
    import warnings; warnings.simplefilter("ignore")
    import torch, dlferry as g
    g.asarray([1]).astype("int8")
    class D(torch.utils.data.Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): return g.full((3,), float(i)).torch()
    seen = sorted(x[0].item() for batch in torch.utils.data.DataLoader(D(), batch_size=2, num_workers=2) for x in batch)
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7]
    """,
        quiet=False,
        timeout=120,
    )
