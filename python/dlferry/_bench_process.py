"""What is not the time of a call: what importing costs, what exchanges leave behind, and what threads do to each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import dlferry

__all__ = ["leak_work", "process", "text"]

_PACKAGE = str(Path(dlferry.__file__).parent.parent)


def process(*, exchanges: int, only: str = "") -> dict[str, Any]:
    """Import, memory and threads; ``exchanges`` of each kind are made to look for memory left behind."""
    wanted = re.compile(only)
    found: dict[str, Any] = {}
    if wanted.search("import"):
        found["import"] = import_time()
    if wanted.search("memory"):
        found["memory"] = leaks(exchanges)
    if wanted.search("threads"):
        found["threads"] = threads()
    return found


def import_time(rounds: int = 20) -> dict[str, float]:
    """ms of a new interpreter, bare and with ``import dlferry``; the fastest of the rounds, which alternate."""
    bare = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {_PACKAGE!r})"]
    full = [*bare[:-1], bare[-1] + "; import dlferry"]
    best = {"bare_ms": 1e9, "import_ms": 1e9}
    for _ in range(rounds):
        for name, command in (("bare_ms", bare), ("import_ms", full)):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            best[name] = min(best[name], (time.perf_counter() - start) * 1e3)
    return {name: round(ms, 2) for name, ms in best.items()} | {"over_bare_ms": round(best["import_ms"] - best["bare_ms"], 2)}


def _kinds() -> dict[str, Callable[[], object]]:
    """Each kind of exchange, as a call without arguments whose result goes."""
    x = dlferry.zeros((3, 4))
    found: dict[str, Callable[[], object]] = {
        "own capsule, taken": lambda: dlferry.from_dlpack(x.__dlpack__(max_version=(1, 3))),
        "own capsule, not taken": lambda: x.__dlpack__(max_version=(1, 3)),
        "own legacy capsule": lambda: dlferry.from_dlpack(x.__dlpack__()),
        "empty": lambda: dlferry.empty((3, 4)),
        "view": lambda: x.T,
        "buffer": lambda: memoryview(x),
        "refused": lambda: _refused(x),
    }
    try:
        import numpy

        a = numpy.zeros((3, 4), "float32")
        found["from numpy"] = lambda: dlferry.from_dlpack(a)
        found["to numpy"] = lambda: dlferry.convert(x, numpy.ndarray)
        found["np.from_dlpack"] = lambda: numpy.from_dlpack(x)
    except ImportError:
        pass
    try:
        import torch

        t = torch.zeros((3, 4))
        found["from torch"] = lambda: dlferry.from_dlpack(t)
        found["to torch"] = lambda: dlferry.convert(x, torch.Tensor)
        if "from numpy" in found:
            found["numpy to torch"] = lambda: dlferry.convert(a, torch.Tensor)
            found["torch to numpy"] = lambda: dlferry.convert(t, numpy.ndarray)
    except ImportError:
        pass
    return found


def _refused(x: dlferry.Tensor) -> None:
    try:
        x.__dlpack__(dl_device=(2, 0))
    except BufferError:
        return
    raise AssertionError("a CPU tensor was exported for CUDA")


def leak_work(exchanges: int) -> None:
    """In a process of its own: bytes by which the resident memory and dlferry's own counts grew, for each kind, as JSON on stdout."""
    found = {}
    for name, once in _kinds().items():
        for _ in repeat(None, max(1000, exchanges // 10)):
            once()
        counts, before = dlferry.ledger(), _resident()
        for _ in repeat(None, exchanges):
            once()
        after = dlferry.ledger()
        found[name] = {
            "rss_bytes": _resident() - before,
            "ledger": {k: after[k] - counts[k] for k in counts if after[k] != counts[k] and k != "queued"},
        }
    print(json.dumps(found))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def leaks(exchanges: int) -> dict[str, Any]:
    if not Path("/proc/self/statm").exists():
        return {"skipped": "no /proc/self/statm"}
    code = f"import sys; sys.path.append({_PACKAGE!r}); from dlferry._bench_process import leak_work; leak_work({exchanges})"
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        return {"skipped": f"its process ended with {done.returncode}: {done.stderr[-300:]}"}
    return {"exchanges": exchanges, "kinds": json.loads(done.stdout.splitlines()[-1])}


def threads(seconds: float = 0.3) -> dict[str, Any]:
    """Exchanges a second: of one thread, of two at once, and of one while another thread runs bytecode.

    With a GIL two threads together are as fast as one at best. A call that gave the GIL up would lose it to the other thread for 5 ms.
    """
    kinds = {name: once for name, once in _kinds().items() if name in ("own capsule, taken", "from numpy", "from torch")}
    found: dict[str, Any] = {"gil": getattr(sys, "_is_gil_enabled", lambda: True)()}
    for name, once in kinds.items():
        rates = {"one": _rate(once, 1, seconds), "two": _rate(once, 2, seconds), "beside_bytecode": _rate(once, 1, seconds, beside=True)}
        found[name] = {key: round(rate) for key, rate in rates.items()}
    return found


def _rate(once: Callable[[], object], workers: int, seconds: float, *, beside: bool = False) -> float:
    """Exchanges a second, all threads together."""
    stop, counts, gate = threading.Event(), [0] * workers, threading.Barrier(workers + 1 + beside)

    def work(k: int) -> None:
        gate.wait()
        while not stop.is_set():
            for _ in repeat(None, 100):
                once()
            counts[k] += 100

    def spin() -> None:
        gate.wait()
        while not stop.is_set():
            for _ in repeat(None, 1000):
                pass

    everyone = [threading.Thread(target=work, args=(k,)) for k in range(workers)]
    everyone += [threading.Thread(target=spin)] if beside else []
    for thread in everyone:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for thread in everyone:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


def text(found: dict[str, Any]) -> list[str]:
    """Lines for a terminal."""
    lines: list[str] = []
    if "import" in found:
        i = found["import"]
        lines += ["", f"import dlferry: {i['over_bare_ms']:.1f} ms over a bare interpreter ({i['bare_ms']:.1f} ms)"]
    memory = found.get("memory", {})
    if "kinds" in memory:
        grown = {name: kind for name, kind in memory["kinds"].items() if kind["ledger"]}
        most = max(kind["rss_bytes"] for kind in memory["kinds"].values())
        lines += [
            "",
            f"after {memory['exchanges']:,} exchanges of each of {len(memory['kinds'])} kinds: resident memory grew by at most {most // 1024} KiB",
        ]
        lines += [f"  left behind by {name}: {kind['ledger']}" for name, kind in grown.items()] or ["  nothing left in dlferry's ledger"]
    elif memory:
        lines += ["", f"skipped: memory: {memory['skipped']}"]
    if "threads" in found:
        t = found["threads"]
        lines += [
            "",
            f"exchanges a second, in millions ({'with the GIL' if t['gil'] else 'without a GIL'}): one thread, two, one beside running bytecode",
        ]
        for name, r in t.items():
            if isinstance(r, dict):
                lines.append(f"  {name:20} {r['one'] / 1e6:6.2f} {r['two'] / 1e6:6.2f} {r['beside_bytecode'] / 1e6:6.2f}")
    return lines
