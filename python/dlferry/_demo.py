"""``python -m dlferry demo``: one buffer, seen from NumPy, Go and PyTorch, then from every other library that is here.

Nothing is claimed without being checked: each check goes into the report, and the exit code is 1 if one fails.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import platform
import sys
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dlferry

from . import _core

_SHAPE = (512, 256)
_REPEATS = 300
_CALLS = 20
_GO_BYTES = 64 * 1024  # below, copies stay in C


class DemoError(Exception):
    """The demo cannot run; the text says why and what to do."""


def demo(*, npy: str | None = None, as_json: bool = False) -> int:
    """Run the demo; 0 when every check held, else 1."""
    show = _Show(quiet=as_json)
    report = _new_report()
    try:
        _run(report, npy, show)
    except DemoError as e:
        report["error"] = str(e)
    except Exception as e:
        report["error"] = f"{type(e).__name__}: {e}"
        if not as_json and not isinstance(e, (BufferError, OSError, RuntimeError, MemoryError)):
            raise  # not a refusal: a fault, whose place matters
    report["ok"] = report["error"] is None and all(c["ok"] for c in report["checks"])
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        show.verdict(report)
    return 0 if report["ok"] else 1


def _new_report() -> dict[str, Any]:
    return {
        "ok": False,
        "error": None,
        "dlferry": dlferry.__version__,
        "dlpack": list(dlferry.DLPACK_VERSION),
        "python": platform.python_version(),
        "source": None,
        "buffer": None,
        "go": None,
        "hops": [],
        "writes": [],
        "others": [],
        "ledger": {"before": None, "after": None},
        "checks": [],
    }


def _run(report: dict[str, Any], npy: str | None, show: _Show) -> None:
    numpy, why = _import("numpy")
    if numpy is None:
        raise DemoError(f"NumPy is {why}; the demo needs it, and shows more with PyTorch: pip install numpy torch")
    torch, no_torch = _import("torch")
    check = _Checks(report, show)

    show.title("NumPy -> Go -> PyTorch -> Go -> NumPy over one buffer")
    source = _source(numpy, npy, report, check, show)
    gc.collect()
    before = dlferry.ledger()
    with _chain(report, numpy, torch, no_torch, source, check, show) as buffer:
        _others(report, numpy, buffer, check, show)
    del buffer
    gc.collect()
    after = dlferry.ledger()
    report["ledger"] = {"before": before, "after": after}
    show.section("Ledger: what dlferry holds")
    show.line(f"before {_counts(before)}")
    show.line(f"after  {_counts(after)}")
    check("the ledger is back where it was: everything was freed, once", before == after)


# --- the array that the demo starts from ---


def _source(numpy: Any, npy: str | None, report: dict[str, Any], check: _Checks, show: _Show) -> Any:
    if npy is None:
        array = numpy.arange(_SHAPE[0] * _SHAPE[1], dtype="float64").reshape(_SHAPE)
        report["source"] = {"file": None, "dtype": "float64", "shape": list(_SHAPE), "strides": None, "readonly": False}
        return array
    array = _load(numpy, npy)
    show.section(f"Your array: {npy}")
    try:
        t = dlferry.from_dlpack(array)
    except BufferError as e:
        raise DemoError(f"{npy}: {e}") from e
    report["source"] = {
        "file": npy,
        "dtype": str(t.dtype),
        "shape": list(t.shape),
        "strides": list(t.strides),
        "readonly": t.readonly,
    }
    layout = "row-major" if t.is_contiguous() else f"strides {t.strides}"
    show.line(f"{t.dtype} {t.shape}, {layout}, {'read-only' if t.readonly else 'writable'}, mapped from the file at {t.data_ptr():#x}")
    check("Go sees the mapped file itself, no copy", t.data_ptr() == array.__array_interface__["data"][0])
    try:
        t[...] = 0
    except BufferError:
        refused = True
    else:
        refused = False
    check("writing into it is refused: BufferError", refused)
    return array


def _load(numpy: Any, npy: str) -> Any:
    try:
        array = numpy.load(npy, mmap_mode="r", allow_pickle=False)
    except OSError as e:
        raise DemoError(f"{npy}: {e.strerror or e}") from e
    except ValueError as e:
        raise DemoError(f"{npy}: not a .npy file of numbers, as numpy.save writes it ({e})") from e
    if not isinstance(array, numpy.ndarray):
        raise DemoError(f"{npy}: got several arrays, want a .npy file with one; numpy.load(...)[name] takes one out")
    if not array.dtype.isnative:
        native = array.dtype.newbyteorder("=").str
        raise DemoError(
            f"{npy}: byte order, got big-endian {array.dtype.str!r}, want {native!r}; "
            f"numpy.save('native.npy', numpy.load({npy!r}).astype({native!r})) swaps it"
        )
    try:
        dlferry.DType(array.dtype)
    except (ValueError, TypeError) as e:
        raise DemoError(f"{npy}: dtype, got {array.dtype}, want bool, integer, float or complex numbers") from e
    if array.size == 0:
        raise DemoError(f"{npy}: shape, got {array.shape}, want at least one element: in an empty array there is nothing to see")
    return array


# --- the chain ---


@contextmanager
def _chain(report: dict[str, Any], numpy: Any, torch: Any, no_torch: str, source: Any, check: _Checks, show: _Show) -> Iterator[dlferry.Tensor]:
    own = dlferry.from_dlpack(source)
    dtype = "float32" if report["source"]["file"] is None else own.dtype
    held = dlferry.ledger()["bytes"]
    buffer = dlferry.empty(own.shape, dtype=dtype)
    pointer = buffer.data_ptr()
    show.section("Buffer")
    check("dlferry allocated the buffer", dlferry.ledger()["bytes"] - held == buffer.nbytes, quiet=True)
    buffer[...] = own
    cast = own.dtype != buffer.dtype
    by_go = cast or buffer.nbytes >= _GO_BYTES
    report["buffer"] = {
        "owner": "dlferry",
        "pointer": pointer,
        "dtype": str(buffer.dtype),
        "shape": list(buffer.shape),
        "nbytes": buffer.nbytes,
        "alignment": 64 if pointer % 64 == 0 else 1,
    }
    report["go"] = {"state": _core._go_state(), "filled_the_buffer": by_go, **_go_info()}
    show.line(f"{buffer.dtype} {buffer.shape}, {_size(buffer.nbytes)} at {pointer:#x}; dlferry allocates and frees it")
    if by_go:
        what = f"Go ({report['go'].get('go', 'version unknown')}) {'cast ' + str(own.dtype) if cast else 'copied'} into it"
        check(f"{what}: the values are there", report["go"]["state"] == "loaded" and _same(numpy, buffer, source, dtype))
    else:
        check("C copied into it (Go takes over at 64 KiB): the values are there", _same(numpy, buffer, source, dtype))

    places: list[tuple[str, Any]] = [("Go", buffer)]

    def hop(start: str, end: str, x: Any, make: Callable[[Any], Any], pointer_of: Callable[[Any], int], own_route: str, own: Any) -> Any:
        result = make(x)
        ns, own_ns = _best(lambda: make(x)), _best(own)
        entry = {
            "from": start,
            "to": end,
            "type": _type_name(result),
            "owner": "dlferry",
            "pointer": pointer_of(result),
            "dtype": str(dlferry.from_dlpack(result).dtype),
            "shape": list(result.shape),
            "shared": pointer_of(result) == pointer,
            "ns": ns,
            "own_route": own_route,
            "own_ns": own_ns,
            "ratio": round(ns / own_ns, 2),
        }
        report["hops"].append(entry)
        places.append((_numbered(end, places), result))
        show.hop(entry)
        return result

    show.section(f"Hops: best of {_REPEATS} times, beside the library's own route")
    show.hop_header()
    _hops(hop, buffer, numpy, torch)
    if not torch:
        show.line(f"PyTorch is {no_torch}: the chain goes without it; pip install torch")
    for entry in report["hops"]:
        check(f"{entry['from']} -> {entry['to']}: same pointer", entry["shared"], quiet=True)
        same = entry["dtype"] == str(buffer.dtype) and tuple(entry["shape"]) == buffer.shape
        check(f"{entry['from']} -> {entry['to']}: same dtype and shape", same, quiet=True)
    check("all places have one pointer, dtype and shape", all(c["ok"] for c in report["checks"]))
    owners = [name for name, holder in places if _owns(holder)]
    check("neither NumPy nor PyTorch owns the memory", not owners, quiet=torch is None)
    check(f"no hop allocated: dlferry holds {_size(buffer.nbytes)}, as before", dlferry.ledger()["bytes"] - held == buffer.nbytes)
    _writes(report, places, check, show)
    yield buffer
    places.clear()


def _hops(hop: Callable[..., Any], buffer: dlferry.Tensor, numpy: Any, torch: Any) -> None:
    array = hop("Go", "NumPy", buffer, lambda t: t.numpy(), _numpy_pointer, "np.from_dlpack(tensor)", lambda: numpy.from_dlpack(buffer))
    if not torch:
        go = hop("NumPy", "Go", array, dlferry.from_dlpack, _pointer, "np.from_dlpack(array)", lambda: numpy.from_dlpack(array))
        hop("Go", "NumPy", go, lambda t: t.numpy(), _numpy_pointer, "np.from_dlpack(tensor)", lambda: numpy.from_dlpack(go))
        return
    go = hop("NumPy", "Go", array, dlferry.from_dlpack, _pointer, "torch.from_numpy(array)", lambda: torch.from_numpy(array))

    def to_torch(t: dlferry.Tensor) -> Any:
        return dlferry.convert(t, torch.Tensor)

    there = hop("Go", "PyTorch", go, to_torch, _pointer, "torch.from_dlpack(tensor)", lambda: torch.from_dlpack(go))
    again = hop("PyTorch", "Go", there, dlferry.from_dlpack, _pointer, "torch.from_dlpack(t)", lambda: torch.from_dlpack(there))
    hop("Go", "NumPy", again, lambda t: t.numpy(), _numpy_pointer, "np.from_dlpack(t)", lambda: numpy.from_dlpack(there))


def _writes(report: dict[str, Any], places: list[tuple[str, Any]], check: _Checks, show: _Show) -> None:
    """Each place writes a value of its own into the last element; all must read it."""
    show.section("Writes: each place writes, all the others read")
    kind = places[0][1].dtype.kind
    last = tuple(n - 1 for n in places[0][1].shape)
    for i, (name, holder) in enumerate(places):
        value = i % 2 == 0 if kind == "bool" else i + 1
        # A cast is always Go's work, of a single element too; a plain number would be written by C.
        other = "float64" if places[0][1].dtype != "float64" else "float32"
        holder[last] = dlferry.asarray(value, dtype=other) if isinstance(holder, dlferry.Tensor) else value
        seen = [other for other, h in places if complex(_value(h, last)) == complex(value)]
        entry = {"at": name, "value": value, "seen_at": seen, "ok": len(seen) == len(places)}
        report["writes"].append(entry)
        check(f"{name} wrote {value}: seen at {len(seen) - (name in seen)} of {len(places) - 1} other places", entry["ok"])


def _numbered(name: str, places: list[tuple[str, Any]]) -> str:
    """NumPy, then NumPy 2, …"""
    n = sum(1 for other, _ in places if other.split()[0] == name)
    return f"{name} {n + 1}" if n else name


def _value(holder: Any, where: tuple[int, ...]) -> Any:
    return holder[where].item()


def _same(numpy: Any, t: dlferry.Tensor, source: Any, dtype: Any) -> bool:
    return bool(numpy.array_equal(numpy.from_dlpack(t), source.astype(str(dtype)), equal_nan=t.dtype.kind in ("float", "complex")))


def _go_info() -> dict[str, Any]:
    if _core._go_state() != "loaded":
        return {}
    info = _core._go_info()
    found: Any = json.loads(info) if isinstance(info, str) else info
    return dict(found)


# --- the other libraries ---


def _others(report: dict[str, Any], numpy: Any, buffer: dlferry.Tensor, check: _Checks, show: _Show) -> None:
    show.section("Others")
    for name, module, look in (("tvm-ffi", "tvm_ffi", _look_tvm_ffi), ("JAX", "jax", _look_jax), ("CuPy", "cupy", _look_cupy)):
        found, why = _import(module)
        entry: dict[str, Any] = {"name": name, "status": "absent", "reason": why or None, "pointer": None, "shared": None, "ns": None}
        report["others"].append(entry)
        if found is None:
            show.absent(name, why)
            continue
        try:
            said, ok = look(found, numpy, buffer, entry)
        except _Cannot as e:
            entry.update(status=e.status, reason=str(e))
            show.absent(name, str(e))
            continue
        except Exception as e:
            said, ok = f"{type(e).__name__}: {e}", False
        entry.update(status="ok" if ok else "failed", reason=None if ok else said)
        check(f"{name:9}{said}", ok)
        gc.collect()


class _Cannot(Exception):
    """The library is here but there is nothing to show, for a good reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def _look_tvm_ffi(tvm_ffi: Any, numpy: Any, buffer: dlferry.Tensor, entry: dict[str, Any]) -> tuple[str, bool]:
    seen = []
    function = tvm_ffi.convert(lambda x: seen.append(x.data_ptr()))
    function(buffer)
    entry["pointer"], entry["shared"] = seen[0], seen[0] == buffer.data_ptr()
    entry["ns"] = _best(lambda: tvm_ffi.from_dlpack(buffer))
    return f"took the tensor as an argument of a call, over the same memory (import {_time(entry['ns'])})", entry["shared"]


