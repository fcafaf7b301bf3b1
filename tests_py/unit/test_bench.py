import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dlferry as g
from dlferry import _bench_process, _bench_text
from dlferry._bench_run import Bar, Case, Row, Suite, measure

ROOT = Path(__file__).resolve().parents[2]
ENV = {**os.environ, "PYTHONPATH": str(Path(g.__file__).parent.parent)}


class Clock:
    """Time that passes only when a case says so."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def tick(self, ns):
        self.now += ns


def measured(who, samples, empty=()):
    case = Case(who, "pass", None, {})
    case.samples, case.empty = list(samples), list(empty)
    return case


def test_the_minimum_and_the_median_are_without_the_empty_loop():
    case = measured("a", [30.0, 20.0, 50.0], empty=[5.0, 4.0, 9.0])
    assert case.minimum == 16.0 and case.median == 25.0
    assert measured("quick", [3.0], empty=[4.0]).minimum == 0.0
    assert measured("heavy", [7.0, 9.0]).minimum == 7.0


def test_measure_by_a_clock_of_its_own():
    clock = Clock()
    row, heavy = Row("light", "light"), Row("heavy", "heavy", heavy=True)
    row.add("dlferry", "tick(100)", None, tick=clock.tick)
    row.add("other", "tick(250)", None, tick=clock.tick)
    heavy.add("dlferry", "tick(3_000_000)", None, tick=clock.tick)
    noise = measure([row, heavy], rounds=4, heavy_rounds=3, clock=clock)
    assert [(c.minimum, c.median, len(c.samples)) for c in row.cases] == [(100.0, 100.0, 4), (250.0, 250.0, 4)]
    assert [c.loops for c in row.cases] == [10_000, 4_000] and heavy.cases[0].loops == 1
    assert heavy.cases[0].samples == [3_000_000] * 3
    assert noise["spin"]["median_over_min_percent"] == 0


def test_the_collector_is_off_meanwhile_and_on_again_after():
    import gc

    seen = set()
    row = Row("gc", "gc")
    row.add("dlferry", "note()", None, note=lambda: seen.add(gc.isenabled()))
    assert gc.isenabled()
    measure([row], rounds=1)
    assert seen == {False} and gc.isenabled()


def test_a_wrong_result_is_not_timed():
    row = Row("wrong", "wrong")

    def check(result):
        assert result == 4

    row.add("dlferry", "2 + 3", check)
    with pytest.raises(AssertionError, match=r"dlferry: 2 \+ 3"):
        measure([row], rounds=1)
    assert not row.cases[0].samples


def suite():
    s = Suite()
    row = s.row("k", "an | exchange", Bar(1.5, "floor"), Bar(0.5, "peer", text=">= 2 x faster than peer"), Bar(10), Bar(1.0, "absent"))
    row.cases = [measured("dlferry", [12.0]), measured("floor", [10.0]), measured("peer", [20.0]), measured("unmeasured", [])]
    s.skip("absent", "not\n here")
    return s


def test_bars_and_ratios():
    found = _bench_text.as_dict(suite())
    (row,) = found["rows"]
    assert [(bar["value"], bar["met"]) for bar in row["bars"]] == [(1.2, True), (0.6, False), (12.0, False), (None, None)]
    assert [(c["who"], c["x_floor"], c["x_dlferry"]) for c in row["cases"]] == [("dlferry", 1.2, 1.0), ("floor", 1.0, 0.833), ("peer", 2.0, 1.667)]
    assert json.loads(json.dumps(found)) == found


def test_the_tables_say_what_was_reached_and_what_was_left_out():
    found = _bench_text.as_dict(suite())
    text = "\n".join(_bench_text.text(found))
    for words in (
        "<= 1.5 x floor: 1.20 x, reached",
        ">= 2 x faster than peer: 1.67 x as fast, not reached",
        "12 ns, not reached",
        "skipped: absent: not here",
    ):
        assert words in text
    lines = _bench_text.markdown(found)
    assert len(lines) == 5 and "an \\| exchange" in lines[2] and "**no**" in lines[2]


def test_selecting_rows_and_contestants():
    s = suite()
    s.select("k/(floor|dlferry)")
    assert [c.who for c in s.rows["k"].cases] == ["dlferry", "floor"]
    s.select("other")
    assert not s.rows


def test_the_big_buffers_are_made_for_the_rows_that_want_them(monkeypatch):
    from dlferry import _bench_memory, _bench_rows

    s = Suite()
    lib = _bench_rows.Libraries(s, wanted=("numpy",))
    monkeypatch.setattr(lib, "torch", None)
    _bench_memory.memory_rows(s, lib, mib=1)
    assert set(s.rows) == set(_bench_memory._KEYS)
    for row in s.rows.values():
        for case in row.cases:
            case.verify()
    assert _bench_memory.memory_wanted("") and _bench_memory.memory_wanted("copy/torch") and not _bench_memory.memory_wanted("^in-")


def test_every_kind_of_exchange_leaves_nothing(capsys):
    _bench_process.leak_work(300)
    found = json.loads(capsys.readouterr().out)
    assert {"own capsule, taken", "empty", "refused"} <= found.keys()
    assert all(not kind["ledger"] for kind in found.values()), found


def command(*options, timeout=280):
    return subprocess.run([sys.executable, "-m", "dlferry", "bench", *options], capture_output=True, text=True, timeout=timeout, env=ENV, check=False)


def test_the_command_prints_a_table_and_writes_json(tmp_path):
    file = tmp_path / "found.json"
    done = command("--quick", "--rounds", "2", "--only", "^(in-|empty|shape|dtype|chw-uint8$|import)", "--json", str(file))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found = json.loads(file.read_text())
    assert found["schema"] == 1 and found["settings"]["rounds"] == 2 and set(found["process"]) == {"import"}
    assert {"cpu", "cores", "kernel", "python", "libraries", "load_average"} <= found["machine"].keys()
    assert {"in-own", "empty", "shape", "dtype", "chw-uint8"} <= {row["key"] for row in found["rows"]}
    for row in found["rows"]:
        assert row["title"] in done.stdout
        for case in row["cases"]:
            assert case["min_ns"] >= 0 and case["rounds"] and case["loops"]
    assert "import dlferry:" in done.stdout and "\033" not in done.stdout
    import platform

    assert platform.node() not in file.read_text().split('"')


def test_the_command_refuses_what_it_cannot_do():
    for options, words in ((["--rounds", "0"], "want 1 or more"), (["--quick", "--no-process", "--only", "nothing"], "matches no row")):
        done = command(*options)
        assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_whole_of_it_quickly():
    done = command("--quick", "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["process"]) == {"import", "memory", "threads"} and len(found["rows"]) >= 12
    assert all(not kind["ledger"] for kind in found["process"]["memory"]["kinds"].values())


# The gate of instruction counts, whose module is not part of the wheel.

DUMP = """desc: Trigger: Client Request: one
positions: line
events: Ir
ob=(1) /x/_core.abi3.so
fn=(1) f
5 100
+2 20
cob=(2) /x/libc.so.6
cfn=(2) memcpy
calls=3 0
* 999
ob=(2)
fn=(2)
1 7
ob=(1)
fn=(3) g
9 3
totals: 130
"""


def test_a_dump_of_callgrind_is_read(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    instructions = pytest.importorskip("benchmarks.instructions")
    monkeypatch.setattr(instructions._core, "__file__", "/y/_core.abi3.so")
    path = tmp_path / "out.1"
    path.write_text(DUMP)
    assert instructions.read(path) == ("one", 123, 130)


def test_more_instructions_than_recorded_fail_the_gate(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import instructions

    recorded = {"a": {"own": 1000.0, "outside": 1000.0}, "b": {"own": 20.0, "outside": 5.0}}
    counts = {"a": {"own": 1040.0, "outside": 1400.0}, "b": {"own": 21.0, "outside": 5.0}, "new": {"own": 1.0, "outside": 1.0}}
    assert instructions.compare(counts, recorded, True)[1] == ["a (own)", "a (outside)"]
    assert instructions.compare(counts, recorded, False)[1] == ["a (own)"]
    assert instructions.compare(recorded, recorded, True)[1] == []
    assert "less" in instructions.compare({"a": {"own": 900.0, "outside": 1000.0}}, recorded, True)[0][0][5]
