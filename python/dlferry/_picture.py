"""The picture of a tensor's memory: one cell for each place, in the order of addresses, coloured by the element that lies there."""

from __future__ import annotations

from colorsys import hls_to_rgb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["picture"]

_MOST_ROWS = 12
_MOST_COLUMNS = 24
_MOST_PATH = 64
_CELL, _LEFT, _TOP = 34, 12, 30
_TEXT = 'font-family="ui-monospace,monospace"'


def picture(found: dict[str, Any]) -> str:
    """An SVG of the layout that `explain` found; "" when there are no elements to draw."""
    if not found.get("size"):
        return ""
    shape = found["shape"]
    strides = found["strides"] if found["strides"] is not None else _compact(shape)
    low, high = found["layout"]["lowest"], found["layout"]["highest"]
    columns = _columns(shape, strides, high - low + 1)
    shown = min(high - low + 1, columns * _MOST_ROWS)
    first = low if -low < shown else 0  # the first element is in the picture
    indices = _indices(shape, strides, first, first + shown)
    rows = -(-shown // columns)
    labels = max((len(_label(i)) for places in indices.values() for i in places), default=1) <= 5
    parts = []
    for place in range(shown):
        x, y = _LEFT + place % columns * _CELL, _TOP + place // columns * _CELL
        here = indices.get(first + place, [])
        parts.append(_cell(x, y, here, shape, labels))
    parts.append(_path(shape, strides, first, shown, columns))
    notes = _captions(found, shape, strides, shown, high - low + 1, len(indices) < shown)
    width = max(_LEFT * 2 + columns * _CELL, 420)
    height = _TOP + rows * _CELL + 14 + 16 * len(notes)
    below = _TOP + rows * _CELL + 20
    texts = [f'<text x="{_LEFT}" y="{below + 16 * i}" font-size="11" fill="currentColor" {_TEXT}>{t}</text>' for i, t in enumerate(notes)]
    title = f"{found['dtype']['name']} {tuple(shape)} in memory"
    head = f'<text x="{_LEFT}" y="18" font-size="12" font-weight="bold" fill="currentColor" {_TEXT}>{title}, {_bytes(found["dtype"]["itemsize"])} a cell</text>'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    )
    return "".join([opening, head, *parts, *texts, "</svg>"])


def _compact(shape: list[int]) -> list[int]:
    from ._view import compact_strides

    return list(compact_strides(shape))


def _columns(shape: list[int], strides: list[int], places: int) -> int:
    """As many that a step along some axis leads straight down, if that reads well; else as many as fit."""
    steps = sorted({abs(s) for n, s in zip(shape, strides, strict=True) if n > 1 and 2 <= abs(s) <= _MOST_COLUMNS}, reverse=True)
    for s in steps:
        if s >= places:
            continue
        columns = s
        while places / columns > _MOST_ROWS and columns + s <= _MOST_COLUMNS:
            columns += s
        return columns
    return min(places, 16)


def _indices(shape: list[int], strides: list[int], first: int, end: int) -> dict[int, list[tuple[int, ...]]]:
    """Which elements lie at the places that are shown; at most as many for each place as can be told."""
    found: dict[int, list[tuple[int, ...]]] = {}
    # Axes with the widest steps first, so that branches out of sight are cut early.
    order = sorted(range(len(shape)), key=lambda a: -abs(strides[a]))
    rest = [0] * (len(order) + 1)  # how far the axes that follow can lead back and forth
    back = [0] * (len(order) + 1)
    for k in range(len(order) - 1, -1, -1):
        n, s = shape[order[k]], strides[order[k]]
        rest[k] = rest[k + 1] + max(0, (n - 1) * s)
        back[k] = back[k + 1] + min(0, (n - 1) * s)
    index = [0] * len(shape)
    budget = 20_000

    def walk(k: int, place: int) -> None:
        nonlocal budget
        if place + rest[k] < first or place + back[k] >= end or budget <= 0:
            return
        budget -= 1
        if k == len(order):
            found.setdefault(place, []).append(tuple(index))
            return
        axis = order[k]
        n, s = shape[axis], strides[axis]
        span = range(n)
        if s == 0:
            span = range(min(n, 8))
        elif n > 64:
            # only those that can lead into sight
            a, b = (first - place - rest[k + 1]) / s, (end - 1 - place - back[k + 1]) / s
            span = range(max(0, int(min(a, b)) - 1), min(n, int(max(a, b)) + 2))
        for i in span:
            index[axis] = i
            walk(k + 1, place + i * s)
        index[axis] = 0

    walk(0, 0)
    return found


