"""The Go module that the wheel carries: all that generated code imports, and nothing that would have to be fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from build_backend import native, toolchain

ROOT = Path(__file__).resolve().parents[2]


def test_sources_and_what_they_include_and_no_tests(tmp_path: Path) -> None:
    names = set(native.go_module(ROOT, toolchain.find(ROOT), tmp_path))
    assert {"go.mod", "LICENSE", "dlpack/view.go", "exchange/block.c", "pyext/glue/glue.go", "pyext/host/exports.map", "pyext/group.go"} <= names
    assert {"pyext/shim/frame.h", "internal/abi/dlpack_abi.h", "internal/kernel/simd_amd64.go", "internal/kernel/simd_none.go"} <= names
    assert not [name for name in names if name.endswith("_test.go") or name.startswith(("cmd/", "pyext/core/", "python/"))]
    assert "require" not in (tmp_path / "go.mod").read_text()


def test_a_module_of_others_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    foreign = {"Dir": "/m/x", "ImportPath": "golang.org/x/sys/unix", "Module": {"Path": "golang.org/x/sys"}}
    monkeypatch.setattr(native, "_go_packages", lambda *arguments: [foreign])
    with pytest.raises(toolchain.BuildError, match=r"\./exchange.* use golang\.org/x/sys/unix, want the standard library alone"):
        native.go_module(ROOT, toolchain.find(ROOT), tmp_path)
