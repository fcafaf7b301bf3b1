"""Tensors between Go and every array library that speaks DLPack, without a copy.

`from_dlpack` takes a tensor of any library, `convert` hands one to any other, `empty`, `zeros` and `full` make one in memory of dlferry's
own. A `Tensor` is a view of memory; the last view or export to go frees it, whichever library holds it. Importing dlferry imports no other
package and starts no thread.
"""

from __future__ import annotations

from . import _core, _tensor
from ._core import (
    Tensor,
    asarray,
    convert,
    empty,
    from_address,
    from_buffer,
    from_dlpack,
    full,
    get_num_threads,
    ledger,
    set_num_threads,
    wrap_pointer,
    zeros,
)
from ._device import Device, device
from ._dtype import NAMES, DType, dtype, dtype_of_key
from ._zconst import VERSION as DLPACK_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._explain import Explanation

    __version__: str
    bool: DType
    int2: DType
    int4: DType
    int8: DType
    int16: DType
    int32: DType
    int64: DType
    uint2: DType
    uint4: DType
    uint8: DType
    uint16: DType
    uint32: DType
    uint64: DType
    float16: DType
    bfloat16: DType
    float32: DType
    float64: DType
    complex32: DType
    complex64: DType
    complex128: DType
    bcomplex32: DType
    float8_e3m4: DType
    float8_e4m3: DType
    float8_e4m3b11fnuz: DType
    float8_e4m3fn: DType
    float8_e4m3fnuz: DType
    float8_e5m2: DType
    float8_e5m2fnuz: DType
    float8_e8m0fnu: DType
    float6_e2m3fn: DType
    float6_e3m2fn: DType
    float4_e2m1fn: DType
    float4_e2m1fn_x2: DType
    opaque_handle64: DType

__all__ = [
    "DLPACK_VERSION",
    "DType",
    "Device",
    "Tensor",
    "asarray",
    "convert",
    "empty",
    "explain",
    "from_address",
    "from_buffer",
    "from_dlpack",
    "full",
    "get_num_threads",
    "ledger",
    "set_num_threads",
    "wrap_pointer",
    "zeros",
]


def explain(x: Any, /) -> Explanation:
    """What an object is to DLPack, and which libraries would take it.

    Parameters
    ----------
    x : object
        A tensor of any library, a raw capsule, or something that turned out to be neither.

    Returns
    -------
    Explanation
        Prints as text, shows a picture of the memory in notebooks, and gives a dict to programs (`as_dict`): element type, device, layout,
        capsules, exchange table, what is wrong with it, and for each library that is installed whether it would share the memory, copy it
        or refuse it, with a way out.

    Notes
    -----
    Libraries that are imported are asked ("tried"), others judged ("by rule"); none is imported. Capsules that ``x`` gives are read and freed,
    a raw capsule stays as it is, and memory is never written. Errors of ``x`` are findings; they are not raised.
    """
    from ._explain import explain as run

    return run(x)


# What C calls for the rarer cases. Each loads its module when it is first needed and puts that in its own place.


def _first_asarray(obj: object, dtype: Any, device: Any, copy: Any) -> Tensor:
    from . import _asarray as module

    _hooks["asarray"] = module.asarray
    _core._install(**_hooks)
    return module.asarray(obj, dtype, device, copy)


def _first_convert(x: object, to: Any, copy: Any) -> Any:
    from . import _convert as module

    _hooks["convert"] = module.convert
    _core._install(**_hooks)
    return module.convert(x, to, copy)


def _like(function: str, like: Any) -> Any:
    from ._convert import like as run

    return run(function, like)


def _torch_samples() -> Any:
    from ._torch import samples

    return samples()


_hooks: dict[str, Any] = {
    "dtype": dtype,
    "dtype_of_key": dtype_of_key,
    "device": device,
    "asarray": _first_asarray,
    "convert": _first_convert,
    "torch_samples": _torch_samples,
    "like": _like,
}
_core._install(**_hooks)
_tensor.bind()
del dtype, dtype_of_key, device


def __getattr__(name: str) -> Any:
    # What few programs need is made when it is asked for.
    if name in NAMES:
        value: Any = DType(name)
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module 'dlferry' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES, "__version__"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dlferry")
    except PackageNotFoundError:
        return "0+unknown"
