"""The projects in examples/: each builds where it is copied to, and passes its own tests."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import child

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EXAMPLES = child.ROOT.parent / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/go.mod"))


def test_there_are_examples():
    assert "fastops" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_example_builds_and_passes_its_tests(build, name, tmp_path):
    project = tmp_path / name
    shutil.copytree(EXAMPLES / name, project, ignore=shutil.ignore_patterns("dist", ".dlferry", "__pycache__"))
    # What its README says of a copy: the build brings dlferry's module along.
    lines = (project / "go.mod").read_text().splitlines(keepends=True)
    (project / "go.mod").write_text("".join(line for line in lines if not line.startswith("replace github.com/dlferry/dlferry ")))
    site = tmp_path / "site"
    with zipfile.ZipFile(build(project)) as archive:
        archive.extractall(site)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", Path(project, "tests")],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
