"""The PEP 517 backend of a Go project whose functions are for Python: ``build-backend = "dlferry.build"``.

Each entry of ``config_settings`` is an option of ``dlferry build``: ``pip install . -C NAME=VALUE`` gives it ``--NAME=VALUE``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from . import _build, _toolchain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Settings = Mapping[str, str | list[str]] | None

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """The packages that carry Go and zig, where this machine lacks a tool."""
    try:
        return _toolchain.missing(_build.runtime() / "_go")
    except _toolchain.BuildError as error:
        sys.exit(str(error))


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """What packs the sources."""
    return ["hatchling>=1.27"]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """A wheel of the project in the current folder; its name."""
    return _make(wheel_directory, _options(config_settings))


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """A wheel that points to the library built beside the project; its name."""
    return _make(wheel_directory, ["--editable", *_options(config_settings)])


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """The sources, without what .gitignore names; the file's name."""
    from hatchling.build import build_sdist as pack

    return pack(sdist_directory)


def _options(settings: Settings) -> list[str]:
    options = []
    for name, given in (settings or {}).items():
        options += [f"--{name.lstrip('-')}={value}" if value else f"--{name.lstrip('-')}" for value in ([given] if isinstance(given, str) else given)]
    return options


def _make(target: str, options: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        code = _build.main("build", [*options, "--out", folder, "."])
        if code:
            sys.exit(code)
        made = next(Path(folder).glob("*.whl"))
        target_file = Path(target, made.name)
        target_file.write_bytes(made.read_bytes())
    return made.name