def _look_jax(jax: Any, numpy: Any, buffer: dlferry.Tensor, entry: dict[str, Any]) -> tuple[str, bool]:
    try:
        array = dlferry.convert(buffer, jax.Array)
    except BufferError as e:
        raise _Cannot("refused", f"refused, rightly: {e}") from e
    entry["pointer"] = array.unsafe_buffer_pointer()
    entry["shared"] = entry["pointer"] == buffer.data_ptr()
    entry["ns"] = _best(lambda: dlferry.convert(buffer, jax.Array), repeats=20)
    right = numpy.array_equal(numpy.asarray(array), buffer.numpy(), equal_nan=buffer.dtype.kind in ("float", "complex"))
    return f"{array.dtype} array over the same memory, values equal ({_time(entry['ns'])})", bool(right) and entry["shared"]


def _look_cupy(cupy: Any, numpy: Any, buffer: dlferry.Tensor, entry: dict[str, Any]) -> tuple[str, bool]:
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as e:
        raise _Cannot("no device", f"installed, but no GPU ({e})") from e
    if not count:
        raise _Cannot("no device", "installed, but no GPU")
    array = dlferry.convert(buffer, cupy.ndarray)
    there = dlferry.from_dlpack(array)
    entry["pointer"], entry["shared"] = there.data_ptr(), True
    entry["ns"] = _best(lambda: dlferry.from_dlpack(array))
    right = numpy.array_equal(cupy.asnumpy(array), buffer.numpy(), equal_nan=buffer.dtype.kind in ("float", "complex"))
    same = there.data_ptr() == array.data.ptr and there.device == ("cuda:0" if not cupy.cuda.runtime.is_hip else "rocm:0")
    return f"copied to {there.device}; Go sees CuPy's own memory there ({_time(entry['ns'])})", bool(right and same)


