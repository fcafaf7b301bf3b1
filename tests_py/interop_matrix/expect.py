"""What must come out, for every library and direction: the outcome of most cases first, then `outcome: cases` of the others.

Cases may be patterns. `outcome @package>=version: cases` holds for those versions of the package only, and the first that fits counts. The
outcomes are explained in child.py. A library's own exception stands for itself: when it changes, or what failed begins to work, the run fails,
and this table is to be brought up to date.
"""

from __future__ import annotations

import fnmatch
import operator
import re

EXPECT: dict[str, dict[str, str]] = {}

_CONDITION = re.compile(r"@([\w-]+)(>=|<)([\d.]+)$")
_COMPARE = {">=": operator.ge, "<": operator.lt}


def number(version):
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def outcome(library, direction, case, versions):
    """What EXPECT says for a cell."""
    first, *rest = (part.strip() for part in EXPECT.get(library, {}).get(direction, "no entry").split("|"))
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
    return " | ".join(parts)
