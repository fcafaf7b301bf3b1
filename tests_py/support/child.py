"""Child processes for what may crash, hang, or must start fresh."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import dlferry

ROOT = Path(__file__).resolve().parent.parent
# Seconds. An instrumented library is many times slower; pytest itself ends a test after 300.
PATIENCE = 280 if os.environ.get("DLFERRY_SANITIZED") else 120


def run(code, *, timeout=PATIENCE, options=(), env=None):
    """Runs code in a fresh interpreter that can import dlferry and support; gives the finished process. A hang is an AssertionError."""
    path = [str(ROOT), str(Path(dlferry.__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    full = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONFAULTHANDLER": "1", **(env or {})}
    command = [sys.executable, *options, "-c", textwrap.dedent(code)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=full, check=False)
    except subprocess.TimeoutExpired as e:
        err = e.stderr.decode(errors="replace") if isinstance(e.stderr, bytes) else e.stderr or ""
        raise AssertionError(f"the child hangs: no end after {timeout} s\n{err[-4000:]}") from None


def alone(code, *, timeout=PATIENCE, options=(), env=None, quiet=True):
    """Runs code in a child that must end with 0 and, if quiet, write nothing to stderr; gives its output."""
    done = run(code, timeout=timeout, options=options, env=env)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    if quiet:
        assert done.stderr == "", done.stderr[-4000:]
    return done.stdout
