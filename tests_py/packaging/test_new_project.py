"""From an installed wheel alone to a tested package of Go functions, with the system's tools and with those of PyPI."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from build_backend import elf

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of this tree."""
    from tools import project

    folder = tmp_path_factory.mktemp("wheels")
    shutil.copy(project.wheel(), folder)
    return folder


class Machine:
    """A new environment with dlferry, outside the source tree, and what runs in it."""

    def __init__(self, folder: Path, wheels: Path, path: str) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        programs = folder / "venv" / "bin"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("CC", "CGO_", "DLFERRY_", "GO", "PYTHON"))}
        links = f"{self.env.get('PIP_FIND_LINKS', '')} {wheels}".strip()
        self.env |= {"PATH": f"{programs}:{path}", "PIP_FIND_LINKS": links, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "GOPROXY": "off"}
        self.python("-m", "pip", "install", "--quiet", "dlferry", "numpy", "pytest")

    def python(self, *arguments: str) -> str:
        command = [str(self.folder / "venv" / "bin" / "python"), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def wheel(self, project: str, target: str) -> Path:
        self.python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, project)
        return next((self.folder / target).glob("*.whl"))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def project_passes(machine: Machine) -> None:
    machine.python("-m", "dlferry", "new", "demo")
    machine.python("-m", "pip", "install", "--quiet", "./demo")
    machine.python("-m", "pytest", "-q", "demo")
    # What was made needs no dlferry.
    machine.python("-m", "pip", "uninstall", "--quiet", "--yes", "dlferry")
    machine.python("-m", "pytest", "-q", "demo")
    machine.python("-c", "import demo, sys; assert 'dlferry' not in sys.modules")


def test_with_the_tools_of_the_system(tmp_path: Path, wheels: Path) -> None:
    machine = Machine(tmp_path, wheels, os.environ["PATH"])
    project_passes(machine)
    shutil.copytree(tmp_path / "demo", tmp_path / "elsewhere" / "demo")
    one, two = machine.wheel("./demo", "one"), machine.wheel("./elsewhere/demo", "two")
    assert one.name == two.name
    assert digest(one) == digest(two)


def test_with_pip_alone(tmp_path: Path, wheels: Path, bare_path: str) -> None:
    machine = Machine(tmp_path, wheels, bare_path)
    project_passes(machine)
    with zipfile.ZipFile(machine.wheel("./demo", "dist")) as archive:
        library = elf.read(Path(archive.extract("demo/_dlferry/libdlferry.so", tmp_path)))
    assert library.glibc <= (2, 17)  # what zig builds for; the wheel's tag follows from dlferry's own extension too


def test_the_sdist_of_a_project_builds_the_same_wheel(tmp_path: Path, wheels: Path) -> None:
    machine = Machine(tmp_path, wheels, os.environ["PATH"])
    machine.python("-m", "dlferry", "new", "demo")
    machine.python("-m", "pip", "install", "--quiet", "hatchling>=1.27")
    code = "import os; os.chdir('demo'); from dlferry import build; print(build.build_sdist('..'))"
    name = machine.python("-c", code).split()[-1]
    direct, again = machine.wheel("./demo", "direct"), machine.wheel(f"./{name}", "again")
    assert again.name == direct.name
    assert digest(again) == digest(direct)


def test_the_guide_holds(tmp_path: Path, wheels: Path) -> None:
    """What a reader of the guide types, without the parts for others' machines."""
    page = (ROOT / "docs" / "guides" / "first-go-function.md").read_text()
    go, python = (re.search(rf"^```{fence}\n(.*?)^```", page, re.M | re.S) for fence in ("golang", "py"))
    assert go and python
    machine = Machine(tmp_path, wheels, os.environ["PATH"])
    machine.python("-m", "dlferry", "new", "demo")
    machine.python("-m", "pip", "install", "--quiet", "./demo[test]")
    (tmp_path / "demo" / "norms.go").write_text(go[1])
    machine.python("-m", "pip", "install", "--quiet", "./demo")
    machine.python("-c", python[1])
    assert "demo.total(np.ones(3)) == 3.0" in (ROOT / "README.md").read_text()
    machine.python("-c", "import demo, numpy as np; assert demo.total(np.ones(3)) == 3.0")


def test_editable(tmp_path: Path, wheels: Path) -> None:
    machine = Machine(tmp_path, wheels, os.environ["PATH"])
    machine.python("-m", "dlferry", "new", "demo")
    machine.python("-m", "pip", "install", "--quiet", "--editable", "./demo")
    machine.python("-m", "pytest", "-q", "demo")
