"""Every Python and Go block of the README and the docs is run as a reader would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|go)\n(.*?)^```", re.M | re.S)


def blocks(language: str) -> list[object]:
    found = []
    for page in PAGES:
        for n, match in enumerate(BLOCK.finditer(page.read_text())):
            if match[1] == language:
                found.append(pytest.param(match[2], id=f"{page.relative_to(ROOT)}-{n}"))
    return found


def installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_of_the_docs_run(code: str, tmp_path: Path) -> None:
    for framework in ("torch", "jax"):
        if f"import {framework}" in code and not installed(framework):
            pytest.skip(f"capability: {framework} is not installed for this Python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("go"))
def test_go_programs_of_the_docs_run(code: str, tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT))
    from build_backend import native, toolchain

    tools = toolchain.find(ROOT)
    env = toolchain.go_env(ROOT, tools, native.work_folder(ROOT, tools))
    program = tmp_path / "main.go"
    program.write_text(code)
    done = subprocess.run([tools.go.path, "run", str(program)], cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2 3] 6\n"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        prose = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)  # in code, F[T](c, 0) is a call
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_error_page_prints_the_table_of_the_code() -> None:
    source = (ROOT / "pyext/shim/errors.c").read_text()
    kinds = dict(re.findall(r"DLF_KIND_(\w+) = \d+,?\s*/\* (.+?) \*/", (ROOT / "internal/abi/kinds.h").read_text()))
    classes = {}
    for cases, python_class in re.findall(r"((?:    case DLF_KIND_\w+:\n)+)        return PyExc_(\w+);", source):
        classes.update(dict.fromkeys(re.findall(r"DLF_KIND_(\w+)", cases), python_class))
    page = (ROOT / "docs/concepts/errors.md").read_text()
    rows = dict(re.findall(r"^\| (.+?) \| (\w+Error) \|$", page[page.index("| kind |") :], re.M))
    printed = {name.strip(): python_class for names, python_class in rows.items() for name in names.split(",")}
    assert printed == {kinds[k]: classes.get(k, "BufferError") for k in kinds if k != "OK"}
