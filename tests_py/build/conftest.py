"""`dlferry build`, from the sources of the command in this checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import child

import dlferry

COMMAND = child.ROOT.parent / "cmd" / "dlferry"
if str(child.ROOT.parent) not in sys.path:
    sys.path.append(str(child.ROOT.parent))


@pytest.fixture(scope="session")
def go_environment(tmp_path_factory):
    from build_backend import toolchain

    tools = toolchain.find(child.ROOT.parent)
    env = toolchain.go_env(child.ROOT.parent, tools, tmp_path_factory.mktemp("cc"))
    env.pop("GOPROXY", None)
    if "GOPROXY" in os.environ:
        env["GOPROXY"] = os.environ["GOPROXY"]
    return env


@pytest.fixture(scope="session")
def command(go_environment, tmp_path_factory):
    """Runs the command with arguments; gives the finished process."""
    program = tmp_path_factory.mktemp("bin") / "dlferry"
    subprocess.run(["go", "build", "-o", program, "."], cwd=COMMAND, env=go_environment, check=True)

    def run(*args, cwd=None, env=None):
        return subprocess.run([program, *args], cwd=cwd, env={**go_environment, **(env or {})}, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="session")
def build(command):
    """Builds folders into a wheel, and gives its path."""

    def run(*args, cwd=None, env=None):
        done = command("build", "--runtime", Path(dlferry.__file__).parent, *args, cwd=cwd, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return Path(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def torture(build, tmp_path_factory):
    """The folder that the torture package's wheel is unpacked in."""
    root = tmp_path_factory.mktemp("torture")
    shutil.copytree(COMMAND / "testdata" / "torture", root / "torture")
    (root / "go.mod").write_text("module example.com/tests\n\ngo 1.26\n")
    site = root / "site"
    zipfile.ZipFile(build("--version", "1.2.3", root / "torture")).extractall(site)
    return site


@pytest.fixture
def call(torture):
    """Runs code in a child that has imported torture as t and numpy as np."""

    def run(code, **options):
        lines = "import numpy as np\nimport torture as t\n" + "\n".join(line for line in code.strip().splitlines())
        path = os.pathsep.join([str(torture), os.environ.get("PYTHONPATH", "")])
        return child.alone(lines, env={"PYTHONPATH": path}, **options)

    return run
