"""``python -m dlferry build`` and ``new``: run the generator with the Go and the C compiler that are found for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import _toolchain
from ._toolchain import BuildError, Toolchain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGE = Path(__file__).resolve().parent
GENERATOR = "_generator"


def main(command: str, arguments: Sequence[str]) -> int:
    """Run a command of the generator; the exit code is its own."""
    try:
        folder = runtime()
        words = [str(folder / GENERATOR), command]
        env = dict(os.environ)
        if command == "build":
            words += ["--runtime", str(folder)]
            if not {"-h", "-help", "--help"} & set(arguments):
                env = environment(folder)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return subprocess.run([*words, *arguments], env=env).returncode


def runtime() -> Path:
    """The folder with what a generated package is made of: this package, or in a source tree one that is made of it."""
    if (PACKAGE / GENERATOR).exists():
        return PACKAGE
    root = PACKAGE.parents[1]
    if not (root / "build_backend" / "native.py").exists():
        raise BuildError(
            f"dlferry: {PACKAGE / GENERATOR} is not there, want dlferry as its wheel installs it. Run: {sys.executable} -m pip install --force-reinstall dlferry"
        )
    done = subprocess.run([sys.executable, "-m", "build_backend.native"], cwd=root, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BuildError("dlferry: the source tree did not build")
    return Path(done.stdout.strip())


def environment(folder: Path) -> dict[str, str]:
    """What the generator runs Go and the C compiler in."""
    module = folder / "_go"
    tools = _toolchain.find(module, "")
    env = _toolchain.go_env(module, tools, cache(tools))
    for name in ("GOPROXY", "GOTOOLCHAIN"):  # the user's module may need others, or a newer Go
        env.pop(name, None)
        if name in os.environ:
            env[name] = os.environ[name]
    env["DLFERRY_GO"] = tools.go.path
    return env


def cache(tools: Toolchain) -> Path:
    """A folder whose path stays the same: it is in the keys of Go's own cache."""
    home = os.environ.get("HOME")
    above = os.environ.get("XDG_CACHE_HOME") or (home and f"{home}/.cache")
    base = Path(above, "dlferry") if above else Path(tempfile.gettempdir(), f"dlferry-cache-{os.getuid()}")
    return base / (tools.cc.target or tools.cc.machine)
