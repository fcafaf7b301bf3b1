"""Finds the CPython interpreters of this machine, and makes virtual environments of them."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import progress

SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
# The newest releases of the frameworks are made for these first.
PREFERRED = ((3, 12), (3, 13))
# A whole CPython as data files of a Go module.
PYTHON_MODULE = "github.com/kluctl/go-embed-python@v0.0.0-3.14.6-20260610-1"

_PROBE = (
    "import sys, sysconfig, importlib.util as u; "
    "print(*sys.version_info[:3], sys.implementation.name, int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))),"
    " int(bool(u.find_spec('ensurepip') and u.find_spec('venv'))), int(bool(u.find_spec('pip'))))"
)


class Python:
    """An interpreter that runs, and what it has."""

    def __init__(self, path: str, version: tuple[int, int, int], ensurepip: bool, pip: bool) -> None:
        self.path, self.version, self.ensurepip, self.pip = path, version, ensurepip, pip

    @property
    def minor(self) -> tuple[int, int]:
        return self.version[:2]

    @property
    def text(self) -> str:
        return ".".join(map(str, self.version))


@functools.cache
def probe(path: str) -> Python | None:
    """The interpreter at this path. None: it doesn't start (a pyenv shim whose version is not set), or is no CPython with a GIL."""
    try:
        answer = subprocess.run([path, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    words = answer.stdout.split()
    if answer.returncode or len(words) != 7 or words[3] != "cpython" or words[4] == "1":
        return None
    return Python(path, (int(words[0]), int(words[1]), int(words[2])), words[5] == "1", words[6] == "1")


def found() -> dict[tuple[int, int], Python]:
    """The supported versions on this machine, one interpreter each: from PATH, else from pyenv."""
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    result: dict[tuple[int, int], Python] = {}
    for minor in SUPPORTED:
        name = "python" + ".".join(map(str, minor))
        places = [shutil.which(name) or ""]
        for root in filter(None, roots):
            places += sorted((str(path) for path in Path(root, "versions").glob(f"{name[6:]}*/bin/{name}")), reverse=True)
        if sys.version_info[:2] == minor:
            places.append(sys.executable)
        for place in filter(None, places):
            python = probe(place)
            if python and python.minor == minor:
                result[minor] = python
                break
    return result


def choose(asked: str | None) -> Python:
    """The interpreter for .venv: the one asked for, else the best that is there."""
    if asked:
        python = probe(shutil.which(asked) or asked)
        if python is None or python.minor not in SUPPORTED:
            raise SystemExit(f"PYTHON={asked}: got {python.text if python else 'no CPython that runs'}, want 3.11, 3.12, 3.13 or 3.14")
        return python
    here = found()
    for minor in (*PREFERRED, sys.version_info[:2], *reversed(SUPPORTED)):
        if minor in here:
            return here[minor]
    raise SystemExit("no CPython from 3.11 to 3.14 found: install one, or name it with PYTHON=/path/to/python3")


def fetch_314(root: Path, go: str, env: Mapping[str, str]) -> Python | None:
    """CPython 3.14 from a Go module that carries one, for machines that have none: for the tests alone. None where it can't be had."""
    system = {"x86_64": "linux-amd64", "aarch64": "linux-arm64"}.get(platform.machine())
    folder = root / ".cache" / "python3.14"
    program = folder / "bin" / "python3.14"
    if not (folder / "complete").exists():
        with tempfile.TemporaryDirectory() as away:
            label = "Python 3.14, which this machine lacks"
            Path(away, "go.mod").write_text("module away\n")
            try:
                answer = progress.step(label, [go, "mod", "download", "-json", PYTHON_MODULE], cwd=Path(away), env={**env, "GOFLAGS": "-mod=mod"})
            except progress.StepFailed:
                return None
        source = Path(json.loads(answer)["Dir"], "python", "internal", "data", str(system))
        shutil.rmtree(folder, ignore_errors=True)
        for entry in json.loads((source / "files.json").read_text())["files"]:
            target = folder / entry["name"]
            if target.suffix == ".pyc" or not target.is_relative_to(folder):
                continue
            if entry["perm"] >> 31:  # Go's bit for a folder
                target.mkdir(parents=True, exist_ok=True)
            elif entry.get("symlink"):
                target.symlink_to(entry["symlink"])
            else:
                packed = entry.get("compressed")
                content = (source / (entry["name"] + (".gz" if packed else ""))).read_bytes()
                target.write_bytes(gzip.decompress(content) if packed else content)
                target.chmod(entry["perm"] & 0o777)
        (folder / "complete").touch()
    return probe(str(program))


class Venv:
    """A virtual environment that remembers what was put into it."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def _stamp(self, name: str) -> Path:
        return self.folder / ".dlferry" / name

    def remembers(self, name: str, key: str) -> bool:
        stamp = self._stamp(name)
        return stamp.exists() and stamp.read_text() == key

    def remember(self, name: str, key: str) -> None:
        self._stamp(name).parent.mkdir(exist_ok=True)
        self._stamp(name).write_text(key)

    def create(self, python: Python) -> None:
        """Make the environment, unless it is there and its interpreter is this one."""
        key = f"{os.path.realpath(python.path)} {python.text}"
        if self.remembers("python", key) and probe(str(self.python)):
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        label = f"{self.name}: a new environment with Python {python.text}"
        if python.ensurepip:
            progress.step(label, [python.path, "-m", "venv", self.folder], cwd=self.root)
        else:
            helper = next((one for one in (python, probe(sys.executable)) if one and one.pip), None)
            if helper is None:
                raise SystemExit(f"{python.path} has neither ensurepip nor pip: install python3-venv or set PYTHON=")
            bootstrap = self.root / ".cache" / "virtualenv"
            install = [helper.path, "-m", "pip", "install", "--quiet", "--upgrade", "--target", bootstrap, "virtualenv"]
            progress.step("virtualenv, as this Python has no ensurepip", install, cwd=self.root, env=pip_environment())
            env = {**os.environ, "PYTHONPATH": str(bootstrap)}
            make = [helper.path, "-m", "virtualenv", "--quiet", "--python", python.path, self.folder]
            progress.step(label, make, cwd=self.root, env=env)
        self.remember("python", key)

    @property
    def name(self) -> str:
        return str(self.folder.relative_to(self.root))

    def install(self, group: str, requirements: Sequence[str], label: str) -> None:
        """Put the requirements in, unless this very list has been put in before."""
        key = hashlib.sha256("\n".join(requirements).encode()).hexdigest()
        if not requirements or self.remembers(group, key):
            return
        pip = [self.python, "-m", "pip", "install", "--quiet", *requirements]
        progress.step(f"{self.name}: {label}", pip, cwd=self.root, env=pip_environment())
        self.remember(group, key)

    def install_wheel(self, wheel: Path) -> None:
        key = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if self.remembers("wheel", key):
            return
        pip = [self.python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", wheel]
        progress.step(f"{self.name}: {wheel.name}", pip, cwd=self.root, env=pip_environment())
        self.remember("wheel", key)


def pip_environment() -> dict[str, str]:
    return {
        **os.environ,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "PIP_NO_WARN_SCRIPT_LOCATION": "1",
    }
