"""Compiles `_core` (C), libdlferry (Go) and the generator of `dlferry build` (Go), only when something they are made of has changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import elf, toolchain
from .toolchain import BuildError, Toolchain

CORE = "_core.abi3.so"
GOLIB = "libdlferry.so"
GO_PACKAGE = "./pyext/core"
EXPORTS = Path("pyext", "host", "exports.map")
GENERATOR = "_generator"
GENERATOR_MODULE = Path("cmd", "dlferry")
# What the wheel carries for `dlferry build`: the Go packages that a user's function and its glue import, as a module of their own.
GO_MODULE = "_go"
GO_MODULE_PACKAGES = ("dlpack", "streams", "exchange", "pyext", "pyext/glue", "pyext/host")
RUNTIME = "_runtime.txt"
LICENCES = "THIRD_PARTY_LICENSES.txt"
_GO_FILES = ("GoFiles", "CgoFiles", "CFiles", "HFiles", "SFiles", "EmbedFiles")
Report = Callable[[str], None]
Modules = dict[str, Path]  # the folder of each by its path


@dataclass(frozen=True)
class Built:
    core: Path
    golib: Path
    generator: Path
    licences: Path
    go_module: dict[str, Path]  # by the name in the module

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
        raise BuildError(
            f"dlferry: {what} failed (exit status {done.returncode})\n$ {shlex.join(argv)}\n{done.stderr.strip() or done.stdout}".rstrip()
        )
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


def _go_packages(module: Path, tools: Toolchain, env: dict[str, str], *names: str) -> list[dict[str, Any]]:
    """What `go list` says about these packages and all that they import, without the standard library."""
    wanted = ",".join(("Dir", "ImportPath", "Standard", "Module", *_GO_FILES))
    command = [tools.go.path, "list", *toolchain.mod_flags(module), "-deps", f"-json={wanted}", *names]
    text = _run(command, module, env, "listing the Go sources")
    decoder, found = json.JSONDecoder(), []
    while text := text.lstrip():
        package, end = decoder.raw_decode(text)
        text = text[end:]
        if not package.get("Standard"):
            found.append(package)
    return found


def _files_of(package: dict[str, Any]) -> list[Path]:
    return [Path(package["Dir"], name) for kind in _GO_FILES for name in package.get(kind) or []]


def go_inputs(module: Path, tools: Toolchain, env: dict[str, str], package: str) -> tuple[list[Path], Modules]:
    """The files that a Go program is made of, and the modules that it links."""
    files: list[Path] = []
    modules: Modules = {}
    for found in _go_packages(module, tools, env, package):
        files += _files_of(found)
        own = found.get("Module", {})
        if not own.get("Main"):
            modules[own["Path"]] = Path(own.get("Dir") or module / "vendor" / own["Path"])
    return sorted(files), modules


def go_module(root: Path, tools: Toolchain, work: Path) -> dict[str, Path]:
    """The files of the Go module that the wheel carries, on every processor that it is built for: sources, and what they include."""
    names = [f"./{name}" for name in GO_MODULE_PACKAGES if any((root / name).glob("*.go"))]
    env = toolchain.go_env(root, tools, work)
    waiting: list[Path] = [root / "LICENSE"]  # for the wheels that are made with it
    for goarch in toolchain.GOARCHES:
        for package in _go_packages(root, tools, {**env, "GOOS": "linux", "GOARCH": goarch}, *names):
            if not package.get("Module", {}).get("Main"):
                raise BuildError(f"dlferry: {', '.join(names)} use {package['ImportPath']}, want the standard library alone: wheels carry these")
            waiting += [*_files_of(package), *sorted(Path(package["Dir"]).glob("*.map"))]
    found: dict[str, Path] = {}
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        if name not in found:
            found[name] = path
            included = (Path(os.path.normpath(path.parent / name)) for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M))
            waiting += [other for other in included if other.exists()]
    found["go.mod"] = work / "go.mod"
    work.mkdir(parents=True, exist_ok=True)
    lines = re.findall(r"^(?:module|go) .*$", (root / "go.mod").read_text(), re.M)
    found["go.mod"].write_text("\n\n".join(lines) + "\n")
    return dict(sorted(found.items()))


def go_command(root: Path, tools: Toolchain, output: Path) -> list[str]:
    return [
        *(tools.go.path, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false"),
        *toolchain.mod_flags(root),
        *header_flags(root),
        f"-ldflags=-s -w -buildid= -extldflags=-Wl,--version-script={root / EXPORTS}",
        *("-o", str(output), GO_PACKAGE),
    ]


def _go_build(
    root: Path, module: Path, package: str, tools: Toolchain, env: dict[str, str], command: list[str], output: Path, report: Report
) -> Modules:
    """Build a Go program, unless it is up to date. The modules that it links."""
    files, modules = go_inputs(module, tools, env, package)
    inputs = [*files, *(path for path in (module / "go.mod", module / "go.sum") if path.exists())]
    compiler = ""
    if env["CGO_ENABLED"] != "0":
        inputs += c_inputs(root)
        compiler = _run([*tools.cc.argv, "--version"], root, None, "asking the C compiler for its version")
    portable = [word.replace(str(root), ".") for word in command[1:]]
    settings = [f"{name}={env.get(name, '')}" for name in ("GOFLAGS", "GOARCH", "GOAMD64", "GOEXPERIMENT", "CGO_CFLAGS", "CGO_LDFLAGS")]
    key = digest(root, inputs, compiler, tools.go.text, *settings, *portable)
    if _fresh(output, key):
        report(f"dlferry: {output.name} is up to date")
        return modules
    started = time.monotonic()
    output.parent.mkdir(parents=True, exist_ok=True)
    _run(command, module, env, f"building {output.name}")
    _done(output, key)
    report(f"dlferry: built {output.name} with Go {tools.go.text}{f' and {tools.cc.text}' if compiler else ''} in {time.monotonic() - started:.1f} s")
    return modules


def build_golib(root: Path, tools: Toolchain, output: Path, report: Report) -> Modules:
    if " " in str(root):
        raise BuildError(f"dlferry: source folder, got {root!s}, want a path without spaces: Go's linker can't pass one on")
    if not (root / EXPORTS).exists():
        raise BuildError(f"dlferry: no {EXPORTS}")
    env = toolchain.go_env(root, tools, output.parent)
    return _go_build(root, root, GO_PACKAGE, tools, env, go_command(root, tools, output), output, report)


def build_generator(root: Path, tools: Toolchain, output: Path, version: str, report: Report) -> Modules:
    """What `dlferry build` runs: a program of its own, without C."""
    module = root / GENERATOR_MODULE
    env = {**toolchain.go_env(module, tools, output.parent), "CGO_ENABLED": "0"}
    flags = ["-trimpath", "-buildvcs=false", *toolchain.mod_flags(module), f"-ldflags=-s -w -buildid= -X main.version={version}"]
    command = [tools.go.path, "build", *flags, "-o", str(output), "."]
    return _go_build(root, module, ".", tools, env, command, output, report)


def write_licences(root: Path, modules: Modules, output: Path) -> None:
    """The licences of what the Go programs link: Go itself, and the modules."""
    parts = ["Go, its runtime and standard library\n\n" + (root / "build_backend" / "licenses" / "Go.txt").read_text()]
    for name, module in sorted(modules.items()):
        texts = [path for kind in ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "PATENTS*") for path in sorted(module.glob(kind))]
        if not texts:
            raise BuildError(f"dlferry: the module in {module} carries no licence")
        parts += [f"{name}: {path.name}\n\n{path.read_text(errors='replace')}" for path in texts]
    output.write_text(("\n" + "-" * 80 + "\n\n").join(parts))


def work_folder(root: Path, tools: Toolchain) -> Path:
    return root / "build" / "native" / (tools.cc.target or tools.cc.machine)


def build(root: Path, version: str, report: Report = to_stderr) -> Built:
    """Both libraries, under build/native."""
    toolchain.check_platform()
    tools = toolchain.find(root)
    work = work_folder(root, tools)
    built = Built(work / CORE, work / GOLIB, work / GENERATOR, work / LICENCES, go_module(root, tools, work))
    build_core(root, tools, built.core, version, report)
    modules = build_golib(root, tools, built.golib, report)
    modules |= build_generator(root, tools, built.generator, version, report)
    write_licences(root, modules, built.licences)
    return built


def runtime(root: Path, tools: Toolchain, version: str, report: Report = to_stderr) -> Path:
    """A folder with what `dlferry build` takes from an installed dlferry, made of links into this source tree."""
    work = work_folder(root, tools)
    build_core(root, tools, work / CORE, version, report)
    build_generator(root, tools, work / GENERATOR, version, report)
    package = root / "python" / "dlferry"
    names = [RUNTIME, *(package / RUNTIME).read_text().split()]
    targets = {GO_MODULE: root, CORE: work / CORE, GENERATOR: work / GENERATOR, **{name: package / name for name in names}}
    folder = work / "runtime"
    folder.mkdir(exist_ok=True)
    for name, target in targets.items():
        link = folder / name
        if not link.is_symlink() or link.readlink() != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    return folder


def unvendored(root: Path) -> list[Path]:
    """The modules of the wheel that ask for others, and have no copy of them."""
    modules = (root, root / GENERATOR_MODULE)
    return [module for module in modules if toolchain.has_requirements(module) and not (module / "vendor" / "modules.txt").exists()]


def vendor(root: Path, module: Path, output: Path) -> None:
    """The modules that go.mod asks for, with their licences, as Go's own vendor folder."""
    go = toolchain.find_go(root)
    if go is None:
        raise BuildError(f"dlferry: an sdist needs Go, found none. Run: {sys.executable} -m pip install '{toolchain.go_requirement(root)}'")
    env = {**toolchain.go_cache(os.environ), "GOTOOLCHAIN": "local", "GOWORK": "off"}
    _run([go.path, "mod", "vendor", "-o", str(output)], module, env, "copying the Go modules")


def main() -> int:
    """For `python -m dlferry build` in a source tree."""
    import tomllib

    root = Path(__file__).resolve().parents[1]
    try:
        toolchain.check_platform()
        version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
        print(runtime(root, toolchain.find(root, ""), version))
    except BuildError as error:
        to_stderr(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
