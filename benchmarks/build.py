"""Compiles the peers into build/bench, once for each state of their sources and tools. What cannot be built is an Unavailable with the reason."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "peers"
BUILT = ROOT / "build" / "bench"


class Unavailable(Exception):
    """A peer that this machine cannot build or load."""


def tool(*names: str) -> str:
    """The path of the first tool of these."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise Unavailable(f"needs {' or '.join(names)}, which is not on PATH")


def python_headers() -> Path:
    folder = Path(sysconfig.get_path("include"))
    if not (folder / "Python.h").exists():
        raise Unavailable(f"needs the headers of this Python: no Python.h in {folder}")
    return folder


def run(command: Sequence[object], *, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Unavailable(f"does not build: {shlex.join(words[:3])} ... exit status {done.returncode}: {last}")


def once(name: str, sources: Sequence[Path], commands: Sequence[Sequence[object]], *words: str, env: dict[str, str] | None = None) -> Path:
    """The file ``name``, made by the commands, in which "{out}" stands for where to make it; again only when sources, commands or words change."""
    found = hashlib.sha256(repr([[str(word) for word in command] for command in commands]).encode() + repr((sys.version, words)).encode())
    for path in sorted(sources):
        found.update(path.read_bytes())
    folder = BUILT / found.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            away = folder / f"new-{name}"
            for command in commands:
                run([str(away) if word == "{out}" else word for word in command], env=env)
            away.replace(target)
    return target


def extension(name: str, path: Path) -> ModuleType:
    """The extension module at a path."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as e:
        raise Unavailable(f"does not load: {e}") from e
    sys.modules[name] = module  # its functions need its types, and do not hold them
    return module


def floor() -> ModuleType:
    source, header = PEERS / "floor" / "floor.c", ROOT / "internal" / "abi"
    flags = ["-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{python_headers()}", f"-I{header}"]
    command = [tool("gcc", "cc", "clang"), *flags, "-o", "{out}", source, "-ldl"]
    return extension("floor", once("floor.so", [source, header / "dlpack_abi.h"], [command]))


def gocalls() -> ModuleType:
    """The package that `dlferry build` makes of benchmarks/peers/gocalls."""
    folder = BUILT / "gocalls"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run([sys.executable, "-m", "dlferry", "build", "--name", "gocalls", "--out", folder, PEERS / "gocalls"])
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    sys.path.append(str(folder / "site"))
    return importlib.import_module("gocalls")


def crossing() -> Path:
    """The Go library whose crossing_noop does nothing."""
    source = PEERS / "crossing" / "main.go"
    command = [tool("go"), "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-o", "{out}", "./benchmarks/peers/crossing"]
    return once("libcrossing.so", [source], [command], env={"CGO_ENABLED": "1"})


def nanobind() -> ModuleType:
    """The peer made with nanobind, at the optimisation that its own build files use."""
    try:
        import nanobind as package
    except ImportError as e:
        raise Unavailable(f"{e}") from e
    from importlib.metadata import version

    source, include = PEERS / "nanobind" / "peer.cpp", Path(package.include_dir())
    library, robin = include.parent / "src" / "nb_combined.cpp", include.parent / "ext" / "robin_map" / "include"
    flags = ["-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing"]
    includes = [f"-I{folder}" for folder in (include, robin, python_headers())]
    command = [tool("g++", "c++", "clang++"), *flags, *includes, "-o", "{out}", source, library]
    return extension("nanobind_peer", once("nanobind_peer.so", [source], [command], version("nanobind")))


def dlpark() -> ModuleType:
    """The peer made with dlpark and PyO3: release, whole-program optimisation."""
    folder, target = PEERS / "dlpark", BUILT / "cargo"
    sources = [folder / "Cargo.toml", folder / "Cargo.lock", folder / "src" / "lib.rs"]
    build = [tool("cargo"), "build", "--release", "--locked", "--quiet", "--manifest-path", folder / "Cargo.toml", "--target-dir", target]
    copy = [tool("cp"), target / "release" / "libdlpark_peer.so", "{out}"]
    return extension("dlpark_peer", once("dlpark_peer.so", sources, [build, copy], env={"PYO3_PYTHON": sys.executable}))
