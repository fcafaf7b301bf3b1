"""What `dlferry build` makes of a package with a function for each row of the tables in docs/dev/functions.md, called from Python."""

import ast
import base64
import csv
import hashlib
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def dedent(code):
    return textwrap.dedent(code).strip()


CALLS = {
    "not_": ("t.not_(True), t.not_(False)", "(False, True)"),
    "add_int8": ("t.add_int8(100, 27), t.add_int8(a=-128, b=0)", "(127, -128)"),
    "add_int16": ("t.add_int16(-32768, 1)", "-32767"),
    "add_int32": ("t.add_int32(2**31 - 1, -1)", "2147483646"),
    "add_int64": ("t.add_int64(-(2**63), 1)", "-9223372036854775807"),
    "add_uint8": ("t.add_uint8(200, 55)", "255"),
    "add_uint16": ("t.add_uint16(65535, 0)", "65535"),
    "add_uint32": ("t.add_uint32(2**32 - 1, 0)", "4294967295"),
    "add_uint64": ("t.add_uint64(2**64 - 2, 1)", "18446744073709551615"),
    "add_uint": ("t.add_uint(2**63, 5)", "9223372036854775813"),
    "single": ("t.single(0.1) == float(np.float32(0.1)), t.single(3)", "(True, 3.0)"),
    "conjugate": ("t.conjugate(), t.conjugate(2j), t.conjugate(3)", "((1+2j), -2j, (3-0j))"),
    "single64": ("t.single64(0.5 - 0.25j)", "(0.5-0.25j)"),
    "upper": ("t.upper('ab\\0ö'), t.upper('x', repeat=0), t.upper('x', '-', 2)", r"""('AB\x00Ö"!\\ö', 'X', 'X--')"""),
    "reversed": ("t.reversed(b'a\\0b'), t.reversed(bytearray(b'xyz')), t.reversed(b'')", r"(b'b\x00a', b'zyx', b'')"),
    "joined": ("t.joined(['ä', '', 'c d'], '+'), t.joined((), '')", "(('ä++c d', ['ä', 'c', 'd']), ('', []))"),
    "sum_ints": ("t.sum_ints([1, -2, 2**40]), t.sum_ints(())", "(1099511627775, 0)"),
    "doubled": ("t.doubled([1, 0.25]), t.doubled([])", "([2.0, 0.5], [])"),
    "next_mode": ("t.next_mode(-3, 21)", "(-2, 42)"),
    "lambda_": ("t.lambda_('c'), t.lambda_('c', name=1, bins=2)", "(('c', 256, -0.5, True, 120, 1000000000), ('c', 2, -0.5, True, 1, 1000000000))"),
    "unnamed": ("t.unnamed('', arg1='', kernel_size=7)", "7"),
    "int": ("t.int('four')", "4"),
    "eight": ("t.eight()", "(1, 2, 3, 4, 5, 6, 7, 8)"),
    "sixteen": ("t.sixteen(*range(16))", "120"),
    "nothings": ("t.nothings()", "None"),
    "sum": ("t.sum(np.arange(12.0).reshape(3, 4)[:, ::2]), t.sum(np.empty(0))", "(30.0, 0.0)"),
    "fill": ("t.fill(x := np.zeros((2, 2), np.int32)[:, 1], -7), x.tolist()", "(None, [-7, -7])"),
    "what": ("t.what(np.zeros((2, 3), np.int16)), t.what(np.broadcast_to(np.float64(1), 2))", "('int16 [2 3] false', 'float64 [2] true')"),
    "lengths": ("t.lengths([np.zeros(3, np.uint8), np.zeros((2, 2), np.uint8)]), t.lengths(())", "([3, 4], [])"),
    "keep": ("t.keep(np.arange(3)), t.keep(np.arange(2)).tolist()", "(None, [0, 1, 2])"),
    "arange": ("np.from_dlpack(t.arange(3)).tolist(), np.from_dlpack(t.arange(0)).tolist()", "([0.0, 1.0, 2.0], [])"),
    "twice": ("[x.tolist() for x in t.twice(np.ones(2, np.float32))]", "[[1.0, 1.0], [1.0, 1.0]]"),
    "nothing": ("t.nothing(np.zeros(1))", "None"),
    "halves": ("t.halves(np.array([1, 3], np.float16)).tolist()", "[0.5, 1.5]"),
    "truths": ("t.truths(np.array([1, 1, 0], bool), np.array([1, 0, 1], bool)).tolist()", "[True, False, False]"),
    "total": ("t.total(np.ones(3, np.float32), 0.5), t.total(np.full(2, 0.1), start=0)", "(3.5, 0.2)"),
    "clip": ("[(x.dtype.name, x.tolist(), n) for x, n in [t.clip([np.arange(5, dtype=d), np.array([120], d)], 2) for d in (np.int8, np.int64)]]",
             "[('int8', [2, 2, 2, 3, 4, 100], 6), ('int64', [2, 2, 2, 3, 4, 100], 6)]"),
    "copy": ("[(t.copy(y := np.zeros(3, d), x := np.array([1, 0, 1]).astype(d)), (x == y).all().item())[1] for d in "
             "'?BHILhifFDe']", "[True, True, True, True, True, True, True, True, True, True, True]"),
    "waits": ("t.waits()", "None"),
    "alike": ("t.alike(like=np.ones(1, np.float32)).tolist()", "[1.0]"),
}  # fmt: skip


