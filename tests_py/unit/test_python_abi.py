"""pyext/shim/python_abi.h against the headers of the running Python: every declaration, constant and struct.

The header is read from its source, so that a new line in it is covered without a change here.
"""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from support.capability import compiler

HEADER = Path(__file__).resolve().parents[2] / "pyext" / "shim" / "python_abi.h"
INCLUDE = Path(sysconfig.get_paths()["include"])
pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler (gcc, cc or clang), none on PATH"),
    pytest.mark.skipif(not (INCLUDE / "Python.h").exists(), reason="needs the headers of this Python, not installed"),
    pytest.mark.skipif(not HEADER.exists(), reason="needs the source tree, and the tests run without it"),
]


def text():
    return HEADER.read_text()


def declarations():
    return re.findall(r"^DLF_PY (.*;)$", text(), re.M)


def constants():
    names = re.findall(r"^#define ((?:METH|Py_TPFLAGS|Py_mod|Py_bf|Py_tp|Py_sq|Py_nb|Py_mp|Py_am|PyBUF)_\w+) ", text(), re.M)
    assert len(names) > 20
    return names


def structs():
    found = re.findall(r"typedef struct(?: \w+)? \{(.*?)\} (\w+);", text(), re.S)
    assert len(found) >= 10
    fields = {}
    for body, name in found:
        fields[name] = [re.search(r"\(\*(\w+)\)|(\w+)$", line.strip()).group(0).strip("(*)") for line in body.split(";") if line.strip()]
    return fields


def compile_c(folder, source, *flags, name="t"):
    path = folder / f"{name}.c"
    path.write_text(source)
    return subprocess.run([compiler(), "-std=gnu11", f"-I{INCLUDE}", *flags, str(path)], capture_output=True, text=True, check=False, cwd=folder)


LIMITED = "#define Py_LIMITED_API 0x030b0000\n#include <Python.h>\n"


def test_every_declaration_is_python_own(tmp_path):
    rows = declarations()
    assert len(rows) > 80
    names = [re.search(r"(\w+)(?:\(| *;$)", d.replace("(*)", "")).group(1) for d in rows]
    source = LIMITED + "".join(f"#undef {n}\nextern {d}\n" for n, d in zip(names, rows, strict=True))  # some are macros over the function
    done = compile_c(tmp_path, source, "-fsyntax-only", "-Werror", "-Wno-redundant-decls")
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_wrong_declaration_would_be_noticed(tmp_path):
    for wrong in ("int PyErr_Occurred(void);", "long PyObject_IsTrue(PyObject *);", "PyObject *PyTuple_GetItem(PyObject *, int);"):
        assert compile_c(tmp_path, LIMITED + f"extern {wrong}\n", "-fsyntax-only").returncode != 0


def test_every_declared_function_is_in_the_stable_abi(tmp_path):
    # With the limited API the header hides everything else: taking the address needs a declaration of Python's.
    names = [re.search(r"(\w+)(?:\(| *;$)", d.replace("(*)", "")).group(1) for d in declarations()]
    hidden = {"_Py_NoneStruct", "_Py_EllipsisObject", "_Py_Dealloc"}  # used by Python's own macros
    uses = "".join(f"    (void)&{n};\n" for n in names if n not in hidden)
    done = compile_c(tmp_path, LIMITED + f"void f(void);\nvoid f(void)\n{{\n{uses}}}\n", "-fsyntax-only", "-Werror=implicit-function-declaration")
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_constant_has_pythons_value(tmp_path):
    ours = "#include <stdio.h>\n" + f'#include "{HEADER}"\n'
    theirs = "#include <Python.h>\n#include <structmember.h>\n"
    rows = "".join(f'    printf("%s %lld\\n", "{n}", (long long)({n}));\n' for n in constants())
    values = []
    for name, include in (("ours", ours), ("theirs", theirs)):
        done = compile_c(
            tmp_path, f"{include}int main(void)\n{{\n{rows}    return 0;\n}}\n", "-o", name, "-w", "-Wl,--unresolved-symbols=ignore-all", name=name
        )
        assert done.returncode == 0, done.stderr[-3000:]
        values.append(subprocess.run([str(tmp_path / name)], capture_output=True, text=True, check=True).stdout)
    assert values[0] == values[1]


