"""Reads from an ELF library what a wheel's tag has to say about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .toolchain import MUSL, BuildError

# manylinux2014: no build of ours is tagged older, whatever its symbols would allow.
FLOOR = (2, 17)
# What every manylinux level lets a library take from the machine it runs on.
SYSTEM_LIBRARIES = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d+|ld-linux.*\.so\.\d+)")
_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}


@dataclass(frozen=True)
class Library:
    path: Path
    machine: str
    needed: tuple[str, ...]
    exported: frozenset[str]
    undefined: frozenset[str]
    glibc: tuple[int, int] = (0, 0)
    versions: frozenset[str] = field(default_factory=frozenset)


def read(path: Path) -> Library:
    """The dynamic section, the dynamic symbols and the versions asked of glibc."""
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection
    from elftools.elf.sections import SymbolTableSection

    with path.open("rb") as stream:
        elf = ELFFile(stream)
        machine = _MACHINES.get(elf["e_machine"], elf["e_machine"])
        needed: list[str] = []
        exported: set[str] = set()
        undefined: set[str] = set()
        versions: set[str] = set()
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                needed += [str(getattr(tag, "needed", "")) for tag in section.iter_tags("DT_NEEDED")]
            elif isinstance(section, GNUVerNeedSection):
                for _, names in section.iter_versions():
                    versions.update(name.name for name in names)
            elif isinstance(section, SymbolTableSection) and section["sh_type"] == "SHT_DYNSYM":
                for symbol in section.iter_symbols():
                    if symbol["st_info"]["bind"] == "STB_LOCAL" or not symbol.name:
                        continue
                    if symbol["st_shndx"] == "SHN_UNDEF":
                        undefined.add(symbol.name)
                    elif symbol["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED"):
                        exported.add(symbol.name)
    levels = [tuple(map(int, found.groups())) for name in versions if (found := re.match(r"GLIBC_(\d+)\.(\d+)", name))]
    if "GLIBC_ABI_DT_RELR" in versions:
        levels.append((2, 36))
    glibc = max(levels, default=(0, 0))
    return Library(path, machine, tuple(needed), frozenset(exported), frozenset(undefined), (glibc[0], glibc[1]), frozenset(versions))


def refuse_foreign(library: Library) -> None:
    """Refuse what no manylinux wheel may hold: musl, a library that the machine need not have, glibc's private symbols."""
    name = library.path.name
    for needed in library.needed:
        if "musl" in needed or needed == "libc.so":
            raise BuildError(MUSL)
        if not SYSTEM_LIBRARIES.fullmatch(needed):
            raise BuildError(f"dlferry: {name} is linked to {needed}, want the C library alone")
    if "GLIBC_PRIVATE" in library.versions:
        raise BuildError(f"dlferry: {name} uses private symbols of glibc")


def platform_tag(libraries: Iterable[Library]) -> str:
    """The platform tag of a wheel that holds these libraries, from what they ask of glibc and the processor they are for."""
    found = list(libraries)
    for library in found:
        refuse_foreign(library)
    machines = {library.machine for library in found}
    if len(machines) != 1:
        raise BuildError(f"dlferry: the libraries are for different processors: {', '.join(sorted(machines))}")
    major, minor = max([FLOOR, *(library.glibc for library in found)])
    return f"manylinux_{major}_{minor}_{machines.pop()}"
