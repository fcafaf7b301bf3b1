"""What this machine can do, by name. A test that needs more is skipped with that name; declared dependencies are never skipped."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import dlferry

# Set by the target that runs the tests under AddressSanitizer.
SANITIZED = bool(os.environ.get("DLFERRY_SANITIZED"))

GO_LIBRARY = Path(dlferry.__file__).parent / "libdlferry.so"


def requires(*names):
    """Marks a test of frameworks that have no release for every Python."""
    assert "numpy" not in names, "NumPy is a declared dependency of the tests"
    missing = [n for n in names if importlib.util.find_spec(n) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}, not installed for this Python")


def without_sanitizer(reason):
    return pytest.mark.skipif(SANITIZED, reason=f"not under AddressSanitizer: {reason}")


def compiler():
    return shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")


def have_compiler():
    return pytest.mark.skipif(compiler() is None, reason="needs a C compiler (gcc, cc or clang), none on PATH")


def c_library(folder, source, *, name="helper", flags=(), loader=ctypes.CDLL):
    """Compiles C source that names no Python header, and loads it; functions called through CDLL run without the GIL."""
    path = Path(folder) / f"{name}.c"
    path.write_text(source)
    library = path.with_suffix(".so")
    subprocess.run([compiler(), "-O1", "-shared", "-fPIC", "-pthread", *flags, "-o", str(library), str(path)], check=True)
    return loader(str(library))