def test_constants_with_names_of_newer_pythons_have_the_old_values(tmp_path):
    for new, old in (("Py_READONLY_MEMBER", "READONLY"), ("Py_SSIZET_MEMBER", "T_PYSSIZET")):
        value = re.search(rf"#define {new} (\d+)", text()).group(1)
        source = f'#include <Python.h>\n#include <structmember.h>\n_Static_assert({old} == {value}, "");\n'
        assert compile_c(tmp_path, source, "-fsyntax-only").returncode == 0
    for flag, theirs in (
        ("LONG", "LONG_SUBCLASS"),
        ("TUPLE", "TUPLE_SUBCLASS"),
        ("UNICODE", "UNICODE_SUBCLASS"),
        ("TYPE", "TYPE_SUBCLASS"),
        ("HEAPTYPE", "HEAPTYPE"),
        ("DISALLOW_INSTANTIATION", "DISALLOW_INSTANTIATION"),
    ):
        value = re.search(rf"#define PyType_FLAG_{flag} \((.*)\)", text()).group(1)
        source = f'#include <Python.h>\n_Static_assert(Py_TPFLAGS_{theirs} == ({value}), "");\n'
        assert compile_c(tmp_path, source, "-fsyntax-only").returncode == 0, flag
    covered = {"LONG", "TUPLE", "UNICODE", "TYPE", "HEAPTYPE", "LIST", "DISALLOW_INSTANTIATION"}
    assert set(re.findall(r"#define PyType_FLAG_(\w+)", text())) == covered, "a new flag needs a row here"


def test_every_struct_has_pythons_layout(tmp_path):
    fields = structs()
    rows = []
    for name, members in fields.items():
        rows.append(f'    printf("{name} %zu %zu\\n", sizeof({name}), _Alignof({name}));\n')
        if name == "PyObject":
            members = ["ob_type"]  # from 3.12 on the count has more names
        rows += [f'    printf("{name}.{m} %zu %zu\\n", offsetof({name}, {m}), sizeof((({name} *)0)->{m}));\n' for m in members]
    body = f"int main(void)\n{{\n{''.join(rows)}    return 0;\n}}\n"
    values = []
    for name, include in (("ours", f'#include "{HEADER}"\n'), ("theirs", "#include <stddef.h>\n#include <Python.h>\n#include <structmember.h>\n")):
        done = compile_c(tmp_path, "#include <stdio.h>\n" + include + body, "-o", name, "-w", "-Wl,--unresolved-symbols=ignore-all", name=name)
        assert done.returncode == 0, done.stderr[-3000:]
        values.append(subprocess.run([str(tmp_path / name)], capture_output=True, text=True, check=True).stdout)
    assert values[0] == values[1] and values[0].count("\n") > 50


def test_function_pointer_types_are_pythons(tmp_path):
    rows = re.findall(r"^typedef (.*\(\*\w+\)\(.*\));$", text(), re.M)
    assert len(rows) >= 4
    source = "#include <Python.h>\n" + "".join(f"typedef {r};\n" for r in rows)
    done = compile_c(tmp_path, source, "-fsyntax-only", "-Werror")
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_module_head_initialiser_is_pythons(tmp_path):
    value = re.search(r"#define PyModuleDef_HEAD_INIT (.*)", text()).group(1)
    source = (
        "#include <Python.h>\n#include <string.h>\n"
        f"static PyModuleDef_Base ours = {value}, theirs = PyModuleDef_HEAD_INIT;\n"
        "int main(void)\n{\n    return ours.m_init != theirs.m_init || ours.m_index != theirs.m_index || ours.m_copy != theirs.m_copy;\n}\n"
    )
    done = compile_c(tmp_path, source, "-o", "head", "-w")
    assert done.returncode == 0, done.stderr[-3000:]
    assert subprocess.run([str(tmp_path / "head")], check=False).returncode == 0
