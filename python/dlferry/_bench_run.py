"""Timing of many small statements against each other: all of them in rounds, in one process, so that noise hits all alike."""

from __future__ import annotations

import gc
import random
import re
import time
from collections.abc import Callable, Iterable
from itertools import repeat
from statistics import median
from typing import Any

__all__ = ["Bar", "Case", "Row", "Suite", "measure"]

_BATCH = 1_000_000  # ns that one visit to a case takes, about
_CALM = 0.02  # s before a heavy case: the threads of the one before it may still wait for work by spinning
Clock = Callable[[], int]


class Case:
    """One statement of one contestant, and after `measure` what it took."""

    def __init__(self, who: str, code: str, check: Callable[[Any], object] | None, names: dict[str, Any]) -> None:
        self.who = who
        self.code = code
        self.check = check
        self.names = names
        self.loops = 0  # executions in one visit
        self.samples: list[float] = []  # ns an execution, the loop's own cost included, one for each round
        self.empty: list[float] = []  # the empty loop, ns a turn, in the same rounds
        self.loop: Callable[[Iterable[None], Clock], int] = _loop(code, names)

    def verify(self) -> None:
        """Run it once and look at what it gives; AssertionError with the code when that is wrong."""
        if self.check is None:
            return
        try:
            result = eval(compile(self.code, "<case>", "eval"), dict(self.names))
            self.check(result)
        except Exception as e:
            raise AssertionError(f"{self.who}: {self.code}: {type(e).__name__}: {e}") from e

    @property
    def minimum(self) -> float:
        """ns of the fastest round, without the loop."""
        return max(min(self.samples) - min(self.empty, default=0.0), 0.0)

    @property
    def median(self) -> float:
        """ns of the middle round, without the loop."""
        return max(median(self.samples) - (median(self.empty) if self.empty else 0.0), 0.0)


class Bar:
    """What dlferry has to reach in a row: at most so many times another contestant, or so many ns."""

    def __init__(self, at_most: float, against: str = "", *, text: str = "", who: str = "dlferry") -> None:
        self.at_most = at_most
        self.against = against
        self.who = who
        self.text = text or (f"<= {at_most:.3g} x {against}" if against else f"<= {at_most:g} ns")

    def value(self, row: Row) -> float | None:
        """The figure to compare with `at_most`; None when a contestant is missing."""
        own = row.get(self.who)
        other = row.get(self.against) if self.against else None
        if own is None or (self.against and (other is None or not other.minimum)):
            return None
        return own.minimum / other.minimum if other else own.minimum


class Row:
    """One operation, and who does it how fast."""

    def __init__(self, key: str, title: str, *bars: Bar, heavy: bool = False, note: str = "") -> None:
        self.key = key
        self.title = title
        self.bars = bars
        self.heavy = heavy  # milliseconds: one execution a visit, fewer rounds
        self.note = note
        self.cases: list[Case] = []

    def add(self, who: str, code: str, check: Callable[[Any], object] | None = None, **names: Any) -> None:
        """Another contestant. ``code`` is an expression over ``names`` and is timed with the end of its result."""
        self.cases.append(Case(who, code, check, names))

    def get(self, who: str) -> Case | None:
        return next((case for case in self.cases if case.who == who and case.samples), None)


class Suite:
    """The rows, in the order of printing, and what was left out and why."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.skipped: list[tuple[str, str]] = []

    def row(self, key: str, title: str, *bars: Bar, heavy: bool = False, note: str = "") -> Row:
        assert key not in self.rows, key
        self.rows[key] = Row(key, title, *bars, heavy=heavy, note=note)
        return self.rows[key]

    def skip(self, what: str, why: object) -> None:
        self.skipped.append((what, " ".join(str(why).split())))

    def select(self, pattern: str) -> None:
        """Keep the rows whose key matches, whole; of the others the cases for which "key/who" matches."""
        wanted = re.compile(pattern)
        for row in list(self.rows.values()):
            if not wanted.search(row.key):
                row.cases = [case for case in row.cases if wanted.search(f"{row.key}/{case.who}")]
            if not row.cases:
                del self.rows[row.key]


def _loop(code: str, names: dict[str, Any]) -> Callable[[Iterable[None], Clock], int]:
    """A function that executes the code once for each turn of an iterator and gives the ns of all of it. Names are local variables."""
    parameters = "".join(f", {name}={name}" for name in names)
    source = f"def loop(turns, clock{parameters}):\n    start = clock()\n    for _ in turns:\n        {code}\n    return clock() - start\n"
    made: dict[str, Any] = dict(names)
    exec(compile(source, "<case>", "exec"), made)
    found: Callable[[Iterable[None], Clock], int] = made["loop"]
    return found


def _spin(clock: Clock) -> int:
    """A fixed piece of work, for telling how quiet the machine is."""
    start = clock()
    x = 1
    for _ in repeat(None, 20_000):
        x = (x * 69069 + 1) & 0xFFFFFFFF
    return clock() - start


def _loops(case: Case, clock: Clock) -> int:
    """How many executions fill a visit."""
    n = 1
    while True:
        took = min(case.loop(repeat(None, n), clock) for _ in range(3))
        if took >= _BATCH // 4 or n >= 1 << 20:
            return max(1, min(1 << 20, n * _BATCH // max(took, 1)))
        n *= 4


def measure(
    rows: Iterable[Row],
    *,
    rounds: int,
    heavy_rounds: int = 5,
    clock: Clock = time.perf_counter_ns,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Check every case, then time all of them, each once a round and in another order each round, with the collector off.

    Returns
    -------
    dict
        How noisy it was: for the empty loop (``loop``) and a fixed piece of work (``spin``) the fastest round in ns, and how much longer the
        middle round and the one at nine tenths took, in percent.
    """
    chosen = list(rows)
    for row in chosen:
        for case in row.cases:
            case.verify()
    light = [case for row in chosen if not row.heavy for case in row.cases]
    heavy = [case for row in chosen if row.heavy for case in row.cases]
    bare = Case("loop", "pass", None, {})
    order, spins = random.Random(1), []
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for case in (bare, *light):
            case.loops = _loops(case, clock)
        for done in range(rounds):
            if progress:
                progress(done, rounds)
            order.shuffle(light)
            spins.append(_spin(clock))
            for case in (bare, *light):
                case.samples.append(case.loop(repeat(None, case.loops), clock) / case.loops)
        for case in heavy:
            case.loops = 1
            case.loop(repeat(None, 1), clock)
        for done in range(heavy_rounds if heavy else 0):
            if progress:
                progress(done, heavy_rounds)
            order.shuffle(heavy)
            for case in heavy:
                time.sleep(_CALM)
                case.samples.append(case.loop(repeat(None, 1), clock))
    finally:
        if collecting:
            gc.enable()
    for case in light:
        case.empty = bare.samples
    return {"loop": _spread(bare.samples), "spin": _spread([float(s) for s in spins])}


def _spread(samples: list[float]) -> dict[str, float]:
    """The fastest in ns, and the middle and the ninth tenth over it in percent."""
    if not samples:
        return {}
    ordered = sorted(samples)
    low, late = ordered[0], ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]
    middle, late = (round(100 * (x / low - 1), 1) if low else 0.0 for x in (median(ordered), late))
    return {"min_ns": round(low, 3), "median_over_min_percent": middle, "p90_over_min_percent": late}
