"""Tries one library: `python -m interop_matrix.child NAME [cells that are done]`. Prints one line before and one after each cell, as JSON.

A cell is `DIRECTION/CASE`; its outcome is one of

    share        values, dtype and shape right, over the same memory
    copy         right, in other memory
    empty        no elements, shape and dtype right
    carried      memory that the CPU may not read here: shape and dtype right, and handed back over the same memory
    refused      a BufferError of dlferry's own that says what was got and wanted
    AnyError     the exception's class, the library's own; with (hint) where dlferry added a way out
    -            the library cannot make this case
    skip         not tried, for the reason given
    float32 ...  another dtype came out
    ... when read  taken, but reading it raises
    WRONG ...    wrong values, shape or strides, a leak, or entries that disagree

with `+ro` where the result says that it is read-only, and `+rw` where read-only memory came out as writable.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import sys
import time
import weakref

import dlferry as g
from dlferry._convert import _resolve

from . import adapters, cases

DIRECTIONS = ("in", "own", "convert", "no copy")
OURS = re.compile(r"^\w+: .*\bgot .*\bwant ", re.S)
NAME_OF = {tuple(key): name for name, key in cases.DTYPES.items()}


def ledger():
    return g.ledger()


def settled(floor):
    """The ledger, once it is back at the floor or two seconds went by: some libraries free on threads of their own, or a little later."""
    end = time.monotonic() + 2
    while True:
        now = ledger()
        if now == floor:
            return now
        gc.collect()
        if time.monotonic() > end:
            return ledger()
        time.sleep(0.01)


def error(e):
    text = str(e).strip()
    kind = "WRONG type" if isinstance(e, AssertionError) else type(e).__name__
    if type(e) is BufferError and OURS.search(text):
        kind = "refused"
    notes = getattr(e, "__notes__", ())
    if notes:
        kind, text = f"{kind} (hint)", f"{text} {' '.join(notes)}"
    return kind, text


def same(got, want):
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    return got == want


def compare(case, said, values, pointer, source_readonly):
    """The outcome for what a library says it holds."""
    if said.dtype != case.key:
        name = NAME_OF.get(tuple(said.dtype), str(tuple(said.dtype)))
        return f"{name} instead", ""
    if said.shape != case.shape:
        return f"WRONG shape {said.shape}", ""
    if 0 in case.shape:
        return "empty" + ("+ro" if said.readonly else ""), ""
    strides = None if said.strides is None else list(said.strides)
    got = cases.read(said.pointer, list(case.shape), strides, case.itemsize)
    if not same(got, case.raw):
        return "WRONG values", f"got {got}, want {case.raw}"
    if values is not None and case.values is not None and not same(values, case.values):
        return "WRONG values", f"reads {values}, want {case.values}"
    shared = said.pointer == pointer
    if shared and strides is not None and any(a != b for a, b, n in zip(strides, case.strides, case.shape, strict=True) if n > 1):
        return f"WRONG strides {strides}", ""
    outcome = "share" if shared else "copy"
    if said.readonly:
        outcome += "+ro"
    elif source_readonly and shared:
        outcome += "+rw"
    return outcome, ""


# ---------------------------------------------------------------------------------------------------------------------
# into dlferry


def see(t):
    """A tensor of dlferry's as a View."""
    key = (t.dtype.code, t.dtype.bits, t.dtype.lanes)
    return adapters.View(t.data_ptr() if t.size else 0, t.shape, t.strides, key, t.readonly)


def check_in(adapter, case, x, t, pointer, source_readonly):
    if t.device != adapter.device() and t.device != (1, 0):
        return f"WRONG device {t.device}", ""
    if t.device == (14, 0):
        if (t.dtype.code, t.dtype.bits, t.dtype.lanes) != case.key or t.shape != case.shape:
            return f"WRONG {t.dtype} {t.shape}", ""
        back = adapter.own(t)
        if adapter.view(back).pointer != pointer and 0 not in case.shape:
            return "WRONG memory handed back", ""
        if not same(adapter.values(back), case.values):
            return "WRONG values handed back", f"{adapter.values(back)}"
        return "carried" + ("+ro" if t.readonly else ""), ""
    return compare(case, see(t), None if case.values is None else t.tolist(), pointer, source_readonly)


