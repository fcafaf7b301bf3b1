"""What `dlferry.convert` does where C has no shorter way: the policy of each library, and dicts, lists and tuples of tensors.

A library can take a tensor as it is only if it can say what the tensor is. `_TARGETS` lists what each cannot say; there, ``copy=None``
copies first and ``copy=False`` is a BufferError, so that no tensor comes out writable, reordered or rounded without anybody asking.
"""

from __future__ import annotations

import sys

from . import _core, _view
from ._core import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._dtype import DType

__all__ = ["convert"]


class _Target:
    """How one library takes tensors."""

    __slots__ = ("keeps_readonly", "layout", "make", "module", "narrows", "shares_host", "type_name")

    def __init__(
        self,
        module: str,
        type_name: str,
        make: Callable[[Tensor, Any, Any], Any],
        *,
        keeps_readonly: bool = False,
        layout: str = "any",
        shares_host: bool = True,
        narrows: Callable[[Any], tuple[str, ...]] | None = None,
    ) -> None:
        self.module = module  # what to import
        self.type_name = type_name  # the tensor type in it
        self.make = make  # (tensor, module, type) -> the library's tensor
        self.keeps_readonly = keeps_readonly  # false: gives a writable view of read-only memory
        self.layout = layout  # any; forward: no negative strides; dense: no gaps; compact: row-major
        self.shares_host = shares_host  # false: copies CPU memory
        self.narrows = narrows  # the dtypes whose values it would round; None: none


def _from_dlpack(t: Tensor, module: Any, cls: Any) -> Any:
    return module.from_dlpack(t)


def _classmethod(t: Tensor, module: Any, cls: Any) -> Any:
    return cls.from_dlpack(t)


def _table(t: Tensor, module: Any, cls: Any) -> Any:
    # A table that refuses keeps the tensor or frees it, nobody knows which: only dtypes that none refuses go that way.
    return _core._to_framework(t, cls) if _core._exchange_table(cls) and t.dtype in _EVERYWHERE else module.from_dlpack(t)


def _numpy(t: Tensor, module: Any, cls: Any) -> Any:
    try:
        return module.from_dlpack(t)
    except (BufferError, RuntimeError) as e:
        on_cpu = t.device == (1, 0)
        if on_cpu and t.dtype in _NUMPY:
            return module.asarray(memoryview(t))  # NumPy before 2.1 asks for a capsule that cannot say read-only
        advice = _without_numpy(t.dtype) if on_cpu else "copy it to the cpu with its own library"
        if isinstance(e, BufferError):
            e.add_note(advice)
            raise
        # NumPy before 2.5
        raise _noted(BufferError(f"convert: tensor, got {t.dtype} on {t.device}, want one that NumPy can hold ({e})"), advice) from e


def _noted(error: BufferError, note: str) -> BufferError:
    # Not in the caller: a local name for what it raises would be a cycle through the traceback, and keep the tensor.
    error.add_note(note)
    return error


def _without_numpy(dtype: DType) -> str:
    text = f"NumPy has no {dtype} of its own"
    if dtype.lanes != 1 or dtype.kind not in ("float", "complex"):
        return text
    text += f"; cast it: t.astype({'complex64' if dtype.is_complex else 'float32'!r}).numpy()"
    if dtype.is_complex:
        return text
    key = dtype.code, dtype.bits
    return (
        f"{text}, or import ml_dtypes (0.7 or later, with NumPy 2.5), which registers it with NumPy; an older one's type is registered by"
        f" numpy.dtypes.register_dlpack_dtype({key}, numpy.dtype(ml_dtypes.{dtype}))"
    )


def _cupy(t: Tensor, module: Any, cls: Any) -> Any:
    return module.asarray(_TARGETS["numpy"].make(t, _load("numpy"), None)) if t.device == (1, 0) else module.from_dlpack(t)


def _dpnp(t: Tensor, module: Any, cls: Any) -> Any:
    # dpnp.from_dlpack gives a NumPy array for memory of the CPU.
    return module.asarray(_TARGETS["numpy"].make(t, _load("numpy"), None)) if t.device == (1, 0) else module.from_dlpack(t)


def _jax(t: Tensor, module: Any, cls: Any) -> Any:
    from jax import dlpack  # module is loaded already

    return dlpack.from_dlpack(t)


def _jax_narrows(module: Any) -> tuple[str, ...]:
    return () if module.config.jax_enable_x64 else ("int64", "uint64", "float64", "complex128")


def _mlx_narrows(module: Any) -> tuple[str, ...]:
    return ("float64", "complex128")


def _tensorflow(t: Tensor, module: Any, cls: Any) -> Any:
    return module.experimental.dlpack.from_dlpack(t.__dlpack__())


def _onnxruntime(t: Tensor, module: Any, cls: Any) -> Any:
    return cls.from_dlpack(t)


def _dlferry(t: Tensor, module: Any, cls: Any) -> Any:
    return t if cls is Tensor else cls(t)


