"""What is known about other libraries: what they take, by rule; how to ask them; and the faults that concern users of dlferry.

The rules and faults were found by running the versions named here. `explain` uses a rule only for a library that is installed and not
imported; one that is imported is asked.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._capsule import Reading

__all__ = ["FAULTS", "PEERS", "Fault", "Peer", "Verdict", "faults_of", "installed", "version_of"]

_INTS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_REALS = _INTS | {"float16", "float32", "float64"}
_COMMON = _REALS | {"bool", "complex64", "complex128"}
_COMPLEX = frozenset({"complex32", "complex64", "complex128", "bcomplex32"})
_TORCH8 = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"})
_FLOAT8 = _TORCH8 | {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}
_ML_DTYPES = _FLOAT8 | {"bfloat16", "complex32", "bcomplex32"}
_ODD = _FLOAT8 | {"bfloat16", "complex32", "bcomplex32", "float4_e2m1fn_x2", "opaque_handle64"}
_HOST = frozenset({1, 3, 11, 13})
_CUDA = frozenset({2, 13})
_GPU = _CUDA | {10}


class Verdict:
    """Whether a library would take a tensor: ``kind`` is "zero-copy", "copy", "changes" (dtype or values come
    out as others), "refuses", "takes" (whether it shares is not known) or "unknown"."""

    __slots__ = ("kind", "way_out", "why")

    def __init__(self, kind: str, why: str = "", way_out: str = "") -> None:
        self.kind, self.why, self.way_out = kind, why, way_out


class Peer:
    """A library that takes tensors.

    Parameters
    ----------
    name, module : str
        What it is called, and what to import.
    distributions : tuple of str
        The packages that bring it.
    take : callable or None
        ``(module, x) -> tensor`` of the library; None when only compiled code can ask it.
    kinds : str
        "both", "legacy" or "versioned": the capsules that it reads.
    versioned_since : tuple of int
        The release from which it reads "both"; before, legacy ones only.
    takes, refuses : frozenset of str
        Element types. One in neither set is not known.
    registers : frozenset of str
        Types among the refused that it takes once ml_dtypes is imported, which registers them (from 0.7 on, with NumPy 2.5).
    layout : str
        "any", "forward" (no negative strides), "dense" (no gaps) or "compact" (row-major).
    devices : frozenset of int
        Device types that it may take, its build permitting.
    copies : bool
        Whether it always copies host memory.
    aligned : int
        Host memory is shared only at such addresses, else copied.
    rounds : frozenset of str
        Types that come out with fewer bits.
    offset : str
        What it does about ``byte_offset``: "keeps", "refuses" or "ignores".
    axes : int
        The fewest axes.
    readonly : str
        "keeps", "drops" or "refuses".
    table : bool
        Whether it looks for the exchange table.
    keyword : bool
        Whether it insists on passing max_version.
    heavy : bool
        Whether its import takes seconds and hundreds of megabytes.
    """

    __slots__ = (
        "aligned", "axes", "copies", "devices", "distributions", "heavy", "keyword", "kinds", "layout", "module", "name", "offset",
        "readonly", "refuses", "registers", "rounds", "table", "take", "takes", "versioned_since",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        module: str,
        distributions: tuple[str, ...],
        take: Callable[[Any, Any], Any] | None,
        *,
        kinds: str = "both",
        versioned_since: tuple[int, ...] = (),
        takes: frozenset[str] = frozenset(),
        refuses: frozenset[str] = frozenset(),
        registers: frozenset[str] = frozenset(),
        layout: str = "any",
        devices: frozenset[int] = frozenset({1}),
        copies: bool = False,
        aligned: int = 1,
        rounds: frozenset[str] = frozenset(),
        offset: str = "keeps",
        axes: int = 0,
        readonly: str = "drops",
        table: bool = False,
        keyword: bool = False,
        heavy: bool = False,
    ) -> None:
        self.name, self.module, self.distributions, self.take = name, module, distributions, take
        self.kinds, self.versioned_since, self.takes, self.refuses, self.layout = kinds, versioned_since, takes, refuses, layout
        self.registers = registers
        self.devices, self.copies, self.aligned, self.rounds = devices, copies, aligned, rounds
        self.offset, self.axes, self.readonly = offset, axes, readonly
        self.table, self.keyword, self.heavy = table, keyword, heavy

    def judge(self, x: Reading, *, versioned: bool, legacy: bool, keyword: bool, readonly: bool, table: bool) -> Verdict:
        """Would it take a tensor like ``x``, of a producer that gives such capsules? By rule; nothing is called."""
        convert = f'dlferry.convert(x, "{self.name}")'
        by_table = table and self.table
        if x.device[0] not in self.devices:
            return Verdict("refuses", f"takes no memory of {_device(x)}", self._elsewhere(x))
        if not by_table:
            if self.keyword and not keyword:
                return Verdict("refuses", "passes max_version, which this __dlpack__ does not take", convert)
            if self.kinds == "versioned" and not versioned:
                return Verdict("refuses", "reads versioned capsules only", convert)
            if (self.kinds == "legacy" or self._is_old()) and not legacy:
                return Verdict("refuses", "reads legacy capsules only, which this producer does not give here", convert)
        if x.dtype in self.refuses:
            register = "; or import ml_dtypes (0.7 or later, with NumPy 2.5), which registers it" if x.dtype in self.registers else ""
            return Verdict("refuses", f"has no {x.dtype} of its own" if register else f"has no {x.dtype}", _cast(x) + register)
        if readonly and self.readonly == "refuses":
            return Verdict("refuses", "takes read-only memory only where the function says so", "dlferry.from_dlpack(x, copy=True)")
        if len(x.shape) < self.axes:
            return Verdict("refuses", f"wants at least {self.axes} axis", "reshape to (1,) first")
        why = self._layout(x)
        if why:
            return Verdict("refuses", why, f"{convert}, which copies")
        if x.size and x.byte_offset and self.offset == "refuses":
            return Verdict("refuses", "takes no byte offset", convert)
        if x.size and x.byte_offset and self.offset == "ignores":
            return Verdict("changes", f"ignores the byte offset and reads {x.byte_offset} bytes before the data", convert)
        if x.dtype in self.rounds:
            return Verdict("changes", "copies and rounds to fewer bits" + (" unless jax_enable_x64 is set" if self.name == "jax" else ""), _cast(x))
        if x.dtype not in self.takes:
            return Verdict("unknown", f"{x.dtype} was not tried", f"import {self.module} and explain again")
        if self.copies and x.size:
            return Verdict("copy", "copies CPU memory always")
        if x.device[0] == 1 and x.size and x.address % self.aligned:
            return Verdict("copy", f"shares only memory aligned to {self.aligned} bytes", "memory of dlferry is: dlferry.from_dlpack(x, copy=True)")
        if readonly and self.readonly == "drops":
            return Verdict("zero-copy", "gives a writable view of this read-only memory", f"{convert} copies first")
        return Verdict("zero-copy")

    def _is_old(self) -> bool:
        version = version_of(self) if self.versioned_since else None
        return version is not None and tuple(int(n) for n in re.findall(r"\d+", version)[: len(self.versioned_since)]) < self.versioned_since

    def _layout(self, x: Reading) -> str:
        from ._view import is_compact, is_dense

        if self.layout == "any" or x.size == 0 or is_compact(x.shape, x.steps):
            return ""
        if any(s < 0 for n, s in zip(x.shape, x.steps, strict=True) if n > 1):
            return "takes no negative strides"
        if self.layout == "dense" and not is_dense(x.shape, x.steps):
            return "takes no gaps between elements"
        if self.layout == "compact":
            return "takes row-major elements without gaps only"
        return ""

    def _elsewhere(self, x: Reading) -> str:
        if x.device[0] not in _HOST:
            return "copy it to CPU memory first, with its own library"
        return f'{self.name}.asarray(x) or dlferry.convert(x, "{self.name}") copies to the GPU' if self.name == "cupy" else ""


def _device(x: Reading) -> str:
    from ._zconst import DEVICE_NAMES

    return DEVICE_NAMES.get(x.device[0], f"device type {x.device[0]}")


def _cast(x: Reading) -> str:
    if x.dtype.kind in ("handle", "unknown"):
        return ""
    name = "complex64" if x.dtype.is_complex else "float32" if x.dtype.is_floating else "int32" if x.dtype.is_integer else "uint8"
    return f'cast it: dlferry.from_dlpack(x).astype("{name}")'


def _from_dlpack(module: Any, x: Any) -> Any:
    return module.from_dlpack(x)


def _jax(module: Any, x: Any) -> Any:
    from jax import dlpack

    return dlpack.from_dlpack(x)


def _tensorflow(module: Any, x: Any) -> Any:
    return module.experimental.dlpack.from_dlpack(x.__dlpack__())


def _pyarrow(module: Any, x: Any) -> Any:
    return module.Tensor.from_dlpack(x)


def _onnxruntime(module: Any, x: Any) -> Any:
    return module.OrtValue.from_dlpack(x)


PEERS = (
    Peer(
        "numpy", "numpy", ("numpy",), _from_dlpack,
        takes=_COMMON, refuses=_ODD, registers=_ML_DTYPES, devices=_HOST, readonly="keeps",
    ),
    Peer(
        "torch", "torch", ("torch",), _from_dlpack,
        takes=_COMMON | _TORCH8 | {"bfloat16", "complex32", "float4_e2m1fn_x2"}, refuses=_FLOAT8 - _TORCH8 | {"bcomplex32", "opaque_handle64"},
        layout="forward", devices=_GPU | {1, 8, 14, 17},
    ),
    Peer(
        "jax", "jax", ("jax",), _jax, versioned_since=(0, 12),
        takes=_COMMON | _FLOAT8 | {"bfloat16"}, refuses=frozenset({"complex32", "bcomplex32", "float4_e2m1fn_x2", "opaque_handle64"}),
        layout="dense", devices=frozenset({1, 2, 10}), aligned=64, rounds=frozenset({"int64", "uint64", "float64", "complex128"}), readonly="keeps",
    ),
    Peer(
        "tvm_ffi", "tvm_ffi", ("apache-tvm-ffi",), _from_dlpack,
        kinds="legacy", takes=_COMMON | _ODD, devices=frozenset(range(1, 22)), table=True,
    ),
    Peer(
        "array_api_strict", "array_api_strict", ("array-api-strict",), _from_dlpack,
        takes=_COMMON - {"float16"}, refuses=_ODD | {"float16"}, devices=_HOST, readonly="keeps",
    ),
    Peer("cupy", "cupy", ("cupy", "cupy-cuda12x", "cupy-cuda13x"), _from_dlpack, takes=_COMMON, devices=_GPU),
    Peer(
        "mlx", "mlx.core", ("mlx",), _from_dlpack,
        takes=_REALS - {"float64"} | {"bool", "bfloat16", "complex64"}, refuses=_FLOAT8 | {"complex32"}, layout="forward", devices=frozenset({1, 8}), copies=True,
        rounds=frozenset({"float64", "complex128"}),
    ),
    Peer(
        "pyarrow", "pyarrow", ("pyarrow",), _pyarrow,
        kinds="versioned", takes=_REALS, refuses=_COMPLEX | _ODD | {"bool"}, layout="forward", readonly="keeps", keyword=True,
    ),
    Peer(
        "onnxruntime", "onnxruntime", ("onnxruntime", "onnxruntime-gpu"), _onnxruntime,
        kinds="legacy", takes=_REALS | {"bool", "bfloat16", "float8_e4m3fn", "float8_e5m2"}, refuses=_COMPLEX, layout="compact", devices=frozenset({1, 2}),
    ),
    Peer(
        "tensorflow", "tensorflow", ("tensorflow", "tensorflow-cpu"), _tensorflow,
        kinds="legacy", takes=_COMMON - {"uint16", "uint32", "uint64"} | {"bfloat16"}, layout="compact", devices=frozenset({1, 2, 10}),
        offset="refuses", heavy=True,
    ),
    Peer(
        "paddle", "paddle", ("paddlepaddle", "paddlepaddle-gpu"), _from_dlpack,
        takes=_COMMON - {"uint16", "uint32", "uint64"} | {"bfloat16"}, devices=frozenset({1, 2, 3}), offset="ignores", heavy=True,
    ),
    Peer(
        "warp", "warp", ("warp-lang",), _from_dlpack,
        kinds="legacy", takes=_REALS | {"bool", "bfloat16"}, refuses=_COMPLEX, devices=frozenset({1, 2, 3}), offset="ignores", axes=1,
    ),
    Peer(
        "nanobind", "nanobind", ("nanobind",), None,
        takes=_COMMON | _ODD, devices=frozenset(range(1, 22)), readonly="refuses",
    ),
)  # fmt: skip


class Fault:
    """A fault of another library: the version it was seen in, what happens, and what dlferry does about it."""

    __slots__ = ("dlferry", "peer", "seen", "what")

    def __init__(self, peer: str, seen: str, what: str, dlferry: str) -> None:
        self.peer, self.seen, self.what, self.dlferry = peer, seen, what, dlferry


FAULTS = (
    Fault("torch", "2.15.0", "a tensor with the negative bit (z.conj().imag) goes out without it: the values change sign",
          "refuses it and says x.resolve_neg()"),
    Fault("torch", "2.15.0", "the exchange table also gives tensors that are conjugate or require grad, which __dlpack__ refuses",
          "refuses them as __dlpack__ does"),
    Fault("torch", "2.15.0", "READ_ONLY is dropped: torch.from_dlpack gives a writable view of read-only memory",
          "convert copies first; copy=False is a BufferError"),
    Fault("torch", "2.15.0", "negative strides are refused with 'Storage size calculation overflowed'",
          "convert copies first; copy=False is a BufferError"),
    Fault("numpy", "2.5.5", "a legacy capsule always comes out read-only", "exports versioned capsules whenever it is asked for them"),
    Fault("jax", "0.12.0.1", "host memory that is not aligned to 64 bytes is copied without a word",
          "aligns its own memory to 64 bytes; convert(copy=False) refuses what JAX would copy"),
    Fault("jax", "0.12.0.1", "64-bit numbers come out as 32-bit ones while jax_enable_x64 is off",
          "convert refuses them and says what to do"),
    Fault("tvm_ffi", "0.1.15.post2", "READ_ONLY is dropped: a writable view of read-only memory", "convert copies first"),
    Fault("tvm_ffi", "0.1.15.post2", "without an exchange table it asks for a legacy capsule, so read-only NumPy arrays are refused",
          "Tensor has the exchange table; convert copies read-only arrays first"),
    Fault("tvm_ffi", "0.1.15.post2", "importing it imports torch when that is installed (seconds instead of 0.3 s)",
          "never imports it unasked"),
    Fault("paddle", "3.3.1", "__dlpack_device__ of CPU tensors is (1, None); JAX and cuda.core fail on it", "takes (1, None) as the CPU"),
    Fault("paddle", "3.3.1", "byte_offset is ignored when it imports: it reads the wrong memory",
          "exports byte_offset 0 always; pass through dlferry"),
    Fault("paddle", "3.3.1", "crashes when imported after TensorFlow in one process", "tries each in a process of its own (matrix)"),
    Fault("paddle", "3.3.1", "READ_ONLY is dropped: a writable view of read-only memory", "convert copies first"),
    Fault("mlx", "0.32.4", "reversed arrays go out with a byte offset that Paddle and Warp ignore",
          "keeps the offset, and exports byte_offset 0 itself"),
    Fault("mlx", "0.32.4", "float64 comes out as float32", "convert refuses 64-bit numbers and says what to do"),
    Fault("onnxruntime", "1.32.0", "__dlpack__ takes no max_version, and versioned capsules are refused",
          "asks again without the keyword; gives legacy capsules where none is asked for"),
    Fault("warp", "1.19.0", "__dlpack__ takes no max_version, and versioned capsules are refused",
          "asks again without the keyword; gives legacy capsules where none is asked for"),
    Fault("warp", "1.19.0", "tensors without axes are an IndexError", "passes the error on; reshape to (1,) first"),
    Fault("warp", "1.19.0", "strides go out as NULL", "reads NULL strides as row-major"),
    Fault("warp", "1.19.0", "byte_offset is ignored when it imports: it reads the wrong memory",
          "exports byte_offset 0 always; pass through dlferry"),
    Fault("tensorflow", "2.21.0", "takes legacy capsules only, not objects with __dlpack__; a byte offset is refused",
          "convert hands it a legacy capsule with byte_offset 0"),
    Fault("tensorflow", "2.21.0", "READ_ONLY is dropped: a writable view of read-only memory", "convert copies first"),
    Fault("pyarrow", "26.0.1", "legacy capsules are refused", "gives versioned capsules to those who pass max_version"),
    Fault("nanobind", "3.1.0", "an output argument that is strided or of another dtype is copied, and what is written is lost",
          "nothing it could do: declare outputs with nb::arg().noconvert()"),
    Fault("nanobind", "3.1.0", "every failed import is a TypeError about incompatible arguments: the real error is lost",
          "explain(x) tells what dlferry would say"),
)  # fmt: skip


def faults_of(name: str) -> list[Fault]:
    """The known faults of one library."""
    return [f for f in FAULTS if f.peer == name]


def version_of(peer: Peer) -> str | None:
    """The installed version, without importing anything of it; None when it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    for name in peer.distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    module = sys.modules.get(peer.module.partition(".")[0])
    found = getattr(module, "__version__", None)
    return found if isinstance(found, str) else None


def installed() -> list[tuple[Peer, str]]:
    """The libraries that are here, with their versions. Nothing is imported."""
    found = ((peer, version_of(peer)) for peer in PEERS)
    return [(peer, version) for peer, version in found if version is not None]
