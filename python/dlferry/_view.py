"""The arithmetic of views: what an index, a reshape or a permutation does to shape, strides and offset.

The only place where it is done. Nothing here touches memory: the results go to `_core._view`, which checks them against the bounds of the
tensor again. Strides and offsets count elements.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    _Layout = tuple[tuple[int, ...], tuple[int, ...], int]

__all__ = [
    "broadcast_strides",
    "compact_strides",
    "index",
    "is_compact",
    "is_dense",
    "matrix_transpose",
    "permute",
    "reshape_strides",
    "resolve_shape",
    "span",
    "transpose",
]


def index(shape: tuple[int, ...], strides: tuple[int, ...], key: Any) -> _Layout:
    """Shape, strides and offset of ``t[key]`` for a basic index: integers, slices, ``...`` and None, alone or in a tuple."""
    ndim = len(shape)
    if type(key) is int and ndim:
        offset = _position(key, shape[0], 0) * strides[0]
        if 0 not in shape:
            return shape[1:], strides[1:], offset
    if type(key) is not tuple:
        key = (key,)
    used = 0
    dots = -1
    for i, k in enumerate(key):
        if k is Ellipsis:
            if dots >= 0:
                raise IndexError("Tensor.__getitem__: index, got more than one '...', want at most one")
            dots = i
        elif k is not None:
            used += 1
    if used > ndim:
        raise IndexError(f"Tensor.__getitem__: index, got {used} indices, want at most {ndim}, one an axis")
    new_shape: list[int] = []
    new_strides: list[int] = []
    offset = 0
    axis = 0
    for i, k in enumerate(key):
        if i == dots:
            end = axis + ndim - used
            new_shape += shape[axis:end]
            new_strides += strides[axis:end]
            axis = end
        elif k is None:
            # The stride of an axis of length 1 is never used; a compact one suits consumers that look at it all the same.
            new_shape.append(1)
            new_strides.append(shape[axis] * strides[axis] if axis < ndim else 1)
        elif isinstance(k, slice):
            n, s = shape[axis], strides[axis]
            start, stop, step = _slice_indices(k, n, axis)
            count = len(range(start, stop, step))
            new_shape.append(count)
            new_strides.append(s * step if count > 1 else s)
            if count:
                offset += start * s
            axis += 1
        else:
            n, s = shape[axis], strides[axis]
            offset += _position(k, n, axis) * s
            axis += 1
    new_shape += shape[axis:]
    new_strides += strides[axis:]
    if 0 in new_shape:  # its strides mean nothing, and could leave 64 bits
        return tuple(new_shape), compact_strides(new_shape), 0
    return tuple(new_shape), tuple(new_strides), offset


def _slice_indices(k: slice, n: int, axis: int) -> tuple[int, int, int]:
    try:
        return k.indices(n)
    except TypeError:
        raise TypeError(f"Tensor.__getitem__: slice of axis {axis}, got {k!r}, want integers or None as start, stop and step") from None
    except ValueError:
        raise ValueError(f"Tensor.__getitem__: step of the slice of axis {axis}, got 0, want any other integer") from None


def _position(k: Any, n: int, axis: int) -> int:
    if type(k) is not int:
        k = _integer(k, axis)
    i = k + n if k < 0 else k
    if not 0 <= i < n:
        raise IndexError(f"Tensor.__getitem__: index of axis {axis}, got {k}, want -{n} <= index < {n}")
    return int(i)


def _integer(k: Any, axis: int) -> int:
    # bool is an int, but t[True] means a mask in every array library. An array with axes is advanced indexing, even with one element.
    kind = type(k)
    if not isinstance(k, bool) and kind.__name__ != "bool_" and getattr(kind, "__index__", None) is not None and not getattr(k, "ndim", 0):
        try:
            return int(kind.__index__(k))
        except TypeError:
            pass
    raise TypeError(
        f"Tensor.__getitem__: index of axis {axis}, got {kind.__name__}, want an integer, a slice, '...' or None; "
        "for masks and index arrays use NumPy or PyTorch, as in t.numpy()[mask]"
    )


def resolve_shape(shape: Any, size: int) -> tuple[int, ...]:
    """The shape asked for in a reshape of ``size`` elements, with one -1 filled in."""
    if type(shape) is not tuple and hasattr(type(shape), "__index__"):
        shape = (shape,)
    try:
        dims = [int(type(n).__index__(n)) for n in shape]
    except (TypeError, AttributeError):
        raise TypeError(f"Tensor.reshape: shape, got {shape!r}, want an integer or a sequence of integers") from None
    known = 1
    hole = -1
    for axis, n in enumerate(dims):
        if n == -1:
            if hole >= 0:
                raise ValueError(f"Tensor.reshape: shape, got {tuple(dims)}, want at most one -1")
            hole = axis
        elif n < 0:
            raise ValueError(f"Tensor.reshape: shape, got {n} at axis {axis}, want 0 or more, or one -1")
        else:
            known *= n
    if hole >= 0:
        if known == 0 or size % known:
            raise ValueError(f"Tensor.reshape: shape, got {tuple(dims)}, want a shape of {size} elements")
        dims[hole] = size // known
    elif known != size:
        raise ValueError(f"Tensor.reshape: shape, got {tuple(dims)} of {known} elements, want a shape of {size} elements")
    return tuple(dims)


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides without gaps."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n or 1
    strides.reverse()
    return tuple(strides)


def is_compact(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie in row-major order without gaps; the strides of axes of length 1 and of empty tensors do not matter."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 0:
            return True
        if n != 1 and s != step:
            return 0 in shape
        step *= n
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether some order of the axes makes the elements lie without gaps or overlap, all strides positive."""
    if 0 in shape:
        return True
    step = 1
    for s, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if s != step:
            return False
        step *= n
    return True


