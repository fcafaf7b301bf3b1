"""How a tensor prints: its values, with the middle left out when there are many, then dtype, shape and device."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._core import Tensor

_THRESHOLD = 1000
_WIDTH = 100
_DIGITS = {"float16": 4, "bfloat16": 4, "complex32": 4}


class _Gap:
    """Stands for the values left out."""


def text(t: Tensor) -> str:
    """The repr of a tensor. Never raises for a tensor that cannot be read: it says why instead."""
    name = type(t).__name__
    if t.closed:
        return f"<closed {name}>"
    notes = [f"shape={t.shape}", f"dtype={t.dtype}", f"device={t.device}"]
    if t.readonly:
        notes.append("readonly")
    tail = ", ".join(notes)
    try:
        values = _values(t)
    except (BufferError, RuntimeError, NotImplementedError) as e:
        return f"{name}(<no values: {e}>, {tail})"
    prefix = f"{name}("
    body = _layout(values, t, len(prefix))
    if "\n" not in body and len(prefix) + len(body) + len(tail) + 3 <= _WIDTH:
        return f"{prefix}{body}, {tail})"
    return f"{prefix}{body},\n{' ' * len(prefix)}{tail})"


def _values(t: Tensor) -> Any:
    """Nested lists of values; a `_Gap` where some are left out."""
    if t.size == 0:
        return []  # the shape tells the rest, and may promise more lists than there is memory
    if t.size <= _THRESHOLD:
        return t.tolist()
    edge = 3
    while edge > 1 and (2 * edge) ** t.ndim > _THRESHOLD:
        edge -= 1
    if 2**t.ndim > _THRESHOLD:
        # That many axes: only the first element.
        return [_core._view(t, (), (), 0).item(), _Gap]
    return _edges(t, t.shape, t.strides, 0, edge)


def _edges(t: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, edge: int) -> Any:
    if not shape:
        return _core._view(t, (), (), offset).item()
    n, s = shape[0], strides[0]
    if n <= 2 * edge + 1:
        return [_edges(t, shape[1:], strides[1:], offset + i * s, edge) for i in range(n)]
    head = [_edges(t, shape[1:], strides[1:], offset + i * s, edge) for i in range(edge)]
    rear = [_edges(t, shape[1:], strides[1:], offset + i * s, edge) for i in range(n - edge, n)]
    return [*head, _Gap, *rear]


def _layout(values: Any, t: Tensor, indent: int) -> str:
    write = _writer(t)
    if t.ndim == 0:
        return write(values)
    cells: list[str] = []
    _collect(values, write, cells)
    width = max(map(len, cells), default=0)
    return _lines(values, write, width, indent)


def _collect(values: Any, write: Callable[[Any], str], cells: list[str]) -> None:
    for v in values:
        if isinstance(v, list):
            _collect(v, write, cells)
        elif v is not _Gap:
            cells.append(write(v))


def _lines(values: list[Any], write: Callable[[Any], str], width: int, indent: int) -> str:
    inner = indent + 1
    if any(isinstance(v, list) for v in values):
        deep = 1
        v = values[0]
        while isinstance(v, list) and v and isinstance(v[0], list):
            deep += 1
            v = v[0]
        parts = ["..." if v is _Gap else _lines(v, write, width, inner) for v in values]
        return "[" + (",\n" * 1 + "\n" * (deep - 1) + " " * inner).join(parts) + "]"
    line, lines = "", []
    for i, v in enumerate(values):
        cell = "..." if v is _Gap else write(v).rjust(width)
        if i + 1 < len(values):
            cell += ","
        if line and inner + len(line) + 1 + len(cell) > _WIDTH - 20:
            lines.append(line)
            line = cell
        else:
            line = f"{line} {cell}" if line else cell
    lines.append(line)
    return "[" + ("\n" + " " * inner).join(lines) + "]"


def _writer(t: Tensor) -> Callable[[Any], str]:
    digits = 4 if t.itemsize == 1 else _DIGITS.get(t.dtype, 6)

    def real(v: float) -> str:
        s = f"{v:.{digits}g}"
        return s if any(c in s for c in ".en") else s + ".0"

    def write(v: Any) -> str:
        if isinstance(v, float):
            return real(v)
        if isinstance(v, complex):
            imag = real(v.imag)
            return f"{real(v.real)}{'' if imag.startswith('-') else '+'}{imag}j"
        if isinstance(v, tuple):
            return "(" + ", ".join(map(write, v)) + ")"
        return str(v)

    return write


__all__ = ["text"]