def produce(adapter, case):
    """The library's array into dlferry, by three entries; twice each, dropped in both orders."""
    before = ledger()
    live = adapter.live() if hasattr(adapter, "live") else None
    try:
        x = adapter.make(case)
    except adapters.Unmakeable as e:
        return "-", str(e)
    outcomes = {}
    try:
        try:
            pointer, source_readonly = adapter.view(x).pointer, case.readonly
        except Exception:
            pointer, source_readonly = None, case.readonly  # the library cannot export it at all; the entries show how it says so
        count = sys.getrefcount(x)
        entries = {
            "from_dlpack": g.from_dlpack,
            "asarray": g.asarray,
            "convert": lambda x: g.convert(x, g.Tensor),
        }
        for name, entry in entries.items():
            try:
                t = entry(x)
                u = entry(x)
            except Exception as e:
                outcomes[name] = error(e)
                del e
                continue
            outcomes[name] = check_in(adapter, case, x, t, pointer, source_readonly)
            del t  # one of two goes: the memory stays
            again = check_in(adapter, case, x, u, pointer, source_readonly)
            if again != outcomes[name]:
                outcomes[name] = "WRONG after the first of two went", f"{outcomes[name]} then {again}"
            del u
        if settled(before)["imports"] != before["imports"]:
            return "WRONG ledger", f"{before} became {ledger()}"
        gc.collect()
        if sys.getrefcount(x) != count:
            return "WRONG reference count", f"{count} became {sys.getrefcount(x)}"
        result, why = outcomes["from_dlpack"]
        others = {n: o for n, (o, _) in outcomes.items() if o != result}
        if others:
            return f"WRONG: from_dlpack {result}, {others}", why
        if result.startswith(("share", "copy", "empty")):  # the array goes first
            t = g.from_dlpack(x)
            del x
            gc.collect()
            now, _ = check_in(adapter, case, None, t, pointer, source_readonly)
            del t
            if now != result:
                return "WRONG after the array went", f"{result} then {now}"
        else:
            del x
        if settled(before) != before:
            return "WRONG ledger", f"{before} became {ledger()}"
        if live is not None and adapter.live() != live:
            return "WRONG: memory of the library's is left", f"{adapter.live() - live}"
        return result, why
    finally:
        x = None


# ---------------------------------------------------------------------------------------------------------------------
# out of dlferry


def tensor(case, memory):
    return g.wrap_pointer(
        memory.address + case.offset * case.itemsize,
        case.shape,
        g.DType(case.dtype),
        strides=case.strides,
        readonly=case.readonly,
        owner=memory,
    )


def way(adapter, direction):
    if direction == "own":
        return adapter.own
    to = adapter.target_type()
    copy = None if direction == "convert" else False

    def convert(t):
        x = g.convert(t, to, copy=copy)
        if not isinstance(x, _resolve(to)[2]):
            raise AssertionError(f"convert to {to} gives a {type(x).__module__}.{type(x).__name__}")
        return x

    return convert


def look(adapter, case, x, pointer):
    try:
        said, values = adapter.view(x), adapter.values(x)
    except Exception as e:
        return f"{type(e).__name__} when read", str(e)
    return compare(case, said, values, pointer, case.readonly)


def consume(adapter, case, direction):
    """A tensor of dlferry's into the library, twice; dropped in both orders."""
    before = ledger()
    live = adapter.live() if hasattr(adapter, "live") else None
    take = way(adapter, direction)
    memory = cases.Memory(case)
    gone = weakref.ref(memory)
    try:
        t = tensor(case, memory)
    except (ValueError, BufferError) as e:
        return "-", f"no such tensor: {e}"
    pointer = t.data_ptr() if t.size else 0
    del memory
    try:
        x = take(t)
        y = take(t) if adapter.twice else x
    except Exception as e:
        result, why = error(e)
        del e
    else:
        result, why = look(adapter, case, x, pointer)
        if result.startswith(("share", "copy", "empty")):
            del x  # one of two goes, then the tensor: the memory stays
            del t
            gc.collect()
            again, more = look(adapter, case, y, pointer)
            if again != result:
                result, why = "WRONG after the tensor went", f"{result} then {again}; {more}"
        x = y = None
    t = None
    if settled(before) != before:
        return "WRONG ledger", f"after {result}: {before} became {ledger()}"
    if gone() is not None:
        return "WRONG: the memory is not given back", f"after {result}"
    if live is not None and adapter.live() != live:
        return "WRONG: memory of the library's is left", f"{adapter.live() - live}"
    return result, why


