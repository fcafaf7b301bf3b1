"""The keyword like= of functions that return tensors."""

import importlib.util
import os

import pytest
from support import child

import dlferry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def run(torture):
    def run(code, *needs):
        for name in needs:
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"capability: {name} is not installed for this Python")
        path = os.pathsep.join([str(torture), os.environ.get("PYTHONPATH", "")])
        return child.alone("import numpy as np\nimport torture as t\nx = np.array([2, 4], np.float16)\n" + code.strip(), env={"PYTHONPATH": path})

    return run


def test_none_is_the_rule_of_the_first_tensor_argument(run):
    run("""
assert type(t.halves(x)) is type(t.halves(x, like=None)) is np.ndarray
assert type(t.arange(2)) is type(t.arange(2, like=None)) is t._dlferry.Tensor
""")


def test_types_names_and_tensors_are_taken(run):
    run("""
own = t._dlferry.Tensor
for like in np.ndarray, "numpy", x, np, np.zeros((2, 2), int):
    assert type(t.arange(2, like=like)) is np.ndarray, like
    pair = t.twice(np.ones(1, np.float32), like=like)
    assert [type(y) for y in pair] == [np.ndarray] * 2
for like in own, t.arange(1):
    assert type(t.halves(x, like=like)) is own, like
import dlferry
for like in "dlferry", dlferry.Tensor, dlferry.zeros(1):
    assert type(t.halves(x, like=like)) is dlferry.Tensor, like
assert t.arange(n=3, like="numpy").tolist() == [0, 1, 2]
assert t.nothing(x, like="numpy") is None
""")


def test_tensors_of_torch_and_jax_too(run):
    run(
        """
import jax, torch
for n in range(3):  # found the long way, then remembered
    for like in torch.Tensor, "torch", torch, torch.zeros(1), torch.nn.Parameter(torch.zeros(1)):
        assert type(y := t.halves(x, like=like)) is torch.Tensor and y.tolist() == [1, 2], like
    for like in jax.Array, "jax", jax, jax.numpy.zeros(1):
        assert isinstance(y := t.halves(x, like=like), jax.Array) and y.tolist() == [1, 2], like
    assert type(t.halves(torch.from_numpy(x), like=np.ndarray)) is np.ndarray
""",
        "torch",
        "jax",
    )


def test_what_is_no_library_is_refused_before_go_runs(run):
    out = run("""
kept = np.zeros(1)
for like in 3, int, "nothing", [x], b"", memoryview(b""), t:
    try:
        t.keep(kept, like=like)
    except (TypeError, ValueError) as e:
        print(type(e).__name__, str(e).partition(", want")[0].partition(" from ")[0])
assert t.keep(x) is None  # nothing was kept
""")
    assert out.splitlines() == [
        "TypeError keep: like, got <class 'int'>",
        "TypeError keep: like, got <class 'int'>",
        "ValueError keep: like, got 'nothing'",
        "TypeError keep: like, got <class 'list'>",
        "TypeError keep: like, got <class 'bytes'>",
        "TypeError keep: like, got <class 'memoryview'>",
        "ValueError keep: like, got <module 'torture'",
    ]


def test_a_library_that_cannot_take_the_result_is_an_error(run):
    """As first argument such an object gives our own tensor; whoever asks for it wants to know."""
    run("""
class Own:
    def __init__(self, x): self.x = x
    def __dlpack__(self, **keywords): return self.x.__dlpack__(**keywords)
    def __dlpack_device__(self): return self.x.__dlpack_device__()
    @classmethod
    def from_dlpack(cls, x): raise TypeError("no room")
assert type(t.halves(Own(x))) is t._dlferry.Tensor
try:
    t.halves(x, like=Own)
except TypeError as e:
    assert str(e) == "no room"
else:
    raise SystemExit(1)
""")


def test_like_comes_by_keyword_and_only_where_a_tensor_is_returned(run):
    run("""
import inspect
assert str(inspect.signature(t.halves)) == "(x, *, like=None)"
assert str(inspect.signature(t.alike)) == "(like)"
for call in lambda: t.halves(x, "numpy"), lambda: t.halves(x, like="numpy", lik=1), lambda: t.sum(np.ones(1), like="numpy"):
    try:
        call()
    except TypeError as e:
        assert str(e).startswith(("halves: ", "sum: ")), e
    else:
        raise SystemExit(1)
assert type(t.alike(like=np.ones(1, np.float32))) is np.ndarray
""")


def test_nothing_is_left_over(run):
    run("""
import sys
like, ledger = np.zeros(1), t._dlferry._core.ledger
t.halves(x, like=like)
before, count, types = ledger(), sys.getrefcount(like), sys.getrefcount(np.ndarray)
for n in range(100):
    t.halves(x, like=like), t.arange(1, like="numpy")
    for wrong in lambda: t.halves(np.ones(1), like=like), lambda: t.arange(-1, like=np.ndarray):
        try:
            wrong()
        except (TypeError, ValueError):
            pass
assert sys.getrefcount(like) == count and abs(sys.getrefcount(np.ndarray) - types) < 10
assert ledger() == before
""")


def test_sixteen_parameters_leave_room_for_it():
    names = [f"p{i}" for i in range(16)]
    f = dlferry._core._function(__name__, "f", "", 0, tuple((n, 7, (64,), 0) for n in names), (1,), 0)
    with pytest.raises(TypeError, match="f: like, got <class 'int'>"):
        f(*range(16), like=3)
