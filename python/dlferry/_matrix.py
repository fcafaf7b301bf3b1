"""``python -m dlferry matrix``: every installed library's tensors given to every other one, each pair really tried.

Processes of their own do the trying, one for each consumer: where a library crashes, the cell says so and the rest goes on.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dlferry

from . import _capsule, _core
from ._capsule import Reading
from ._peers import PEERS, installed
from ._terminal import bad, bold, dim, good, table
from ._zconst import VERSION

__all__ = ["CASES", "matrix", "work"]

_VALUES = [[0, 1, 2, 3], [4, 5, 6, 7]]
_PATIENCE = 180.0  # seconds that a cell may take, imports included


class _Cannot(Exception):
    """A library cannot make a case."""


class _Case:
    """A kind of tensor to try: how it is made of a plain one, and how to tell that it came out so."""

    def __init__(self, dtype: str = "float32", values: Any = None, view: Any = None, holds: Any = None) -> None:
        self.dtype = dtype
        self.values = _VALUES if values is None else values
        self.view = view
        self.holds = holds


def _has_gaps(r: Reading) -> bool:
    return not _capsule.layout(r.shape, r.steps)["contiguous"]


CASES = {
    "contiguous": _Case(),
    "strided": _Case(view=lambda x: x[:, ::2], holds=_has_gaps),
    "negative": _Case(view=lambda x: x[:, ::-1], holds=lambda r: any(s < 0 for s in r.steps)),
    "zero-size": _Case(view=lambda x: x[:0, :], holds=lambda r: r.size == 0),
    "0-d": _Case(values=7),
    "bool": _Case("bool", [[True, False], [False, True]]),
    "int64": _Case("int64"),
    "float64": _Case("float64"),
    "complex64": _Case("complex64"),
    "bfloat16": _Case("bfloat16"),
    "float8": _Case("float8_e4m3fn"),
    "read-only": _Case(holds=lambda r: r.readonly),
}


# --- in a process of its own ---


def work() -> None:
    """Try the cells that stdin names, and print one JSON line before and one after each."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not get between the lines
    task = json.load(sys.stdin)
    for k, (producer, consumer, case) in enumerate(task):
        print(json.dumps({"begin": k}), file=lines, flush=True)
        print(json.dumps({"end": k, "cell": _cell(producer, consumer, case)}), file=lines, flush=True)


def _cell(producer: str, consumer: str, case: str) -> dict[str, Any]:
    from ._explain import tried

    take = _taker(consumer)
    if isinstance(take, str):
        return {"mark": "-", "text": take}
    try:
        x = _make(producer, case)
    except _Cannot as e:
        return {"mark": "-", "text": str(e)}
    except Exception as e:
        return {"mark": "-", "text": f"{producer} cannot make it: {type(e).__name__}: {_line(e)}"}
    try:
        reading, expected = _read(x)
    except Exception as e:
        return {"mark": "-", "text": f"{producer} refuses to export it: {type(e).__name__}: {_line(e)}"}
    row = tried(consumer, None, lambda: take(x), reading, expected)
    mark = {"zero-copy": "Z", "copy": "C", "changes": "W", "takes": "?"}.get(row["verdict"], row["error"])
    if mark in ("Z", "C") and row["readonly"]:
        mark += "+ro"
    if mark == "Z" and reading.readonly and reading.size:
        mark = "Z!"
    return {"mark": mark, "text": row["why"]}


def _taker(name: str) -> Any:
    if name == "dlferry":
        return dlferry.from_dlpack
    peer = next(p for p in PEERS if p.name == name)
    try:
        module = _load(peer.module)
    except Exception as e:
        return f"{name} does not import: {type(e).__name__}: {_line(e)}"
    take = peer.take
    assert take is not None
    return lambda x: take(module, x)


def _read(x: Any) -> tuple[Reading, list[bytes] | None]:
    try:
        capsule = x.__dlpack__(max_version=VERSION)
    except TypeError:
        capsule = x.__dlpack__()
    reading = _capsule.read(capsule, values=64)
    return reading, reading.values


