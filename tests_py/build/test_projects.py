"""Whole projects: several packages, metadata, cgo, editable installs, and what `dlferry new` starts."""

import email
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support import child

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def write(root, **files):
    for name, text in {"go_mod": "module example.com/project\n\ngo 1.26\n", **files}.items():
        path = root / name.replace("go_mod", "go.mod")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def go(package, body):
    return f"package {package}\n\n{body}\n"


def unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(code, *path):
    return child.alone(code, env={"PYTHONPATH": os.pathsep.join(map(str, path))})


def test_several_packages_are_submodules_over_one_library(build, tmp_path):
    write(
        tmp_path,
        **{
            "a/a.go": go("a", '//dlferry:export\nfunc F() string { return "a" }'),
            "b/b.go": go("b", 'import "example.com/project/state"\n\n//dlferry:export\nfunc F() int { state.N++; return state.N }'),
            "c/c.go": go("c", 'import "example.com/project/state"\n\n//dlferry:export\nfunc F() int { state.N++; return state.N }'),
            "state/state.go": "package state\n\nvar N int\n",
        },
    )
    wheel = build(tmp_path / "a", tmp_path / "b", tmp_path / "c", "--name", "many", "--out", tmp_path / "wheels")
    site = unpack(wheel, tmp_path / "site")
    assert wheel.parent == tmp_path / "wheels"
    assert sorted(p.name for p in (site / "many").iterdir()) == sorted(
        ["_dlferry", "py.typed", *(name + kind for name in ("__init__", "a", "b", "c") for kind in (".py", ".pyi"))]
    )
    assert run("import many; from many import b; print(many.a.f(), b.f(), many.c.f(), many.b.f(), many.__all__)", site) == "a 1 2 3 ['a', 'b', 'c']\n"


def test_pyproject_may_name_the_packages(build, tmp_path):
    write(
        tmp_path,
        go_mod="",
        **{
            "pyproject.toml": '[project]\nname = "named"\nversion = "1.5"\n[tool.dlferry]\npackages = ["go/a", "./go/b"]\n',
            "go/go.mod": "module example.com/named\n\ngo 1.26\n",
            "go/a/a.go": go("a", "//dlferry:export\nfunc F() int { return 1 }"),
            "go/b/b.go": go("b", "//dlferry:export\nfunc F() int { return 2 }"),
        },
    )
    (tmp_path / "go.mod").unlink()
    wheel = build(".", cwd=tmp_path)
    assert wheel.name.startswith("named-1.5-")
    assert run("from named import a, b; print(a.f(), b.f())", unpack(tmp_path / wheel, tmp_path / "site")) == "1 2\n"


def test_metadata_is_that_of_pyproject(build, tmp_path):
    write(
        tmp_path,
        **{
            "pyproject.toml": """
[project]
name = "Fast.Ops"
version = "2.0rc1"
description = "Operations"
readme = "README.md"
license = "MIT"
authors = [{ name = "A. B.", email = "a@example.com" }, { name = "C" }]
keywords = ["go", "fast"]
classifiers = ["Topic :: Scientific/Engineering"]
dependencies = ["numpy>=1.26"]
[project.urls]
Source = "https://example.com/ops"
[project.optional-dependencies]
test = ["pytest", "tomli; python_version < '3.11'"]
[project.scripts]
ops = "fast_ops:main"
""",
            "README.md": "# Ops\n\nFast ö.\n",
            "LICENSE": "MIT licence\n",
            "pkg/p.go": go("p", "//dlferry:export\nfunc F() {}"),
        },
    )
    wheel = build(tmp_path / "pkg")
    assert wheel.parent == tmp_path / "dist"
    assert wheel.name.startswith("fast_ops-2.0rc1-cp311-abi3-")
    with zipfile.ZipFile(wheel) as archive:
        info = "fast_ops-2.0rc1.dist-info/"
        meta = email.message_from_string(archive.read(info + "METADATA").decode())
        assert archive.read(info + "entry_points.txt").decode() == "[console_scripts]\nops = fast_ops:main\n\n"
        assert archive.read(info + "licenses/LICENSE") == b"MIT licence\n"
        assert "Fast_Ops/__init__.py" in archive.namelist()
    assert {key: meta.get_all(key) for key in set(meta)} == {
        "Metadata-Version": ["2.4"],
        "Name": ["Fast.Ops"],
        "Version": ["2.0rc1"],
        "Summary": ["Operations"],
        "Author": ["C"],
        "Author-email": ["A. B. <a@example.com>"],
        "License-Expression": ["MIT"],
        "License-File": ["LICENSE"],
        "Keywords": ["go,fast"],
        "Classifier": ["Topic :: Scientific/Engineering"],
        "Project-URL": ["Source, https://example.com/ops"],
        "Requires-Python": [">=3.11"],
        "Requires-Dist": ["numpy>=1.26", "pytest; extra == 'test'", "tomli; (python_version < '3.11') and extra == 'test'"],
        "Provides-Extra": ["test"],
        "Description-Content-Type": ["text/markdown"],
    }
    assert meta.get_payload() == "# Ops\n\nFast ö.\n"


