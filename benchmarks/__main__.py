"""`python -m benchmarks`: dlferry against the floor and its peers. `make bench` sets up what it needs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import build, contestants, plot
from dlferry import _bench, _bench_memory, _bench_process, _bench_rows, _bench_text
from dlferry._bench_run import Suite

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller buffers: about a minute")
    parser.add_argument("--only", metavar="PATTERN", default="", help="the rows whose key, or the cases whose key/contestant, matches")
    parser.add_argument("--rounds", metavar="N", type=int, help="how often each small case is visited (60)")
    parser.add_argument(
        "--exchanges",
        metavar="N",
        type=int,
        help="how many of each kind to look for memory left behind (1000000; 10000000 for a result that is kept)",
    )
    parser.add_argument("--no-memory", action="store_true", help="without the copies of whole buffers")
    parser.add_argument("--no-process", action="store_true", help="without import time, memory left behind and threads")
    parser.add_argument("--list", action="store_true", help="print the keys and end")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what was found as JSON")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the table as Markdown")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw it, with matplotlib: an .svg or what else the suffix says")
    parser.add_argument("--save", metavar="NAME", help="write NAME.json, .md and .svg to benchmarks/results")
    given = parser.parse_args(argv)

    # Ninja, which tvm-ffi builds with, may be in the environment alone.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    suite = Suite()
    lib = _bench_rows.Libraries(suite)
    _bench_rows.rows(suite, lib)
    contestants.add(suite, lib)
    _bench_memory.size_rows(suite, lib)
    if not given.no_memory and _bench_memory.memory_wanted(given.only):
        _bench_memory.memory_rows(suite, lib, mib=16 if given.quick else 256)
    if given.only:
        suite.select(given.only)
    if given.list:
        print("\n".join(f"{row.key:20} {row.title}" for row in suite.rows.values()))
        return 0
    found = _bench.measured(suite, rounds=given.rounds or (10 if given.quick else 60), heavy_rounds=3 if given.quick else 7)
    found["commit"] = commit()
    if not given.no_process:
        exchanges = given.exchanges or (20_000 if given.quick else 1_000_000)
        found["process"] = _bench_process.process(exchanges=exchanges, only=given.only)
    print("\n".join([*_bench.heading(found), *_bench_text.text(found), *_bench_process.text(found.get("process", {}))]), flush=True)
    write(found, given.json, given.markdown, given.plot)
    if given.save:
        RESULTS.mkdir(exist_ok=True)
        base = RESULTS / given.save
        write(found, base.with_suffix(".json"), base.with_suffix(".md"), base.with_suffix(".svg"))
    return 0


def commit() -> str:
    """The commit of the tree, with "+" when files differ from it; empty without git."""
    try:
        head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True, stderr=subprocess.DEVNULL).strip()
        changed = subprocess.check_output(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT, text=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")


def write(found: dict[str, Any], as_json: Path | None, as_markdown: Path | None, as_plot: Path | None) -> None:
    if as_json:
        as_json.write_text(json.dumps(found, indent=1) + "\n")
    if as_markdown:
        lines = [*_bench.heading(found), "", *_bench_text.markdown(found), *_bench_process.text(found.get("process", {}))]
        as_markdown.write_text("\n".join(lines) + "\n")
    if as_plot:
        try:
            plot.draw(found, as_plot)
        except build.Unavailable as e:
            print(f"skipped: plot: {e}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
