"""Compiles `_core` (C) and libdlferry (Go), only when something they are made of has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from . import elf, toolchain
from .toolchain import BuildError, Toolchain

CORE = "_core.abi3.so"
GOLIB = "libdlferry.so"
GO_PACKAGE = "./pyext/core"
LICENCES = "THIRD_PARTY_LICENSES.txt"
Report = Callable[[str], None]


@dataclass(frozen=True)
class Built:
    core: Path
    golib: Path
    licences: Path

    @property
    def tag(self) -> str:
        return "cp311-abi3-" + elf.platform_tag([elf.read(self.core), elf.read(self.golib)])


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def c_sources(root: Path) -> list[Path]:
    return [*sorted((root / "pyext" / "shim").glob("*.c")), root / "exchange" / "block.c"]


def c_inputs(root: Path) -> list[Path]:
    """Every C file that `_core` or a Go package may include from another folder."""
    folders = [root / "pyext" / "shim", root / "pyext" / "host", root / "exchange", root / "internal" / "abi"]
    return sorted(path for folder in folders for kind in ("*.c", "*.h", "*.map") for path in folder.glob(kind))


def digest(root: Path, paths: Iterable[Path], *words: str) -> str:
    found = hashlib.sha256()
    for word in words:
        found.update(word.encode() + b"\0")
    for path in paths:
        name = path.relative_to(root) if path.is_relative_to(root) else path
        found.update(str(name).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def header_flags(root: Path, *more: str) -> list[str]:
    """Go's cache does not see headers that lie outside a package's folder. This puts their hash into the key of our own packages."""
    own = digest(root, c_inputs(root))[:16]
    return [f"-gcflags=github.com/dlferry/dlferry/...={' '.join([f'-I=headers-{own}', *more])}"]


def _run(argv: list[str], root: Path, env: dict[str, str] | None, what: str) -> str:
    done = subprocess.run(argv, cwd=root, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"dlferry: {what} failed (exit status {done.returncode})\n$ {shlex.join(argv)}\n{done.stdout}{done.stderr}".rstrip())
    if done.stderr.strip():
        to_stderr(done.stderr.rstrip())  # warnings
    return done.stdout


def _fresh(output: Path, key: str) -> bool:
    stamp = output.with_suffix(".key")
    return output.exists() and stamp.exists() and stamp.read_text() == key


def _done(output: Path, key: str) -> None:
    output.with_suffix(".key").write_text(key)


def core_command(root: Path, tools: Toolchain, output: Path, version: str, *more: str) -> list[str]:
    extra = [*shlex.split(os.environ.get("CFLAGS", "")), *more]
    link = shlex.split(os.environ.get("LDFLAGS", ""))
    if os.environ.get("DLFERRY_WERROR"):
        extra.append("-Werror")
    return [
        *tools.cc.argv,
        *("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"),
        *(f'-DDLF_VERSION="{version}"', f"-ffile-prefix-map={root}=."),
        *extra,
        *(["-o", str(output)] + [str(path.relative_to(root)) for path in c_sources(root)]),
        *("-Wl,--version-script=pyext/shim/exports.map", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--build-id=none"),
        *([] if "-g" in extra else ["-s"]),
        *link,
        *("-Wl,--as-needed", "-lpthread", "-ldl", "-lm"),
    ]


def build_core(root: Path, tools: Toolchain, output: Path, version: str, report: Report) -> None:
    command = core_command(root, tools, output, version)
    compiler = _run([*tools.cc.argv, "--version"], root, None, "asking the C compiler for its version")
    portable = [word.replace(str(root), ".") for word in command if word != tools.cc.argv[0]]
    key = digest(root, c_inputs(root), compiler, *portable)
    if _fresh(output, key):
        report(f"dlferry: {CORE} is up to date")
        return
    if not (root / "pyext" / "shim" / "exports.map").exists() or len(c_sources(root)) < 2:
        raise BuildError("dlferry: pyext/shim has no C sources or no exports.map")
    started = time.monotonic()
    output.parent.mkdir(parents=True, exist_ok=True)
    _run(command, root, None, f"compiling {CORE}")
    _done(output, key)
    report(f"dlferry: compiled {CORE} with {tools.cc.text} in {time.monotonic() - started:.1f} s")


def go_inputs(root: Path, tools: Toolchain, env: dict[str, str]) -> tuple[list[Path], list[Path]]:
    """The files that the Go library is made of, and the folders of the modules that it links."""
    fields = ("GoFiles", "CgoFiles", "CFiles", "HFiles", "SFiles", "EmbedFiles")
    wanted = ",".join(("Dir", "Standard", "Module", *fields))
    text = _run([tools.go.path, "list", *toolchain.mod_flags(root), "-deps", f"-json={wanted}", GO_PACKAGE], root, env, "listing the Go sources")
    decoder, files, modules = json.JSONDecoder(), [], set()
    while text := text.lstrip():
        package, end = decoder.raw_decode(text)
        text = text[end:]
        if package.get("Standard"):
            continue
        files += [Path(package["Dir"], name) for kind in fields for name in package.get(kind) or []]
        module = package.get("Module", {})
        if not module.get("Main"):
            vendored = root / "vendor" / module.get("Path", "")
            modules.add(Path(module["Dir"]) if module.get("Dir") else vendored)
    return sorted(files), sorted(modules)


def go_command(root: Path, tools: Toolchain, output: Path) -> list[str]:
    exports = root / "pyext" / "host" / "exports.map"
    return [
        *(tools.go.path, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false"),
        *toolchain.mod_flags(root),
        *header_flags(root),
        f"-ldflags=-s -w -buildid= -extldflags=-Wl,--version-script={exports}",
        *("-o", str(output), GO_PACKAGE),
    ]


def build_golib(root: Path, tools: Toolchain, output: Path, report: Report) -> None:
    env = toolchain.go_env(root, tools, output.parent)
    if " " in str(root):
        raise BuildError(f"dlferry: source folder, got {root!s}, want a path without spaces: Go's linker can't pass one on")
    exports = root / "pyext" / "host" / "exports.map"
    if not exports.exists():
        raise BuildError("dlferry: pyext/host has no exports.map")
    files, modules = go_inputs(root, tools, env)
    compiler = _run([*tools.cc.argv, "--version"], root, None, "asking the C compiler for its version")
    sums = [path for path in (root / "go.mod", root / "go.sum", exports) if path.exists()]
    command = go_command(root, tools, output)
    portable = [word.replace(str(root), ".") for word in command[1:]]
    settings = [f"{name}={env.get(name, '')}" for name in ("GOFLAGS", "GOARCH", "GOAMD64", "GOEXPERIMENT", "CGO_CFLAGS", "CGO_LDFLAGS")]
    key = digest(root, [*files, *c_inputs(root), *sums], compiler, tools.go.text, *settings, *portable)
    if _fresh(output, key):
        report(f"dlferry: {GOLIB} is up to date")
        return
    started = time.monotonic()
    output.parent.mkdir(parents=True, exist_ok=True)
    _run(command, root, env, f"building {GOLIB}")
    write_licences(root, modules, output.with_name(LICENCES))
    _done(output, key)
    report(f"dlferry: built {GOLIB} with Go {tools.go.text} and {tools.cc.text} in {time.monotonic() - started:.1f} s")


def write_licences(root: Path, modules: Iterable[Path], output: Path) -> None:
    """The licences of what the Go library links: Go itself, and the modules."""
    parts = ["Go, its runtime and standard library\n\n" + (root / "build_backend" / "licenses" / "Go.txt").read_text()]
    for module in modules:
        texts = [path for kind in ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "PATENTS*") for path in sorted(module.glob(kind))]
        if not texts:
            raise BuildError(f"dlferry: the module in {module} carries no licence")
        name = str(module).split("/pkg/mod/")[-1].split("/vendor/")[-1].split("@")[0]
        parts += [f"{name}: {path.name}\n\n{path.read_text(errors='replace')}" for path in texts]
    output.write_text(("\n" + "-" * 80 + "\n\n").join(parts))


def work_folder(root: Path, tools: Toolchain) -> Path:
    return root / "build" / "native" / (tools.cc.target or tools.cc.machine)


def build(root: Path, version: str, report: Report = to_stderr) -> Built:
    """Both libraries, under build/native."""
    toolchain.check_platform()
    tools = toolchain.find(root)
    work = work_folder(root, tools)
    built = Built(work / CORE, work / GOLIB, work / LICENCES)
    build_core(root, tools, built.core, version, report)
    build_golib(root, tools, built.golib, report)
    return built


def vendor(root: Path, output: Path) -> None:
    """The modules that go.mod asks for, with their licences, as Go's own vendor folder."""
    go = toolchain.find_go(root)
    if go is None:
        raise BuildError(f"dlferry: an sdist needs Go, found none. Run: {sys.executable} -m pip install '{toolchain.go_requirement(root)}'")
    env = {**toolchain.go_cache(os.environ), "GOTOOLCHAIN": "local", "GOWORK": "off"}
    _run([go.path, "mod", "vendor", "-o", str(output)], root, env, "copying the Go modules")
