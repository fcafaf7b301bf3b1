"""What must come out, for every library and direction: the outcome of most cases first, then a line `outcome: cases` for others.

Cases may be patterns. `outcome @package>=version: cases` holds for those versions of the package only, and the first that fits counts. The
outcomes are explained in child.py. A library's own exception stands for itself: when it changes, or what failed begins to work, the run fails,
and this table is to be brought up to date.
"""

from __future__ import annotations

import fnmatch
import operator
import re

# Faults of dlferry's that are known: what comes out now instead of what EXPECT says. Patterns. Remove an entry when
# `make interop` says that it is fixed.
FAULTS: dict[str, str] = {}

EXPECT: dict[str, dict[str, str]] = {
    "numpy": {
        "in": """
            share
            empty: no elements
            copy: unaligned
            share+ro: read-only
            -: bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            BufferError: bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            BufferError (hint): bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            BufferError (hint): bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
    },
    "ml_dtypes": {
        "in": """
            -
            copy: unaligned
            share: bfloat16, float8_*
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            BufferError: float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "convert": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            BufferError (hint): float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "no copy": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            BufferError (hint): float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
    },
    "torch": {
        "in": """
            share
            -: negative stride, unaligned, read-only, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz
            empty: no elements
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            RuntimeError: negative stride
            empty: no elements
            -: unaligned
            share+rw: read-only
            BufferError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            copy: negative stride, read-only
            empty: no elements
            -: unaligned
            BufferError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            refused: negative stride, read-only
            BufferError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz
            empty: no elements
            -: unaligned
            freed: 200 of 1 MiB
        """,
    },
    "jax": {
        "in": """
            share+ro
            -: strided, transposed, negative stride, stride 0, view at an offset, unaligned, read-only, int64, uint64, float64, complex128, over 2^31 elements, float4_*
            empty+ro: no elements
            freed: 200 of 1 MiB
        """,
        "own": """
            share+ro
            JaxRuntimeError: strided, negative stride, stride 0, float4_*
            empty+ro: no elements
            copy+ro: view at an offset
            -: unaligned
            int32 instead: int64
            uint32 instead: uint64
            float32 instead: float64
            complex64 instead: complex128
            freed: 200 of 1 MiB
        """,
        "convert": """
            share+ro
            copy+ro: strided, negative stride, stride 0, view at an offset
            empty+ro: no elements
            -: unaligned
            refused: int64, uint64, float64, complex128
            JaxRuntimeError: float4_*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share+ro
            refused: strided, negative stride, stride 0, view at an offset, int64, uint64, float64, complex128
            empty+ro: no elements
            -: unaligned
            JaxRuntimeError: float4_*
            freed: 200 of 1 MiB
        """,
    },
    "jax x64": {
        "in": """
            -
            share+ro: int64, uint64, float64, complex128
        """,
        "own": """
            share+ro
            JaxRuntimeError: strided, negative stride, stride 0, float4_*
            empty+ro: no elements
            copy+ro: view at an offset
            -: unaligned
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "convert": """
            share+ro
            copy+ro: strided, negative stride, stride 0, view at an offset
            empty+ro: no elements
            -: unaligned
            JaxRuntimeError: float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "no copy": """
            share+ro
            refused: strided, negative stride, stride 0, view at an offset
            empty+ro: no elements
            -: unaligned
            JaxRuntimeError: float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
    },
    "tensorflow": {
        "in": """
            share
            -: strided, transposed, negative stride, stride 0, unaligned, read-only, float8_e3m4, float8_e4m3, float8_e8m0fnu, over 2^31 elements, float4_*
            empty: no elements
            InvalidArgumentError: float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            InvalidArgumentError: strided, transposed, negative stride, stride 0, float8_*, float4_*
            empty: no elements
            -: unaligned
            BufferError: read-only
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            copy: strided, transposed, negative stride, stride 0, read-only
            empty: no elements
            -: unaligned
            InvalidArgumentError: float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            refused: strided, transposed, negative stride, stride 0, read-only
            empty: no elements
            -: unaligned
            InvalidArgumentError: float8_*, float4_*
            freed: 200 of 1 MiB
        """,
    },
    "paddle": {
        "in": """
            share
            -: negative stride, unaligned, read-only, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, over 2^31 elements, float4_*, uint[136]*
            empty: no elements
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            WRONG values: negative stride
            empty: no elements
            -: unaligned
            share+rw: read-only
            NotImplementedError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, float4_*
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            copy: negative stride, read-only
            empty: no elements
            -: unaligned
            NotImplementedError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, float4_*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            refused: negative stride, read-only
            NotImplementedError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu, float4_*
            empty: no elements
            -: unaligned
            freed: 200 of 1 MiB
        """,
    },
    "tvm_ffi": {
        "in": """
            share
            empty: no elements
            -: unaligned, read-only, bfloat16, over 2^31 elements, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            share+rw: read-only
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            empty: no elements
            -: unaligned
            copy: read-only
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            empty: no elements
            -: unaligned
            refused: read-only
            freed: 200 of 1 MiB
        """,
    },
    "tvm_ffi call": {
        "in": """
            -
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            share+rw: read-only
            freed: 200 of 1 MiB
        """,
    },
    "nanobind": {
        "in": """
            share
            empty: no elements
            -: unaligned, over 2^31 elements
            share+ro: read-only
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            TypeError: read-only
            freed: 200 of 1 MiB
        """,
    },
    "nanobind ro": {
        "in": """
            -
        """,
        "own": """
            share+ro
            empty+ro: no elements
            -: unaligned
            freed: 200 of 1 MiB
        """,
    },
    "pyarrow.Tensor": {
        "in": """
            share
            -: negative stride, unaligned, bool, bfloat16, over 2^31 elements, float8_*, float4_*, complex*
            empty: no elements
            share+ro: read-only
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            ArrowInvalid: negative stride, bool, bfloat16, float8_*, complex*
            empty+ro: no elements
            -: unaligned
            share+ro: read-only
            ArrowTypeError: float4_*
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            copy: negative stride
            empty+ro: no elements
            -: unaligned
            share+ro: read-only
            ArrowInvalid: bool, bfloat16, float8_*, complex*
            ArrowTypeError: float4_*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            refused: negative stride
            empty+ro: no elements
            -: unaligned
            share+ro: read-only
            ArrowInvalid: bool, bfloat16, float8_*, complex*
            ArrowTypeError: float4_*
            freed: 200 of 1 MiB
        """,
    },
    "pyarrow.Array": {
        "in": """
            -
            share+ro: contiguous, view at an offset, int8, int16, int32, int64, uint8, float16, float64, uint[136]*
            empty+ro: no elements
            ArrowTypeError: bool
            freed: 200 of 1 MiB
        """,
        "own": """
            ArrowInvalid
            share+ro: contiguous, view at an offset, read-only, int8, int16, int32, int64, uint8, float16, float64, over 2^31 elements, uint[136]*
            empty+ro: no elements
            -: unaligned
            ArrowTypeError: float4_*
            freed: 200 of 1 MiB
        """,
        "convert": """
            share+ro
            copy+ro: strided, negative stride, stride 0
            empty+ro: no elements
            -: unaligned
            ArrowInvalid: bool, bfloat16, float8_*, complex*
            ArrowTypeError: float4_*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share+ro
            refused: strided, negative stride, stride 0
            empty+ro: no elements
            -: unaligned
            ArrowInvalid: bool, bfloat16, float8_*, complex*
            ArrowTypeError: float4_*
            freed: 200 of 1 MiB
        """,
    },
    "onnxruntime": {
        "in": """
            share
            -: strided, transposed, negative stride, stride 0, view at an offset, unaligned, read-only, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e8m0fnu, over 2^31 elements, float4_*, complex*
            empty: no elements
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            RuntimeError: strided, transposed, negative stride, stride 0, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float4_*, complex*
            empty: no elements
            -: unaligned
            BufferError: read-only
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            copy: strided, transposed, negative stride, stride 0, read-only
            empty: no elements
            -: unaligned
            RuntimeError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float4_*, complex*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            refused: strided, transposed, negative stride, stride 0, read-only
            empty: no elements
            -: unaligned
            RuntimeError: float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float4_*, complex*
            freed: 200 of 1 MiB
        """,
    },
    "warp": {
        "in": """
            -
            share: contiguous, strided, transposed, view at an offset, bool, int8, int16, int32, int64, uint8, float16, float64, bfloat16, uint[136]*
            empty: no elements
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            IndexError: no axes
            empty: no elements
            -: unaligned
            BufferError: read-only
            RuntimeError: float8_*, float4_*, complex*
            freed: 200 of 1 MiB
            ValueError: over 2^31 elements
        """,
        "convert": """
            share
            IndexError: no axes
            empty: no elements
            -: unaligned
            copy: read-only
            RuntimeError: float8_*, float4_*, complex*
            freed: 200 of 1 MiB
            ValueError: over 2^31 elements
        """,
        "no copy": """
            share
            IndexError: no axes
            empty: no elements
            -: unaligned
            refused: read-only
            RuntimeError: float8_*, float4_*, complex*
            freed: 200 of 1 MiB
            ValueError: over 2^31 elements
        """,
    },
    "mlx": {
        "in": """
            share
            empty: no elements
            -: unaligned, read-only, float64, complex128, over 2^31 elements, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "own": """
            copy
            ValueError: negative stride, float8_*, float4_*
            empty: no elements
            -: unaligned
            float32 instead: float64
            complex64 instead: complex128
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "convert": """
            copy
            empty: no elements
            -: unaligned
            refused: float64, complex128
            ValueError: float8_*, float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "no copy": """
            refused
            -: unaligned
            skip: over 2^31 elements
        """,
    },
    "array_api_strict": {
        "in": """
            share
            empty: no elements
            copy: unaligned
            share+ro: read-only
            -: float16, bfloat16, over 2^31 elements, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            TypeError: float16
            BufferError: bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "convert": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            TypeError: float16
            BufferError: bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "no copy": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            TypeError: float16
            BufferError: bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
    },
    "dpnp": {
        "in": """
            carried
            carried+ro: no axes
            -: unaligned, read-only, bfloat16, over 2^31 elements, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            BufferError: bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "convert": """
            copy
            copy+ro: no axes
            empty: no elements
            -: unaligned
            BufferError (hint): bfloat16, float8_*, float4_*
            freed: 200 of 1 MiB
            skip: over 2^31 elements
        """,
        "no copy": """
            refused
            -: unaligned
            skip: over 2^31 elements
        """,
    },
    "cuda.core": {
        "in": """
            share
            empty: no elements
            copy: unaligned
            share+ro: read-only
            -: bfloat16, over 2^31 elements, float8_*, float4_*
            freed: 200 of 1 MiB
        """,
        "own": """
            share
            empty: no elements
            -: unaligned
            share+ro: read-only
            TypeError: float8_*
            NotImplementedError: float4_*
            freed: 200 of 1 MiB
        """,
    },
}


