"""Element types: one interned `DType` for every (code, bits, lanes) of DLPack, equal to its name."""

from __future__ import annotations

import sys

from ._zconst import CODE_NAMES, DTYPE_CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NAMES", "DType", "dtype", "dtype_of_key"]

# Every type that has a name of its own: what `dlferry.<name>` exists for.
NAMES = (
    "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128", "bcomplex32",
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float4_e2m1fn_x2", "opaque_handle64",
)  # fmt: skip

_KINDS = ("int", "uint", "float", "handle", "float", "complex", "bool")
_FLOAT8, _FLOAT4 = 7, 17
_BCOMPLEX = 18
_ACCEPTED = (
    'a name such as "float32", a DType, a NumPy or ml_dtypes type, the dtype object of a framework (torch.float32, jax.numpy.float32), '
    "or one of bool, int, float, complex"
)


class DType(str):
    """The type of a tensor's elements: `lanes` values of `bits` bits each, read as `code` says.

    A DType is the string of its name, so that ``t.dtype == "float32"`` holds and NumPy takes it as a dtype. There is one object for every
    type: ``DType("float32") is dlferry.float32``. Types that dlferry does not know are carried; their names tell code, bits and lanes, and
    read back.

    Parameters
    ----------
    obj : str, type or a framework's dtype object
        Anything that `dlferry` takes as a dtype.

    Attributes
    ----------
    code : int
        DLPack's type code.
    bits : int
        Bits of one lane.
    lanes : int
        Values in one element; 1 for all but vector and packed types.
    key : int
        ``code | bits << 8 | lanes << 16``.
    itemsize : int
        Bytes of one element, rounded up.
    kind : str
        "bool", "int", "uint", "float", "complex", "handle", or "unknown".

    Raises
    ------
    TypeError
        For an object that is no dtype.
    ValueError
        For a name that means none, or for a dtype that DLPack cannot carry.
    """

    __slots__ = ("bits", "code", "itemsize", "key", "kind", "lanes")

    bits: int
    code: int
    itemsize: int
    key: int
    kind: str
    lanes: int

    def __new__(cls, obj: Any, /) -> DType:
        return dtype(obj)

    def __eq__(self, other: object) -> bool:
        # One object for every type: a string compares as one, and what else names a dtype (np.float32, torch.float32) by what it names.
        if self is other:
            return True
        if other is None or isinstance(other, str):
            return str.__eq__(self, other) if isinstance(other, str) else False
        try:
            return dtype(other) is self
        except (TypeError, ValueError):
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    @property
    def name(self) -> str:
        """The name, as an exact str."""
        return str(self)

    @property
    def is_floating(self) -> bool:
        """Whether the values are real floating-point numbers, of any width."""
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """Whether the values are complex numbers."""
        return self.kind == "complex"

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers, signed or not; bool is no integer."""
        return self.kind == "int" or self.kind == "uint"

    @property
    def is_signed(self) -> bool:
        """Whether the values can be negative."""
        return self.kind in ("int", "float", "complex") and self.code != 14

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"DType.{name}: a dtype cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"DType.{name}: a dtype cannot be changed")

    def __repr__(self) -> str:
        name = str(self)
        return f"dlferry.{name}" if name in NAMES else f"dlferry.DType({name!r})"

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return DType, (str(self),)


_by_key: dict[int, DType] = {}
_by_name: dict[str, DType] = {}


def dtype_of_key(key: int, /) -> DType:
    """The one DType of a key, ``code | bits << 8 | lanes << 16``."""
    found = _by_key.get(key)
    if found is None:
        code, bits, lanes = key & 0xFF, key >> 8 & 0xFF, key >> 16 & 0xFFFF
        found = str.__new__(DType, _format(code, bits, lanes))
        kind = _KINDS[code] if code < 7 else "float" if code <= _FLOAT4 else "complex" if code == _BCOMPLEX else "unknown"
        values = {"code": code, "bits": bits, "lanes": lanes, "key": key, "itemsize": (bits * lanes + 7) // 8, "kind": kind}
        for name, value in values.items():
            str.__setattr__(found, name, value)
        found = _by_key.setdefault(key, found)
        _by_name.setdefault(str(found), found)
    return found


def dtype(obj: Any, /) -> DType:
    """The `DType` that ``obj`` names.

    No framework is imported: a dtype object of one that is loaded is told by its class.
    """
    if type(obj) is DType:
        return obj
    if isinstance(obj, str):
        return _of_name(str(obj), obj)
    if isinstance(obj, type):
        if obj is bool:
            return _of_name("bool", obj)
        if obj is int:
            return _of_name("int64", obj)
        if obj is float:
            return _of_name("float64", obj)
        if obj is complex:
            return _of_name("complex128", obj)
        return _of_type(obj)
    return _of_object(obj)


def _of_type(obj: type) -> DType:
    root = obj.__module__.partition(".")[0]
    if root == "ml_dtypes":
        return _of_name(obj.__name__, obj)
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(obj, numpy.generic):
        try:
            return _of_numpy(numpy.dtype(obj), obj)
        except TypeError:  # numpy.generic and the other abstract ones
            raise _refusal(obj) from None
    inner = getattr(obj, "dtype", None)  # jax.numpy.float32 is a class with a NumPy dtype
    if numpy is not None and isinstance(inner, numpy.dtype):
        return _of_numpy(inner, obj)
    if root == "warp":
        return _of_name(obj.__name__, obj)
    raise _refusal(obj)


def _of_object(obj: Any) -> DType:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(obj, numpy.dtype):
            return _of_numpy(obj, obj)
        inner = getattr(obj, "dtype", None)
        if isinstance(inner, numpy.dtype) and callable(obj) and not hasattr(obj, "shape"):  # a scalar type that is no class
            return _of_numpy(inner, obj)
    if type(obj).__name__.lower() in ("dtype", "datatype"):
        name = getattr(obj, "name", None)  # tensorflow
        if not isinstance(name, str):
            name = str(obj).rpartition(".")[2]  # torch.float32, mlx.core.float32, paddle.float32
        name = _ALIASES.get(name, name)
        if _parse(name) is not None:
            return _of_name(name, obj)
        raise ValueError(f"dtype: got {obj!r}, want a dtype that DLPack has: {_names()}")
    raise _refusal(obj)


# Names of element types in frameworks, where they differ from DLPack's.
_ALIASES = {"bool_": "bool", "half": "float16", "halffloat": "float16", "float": "float32", "double": "float64"}


def _of_numpy(dt: Any, obj: Any) -> DType:
    if not dt.isnative:
        raise ValueError(f"dtype: got {obj!r}, want native byte order; convert first with .astype({dt.newbyteorder('=').str!r})")
    if dt.type.__module__.partition(".")[0] == "ml_dtypes":
        return _of_name(dt.type.__name__, obj)
    if dt.kind == "b" or (dt.kind in "iuf" and dt.itemsize <= 8) or (dt.kind == "c" and dt.itemsize <= 16):
        name = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}[dt.kind]
        return _of_name(name if dt.kind == "b" else f"{name}{dt.itemsize * 8}", obj)
    raise ValueError(f"dtype: got {obj!r}, want a dtype that DLPack has: {_names()}")


def _of_name(name: str, obj: Any) -> DType:
    found = _by_name.get(name)
    if found is None:
        key = _parse(name)
        if key is None:
            other = _ALIASES.get(name)
            hint = f'; did you mean "{other}"?' if other else ""
            raise ValueError(f"dtype: got {obj!r}, want a name of a dtype: {_names()}{hint}")
        found = dtype_of_key(key)
    return found


def _natural_bits(code: int) -> int:
    """The width that the name of a code stands for, or 0 when the width follows the name."""
    if code == 6 or 7 <= code <= 14:
        return 8
    return 6 if code in (15, 16) else 4 if code == _FLOAT4 else 0


def _format(code: int, bits: int, lanes: int) -> str:
    """The name of a type; `_parse` reads it back. Go's DataType.String writes the same names."""
    natural = _natural_bits(code)
    times = "x"
    if natural and natural == bits:
        name, times = CODE_NAMES[code], "_x"
    elif natural or code not in CODE_NAMES:
        name = f"code{code}_{bits}"
    else:
        name = f"{CODE_NAMES[code]}{bits}"
    return name if lanes == 1 else f"{name}{times}{lanes}"


