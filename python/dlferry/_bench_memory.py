"""The benchmarks of whole buffers: copies, transposes, casts, and exchanges of tensors from one element to 8 GiB."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable
from typing import Any

import dlferry

from ._bench_rows import Libraries
from ._bench_run import Bar, Suite

__all__ = ["memory_rows", "memory_wanted", "size_rows"]

SIZES = (1, 1 << 10, 1 << 20, 1 << 30, 1 << 33)
_kept: list[Any] = []
_KEYS = ("copy", "transpose", "contiguous", "chw-uint8", "chw-uint16", "transpose-16", "cast-float16", "cast-bfloat16", "cast-float64")


def memory_wanted(pattern: str) -> bool:
    """Whether a pattern selects any of the rows that `memory_rows` makes gigabytes for."""
    return any(re.search(pattern, f"{key}/{who}" if who else key) for key in _KEYS for who in ("", "dlferry", "numpy", "torch"))


def memory_rows(suite: Suite, lib: Libraries, *, mib: int = 256) -> None:
    """Copies of ``mib`` MiB; the squares have the nearest power of two as their side. All but one write into memory that was touched before."""
    np, torch = lib.numpy, lib.torch
    side = 1 << ((mib << 20) // 4).bit_length() // 2
    size = f"{side * side * 4 >> 20} MiB"
    src = _filled((side, side), "float32")
    out = dlferry.zeros((side, side), dtype="float32")
    names = {"out": out, "src": src}
    row = suite.row("copy", f"copy of {size} into touched memory", Bar(1 / 1.5, "numpy", text=">= 1.5 x faster than NumPy"), heavy=True)
    _contest(row, lib, "out[...] = src", names, _copied(out, src))
    row = suite.row(
        "transpose", f"{side} x {side} float32 transpose into touched memory",
        Bar(0.5, "torch", text=">= 2 x faster than torch"), Bar(1 / 8, "numpy", text=">= 8 x faster than NumPy"), heavy=True,
    )  # fmt: skip
    _contest(row, lib, "out[...] = src.T", {"out": out, "src": src.T}, _copied(out, src.T))
    row = suite.row(
        "contiguous", f"{side} x {side} float32 t.T.contiguous(), new memory", heavy=True, note="page faults included: compare within a run only"
    )
    row.add("dlferry", "x.contiguous()", None, x=src.T)
    if np:
        row.add("numpy", "make(a)", None, make=np.ascontiguousarray, a=np.asarray(src).T)
    if torch:
        row.add("torch", "t.contiguous()", None, t=src.torch().T)
    pixels = (3000, 4000, 3)
    for kind, name in (("uint8", "1 byte"), ("uint16", "2 bytes")):
        picture = _filled(pixels, kind).permute_dims((2, 0, 1))
        chw = dlferry.zeros(picture.shape, dtype=kind)
        faster = (Bar(1 / 3, "torch", text=">= 3 x faster than torch"), Bar(1 / 3, "numpy", text=">= 3 x faster than NumPy"))
        row = suite.row(f"chw-{kind}", f"HWC to CHW, 12 Mpx, {name} a value", *faster, heavy=True)
        _contest(row, lib, "out[...] = src", {"out": chw, "src": picture}, _copied(chw, picture))
    half = _filled((side, side), "uint16")
    out16 = dlferry.zeros((side, side), dtype="uint16")
    row = suite.row("transpose-16", f"{side} x {side} transpose, 2 bytes a value", heavy=True)
    _contest(row, lib, "out[...] = src.T", {"out": out16, "src": half.T}, _copied(out16, half.T))
    for kind in ("float16", "bfloat16", "float64"):
        row = suite.row(f"cast-{kind}", f"cast of {side * side >> 20} Mi float32 to {kind}, touched memory", heavy=True)
        cast = dlferry.zeros((side, side), dtype=kind)
        _contest(row, lib, "out[...] = src", {"out": cast, "src": src}, None)


def _filled(shape: tuple[int, ...], kind: str) -> dlferry.Tensor:
    """A tensor whose values differ from place to place, all small whole numbers."""
    t = dlferry.zeros(shape, dtype="uint8")
    memoryview(t).cast("B")[:] = (bytes(range(1, 60)) * (t.size // 59 + 1))[: t.size]
    return t.astype(kind, copy=False)


def _copied(out: dlferry.Tensor, src: dlferry.Tensor) -> Callable[[Any], None]:
    """A check of some elements, after clearing them: the first and last, and some between."""
    places = [tuple((k * 7919 + axis * 31) % n for axis, n in enumerate(src.shape)) for k in range(40)] + [(-1,) * src.ndim]

    def check(_: Any) -> None:
        for place in places:
            assert out[place].item() == src[place].item(), place
        out[...] = 0

    return check


def _contest(row: Any, lib: Libraries, title: str, names: dict[str, Any], check: Callable[[Any], None] | None) -> None:
    """The same assignment by dlferry, np.copyto and torch's copy_."""
    out, src = names["out"], names["src"]
    row.add("dlferry", "out.__setitem__(every, src)", check, every=..., **names)
    if lib.numpy and str(out.dtype) != "bfloat16":
        row.add("numpy", "copyto(out, src, casting='unsafe')", check, copyto=lib.numpy.copyto, out=out.numpy(), src=src.numpy())
    if lib.torch:
        row.add("torch", "out.copy_(src)", check, out=out.torch(), src=src.torch())


def size_rows(suite: Suite, lib: Libraries) -> None:
    """Exchanges of uint8 tensors of growing size, in memory that is never touched: what an exchange costs must not grow."""
    last = SIZES[-1]
    try:
        space = mmap.mmap(-1, last, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
    except (OSError, ValueError, OverflowError) as e:
        suite.skip("sizes", f"no address space of {last >> 30} GiB: {e}")
        return
    _kept.append(space)
    whole = dlferry.from_buffer(space)
    for way in ("own", "numpy", "torch"):
        module = {"own": dlferry, "numpy": lib.numpy, "torch": lib.torch}[way]
        if module is None:
            continue
        title = {"own": "from_dlpack(x.__dlpack__())", "numpy": "from_dlpack(ndarray)", "torch": "from_dlpack(torch tensor)"}[way]
        row = suite.row(f"size-{way}", f"{title}, by number of elements", Bar(1.1, "1 element", text="<= 1.1 x one element", who="2^33 elements"))
        for n in SIZES:
            x = whole[:n]
            who = "1 element" if n == 1 else f"2^{n.bit_length() - 1} elements"
            if way == "own":
                row.add(who, "take(x.__dlpack__(max_version=v))", _of_size(n), take=dlferry.from_dlpack, x=x, v=(1, 3))
            else:
                row.add(who, "take(x)", _of_size(n), take=dlferry.from_dlpack, x=x.numpy() if way == "numpy" else x.torch())


def _of_size(n: int) -> Callable[[Any], None]:
    def check(t: Any) -> None:
        assert t.size == n, t.size

    return check
