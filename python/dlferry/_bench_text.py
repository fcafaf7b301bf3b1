"""What a benchmark run found: one dict for programs, and tables for people."""

from __future__ import annotations

from typing import Any

from ._bench_run import Bar, Row, Suite
from ._terminal import bad, bold, dim, good, table

__all__ = ["as_dict", "markdown", "text"]


def as_dict(suite: Suite) -> dict[str, Any]:
    """The measured rows: ns, and ratios to the floor (``x_floor``) and to dlferry (``x_dlferry``), null where that contestant is absent."""
    found = [_row(row) for row in suite.rows.values()]
    return {"rows": [row for row in found if row["cases"]], "skipped": [{"what": what, "why": why} for what, why in suite.skipped]}


def _row(row: Row) -> dict[str, Any]:
    own, floor = (found.minimum if found else None for found in (row.get("dlferry"), row.get("floor")))
    cases = []
    for case in row.cases:
        if not case.samples:
            continue
        cases.append(
            {
                "who": case.who,
                "code": case.code,
                "min_ns": round(case.minimum, 2),
                "median_ns": round(case.median, 2),
                "rounds": len(case.samples),
                "loops": case.loops,
                "x_floor": _ratio(case.minimum, floor),
                "x_dlferry": _ratio(case.minimum, own),
            }
        )
    return {"key": row.key, "title": row.title, "note": row.note, "heavy": row.heavy, "bars": [_bar(bar, row) for bar in row.bars], "cases": cases}


def _bar(bar: Bar, row: Row) -> dict[str, Any]:
    value = bar.value(row)
    met = None if value is None else value <= bar.at_most
    return {"text": bar.text, "against": bar.against, "at_most": bar.at_most, "value": None if value is None else round(value, 4), "met": met}


def _ratio(value: float, other: float | None) -> float | None:
    return round(value / other, 3) if other else None


def text(found: dict[str, Any]) -> list[str]:
    """Lines for a terminal."""
    lines: list[str] = []
    for row in found["rows"]:
        lines += ["", bold(row["title"])]
        cells = [["", "", "min", "median", "x floor", "x dlferry"]]
        cells += [
            [case["who"], case["code"], _time(case["min_ns"]), _time(case["median_ns"]), _times(case["x_floor"]), _times(case["x_dlferry"])]
            for case in row["cases"]
        ]
        shown = [k for k in range(6) if k < 4 or any(cell[k] for cell in cells[1:])]
        cells = [[cell[k] for k in shown] for cell in cells]
        widths = [max(len(cell[k]) for cell in cells) for k in range(len(cells[0]))]
        cells = [[*cell[:2], *(c.rjust(w) for c, w in zip(cell[2:], widths[2:], strict=True))] for cell in cells]
        paint = [[dim(c) for c in cells[0]], *([bold(cell[0]) if cell[0] == "dlferry" else cell[0], dim(cell[1]), *cell[2:]] for cell in cells[1:])]
        lines += [f"  {line}" for line in table(cells, paint)]
        lines += [f"  {dim('to reach:')} {bar['text']}: {_verdict(bar)}" for bar in row["bars"] if bar["met"] is not None]
        if row["note"]:
            lines.append(f"  {dim(row['note'])}")
    for skipped in found["skipped"]:
        lines += ["" if skipped is found["skipped"][0] else None, f"skipped: {skipped['what']}: {skipped['why']}"]  # type: ignore[list-item]
    return [line for line in lines if line is not None]


def _value(bar: dict[str, Any]) -> str:
    """As the bar's text puts it: ns, times as long, or, where dlferry has to be the faster one, times as fast."""
    value = bar["value"]
    if not bar["against"]:
        return f"{value:.0f} ns"
    return f"{value:.2f} x" if bar["at_most"] >= 1 and bar["text"].startswith("<=") else f"{1 / max(value, 1e-9):.2f} x as fast"


def _verdict(bar: dict[str, Any]) -> str:
    return f"{_value(bar)}, {good('reached') if bar['met'] else bad('not reached')}"


def _time(ns: float) -> str:
    if ns < 10_000:
        return f"{ns:.1f} ns" if ns < 100 else f"{ns:.0f} ns"
    return f"{ns / 1e3:.1f} us" if ns < 1e6 else f"{ns / 1e6:.2f} ms"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"


def markdown(found: dict[str, Any]) -> list[str]:
    """The same as one table of GitHub's Markdown, a line a contestant."""
    lines = ["| operation | who | min | median | x floor | x dlferry | to reach |", "|---|---|---:|---:|---:|---:|---|"]
    for row in found["rows"]:
        for k, case in enumerate(row["cases"]):
            bars = "; ".join(
                f"{bar['text']}: {_value(bar)}{'' if bar['met'] else ' **no**'}"
                for bar in row["bars"]
                if bar["met"] is not None and case["who"] == "dlferry"
            )
            cells = [
                row["title"] if k == 0 else "",
                case["who"],
                _time(case["min_ns"]),
                _time(case["median_ns"]),
                _times(case["x_floor"]),
                _times(case["x_dlferry"]),
                bars,
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines
