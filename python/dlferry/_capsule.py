"""Reads what is in DLPack capsules and exchange tables, without taking it: for `explain` and the commands, which look and do not touch.

Nothing here writes to a producer's struct or calls its deleter. The work of exchanging tensors is C.
"""

from __future__ import annotations

import ctypes

from ._dtype import DType, dtype_of_key
from ._view import compact_strides, is_compact, is_dense, span
from ._zconst import CAPSULE_EXCHANGE, CAPSULE_LEGACY, CAPSULE_VERSIONED, FLAG_READ_ONLY, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Reading", "Unreadable", "is_capsule", "layout", "name_of", "read", "table_of"]

_MOST_AXES = 64


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Legacy(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Table(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


_api = ctypes.PyDLL(None)  # one of our own: others set prototypes on ctypes.pythonapi
_name = _api.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = _api.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_destructor = _api.PyCapsule_GetDestructor
_destructor.restype, _destructor.argtypes = ctypes.c_void_p, [ctypes.py_object]


class Unreadable(Exception):
    """There is no tensor to read in a capsule; the text says why."""


class Reading:
    """What a capsule says, copied out of it.

    Attributes
    ----------
    versioned : bool
        Whether the capsule is of the kind that carries a version and flags.
    version : tuple of int or None
        The version in the struct; None in a legacy capsule.
    flags : int or None
        The flags as they came; None in a legacy capsule.
    strides : tuple of int or None
        In elements; None when the struct has none, which means row-major.
    steps : tuple of int
        The strides, or what NULL strides mean.
    values : list of bytes or None
        The elements in row-major order, where they were asked for and could be read.
    """

    __slots__ = ("address", "byte_offset", "data", "device", "dtype", "flags", "frees_itself", "shape", "strides", "values", "version", "versioned")

    versioned: bool
    version: tuple[int, int] | None
    flags: int | None
    device: tuple[int, int]
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    data: int
    byte_offset: int
    address: int
    frees_itself: bool
    values: list[bytes] | None

    @property
    def steps(self) -> tuple[int, ...]:
        return compact_strides(self.shape) if self.strides is None else self.strides

    @property
    def size(self) -> int:
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def readonly(self) -> bool | None:
        """None where the capsule cannot say."""
        return None if self.flags is None else bool(self.flags & FLAG_READ_ONLY)


def is_capsule(x: object) -> bool:
    """Whether ``x`` is a raw capsule."""
    return type(x).__name__ == "PyCapsule"


def name_of(capsule: object) -> str | None:
    """The name of a capsule."""
    name = _name(capsule)
    return None if name is None else name.decode(errors="replace")


def read(capsule: object, *, values: int = 0) -> Reading:
    """What is in a capsule that nobody took yet.

    Parameters
    ----------
    capsule : PyCapsule
        Stays as it is.
    values : int
        Read the elements too if they lie in CPU memory and there are at most so many. Only for a tensor whose memory is known to be there.

    Raises
    ------
    Unreadable
        When there is no tensor in it that this version of DLPack can read.
    """
    if not is_capsule(capsule):
        raise Unreadable(f"__dlpack__ gave a {type(capsule).__name__}, want a capsule")
    name = name_of(capsule)
    if name not in (CAPSULE_LEGACY, CAPSULE_VERSIONED):
        used = name is not None and name.startswith("used_")
        raise Unreadable(f"the capsule is named {name!r}{', its tensor was taken already' if used else ''}; want {CAPSULE_VERSIONED!r}")
    address = _pointer(capsule, name.encode())
    r = Reading()
    r.versioned = name == CAPSULE_VERSIONED
    r.frees_itself = bool(_destructor(capsule))
    r.version = r.flags = r.values = None
    if r.versioned:
        new = _Versioned.from_address(address)
        if new.major != VERSION[0]:
            raise Unreadable(f"the tensor is of DLPack {new.major}.{new.minor}, want {VERSION[0]}.x: of others only the deleter may be called")
        r.version, r.flags = (new.major, new.minor), new.flags
        _fill(r, new.tensor)
    else:
        _fill(r, _Legacy.from_address(address).tensor)
    if r.device[0] == 1 and 0 < r.size <= values and r.data:
        r.values = _values(r)
    return r


def _fill(r: Reading, t: Any) -> None:
    n = t.ndim
    if not 0 <= n <= _MOST_AXES:
        raise Unreadable(f"the struct says {n} axes, want 0 to {_MOST_AXES}")
    if n and not t.shape:
        raise Unreadable(f"the struct says {n} axes and has no shape")
    r.data, r.byte_offset = t.data or 0, t.byte_offset
    r.address = r.data + r.byte_offset
    r.device = t.device_type, t.device_id
    r.dtype = dtype_of_key(t.code | t.bits << 8 | t.lanes << 16)
    r.shape = tuple(t.shape[i] for i in range(n))
    r.strides = tuple(t.strides[i] for i in range(n)) if t.strides else None
    if any(extent < 0 for extent in r.shape):
        raise Unreadable(f"the struct says shape {r.shape}, want no negative extents")


def _values(r: Reading) -> list[bytes]:
    places = [0]
    for n, s in zip(r.shape, r.steps, strict=True):
        places = [p + i * s for p in places for i in range(n)]
    size = r.dtype.itemsize
    return [ctypes.string_at(r.address + p * size, size) for p in places]


def layout(shape: Sequence[int], strides: Sequence[int]) -> dict[str, Any]:
    """How elements lie: the kind in a word or two, and what is unusual about it."""
    size = 1
    for n in shape:
        size *= n
    low, high = span(shape, strides)
    moving = [(axis, n, s) for axis, (n, s) in enumerate(zip(shape, strides, strict=True)) if n > 1] if size else []
    if size == 0:
        kind = "empty"
    elif is_compact(shape, strides):
        kind = "row-major"
    elif is_compact(shape[::-1], strides[::-1]):
        kind = "column-major"
    elif is_dense(shape, strides):
        kind = "permuted"
    else:
        kind = "strided"
    return {
        "kind": kind,
        "contiguous": kind in ("row-major", "empty"),
        "negative_axes": [axis for axis, _, s in moving if s < 0],
        "broadcast_axes": [axis for axis, _, s in moving if s == 0],
        "overlapping": _overlaps([(n, abs(s)) for _, n, s in moving]),
        "lowest": low,
        "highest": high,
    }


def _overlaps(axes: list[tuple[int, int]]) -> bool | None:
    """Whether two indices lead to one place; None when that takes too long to find out."""
    reach = 0
    for n, s in sorted(axes, key=lambda a: a[1]):
        if s <= reach:
            break
        reach += (n - 1) * s
    else:
        return False
    if any(s == 0 for _, s in axes):
        return True
    size = 1
    for n, _ in axes:
        size *= n
    if size > 100_000:
        return None
    places = [0]
    for n, s in axes:
        places = [p + i * s for p in places for i in range(n)]
    return len(set(places)) < size


def table_of(attribute: object) -> dict[str, Any]:
    """What an attribute that should be an exchange table is: its version and functions, or why it is none."""
    if not is_capsule(attribute):
        return {"problem": f"is a {type(attribute).__name__}, want a capsule"}
    name = name_of(attribute)
    if name != CAPSULE_EXCHANGE:
        return {"problem": f"is a capsule named {name!r}, want {CAPSULE_EXCHANGE!r}"}
    table = _Table.from_address(_pointer(attribute, CAPSULE_EXCHANGE.encode()))
    found: dict[str, Any] = {"version": [table.major, table.minor], "older_tables": bool(table.previous)}
    if table.major == VERSION[0]:
        found["functions"] = [name for name, _ in _Table._fields_[3:] if getattr(table, name)]
    return found
