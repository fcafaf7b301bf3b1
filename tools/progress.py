"""One line a step, with the seconds it took; the whole log when a step fails."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_WIDTH = 60


class StepFailed(Exception):
    """A step failed, and its log has been printed."""


class _Ticker:
    """Shows the seconds of a running step in a terminal."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.started = time.monotonic()
        self._stop = threading.Event()
        self._live = sys.stdout.isatty()
        sys.stdout.write(f"  {label.ljust(_WIDTH)}")
        sys.stdout.flush()
        if self._live:
            threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        while not self._stop.wait(1):
            sys.stdout.write(f"\r  {self.label.ljust(_WIDTH)} {time.monotonic() - self.started:6.0f} s ")
            sys.stdout.flush()

    def end(self, word: str = "") -> None:
        self._stop.set()
        start = "\r  " + self.label.ljust(_WIDTH) if self._live else ""
        sys.stdout.write(f"{start} {time.monotonic() - self.started:6.1f} s{'  ' + word if word else ''}\n")
        sys.stdout.flush()


def note(label: str, word: str) -> None:
    """A line for what needs no step."""
    print(f"  {label.ljust(_WIDTH)} {word}", flush=True)


def step(label: str, argv: Sequence[object], *, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a command quietly. Its output comes back, or is printed in full when it fails."""
    command = [str(word) for word in argv]
    ticker = _Ticker(label)
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        ticker.end("FAILED")
        print(f"$ {shlex.join(command)}\n{error}", flush=True)
        raise StepFailed(label) from None
    except KeyboardInterrupt:
        ticker.end("stopped")
        raise
    if done.returncode:
        ticker.end("FAILED")
        print(f"$ {shlex.join(command)}\n{done.stdout}exit status {done.returncode}", flush=True)
        raise StepFailed(label)
    ticker.end()
    return done.stdout


def stream(label: str, argv: Sequence[object], *, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a command whose own output is the progress: a test runner."""
    started = time.monotonic()
    print(f"  {label}", flush=True)
    code = subprocess.run([str(word) for word in argv], cwd=cwd, env=env, stdin=subprocess.DEVNULL).returncode
    note(label, f"{time.monotonic() - started:6.1f} s{'  FAILED' if code else ''}")
    if code:
        raise StepFailed(label)


def with_path(env: Mapping[str, str], *folders: Path) -> dict[str, str]:
    """The environment with these folders in front of PATH."""
    return {**env, "PATH": os.pathsep.join([*map(str, folders), env.get("PATH", os.defpath)])}
