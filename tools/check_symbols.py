"""Checks a wheel of dlferry: its tag, what its libraries export, and what they need.

    python -m tools.check_symbols dist/dlferry-*.whl

Needs pyelftools and abi3info.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from build_backend import elf
from build_backend.native import CORE, GENERATOR, GO_MODULE, GOLIB, RUNTIME

FLOOR = (3, 11)


def stable_abi(floor: tuple[int, int] = FLOOR) -> frozenset[str]:
    """The names that the stable ABI has on every platform since the given version."""
    from abi3info import DATAS, FUNCTIONS

    names = set()
    for table in (FUNCTIONS, DATAS):
        for symbol, entry in table.items():
            if (entry.added.major, entry.added.minor) <= floor and not entry.ifdef:
                names.add(symbol.name)
    return frozenset(names)


def problems_of_core(library: elf.Library) -> Iterator[str]:
    if library.exported != {"PyInit__core"}:
        yield f"{CORE}: exports {', '.join(sorted(library.exported)) or 'nothing'}, want PyInit__core alone"
    python = {name for name in library.undefined if re.match(r"_?Py", name)}
    for name in sorted(python - stable_abi()):
        yield f"{CORE}: uses {name}, which the stable ABI of {'.'.join(map(str, FLOOR))} does not have"


def problems_of_golib(library: elf.Library) -> Iterator[str]:
    others = sorted(name for name in library.exported if not name.startswith("dlf_go_"))
    if others:
        yield f"{GOLIB}: exports {', '.join(others)}, want dlf_go_* alone"
    if not library.exported:
        yield f"{GOLIB}: exports nothing, want dlf_go_*"
    python = sorted(name for name in library.undefined if re.match(r"_?Py[A-Z_]", name))
    if python:
        yield f"{GOLIB}: uses {', '.join(python)}, want no symbol of Python"


def problems(wheel: Path) -> Iterator[str]:
    """Every way in which the wheel is not what it says."""
    tag = "-".join(wheel.stem.split("-")[2:])
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        for name in (
            f"dlferry/{CORE}",
            f"dlferry/{GOLIB}",
            f"dlferry/{GENERATOR}",
            f"dlferry/{GO_MODULE}/go.mod",
            "dlferry/py.typed",
            "dlferry/_core.pyi",
        ):
            if name not in names:
                yield f"{wheel.name}: lacks {name}"
        for ending in (".dist-info/licenses/LICENSE", ".dist-info/licenses/THIRD_PARTY_LICENSES.txt"):
            if not any(name.endswith(ending) for name in names):
                yield f"{wheel.name}: lacks {ending.split('/')[-1]}"
        for name in names:
            source = name.endswith((".c", ".h", ".go")) and not name.startswith(f"dlferry/{GO_MODULE}/")
            if not name.startswith(("dlferry/", "dlferry-")) or source or name.endswith(("_test.go", ".pyc")):
                yield f"{wheel.name}: holds {name}"
        for name in archive.read(f"dlferry/{RUNTIME}").decode().split():
            if f"dlferry/{name}" not in names:
                yield f"{wheel.name}: {RUNTIME} names {name}, which is not there"
        if not (archive.getinfo(f"dlferry/{GENERATOR}").external_attr >> 16) & 0o111:
            yield f"{wheel.name}: {GENERATOR} may not be run"
        metadata = next(name for name in names if name.endswith(".dist-info/WHEEL"))
        if f"Tag: {tag}\n" not in archive.read(metadata).decode():
            yield f"{wheel.name}: the name's tag is not the one in WHEEL"
        libraries = [elf.read(Path(archive.extract(name, folder))) for name in names if name.endswith(".so")]
    for library in libraries:
        if any("python" in needed for needed in library.needed):
            yield f"{library.path.name}: linked to {', '.join(library.needed)}, want no libpython"
        yield from problems_of_core(library) if library.path.name == CORE else problems_of_golib(library)
    try:
        platform = elf.platform_tag(libraries)
    except Exception as error:
        yield str(error)
    else:
        if tag != f"cp311-abi3-{platform}":
            yield f"{wheel.name}: got tag {tag}, the libraries need cp311-abi3-{platform}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, nargs="+")
    bad = [problem for wheel in parser.parse_args().wheel for problem in problems(wheel)]
    print("\n".join(bad) or "symbols and tags are as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
