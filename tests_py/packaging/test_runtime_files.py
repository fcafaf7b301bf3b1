"""What a package made by `dlferry build` takes along is enough for it, under its own name and without dlferry."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import dlferry

PACKAGE = Path(dlferry.__file__).parent
RUNTIME = (PACKAGE / "_runtime.txt").read_text().split()

PROGRAM = """
import pickle, sys
from made import _dlferry as d

t = d.asarray([[1, 2], [3, 4]], dtype="float32")
assert repr(t).startswith("Tensor([[1.0, 2.0],") and str(t.dtype) == "float32" and str(t.device) == "cpu"
assert t.T[0].tolist() == [1.0, 3.0] and t[1].astype("int8").tolist() == [3, 4] and t.reshape(4).shape == (4,)
assert type(t).__module__ == "made._dlferry" and d.convert(memoryview(t), d.Tensor).tolist() == t.tolist()
assert d.from_dlpack(t).data_ptr() == t.data_ptr() and t.T.contiguous().tolist() == [[1.0, 3.0], [2.0, 4.0]]
again = pickle.loads(pickle.dumps(t))
assert type(again) is d.Tensor and again.tolist() == t.tolist()
assert pickle.loads(pickle.dumps((t.dtype, t.device))) == (t.dtype, t.device)
assert "dlferry" not in sys.modules
"""


def test_a_package_of_these_files_works(tmp_path: Path) -> None:
    target = tmp_path / "made" / "_dlferry"
    target.mkdir(parents=True)
    (tmp_path / "made" / "__init__.py").touch()
    for name in (*RUNTIME, "_core.abi3.so", "libdlferry.so"):
        shutil.copy(PACKAGE / name, target / name)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_but_explain_is_missing() -> None:
    """Every module that one of these imports, at whatever time, is one of these."""
    wanted = set()
    for name in RUNTIME:
        if name.endswith(".py"):
            for node in ast.walk(ast.parse((PACKAGE / name).read_text())):
                if isinstance(node, ast.ImportFrom) and node.level:
                    wanted |= {node.module} if node.module else {alias.name for alias in node.names}
    assert {f"{name}.py" for name in wanted - {"_core"}} - set(RUNTIME) == {"_explain.py"}
