"""The small exchanges that `python -m dlferry bench` times: 12 float32 elements, from Python, the end of what a call makes included.

Nothing here needs a compiler. The project's own benchmarks add contestants to these rows by their keys.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import dlferry

from ._bench_run import Bar, Suite

__all__ = ["Libraries", "address", "fresh", "held", "rows", "same_memory"]

_VALUES = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]


class Libraries:
    """The frameworks to compare with: the modules, or None with the reason in the suite."""

    def __init__(self, suite: Suite, wanted: tuple[str, ...] = ("numpy", "torch", "tvm_ffi", "jax")) -> None:
        self.numpy, self.torch, self.tvm, self.jnp = (
            _load(suite, name, module, wanted)
            for name, module in (("numpy", "numpy"), ("torch", "torch"), ("tvm_ffi", "tvm_ffi"), ("jax", "jax.numpy"))
        )


def _load(suite: Suite, name: str, module: str, wanted: tuple[str, ...]) -> Any:
    if name not in wanted:
        return None
    try:
        return import_module(module)
    except Exception as e:  # some end an import with errors of their own
        suite.skip(name, "not installed" if isinstance(e, ModuleNotFoundError) and (e.name or "") in module else f"does not import: {e}")
        return None


def address(x: Any) -> int:
    """Where the first element of any library's tensor is."""
    if hasattr(x, "ctypes"):
        return int(x.ctypes.data)
    if hasattr(x, "unsafe_buffer_pointer"):
        return int(x.unsafe_buffer_pointer())
    if isinstance(x, memoryview):
        return dlferry.from_buffer(x).data_ptr()
    found = x.data_ptr() if hasattr(x, "data_ptr") else dlferry.from_dlpack(x).data_ptr()
    return int(found)


def same_memory(source: Any) -> Callable[[Any], None]:
    """A check that a result lies where the source does, and holds its values."""
    where, values = address(source), dlferry.from_dlpack(source).tolist()

    def check(result: Any) -> None:
        assert address(result) == where, f"memory at {address(result):#x}, want {where:#x}"
        seen = result.tolist() if hasattr(result, "tolist") else dlferry.from_dlpack(result).tolist()
        assert seen == values, f"values {seen}, want {values}"

    return check


def equals(want: Any) -> Callable[[Any], None]:
    def check(result: Any) -> None:
        assert result == want, f"{result!r}, want {want!r}"

    return check


def listed(want: list[float]) -> Callable[[Any], None]:
    def check(result: Any) -> None:
        assert result.tolist() == want

    return check


def of_int32(result: Any) -> None:
    assert result.dtype == "int32", result.dtype


def of_shape(result: Any) -> None:
    assert tuple(result.shape) == (3, 4), result.shape


def fresh(torch: Any) -> Any:
    """A torch tensor that Python alone holds. Each exchange of one costs torch some 40 ns for moving its ownership to C++ and back."""
    return torch.tensor(_VALUES)


def held(torch: Any) -> Any:
    """A torch tensor that something in C++ holds too, as one that takes part in autograd or sits in a module does."""
    t = fresh(torch)
    _alive.append(t.__dlpack__())
    return t


_alive: list[Any] = []


def own() -> dlferry.Tensor:
    return dlferry.asarray(_VALUES, dtype="float32")


def rows(suite: Suite, lib: Libraries) -> None:
    """Fill the suite with every row that the libraries at hand allow."""
    _in(suite, lib)
    _through(suite, lib)
    _out(suite, lib)
    _alone(suite, lib)


def _in(suite: Suite, lib: Libraries) -> None:
    for key, make in (("in-torch", fresh), ("in-torch-held", held)):
        if lib.torch is None:
            break
        how = "held by Python alone" if make is fresh else "held by C++ too"
        row = suite.row(key, f"from_dlpack(torch tensor), {how}", Bar(1.10, "floor"), Bar(0.4, "tvm-ffi", text=">= 2.5 x faster than tvm-ffi"))
        t = make(lib.torch)
        row.add("dlferry", "take(t)", same_memory(t), take=dlferry.from_dlpack, t=t)
        if lib.tvm:
            t = make(lib.torch)
            row.add("tvm-ffi", "take(t)", same_memory(t), take=lib.tvm.from_dlpack, t=t)
        t = make(lib.torch)
        row.add("torch.from_dlpack", "take(t)", same_memory(t), take=lib.torch.from_dlpack, t=t)
        t = make(lib.torch)
        row.add("t.detach()", "t.detach()", same_memory(t), t=t)
        t = make(lib.torch)
        row.add("t.__dlpack__", "t.__dlpack__(max_version=v)", None, t=t, v=(1, 3))
    if lib.numpy:
        row = suite.row("in-numpy", "from_dlpack(ndarray)", Bar(1.3, "floor"), Bar(0.2, "np.from_dlpack", text=">= 5 x faster than np.from_dlpack"))
        a = lib.numpy.array(_VALUES, "float32")
        check = same_memory(a)
        row.add("dlferry", "take(a)", check, take=dlferry.from_dlpack, a=a)
        if lib.tvm:
            row.add("tvm-ffi", "take(a)", check, take=lib.tvm.from_dlpack, a=a)
        row.add("np.from_dlpack", "take(a)", check, take=lib.numpy.from_dlpack, a=a)
        row.add("a.view()", "a.view()", check, a=a)
        row.add("memoryview", "take(a)", check, take=memoryview, a=a)
        row.add("a.__dlpack__", "a.__dlpack__(max_version=v)", None, a=a, v=(1, 3))
    row = suite.row("in-own", "from_dlpack(dlferry tensor)", Bar(1.3, "floor"))
    x = own()
    row.add("dlferry", "take(x)", same_memory(x), take=dlferry.from_dlpack, x=x)
    row.add("x.__dlpack__ + take", "take(x.__dlpack__(max_version=v))", same_memory(x), take=dlferry.from_dlpack, x=x, v=(1, 3))
    if lib.tvm:
        row.add("tvm-ffi", "take(y)", same_memory(x), take=lib.tvm.from_dlpack, y=lib.tvm.from_dlpack(x))


