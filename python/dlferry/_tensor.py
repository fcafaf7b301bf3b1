"""The methods of `Tensor` that are written in Python. `bind` puts them on the C type, once, at import."""

from __future__ import annotations

from . import _core, _view
from ._core import Tensor
from ._device import device as _device
from ._dtype import dtype as _dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, SupportsIndex

__all__ = ["bind"]


def __getitem__(self: Tensor, key: Any, /) -> Tensor:
    """A view of part of the tensor.

    Parameters
    ----------
    key : int, slice, Ellipsis, None, or a tuple of them
        Basic indexing: an integer takes one position and drops the axis, None adds an axis of length 1. ``t[i]`` of a vector is a tensor
        without axes; `item` gives its value.

    Returns
    -------
    Tensor
        Shares the memory, and is read-only if the tensor is. It keeps the memory alive.

    Raises
    ------
    IndexError
        For a position outside of its axis, or more indices than axes.
    TypeError
        For masks, index arrays and everything else: use NumPy or PyTorch for advanced indexing.
    """
    return _core._view(self, *_view.index(self.shape, self.strides, key))


def __setitem__(self: Tensor, key: Any, value: Any, /) -> None:
    """Write into part of the tensor.

    Parameters
    ----------
    key : int, slice, Ellipsis, None, or a tuple of them
        As for reading.
    value : number, Tensor, or anything that `asarray` takes
        A number goes to every position; a tensor is broadcast to the shape of the part and cast to the dtype. It may overlap the part.

    Raises
    ------
    BufferError
        When the tensor is read-only, or its memory is not the CPU's.
    ValueError
        When the value does not broadcast to the part, or does not fit the dtype.
    """
    if self.readonly:
        raise BufferError("Tensor.__setitem__: tensor, got a read-only one, want a writable one; t.copy() gives one")
    shape, strides, offset = _view.index(self.shape, self.strides, key)
    part = _core._view(self, shape, strides, offset)
    if isinstance(value, (bool, int, float, complex)):
        _core._fill(part, value)
        return
    if issubclass(type(value), Tensor):
        source = value
    else:
        # Python numbers take the dtype at once; whatever has a dtype of its own is cast.
        source = _core.asarray(value, dtype=self.dtype if isinstance(value, (list, tuple)) else None)
    if source.shape == () and source.dtype != self.dtype and source.device == (1, 0):
        _core._fill(part, source.item())  # NumPy's scalars and their like fit as Python's numbers do, or not at all
        return
    if source.shape != shape:
        repeated = _view.broadcast_strides(source.shape, source.strides, shape)
        if repeated is None:
            raise ValueError(f"Tensor.__setitem__: value, got shape {source.shape}, want one that broadcasts to {shape}")
        source = _core._view(source, shape, repeated, 0)
    _core._assign(part, source)


def __eq__(self: Tensor, other: object, /) -> bool:
    """Identity. Anything else is a TypeError, or up to the other library: tensors do not compare by value."""
    if self is other or other is None:
        return self is other
    if hasattr(type(other), "__array_ufunc__") or hasattr(type(other), "__torch_function__"):
        return NotImplemented
    raise TypeError(
        f"Tensor.__eq__: other, got {type(other).__name__}, want None or the tensor itself: dlferry does no maths; compare t.numpy(), t.item() or t.tolist()"
    )


def __ne__(self: Tensor, other: object, /) -> bool:
    """As ``==``."""
    same = __eq__(self, other)
    return same if same is NotImplemented else not same


def __delitem__(self: Tensor, key: Any, /) -> None:
    """TypeError: the shape of a tensor does not change."""
    raise TypeError("Tensor.__delitem__: tensor, got a deletion, want none: a tensor keeps its shape; slices leave parts out")


def __contains__(self: Tensor, value: object, /) -> bool:
    """TypeError: tensors do not compare by value."""
    raise TypeError("Tensor.__contains__: tensor, got 'in', want an index: tensors do not compare by value; use `in t.numpy()` or t.tolist()")


def __len__(self: Tensor, /) -> int:
    """The length of the first axis; TypeError for a tensor without axes."""
    shape = self.shape
    if not shape:
        raise TypeError("Tensor.__len__: tensor, got one without axes, want one with at least one; item() gives its value")
    return shape[0]


def __iter__(self: Tensor, /) -> Iterator[Tensor]:
    """The parts along the first axis, as views; TypeError for a tensor without axes."""
    shape, strides = self.shape, self.strides
    if not shape:
        raise TypeError("Tensor.__iter__: tensor, got one without axes, want one with at least one; item() gives its value")
    step = strides[0] if 0 not in shape else 0
    rest_shape, rest_strides = shape[1:], strides[1:]
    return (_core._view(self, rest_shape, rest_strides, i * step) for i in range(shape[0]))


