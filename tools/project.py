"""The project as the targets see it: where things are, its wheel, its environments, and how tests are run."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from build_backend import native, toolchain

from . import pythons
from .progress import StepFailed, note, step, stream

ROOT = Path(__file__).resolve().parent.parent
VENV = pythons.Venv(ROOT / ".venv", ROOT)
DIST = ROOT / "dist"
# What the wheel is made of, for telling whether it is up to date.
SOURCES = ("build_backend", "exchange", "dlpack", "streams", "adapters", "internal", "pyext", "python", "cmd")
SINGLE_SOURCES = ("pyproject.toml", "hatch_build.py", "go.mod", "go.sum", "README.md", "LICENSE")


def groups() -> dict[str, list[str]]:
    """The lists of pyproject.toml."""
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    return {**extras, "build": project["build-system"]["requires"]}


def version() -> str:
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as stream:
        found: str = tomllib.load(stream)["project"]["version"]
    return found


def wheel() -> Path:
    """The wheel of the tree as it is, built only when something it is made of has changed."""
    tools = toolchain.find(ROOT)
    files = [ROOT / name for name in SINGLE_SOURCES if (ROOT / name).exists()]
    for folder in SOURCES:
        files += sorted(path for path in (ROOT / folder).rglob("*") if path.is_file() and wheel_source(path))
    settings = [f"{name}={os.environ.get(name, '')}" for name in ("CFLAGS", "LDFLAGS", "GOFLAGS", "CGO_CFLAGS", "DLFERRY_WERROR")]
    key = native.digest(ROOT, files, tools.go.text, tools.cc.text, *settings)
    stamp = ROOT / "build" / "wheel.txt"
    if stamp.exists():
        name, _, old = stamp.read_text().partition("\n")
        if old == key and (DIST / name).exists():
            return DIST / name
    DIST.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DIST) as folder:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, "."]
        step(f"wheel, with Go {tools.go.text} and {tools.cc.text}", pip, cwd=ROOT, env=pythons.pip_environment())
        made = next(Path(folder).glob("dlferry-*.whl"))
        made.replace(DIST / made.name)
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(f"{made.name}\n{key}")
    note(f"dist/{made.name}", f"{(DIST / made.name).stat().st_size // 1024} KiB")
    return DIST / made.name


def wheel_source(path: Path) -> bool:
    return path.suffix not in (".so", ".pyc") and not path.name.endswith("_test.go") and "testdata" not in path.parts


def sdist() -> None:
    with tempfile.TemporaryDirectory() as folder:
        code = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
        name = step("sdist", [sys.executable, "-c", code, folder], cwd=ROOT).split()[-1]
        DIST.mkdir(exist_ok=True)
        shutil.move(str(Path(folder, name)), DIST / name)
    note(f"dist/{name}", f"{(DIST / name).stat().st_size // 1024} KiB")


def numpy_venv(python: pythons.Python) -> pythons.Venv:
    """An environment with the wheel, NumPy and the test tools, and no framework."""
    venv = pythons.Venv(ROOT / ".cache" / "venvs" / ("py" + "".join(map(str, python.minor))), ROOT)
    venv.create(python)
    venv.install("test", groups()["test"], "what the tests need, NumPy alone")
    venv.install_wheel(wheel())
    return venv


def go_environment() -> tuple[toolchain.Toolchain, dict[str, str]]:
    tools = toolchain.find(ROOT)
    env = toolchain.go_env(ROOT, tools, native.work_folder(ROOT, tools))
    env["DLFERRY_PYTHON"] = sys.executable
    header = dlpack_header()
    if header:
        env["DLFERRY_DLPACK_H"] = str(header)
    return tools, env


def dlpack_header() -> Path | None:
    """The dlpack.h that tvm-ffi ships, which is of version 1.3: found without importing the package."""
    import importlib.util

    spec = importlib.util.find_spec("tvm_ffi")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for header in sorted(Path(folder).rglob("dlpack.h")):
            return header
    return None


def online(env: dict[str, str]) -> dict[str, str]:
    """For what fetches modules of its own: the machine's proxy setting instead of ours."""
    own = {name: value for name, value in env.items() if name != "GOPROXY"}
    if "GOPROXY" in os.environ:
        own["GOPROXY"] = os.environ["GOPROXY"]
    return own


def go_modules() -> list[Path]:
    """The folders with a go.mod: the root, the generator, the examples, and the adapters that are modules of their own."""
    skipped = {".venv", ".cache", ".git", "build", "dist", "testdata", "vendor", "node_modules"}
    found = []
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(name for name in names if name not in skipped)
        if "go.mod" in files:
            found.append(Path(folder))
    return found


def go_test(label: str, flags: list[str], env: dict[str, str], *, gcflags: tuple[str, ...] = (), packages: tuple[str, ...] = ("./...",)) -> None:
    tools = toolchain.find(ROOT)
    for module in go_modules():
        where = "" if module == ROOT else f" in {module.relative_to(ROOT)}"
        own = dict(env)
        if module != ROOT:
            if packages != ("./...",):
                continue
            own.pop("GOPROXY", None)
            if "GOPROXY" in os.environ:
                own["GOPROXY"] = os.environ["GOPROXY"]
        mod = toolchain.mod_flags(module)
        command = [tools.go.path, "test", *mod, *native.header_flags(ROOT, *gcflags), *flags, *packages]
        stream(label + where, command, cwd=module, env=own)


def pytest(label: str, *arguments: str, python: Path | None = None, env: dict[str, str] | None = None) -> None:
    stream(label, [python or sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, env={**os.environ, **(env or {})})


def gates(*checks: Callable[[], object]) -> None:
    """Run every check, also after one failed, and fail at the end."""
    failed = []
    for check in checks:
        try:
            check()
        except StepFailed as error:
            failed.append(str(error))
        except toolchain.BuildError as error:
            print(error, flush=True)
            failed.append("build")
    if failed:
        raise StepFailed(", ".join(failed))