def _load(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


def _line(e: Exception) -> str:
    return (str(e).strip().splitlines() or [""])[0][:160]


def _make(producer: str, name: str) -> Any:
    """The library's own tensor of a case, or `_Cannot`."""
    case = CASES[name]
    if producer in _VIEWERS:
        x = _VIEWERS[producer](case)
    else:
        x = _MAKERS[producer](case)
        if case.view is not None:
            x = case.view(x)
    if name == "read-only":
        if producer == "dlferry":
            x = _core._readonly(x)
        elif producer == "numpy":
            x.flags.writeable = False
    if case.holds is not None and not case.holds(_read(x)[0]):
        raise _Cannot(f"{producer} has no such tensors")
    return x


def _dlferry(case: _Case) -> Any:
    return dlferry.asarray(case.values, dtype="float32" if case.dtype != "bool" else "bool").astype(case.dtype)


def _array(case: _Case) -> Any:
    numpy = _load("numpy")
    try:
        dtype = numpy.dtype(case.dtype)
    except TypeError:
        raise _Cannot(f"NumPy has no {case.dtype}") from None
    return numpy.array(case.values, dtype)


def _typed(module: Any, case: _Case) -> Any:
    found = getattr(module, case.dtype, None) or getattr(module, f"{case.dtype}_", None)
    if found is None:
        raise _Cannot(f"{module.__name__} has no {case.dtype}")
    return found


def _torch(case: _Case) -> Any:
    torch = _load("torch")
    return torch.tensor(case.values).to(_typed(torch, case))


def _jax(case: _Case) -> Any:
    jnp = _load("jax.numpy")
    x = jnp.array(case.values).astype(_typed(jnp, case))
    if x.dtype != case.dtype:
        raise _Cannot(f"JAX has no {case.dtype} while jax_enable_x64 is off")
    return x


def _viewed(x: Any, case: _Case) -> Any:
    return x if case.view is None else case.view(x)


def _tvm_ffi(case: _Case) -> Any:
    return _load("tvm_ffi").from_dlpack(_viewed(_dlferry(case), case))


def _mlx(case: _Case) -> Any:
    mx = _load("mlx.core")
    return mx.array(case.values).astype(_typed(mx, case))


def _tensorflow(case: _Case) -> Any:
    tf = _load("tensorflow")
    return tf.cast(tf.constant(case.values), _typed(tf, case))


def _paddle(case: _Case) -> Any:
    paddle = _load("paddle")
    _typed(paddle, case)
    return paddle.to_tensor(case.values).astype(case.dtype)


def _pyarrow(case: _Case) -> Any:
    if case.dtype == "bool":
        raise _Cannot("PyArrow makes uint8 of it")
    return _load("pyarrow").Tensor.from_numpy(_viewed(_array(case), case))


def _onnxruntime(case: _Case) -> Any:
    return _load("onnxruntime").OrtValue.ortvalue_from_numpy(_viewed(_array(case), case))


def _warp(case: _Case) -> Any:
    return _load("warp").array(_array(case), device="cpu")


def _strict(case: _Case) -> Any:
    strict = _load("array_api_strict")
    return strict.asarray(_array(case))


_MAKERS = {
    "dlferry": _dlferry, "numpy": _array, "torch": _torch, "jax": _jax, "array_api_strict": _strict, "mlx": _mlx,
    "tensorflow": _tensorflow, "paddle": _paddle, "warp": _warp,
}  # fmt: skip
_VIEWERS = {"tvm_ffi": _tvm_ffi, "pyarrow": _pyarrow, "onnxruntime": _onnxruntime}  # their tensors have no slices: the view comes first


# --- the processes ---


class _Worker:
    """A process that tries cells, and what it says."""

    def __init__(self, cells: list[tuple[str, str, str]]) -> None:
        code = f"import sys; sys.path.append({str(Path(dlferry.__file__).parent.parent)!r}); from dlferry._matrix import work; work()"
        env = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, text=True)
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        assert self.process.stdin is not None
        try:
            with self.process.stdin as stdin:
                json.dump(cells, stdin)
        except BrokenPipeError:
            pass  # it ended already, which the caller sees

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in stdout:
                self.lines.put(line)
        self.lines.put(None)

    def next(self) -> dict[str, Any] | None:
        """What it says next; None when it says no more. TimeoutError when it is silent for too long, which ends it."""
        try:
            line = self.lines.get(timeout=_PATIENCE)
        except queue.Empty:
            self.process.kill()
            raise TimeoutError from None
        if line is None:
            return None
        found: dict[str, Any] = json.loads(line)
        return found


