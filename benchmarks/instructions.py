"""`make instructions`: how many instructions the core exchanges take, counted by callgrind, against benchmarks/instructions.json.

Counts do not depend on how busy the machine is, so this can fail in CI where a time could not. They do depend on the compiler and on the
interpreter: figures are kept for each pair of CPython's minor version and the compiler's major one. Of each operation, `own` is what runs in
dlferry's own library, and repeats to the instruction; `outside` is the rest (the interpreter, NumPy, libc), which is compared only for the very
build that it was recorded with, and loosely: what malloc does depends on all that was freed before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import dlferry
from benchmarks import build, counted
from dlferry import _core
from dlferry._terminal import bad, bold, dim, good, table

FIGURES = Path(__file__).with_name("instructions.json")
# By how much of the recorded figure, and how many instructions more, a count may exceed it.
TOLERANCE = {"own": (0.03, 2.0), "outside": (0.1, 250.0)}
Counts = dict[str, dict[str, float]]


def compiler() -> str:
    """What compiled the extension, by the note that compilers leave in it."""
    content = Path(_core.__file__).read_bytes()
    found = re.search(rb"GCC: \([^)]*\) (\d+)\.", content)
    if found:
        return f"gcc-{int(found[1])}"
    found = re.search(rb"clang version (\d+)\.", content)
    return f"clang-{int(found[1])}" if found else "unknown compiler"


def key() -> str:
    return f"cpython-{sys.version_info[0]}.{sys.version_info[1]} {compiler()} {platform.machine()}"


def surroundings() -> str:
    """The builds that the count outside of dlferry belongs to."""
    libc = " ".join(platform.libc_ver())
    return f"{platform.python_version()} {' '.join(platform.python_build())} {platform.python_compiler()}, numpy {version('numpy')}, {libc}"


def count() -> Counts:
    """Instructions an operation, in one run of callgrind; build.Unavailable where that cannot be."""
    valgrind = build.tool("valgrind")
    if not any(Path(root, "include", "valgrind", "callgrind.h").exists() for root in (Path(valgrind).parent.parent, "/usr", "/usr/local")):
        raise build.Unavailable("needs valgrind/callgrind.h, which comes with valgrind")
    source = build.PEERS / "probe" / "probe.c"
    flags = ["-O2", "-fPIC", "-shared", f"-I{build.python_headers()}"]
    probe = build.once("probe.so", [source], [[build.tool("gcc", "cc", "clang"), *flags, "-o", "{out}", source]])
    floor = build.floor().__file__
    with tempfile.TemporaryDirectory() as folder:
        command = [valgrind, "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        worker = [sys.executable, counted.__file__, str(Path(dlferry.__file__).parent.parent), str(probe), str(floor)]
        env = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "DLFERRY_NUM_THREADS": "1"}
        done = subprocess.run([*command, *worker], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise build.Unavailable(f"callgrind: exit status {done.returncode}: {done.stderr[-800:]}")
        dumps = [read(path) for path in sorted(Path(folder).iterdir(), key=lambda path: (len(path.name), path.name))]
    sums = {name: (own, total) for name, own, total in dumps if name}
    _, empty = sums.pop("loop")
    return {
        name: {"own": round(own / counted.LOOPS, 1), "outside": round((total - own - empty) / counted.LOOPS, 1)}
        for name, (own, total) in sums.items()
    }


def read(path: Path) -> tuple[str, int, int]:
    """Of a dump of callgrind: its name ("" for the one at the end), the instructions in dlferry's extension, and all of them."""
    name, own, total, ours, skip = "", 0, 0, False, False
    objects: dict[str, bool] = {}
    for line in path.read_text().splitlines():
        if line.startswith("desc: Trigger: Client Request: "):
            name = line.partition("Request: ")[2]
        elif line.startswith(("ob=", "cob=")):
            number, _, text = line.partition("=")[2].partition(" ")
            if text:
                objects[number] = text.endswith(Path(_core.__file__).name)
            if line.startswith("ob="):
                ours = objects[number]
        elif line.startswith("calls="):
            skip = True  # the line after it counts the callee
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            cost = int(line.split()[1]) if " " in line else 0
            if not skip:
                total += cost
                own += cost if ours else 0
            skip = False
    return name, own, total


def compare(counts: Counts, recorded: Counts, same_build: bool) -> tuple[list[list[str]], list[str]]:
    """Rows of a table, and the operations that take more than they did."""
    rows, worse = [], []
    for name, found in counts.items():
        old = recorded.get(name)
        verdicts = []
        for part in ("own", "outside"):
            if old is None or (part == "outside" and not same_build):
                continue
            share, slack = TOLERANCE[part]
            if found[part] > old[part] * (1 + share) + slack:
                verdicts.append(f"{part} +{100 * (found[part] / max(old[part], 1) - 1):.0f} %")
                worse.append(f"{name} ({part})")
            elif found[part] < old[part] * (1 - share) - slack:
                verdicts.append(f"{part} less; --update keeps it so")
        was = ["", ""] if old is None else [f"{old['own']:.0f}", f"{old['outside']:.0f}"]
        rows.append([name, f"{found['own']:.0f}", was[0], f"{found['outside']:.0f}", was[1], "; ".join(verdicts) or ("new" if old is None else "")])
    return rows, worse


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.instructions", description=__doc__)
    parser.add_argument("--update", action="store_true", help="record what is counted, for this CPython and compiler")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="another file of figures")
    given = parser.parse_args(argv)
    try:
        counts = count()
    except build.Unavailable as e:
        print(f"instructions: skipped: {e}")
        return 0
    figures = json.loads(given.figures.read_text()) if given.figures.exists() else {}
    if given.update:
        figures[key()] = {"surroundings": surroundings(), "counts": counts}
        given.figures.write_text(json.dumps(dict(sorted(figures.items())), indent=1) + "\n")
    known = figures.get(key(), {})
    same_build = known.get("surroundings") == surroundings()
    rows, worse = compare(counts, known.get("counts", {}), same_build)
    heading = ["instructions each", "own", "was", "outside", "was", ""]
    painted = [[bold(cell) for cell in heading], *([*row[:5], (bad if "+" in row[5] else good)(row[5])] for row in rows)]
    print("\n".join(table([heading, *rows], painted)))
    if not known:
        print(f"no figures for this compiler: {key()}; python -m benchmarks.instructions --update records them")
        return 0
    if not same_build:
        print(dim(f"outside of dlferry not compared: recorded with {known['surroundings']}"))
    if worse:
        print(f"instructions: more than benchmarks/instructions.json allows for {key()}: {', '.join(worse)}")
        print("find out why (callgrind_annotate); if it has to be so, python -m benchmarks.instructions --update")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