# --- small things ---


def _import(name: str) -> tuple[Any, str]:
    """The module, or None and why."""
    if importlib.util.find_spec(name) is None:
        return None, "not installed"
    try:
        return importlib.import_module(name), ""
    except Exception as e:
        return None, f"installed, but does not import ({type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''})"


def _best(call: Callable[[], Any], repeats: int = _REPEATS) -> int:
    """Nanoseconds of the fastest call, the end of what it returned included."""
    call()
    return round(min(timeit.repeat(call, repeat=repeats, number=_CALLS)) / _CALLS * 1e9)


def _owns(x: Any) -> bool:
    """Whether a library's tensor is the owner of its memory, by its own account."""
    if hasattr(x, "untyped_storage"):
        return bool(x.untyped_storage().resizable())
    flags = getattr(x, "flags", None)
    return flags is not None and bool(flags.owndata)


def _pointer(t: Any) -> int:
    return int(t.data_ptr())


def _numpy_pointer(a: Any) -> int:
    return int(a.__array_interface__["data"][0])


def _type_name(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}"


def _time(ns: float) -> str:
    return f"{ns:.0f} ns" if ns < 10_000 else f"{ns / 1000:.1f} us" if ns < 10_000_000 else f"{ns / 1e6:.1f} ms"


def _size(nbytes: int) -> str:
    return f"{nbytes} bytes" if nbytes < 1024 else f"{nbytes / 1024:.0f} KiB" if nbytes < 1 << 20 else f"{nbytes / (1 << 20):.1f} MiB"


