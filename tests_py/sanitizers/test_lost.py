"""LeakSanitizer over a loop of imports and exports: what the libraries lost does not grow with the number of rounds."""

import os
import re

import pytest
from support import SANITIZED, run

pytestmark = pytest.mark.skipif(not SANITIZED, reason="only where both libraries are built with AddressSanitizer: make asan")

ROUNDS = """
import sys
import numpy as np
from support import Fake, bad
import dlferry as g

T = g.full((2, 3), 1.5)
A = np.arange(6.0).reshape(2, 3)
BIG = g.zeros((300, 300))
taken, refused, odd = Fake(), Fake(ndim=-1), Fake(ty=(2, 32, 0), ver=None)

class Sub(g.Tensor):
    pass

def fake(f):
    capsule = f.capsule()
    f.caps.clear()
    try:
        g.from_dlpack(capsule)
    except BufferError:
        pass

def round():
    fake(taken), fake(refused), fake(odd)
    g.from_dlpack(A), g.from_dlpack(A, copy=True), np.from_dlpack(T), np.asarray(T)
    T.__dlpack__(), T.__dlpack__(max_version=(1, 3)), T.__dlpack__(max_version=(1, 3), copy=True)
    g.from_dlpack(T.__dlpack__(max_version=(1, 3))), g.from_dlpack(T.__dlpack__())
    g.from_buffer(bytearray(8)), memoryview(T).release(), g.asarray([1, 2, 3]), g.convert({"a": [T]}, "numpy")
    T[1:], T.reshape(6), T.permute_dims((1, 0)), T.tolist(), T.copy(), T.astype("int8"), repr(T), Sub(T)
    BIG.permute_dims((1, 0)).copy(), g.empty((1,) * 12).close()
    bad(lambda: g.from_dlpack(5)), bad(lambda: g.empty(1, dtype="nothing")), bad(lambda: g.full(1, 300, dtype="int8"))
"""
LOSE = """
import ctypes as C
def lose():
    capsule = T.__dlpack__(max_version=(1, 3))
    C.pythonapi.PyCapsule_SetName.argtypes = [C.py_object, C.c_char_p]
    C.pythonapi.PyCapsule_SetName(capsule, b"used_dltensor_versioned")
"""


def lost(code, tmp_path, name):
    """How many objects of our libraries' making nothing points to at exit."""
    log = tmp_path / name
    settings = {"detect_leaks": "1", "log_path": str(log), "fast_unwind_on_malloc": "0", "malloc_context_size": "6"}
    mine = [word for word in os.environ["ASAN_OPTIONS"].split(":") if word.split("=")[0] not in settings]
    done = run(
        code,
        env={
            "ASAN_OPTIONS": ":".join([*mine, *(f"{k}={v}" for k, v in settings.items())]),
            # the exit code stays the program's: NumPy and Python lose things of their own
            "LSAN_OPTIONS": "exitcode=0:print_suppressions=0:max_leaks=0",
        },
        timeout=280,
    )
    text = "".join(path.read_text(errors="replace") for path in sorted(tmp_path.glob(name + "*")))
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{text}"[-6000:]
    assert "LeakSanitizer has encountered a fatal error" not in text, text[-2000:]
    found = 0
    ours = []
    for size, count, stack in re.findall(r"leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:\n((?:\s+#.*\n)+)", text):
        if re.search(r"_core\.abi3\.so|libdlferry\.so|pyext/shim|exchange/block", stack):
            found += int(count)
            ours.append(f"{count} of {size} bytes\n{stack}")
    return found, "\n".join(ours)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return lost(ROUNDS + "for _ in range(10): round()", tmp_path_factory.mktemp("few"), "few")[0]


def test_what_is_lost_does_not_grow(few, tmp_path):
    many, stacks = lost(ROUNDS + "for _ in range(60): round()", tmp_path, "many")
    assert many <= few, stacks


def test_a_planted_loss_is_seen(few, tmp_path):
    some, stacks = lost(ROUNDS + LOSE + "for _ in range(50): lose()", tmp_path, "some")
    assert 50 <= some - few <= 150, stacks
