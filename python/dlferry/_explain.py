"""`dlferry.explain`: what an object is to DLPack, and who would take it."""

from __future__ import annotations

import inspect
import sys
import warnings

from . import _capsule, _core
from ._capsule import Reading, Unreadable
from ._device import Device
from ._peers import PEERS, Verdict, version_of
from ._zconst import ATTR_EXCHANGE, ATTR_EXCHANGE_OLD, FLAG_IS_COPIED, FLAG_READ_ONLY, FLAG_SUBBYTE_PADDED, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._peers import Peer

__all__ = ["Explanation", "explain", "tried"]

_MOST_BYTES = 1 << 26  # larger tensors are not given to libraries that copy, only to look
_MOST_VALUES = 1024  # so many are compared
_WIDTH = 118
_FLAGS = ((FLAG_READ_ONLY, "READ_ONLY"), (FLAG_IS_COPIED, "IS_COPIED"), (FLAG_SUBBYTE_PADDED, "IS_SUBBYTE_TYPE_PADDED"))
_KEYWORDS = ("stream", "max_version", "dl_device", "copy")


class Explanation:
    """What `dlferry.explain` found. ``str()`` is the text; notebooks add a picture of the memory.

    Attributes
    ----------
    svg : str
        The picture: one cell for each place in memory, coloured by element; empty when there is nothing to draw.
    """

    __slots__ = ("_found",)

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    def as_dict(self) -> dict[str, Any]:
        """The findings as plain dicts, lists, strings and numbers: what `str()` says, for programs."""
        from copy import deepcopy

        return deepcopy(self._found)

    @property
    def svg(self) -> str:
        from ._picture import picture

        return picture(self._found)

    def __str__(self) -> str:
        return "\n".join(_text(self._found))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        return f'<div><pre style="white-space:pre-wrap">{escape(str(self))}</pre>{self.svg}</div>'


def explain(x: Any) -> Explanation:
    """See `dlferry.explain`."""
    found: dict[str, Any] = {"type": _type_name(type(x)), "producer": _origin(type(x)), "is_producer": False, "findings": []}
    if isinstance(x, type):
        found["findings"].append(f"this is the type {x.__name__}; explain one of its objects")
        return Explanation(found)
    if _capsule.is_capsule(x):
        _explain_capsule(x, found)
    elif hasattr(type(x), "__dlpack__"):
        _explain_producer(x, found)
    else:
        _explain_other(x, found)
    return Explanation(found)


# --- the object ---


def _explain_capsule(x: Any, found: dict[str, Any]) -> None:
    name = _capsule.name_of(x)
    found["capsule_name"] = name
    try:
        reading = _capsule.read(x)
    except Unreadable as e:
        found["findings"].append(f"nothing to take: {e}")
        return
    found["is_producer"] = True
    found["capsules"] = {"versioned": _kind(reading) if reading.versioned else None, "legacy": None if reading.versioned else _kind(reading)}
    _describe(reading, found)
    found["findings"].append("a raw capsule can be taken once; it was only read. Most libraries want the object that gives it")
    _by_rule(found, reading, versioned=reading.versioned, legacy=not reading.versioned, keyword=True, table=False, of_capsule=True)


def _explain_producer(x: Any, found: dict[str, Any]) -> None:
    found["is_producer"] = True
    found["keywords"] = _keywords(x)
    found["exchange_table"] = _exchange_table(x, found["findings"])
    said = _said_device(x, found["findings"])
    asked = _Asked(x)
    found["capsules"] = {"versioned": _answer(asked.versioned), "legacy": _answer(asked.legacy)}
    if found["keywords"] is None:
        found["keywords"] = asked.keywords
    found["findings"] += asked.findings
    _torch(x, found["findings"])
    reading = asked.reading
    if reading is None:
        found["device"] = {"said": said, "sent": None}
        found["findings"].append("it gives no capsule that can be read; what it is stays unknown")
    else:
        _describe(reading, found, said)
    _consumers(x, found, reading, asked)


