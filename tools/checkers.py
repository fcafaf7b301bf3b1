"""The tests again: under Go's checkers and the sanitizers, without cgo, on the other Pythons."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from build_backend import native, toolchain

from . import pythons
from .fuzzing import SANITIZE, fuzz_replay, go_fuzz
from .measure import instructions
from .progress import note, step
from .project import ROOT, gates, go_environment, go_test, numpy_venv, online, pytest, version


def variants() -> None:
    """The tests again under Go's checkers, without cgo, on the other Pythons; and the slow ones."""
    tools, env = go_environment()
    gates(
        lambda: pure_go(env),
        lambda: go_checkers(tools, env),
        asan,
        lambda: go_fuzz(tools, env, "10s"),
        instructions,
        other_pythons,
        lambda: pytest("Python tests that build", "-m", "slow", env={"DLFERRY_FRAMEWORKS": "all"}),
    )


def pure_go(env: dict[str, str]) -> None:
    packages = tuple(f"./{name}/..." for name in ("dlpack", "streams") if (ROOT / name).is_dir())
    go_test("Go tests without cgo", [], {**env, "CGO_ENABLED": "0"}, packages=packages)
    go_test("Go tests of the kernels without assembly", ["-tags=purego"], {**env, "CGO_ENABLED": "0"}, packages=("./internal/kernel/...",))


def go_checkers(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    if tools.cc.is_zig:
        note("Go tests with -race", "skipped: the race detector needs gcc or clang")
        checks = [lambda: go_test("Go tests with checkptr", [], env, gcflags=("-d=checkptr",))]
    else:
        checks = [lambda: go_test("Go tests with -race and checkptr", ["-race"], env, gcflags=("-d=checkptr",))]
    checks.append(lambda: go_test("Go tests with cgocheck2", [], {**env, "GOEXPERIMENT": "cgocheck2"}))
    gates(*checks)


def asan() -> None:
    """The C parts under AddressSanitizer and UBSan, by Go's tests, by the fuzzers' inputs and by Python's tests."""
    tools, env = go_environment()
    library = (
        "" if tools.cc.is_zig else subprocess.run([*tools.cc.argv, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    )
    if not Path(library).is_absolute():
        note("tests under AddressSanitizer", "skipped: needs a gcc with libasan")
        return
    packages = ("./exchange/...", "./internal/fuzz/...")
    gates(
        lambda: go_test("Go tests under AddressSanitizer", ["-asan"], {**env, "ASAN_OPTIONS": "detect_leaks=0"}, packages=packages),
        lambda: fuzz_replay(tools),
        lambda: asan_python(tools, env, library),
    )


def asan_python(tools: toolchain.Toolchain, go_env: dict[str, str], library: str) -> None:
    """The Python tests in a copy of the package whose two libraries are sanitized."""
    package = ROOT / "build" / "asan" / "dlferry"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "dlferry", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    step("_core with AddressSanitizer and UBSan", native.core_command(ROOT, tools, package / native.CORE, version(), *SANITIZE), cwd=ROOT)
    command = [word.replace("-s -w ", "") for word in native.go_command(ROOT, tools, package / native.GOLIB)]
    command[2:2] = ["-asan", "-tags=purego"]  # assembly is not instrumented: what it reads beyond would go unseen
    step("libdlferry with AddressSanitizer", command, cwd=ROOT, env=go_env)
    venv = numpy_venv(pythons.choose(sys.executable))
    logs = ROOT / "build" / "asan" / "logs"  # pytest keeps what a dying process writes to its error output
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    env = {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:handle_segv=0:log_path={logs}/asan",
        "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:log_path={logs}/ubsan",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(package.parent),
        "DLFERRY_FRAMEWORKS": "numpy",
        "DLFERRY_SANITIZED": str(package),
    }
    try:
        # UBSan writes to the error output itself and ends the process: pytest must not hold that back.
        pytest("Python tests under AddressSanitizer", "-m", "not slow", "--capture=sys", "--ignore=tests_py/packaging", python=venv.python, env=env)
    finally:
        for log in sorted(logs.iterdir()):
            text = log.read_text(errors="replace")
            if "ERROR: " in text or "runtime error: " in text:
                print(text, flush=True)


def available(tools: toolchain.Toolchain, env: dict[str, str]) -> list[pythons.Python]:
    """The supported Pythons of this machine, one of each version; with CI=1 also a 3.14 that is fetched."""
    here = pythons.found()
    if (3, 14) not in here and os.environ.get("CI"):
        fetched = pythons.fetch_314(ROOT, tools.go.path, online(env))
        if fetched:
            here[3, 14] = fetched
    for minor in pythons.SUPPORTED:
        if minor not in here:
            note(f"Python {'.'.join(map(str, minor))}", "not on this machine" + (" (with CI=1 it is fetched)" if minor == (3, 14) else ""))
    return list(here.values())


def other_pythons() -> None:
    """One wheel on every supported Python of this machine, with NumPy alone."""

    def one(python: pythons.Python) -> None:
        venv = numpy_venv(python)
        pytest(
            f"Python {python.text}, NumPy alone",
            "-m",
            "not slow",
            "--ignore=tests_py/packaging",
            python=venv.python,
            env={"DLFERRY_FRAMEWORKS": "numpy"},
        )

    gates(*[lambda python=python: one(python) for python in available(*go_environment())])
