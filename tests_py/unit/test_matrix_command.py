import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dlferry as g
from dlferry import _matrix

ENV = {**os.environ, "PYTHONPATH": str(Path(g.__file__).parent.parent)}


def command(*options):
    done = subprocess.run([sys.executable, "-m", "dlferry", *options], capture_output=True, text=True, timeout=280, env=ENV, check=False)
    return done.returncode, done.stdout, done.stderr


def cell(found, producer, consumer, case):
    return next(c for c in found["cells"] if (c["producer"], c["consumer"], c["case"]) == (producer, consumer, case))


def test_numpy_and_dlferry_in_every_case():
    code, out, err = command("matrix", "--all", "--only", "numpy", "--json")
    assert code == 0 and err == "", err
    found = json.loads(out)
    assert list(found["libraries"]) == ["dlferry", "numpy"] and found["cases"] == list(_matrix.CASES) and found["ok"]
    assert len(found["cells"]) == 4 * len(_matrix.CASES)
    for case in ("contiguous", "strided", "negative", "zero-size", "0-d", "bool", "int64", "float64", "complex64"):
        for producer in ("dlferry", "numpy"):
            for consumer in ("dlferry", "numpy"):
                assert cell(found, producer, consumer, case)["mark"] == "Z", (producer, consumer, case)
    assert cell(found, "numpy", "dlferry", "read-only")["mark"] == cell(found, "dlferry", "numpy", "read-only")["mark"] == "Z+ro"
    assert cell(found, "dlferry", "numpy", "bfloat16")["mark"] in ("BufferError", "RuntimeError")  # NumPy before 2.5
    assert cell(found, "numpy", "dlferry", "float8")["mark"] == "-"


def test_the_text_names_what_is_absent_and_what_the_marks_mean():
    code, out, _ = command("matrix", "--only", "numpy,warp", "--cases", "strided,bfloat16")
    assert code == 0 and "\033" not in out
    assert "strided (float32)" in out and "Z zero-copy" in out and "Why not" in out and "BufferError refused" not in out
    from dlferry import _peers

    if "warp" not in {p.name for p, _ in _peers.installed()}:
        assert "not installed: warp" in out


def test_a_wrong_case_lists_the_right_ones():
    code, _, err = command("matrix", "--cases", "striped")
    assert code == 2 and "'striped'" in err and "strided" in err


def test_a_crash_is_a_cell_and_the_rest_goes_on(monkeypatch):
    died = []

    def run(cells, done):
        for producer, _, _ in cells:
            if producer == "bad":
                died.append((len(cells), len(done)))
                return {"mark": "crash", "text": "SIGSEGV"}
            done.append({"mark": "Z", "text": ""})
        return None

    monkeypatch.setattr(_matrix, "_run", run)
    cells = [(p, "c", "contiguous") for p in ("a", "bad", "b", "bad")]
    assert [c["mark"] for c in _matrix._try_all(cells)] == ["Z", "crash", "Z", "crash"]
    assert died[1][0] == 1  # alone, before it is blamed


def test_a_crash_for_what_went_before_is_not_blamed_on_the_cell(monkeypatch):
    def run(cells, done):
        for k, (producer, _, _) in enumerate(cells):
            if producer == "shy" and k:
                return {"mark": "crash", "text": "SIGSEGV"}
            done.append({"mark": "Z", "text": producer})
        return None

    monkeypatch.setattr(_matrix, "_run", run)
    found = _matrix._try_all([(p, "c", "contiguous") for p in ("a", "shy", "b")])
    assert [c["text"] for c in found] == ["a", "shy", "b"]


PEER = """
import ctypes, time
{body}
def from_dlpack(x):
    {take}
"""


@pytest.mark.parametrize(
    ("body", "take", "mark", "words"),
    [
        ("", "ctypes.string_at(0)", "crash", "SIGSEGV"),
        ("", "import os; os._exit(3)", "crash", "exit code 3"),
        ("", "time.sleep(600)", "hang", "no end"),
        ("", "raise KeyError('no')", "KeyError", "no"),
        ("raise ImportError('broken')", "pass", "-", "broken"),
    ],
)
def test_libraries_that_crash_hang_or_break(tmp_path, monkeypatch, body, take, mark, words):
    (tmp_path / "array_api_strict.py").write_text(PEER.format(body=body, take=take))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ENV['PYTHONPATH']}")
    monkeypatch.setattr(_matrix, "_PATIENCE", 4.0)
    bad, good = ("dlferry", "array_api_strict", "contiguous"), ("dlferry", "dlferry", "contiguous")
    found = _matrix._try_all([good, bad, good])
    assert [c["mark"] for c in found] == ["Z", mark, "Z"] and words in found[1]["text"], found


def test_explain_of_a_file(tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "a.npy"
    numpy.save(path, numpy.arange(6, dtype="int16").reshape(2, 3))
    code, out, err = command("explain", "--npy", str(path), "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["shape"] == [2, 3] and found["dtype"]["name"] == "int16" and found["readonly"] is True
    code, out, _ = command("explain", "--npy", str(path))
    assert code == 0 and "int16" in out and "read-only" in out
    code, _, err = command("explain", "--npy", str(tmp_path / "none.npy"))
    assert code == 1 and "none.npy" in err and "Traceback" not in err
