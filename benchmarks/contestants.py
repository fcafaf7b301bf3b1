"""Adds what needs a compiler to the rows of `dlferry bench`: the floor, and the peers' extensions."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks import build
from dlferry._bench_rows import Libraries, fresh, held, own, same_memory
from dlferry._bench_run import Bar, Suite


def add(suite: Suite, lib: Libraries) -> None:
    """Every contestant that builds here; the others go to the suite's list of what was left out, with the reason."""
    floor = attempt(suite, "floor", build.floor) if lib.numpy else None
    if floor:
        add_floor(suite, lib, floor)
        add_crossing(suite, floor)
    take3: dict[str, Callable[..., None]] = {}
    if lib.tvm:
        from benchmarks.peers import tvm

        function = attempt(suite, "tvm-ffi with a C++ function", tvm.take3)
        if function:
            add_tvm_calls(suite, lib, function, floor)
            take3["tvm-ffi"] = function
    for name, make in (("nanobind", build.nanobind), ("dlpark", build.dlpark)):
        peer = attempt(suite, name, make)
        if peer:
            add_peer(suite, lib, name, peer)
            take3[name] = peer.take3
    module = attempt(suite, "Go functions by dlferry build", build.gocalls)
    if module:
        add_go_calls(suite, lib, module, take3)


