"""What is too long for CI: many examples, forks, exits and minutes of fuzzing. What came out is written to docs/dev/nightly.txt."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping

from build_backend import toolchain

from . import pythons
from .checkers import available
from .progress import StepFailed, note
from .project import ROOT, go_environment, numpy_venv

REPORT = ROOT / "docs" / "dev" / "nightly.txt"
# Of what a stage writes: the steps and their seconds, how the runners closed, and what failed.
CLOSING = re.compile(
    r"  \S.* \d+\.\d s(  \w+)?"
    r"|  \S.* skipped: needs .*"
    r"|\d+ (passed|failed|skipped|error).* in \d.*"
    r"| +- \d+ passing.*"
    r"|    (fuzz: elapsed|Done \d+ runs).*"
    r"|(ok|FAIL|FAILED|ERROR|--- FAIL:)\s.*"
)


def nightly() -> None:
    """Every stage, also after one failed; the report; a failure if there was one."""
    started, begun, at = time.monotonic(), time.gmtime(), commit()
    tools, env = go_environment()
    here = available(tools, env)
    venvs = [numpy_venv(python) for python in here]
    main = numpy_venv(pythons.choose(sys.executable))
    each = os.environ.get("FUZZTIME") or "10m"
    patient = {"PYTEST_ADDOPTS": "--timeout=3600"}  # for each test
    long = {"HYPOTHESIS_PROFILE": "long", **patient}
    target = [sys.executable, ROOT / "tools" / "dev.py", "--inside"]

    stages = Stages()
    stages.run("every property, 100,000 examples together", pytest(main, "-m", "hypothesis", "--hypothesis-show-statistics"), long)
    for python, venv in zip(here, venvs, strict=True):
        tests = pytest(venv, "tests_py/lifecycle", "tests_py/leaks", "tests_py/unit/test_large.py")
        stages.run(f"Python {python.text}: 200 forks and 200 exits a case, leaks", tests, {"DLFERRY_NIGHTLY": "1", **patient})
    stages.run("make asan", [*target, "asan"], long)
    stages.run(f"make fuzz, {each} each", [*target, "fuzz"], {"FUZZTIME": each})

    head = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", begun),
        "commit": at,
        "time": f"{(time.monotonic() - started) / 60:.0f} min on {os.cpu_count()} processors",
        "Python": ", ".join(python.text for python in here),
        "Go": tools.go.text,
        "compiler": compiler(tools),
        "failed": ", ".join(stages.failed) or "nothing",
    }
    REPORT.write_text("Written by `make nightly`.\n\n" + "".join(f"{key:10}{value}\n" for key, value in head.items()) + stages.text)
    note(str(REPORT.relative_to(ROOT)), "written")
    if stages.failed:
        raise StepFailed(", ".join(stages.failed))


class Stages:
    """Runs commands, shows all that they write, and keeps the lines that say how they ended."""

    def __init__(self) -> None:
        self.text = ""
        self.failed: list[str] = []

    def run(self, title: str, argv: list[object], env: Mapping[str, str]) -> None:
        print(f"\n{title}", flush=True)
        started = time.monotonic()
        kept = []
        with subprocess.Popen(
            [str(word) for word in argv],
            cwd=ROOT,
            env={**os.environ, "DLFERRY_FRAMEWORKS": "numpy", **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                if CLOSING.fullmatch(line.rstrip()):
                    # not the message of a failed test, which may speak of this machine
                    kept.append(line.partition(" - ")[0].strip() if line.startswith(("FAILED", "ERROR")) else line.strip())
        word = "FAILED" if process.returncode else "ok"
        if process.returncode:
            self.failed.append(title)
        note(title, f"{time.monotonic() - started:6.1f} s  {word}")
        self.text += f"\n{title}: {word}, {time.monotonic() - started:.0f} s\n" + "".join(f"  {line}\n" for line in kept)


def pytest(venv: pythons.Venv, *arguments: str) -> list[object]:
    return [venv.python, "-m", "pytest", "-q", *arguments]


def commit() -> str:
    """The commit of the tree, and whether it was changed since; the report itself is no change."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--", ".", f":!{REPORT.relative_to(ROOT)}")
    return git("rev-parse", "--short", "HEAD") + ("+changes" if changed else "")


def compiler(tools: toolchain.Toolchain) -> str:
    return subprocess.run([*tools.cc.argv, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]