def _bytes(n: int) -> str:
    return f"{n} byte" if abs(n) == 1 else f"{n} bytes"


def _label(index: tuple[int, ...]) -> str:
    return ",".join(map(str, index))


def _colour(index: tuple[int, ...], shape: list[int]) -> str:
    """The hue tells the position along the first axis longer than 1, the lightness that along the last."""
    axes = [a for a, n in enumerate(shape) if n > 1]
    if not axes:
        return "#86c1e9"
    first, last = axes[0], axes[-1]
    hue = 205 + 300 * index[first] / shape[first]
    light = 66 if first == last else 56 + 28 * index[last] / max(1, shape[last] - 1)
    red, green, blue = hls_to_rgb(hue % 360 / 360, light / 100, 0.68)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _cell(x: int, y: int, here: list[tuple[int, ...]], shape: list[int], labels: bool) -> str:
    box = f'x="{x + 1}" y="{y + 1}" width="{_CELL - 2}" height="{_CELL - 2}" rx="3"'
    if not here:
        return f'<rect {box} fill="none" stroke="#999" stroke-dasharray="2 3"/>'
    shared = len(here) > 1
    edge = 'stroke="#c00" stroke-width="2"' if shared else 'stroke="#555" stroke-width="0.5"'
    names = "; ".join(_label(i) or "()" for i in here[:8]) + ("; ..." if len(here) > 8 else "")
    text = f"x{len(here)}" if shared else _label(here[0]) if labels else ""
    label = (
        f'<text x="{x + _CELL // 2}" y="{y + _CELL // 2 + 4}" text-anchor="middle" font-size="10" fill="#111" {_TEXT}>{text}</text>' if text else ""
    )
    return f'<g><title>[{names}]</title><rect {box} fill="{_colour(here[0], shape)}" {edge}/>{label}</g>'


def _path(shape: list[int], strides: list[int], first: int, shown: int, columns: int) -> str:
    """A line through the first elements in their logical order."""
    points: list[str] = []
    index = [0] * len(shape)
    size = 1
    for n in shape:
        size *= n
    for _ in range(min(size, _MOST_PATH)):
        place = sum(i * s for i, s in zip(index, strides, strict=True)) - first
        if not 0 <= place < shown:
            break
        points.append(f"{_LEFT + place % columns * _CELL + _CELL // 2},{_TOP + place // columns * _CELL + _CELL - 7}")
        for axis in range(len(shape) - 1, -1, -1):
            index[axis] += 1
            if index[axis] < shape[axis]:
                break
            index[axis] = 0
    if not points:
        return ""
    x, y = points[0].split(",")
    start = f'<circle cx="{x}" cy="{y}" r="3" fill="#111"/>'
    if len(points) < 2:
        return start
    line = f'<polyline points="{" ".join(points)}" fill="none" stroke="#111" stroke-opacity="0.45"/>'
    x, y = points[-1].split(",")
    return f'{line}{start}<circle cx="{x}" cy="{y}" r="3" fill="none" stroke="#111"/>'


def _captions(found: dict[str, Any], shape: list[int], strides: list[int], shown: int, places: int, gaps: bool) -> list[str]:
    size = found["dtype"]["itemsize"]
    notes = []
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        if axis == 8:
            notes.append(f"and {len(shape) - 8} axes more")
            break
        how = "repeats" if s == 0 and n > 1 else f"steps {s} {'cell' if abs(s) == 1 else 'cells'} ({_bytes(s * size)})"
        notes.append(f"axis {axis}: {n} long, {how}")
    notes.append("line: logical order, from the dot")
    if gaps:
        notes.append("dashed: memory between the elements")
    if found["layout"]["overlapping"]:
        notes.append("red: several elements in one place")
    if places > shown:
        notes.append(f"the first {shown} of {places} places are drawn")
    return notes