def __bool__(self: Tensor, /) -> bool:
    """The truth of a tensor of one element; ValueError for any other."""
    if self.size != 1:
        raise ValueError(f"Tensor.__bool__: size, got {self.size}, want 1; the truth of several elements is not defined")
    return bool(self.item())


def __int__(self: Tensor, /) -> int:
    """The value of a tensor of one element as an int; TypeError for any other."""
    return int(_one(self, "__int__"))


def __float__(self: Tensor, /) -> float:
    """The value of a tensor of one element as a float; TypeError for any other."""
    return float(_one(self, "__float__"))


def __complex__(self: Tensor, /) -> complex:
    """The value of a tensor of one element as a complex; TypeError for any other."""
    return complex(_one(self, "__complex__"))


def __index__(self: Tensor, /) -> int:
    """The value of an integer tensor of one element, for use as an index; TypeError for any other."""
    if not self.dtype.is_integer:
        raise TypeError(f"Tensor.__index__: dtype, got {self.dtype}, want an integer dtype")
    return int(_one(self, "__index__"))


def _one(self: Tensor, function: str) -> Any:
    if self.size != 1:
        raise TypeError(f"Tensor.{function}: size, got {self.size}, want 1; tolist() gives all values")
    return self.item()


def reshape(self: Tensor, shape: SupportsIndex | Sequence[SupportsIndex], /, *, copy: bool | None = None) -> Tensor:
    """The same elements, in row-major order, with another shape.

    Parameters
    ----------
    shape : int or sequence of int
        One of them may be -1: it is computed.
    copy : bool, optional
        None shares the memory where strides can express the new shape, else copies. True always copies, False never.

    Returns
    -------
    Tensor
        A view, read-only if the tensor is, or a new writable tensor.

    Raises
    ------
    ValueError
        When the shape has another number of elements.
    BufferError
        When ``copy=False`` and only a copy can have this shape.
    """
    new = _view.resolve_shape(shape, self.size)
    if not copy:
        strides = _view.reshape_strides(self.shape, self.strides, new)
        if strides is not None:
            return _core._view(self, new, strides, 0)
        if copy is not None:
            raise BufferError(
                f"Tensor.reshape: layout, got shape {self.shape} with strides {self.strides}, want one that has shape {new} without a copy"
                "; copy=None copies"
            )
    return _core._view(self.copy(), new, _view.compact_strides(new), 0)


def permute_dims(self: Tensor, axes: Sequence[SupportsIndex], /) -> Tensor:
    """A view with the axes in another order.

    Parameters
    ----------
    axes : sequence of int
        Each axis once; negative ones count from the end.

    Returns
    -------
    Tensor
        Shares the memory, and is read-only if the tensor is.

    Raises
    ------
    ValueError
        When the axes are not each axis once.
    """
    return _core._view(self, *_view.permute(self.shape, self.strides, axes))


def _transposed(self: Tensor) -> Tensor:
    """The transpose of a matrix, a view; ValueError unless ``ndim`` is 2."""
    return _core._view(self, *_view.transpose(self.shape, self.strides))


def _matrices_transposed(self: Tensor) -> Tensor:
    """A view with the last two axes swapped; ValueError for fewer than two axes."""
    return _core._view(self, *_view.matrix_transpose(self.shape, self.strides))


def to(self: Tensor, device: Any, /, *, copy: bool | None = None) -> Tensor:
    """The tensor on a device.

    Parameters
    ----------
    device : str, Device, tuple or a framework's device object
        Where the result shall be.
    copy : bool, optional
        None gives the tensor itself if it is there already. True always copies; with False, a move to another device is refused.

    Returns
    -------
    Tensor
        The tensor itself, or a copy of it.

    Raises
    ------
    BufferError
        When the tensor cannot be moved there.
    """
    want = _device(device)
    if want == self.device:
        return self.copy() if copy else self
    return _core.from_dlpack(self, device=want, copy=copy)


def numpy(self: Tensor, /) -> Any:
    """The tensor as a `numpy.ndarray` over the same memory, as ``convert(t, "numpy")``.

    Returns
    -------
    numpy.ndarray
        Keeps the memory alive; not writeable if the tensor is read-only.

    Raises
    ------
    BufferError
        When NumPy has no such dtype or cannot reach the device.
    ImportError
        When NumPy is not installed.
    """
    return _core.convert(self, "numpy")