_TARGETS = {
    "numpy": _Target("numpy", "ndarray", _numpy, keeps_readonly=True),
    "torch": _Target("torch", "Tensor", _table, layout="forward"),
    "cupy": _Target("cupy", "ndarray", _cupy, shares_host=False),
    "jax": _Target("jax", "Array", _jax, keeps_readonly=True, layout="dense", narrows=_jax_narrows),
    "mlx": _Target("mlx.core", "array", _from_dlpack, layout="forward", shares_host=False, narrows=_mlx_narrows),
    "tensorflow": _Target("tensorflow", "Tensor", _tensorflow, layout="compact"),
    "paddle": _Target("paddle", "Tensor", _table, layout="forward"),
    "tvm_ffi": _Target("tvm_ffi", "Tensor", _from_dlpack),
    "pyarrow": _Target("pyarrow", "Tensor", _classmethod, keeps_readonly=True, layout="forward"),
    "onnxruntime": _Target("onnxruntime", "OrtValue", _onnxruntime, layout="compact"),
    "warp": _Target("warp", "array", _from_dlpack),
    "array_api_strict": _Target("array_api_strict", "_array_object.Array", _from_dlpack, keeps_readonly=True),
    "dpnp": _Target("dpnp", "ndarray", _dpnp, keeps_readonly=True, shares_host=False),
    "dlferry": _Target("dlferry", "Tensor", _dlferry, keeps_readonly=True),
}

# Types by the package that defines them; the public name may differ.
_TYPES = {
    ("numpy", "ndarray"): "numpy",
    ("torch", "Tensor"): "torch",
    ("cupy", "ndarray"): "cupy",
    ("jax", "Array"): "jax",
    ("jaxlib", "Array"): "jax",  # before jax 0.11
    ("jaxlib", "ArrayImpl"): "jax",
    ("mlx", "array"): "mlx",
    ("tensorflow", "Tensor"): "tensorflow",
    ("tensorflow", "EagerTensor"): "tensorflow",
    ("paddle", "Tensor"): "paddle",
    ("tvm_ffi", "Tensor"): "tvm_ffi",
    ("pyarrow", "Tensor"): "pyarrow",
    ("onnxruntime", "OrtValue"): "onnxruntime",
    ("warp", "array"): "warp",
    ("array_api_strict", "Array"): "array_api_strict",
    ("dpnp", "dpnp_array"): "dpnp",
}

_EVERYWHERE = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_NUMPY = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_LAYOUTS = {
    "forward": "strides that are not negative",
    "dense": "elements without gaps",
    "compact": "elements in row-major order without gaps",
}


def convert(x: Any, to: Any, copy: bool | None = None) -> Any:
    """Tensors of one library as tensors of another; see `dlferry.convert`."""
    target, module, cls = _resolve(to)
    if isinstance(x, (dict, list, tuple)):
        return _Walk(target, module, cls, copy).container(x)
    return _leaf(x, target, module, cls, copy)


def like(function: str, what: Any) -> Any:
    """What an argument ``like=`` of a function means: a type, or the name of a module that has no type of tensors."""
    to = what if isinstance(what, (type, str, type(sys))) else type(what)
    try:
        cls = _resolve(to)[2]
    except (TypeError, ValueError) as e:
        want = f"a tensor, a tensor type such as torch.Tensor, or one of {_names()}"
        raise type(e)(f"{function}: like, got {what if isinstance(what, (type, str)) else to!r}, want {want}") from None
    return cls or (to if isinstance(to, str) else to.__name__)


class _Walk:
    """Converts the tensors in nested dicts, lists and tuples. A tensor that appears twice is converted once."""

    def __init__(self, target: _Target, module: Any, cls: Any, copy: bool | None) -> None:
        self.arguments = target, module, cls, copy
        self.done: dict[int, Any] = {}
        self.open: set[int] = set()

    def any(self, x: Any) -> Any:
        if isinstance(x, (dict, list, tuple)):
            return self.container(x)
        if not _core._speaks_dlpack(x):
            return x
        key = id(x)
        if key not in self.done:
            self.done[key] = _leaf(x, *self.arguments)
        return self.done[key]

    def container(self, x: Any) -> Any:
        if id(x) in self.open:
            raise ValueError(f"convert: x, got a {type(x).__name__} that contains itself, want no cycles")
        self.open.add(id(x))
        try:
            return self._rebuild(x)
        finally:
            self.open.discard(id(x))

    def _rebuild(self, x: Any) -> Any:
        kind = type(x)
        if isinstance(x, dict):
            if kind is dict:
                return {k: self.any(v) for k, v in x.items()}
            new = x.copy()  # OrderedDict, defaultdict: what else they hold stays
            for k, v in x.items():
                new[k] = self.any(v)
            return new
        items = [self.any(v) for v in x]
        if kind is list:
            return items
        if kind is tuple:
            return tuple(items)
        if all(a is b for a, b in zip(items, x, strict=True)):
            return x  # torch.Size and its like: no tensors in it
        if hasattr(kind, "_make"):
            return kind._make(items)  # namedtuple
        return kind(items)