class _Asked:
    """What ``__dlpack__`` answers. A capsule that it gives is read and dropped again, which frees it."""

    def __init__(self, x: Any) -> None:
        self.findings: list[str] = []
        self.keywords: list[str] = []
        self.gave_capsule = False
        self.versioned: Reading | Exception | None = None
        self.legacy: Reading | Exception | None = None
        first = self._ask(x, {"max_version": VERSION})
        self.takes_version = not isinstance(first, TypeError)
        self.reading: Reading | None = None
        if self.takes_version:
            self.keywords.append("max_version")
        if isinstance(first, Reading) and not first.versioned:
            self.legacy = first
        else:
            if self.takes_version:
                self.versioned = first
            self.legacy = self._ask(x, {})
        for answer in (self.versioned, self.legacy):
            if self.reading is None and isinstance(answer, Reading):
                self.reading = answer

    def _ask(self, x: Any, keywords: dict[str, Any]) -> Reading | Exception:
        try:
            capsule = x.__dlpack__(**keywords)
        except Exception as e:
            return e.with_traceback(None)  # its frames would keep x
        self.gave_capsule = True
        try:
            found = _capsule.read(capsule)
        except Unreadable as e:
            self.findings.append(str(e))
            return e.with_traceback(None)
        if not found.frees_itself:
            note = "its capsules have no destructor: one that nobody takes is never freed"
            if note not in self.findings:
                self.findings.append(note)
            try:
                _core.from_dlpack(capsule).close()
            except Exception as e:
                self.findings.append(f"dlferry refuses the capsule: {_first_line(e)}")
        return found


def _describe(r: Reading, found: dict[str, Any], said: Any = None) -> None:
    d = r.dtype
    found["dtype"] = {"name": str(d), "code": d.code, "bits": d.bits, "lanes": d.lanes, "itemsize": d.itemsize, "kind": d.kind}
    found["device"] = {"said": said, "sent": list(r.device)}
    found["shape"] = list(r.shape)
    found["strides"] = None if r.strides is None else list(r.strides)
    found["size"] = r.size
    found["nbytes"] = r.size * d.itemsize
    found["layout"] = _capsule.layout(r.shape, r.steps)
    found["data"] = r.data
    found["byte_offset"] = r.byte_offset
    found["alignment"] = min(r.address & -r.address, 256) if r.address else 0
    found["readonly"] = r.readonly
    notes = found["findings"]
    if isinstance(said, list) and said != list(r.device) and not (said[0] == r.device[0] == 1):
        notes.append(
            f"__dlpack_device__ says {tuple(said)}, the tensor says {tuple(r.device)}: dlferry believes the tensor, and refuses unless both are host memory"
        )
    if r.size and not r.data:
        notes.append("the data pointer is NULL and there are elements: nobody may take it")
    if r.size and r.data and d.itemsize and d.lanes == 1 and d.itemsize <= 8 and not d.itemsize & (d.itemsize - 1) and r.address % d.itemsize:
        notes.append(f"the data is not aligned to its element of {d.itemsize} bytes: dlferry copies it, others may be wrong")
    if r.byte_offset and r.size:
        notes.append(f"a byte offset of {r.byte_offset}: Paddle and Warp ignore it and read the wrong memory; what dlferry exports has none")
    if r.strides is None and r.shape:
        notes.append("strides are NULL, which means row-major; consumers exist that crash on it; what dlferry exports has strides")
    if d.bits == 0 or d.lanes == 0:
        notes.append("a dtype of no bits: nobody may take it")


def _torch(x: Any, notes: list[str]) -> None:
    """What torch.Tensor keeps outside of its memory."""
    if not any(c.__module__ == "torch" and c.__name__ == "Tensor" for c in type(x).__mro__):
        return
    for attribute, text in (
        ("requires_grad", "it requires grad: __dlpack__ refuses it, the exchange table does not; pass x.detach()"),
        ("is_conj", "it is conjugate, which its memory is not; pass x.resolve_conj()"),
        ("is_neg", "it has the negative bit: its memory holds the opposite values and DLPack cannot say so; pass x.resolve_neg()"),
    ):
        try:
            value = getattr(x, attribute)
            if value() if callable(value) else value:
                notes.append(text)
        except Exception as e:
            notes.append(f"{attribute}: {_first_line(e)}")