def test_each_function_gives_what_go_computes(call):
    code = "\n".join(f"print({name!r}, repr(({expression})), sep='=')" for name, (expression, _) in CALLS.items())
    got = dict(line.split("=", 1) for line in call(code).splitlines())
    assert got == {name: want for name, (_, want) in CALLS.items()}
    assert len(CALLS) >= 30


def test_every_function_is_called_here(torture):
    source = ast.parse((torture / "torture" / "__init__.py").read_text())
    names = next(ast.literal_eval(s.value) for s in source.body if isinstance(s, ast.Assign) and s.targets[0].id == "__all__")
    assert sorted(names) == sorted([*CALLS, "fails", "panics"])


def test_errors_and_panics_of_go_are_exceptions(call):
    assert call("""
for what in (lambda: t.fails("no such thing"), lambda: t.arange(-1), lambda: t.panics()):
    try:
        what()
    except Exception as e:
        print(type(e).__name__, str(e).splitlines()[0], sep=": ")
print(t.int("still alive"))
""").splitlines() == ["ValueError: fails: no such thing", "ValueError: arange: n is negative", "RuntimeError: panics: panic: on purpose", "11"]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        ("t.add_int8(128, 0)", "ValueError", ["add_int8", "a", "128", "int8"]),
        ("t.add_uint8(-1, 0)", "ValueError", ["add_uint8", "a", "-1", "uint8"]),
        ("t.clip([np.arange(3, dtype=np.int8)], 0, 300)", "ValueError", ["clip", "high", "300", "int8"]),
        ("t.clip([np.arange(3, dtype=np.int8), np.arange(3)], 0)", "TypeError", ["clip", "list", "int64", "int8"]),
        ("t.sum(np.zeros(2, np.float32))", "TypeError", ["sum", "x", "float32", "float64"]),
        ("t.total(np.zeros(2, int), 0)", "TypeError", ["total", "x", "int64", "float32 or float64"]),
        ("t.copy(np.zeros(2), np.zeros(2))", "TypeError", ["copy", "to", "float64"]),
        ("t.fill(np.broadcast_to(np.int32(1), 3), 1)", "BufferError", ["fill", "x", "read-only"]),
        ("t.upper(b'x')", "TypeError", ["upper", "s", "bytes", "str"]),
        ("t.upper()", "TypeError", ["upper", "s"]),
        ("t.upper('x', tails='')", "TypeError", ["upper", "tails"]),
        ("t.sixteen(1)", "TypeError", ["sixteen"]),
        ("t.not_(1)", "TypeError", ["not_", "b", "int", "bool"]),
        ("t.joined('ab', '')", "TypeError", ["joined", "words", "list or tuple"]),
        ("t.sum([1.0])", "TypeError", ["sum", "x"]),
    ],
)
def test_wrong_arguments_are_refused_before_go_sees_them(call, expression, error, words):
    name, _, text = call(f"try:\n    {expression}\nexcept Exception as e:\n    print(type(e).__name__, e)").partition(" ")
    assert name == error
    assert all(word in text for word in words), text


