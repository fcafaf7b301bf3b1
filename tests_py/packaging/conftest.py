"""The source tree, and copies of it in which a test may build."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

NOT_SOURCES = shutil.ignore_patterns(
    ".git", ".venv", ".cache", ".*_cache", ".hypothesis", "build", "dist", "vendor", "__pycache__", "*.so", "tests_py", "shared"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources, without anything built."""
    copy = tmp_path / "tree"
    shutil.copytree(ROOT, copy, ignore=NOT_SOURCES)
    return copy


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH with a shell and the usual small tools, and neither Go nor a C compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in (
        "sh",
        "env",
        "git",
        "make",
        "sed",
        "grep",
        "cat",
        "cp",
        "mv",
        "rm",
        "mkdir",
        "ls",
        "uname",
        "id",
        "head",
        "dirname",
        "basename",
        "chmod",
    ):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(Path(found).resolve())
    return str(folder)
