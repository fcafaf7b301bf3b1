"""Runs under callgrind, started by benchmarks.instructions: `counted.py FOLDER-OF-DLFERRY PROBE FLOOR`. NumPy alone, no framework."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import repeat
from typing import Any

LOOPS = 1000


def load(name: str, path: str) -> Any:
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def operations(dlferry: Any, numpy: Any, floor: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name to statement and its names. The floor's tensors stand for those of a framework with an exchange table."""
    x = dlferry.zeros((3, 4))
    a, f = numpy.zeros((3, 4), "float32"), floor.empty((3, 4))
    v, take = (1, 3), dlferry.from_dlpack
    return {
        "loop": ("pass", {}),
        "from_dlpack(ndarray)": ("take(a)", {"take": take, "a": a}),
        "from_dlpack(dlferry)": ("take(x)", {"take": take, "x": x}),
        "from_dlpack(exchange table)": ("take(f)", {"take": take, "f": f}),
        "from_dlpack(capsule)": ("take(x.__dlpack__(max_version=v))", {"take": take, "x": x, "v": v}),
        "convert(dlferry, exchange table)": ("to(x, kind)", {"to": dlferry.convert, "x": x, "kind": type(f)}),
        "convert(dlferry, ndarray)": ("to(x, kind)", {"to": dlferry.convert, "x": x, "kind": numpy.ndarray}),
        "__dlpack__": ("x.__dlpack__(max_version=v)", {"x": x, "v": v}),
        "np.from_dlpack(dlferry)": ("take(x)", {"take": numpy.from_dlpack, "x": x}),
        "table: view": ("view(x)", {"view": floor.view, "x": x}),
        "table: managed tensor": ("take(x)", {"take": floor.from_dlpack, "x": x}),
        "empty": ("make(shape)", {"make": dlferry.empty, "shape": (3, 4)}),
        "memoryview": ("look(x)", {"look": memoryview, "x": x}),
        "shape": ("x.shape", {"x": x}),
        "dtype": ("x.dtype", {"x": x}),
        "x.T": ("x.T", {"x": x}),
        "x[1]": ("x[1]", {"x": x}),
    }


def main(package: str, probe_path: str, floor_path: str) -> None:
    sys.path.insert(0, package)
    import numpy

    import dlferry

    probe, floor = load("probe", probe_path), load("floor", floor_path)
    loops: dict[str, Callable[[Any], None]] = {}
    for name, (code, names) in operations(dlferry, numpy, floor).items():
        made: dict[str, Any] = dict(names)
        parameters = "".join(f", {n}={n}" for n in names)
        exec(f"def loop(turns{parameters}):\n    for _ in turns:\n        {code}\n", made)
        loops[name] = made["loop"]
        loops[name](repeat(None, 300))  # pools filled, types known, bytecode specialised
    gc.disable()
    if not probe.start():
        raise SystemExit("not under valgrind")
    for name, loop in loops.items():
        turns = repeat(None, LOOPS)
        probe.begin()
        loop(turns)
        probe.end(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
