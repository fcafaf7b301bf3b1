"""The tag comes from the ELF files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from build_backend import elf
from build_backend.toolchain import BuildError


def library(
    name: str,
    *,
    machine: str = "x86_64",
    needed: tuple[str, ...] = ("libc.so.6",),
    glibc: tuple[int, int] = (2, 2),
    versions: frozenset[str] = frozenset(),
) -> elf.Library:
    return elf.Library(Path(name), machine, needed, frozenset(), frozenset(), glibc, versions)


@pytest.mark.parametrize(
    ("levels", "tag"),
    [
        (((2, 2), (2, 3)), "manylinux_2_17_x86_64"),
        (((2, 17), (2, 34)), "manylinux_2_34_x86_64"),
        (((2, 34), (2, 4)), "manylinux_2_34_x86_64"),
        (((0, 0), (0, 0)), "manylinux_2_17_x86_64"),
    ],
)
def test_the_tag_is_the_higher_need(levels: tuple[tuple[int, int], ...], tag: str) -> None:
    assert elf.platform_tag(library(str(number), glibc=level) for number, level in enumerate(levels)) == tag


def test_the_processor_is_the_libraries() -> None:
    assert elf.platform_tag([library("a", machine="aarch64")]) == "manylinux_2_17_aarch64"
    with pytest.raises(BuildError, match="different processors: aarch64, x86_64"):
        elf.platform_tag([library("a", machine="aarch64"), library("b")])


@pytest.mark.parametrize("needed", ["libc.musl-x86_64.so.1", "libc.so"])
def test_musl_is_refused(needed: str) -> None:
    with pytest.raises(BuildError, match="got musl, want glibc"):
        elf.platform_tag([library("a", needed=(needed,))])


@pytest.mark.parametrize("needed", ["libpython3.12.so.1.0", "libstdc++.so.6", "libcuda.so.1"])
def test_other_libraries_are_refused(needed: str) -> None:
    with pytest.raises(BuildError, match="is linked to"):
        elf.platform_tag([library("a", needed=("libc.so.6", needed))])


def test_private_symbols_are_refused() -> None:
    with pytest.raises(BuildError, match="private symbols"):
        elf.platform_tag([library("a", versions=frozenset({"GLIBC_PRIVATE"}))])


def test_reading_a_real_library(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no system C compiler")
    source = tmp_path / "a.c"
    source.write_text(
        "#include <stdio.h>\nextern int PyList_Size(void *);\n"
        '__attribute__((visibility("default"))) int open_door(void *x) { puts("x"); return PyList_Size(x); }\n'
        "int hidden(void) { return 1; }\n"
    )
    target = tmp_path / "a.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-fvisibility=hidden", "-o", str(target), str(source)], check=True)
    found = elf.read(target)
    assert "open_door" in found.exported
    assert "hidden" not in found.exported
    assert {"PyList_Size", "puts"} <= found.undefined
    assert found.needed == ("libc.so.6",)
    assert (2, 2) <= found.glibc < (3, 0)
    assert elf.platform_tag([found]).endswith(found.machine)