def _keywords(x: Any) -> list[str] | None:
    """The keywords in the signature of ``__dlpack__``; None when it has none that can be read."""
    try:
        parameters = inspect.signature(type(x).__dlpack__).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return [*_KEYWORDS, "..."]
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]


_MANDATORY = ("managed_tensor_allocator", "managed_tensor_from_py_object_no_sync", "managed_tensor_to_py_object_no_sync")


def _exchange_table(x: Any, notes: list[str]) -> dict[str, Any] | None:
    found: dict[str, Any] = {"attributes": []}
    for name in (ATTR_EXCHANGE, ATTR_EXCHANGE_OLD):
        try:
            attribute = getattr(type(x), name, None)
        except Exception as e:
            notes.append(f"{name}: {_first_line(e)}")
            continue
        if attribute is None:
            continue
        table = _capsule.table_of(attribute)
        if "problem" in table:
            notes.append(f"{name} {table['problem']}; it is passed over")
            continue
        found["attributes"].append(name)
        found.update(table)
    if not found["attributes"]:
        return None
    if ATTR_EXCHANGE not in found["attributes"]:
        notes.append(f"its table has only the older name {ATTR_EXCHANGE_OLD}, where libraries of today do not look")
    missing = [name for name in _MANDATORY if name not in found.get("functions", _MANDATORY)]
    if missing:
        notes.append(f"its table has no {' and no '.join(missing)}, which the standard demands: libraries that call it may crash")
    found["incomplete"] = bool(missing)
    if found["version"][0] != VERSION[0]:
        notes.append(f"its table is of version {found['version'][0]}, want {VERSION[0]}: it is passed over")
    return found


def _table_is_risky(x: Any, table: dict[str, Any] | None) -> bool:
    """Whether a library that believes the attribute (tvm-ffi reads even an int as an address) may crash over it."""
    if table is not None:
        return bool(table["incomplete"]) or table["version"][0] != VERSION[0]
    return any(getattr(type(x), name, None) is not None for name in (ATTR_EXCHANGE, ATTR_EXCHANGE_OLD))


def _said_device(x: Any, notes: list[str]) -> Any:
    try:
        pair = x.__dlpack_device__()
    except AttributeError:
        notes.append("it has no __dlpack_device__: the Array API requires it, and torch, jax and paddle refuse without")
        return None
    except Exception as e:
        notes.append(f"__dlpack_device__ raises {_first_line(e)}")
        return None
    try:
        kind, number = pair
        return [int(kind), None if number is None else int(number)]
    except Exception:
        notes.append(f"__dlpack_device__ gives {_short(repr(pair))}, want a pair of integers")
        return None


def _explain_other(x: Any, found: dict[str, Any]) -> None:
    """Not a tensor: what is missing, and which other way there is."""
    notes = found["findings"]
    notes.append(f"not a tensor to DLPack: type {type(x).__name__} has no __dlpack__")
    if "__dlpack__" in getattr(x, "__dict__", {}):
        notes.append("the object itself has a __dlpack__; it belongs on the type")
    if hasattr(type(x), "__dlpack_device__"):
        notes.append("it has __dlpack_device__, which alone says nothing")
    if hasattr(type(x), ATTR_EXCHANGE):
        notes.append("its type has an exchange table, but no __dlpack__; dlferry.from_dlpack looks at the table first")
    way = []
    try:
        with memoryview(x) as view:
            way.append(f"dlferry.from_buffer(x): it has the buffer protocol, format {view.format!r}, {view.nbytes} bytes")
    except (TypeError, BufferError):
        pass
    except Exception as e:
        notes.append(f"its buffer raises {_first_line(e)}")
    for name, text in (
        ("__array_interface__", "dlferry.asarray(x): it has __array_interface__"),
        ("__cuda_array_interface__", "cupy.asarray(x) or torch.as_tensor(x): it has __cuda_array_interface__"),
        ("__array__", "numpy.asarray(x): it has __array__"),
    ):
        if hasattr(type(x), name):
            way.append(text)
    if isinstance(x, (bool, int, float, complex)):
        way.append("dlferry.asarray(x) makes a tensor of a number")
    elif isinstance(x, (list, tuple, dict)):
        values = list(x.values()) if isinstance(x, dict) else list(x)
        if any(hasattr(type(v), "__dlpack__") for v in values):
            way.append('dlferry.convert(x, "numpy") takes dicts, lists and tuples of tensors; explain one of them')
        elif not isinstance(x, dict):
            way.append("dlferry.asarray(x) makes a tensor of nested sequences of numbers")
    elif x is None:
        notes.append("None: did the function that should have made the tensor return nothing?")
    found["ways"] = way


