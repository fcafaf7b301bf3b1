"""What `dlferry.asarray` does for objects without DLPack and buffer protocol: numbers, nested lists, NumPy's array interface."""

from __future__ import annotations

from . import _core
from ._device import device as _device
from ._dtype import dtype as _dtype
from ._view import compact_strides, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ._core import Tensor
    from ._dtype import DType

__all__ = ["asarray"]

_MAX_NDIM = 64
_INT64 = range(-(1 << 63), 1 << 63)
_UINT64 = range(1 << 64)


def asarray(obj: Any, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of a number, of nested sequences of numbers, or of an object with ``__array_interface__`` or ``__array__``."""
    interface = getattr(obj, "__array_interface__", None)
    if isinstance(interface, dict):
        return _core.asarray(_of_interface(obj, interface), dtype=dtype, device=device, copy=copy)
    if hasattr(type(obj), "__array__"):
        array = obj.__array__()
        if hasattr(type(array), "__dlpack__"):
            return _core.asarray(array, dtype=dtype, device=device, copy=copy)
    if not isinstance(obj, (bool, int, float, complex, list, tuple)) and not hasattr(type(obj), "__index__"):
        raise TypeError(
            f"asarray: object, got {type(obj).__name__}, want a tensor (DLPack or buffer protocol), a number, or nested lists or tuples of numbers"
        )
    if copy is not None and not copy:
        raise BufferError(f"asarray: copy=False, got {type(obj).__name__}, want a tensor; values of Python objects can only be copied")
    where = _device("cpu" if device is None else device)
    if where != (1, 0):
        raise BufferError(f"asarray: device, got {where}, want cpu; make the tensor there with the library that owns the device")
    shape, values = _flatten(obj)
    want = _dtype_of(values) if dtype is None else _dtype(dtype)
    if 7 <= want.code <= 14:  # the small floats are rounded by the kernels of astype
        return _core._cast(_core._from_values(values, shape, _dtype("float64")), want)
    return _core._from_values(values, shape, want)


def _flatten(obj: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of nested sequences, and their values in row-major order."""
    shape: list[int] = []
    values: list[Any] = []
    first = obj
    while isinstance(first, (list, tuple)):
        if len(shape) == _MAX_NDIM:
            raise ValueError(f"asarray: nested sequences, got more than {_MAX_NDIM} levels, want at most {_MAX_NDIM} axes")
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    _collect(obj, shape, 0, [], values)
    return tuple(shape), values


def _collect(obj: Any, shape: list[int], axis: int, where: list[int], values: list[Any]) -> None:
    nested = isinstance(obj, (list, tuple))
    if axis == len(shape):
        if nested:
            _ragged(axis, where, f"a {type(obj).__name__} of length {len(obj)}", "a number")
        values.append(_number(obj))
        return
    if not nested:
        _ragged(axis, where, f"a {type(obj).__name__}", f"a sequence of length {shape[axis]}")
    if len(obj) != shape[axis]:
        _ragged(axis, where, f"length {len(obj)}", f"length {shape[axis]}")
    for i, item in enumerate(obj):
        _collect(item, shape, axis + 1, [*where, i], values)


def _ragged(axis: int, where: list[int], got: str, want: str) -> NoReturn:
    place = "".join(f"[{i}]" for i in where)
    raise ValueError(f"asarray: nested sequences, axis {axis}, got {got} at obj{place}, want {want} as before it; all rows must be alike")


def _number(obj: Any) -> Any:
    if isinstance(obj, (bool, int, float, complex)):
        return obj
    item = getattr(obj, "item", None)  # NumPy's scalars, and tensors of one element
    if item is not None and not getattr(obj, "shape", ()):
        value = item()
        if isinstance(value, (bool, int, float, complex)):
            return value
    kind = type(obj)
    if hasattr(kind, "__index__") and not hasattr(kind, "__dlpack__"):
        return int(kind.__index__(obj))
    if hasattr(kind, "__dlpack__"):
        raise TypeError(f"asarray: nested sequences, got a {kind.__name__} in them, want numbers; stack() of its library joins tensors")
    raise TypeError(f"asarray: nested sequences, got {obj!r} of type {kind.__name__}, want numbers")


def _dtype_of(values: list[Any]) -> DType:
    """bool, int64, float64 or complex128, whichever holds all values; uint64 where integers need it. No values: float64."""
    kinds = {bool: False, int: False, float: False, complex: False}
    for v in values:
        for kind in kinds:
            if isinstance(v, kind):
                kinds[kind] = True
                break
    if kinds[complex]:
        return _dtype("complex128")
    if kinds[float] or not values:
        return _dtype("float64")
    if not kinds[int]:
        return _dtype("bool")
    low, high = min(values), max(values)
    if low in _INT64 and high in _INT64:
        return _dtype("int64")
    if low in _UINT64 and high in _UINT64:
        return _dtype("uint64")
    out = low if low not in _INT64 else high
    raise ValueError(f"asarray: value, got {out} among integers, want all in int64 or all in uint64; dtype='float64' takes rounded values")


def _of_interface(obj: Any, interface: dict[str, Any]) -> Tensor:
    """A tensor over the memory that ``__array_interface__`` describes; keeps the object."""
    typestr = str(interface.get("typestr", ""))
    order, kind, size = typestr[:1], typestr[1:2], typestr[2:]
    name = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}.get(kind)
    if name is None or not size.isdigit():
        raise BufferError(f"asarray: typestr of __array_interface__, got {typestr!r}, want bool, integer, float or complex")
    if order == ">" and size != "1":
        raise BufferError(f"asarray: typestr of __array_interface__, got {typestr!r}, big-endian, want native byte order; swap first")
    itemsize = int(size)
    element = _dtype("bool" if name == "bool" else f"{name}{itemsize * 8}")
    shape = tuple(interface.get("shape", ()))
    steps = interface.get("strides")
    strides = None
    if steps is not None:
        if any(s % itemsize for s in steps):
            raise BufferError(f"asarray: strides of __array_interface__, got {tuple(steps)} bytes, want multiples of {itemsize}; copy it")
        strides = tuple(s // itemsize for s in steps)
    data = interface.get("data")
    if isinstance(data, tuple):
        if len(data) != 2:
            raise BufferError(f"asarray: data of __array_interface__, got {data!r}, want (address, read-only)")
        return _core.wrap_pointer(data[0], shape, element, strides=strides, readonly=bool(data[1]), owner=obj)
    raw = _core.from_buffer(memoryview(obj if data is None else data).cast("B"))
    offset = int(interface.get("offset", 0))
    low, high = span(shape, compact_strides(shape) if strides is None else strides)
    if low <= high and (offset + low * itemsize < 0 or offset + (high + 1) * itemsize > raw.nbytes):
        raise BufferError(f"asarray: buffer of __array_interface__, got {raw.nbytes} bytes, want room for shape {shape} from byte {offset}")
    return _core.wrap_pointer(raw.data_ptr() + offset, shape, element, strides=strides, readonly=raw.readonly, owner=raw)
