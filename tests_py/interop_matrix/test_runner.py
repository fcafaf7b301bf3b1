"""The runner of the matrix: a process that dies or hangs is a failed cell, and the rest goes on."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop_matrix import expect
from tools import interop

CHILD = """
import json, os, sys, time
done = sys.argv[2:]
def say(*a): print(json.dumps(a), flush=True)
say("versions", {"peer": "1.0"})
for cell in ("in/one", "in/two", "in/three"):
    if cell in done:
        continue
    say("start", cell)
    if cell == "in/two":
        print("last words", file=sys.stderr, flush=True)
        HOW
    say("end", cell, "share", "")
say("done")
"""


def run(monkeypatch, how):
    def child(name, done, environment):
        code = textwrap.dedent(CHILD).replace("HOW", how)
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", code, name, *done], stdout=pipe, stderr=pipe, text=True)

    monkeypatch.setattr(interop, "child", child)
    return interop.try_library("peer", {})


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ("os.abort()", "crash: SIGABRT"),
        ("os.kill(os.getpid(), 11)", "crash: SIGSEGV"),
        ("os._exit(3)", "crash: exit status 3"),
        ("time.sleep(600)", "hang: nothing for 2 s"),
    ],
)
def test_a_child_that_dies_or_hangs_is_a_failed_cell_and_the_rest_goes_on(monkeypatch, how, word):
    monkeypatch.setattr(interop, "SILENCE", 2.0)
    result = run(monkeypatch, how)
    assert {cell: outcome for cell, (outcome, _) in result.cells.items()} == {"in/one": "share", "in/two": word, "in/three": "share"}
    assert "last words" in result.cells["in/two"][1] and result.versions == {"peer": "1.0"}
    monkeypatch.setitem(expect.EXPECT, "peer", {"in": "share"})
    assert len(interop.problems(result, expect)) == 1


def test_expectations_may_depend_on_the_version(monkeypatch):
    monkeypatch.setitem(expect.EXPECT, "peer", {"in": "share\n copy @peer<2.1: a\n refused @peer>=2.1: a*, b\n -: b"})
    got = [[expect.outcome("peer", "in", case, {"peer": version}) for case in ("a", "b", "c")] for version in ("2.0.9", "2.1", "2.10rc1")]
    assert got == [["copy", "-", "share"], ["refused", "refused", "share"], ["refused", "refused", "share"]]


def test_a_violation_of_convert_fails_even_if_it_is_expected(monkeypatch):
    monkeypatch.setitem(expect.EXPECT, "peer", {"convert": "share+rw"})
    result = interop.Result("peer")
    result.cells["convert/read-only"] = "share+rw", ""
    assert "never" in interop.problems(result, expect)[0]
