"""The figures as bars: one panel a row, dlferry in colour, the floor as a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.build import Unavailable

OURS, OTHERS, FLOOR = "#1f6f8b", "#c9c9c9", "#d1495b"
ACROSS = 3


def draw(found: dict[str, Any], path: Path) -> None:
    """Write an SVG (or what the suffix of the path says). Unavailable without matplotlib."""
    try:
        import matplotlib
    except ImportError as e:
        raise Unavailable(f"{e}") from e
    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.hashsalt": "dlferry", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot

    rows = [row for row in found["rows"] if any(case["who"] == "dlferry" for case in row["cases"])]
    if not rows:
        raise Unavailable("no row with dlferry in it")
    down = -(-len(rows) // ACROSS)
    heights = [max(len(row["cases"]) for row in rows[k * ACROSS : (k + 1) * ACROSS]) for k in range(down)]
    figure, panels = pyplot.subplots(
        down, ACROSS, figsize=(5.2 * ACROSS, sum(0.24 * n + 0.75 for n in heights)), squeeze=False, height_ratios=[n + 2 for n in heights]
    )
    for panel, row in zip(panels.flat, rows, strict=False):
        one(panel, row)
    for panel in list(panels.flat)[len(rows) :]:
        panel.set_axis_off()
    m = found["machine"]
    figure.suptitle(f"dlferry {m['dlferry']}, {m['python']}, {m['cpu']}; the fastest of the rounds, shorter is better", y=0.999)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def one(panel: Any, row: dict[str, Any]) -> None:
    """A row's contestants, dlferry first, then by time; one that takes ten times as long as dlferry is cut off."""
    own = next(case["min_ns"] for case in row["cases"] if case["who"] == "dlferry")
    scale, unit = (1e6, "ms") if row["heavy"] else (1.0, "ns")
    cases = sorted(row["cases"], key=lambda case: (case["who"] != "dlferry", case["min_ns"]))
    limit = min(max(case["min_ns"] for case in cases), 10 * own) / scale
    for k, case in enumerate(cases):
        value = case["min_ns"] / scale
        panel.barh(k, min(value, limit), color=OURS if case["who"] == "dlferry" else OTHERS)
        panel.text(min(value, limit), k, f" {value:,.0f}{' (cut off)' if value > limit else ''}" if value >= 100 else f" {value:.3g}", va="center")
        if case["who"] == "floor":
            panel.axvline(value, color=FLOOR, linewidth=1)
    panel.set_yticks(range(len(cases)), [case["who"] for case in cases])
    panel.invert_yaxis()
    panel.set_xlim(0, limit * 1.25 or 1)
    panel.set_title(f"{row['title']} [{unit}]", loc="left", fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