def _through(suite: Suite, lib: Libraries) -> None:
    np, torch = lib.numpy, lib.torch
    if not (np and torch):
        return
    a = np.array(_VALUES, "float32")
    row = suite.row("numpy-torch", "convert(ndarray, torch.Tensor)", Bar(1.0, "torch.from_numpy", text="faster than torch.from_numpy"))
    row.add("dlferry", "convert(a, to)", same_memory(a), convert=dlferry.convert, a=a, to=torch.Tensor)
    row.add("torch.from_numpy", "take(a)", same_memory(a), take=torch.from_numpy, a=a)
    row.add("torch.from_dlpack", "take(a)", same_memory(a), take=torch.from_dlpack, a=a)
    row.add("torch.as_tensor", "take(a)", same_memory(a), take=torch.as_tensor, a=a)
    for key, make in (("torch-numpy", fresh), ("torch-numpy-held", held)):
        how = "held by Python alone" if make is fresh else "held by C++ too"
        row = suite.row(key, f"convert(torch tensor, ndarray), {how}", Bar(1 / 3, "t.numpy()", text=">= 3 x faster than t.numpy()"))
        t = make(torch)
        row.add("dlferry", "convert(t, to)", same_memory(t), convert=dlferry.convert, t=t, to=np.ndarray)
        t = make(torch)
        row.add("t.numpy()", "t.numpy()", same_memory(t), t=t)
        t = make(torch)
        row.add("np.from_dlpack", "take(t)", same_memory(t), take=np.from_dlpack, t=t)
        t = make(torch)
        row.add("np.asarray", "take(t)", same_memory(t), take=np.asarray, t=t)
    row = suite.row(
        "dlpack-both", "np.from_dlpack(t): what the frameworks do between themselves", note="for scale; dlferry is convert(t, numpy.ndarray)"
    )
    t = fresh(torch)
    row.add("np.from_dlpack(torch)", "take(t)", same_memory(t), take=np.from_dlpack, t=t)
    row.add("torch.from_dlpack(ndarray)", "take(a)", same_memory(a), take=torch.from_dlpack, a=a)


def _out(suite: Suite, lib: Libraries) -> None:
    np, torch, tvm, x = lib.numpy, lib.torch, lib.tvm, own()
    check = same_memory(x)
    if torch:
        row = suite.row("own-torch", "convert(dlferry tensor, torch.Tensor)", Bar(1.08, "t.detach()"))
        row.add("dlferry", "convert(x, to)", check, convert=dlferry.convert, x=x, to=torch.Tensor)
        row.add("x.torch()", "x.torch()", check, x=x)
        t = fresh(torch)
        row.add("t.detach()", "t.detach()", same_memory(t), t=t)
        if tvm:
            row.add("tvm-ffi", "take(y)", check, take=torch.from_dlpack, y=tvm.from_dlpack(x))
        row = suite.row("torch-takes", "torch.from_dlpack(dlferry tensor)", Bar(1.08, "floor"))
        row.add("dlferry", "take(x)", check, take=torch.from_dlpack, x=x)
        if tvm:
            row.add("tvm-ffi", "take(y)", check, take=torch.from_dlpack, y=tvm.from_dlpack(x))
        if np:
            a = np.array(_VALUES, "float32")
            row.add("numpy", "take(a)", same_memory(a), take=torch.from_dlpack, a=a)
        t = fresh(torch)
        row.add("torch", "take(t)", same_memory(t), take=torch.from_dlpack, t=t)
        if hasattr(torch._C, "_from_dlpack"):
            row = suite.row("torch-capsule", "torch._C._from_dlpack(x.__dlpack__()): without torch's Python", Bar(1.08, "floor"))
            row.add("dlferry", "take(x.__dlpack__(max_version=v))", check, take=torch._C._from_dlpack, x=x, v=(1, 3))
    if np:
        row = suite.row("own-numpy", "convert(dlferry tensor, ndarray)", Bar(1.3, "floor"))
        row.add("dlferry", "convert(x, to)", check, convert=dlferry.convert, x=x, to=np.ndarray)
        row.add("x.numpy()", "x.numpy()", check, x=x)
        row.add("np.asarray", "take(x)", check, take=np.asarray, x=x)
        row = suite.row("numpy-takes", "np.from_dlpack(dlferry tensor)", Bar(1.08, "floor"))
        row.add("dlferry", "take(x)", check, take=np.from_dlpack, x=x)
        if tvm:
            row.add("tvm-ffi", "take(y)", check, take=np.from_dlpack, y=tvm.from_dlpack(x))
        a = np.array(_VALUES, "float32")
        row.add("numpy", "take(a)", same_memory(a), take=np.from_dlpack, a=a)
    if tvm:
        row = suite.row("tvm-takes", "tvm_ffi.from_dlpack(dlferry tensor)")
        row.add("dlferry", "take(x)", check, take=tvm.from_dlpack, x=x)
        row.add("tvm-ffi", "take(y)", check, take=tvm.from_dlpack, y=tvm.from_dlpack(x))
    if lib.jnp:
        row = suite.row("jax-takes", "jax.numpy.from_dlpack(dlferry tensor)", note="jax takes time for its own arrays; it cannot share all memory")
        row.add("dlferry", "take(x)", check, take=lib.jnp.from_dlpack, x=x)
        if np:
            a = np.from_dlpack(x)
            row.add("numpy", "take(a)", same_memory(x), take=lib.jnp.from_dlpack, a=a)


def _alone(suite: Suite, lib: Libraries) -> None:
    np, torch, x = lib.numpy, lib.torch, own()
    row = suite.row("empty", "dlferry.empty((3, 4)), made and gone", Bar(35))
    row.add("dlferry", "make(shape)", of_shape, make=dlferry.empty, shape=(3, 4))
    if np:
        row.add("np.empty", "make(shape)", of_shape, make=np.empty, shape=(3, 4))
    if torch:
        row.add("torch.empty", "make(shape)", of_shape, make=torch.empty, shape=(3, 4))
    row = suite.row("dlpack", "x.__dlpack__(max_version=(1, 3)), the capsule not taken", Bar(1.3, "floor"))
    row.add("dlferry", "x.__dlpack__(max_version=v)", None, x=x, v=(1, 3))
    if np:
        row.add("numpy", "a.__dlpack__(max_version=v)", None, a=np.array(_VALUES, "float32"), v=(1, 3))
    row = suite.row("dlpack-device", "x.__dlpack_device__()", Bar(15))
    row.add("dlferry", "x.__dlpack_device__()", equals((1, 0)), x=x)
    if np:
        row.add("numpy", "a.__dlpack_device__()", equals((1, 0)), a=np.array(_VALUES, "float32"))
    row = suite.row("dtype", "x.dtype", Bar(15))
    row.add("dlferry", "x.dtype", equals("float32"), x=x)
    if np:
        row.add("numpy", "a.dtype", equals("float32"), a=np.array(_VALUES, "float32"))
    if torch:
        row.add("torch", "t.dtype", equals(torch.float32), t=fresh(torch))
    row = suite.row("shape", "x.shape", Bar(1.0, "numpy", text="<= ndarray.shape"))
    row.add("dlferry", "x.shape", equals((3, 4)), x=x)
    if np:
        row.add("numpy", "a.shape", equals((3, 4)), a=np.array(_VALUES, "float32"))
    if torch:
        row.add("torch", "t.shape", equals((3, 4)), t=fresh(torch))
    for n in (12, 1000):
        numbers = [float(k) for k in range(n)]
        row = suite.row(f"list-{n}", f"asarray(list of {n} floats) as float32")
        row.add(
            "dlferry",
            "make(numbers, dtype=kind)",
            listed(numbers),
            make=dlferry.asarray,
            numbers=numbers,
            kind="float32",
        )
        if np:
            row.add("numpy", "make(numbers, kind)", listed(numbers), make=np.array, numbers=numbers, kind="float32")
        if torch:
            row.add("torch", "make(numbers)", listed(numbers), make=torch.tensor, numbers=numbers)
    row = suite.row("go", "a small cast: one call that enters Go", note="12 elements, float32 to int32")
    row.add("dlferry", "x.astype(kind)", of_int32, x=x, kind="int32")
    if np:
        row.add("numpy", "a.astype(kind)", None, a=np.array(_VALUES, "float32"), kind="int32")
    if torch:
        row.add("torch", "t.to(kind)", None, t=fresh(torch), kind=torch.int32)
