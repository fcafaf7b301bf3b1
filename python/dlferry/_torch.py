"""Tensors from which the extension learns where PyTorch keeps what its exchange table does not tell; see pyext/shim/torch.c."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["samples"]


def samples() -> tuple[tuple[tuple[Any, int, bool], ...], int, int] | None:
    """Tensors with their dispatch keys and whether they require grad; the keys of conjugate and negative ones; bytes of a Tensor object."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    key, key_set = torch._C.DispatchKey, torch._C.DispatchKeySet
    kinds = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64)
    plain = [torch.zeros(shape, dtype=kind) for kind in kinds for shape in ((), (3,), (2, 5))]
    with torch.enable_grad():
        leaves = [torch.ones(shape, requires_grad=True) for shape in ((), (4,), (2, 3))]
        leaves.append(torch.ones(3, dtype=torch.complex128, requires_grad=True))
        leaves += [torch._neg_view(leaves[1]), leaves[3].conj()]
    tensors = [*plain, *leaves]
    told = tuple((t, torch._C._dispatch_keys(t).raw_repr(), bool(t.requires_grad)) for t in tensors)
    bits = key_set(key.Conjugate).raw_repr() | key_set(key.Negative).raw_repr()
    if any(keys & bits for _, keys, grad in told if not grad) or not all(told[-i][1] & bits for i in (1, 2)):
        return None
    return told, bits, torch.Tensor.__basicsize__
