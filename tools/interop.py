"""`make interop`: every array library at hand with dlferry, one process each, compared with what tests_py/interop_matrix/expect.py says.

A process that dies or hangs is a failed cell, and the rest of that library goes on in a new one. With --write the tables go to
docs/reference/interop.md; with --learn they are printed in the form of expect.py instead of being compared.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests_py"
PAGE = ROOT / "docs" / "reference" / "interop.md"
SILENCE = 120.0  # seconds without a line from a child: it hangs
RESTARTS = 6
# The libraries of `make interop`; the others are tried by `make interop-all`, or when they are installed.
HEAVY = ("tensorflow", "paddle", "dpnp", "cuda.core")


class Result:
    """What came out of one library."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions: dict[str, str] = {}
        self.missing = ""
        self.cells: dict[str, tuple[str, str]] = {}
        self.seconds = 0.0


def child(name: str, done: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "-1", **environment}
    command = [sys.executable, "-m", "interop_matrix.child", name, *done]
    return subprocess.Popen(command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(process: subprocess.Popen[str]) -> Iterator[str | None]:
    """The child's lines; None when it has been silent for too long."""
    found: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    assert process.stdout is not None
    out = process.stdout

    def read() -> None:
        for line in out:
            found.put(line)
        found.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = found.get(timeout=SILENCE)
        except queue.Empty:
            yield None
            return
        if not line:
            return
        yield line


def try_library(name: str, environment: dict[str, str]) -> Result:
    """All cells of a library, in as many processes as it takes."""
    result = Result(name)
    started = time.monotonic()
    for _ in range(RESTARTS):
        process = child(name, list(result.cells), environment)
        errors: list[str] = []
        assert process.stderr is not None
        thread = threading.Thread(target=lambda stream=process.stderr, into=errors: into.append(stream.read()), daemon=True)
        thread.start()
        current, finished, hangs = "(import)", False, False
        for line in lines(process):
            if line is None:
                hangs = True
                process.kill()
                break
            kind, *rest = json.loads(line)
            if kind == "missing":
                result.missing, finished = rest[0], True
            elif kind == "versions":
                result.versions = rest[0]
            elif kind == "start":
                current = rest[0]
            elif kind == "end":
                result.cells[rest[0]] = rest[1], rest[2]
            elif kind == "done":
                current, finished = "(exit)", True
        code = process.wait()
        thread.join(5)
        if finished and not hangs and (code == 0 or result.missing):
            break
        word = f"hang: nothing for {SILENCE:.0f} s" if hangs else f"crash: {signal.Signals(-code).name if code < 0 else f'exit status {code}'}"
        result.cells[current] = word, "".join(errors)[-3000:]
        if finished or current == "(import)":
            break
    result.seconds = time.monotonic() - started
    return result


# ---------------------------------------------------------------------------------------------------------------------


def load(name: str) -> Any:
    """A module of tests_py/interop_matrix."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    return importlib.import_module(f"interop_matrix.{name}")


def problems(result: Result, expect: Any) -> list[str]:
    """What is not as expected, with what to do about it."""
    found = []
    hit: set[str] = set()
    for cell, (outcome, why) in result.cells.items():
        direction, _, case = cell.partition("/")
        want = expect.outcome(result.name, direction, case, result.versions) if case else "no crash"
        known = expect.fault(result.name, direction, case)
        if known and outcome == known[1]:
            hit.add(known[0])
        elif outcome != want:
            found.append(f"{result.name}: {cell}: got {outcome!r}, want {want!r}" + (f"\n      {why}" if why else ""))
        elif direction in ("convert", "no copy") and ("+rw" in outcome or "instead" in outcome or "WRONG" in outcome):
            found.append(f"{result.name}: {cell}: got {outcome!r}: convert must never do this, whatever expect.py says\n      {why}")
    for pattern in expect.FAULTS:
        if pattern.startswith(f"{result.name}: ") and pattern not in hit:
            found.append(f"{pattern}: the fault is gone: take it out of FAULTS in expect.py")
    return found


def learn(result: Result, expect: Any) -> None:
    """Prints what came out in the form of expect.py."""
    print(f'    "{result.name}": {{')
    for direction in dict.fromkeys(cell.partition("/")[0] for cell in result.cells):
        found: dict[str, list[str]] = {}
        for cell, (outcome, _) in result.cells.items():
            if cell.startswith(direction + "/"):
                found.setdefault(outcome, []).append(cell.partition("/")[2])
        print(f'        "{direction}": """')
        for part in expect.compress(found):
            print(f"            {part}")
        print('        """,')
    print("    },")


# ---------------------------------------------------------------------------------------------------------------------

_HEAD = """# What crosses, and how

Written by `make interop-all`; do not edit. {cells} cells: every library below with dlferry in a process of its own, on {python}, CPU memory only
(dpnp: a SYCL device of the CPU). What must come out is in `tests_py/interop_matrix/expect.py`, and `make interop` fails when anything else does.

| library | versions |
|---|---|
{versions}

In every cell that shares or copies, values, dtype and shape were compared byte by byte, the tensor was taken twice, both orders of dropping were tried,
and afterwards dlferry's ledger, the reference count of the library's array and a watch on the memory were as before: freed exactly once.

| sign | means |
|---|---|
| S | the same memory, no copy |
| C | right, in other memory |
| 0 | no elements: shape and dtype right |
| H | memory that the CPU may not read through DLPack: carried, and handed back over the same memory |
| +ro | the result says that it is read-only |
| +rw | read-only memory came out writable: never from `convert` |
| X | refused by dlferry with a BufferError that says what was got, what is wanted, and a way out |
| other words | the library's own exception |
| f32 and the like | the library took it as this dtype instead: never from `convert` |
| FAULT | a known fault, see `FAULTS` in `expect.py` for dlferry's, [peers](../concepts/peers.md) for the libraries' |
| - | the library cannot make such an array, or dlferry no such tensor |
| . | not tried |
"""

_SECTIONS = {
    "in": ("Into dlferry", "`dlferry.from_dlpack(x)`; `asarray` and `convert(x, dlferry.Tensor)` did the same."),
    "own": ("Out of dlferry, the library's own way", "`from_dlpack` of the library, or what it has instead, of a `dlferry.Tensor`."),
    "convert": ("Out of dlferry with `convert`", "`dlferry.convert(t, library)`: copies where the library cannot say what the tensor is."),
    "no copy": ("Out of dlferry with `convert(copy=False)`", "Shares or refuses."),
}


def sign(outcome: str) -> str:
    short = {"share": "S", "copy": "C", "empty": "0", "carried": "H", "refused": "X", "skip": ".", "freed": "S"}
    if outcome.startswith("WRONG"):
        return "FAULT"
    word, plus, rest = outcome.partition("+")
    if word.endswith(" instead"):
        word = word.removesuffix(" instead").replace("float", "f").replace("complex", "c")
    return short.get(word, word.replace("(hint)", "with a hint")) + plus + rest


def page(results: list[Result], case_names: list[str]) -> str:
    shown = [r for r in results if not r.missing]
    python = f"CPython {sys.version_info.major}.{sys.version_info.minor}"
    versions = "\n".join(f"| {r.name} | {', '.join(f'{n} {v}' for n, v in r.versions.items())} |" for r in shown)
    absent = "".join(f"| {r.name} | not run: {r.missing} |\n" for r in results if r.missing)
    out = [_HEAD.format(cells=sum(len(r.cells) for r in shown), python=python, versions=(versions + "\n" + absent).strip())]
    for direction, (title, text) in _SECTIONS.items():
        columns = [r for r in shown if any(cell.startswith(direction + "/") for cell in r.cells)]
        out.append(f"\n## {title}\n\n{text}\n")
        out.append("| case | " + " | ".join(r.name for r in columns) + " |")
        out.append("|---|" + "---|" * len(columns))
        for case in case_names:
            row = [sign(r.cells[f"{direction}/{case}"][0]) if f"{direction}/{case}" in r.cells else "-" for r in columns]
            if any(word != "-" for word in row):
                out.append(f"| {case} | " + " | ".join(row) + " |")
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="libraries, as expect.py names them; without any, all")
    parser.add_argument("--all", action="store_true", help="the heavy libraries must be there too")
    parser.add_argument("--write", action="store_true", help="write docs/reference/interop.md")
    parser.add_argument("--learn", action="store_true", help="print what came out in the form of expect.py")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args()
    adapters, expect, cases = load("adapters"), load("expect"), load("cases")
    names = given.names or list(adapters.ADAPTERS)
    started = time.monotonic()
    results: dict[str, Result] = {}
    bad: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        tasks = [pool.submit(try_library, name, adapters.ADAPTERS[name].environment) for name in names]
        for task in concurrent.futures.as_completed(tasks):
            result = task.result()
            results[result.name] = result
            if result.missing:
                needed = given.all or given.names or result.name not in HEAVY
                print(f"  {result.name.ljust(20)} not run: {result.missing}", flush=True)
                if needed:
                    bad.append(f"{result.name}: not run: {result.missing}")
                continue
            wrong = [] if given.learn else problems(result, expect)
            bad += wrong
            kinds = Counter(outcome.partition("+")[0] for outcome, _ in result.cells.values())
            text = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common(4))
            versions = " ".join(result.versions.values())
            line = f"  {result.name.ljust(18)} {versions.ljust(22)} {len(result.cells):4} cells {result.seconds:6.1f} s  {text}"
            print(line + (f"  {len(wrong)} WRONG" if wrong else ""), flush=True)
    ordered = [results[name] for name in names]
    if given.learn:
        for result in ordered:
            if result.cells:
                learn(result, expect)
    record = ROOT / "build" / "interop" / "cells.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({r.name: {"versions": r.versions, "cells": r.cells} for r in ordered}, indent=1))
    for text in bad:
        print(f"    {text}", flush=True)
    total = sum(len(r.cells) for r in ordered)
    print(f"  {total} cells of {sum(not r.missing for r in ordered)} libraries in {time.monotonic() - started:.1f} s, {len(bad)} not as expected")
    if bad and not given.learn:
        print("  If the library changed and dlferry is right: put the new outcome into tests_py/interop_matrix/expect.py, with '@package>=version'")
        print(f"  where the old one still holds for older versions. Every cell with its reason: {record.relative_to(ROOT)}")
        return 1
    if given.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(ordered, cases.names()))
        print(f"  written: {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
