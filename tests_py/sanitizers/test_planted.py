"""That a run under the sanitizers sees what it is made for: overflows planted on either side must be reported."""

import os
import re
from pathlib import Path

import pytest
from support import GO_LIBRARY, SANITIZED, run

import dlferry

pytestmark = pytest.mark.skipif(not SANITIZED, reason="only where both libraries are built with AddressSanitizer: make asan")

# A producer that says it has twice the elements that it has, in memory of malloc.
LIAR = """
import ctypes as C
from support import Fake
import dlferry as g

libc = C.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = C.c_void_p, [C.c_size_t]
n = {n}
f = Fake(buf=b"", shape=(2 * n,), ty=(1, 8, 1), ver=(1, 1))
f.m.t.data = libc.malloc(n)
t = g.from_dlpack(f.capsule())
"""


def report(code, tmp_path, **options):
    """What the sanitizers say about a child, which they must end."""
    settings = {"log_path": str(tmp_path / "log"), "detect_leaks": "0", **options}
    mine = [word for word in os.environ["ASAN_OPTIONS"].split(":") if word.split("=")[0] not in settings]
    joined = ":".join([*mine, *(f"{k}={v}" for k, v in settings.items())])
    done = run(code, env={"ASAN_OPTIONS": joined, "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:log_path={tmp_path}/log"})
    text = "".join(path.read_text(errors="replace") for path in sorted(tmp_path.glob("log*")))
    assert done.returncode != 0, f"the child lives\n{text}{done.stdout}{done.stderr}"
    return text


def test_both_libraries_are_those_of_the_sanitized_build():
    folder = Path(dlferry.__file__).resolve().parent
    assert str(folder) == os.environ["DLFERRY_SANITIZED"]
    assert b"__asan_init" in (folder / "_core.abi3.so").read_bytes()
    assert b"__ubsan_handle_add_overflow" in (folder / "_core.abi3.so").read_bytes()
    assert b"__asan_init" in GO_LIBRARY.read_bytes()


@pytest.mark.parametrize("use", ["t.copy()", "t.tolist()"])
def test_a_read_beyond_in_c_is_reported(use, tmp_path):
    text = report(LIAR.format(n=1000) + use, tmp_path)
    assert "heap-buffer-overflow" in text, text
    assert "_core.abi3.so" in text or "pyext/shim" in text, text


def test_a_read_beyond_in_go_is_reported(tmp_path):
    # more than C copies itself, and a cast, which is always Go's
    text = report(LIAR.format(n=1 << 17) + "t.astype('float32')", tmp_path)
    assert "heap-buffer-overflow" in text, text
    assert re.search(r"libdlferry|internal/kernel", text), text


def test_a_read_after_the_end_is_reported(tmp_path):
    text = report(LIAR.format(n=1000) + "libc.free.argtypes = [C.c_void_p]; libc.free(f.m.t.data); t.copy()", tmp_path)
    assert "heap-use-after-free" in text, text
