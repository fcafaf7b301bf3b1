"""``python -m dlferry bench``: dlferry against the frameworks that are installed, on the user's machine."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import dlferry

from . import _bench_memory, _bench_process, _bench_rows, _bench_run, _bench_text
from ._bench_run import Suite
from ._terminal import bold, dim

__all__ = ["bench", "machine", "measured"]

_PACKAGES = ("numpy", "torch", "apache-tvm-ffi", "jax", "nanobind")


def machine() -> dict[str, Any]:
    """What the figures depend on. No name of the machine or of anybody."""
    from importlib import metadata

    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": platform.python_compiler(),
        "dlferry": dlferry.__version__,
        "libraries": versions,
        "load_average": [round(x, 2) for x in os.getloadavg()],
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def measured(suite: Suite, *, rounds: int, heavy_rounds: int = 5, quiet: bool = False) -> dict[str, Any]:
    """Time the suite. The dict for programs: machine, noise, settings, rows, what was left out."""
    before = machine()

    def progress(done: int, total: int) -> None:
        if not quiet and sys.stderr.isatty():
            print(f"\rround {done + 1} of {total} ", end="", file=sys.stderr, flush=True)

    noise = _bench_run.measure(suite.rows.values(), rounds=rounds, heavy_rounds=heavy_rounds, progress=progress)
    if not quiet and sys.stderr.isatty():
        print("\r" + " " * 30 + "\r", end="", file=sys.stderr, flush=True)
    noise["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    return {
        "schema": 1,
        "machine": before,
        "noise": noise,
        "settings": {"rounds": rounds, "heavy_rounds": heavy_rounds, "collector": "off", "subtracted": "the empty loop"},
        **_bench_text.as_dict(suite),
    }


def heading(found: dict[str, Any]) -> list[str]:
    """What ran, where, and how quiet it was there."""
    m, noise = found["machine"], found["noise"]
    libraries = "".join(f", {name} {version}" for name, version in m["libraries"].items())
    lines = [
        bold(f"dlferry {m['dlferry']}, {m['python']}{libraries}"),
        f"{m['cpu']}, {m['usable_cores']} of {m['cores']} cores, {m['kernel']}, load {m['load_average'][0]}",
    ]
    if noise.get("spin"):
        spin = noise["spin"]
        late = f"a fixed piece of work took {spin['median_over_min_percent']:.0f} % more than its fastest round in the middle one, {spin['p90_over_min_percent']:.0f} % in one of ten"
        lines.append(f"noise: {late}")
    return [*lines, dim("each time is from Python and includes the end of what the call made; x: times as long as dlferry's")]


def bench(*, quick: bool, only: str, rounds: int | None, heavy: bool, process: bool, as_json: str | None) -> int:
    """Time it and print the table; the JSON goes to the file that ``as_json`` names, or to stdout for "-"."""
    suite = Suite()
    lib = _bench_rows.Libraries(suite)
    _bench_rows.rows(suite, lib)
    _bench_memory.size_rows(suite, lib)
    if heavy and _bench_memory.memory_wanted(only):
        _bench_memory.memory_rows(suite, lib, mib=16 if quick else 256)
    if only:
        suite.select(only)
        if not suite.rows and not process:
            print(f"bench: --only, got {only!r}, which matches no row", file=sys.stderr)
            return 2
    found = measured(suite, rounds=rounds or (10 if quick else 60), heavy_rounds=3 if quick else 7)
    if process:
        found["process"] = _bench_process.process(exchanges=20_000 if quick else 1_000_000, only=only)
    if as_json == "-":
        print(json.dumps(found, indent=2))
        return 0
    print("\n".join([*heading(found), *_bench_text.text(found), *_bench_process.text(found.get("process", {}))]))
    if as_json:
        Path(as_json).write_text(json.dumps(found, indent=2) + "\n")
    return 0
