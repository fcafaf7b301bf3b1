"""`make bench` and `make instructions`."""

from __future__ import annotations

import os
import sys

from .progress import stream
from .project import ROOT, VENV, wheel


def bench() -> None:
    """dlferry beside its peers and its floor; the figures go to build/bench."""
    VENV.install_wheel(wheel())
    out = ROOT / "build" / "bench"
    out.mkdir(parents=True, exist_ok=True)
    options = ["--json", out / "bench.json", "--markdown", out / "bench.md", "--plot", out / "bench.svg", *os.environ.get("BENCH", "").split()]
    stream("benchmarks", [sys.executable, "-m", "benchmarks", *options], cwd=ROOT)


def instructions() -> None:
    """The instructions that the core exchanges take, against the recorded ones."""
    VENV.install_wheel(wheel())
    stream("instruction counts", [sys.executable, "-m", "benchmarks.instructions"], cwd=ROOT)