def _try_all(cells: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """The outcome of each cell. Where the process ends early, the cell it was at is tried once more alone, and the rest after it."""
    done: list[dict[str, Any]] = []
    while len(done) < len(cells):
        rest = cells[len(done) :]
        before = len(done)
        died = _run(rest, done)
        if died is not None and len(done) < len(cells):
            alone = len(done) > before and len(rest) > 1
            again: list[dict[str, Any]] = []
            if alone:
                died = _run(cells[len(done) : len(done) + 1], again)
            done += again or [died or {"mark": "crash", "text": "its process ended early"}]
    return done


def _run(cells: list[tuple[str, str, str]], done: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Append outcomes; what became of the cell at which the process ended, if it did not reach the end."""
    worker = _Worker(cells)
    reached = 0
    try:
        while True:
            said = worker.next()
            if said is None:
                break
            if "end" in said:
                done.append(said["cell"])
                reached += 1
    except TimeoutError:
        worker.process.wait()
        return {"mark": "hang", "text": f"no end within {_PATIENCE:.0f} s"}
    code = worker.process.wait()
    if reached == len(cells):
        return None
    name = signal.Signals(-code).name if code < 0 and -code in set(signal.Signals) else f"exit code {code}"
    return {"mark": "crash", "text": f"the process ended with {name}"}


def collect(*, cases: list[str], only: list[str] | None = None) -> dict[str, Any]:
    """Try all pairs of the libraries that are installed, in each case.

    Returns
    -------
    dict
        ``libraries`` (name to version), ``absent``, and ``cells``: one for each producer, consumer and case, with a ``mark`` and a ``text``.
    """
    from concurrent.futures import ThreadPoolExecutor

    here = {"dlferry": dlferry.__version__, **{peer.name: version for peer, version in installed() if _can_be_tried(peer.name)}}
    if only is not None:
        here = {name: version for name, version in here.items() if name in only or name == "dlferry"}
    groups = [[(producer, consumer, case) for case in cases for producer in here] for consumer in here]
    with ThreadPoolExecutor(max(1, min(4, len(os.sched_getaffinity(0))))) as pool:
        outcomes = list(pool.map(_try_all, groups))
    cells = [
        {"case": case, "producer": producer, "consumer": consumer, **outcome}
        for group, results in zip(groups, outcomes, strict=True)
        for (producer, consumer, case), outcome in zip(group, results, strict=True)
    ]
    absent = [peer.name for peer in PEERS if peer.take is not None and peer.name not in here and (only is None or peer.name in only)]
    return {"libraries": here, "absent": absent, "cases": cases, "cells": cells}


def _can_be_tried(name: str) -> bool:
    return name in _MAKERS or name in _VIEWERS


def matrix(*, cases: list[str], only: list[str] | None = None, as_json: bool = False) -> int:
    """Print the tables; the exit code is 1 when dlferry, taking a tensor, crashed, hung or changed it, else 0."""
    found = collect(cases=cases, only=only)
    faulty = [c for c in found["cells"] if c["consumer"] == "dlferry" and c["mark"] in ("crash", "hang", "W")]
    found["ok"] = not faulty
    print(json.dumps(found, indent=2) if as_json else "\n".join(_text(found)))
    return 0 if found["ok"] else 1


# --- words ---

_LEGEND = (
    ("Z", "zero-copy"),
    ("C", "copied"),
    ("+ro", "comes out read-only"),
    ("Z!", "a writable view of read-only memory"),
    ("W", "another dtype or other values come out"),
    ("?", "taken, cannot tell whether copied"),
    ("-", "the producer has no such tensor"),
    ("...Error", "refused with it"),
)


def _text(found: dict[str, Any]) -> list[str]:
    names = list(found["libraries"])
    lines = [f"{name} {version}" for name, version in found["libraries"].items()]
    lines = [bold("Producers down, consumers across"), *(f"  {line}" for line in lines)]
    if found["absent"]:
        lines.append(dim(f"  not installed: {', '.join(found['absent'])}"))
    marks: set[str] = set()
    for case in found["cases"]:
        cells = {(c["producer"], c["consumer"]): c for c in found["cells"] if c["case"] == case}
        lines += ["", bold(_title(case))]
        rows = [["", *names]]
        for producer in names:
            rows.append([producer, *(str(cells[producer, consumer]["mark"]) for consumer in names)])
        marks |= {mark for row in rows[1:] for mark in row[1:]}
        # A row without a single tensor says why instead.
        for row in rows[1:]:
            if set(row[1:]) == {"-"}:
                lines.append(f"  {row[0]}: {cells[row[0], names[0]]['text']}")
        rows = [row for row in rows if set(row[1:]) != {"-"}]
        painted = [[bold(c) for c in rows[0]], *([row[0], *map(_colour, row[1:])] for row in rows[1:])]
        lines += [f"  {line}" for line in table(rows, painted)]
    refused = _refusals(found)
    if refused:
        lines += ["", bold("Why not"), *refused]
    shown = [f"{mark} {text}" for mark, text in _LEGEND if any(mark in m for m in marks) or (mark == "...Error" and refused)]
    return [*lines, "", dim("; ".join(shown))]


def _title(case: str) -> str:
    dtype = CASES[case].dtype
    return f"{case} ({dtype})" if dtype != case else case


def _colour(mark: str) -> str:
    if mark.startswith("Z") and mark != "Z!":
        return good(mark)
    return bad(mark) if mark in ("Z!", "W", "crash", "hang") else dim(mark) if mark == "-" else mark


def _refusals(found: dict[str, Any]) -> list[str]:
    """One line for each consumer and reason, with the producers and cases."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for c in found["cells"]:
        if c["mark"] not in ("Z", "C", "Z+ro", "C+ro", "-", "?", "Z!"):
            where = c["producer"] if len(found["cases"]) == 1 else f"{c['producer']} ({c['case']})"
            reasons.setdefault((c["consumer"], c["mark"], c["text"]), []).append(where)
    return [f"  {consumer} <- {_few(where)}: {mark}: {text[:120]}".rstrip(": ") for (consumer, mark, text), where in reasons.items()]


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