def _parse(name: str) -> int | None:
    """The key of a name that `_format` wrote, or None for any other text."""
    if not name.isascii():
        return None
    text, lanes = name, "1"
    base, times, rest = name.rpartition("x")
    if times and rest.isdigit() and (base[-1:].isdigit() or base[-1:] == "_"):  # complex64 has no lanes
        name, lanes = base.removesuffix("_"), rest
    code = DTYPE_CODES.get(name, -1)
    bits = str(_natural_bits(code))
    if bits == "0" or code < 0:
        stem = name.rstrip("0123456789")
        bits = name[len(stem) :]
        code = DTYPE_CODES.get(stem, -1)
        if code < 0 and stem[:4] == "code" and stem[-1] == "_" and stem[4:-1].isdigit():
            code = int(stem[4:-1][:4])
    if code < 0 or not bits or len(bits) > 3 or len(lanes) > 5:
        return None
    numbers = code, int(bits), int(lanes)
    if code > 0xFF or numbers[1] > 0xFF or numbers[2] > 0xFFFF:
        return None
    return code | numbers[1] << 8 | numbers[2] << 16 if _format(*numbers) == text else None


def _names() -> str:
    return ", ".join(NAMES)


def _refusal(obj: Any) -> TypeError:
    return TypeError(f"dtype: got {obj!r} of type {type(obj).__name__}, want {_ACCEPTED}")
