import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import alone, run

import dlferry as g
from dlferry import _peers

ENV = {**os.environ, "PYTHONPATH": str(Path(g.__file__).parent.parent)}


def doctor(*options, env=None):
    command = [sys.executable, "-m", "dlferry", "doctor", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**ENV, **(env or {})}, check=False)


def test_it_works_here_and_says_so():
    done = doctor("--json")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] and [c["name"] for c in found["checks"]] == ["exchange", "go"] and all(c["ok"] for c in found["checks"])
    assert found["dlferry"]["dlpack"] == list(g.DLPACK_VERSION) and found["dlferry"]["go_state_before"] == "not loaded"
    assert found["dlferry"]["go"]["go"].startswith("go1.")
    assert Path(found["dlferry"]["extension"]).exists() and Path(found["dlferry"]["go_library"]).exists()
    numpy = next(f for f in found["frameworks"] if f["name"] == "numpy")
    assert numpy["imported"] is False and numpy["exchange_table"] is None and numpy["faults"]
    assert {f["name"] for f in found["frameworks"]} | set(found["not_installed"]) == {p.name for p in _peers.PEERS}


def test_the_text_is_plain_where_no_terminal_reads_it():
    done = doctor()
    assert done.returncode == 0 and "dlferry works here." in done.stdout and "\033" not in done.stdout


def test_settings_that_are_not_known_are_pointed_out():
    done = doctor("--json", env={"DLFERRY_NUM_THREADS": "2", "DLFERRY_NUM_THREAD": "2"})
    settings = {s["name"]: s for s in json.loads(done.stdout)["settings"]}
    assert settings["DLFERRY_NUM_THREADS"]["value"] == "2" and settings["DLFERRY_NUM_THREADS"]["known"]
    assert not settings["DLFERRY_NUM_THREAD"]["known"]
    assert "not known" in doctor(env={"DLFERRY_NUM_THREAD": "2"}).stdout


def test_no_framework_is_imported():
    alone("""
        import sys
        from dlferry._doctor import report
        found = report()
        assert not {"numpy", "torch", "jax"} & set(sys.modules)
        assert found["ok"]
    """)


def test_a_check_that_fails_is_the_exit_code():
    done = run("""
        from dlferry import _doctor
        def broken():
            raise RuntimeError("Go is not at home")
        _doctor._go = broken
        raise SystemExit(_doctor.doctor())
    """)
    assert done.returncode == 1 and "Go is not at home" in done.stdout and "does not work here" in done.stdout


def test_a_process_that_was_forked_after_go_started_is_told():
    alone("""
        import os, dlferry, json, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork and threads: that is what this is about
        from dlferry._doctor import report
        dlferry.asarray([1.0, 2.0]).astype("float16")
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            found = report()
            os.write(write, json.dumps([found["ok"], found["dlferry"]["go_state_before"], found["checks"]]).encode())
            os._exit(0)
        os.close(write)
        ok, state, checks = json.loads(os.fdopen(read).read())
        os.waitpid(pid, 0)
        assert state == "lost by fork" and not ok, (ok, state)
        assert [c["ok"] for c in checks] == [True, False] and "fork" in checks[1]["text"]
    """)


@pytest.mark.slow
def test_import_looks_for_exchange_tables():
    pytest.importorskip("numpy")
    found = json.loads(doctor("--json", "--import").stdout)
    for f in found["frameworks"]:
        assert f["error"] is None and f["exchange_table"] is not None, f
    torch = [f for f in found["frameworks"] if f["name"] == "torch"]
    assert not torch or list(torch[0]["exchange_table"]) == ["__dlpack_c_exchange_api__"]


def test_every_fault_is_of_a_library_that_is_known():
    names = {p.name for p in _peers.PEERS}
    for f in _peers.FAULTS:
        assert f.peer in names and f.seen and f.what and f.dlferry