def fault(library, direction, case):
    """The pattern and the outcome of a known fault that covers a cell, or None."""
    cell = f"{library}: {direction}/{case}"
    return next(((pattern, now) for pattern, now in FAULTS.items() if fnmatch.fnmatchcase(cell, pattern)), None)


_CONDITION = re.compile(r"@([\w-]+)(>=|<)([\d.]+)$")
_COMPARE = {">=": operator.ge, "<": operator.lt}


def number(version):
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def outcome(library, direction, case, versions):
    """What EXPECT says for a cell."""
    first, *rest = (part.strip() for part in EXPECT.get(library, {}).get(direction, "no entry").strip().splitlines())
    for part in rest:
        word, _, patterns = part.rpartition(": ")
        condition = _CONDITION.search(word)
        if condition:
            package, compare, version = condition.groups()
            if not _COMPARE[compare](number(versions.get(package, "0")), number(version)):
                continue
            word = word[: condition.start()].strip()
        if any(fnmatch.fnmatchcase(case, pattern.strip()) for pattern in patterns.split(",")):
            return word
    return first


# Patterns that compress() may use for groups of cases.
_GROUPS = (
    ("float8_*", "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"),
    ("float4_*", "float4_e2m1fn_x2"),
    ("complex*", "complex64 complex128"),
    ("uint[136]*", "uint16 uint32 uint64"),
)


def compress(found):
    """The text for `{outcome: [cases]}`."""
    first = max(found, key=lambda word: len(found[word]))
    parts = [first]
    for word, names in found.items():
        if word == first:
            continue
        for pattern, members in _GROUPS:
            if set(members.split()) <= set(names):
                names = [n for n in names if n not in members.split()] + [pattern]
        parts.append(f"{word}: {', '.join(names)}")
    return parts
