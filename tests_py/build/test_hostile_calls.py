"""Functions that `dlferry build` made, given what no function wants: wrong, lying, failing and dying arguments; threads, forks and exits."""

import os
from pathlib import Path

import pytest
from support import child, requires

import dlferry

pytestmark = pytest.mark.slow


@pytest.fixture
def hostile(torture):
    """Runs code in a child that has torture as t, numpy as np, and what it needs of support."""
    path = os.pathsep.join([str(torture), str(child.ROOT), str(Path(dlferry.__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")])

    def run(code, **options):
        head = "import gc, sys\nimport numpy as np\nimport torture as t\nfrom support import Fake, bad\nledger = t._dlferry._core.ledger\n"
        return child.alone(head + "\n".join(code.strip("\n").splitlines()), env={"PYTHONPATH": path}, **options)

    return run


def test_lying_tensors_are_refused_and_given_back(hostile):
    hostile("""
fakes = [
    Fake(shape=(-1,)), Fake(shape=(2**62, 2**62)), Fake(shape_null=True), Fake(strides=(2**62,)), Fake(null=True), Fake(ty=(2, 32, 0)),
    Fake(dev=(2, 0)), Fake(dev=(-5, 0)), Fake(ver=(9, 0)), Fake(ndim=-1), Fake(ndim=65), Fake(off=2**63),
]
other = [Fake(ty=(77, 32, 1)), Fake(ty=(0, 64, 1))]  # good ones, but for functions of other dtypes
before = ledger()
for f in fakes + other:
    for call in (lambda: t.sum(f), lambda: t.sum(f) if f in other else t.nothing(f), lambda: t.fill(f, 1), lambda: t.lengths([f]), lambda: t.copy(f, f)):
        e = bad(call)
        assert type(e) in (BufferError, ValueError, TypeError), (f, e)
    del e
    gc.collect()
    assert f.balanced(), vars(f)
assert ledger() == before, (ledger(), before)
""")


def test_good_fakes_are_read_and_given_back_once(hostile):
    hostile("""
import struct
before = ledger()
for ver in (None, (1, 0), (1, 3)):
    f = Fake(buf=struct.pack("4d", 1, 2, 3, 4), shape=(4,), ty=(2, 64, 1), ver=ver)
    assert t.sum(f) == 10
    assert t.what(f).startswith("float64 [4]")
    assert f.balanced() and f.freed >= 2, vars(f)
assert ledger() == before
""")


def test_a_later_argument_that_fails_gives_the_earlier_ones_back(hostile):
    hostile("""
class Raises:
    def __dlpack__(self, **kw):
        raise RuntimeError("mine")
    def __dlpack_device__(self):
        return (1, 0)
a = np.zeros(3, np.float32)
count, before = sys.getrefcount(a), ledger()
for wrong in (Raises(), None, 3, "x", object(), np.ndarray, [1.0], np.zeros(3, "M8[s]")):
    for call in (lambda: t.copy(a, wrong), lambda: t.copy(wrong, a), lambda: t.lengths([np.zeros(2, np.uint8), wrong])):
        try:
            call()
        except (TypeError, BufferError, ValueError, RuntimeError) as e:
            assert not isinstance(wrong, Raises) or str(e) == "mine"
        else:
            raise AssertionError(wrong)
gc.collect()
assert sys.getrefcount(a) == count and ledger() == before
""")


def test_messages_name_the_function_and_the_parameter(hostile):
    hostile("""
for call, words in (
    (lambda: t.sum(np.zeros(3, np.int32)), ("sum", "int32", "float64")),
    (lambda: t.fill(np.broadcast_to(np.int32(1), 3), 1), ("fill", "read-only", "writable")),
    (lambda: t.fill(np.lib.stride_tricks.as_strided(np.zeros(3, np.int32), (3, 3), (4, 4)), 1), ("fill", "same element")),
    (lambda: t.add_int8(128, 0), ("add_int8", "128", "int8")),
    (lambda: t.add_int8("1", 0), ("add_int8", "str", "int")),
    (lambda: t.upper(b"x"), ("upper", "bytes", "str")),
    (lambda: t.copy(np.zeros(3, np.float32), np.zeros(3)), ("copy", "float64", "float32")),
    (lambda: t.sum(), ("sum", "missing")),
    (lambda: t.sum(np.zeros(1), y=1), ("sum", "y")),
):
    text = str(bad(call))
    assert all(w in text for w in words), text
""")


def test_nothing_grows(hostile):
    hostile("""
a, b, n = np.ones(12, np.float32), np.zeros(12, np.float32), np.ones(3)
def once():
    t.copy(b, a); t.sum(n); t.upper("abc"); t.joined(["a", "b"], "-"); t.doubled([1.0, 2.0]); t.twice(a); t.keep(np.arange(3)); t.halves(np.ones(2, np.float16))
    for wrong in ((lambda: t.sum(a)), (lambda: t.add_int8(999, 0))):
        bad(wrong)
for _ in range(200):
    once()
t.keep(np.zeros(1))
gc.collect()
counts, before = (sys.getrefcount(a), sys.getrefcount(n)), ledger()
for _ in range(3000):
    once()
gc.collect()
t.keep(np.zeros(1))
now = ledger()
assert (sys.getrefcount(a), sys.getrefcount(n)) == counts
assert {k: v for k, v in now.items() if k != "queued"} == {k: v for k, v in before.items() if k != "queued"}, (now, before)
""")


def test_threads_call_at_once(hostile):
    hostile("""
import threading
errors = []
def work(k):
    try:
        for i in range(300):
            x = np.full((64, 64), k, np.float64)
            assert t.sum(x) == 4096 * k
            big = np.full(1 << 18, k, np.float64)  # above the size that gives the GIL up
            assert t.sum(big) == big.size * k
    except BaseException as e:
        errors.append(e)
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for th in threads: th.start()
for th in threads: th.join()
assert not errors, errors
""")


def test_a_forked_child_is_told(hostile):
    hostile("""
import os, warnings
warnings.simplefilter("ignore")
def forked(f):
    pid = os.fork()
    if pid == 0:
        try:
            f()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
def works():
    assert t.add_int8(1, 2) == 3
def told():
    try:
        t.add_int8(1, 2)
    except RuntimeError as e:
        assert "forked" in str(e)
    else:
        raise AssertionError("ran")
forked(works)
works()
forked(told)
""")


def test_dlferry_and_a_made_module_pass_tensors_in_one_process(hostile):
    hostile("""
import dlferry as g
x = g.full((2, 3), 2.0, dtype="float64")
assert t.sum(x) == 12
y = t.twice(g.full((2,), 1.0))
assert all(isinstance(v, g.Tensor) for v in y), y
z = t.arange(4)
assert g.from_dlpack(z).tolist() == [0, 1, 2, 3]
w = t._dlferry._core.zeros((3,), dtype="float64")
assert t.sum(w) == 0 and g.from_dlpack(w).data_ptr() == w.data_ptr()
g.zeros((100, 100)).astype("float16")  # dlferry's own Go library beside the other one
assert t.add_int8(1, 2) == 3
del x, y, z, w
gc.collect()
assert g.ledger()["storages"] == 0 and ledger()["storages"] == 0, (g.ledger(), ledger())
""")


@requires("torch")
def test_torch_tensors_come_and_go(hostile):
    hostile("""
import torch
x = torch.arange(6, dtype=torch.float64).reshape(2, 3)
assert t.sum(x) == 15 and t.sum(x.T) == 15 and t.sum(x[1:]) == 12
y = t.twice(torch.ones(2))
assert all(type(v) is torch.Tensor for v in y) and y[0].tolist() == [1, 1]
p = torch.ones(2, dtype=torch.float64, requires_grad=True)
for odd in (p, p * 2, torch.ones(2, dtype=torch.complex128).conj().imag):
    text = str(bad(lambda: t.sum(odd)))
    assert "detach" in text or "resolve" in text, text
assert t.sum(p.detach()) == 2
assert t.what(torch.zeros(0, 3, dtype=torch.int16)) == "int16 [0 3] false"
""")


def test_the_process_ends_with_calls_in_flight(hostile):
    hostile("""
import threading
kept = t.twice(np.ones(3, np.float32)), t.arange(5)
threading.Thread(target=lambda: [t.sum(np.ones(1 << 18)) for _ in range(10**6)], daemon=True).start()
import time
time.sleep(0.2)
""")


def test_buffers_are_tensors_too_and_other_objects_are_named(hostile):
    hostile("""
import array
assert t.sum(array.array("d", [1, 2, 3])) == 6 and t.sum(memoryview(np.ones(4))) == 4
assert t.what(b"abc") == "uint8 [3] true"
t.fill(out := array.array("i", [0, 0]), 7)
assert list(out) == [7, 7]
for odd in (None, 3, "x", object(), [1.0], np.ndarray, {}):
    text = str(bad(lambda: t.sum(odd)))
    assert text.startswith("sum: ") and text.count("sum") == 1 and "want a tensor" in text, text
""")