# --- who takes it ---


def _consumers(x: Any, found: dict[str, Any], r: Reading | None, asked: _Asked) -> None:
    rows = found["consumers"] = []
    expected = None
    nbytes = found.get("nbytes", 0)
    row = tried("dlferry", _our_version(), lambda: _core.from_dlpack(x), r, None)
    accepted = row["verdict"] in ("zero-copy", "copy")
    rows.append(row)
    if not accepted:
        row["way_out"] = _way_out(found, "dlferry")
    if accepted and r is not None and r.device[0] == 1 and r.size <= _MOST_VALUES:
        expected = _values_of(x)
    negative = any("negative bit" in n for n in found["findings"])
    # Libraries exist that crash on a struct with nothing behind its pointers: what dlferry refuses is not given to others.
    doubtful = asked.gave_capsule and not accepted
    absent = []
    for peer in PEERS:
        version = version_of(peer)
        module = sys.modules.get(peer.module)
        if version is None and module is None:
            absent.append(peer.name)
            continue
        rule = None if r is None else _rule(peer, found, r, asked)
        take = peer.take
        harmful = rule is not None and rule.kind == "changes" and "offset" in rule.why  # would make it read memory that is not the tensor's
        copies = nbytes > _MOST_BYTES and (peer.copies or peer.aligned > 1)
        if peer.table and _table_is_risky(x, found["exchange_table"]):
            row = _row(peer.name, version, Verdict("unknown", "not tried, since it would call what is no whole exchange table"), "by rule")
        elif module is not None and take is not None and not harmful and not copies and not doubtful:
            row = tried(peer.name, version, lambda take=take, module=module: take(module, x), r, expected)  # type: ignore[misc]
            if row["verdict"] == "refuses" and rule is not None and rule.kind in ("refuses", "changes"):
                row["way_out"] = row["way_out"] or rule.way_out
            elif row["verdict"] in ("copy", "changes") and rule is not None and rule.kind == row["verdict"]:
                row["why"], row["way_out"] = rule.why, rule.way_out
        elif doubtful and (rule is None or rule.kind in ("zero-copy", "copy")) and not negative:
            row = _row(peer.name, version, Verdict("unknown", "not tried, since dlferry refuses it"), "by rule")
        elif rule is None:
            by_table = peer.table and found["exchange_table"] is not None
            verdict = Verdict("unknown", "asks the exchange table") if by_table else Verdict("refuses", "there is no capsule to take")
            row = _row(peer.name, version, verdict, "by rule")
        else:
            row = _row(peer.name, version, rule, "by rule")
        if negative:
            row["way_out"] = "x.resolve_neg()"
            if row["verdict"] in ("zero-copy", "copy"):
                row.update(verdict="changes", why="the values come out with the opposite sign")
        if row["verdict"] == "refuses" and not row["way_out"]:
            row["way_out"] = _way_out(found, peer.name)
        rows.append(row)
    found["not_installed"] = absent


