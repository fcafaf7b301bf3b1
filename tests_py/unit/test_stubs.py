"""_core.pyi says what the built module has, and nothing else; dlferry.__all__ is what it exports."""

import ast
import inspect
from pathlib import Path

import pytest

import dlferry as g

_core = g._core
STUB = Path(g.__file__).parent / "_core.pyi"
TREE = ast.parse(STUB.read_text())
FUNCTIONS = {n.name: n for n in TREE.body if isinstance(n, ast.FunctionDef)}
CLASS = next(n for n in TREE.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
METHODS = {n.name: n for n in CLASS.body if isinstance(n, ast.FunctionDef)}
ATTRIBUTES = {n.target.id for n in CLASS.body if isinstance(n, ast.AnnAssign)}
SLOTS = {"__buffer__", "__new__", "__release_buffer__"}  # of the type object, seen as methods from Python 3.12 on or never
PLAIN = {"__doc__", "__module__", "__weakref__", "__dict__", "__weaklistoffset__", "__repr__", "__iter__", "__reduce__"}


def parameters(node):
    a = node.args
    rows = [(x.arg, "positional only") for x in a.posonlyargs] + [(x.arg, "either") for x in a.args] + [(x.arg, "keyword") for x in a.kwonlyargs]
    defaults = [False] * (len(a.posonlyargs) + len(a.args) - len(a.defaults)) + [True] * len(a.defaults) + [d is not None for d in a.kw_defaults]
    return [(n, k, d) for (n, k), d in zip(rows, defaults, strict=True) if n not in ("self", "cls")]


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "either",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
}


def built(f):
    ps = inspect.signature(f).parameters.values()
    return [(p.name, KINDS[p.kind], p.default is not p.empty) for p in ps if p.name not in ("self", "cls")]


def test_every_function_of_the_stub_is_built_and_every_built_one_is_in_the_stub():
    there = {n for n, v in vars(_core).items() if callable(v) and n != "Tensor" and not n.startswith("__")}
    assert there == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_what_the_stub_says(name):
    try:
        now = built(getattr(_core, name))
    except ValueError:
        assert name.startswith("_"), "a public function without a signature"
        return
    said = parameters(FUNCTIONS[name])
    if name.startswith("_"):  # without a docstring Python makes names up
        assert [(k, d) for _, k, d in now] == [(k, d) for _, k, d in said]
    else:
        assert now == said


def test_every_member_of_the_stub_is_built_and_every_built_one_is_in_the_stub():
    there = set(vars(g.Tensor)) - PLAIN - SLOTS
    said = (set(METHODS) | ATTRIBUTES) - PLAIN - SLOTS
    assert there == said, there ^ said


@pytest.mark.parametrize("name", sorted(set(METHODS) - SLOTS))
def test_methods_take_what_the_stub_says(name):
    node = METHODS[name]
    member = inspect.getattr_static(g.Tensor, name)
    is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
    assert is_property == (not callable(member)) or isinstance(member, property) == is_property
    if is_property:
        assert inspect.isdatadescriptor(member)
        return
    try:
        now = built(member)
    except ValueError:
        assert name in ("__enter__", "__exit__")
        return
    # Names of positional-only parameters tell callers nothing.
    assert [(k, d) for _, k, d in now] == [(k, d) for _, k, d in parameters(node)]
    assert [n for n, k, _ in now if k != "positional only"] == [n for n, k, _ in parameters(node) if k != "positional only"]


def test_iteration_is_in_the_stub():
    assert "__iter__" in METHODS


def test_all_names_what_is_public():
    public = {n for n, v in vars(g).items() if not n.startswith("_") and not isinstance(v, g.DType) and not inspect.ismodule(v)}
    public -= {"annotations", "TYPE_CHECKING", "NAMES"}
    assert public == set(g.__all__), public ^ set(g.__all__)
    for name in g.__all__:
        assert getattr(g, name) is not None


def test_the_package_says_that_it_is_typed():
    assert (Path(g.__file__).parent / "py.typed").exists()


def test_answers_of_private_functions_are_what_the_stub_says():
    assert g._core._go_state() in ("not loaded", "loaded", "lost by fork")
    info = g._core._go_info()
    said = ast.unparse(FUNCTIONS["_go_info"].returns)
    assert isinstance(info, dict) == said.startswith("dict"), (type(info), said)
