"""Colour where a terminal shows it, and columns."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bold", "good", "bad", "dim", "table"]  # noqa: RUF022 (in the order of use)


def _paint(code: str, text: str) -> str:
    colour = text and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\033[{code}m{text}\033[0m" if colour else text


def bold(text: str) -> str:
    return _paint("1", text)


def good(text: str) -> str:
    return _paint("32", text)


def bad(text: str) -> str:
    return _paint("31;1", text)


def dim(text: str) -> str:
    return _paint("2", text)


def table(rows: Sequence[Sequence[str]], paint: Sequence[Sequence[str]] = ()) -> list[str]:
    """Lines with columns of one width each; ``paint`` holds the same cells with colour, which has no width."""
    if not rows:
        return []
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for i, row in enumerate(rows):
        shown = paint[i] if paint else row
        lines.append("  ".join(s + " " * (w - len(c)) for s, c, w in zip(shown, row, widths, strict=True)).rstrip())
    return lines
