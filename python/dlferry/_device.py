"""Where a tensor lies: a device type and the number of the device among those of its type."""

from __future__ import annotations

import sys

from ._zconst import DEVICE_NAMES, DEVICE_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex

__all__ = ["Device", "device"]

# What frameworks call their devices where DLPack has another name.
_PLATFORMS = {"gpu": "cuda", "hip": "rocm", "mps": "metal", "xpu": "oneapi", "neuron": "trn", "npu": "ascend"}
_HOST = (1, 3, 11)  # memory that the CPU may touch at any time; there is one of each
_ACCEPTED = 'a name such as "cpu", "cuda" or "cuda:0", a Device, a pair (type, id), or the device object of a framework'


class Device(tuple[int, int]):
    """A DLPack device, as the pair (type, id).

    ``Device("cuda:0")`` and ``Device(2, 0)`` are the same. A device equals the pair and its name, so that ``t.device == "cuda:0"`` and
    ``t.device == (2, 0)`` both work; it hashes like the pair.

    Parameters
    ----------
    type : int, str, Device, tuple or a framework's device object
        With ``id``, the number of the device type; alone, anything that `dlferry` takes as a device.
    id : int, optional
        The number of the device among those of its type.

    Raises
    ------
    ValueError
        For a name, type or id that does not exist; the id of "cpu" is 0.
    TypeError
        For an object that is no device.
    """

    __slots__ = ()

    def __new__(cls, type: Any, id: SupportsIndex | None = None) -> Device:
        if id is None:
            return device(type)
        try:
            pair = type.__index__(), id.__index__()
        except (AttributeError, TypeError):
            raise TypeError(f"Device: type and id, got {type!r} and {id!r}, want two integers") from None
        return _checked(*pair)

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0], self[1]

    @property
    def type(self) -> int:
        """The device type's number in DLPack."""
        return self[0]

    @property
    def id(self) -> int:
        """The number of the device among those of its type."""
        return self[1]

    @property
    def name(self) -> str:
        """The name of the device type: "cpu", "cuda", …; "device99" for a type that dlferry does not know."""
        return DEVICE_NAMES.get(self[0]) or f"device{self[0]}"

    def __str__(self) -> str:
        return self.name if self[1] == 0 and self[0] in _HOST else f"{self.name}:{self[1]}"

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return _pair_of(other) == tuple(self)
        if isinstance(other, tuple):
            return tuple.__eq__(self, other)
        try:
            return tuple.__eq__(self, device(other)) if other is not None else False
        except (TypeError, ValueError):
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def _make(type: int, id: int) -> Device:
    return tuple.__new__(Device, (type, id))


def _checked(type: int, id: int) -> Device:
    # Types without a name are carried: a tensor may come from a library that is newer than this list.
    if not 1 <= type < 1 << 31:
        raise ValueError(f"device: type, got {type}, want the number of a DLPack device type, 1 or more")
    if type == 1 and id != 0:
        raise ValueError(f"device: id of cpu, got {id}, want 0")
    if not 0 <= id < 1 << 31:
        raise ValueError(f"device: id of {_make(type, 0).name}, got {id}, want 0 to 2147483647")
    return _make(type, id)


def device(obj: Any, /) -> Device:
    """The `Device` that ``obj`` names.

    No framework is imported: their objects are told by their attributes.
    """
    if type(obj) is Device:
        return obj
    if isinstance(obj, str):
        return _parse(obj)
    if isinstance(obj, (tuple, list)):
        if len(obj) != 2:
            raise ValueError(f"device: got {obj!r}, want a pair (type, id)")
        try:
            pair = obj[0].__index__(), obj[1].__index__()
        except (AttributeError, TypeError):
            raise TypeError(f"device: got {obj!r}, want two integers (type, id)") from None
        return _checked(*pair)
    return _framework(obj)


def _pair_of(name: str) -> tuple[int, int] | None:
    """The type and id that a name stands for, or None; "cuda" is "cuda:0", and "device99:1" a type without a name."""
    kind, colon, number = name.partition(":")
    code = DEVICE_TYPES.get(kind)
    if code is None and kind[:6] == "device":
        code = _decimal(kind[6:])
    id = _decimal(number) if colon else 0
    return None if code is None or id is None else (code, id)


def _decimal(s: str) -> int | None:
    """Digits only: no sign, no needless zero in front."""
    return int(s) if s.isascii() and s.isdigit() and len(s) < 11 and (s == "0" or s[0] != "0") else None


def _parse(name: str) -> Device:
    pair = _pair_of(name)
    if pair is not None:
        return _checked(*pair)
    kind = name.partition(":")[0]
    if kind in DEVICE_TYPES:
        raise ValueError(f"device: id of {kind}, got {name!r}, want {kind}:N with N an integer, 0 or more")
    other = _PLATFORMS.get(kind)
    hint = f'; did you mean "{other}"?' if other else ""
    raise ValueError(f"device: name, got {name!r}, want one of {_names()}, with :N for device N{hint}")


def _framework(obj: Any) -> Device:
    cls = type(obj)
    root = cls.__module__.partition(".")[0]
    kind = getattr(obj, "type", None)
    if isinstance(kind, str):  # torch.device, tvm_ffi.Device
        index = getattr(obj, "index", None)
        if index is None or isinstance(index, int):
            if kind == "cuda" and root == "torch" and getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None):
                kind = "rocm"
            return _named(obj, kind, index or 0)
    platform = getattr(obj, "platform", None)
    number = getattr(obj, "id", None)
    if isinstance(platform, str) and isinstance(number, int):  # jax.Device; its CPU devices are numbered, all are one memory
        if platform == "gpu" and "rocm" in str(getattr(getattr(obj, "client", None), "platform_version", "")).lower():
            platform = "rocm"
        return _named(obj, platform, 0 if platform == "cpu" else number)
    if root == "cupy" and isinstance(number, int):
        hip = getattr(getattr(getattr(sys.modules.get("cupy"), "cuda", None), "runtime", None), "is_hip", False)
        return _named(obj, "rocm" if hip else "cuda", number)
    if root == "cuda" and isinstance(getattr(obj, "device_id", None), int):  # cuda.core.Device
        return _named(obj, "cuda", obj.device_id)
    if root == "paddle":  # Place(cpu), Place(gpu:0)
        kind, _, index = str(obj).partition("(")[2].rstrip(")").partition(":")
        return _named(obj, kind, int(index) if index.isdigit() else 0)
    if root == "mlx" and kind is not None:  # Device(cpu, 0), Device(gpu, 0)
        kind = str(kind).rpartition(".")[2]
        return _named(obj, "metal" if kind == "gpu" else kind, 0)
    raise _refusal(obj)


def _named(obj: Any, kind: str, id: int) -> Device:
    code = DEVICE_TYPES.get(_PLATFORMS.get(kind, kind))
    if code is None:
        raise ValueError(f"device: got {obj!r}, want a device that DLPack has: {_names()}")
    return _checked(code, id)


def _names() -> str:
    return ", ".join(DEVICE_NAMES.values())


def _refusal(obj: Any) -> TypeError:
    return TypeError(f"device: got {obj!r} of type {type(obj).__name__}, want {_ACCEPTED}")