def test_signatures_and_docstrings_are_those_of_go(call):
    assert call("""
import inspect
print(t.__version__, t.__doc__.splitlines()[-1])
print(inspect.signature(t.lambda_), t.lambda_.__doc__, t.lambda_.__module__)
print(inspect.signature(t.upper), inspect.signature(t.conjugate))
""").splitlines() == [
        r'1.2.3 Its "doc" has quotes, a \ and an ö.',
        "(class_, bins=256, from_=-0.5, flag=True, name=120, wait=1000000000) Lambda has keywords and defaults of all plain kinds. torture",
        r"""(s, tail='"!\\ö', repeat=1) (z=(1-2j))""",
    ]  # fmt: skip


def test_ctrl_c_cancels_the_context(call):
    assert "interrupted" in call("""
import signal
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    t.waits(60)
except KeyboardInterrupt:
    print("interrupted")
""")  # fmt: skip


def test_the_stub_passes_mypy_and_both_files_pass_ruff(torture, tmp_path):
    pytest.importorskip("mypy")  # `make lint` installs them
    pytest.importorskip("ruff")
    user = tmp_path / "user.py"
    user.write_text(
        dedent("""
        import numpy as np
        import torture as t

        reveal_type(t.lambda_("x"))
        t.copy(np.zeros(2), from_=np.zeros(2))
        t.halves(np.zeros(2), like="numpy")
        t.lengths([np.zeros(2)])
        t.doubled([1, 2])
        t.reversed(memoryview(b""))
        t.sum(3)
        t.upper("x", repeat="2")
        """)
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", tmp_path / "cache", user]
    done = subprocess.run(mypy, env={"MYPYPATH": str(torture)}, capture_output=True, text=True, check=False)
    errors = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, done.stdout + done.stderr
    assert '"sum" has incompatible type "int"; expected "SupportsDLPack"' in errors[0]
    assert '"upper" has incompatible type "str"; expected "int"' in errors[1]
    files = [torture / "torture" / name for name in ("__init__.py", "__init__.pyi")]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *files], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", files[1]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


# --- the wheel ---


def test_the_same_sources_give_the_same_wheel(build, tmp_path):
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name / "small"
        folder.mkdir(parents=True)
        (folder / "go.mod").write_text("module example.com/small\n\ngo 1.26\n")
        (folder / "small.go").write_text("package small\n\n//dlferry:export\nfunc F() int { return 1 }\n")
        made.append(build(folder))
        assert made[-1].parent == folder / "dist"
        assert sorted(p.name for p in folder.iterdir()) == ["dist", "go.mod", "small.go"]
    assert made[0].name == made[1].name
    assert made[0].read_bytes() == made[1].read_bytes()
    assert made[0].name.startswith("small-0.1.0-cp311-abi3-manylinux_2_")


def test_record_lists_every_file_with_its_hash(torture):
    wheel = next((torture.parent / "torture" / "dist").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith("/RECORD"))
        rows = list(csv.reader(archive.read(record).decode().splitlines()))
        assert [row[0] for row in rows] == names
        for name, digest, size in rows:
            data = archive.read(name)
            if name != record:
                assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert int(size) == len(data)
    assert "torture/_dlferry/libdlferry.so" in names
    assert "torture/py.typed" in names