def test_packages_may_use_cgo_and_lie_in_internal_folders_and_under_odd_names(build, tmp_path):
    root = write(
        tmp_path / "with blank, ö",
        **{
            "internal/deep/p.go": go(
                "deep",
                '// int twice(int x) { return 2 * x; }\nimport "C"\n\n//dlferry:export\nfunc Twice(x int32) int32 { return int32(C.twice(C.int(x))) }',
            ),
            "internal/deep/ignored_windows.go": "package deep\n\nfunc Twice() {}\n",
            "internal/deep/p_test.go": "package deep\n\nthis is no Go\n",
        },
    )
    site = unpack(build(root / "internal" / "deep", "--name", "deep"), tmp_path / "site")
    assert run("import deep; print(deep.twice(21))", site) == "42\n"


def test_an_editable_install_shows_the_next_build(build, tmp_path):
    folder = write(tmp_path / "edit", **{"p.go": go("edit", "//dlferry:export\nfunc F() int { return 1 }")})
    wheel = build("--editable", folder)
    site = unpack(wheel, tmp_path / "site")
    assert [p.name for p in site.glob("*.pth")] == ["__editable__.edit.pth"]
    assert sorted(p.name for p in (folder / ".dlferry").iterdir()) == [".gitignore", "edit"]
    program = f"import site; site.addsitedir({str(site)!r}); import edit; print(edit.f())"
    assert run(program) == "1\n"
    write(folder, **{"p.go": go("edit", "//dlferry:export\nfunc F() int { return 2 }")})
    build("--editable", folder)
    assert run(program) == "2\n"


def test_wrong_sources_are_printed_with_their_place_and_nothing_is_written(command, tmp_path):
    import dlferry

    write(tmp_path, **{"p.go": go("p", "//dlferry:export\nfunc F(c chan int) {}\n\n//dlferry:export\nfunc G(m map[string]int) {}")})
    done = command("build", "--runtime", Path(dlferry.__file__).parent, ".", "--name", "p", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "p.go:4:10: chan int can't be a parameter; write a slice: Python waits until the function returns\n"
        "p.go:7:10: map[string]int can't be a parameter; write two slices, one of keys and one of values\n"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["go.mod", "p.go"]
    write(tmp_path, **{"p.go": go("p", "//dlferry:export\nfunc F() int { return x }")})
    done = command("build", "--runtime", Path(dlferry.__file__).parent, ".", "--name", "p", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "p.go:4:23: undefined: x\n")


def test_a_library_that_not_every_machine_has_is_named(command, tmp_path):
    import dlferry

    source = tmp_path / "lib" / "odd.c"
    write(
        tmp_path,
        **{
            "lib/odd.c": "int odd(void) { return 3; }\n",
            "p.go": go("p", '// #cgo LDFLAGS: -lodd\n// int odd(void);\nimport "C"\n\n//dlferry:export\nfunc F() int { return int(C.odd()) }'),
        },
    )
    subprocess.run(
        [os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-Wl,-soname,libodd.so.1", "-o", source.with_name("libodd.so"), source], check=True
    )
    done = command("build", "--runtime", Path(dlferry.__file__).parent, tmp_path, "--name", "p", env={"CGO_LDFLAGS": f"-L{source.parent}"})
    assert done.returncode == 0, done.stderr
    assert "the library needs libodd.so.1" in done.stderr
    assert "-linux_" in done.stdout


def test_a_new_project_passes_its_own_test(command, build, tmp_path):
    done = command("new", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    site = unpack(build(tmp_path / "demo"), tmp_path / "site")
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(tests, cwd=tmp_path / "demo", env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
    go_vet = [shutil.which("gofmt") or "gofmt", "-l", "."]
    assert subprocess.run(go_vet, cwd=tmp_path / "demo", capture_output=True, text=True, check=True).stdout == ""
    if importlib.util.find_spec("ruff") is None:  # `make lint` installs it
        return
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "--select", "E4,E7,E9,F,I", "."]
    done = subprocess.run(ruff, cwd=tmp_path / "demo", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
