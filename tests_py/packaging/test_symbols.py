"""The check of a finished wheel finds what must not be in one."""

from __future__ import annotations

from pathlib import Path

from build_backend import elf
from tools import check_symbols


def library(name: str, exported: set[str], undefined: set[str] | None = None) -> elf.Library:
    return elf.Library(Path(name), "x86_64", ("libc.so.6",), frozenset(exported), frozenset(undefined or ()))


def test_the_stable_abi_of_the_floor() -> None:
    names = check_symbols.stable_abi()
    assert {"PyObject_GetBuffer", "PyType_GetName", "Py_Version", "PyCapsule_New", "_Py_NoneStruct", "_Py_Dealloc"} <= names
    assert not {"PyObject_Vectorcall", "PyErr_GetRaisedException", "PyGILState_Check", "PyUnicode_AsUTF8"} & names


def test_core() -> None:
    assert list(check_symbols.problems_of_core(library("_core.abi3.so", {"PyInit__core"}, {"PyCapsule_New", "malloc"}))) == []
    found = list(check_symbols.problems_of_core(library("_core.abi3.so", {"PyInit__core", "helper"}, {"PyObject_Vectorcall", "_PyLong_New"})))
    assert len(found) == 3
    assert "exports PyInit__core, helper" in found[0]
    assert "PyObject_Vectorcall, which the stable ABI of 3.11 does not have" in found[1]


def test_golib() -> None:
    assert list(check_symbols.problems_of_golib(library("libdlferry.so", {"dlf_go_copy"}, {"malloc"}))) == []
    assert "crosscall2" in next(check_symbols.problems_of_golib(library("libdlferry.so", {"dlf_go_copy", "crosscall2"})))
    assert "exports nothing" in next(check_symbols.problems_of_golib(library("libdlferry.so", set())))
    assert "no symbol of Python" in next(check_symbols.problems_of_golib(library("libdlferry.so", {"dlf_go_x"}, {"Py_DecRef"})))