# ---------------------------------------------------------------------------------------------------------------------
# many, and big ones


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def storm(adapter, direction):
    before = ledger()
    live = adapter.live() if hasattr(adapter, "live") else None
    n = 1 << 18
    shape = (n,) if adapter.flat else (n // 512, 512)
    if direction == "in":
        case = cases.Case("storm", flat=adapter.flat)
        try:
            adapter.make(case)
        except adapters.Unmakeable as e:
            return "-", str(e)

        class Large(cases.Case):
            base_shape = property(lambda self: shape)
            shape = property(lambda self: shape)
            strides = property(lambda self: (1,) if len(shape) == 1 else (512, 1))
            base = property(lambda self: bytes(n * 4))

        large = Large("storm", flat=adapter.flat)

        def once():
            return g.from_dlpack(adapter.make(large))
    else:
        take = way(adapter, direction)

        def once():
            return take(g.zeros(shape))

    try:
        once()
    except Exception as e:
        return error(e)
    for _ in range(20):
        once()
    settled(before)
    start = resident()
    for _ in range(200):
        once()
    now = settled(before)
    if now != before:
        return "WRONG ledger", f"{before} became {now}"
    if live is not None and adapter.live() != live:
        return "WRONG: memory of the library's is left", f"{adapter.live() - live}"
    grown = resident() - start
    if grown > 40:
        return "WRONG: memory is lost", f"{grown} MiB more after 200 tensors of 1 MiB"
    return "freed", ""


def big(adapter, direction):
    """2^31 + 8 elements over a sparse file: nothing but the last element may be touched."""
    before = ledger()
    shape = (cases.BIG_SIZE,)
    start = resident()
    if direction == "in":
        try:
            x = adapter.make_big()
        except adapters.Unmakeable as e:
            return "-", str(e)
        t = g.from_dlpack(x)
        if t.shape != shape or t.dtype != "int8" or t[-1].item() != 7 or t[-8:].tolist() != [0] * 7 + [7]:
            return "WRONG", f"{t.shape} {t.dtype} {t[-1].item()}"
        shared = t.data_ptr() == adapter.view(x).pointer
        del x, t
        readonly = False
    else:
        if adapter.big_taken:
            return "skip", adapter.big_taken
        memory = cases.BigMemory()
        t = g.wrap_pointer(memory.address, shape, "int8", owner=memory)
        try:
            x = way(adapter, direction)(t)
        except Exception as e:
            return error(e)
        said = adapter.view(x)
        last = ctypes.string_at(said.pointer + cases.BIG_SIZE - 1, 1)
        if said.shape != shape or said.dtype != (0, 8, 1) or last != b"\x07":
            return "WRONG", f"{said.shape} {said.dtype} {last}"
        shared, readonly = said.pointer == memory.address, said.readonly
        del x, t, memory
    if settled(before) != before:
        return "WRONG ledger", f"{before} became {ledger()}"
    grown = resident() - start
    if grown > 500:
        return "WRONG: all of it was touched", f"{grown} MiB more"
    return ("share" if shared else "copy") + ("+ro" if readonly else ""), ""


# ---------------------------------------------------------------------------------------------------------------------


def cells(adapter):
    directions = DIRECTIONS if adapter.target_type() else DIRECTIONS[:2]
    for direction in directions:
        for case in cases.cases(adapter.flat):
            function = (lambda c=case: produce(adapter, c)) if direction == "in" else (lambda c=case, d=direction: consume(adapter, c, d))
            yield f"{direction}/{case.name}", function
        yield f"{direction}/{cases.STORM}", lambda d=direction: storm(adapter, d)
        yield f"{direction}/{cases.BIG}", lambda d=direction: big(adapter, d)


LINES = sys.stdout


def say(kind, *rest):
    print(json.dumps([kind, *rest]), file=LINES, flush=True)


def main():
    global LINES
    LINES = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints by itself must not get between the lines
    name, *done = sys.argv[1:]
    adapter = adapters.ADAPTERS[name]()
    try:
        adapter.load()
    except ImportError as e:
        say("missing", f"{e}")
        return
    say("versions", adapter.versions)
    gc.collect()
    gc.freeze()  # what the library made by being imported need not be looked at again, cell after cell
    for cell, function in cells(adapter):
        if cell in done:
            continue
        say("start", cell)
        try:
            outcome, why = function()
        except Exception as e:
            outcome, why = f"WRONG: the test fails, {type(e).__name__}", f"{e}"
            if os.environ.get("DLFERRY_INTEROP_RAISE"):
                raise
        say("end", cell, outcome, why[:300])
        gc.collect()
    say("done")


if __name__ == "__main__":
    main()