def _rule(peer: Peer, found: dict[str, Any], r: Reading, asked: _Asked) -> Verdict:
    table = found["exchange_table"]
    return peer.judge(
        r,
        versioned=isinstance(asked.versioned, Reading),
        legacy=isinstance(asked.legacy, Reading),
        keyword=asked.takes_version,
        readonly=bool(r.readonly),
        table=table is not None and ATTR_EXCHANGE in table["attributes"],
    )


def _by_rule(found: dict[str, Any], r: Reading, *, versioned: bool, legacy: bool, keyword: bool, table: bool, of_capsule: bool) -> None:
    rows = found["consumers"] = [_row("dlferry", _our_version(), Verdict("zero-copy", "takes it over: dlferry.from_dlpack(capsule)"), "by rule")]
    absent = found["not_installed"] = []
    for peer in PEERS:
        version = version_of(peer)
        if version is None:
            absent.append(peer.name)
            continue
        rule = peer.judge(r, versioned=versioned, legacy=legacy, keyword=keyword, readonly=bool(r.readonly), table=table)
        if of_capsule and rule.kind in ("zero-copy", "copy") and peer.name not in ("torch", "tensorflow"):
            rule = Verdict("refuses", "takes objects with __dlpack__, no raw capsules", "dlferry.from_dlpack(capsule), and pass that on")
        rows.append(_row(peer.name, version, rule, "by rule"))