def attempt(suite: Suite, what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except build.Unavailable as e:
        suite.skip(what, e)
        return None


def add_floor(suite: Suite, lib: Libraries, floor: ModuleType) -> None:
    """The same operations without a check, from pools."""
    rows, np, torch = suite.rows, lib.numpy, lib.torch
    a = np.array(own().numpy())
    f = floor.from_dlpack(own())
    rows["in-numpy"].add("floor", "take(a)", same_memory(a), take=floor.from_dlpack, a=a)
    rows["in-numpy"].add("floor by __dlpack__", "take(a)", same_memory(a), take=floor.from_method, a=a)
    rows["in-own"].add("floor", "take(f)", same_memory(f), take=floor.from_dlpack, f=f)
    rows["own-numpy"].add("floor", "convert(f, to)", same_memory(f), convert=floor.convert, f=f, to=np.ndarray)
    rows["numpy-takes"].add("floor", "take(f)", same_memory(f), take=np.from_dlpack, f=f)
    rows["dlpack"].add("floor", "f.__dlpack__(max_version=v)", None, f=f, v=(1, 3))
    rows["dlpack-device"].add("floor", "f.__dlpack_device__()", None, f=f)
    rows["empty"].add("floor", "make(shape)", None, make=floor.empty, shape=(3, 4))
    if lib.tvm:
        rows["tvm-takes"].add("floor", "take(f)", same_memory(f), take=lib.tvm.from_dlpack, f=f)
    row = suite.row("calls", "calls that do nothing", note="what the rest is made of")
    row.add("METH_O", "call(x)", None, call=floor.noop, x=a)
    row.add("FASTCALL, 3 arguments", "call(x, x, x)", None, call=floor.noop_fast, x=a)
    row.add("look at an ndarray", "call(x)", None, call=floor.view, x=a)
    if torch:
        for key, make in (("in-torch", fresh), ("in-torch-held", held)):
            t = make(torch)
            rows[key].add("floor", "take(t)", same_memory(t), take=floor.from_dlpack, t=t)
            t = make(torch)
            row.add(f"look at a torch tensor, {'fresh' if make is fresh else 'held'}", "call(x)", None, call=floor.view, x=t)
        for key, make in (("torch-numpy", fresh), ("torch-numpy-held", held)):
            t = make(torch)
            rows[key].add("floor", "convert(t, to)", same_memory(t), convert=floor.convert, t=t, to=np.ndarray)
        rows["own-torch"].add("floor", "convert(f, to)", same_memory(f), convert=floor.convert, f=f, to=torch.Tensor)
        rows["numpy-torch"].add("floor", "convert(a, to)", same_memory(a), convert=floor.convert, a=a, to=torch.Tensor)
        rows["torch-takes"].add("floor", "take(f)", same_memory(f), take=torch.from_dlpack, f=f)
        if "torch-capsule" in rows:
            rows["torch-capsule"].add("floor", "take(f.__dlpack__(max_version=v))", same_memory(f), take=torch._C._from_dlpack, f=f, v=(1, 3))


def add_crossing(suite: Suite, floor: ModuleType) -> None:
    library = attempt(suite, "a call into Go", build.crossing)
    if library:
        floor.go_open(str(library))
        suite.rows["go"].add("a Go function that does nothing", "call(x)", None, call=floor.go_noop, x=None)


def add_go_calls(suite: Suite, lib: Libraries, module: ModuleType, take3: dict[str, Callable[..., None]]) -> None:
    """Functions in Go beside the peers' functions in C++ and Rust."""
    given: list[tuple[str, str, Any, Bar | None]] = [("own", "dlferry tensors", own(), Bar(1 / 1.4, "tvm-ffi", text=">= 1.4 x faster than tvm-ffi"))]
    if lib.numpy:
        given.append(("numpy", "ndarrays", lib.numpy.array(own().numpy()), Bar(1 / 3, "nanobind", text=">= 3 x faster than nanobind")))
    if lib.torch:
        given.append(("torch", "torch tensors", fresh(lib.torch), Bar(1 / 1.9, "tvm-ffi", text=">= 1.9 x faster than tvm-ffi's C++")))
    for key, title, x, bar in given:
        row = suite.row(f"go-call-{key}", f"a function given three {title}", *([bar] if bar else []))
        row.add("dlferry", "call(x, x, x)", None, call=module.take3, x=x)
        for who, function in take3.items():
            y = lib.tvm.from_dlpack(x) if key == "own" and who == "tvm-ffi" else x
            row.add(who, "call(x, x, x)", None, call=function, x=y)
    for key, _, x, _ in given:
        row = suite.row(
            f"go-new-{key}", f"a function that returns a new {'dlferry tensor' if key == 'own' else 'ndarray' if key == 'numpy' else 'torch tensor'}"
        )
        row.add("dlferry", "call(x)", None, call=module.like, x=x)
        if key == "torch":
            row.add("torch.empty_like", "call(x)", None, call=lib.torch.empty_like, x=x)
        elif key == "numpy":
            row.add("np.empty_like", "call(x)", None, call=lib.numpy.empty_like, x=x)
    row = suite.row("go-scalars", "numbers and text, in and out")
    row.add("dlferry, two floats", "call(1.5, 2.5)", None, call=module.add)
    row.add("dlferry, 64 letters", "call(x)", None, call=module.same, x="a" * 64)
    row.add("max(1.5, 2.5)", "call(1.5, 2.5)", None, call=max)


def add_tvm_calls(suite: Suite, lib: Libraries, take3: Callable[..., None], floor: ModuleType | None) -> None:
    """A C++ function of tvm-ffi with three tensors of each library."""
    x = own()
    y = lib.tvm.from_dlpack(x)
    row = suite.row(
        "tvm-call", "a C++ function of tvm-ffi, given three dlferry tensors", Bar(1.15, "tvm-ffi", text="<= 1.15 x tvm-ffi's own tensors")
    )
    row.add("dlferry", "call(x, x, x)", None, call=take3, x=x)
    row.add("tvm-ffi", "call(y, y, y)", None, call=take3, y=y)
    if floor:
        row.add("floor", "call(f, f, f)", None, call=take3, f=floor.from_dlpack(x))
    if lib.torch:
        for make in (fresh, held):
            t = make(lib.torch)
            row.add(f"torch, {make.__name__}", "call(t, t, t)", None, call=take3, t=t)
    if lib.numpy:
        row.add("numpy", "call(a, a, a)", None, call=take3, a=lib.numpy.array(x.numpy()))


def add_peer(suite: Suite, lib: Libraries, who: str, peer: ModuleType) -> None:
    """An extension of our own writing: take, take3, make."""
    rows, x, made = suite.rows, own(), peer.make()
    check = same_memory(made)
    rows["in-own"].add(who, "take(x)", same_memory(x), take=peer.take, x=x)
    rows["empty"].add(who, "make()", None, make=peer.make)
    rows["dlpack"].add(who, "x.__dlpack__(max_version=v)", None, x=made, v=(1, 3))
    row = suite.row(f"{who}-call", f"a function of {who}, given three tensors", note="no dlferry code but its export")
    row.add("dlferry", "call(x, x, x)", None, call=peer.take3, x=x)
    if lib.numpy:
        a = lib.numpy.array(x.numpy())
        rows["in-numpy"].add(who, "take(a)", same_memory(a), take=peer.take, a=a)
        rows["numpy-takes"].add(who, "take(x)", check, take=lib.numpy.from_dlpack, x=made)
        row.add("numpy", "call(a, a, a)", None, call=peer.take3, a=a)
    if lib.torch:
        for key, make in (("in-torch", fresh), ("in-torch-held", held)):
            t = make(lib.torch)
            rows[key].add(who, "take(t)", same_memory(t), take=peer.take, t=t)
            t = make(lib.torch)
            row.add(f"torch, {make.__name__}", "call(t, t, t)", None, call=peer.take3, t=t)
        rows["torch-takes"].add(who, "take(x)", check, take=lib.torch.from_dlpack, x=made)
    if lib.tvm:
        rows["tvm-takes"].add(who, "take(x)", check, take=lib.tvm.from_dlpack, x=made)
