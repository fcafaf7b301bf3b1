"""What is found without running a test: formatting, vetting, types, generated files, symbols, warnings."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from build_backend import native, toolchain

from .progress import StepFailed, step
from .project import ROOT, gates, go_environment, go_modules, online, version, wheel

STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"


def lint() -> None:
    """Formatting, vetting, types, generated files, symbols."""
    tools, env = go_environment()
    built = wheel()
    gates(
        lambda: gofmt(tools, env),
        lambda: vet(tools, env),
        lambda: staticcheck(tools, env),
        lambda: generated(tools, env),
        lambda: step("ruff check", [sys.executable, "-m", "ruff", "check", "--quiet", "."], cwd=ROOT),
        lambda: step("ruff format", [sys.executable, "-m", "ruff", "format", "--check", "."], cwd=ROOT),
        lambda: step("mypy", [sys.executable, "-m", "mypy"], cwd=ROOT),
        lambda: step("symbols and tag of the wheel", [sys.executable, "-m", "tools.check_symbols", built], cwd=ROOT),
        lambda: warnings(tools),
    )


def reformat() -> None:
    """Format Go and Python in place."""
    tools, env = go_environment()
    step("gofmt", [gofmt_path(tools, env), "-w", *go_files()], cwd=ROOT, env=env)
    step("ruff format", [sys.executable, "-m", "ruff", "format", "--quiet", "."], cwd=ROOT)
    step("ruff check --fix", [sys.executable, "-m", "ruff", "check", "--quiet", "--fix", "--exit-zero", "."], cwd=ROOT)


def gofmt(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    unformatted = step("gofmt", [gofmt_path(tools, env), "-l", *go_files()], cwd=ROOT, env=env)
    if unformatted:
        print("not formatted by gofmt:\n" + unformatted, flush=True)
        raise StepFailed("gofmt")


def gofmt_path(tools: toolchain.Toolchain, env: dict[str, str]) -> Path:
    return Path(subprocess.check_output([tools.go.path, "env", "GOROOT"], cwd=ROOT, env=env, text=True).strip(), "bin", "gofmt")


def go_files() -> list[Path]:
    folders = sorted({path.parent for module in go_modules() for path in module.rglob("*.go") if is_ours(path)})
    return [path for folder in folders for path in sorted(folder.glob("*.go"))]


def is_ours(path: Path) -> bool:
    return not {".venv", ".cache", "build", "vendor", "testdata"} & set(path.relative_to(ROOT).parts)


def vet(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    for module in go_modules():
        step(f"go vet {module.relative_to(ROOT)}", [tools.go.path, "vet", *toolchain.mod_flags(module), "./..."], cwd=module, env=online(env))


def staticcheck(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Installed apart from the module, so that go.mod does not have to name it.
        step(
            "staticcheck, built",
            [tools.go.path, "install", STATICCHECK],
            cwd=Path(folder),
            env={**online(env), "GOBIN": folder, "GOFLAGS": "-mod=mod"},
        )
        for module in go_modules():
            step(f"staticcheck {module.relative_to(ROOT)}", [Path(folder, "staticcheck"), "./..."], cwd=module, env=online(env))


def generated(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    step("generated files are up to date", [tools.go.path, "run", *toolchain.mod_flags(ROOT), "./internal/gen", "-check"], cwd=ROOT, env=env)


def warnings(tools: toolchain.Toolchain) -> None:
    """No warning of the C compiler in our own sources."""
    with tempfile.TemporaryDirectory() as folder:
        command = native.core_command(ROOT, tools, Path(folder, native.CORE), version())
        step("C sources compile without a warning", [*command, "-Werror"], cwd=ROOT)