def torch(self: Tensor, /) -> Any:
    """The tensor as a `torch.Tensor`, as ``convert(t, "torch")``.

    Returns
    -------
    torch.Tensor
        Over the same memory, which it keeps alive; a copy if the tensor is read-only or has negative strides, which PyTorch cannot say.

    Raises
    ------
    BufferError
        When PyTorch has no such dtype.
    ImportError
        When PyTorch is not installed.
    """
    return _core.convert(self, "torch")


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's protocol: the tensor as a `numpy.ndarray`.

    Parameters
    ----------
    dtype : numpy.dtype, optional
        Cast to it.
    copy : bool, optional
        None copies only for a cast, True always, False never.

    Raises
    ------
    ValueError
        When ``copy=False`` and the dtype asks for a cast.
    BufferError
        When NumPy has no such dtype or cannot reach the device.
    """
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"Tensor.__array__: dtype, got {dtype!r} with copy=False, want {array.dtype} or copy=None")
        return array.astype(dtype)
    return array.copy() if copy else array


def __copy__(self: Tensor, /) -> Tensor:
    """A new writable tensor with the same elements, as `copy`; a subclass keeps its attributes."""
    return self.copy() if type(self) is Tensor else _with_state(Tensor.__new__(type(self), self.copy()), _state(self))


def __deepcopy__(self: Tensor, memo: dict[int, Any], /) -> Tensor:
    """A new writable tensor with the same elements, as `copy`; a subclass gets deep copies of its attributes."""
    if type(self) is Tensor:
        return self.copy()
    from copy import deepcopy

    memo[id(self)] = made = Tensor.__new__(type(self), self.copy())
    return _with_state(made, deepcopy(_state(self), memo))


def __reduce_ex__(self: Tensor, protocol: SupportsIndex, /) -> Any:
    """Pickle: dtype, shape and the bytes, packed; out of band under protocol 5. A read-only tensor stays read-only."""
    if self.itemsize * 8 != self.dtype.bits * self.dtype.lanes:
        raise BufferError(f"Tensor.__reduce_ex__: dtype, got padded {self.dtype}, want elements of whole bytes; pickle them as another dtype")
    packed = self if self.is_contiguous() else self.contiguous()
    flat = _core._view(packed, (packed.size,), (1,), 0)
    raw = _core._view_dtype(flat, _dtype("uint8")) if packed.size else None
    data: Any
    if raw is None:
        data = b""
    elif int(protocol) >= 5:
        from pickle import PickleBuffer

        data = PickleBuffer(raw)
    else:
        data = memoryview(raw).tobytes()
    return _rebuild, (type(self), data, str(self.dtype), self.shape, self.readonly), _state(self)


def _state(self: Tensor) -> Any:
    """The attributes of a subclass, from `__dict__` and slots, as pickle wants them."""
    return None if type(self) is Tensor else self.__getstate__()


def _with_state(made: Tensor, state: Any) -> Tensor:
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        made.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(made, name, value)
    return made


def _rebuild(cls: type[Tensor], data: Any, dtype_name: str, shape: tuple[int, ...], readonly: bool) -> Tensor:
    """A pickled tensor. Bytes that came out of band are shared where they may be written to and are aligned."""
    from math import prod

    kind = _dtype(dtype_name)
    t: Tensor
    if 0 in shape:
        t = _core.empty(shape, dtype=kind)
    else:
        raw = _core.from_buffer(data)
        if raw.nbytes != prod(shape) * kind.itemsize:
            raise ValueError(f"pickle: buffer, got {raw.nbytes} bytes, want {prod(shape) * kind.itemsize} for {dtype_name} of shape {shape}")
        if (raw.readonly and not readonly) or raw.data_ptr() % 16:
            raw = raw.copy()
        flat = _core._view_dtype(raw, kind)
        t = _core._view(flat, shape, _view.compact_strides(shape), 0)
    if readonly and not t.readonly:
        t = _core._readonly(t)
    return t if cls is Tensor else Tensor.__new__(cls, t)


def __repr__(self: Tensor, /) -> str:
    from ._repr import text

    return text(self)


_METHODS = (
    __eq__, __ne__, __getitem__, __setitem__, __delitem__, __contains__, __len__, __iter__, __bool__, __int__, __float__, __complex__, __index__, __array__, __copy__, __deepcopy__,
    __reduce_ex__, __repr__, reshape, permute_dims, to, numpy, torch,
)  # fmt: skip


def bind() -> None:
    """Put the methods on the type, which is named after the package: dlferry, or a part of one that `dlferry build` made."""
    package = Tensor.__module__ = __name__.rpartition(".")[0]
    for method in _METHODS:
        name = method.__name__
        method.__qualname__ = f"Tensor.{name}"
        method.__module__ = package
        setattr(Tensor, name, method)
    for name, getter in (("T", _transposed), ("mT", _matrices_transposed)):
        getter.__name__ = name
        getter.__qualname__ = f"Tensor.{name}"
        getter.__module__ = package
        setattr(Tensor, name, property(getter))