def _leaf(x: Any, target: _Target, module: Any, cls: Any, copy: bool | None) -> Any:
    if not copy and isinstance(x, cls):
        return x
    t = _tensor(x, copy)
    copies = not target.shares_host and t.device == (1, 0)
    if copies and copy is not None and not copy:
        raise BufferError(
            f"convert: copy=False, got CPU memory, want memory that {target.module} can share: it always copies this; copy=None lets it"
        )
    if target.narrows is not None and t.dtype in target.narrows(module):
        enable = "; or jax.config.update('jax_enable_x64', True)" if target.module == "jax" else ""
        raise BufferError(
            f"convert: dtype, got {t.dtype}, want at most 32 bits a number: {target.module} would round the values; cast first with astype(){enable}"
        )
    if not copies and t.readonly and not target.keeps_readonly:
        t = _copied(t, copy, f"a read-only tensor, want a writable one: {target.module} has no read-only tensors")
    if not _fits(t, target.layout):
        t = _copied(t, copy, f"strides {t.strides} for shape {t.shape}, want {_LAYOUTS[target.layout]} for {target.module}")
    if copy is not None and not copy and target.module == "jax" and t.device == (1, 0) and t.data_ptr() % 64:
        raise BufferError("convert: copy=False, got memory not aligned to 64 bytes, want it aligned: jax would copy; copy=None lets it")
    return target.make(t, module, cls)


def _tensor(x: Any, copy: bool | None) -> Tensor:
    if _core._speaks_dlpack(x):
        return _core.from_dlpack(x, copy=copy)
    try:
        memoryview(x).release()
    except TypeError:
        if hasattr(type(x), "__buffer__"):
            raise  # its own
        raise TypeError(
            f"convert: x, got {type(x).__name__}, want a tensor (DLPack or buffer protocol) or dicts, lists and tuples of tensors; "
            "asarray() makes tensors of numbers"
        ) from None
    t = _core.from_buffer(x)
    return t.copy() if copy else t


def _copied(t: Tensor, copy: bool | None, why: str) -> Tensor:
    if copy is not None and not copy:
        raise BufferError(f"convert: copy=False, got {why}; copy=None copies")
    return t.copy()


def _fits(t: Tensor, layout: str) -> bool:
    if layout == "any" or t.is_contiguous():
        return True
    if layout == "forward":
        return all(s >= 0 for s in t.strides) or 0 in t.shape
    return layout == "dense" and _view.is_dense(t.shape, t.strides)


def _load(name: str) -> Any:
    found = sys.modules.get(name)
    if found is None:
        from importlib import import_module

        try:
            found = import_module(name)
        except ImportError as e:
            e.add_note(f"convert: to={name!r} cannot be imported here; install it, or name another library: {_names()}")
            raise
    return found


def _resolve(to: Any) -> tuple[_Target, Any, Any]:
    """The target, its module and its tensor type."""
    if isinstance(to, (type, str)):
        found = _resolved.get(to)
        if found is None:
            found = _resolve_type(to) if isinstance(to, type) else _resolve_name(str(to))
            if found[0] in _TARGETS.values() and found[0].module != "dlferry":
                _resolved[to] = found
                if type(to) is str and found[0].module in ("numpy", "torch"):
                    _core._name_target(to, found[2])
        return found
    if type(to) is type(sys):
        return _resolve_name(to.__name__)
    raise TypeError(f"convert: to, got {to!r} ({type(to).__name__}), want a tensor type such as torch.Tensor, or one of {_names()}")


_resolved: dict[Any, tuple[_Target, Any, Any]] = {}


def _resolve_name(name: str) -> tuple[_Target, Any, Any]:
    target = _TARGETS.get(name.partition(".")[0])
    if target is not None and name in (name.partition(".")[0], target.module, f"{target.module}.{target.type_name}"):
        module = _load(target.module)
        return target, module, _attribute(module, target.type_name)
    module = sys.modules.get(name)
    if module is not None and hasattr(module, "from_dlpack"):
        return _Target(name, "", _from_dlpack), module, ()
    raise ValueError(f"convert: to, got {name!r}, want one of {_names()}, or a tensor type such as torch.Tensor")


def _names() -> str:
    return ", ".join(_TARGETS)


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name, ())
    return module


def _key(cls: type) -> tuple[str, str]:
    """The package and the name of a class; JAX before 0.11 calls its own "jaxlib._jax.Array"."""
    return cls.__module__.partition(".")[0], cls.__qualname__.rpartition(".")[2]


def _resolve_type(to: type) -> tuple[_Target, Any, Any]:
    if issubclass(to, Tensor):
        return _TARGETS["dlferry"], None, to
    root, last = _key(to)
    name = _TYPES.get((root, last))
    if name is not None:
        target = _TARGETS[name]
        return target, _load(target.module), to
    if _core._exchange_table(to) and not any(_key(c) in _TYPES for c in to.__mro__):
        return _Target(root, "", _table), None, to
    if callable(getattr(to, "from_dlpack", None)):
        arrow = (root, last) == ("pyarrow", "Array")
        return _Target(root, "", _classmethod, keeps_readonly=arrow, layout="compact" if arrow else "any"), None, to
    raise TypeError(f"convert: to, got {to.__module__}.{to.__qualname__}, want a tensor type such as torch.Tensor, or one of {_names()}")