def reshape_strides(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """The strides with which the same memory, in the same order, has the shape ``new`` of as many elements; None when only a copy can."""
    if 0 in new:
        return compact_strides(new)
    # Runs of elements at one distance, the last one first: axes melt into the one behind where going round it lands on the next element.
    runs: list[tuple[int, int]] = []
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * n, runs[-1][1])
        else:
            runs.append((n, s))
    result = []
    left, step, next_run = 1, 1, 0
    for n in reversed(new):
        if n != 1 and left == 1:
            left, step = runs[next_run]
            next_run += 1
        if left % n:
            return None
        result.append(step)
        left //= n
        step *= n
    result.reverse()
    return tuple(result)


def permute(shape: Sequence[int], strides: Sequence[int], axes: Any) -> _Layout:
    """Shape, strides and offset with the axes in the order ``axes``; negative axes count from the end."""
    ndim = len(shape)
    try:
        order = [int(type(a).__index__(a)) for a in axes]
    except (TypeError, AttributeError):
        raise TypeError(f"Tensor.permute_dims: axes, got {axes!r}, want a sequence of integers") from None
    seen = set()
    for a in order:
        if not -ndim <= a < ndim:
            raise ValueError(f"Tensor.permute_dims: axes, got {a}, want -{ndim} <= axis < {ndim}")
        seen.add(a % ndim)
    if len(order) != ndim or len(seen) != ndim:
        raise ValueError(f"Tensor.permute_dims: axes, got {tuple(order)}, want each of the {ndim} axes once")
    return tuple(shape[a] for a in order), tuple(strides[a] for a in order), 0


def transpose(shape: Sequence[int], strides: Sequence[int]) -> _Layout:
    """The transpose of a matrix."""
    if len(shape) != 2:
        raise ValueError(f"Tensor.T: ndim, got {len(shape)}, want 2; use mT for stacks of matrices, permute_dims for other orders")
    return (shape[1], shape[0]), (strides[1], strides[0]), 0


def matrix_transpose(shape: Sequence[int], strides: Sequence[int]) -> _Layout:
    """The last two axes swapped."""
    if len(shape) < 2:
        raise ValueError(f"Tensor.mT: ndim, got {len(shape)}, want 2 or more")
    return (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2]), 0


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """The strides with which a tensor repeats to the shape ``new``; None when it does not fit."""
    extra = len(new) - len(shape)
    if extra < 0:
        # Leading axes of length 1 may go, as in NumPy's assignment.
        if any(n != 1 for n in shape[:-extra]):
            return None
        shape, strides, extra = shape[-extra:], strides[-extra:], 0
    result = [0] * extra
    for n, s, want in zip(shape, strides, new[extra:], strict=True):
        if n != want and n != 1:
            return None
        result.append(s if n == want else 0)
    return tuple(result)


def span(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The lowest and the highest offset that an element has; (0, -1) for an empty tensor."""
    low = high = 0
    for n, s in zip(shape, strides, strict=True):
        if n == 0:
            return 0, -1
        if s < 0:
            low += (n - 1) * s
        else:
            high += (n - 1) * s
    return low, high