def _counts(ledger: dict[str, int]) -> str:
    return ", ".join(f"{v} {k}" for k, v in ledger.items())


class _Checks:
    """Notes what was claimed and whether it holds."""

    def __init__(self, report: dict[str, Any], show: _Show) -> None:
        self.report, self.show = report, show

    def __call__(self, claim: str, ok: object, *, quiet: bool = False) -> None:
        self.report["checks"].append({"claim": " ".join(claim.split()), "ok": bool(ok)})
        if not quiet or not ok:
            self.show.check(claim, bool(ok))


class _Show:
    """The text in the terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.colour = not quiet and sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def paint(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def write(self, text: str = "") -> None:
        if not self.quiet:
            print(text, flush=True)

    def title(self, text: str) -> None:
        self.write(self.paint("1", f"dlferry {dlferry.__version__}: {text}"))

    def section(self, text: str) -> None:
        self.write()
        self.write(self.paint("1", text))

    def line(self, text: str) -> None:
        self.write(f"  {text}")

    def check(self, claim: str, ok: bool) -> None:
        self.write(f"  {self.paint('32', 'ok  ') if ok else self.paint('31;1', 'FAIL')} {claim}")

    def absent(self, name: str, reason: str) -> None:
        self.line(f"{self.paint('33', '-   ')} {name:9}{reason}")

    def hop_header(self) -> None:
        self.line(f"{'hop':18}{'gives':16}{'pointer':16}{'time':>9}   {'own route':26}{'time':>9}{'ratio':>8}")

    def hop(self, e: dict[str, Any]) -> None:
        gives = {"numpy.ndarray": "ndarray", "dlferry.Tensor": "dlferry.Tensor", "torch.Tensor": "torch.Tensor"}.get(e["type"], e["type"])
        where = f"{e['pointer']:#x}" if e["shared"] else self.paint("31;1", f"{e['pointer']:#x}")
        line = f"{e['from'] + ' -> ' + e['to']:18}{gives:16}{where:16}{_time(e['ns']):>9}   "
        self.line(f"{line}{e['own_route']:26}{_time(e['own_ns']):>9}{e['ratio']:>7.2f}x")

    def verdict(self, report: dict[str, Any]) -> None:
        self.write()
        if report["error"] is not None:
            print(f"demo: {report['error']}", file=sys.stderr)
            return
        bad = [c["claim"] for c in report["checks"] if not c["ok"]]
        if bad:
            self.write(self.paint("31;1", f"{len(bad)} of {len(report['checks'])} checks failed:"))
            for claim in bad:
                self.line(claim)
        else:
            self.write(self.paint("32", f"All {len(report['checks'])} checks hold: one buffer, no copy, freed once."))