def tried(name: str, version: str | None, take: Callable[[], Any], r: Reading | None, expected: list[bytes] | None) -> dict[str, Any]:
    """What happens when the library takes it. What it makes is dropped at once."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = take()
    except Exception as e:
        return _row(name, version, Verdict("refuses", _message(e)), "tried", error=type(e).__name__)
    if r is None:
        return _row(name, version, Verdict("takes", "takes it where __dlpack__ refuses; whether it shares cannot be told"), "tried")
    seen = _look(result, values=expected is not None)
    if seen is None:
        return _row(name, version, Verdict("takes", "whether it shares or copies cannot be told"), "tried")
    shares = seen.address == r.address
    if seen.dtype != r.dtype or seen.shape != r.shape:
        text = f"comes out as {seen.dtype} {seen.shape}"
        return _row(name, version, Verdict("changes", text), "tried")
    if expected is not None and seen.values is not None and seen.values != expected:
        return _row(name, version, Verdict("changes", "comes out with other values"), "tried")
    if not shares and r.size:
        return _row(name, version, Verdict("copy"), "tried")
    readonly = bool(seen.readonly) or (seen.readonly is None and _is_readonly(result))
    if r.readonly and not readonly:
        verdict = Verdict("zero-copy", "gives a writable view of this read-only memory", f'dlferry.convert(x, "{name}") copies first')
        return _row(name, version, verdict, "tried", readonly=readonly)
    return _row(name, version, Verdict("zero-copy"), "tried", readonly=readonly)


def _row(name: str, version: str | None, verdict: Verdict, basis: str, *, error: str | None = None, readonly: bool | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "verdict": verdict.kind,
        "basis": basis,
        "error": error,
        "readonly": readonly,
        "why": verdict.why,
        "way_out": verdict.way_out,
    }


def _look(result: Any, *, values: bool) -> Reading | None:
    """What a library made of the tensor."""
    most = _MOST_VALUES if values else 0
    for keywords in ({"max_version": VERSION}, {}):
        try:
            capsule = result.__dlpack__(**keywords)
            return _capsule.read(capsule, values=most)
        except Exception:
            continue
    try:  # a read-only or unusual array of NumPy
        interface = result.__array_interface__
        t = _core.wrap_pointer(interface["data"][0], result.shape, result.dtype, readonly=True, owner=result)
        return _capsule.read(t.__dlpack__(max_version=VERSION))
    except Exception:
        return None


def _is_readonly(result: Any) -> bool:
    return getattr(getattr(result, "flags", None), "writeable", True) is False


def _values_of(x: Any) -> list[bytes] | None:
    """As dlferry reads them; a capsule of ``x`` that nobody takes may never be freed."""
    try:
        with _core.from_dlpack(x) as t:
            return _capsule.read(t.__dlpack__(max_version=VERSION), values=_MOST_VALUES).values
    except Exception:
        return None


def _way_out(found: dict[str, Any], name: str) -> str:
    """For a refusal that no rule foresaw."""
    for note in found["findings"]:
        if "; pass " in note:
            return str(note.rpartition("; pass ")[2])
    ours = found["consumers"][0]["verdict"]
    return f'dlferry.convert(x, "{name}")' if ours in ("zero-copy", "copy") and name not in ("nanobind", "dlferry") else ""


# --- words ---


def _text(f: dict[str, Any]) -> list[str]:
    origin = f["producer"]
    of = f" of {origin['name']} {origin['version']}" if origin["version"] else ""
    lines: list[str] = [
        f"{f['type']}{of}" if not f["is_producer"] else f"{f['type']}{of}: a DLPack {'capsule' if 'capsule_name' in f else 'producer'}",
        "",
    ]
    if "dtype" in f:
        for k, v in _facts(f):
            lines += _wrapped(f"  {k:16}", v)
    if f["is_producer"]:
        for k, v in _protocol(f):
            lines += _wrapped(f"  {k:16}", v)
    if f["findings"]:
        lines += ["", "  findings"] if f["is_producer"] else []
        for note in f["findings"]:
            lines += _wrapped("  - ", note)
    if f.get("ways"):
        lines += ["", "  ways out"]
        for way in f["ways"]:
            lines += _wrapped("  - ", way)
    if f.get("consumers"):
        lines += ["", "  who would take it"]
        width = max(len(_who(c)) for c in f["consumers"])
        for c in f["consumers"]:
            why = f"{c['error']}: {c['why']}" if c["error"] and c["why"] else c["error"] or c["why"]
            lines += _wrapped(f"    {_who(c):{width}}  {c['verdict']:10} {c['basis']:8} ", why)
            if c["way_out"]:
                lines += _wrapped(f"    {'':{width}}  {'':10} {'':8} ", f"-> {c['way_out']}")
    if f.get("not_installed"):
        lines += ["", *_wrapped("  not installed: ", ", ".join(f["not_installed"]))]
    return lines


def _wrapped(head: str, text: str) -> list[str]:
    from textwrap import wrap

    lines = wrap(text, max(40, _WIDTH - len(head)), break_long_words=False, break_on_hyphens=False) or [""]
    return [(head + lines[0]).rstrip(), *(" " * len(head) + line for line in lines[1:])]


def _who(c: dict[str, Any]) -> str:
    return f"{c['name']} {c['version']}" if c["version"] else str(c["name"])


def _facts(f: dict[str, Any]) -> list[tuple[str, str]]:
    d, layout = f["dtype"], f["layout"]
    lanes = f", {d['lanes']} lanes" if d["lanes"] != 1 else ""
    rows = [("element type", f"{d['name']} (code {d['code']}, {d['bits']} bits{lanes})"), ("device", _device_text(f["device"]))]
    rows.append(("shape", f"{_tuple(f['shape'])}: {_count(f['size'], 'element')}, {_bytes(f['nbytes'])}"))
    strides = "not given" if f["strides"] is None else _tuple(f["strides"])
    rows.append(("strides", f"{strides}: {_layout_text(layout, f)}"))
    offset = f", byte offset {f['byte_offset']}" if f["byte_offset"] else ""
    rows.append(("data", f"{f['data']:#x}{offset}, aligned to {_count(f['alignment'], 'byte')}" if f["data"] else f"NULL{offset}"))
    rows.append(("memory", {True: "read-only", False: "writable", None: "writable, as far as a legacy capsule can say"}[f["readonly"]]))
    return rows


def _protocol(f: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    capsules = f.get("capsules", {})
    if capsules:
        versioned, legacy = capsules["versioned"], capsules["legacy"]
        if versioned is None:
            text = "legacy only" if legacy and "error" not in legacy else "none"
        elif "error" in versioned:
            text = f"versioned: {versioned['error']}"
        else:
            text = f"versioned {versioned['version'][0]}.{versioned['version'][1]}, flags {' | '.join(versioned['flag_names']) or '0'}"
        if versioned is not None and legacy is not None:
            text += "; legacy too" if "error" not in legacy else f"; legacy: {legacy['error']}"
        elif legacy is not None and "error" in legacy:
            text += f"; legacy: {legacy['error']}"
        rows.append(("capsules", text))
    if f.get("keywords") is not None:
        rows.append(("keywords", ", ".join(f["keywords"]) or "none"))
    if "exchange_table" in f:
        table = f["exchange_table"]
        if table is None:
            rows.append(("exchange table", "none: compiled code has to call __dlpack__"))
        else:
            rows.append(("exchange table", f"version {'.'.join(map(str, table['version']))}, as {' and '.join(table['attributes'])}"))
    return rows


def _layout_text(layout: dict[str, Any], f: dict[str, Any]) -> str:
    words = {
        "row-major": "row-major, contiguous",
        "column-major": "column-major without gaps",
        "permuted": "without gaps, axes in another order",
        "strided": "strided",
        "empty": "no elements",
    }[layout["kind"]]
    parts = [words]
    for key, word in (("negative_axes", "backwards along"), ("broadcast_axes", "repeated along")):
        if layout[key]:
            axes = layout[key]
            parts.append(f"{word} {'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))}")
    if layout["overlapping"] and not layout["broadcast_axes"]:
        parts.append("elements overlap")
    if layout["overlapping"] is None:
        parts.append("elements may overlap")
    if layout["kind"] == "strided":
        places = layout["highest"] - layout["lowest"] + 1
        if places != f["size"]:
            parts.append(f"{_count(f['size'], 'element')} over {_count(places, 'place')}")
    return ", ".join(parts)


def _device_text(device: dict[str, Any]) -> str:
    sent, said = device["sent"], device["said"]
    text = str(tuple.__new__(Device, sent)) if sent is not None else "unknown"
    if said is not None and said != sent:
        text += f" ({'' if sent is None else f'{tuple(sent)} in the tensor, '}{tuple(said)} from __dlpack_device__)"
    return text


def _kind(r: Reading) -> dict[str, Any]:
    names = [name for bit, name in _FLAGS if (r.flags or 0) & bit]
    rest = (r.flags or 0) & ~(FLAG_READ_ONLY | FLAG_IS_COPIED | FLAG_SUBBYTE_PADDED)
    if rest:
        names.append(f"{rest:#x}")
    return {"version": None if r.version is None else list(r.version), "flags": r.flags, "flag_names": names}


def _answer(answer: Reading | Exception | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {"error": _first_line(answer)} if isinstance(answer, Exception) else _kind(answer)


def _origin(cls: type) -> dict[str, Any]:
    root = cls.__module__.partition(".")[0]
    root = {"jaxlib": "jax"}.get(root, root)
    for peer in PEERS:
        if peer.module.partition(".")[0] == root:
            return {"name": peer.name, "version": version_of(peer)}
    if root == "dlferry":
        return {"name": root, "version": _our_version()}
    version = getattr(sys.modules.get(root), "__version__", None)
    return {"name": root, "version": version if isinstance(version, str) else None}


def _our_version() -> str:
    import dlferry

    return dlferry.__version__


def _type_name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _message(e: BaseException) -> str:
    try:
        lines = str(e).strip().splitlines()
    except Exception:
        return ""
    return _short(lines[0].strip() if lines else "")


def _first_line(e: BaseException) -> str:
    line = _message(e)
    if isinstance(e, Unreadable):
        return line
    return f"{type(e).__name__}: {line}" if line else type(e).__name__


def _short(text: str, most: int = 160) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _tuple(numbers: list[int]) -> str:
    return str(tuple(numbers))


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _bytes(n: int) -> str:
    if n < 1024:
        return _count(n, "byte")
    size, units = n / 1024, ["KiB", "MiB", "GiB", "TiB", "PiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.1f} {units[0]}"
