"""How each library makes a case, takes a tensor of dlferry's, and shows what it holds. Importing this imports none of them."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from pathlib import Path

import numpy as np
from support import peek

import dlferry as g

from .cases import BIG_SIZE, Memory


class Unmakeable(Exception):
    """The library cannot make this case; the text says why."""


class View:
    """What a library holds, as it tells it itself."""

    def __init__(self, pointer, shape, strides, dtype, readonly):
        self.pointer, self.shape, self.strides, self.dtype, self.readonly = pointer, tuple(shape), strides, dtype, readonly


def ml_dtype(name):
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def numpy_base(case, dtype=None):
    """The base of a case as a NumPy array of its own memory; the small floats as ml_dtypes has them."""
    if dtype is None:
        dtype = np.dtype(case.dtype) if hasattr(np, case.dtype) or case.dtype == "bool" else ml_dtype(case.dtype)
    return np.frombuffer(bytearray(case.base), dtype=dtype).reshape(case.base_shape)


class Adapter:
    package = ""  # of the registry, for the version
    module = ""  # to import
    target = None  # what dlferry.convert calls it; None: no target
    flat = False  # arrays have one axis
    big = "no array over a mapped file"  # why there is no such producer; None: make_big makes one
    big_taken = None  # why none is handed to it
    twice = True  # takes the same memory twice at a time, and gives both back
    environment: dict[str, str] = {}  # noqa: RUF012 (constants of classes)

    def load(self):
        self.lib = importlib.import_module(self.module)

    @property
    def versions(self):
        return {self.package: importlib.metadata.version(self.package)}

    def target_type(self):
        return self.target

    def make(self, case):
        """A new array of the library's own, or Unmakeable."""
        if case.readonly:
            raise Unmakeable("has no read-only arrays")
        if case.layout == "unaligned":
            raise Unmakeable("allocates aligned memory alone")
        return self.take_view(self.of_numpy(self.base(case), case), case)

    def base(self, case):
        try:
            return numpy_base(case)
        except AttributeError:
            raise Unmakeable("no such type to make it of") from None

    def of_numpy(self, a, case):
        raise NotImplementedError

    def take_view(self, x, case):
        if case.take is None:
            raise Unmakeable("no way to make such a view")
        return x if case.layout in ("plain", "empty", "scalar") else case.take(x)

    def make_big(self):
        raise Unmakeable(self.big)

    def own(self, t):
        """The library's own way to take a DLPack object."""
        return self.lib.from_dlpack(t)

    def view(self, x):
        """Through DLPack: `x` itself is not changed."""
        try:
            capsule = x.__dlpack__(max_version=(1, 3))
        except TypeError:
            capsule = x.__dlpack__()
        said = peek(capsule)
        readonly = None if said["flags"] is None else bool(said["flags"] & 1)
        return View((said["data"] or 0) + said["off"], said["shape"], said["strides"], said["ty"], readonly)

    def values(self, x):
        """Its own reading of the values, or None."""
        return

    def device(self):
        return (1, 0)


class NumPy(Adapter):
    package = module = target = "numpy"
    big = None

    def base(self, case):
        if not hasattr(np, case.dtype) and case.dtype != "bool":
            raise Unmakeable("has no such type")
        return numpy_base(case)

    def of_numpy(self, a, case):
        return a

    def make(self, case):
        if case.layout == "unaligned":
            a = np.frombuffer(bytearray(b"\0" + case.base), dtype=case.dtype, offset=1).reshape(case.base_shape)
        elif case.layout == "broadcast":
            self.base(case)
            return np.lib.stride_tricks.as_strided(numpy_base(case), case.shape, [s * case.itemsize for s in case.strides])
        else:
            a = self.take_view(self.base(case), case)
        if case.readonly:
            a.flags.writeable = False
        return a

    def make_big(self):
        import tempfile

        with tempfile.NamedTemporaryFile() as file:
            os.truncate(file.fileno(), BIG_SIZE)
            os.pwrite(file.fileno(), b"\x07", BIG_SIZE - 1)
            return np.memmap(file.name, dtype="int8", mode="r+", shape=(BIG_SIZE,))

    def view(self, x):
        dtype = g.DType(x.dtype.name)
        dtype = (dtype.code, dtype.bits, dtype.lanes)
        return View(x.__array_interface__["data"][0], x.shape, [s // x.itemsize for s in x.strides] if x.size else None, dtype, not x.flags.writeable)

    def values(self, x):
        return x.tolist() if x.dtype.kind in "biufc" else None


class MlDtypes(NumPy):
    """NumPy with the types of ml_dtypes registered for DLPack."""

    package = module = "ml_dtypes"
    names = tuple(
        "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()
    )
    big = "NumPy's"
    big_taken = "NumPy's"

    def load(self):
        self.lib = np
        register = getattr(np.dtypes, "register_dlpack_dtype", None)
        if register is None:
            raise ImportError("NumPy before 2.5 has no register_dlpack_dtype")
        for name in self.names:
            dtype = g.DType(name)
            register((dtype.code, dtype.bits), ml_dtype(name))

    def base(self, case):
        if case.dtype not in self.names:
            raise Unmakeable("NumPy's")
        return numpy_base(case)

    def make_big(self):
        raise Unmakeable("NumPy's")

    def values(self, x):
        return None


class Torch(Adapter):
    package = module = target = "torch"
    big = None

    def of_numpy(self, a, case):
        torch = self.lib
        dtype = getattr(torch, case.dtype, None)
        if dtype is None:
            raise Unmakeable("has no such type")
        if a.size == 0:
            return torch.empty(a.shape, dtype=dtype)
        return torch.frombuffer(bytearray(a.tobytes()), dtype=torch.uint8).clone().view(dtype).reshape(a.shape)

    def base(self, case):
        return np.frombuffer(bytearray(case.base), dtype=f"V{case.itemsize}").reshape(case.base_shape)

    def take_view(self, x, case):
        if case.layout == "negative":
            raise Unmakeable("has no negative strides")
        if case.layout == "broadcast":
            return x.reshape(-1)[:1].expand(case.shape) if case.flat else x.expand(case.shape)
        return super().take_view(x, case)

    def make_big(self):
        import tempfile

        with tempfile.NamedTemporaryFile() as file:
            os.truncate(file.fileno(), BIG_SIZE)
            os.pwrite(file.fileno(), b"\x07", BIG_SIZE - 1)
            return self.lib.from_file(file.name, shared=True, size=BIG_SIZE, dtype=self.lib.int8)

    def values(self, x):
        return None if "float4" in str(x.dtype) else x.tolist()

    def view(self, x):
        said = super().view(x)
        assert said.pointer == x.data_ptr() or 0 in x.shape, "torch tells two addresses"
        return said


class Jax(Adapter):
    package, module, target = "jax", "jax.numpy", "jax"
    x64 = False

    def load(self):
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", self.x64)
        super().load()

    def own(self, t):
        import jax

        return jax.dlpack.from_dlpack(t)

    def make(self, case):
        if case.layout in ("strided", "transposed", "negative", "broadcast", "offset"):
            raise Unmakeable("its arrays are compact")
        if not self.x64 and case.dtype in ("int64", "uint64", "float64", "complex128"):
            raise Unmakeable("x64 is off")
        case_readonly = case.readonly  # all its arrays are
        if case_readonly:
            raise Unmakeable("all its arrays are read-only")
        return super().make(case)

    def of_numpy(self, a, case):
        return self.lib.asarray(a).copy()

    def values(self, x):
        return x.tolist() if x.dtype.kind in "biufc" and x.dtype.itemsize <= 8 else None


class Jax64(Jax):
    """JAX with x64 on: the wide types alone."""

    x64 = True
    names = ("int64", "uint64", "float64", "complex128")
    big = big_taken = "as with x64 off"

    def base(self, case):
        if case.dtype not in self.names:
            raise Unmakeable("as with x64 off")
        return super().base(case)


class TensorFlow(Adapter):
    package, module, target = "tensorflow-cpu", "tensorflow", "tensorflow"
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "0"}  # noqa: RUF012

    def make(self, case):
        if case.layout in ("strided", "transposed", "negative", "broadcast"):
            raise Unmakeable("its tensors are row-major")
        return super().make(case)

    def of_numpy(self, a, case):
        try:
            return self.lib.identity(self.lib.constant(a))
        except (TypeError, ValueError) as e:
            raise Unmakeable(f"{e}") from None

    def own(self, t):
        return self.lib.experimental.dlpack.from_dlpack(t.__dlpack__())

    def values(self, x):
        return x.numpy().tolist() if x.dtype.is_floating or x.dtype.is_integer or x.dtype.is_bool else None


class Paddle(Adapter):
    package, module, target = "paddlepaddle", "paddle", "paddle"
    twice = False  # loses the first of two imports of one address: test_peer_faults.py

    def of_numpy(self, a, case):
        if not hasattr(self.lib, case.dtype) or case.dtype == "uint16":
            raise Unmakeable("has no such type")
        if case.dtype in ("uint32", "uint64"):
            raise Unmakeable("makes none of NumPy's")
        if a.dtype.kind == "V" or a.dtype.name.startswith(("bfloat", "float8")):
            return self.lib.to_tensor(a.astype("float32")).astype(case.dtype)
        return self.lib.to_tensor(a)

    def take_view(self, x, case):
        if case.layout == "strided":
            return self.lib.as_strided(x, list(case.shape), list(case.strides))
        if case.layout == "negative":
            raise Unmakeable("copies where strides are negative")
        if case.layout == "broadcast":
            return self.lib.as_strided(x, list(case.shape), list(case.strides))
        return super().take_view(x, case)

    def values(self, x):
        return x.tolist() if x.dtype in (self.lib.float32, self.lib.float64, self.lib.int32, self.lib.int64, self.lib.bool) else None


class TvmFfi(Adapter):
    package, module, target = "apache-tvm-ffi", "tvm_ffi", "tvm_ffi"

    def make(self, case):
        """It has no arithmetic and allocates through others: its tensor over a NumPy array."""
        if case.readonly:
            raise Unmakeable("cannot say read-only")
        if case.layout == "unaligned":
            raise Unmakeable("refuses unaligned memory")
        return self.lib.from_dlpack(NumPy.make(self, case))

    def base(self, case):
        return NumPy.base(self, case)

    def of_numpy(self, a, case):
        return a

    def view(self, x):
        said = super().view(x)
        assert said.pointer == x.data_ptr() or 0 in x.shape
        return said


class TvmCall(TvmFfi):
    """A tensor of dlferry as an argument of a packed function, handed back by it."""

    target = None
    big = "as tvm_ffi"

    def load(self):
        super().load()
        self.identity = self.lib.convert(lambda x: x)

    def make(self, case):
        raise Unmakeable("as tvm_ffi")

    def own(self, t):
        return self.identity(t)


class Nanobind(Adapter):
    """An extension of ours, built with nanobind: see nanobind_peer.cpp."""

    package = "nanobind"
    target = None

    def load(self):
        from . import nanobind_build

        self.lib = nanobind_build.extension()

    def make(self, case):
        code, bits, lanes = case.key
        if case.layout == "unaligned":
            raise Unmakeable("allocates aligned memory alone")
        return self.lib.make(case.base, list(case.shape), list(case.strides), case.offset * case.itemsize, code, bits, lanes, case.readonly)

    def own(self, t):
        return self.lib.take(t)

    def live(self):
        return self.lib.live()


class NanobindReadOnly(Nanobind):
    """The same, where the signature says that it only reads."""

    big = "as nanobind"

    def make(self, case):
        raise Unmakeable("as nanobind")

    def own(self, t):
        return self.lib.take_readonly(t)


class ArrowTensor(Adapter):
    package, module, target = "pyarrow", "pyarrow", "pyarrow"
    big = "over a NumPy array alone"

    def of_numpy(self, a, case):
        return self.lib.Tensor.from_numpy(a)

    def make(self, case):
        if case.layout == "unaligned":
            raise Unmakeable("not tried")
        if case.dtype == "bool":
            raise Unmakeable("makes uint8 of it")
        a = NumPy.make(self, case)
        try:
            return self.of_numpy(a, case)
        except self.lib.ArrowInvalid as e:
            raise Unmakeable(str(e)) from None
        except self.lib.ArrowNotImplementedError as e:
            raise Unmakeable(str(e)) from None

    def base(self, case):
        return NumPy.base(self, case)

    def own(self, t):
        return self.lib.Tensor.from_dlpack(t)

    def view(self, x):
        a = x.to_numpy()
        said = NumPy.view(self, a)
        said.readonly = not x.is_mutable
        return said

    def values(self, x):
        return x.to_numpy().tolist()


class ArrowArray(ArrowTensor):
    flat = True
    big = "over a NumPy array alone"

    def target_type(self):
        return self.lib.Array

    def make(self, case):
        if case.readonly:
            raise Unmakeable("all its arrays are read-only")
        if case.layout in ("strided", "negative", "broadcast", "unaligned"):
            raise Unmakeable("its arrays have stride 1")
        a = NumPy.base(self, case)
        try:
            return self.take_view(self.lib.array(a), case)
        except (self.lib.ArrowInvalid, self.lib.ArrowNotImplementedError) as e:
            raise Unmakeable(str(e)) from None

    def own(self, t):
        return self.lib.Array.from_dlpack(t)

    def view(self, x):
        return Adapter.view(self, x)

    def values(self, x):
        return x.to_pylist()


class OnnxRuntime(Adapter):
    package = module = target = "onnxruntime"

    def make(self, case):
        if case.layout in ("strided", "transposed", "negative", "broadcast", "offset"):
            raise Unmakeable("its tensors are row-major")
        return super().make(case)

    def of_numpy(self, a, case):
        numbers = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20}
        try:
            if case.dtype in numbers:
                value = self.lib.OrtValue.ortvalue_from_numpy_with_onnx_type(a, numbers[case.dtype])
                self.kept = a
                return value
            # ortvalue_from_numpy would share NumPy's memory, and its capsule does not hold it.
            element = self.lib.OrtValue.ortvalue_from_numpy(a).element_type()
            value = self.lib.OrtValue.ortvalue_from_shape_and_type(list(a.shape), element)
            if a.size:
                value.update_inplace(a)
            return value
        except RuntimeError as e:
            raise Unmakeable(str(e)) from None

    def own(self, t):
        return self.lib.OrtValue.from_dlpack(t)

    def values(self, x):
        return x.numpy().tolist() if x.element_type() in (1, 3, 5, 6, 7, 9, 11) else None


class Warp(Adapter):
    package, module, target = "warp-lang", "warp", "warp"

    def load(self):
        super().load()
        self.lib.config.quiet = True
        self.lib.init()

    def of_numpy(self, a, case):
        name = "bool" if case.dtype == "bool" else case.dtype
        dtype = getattr(self.lib, name, None)
        if dtype is None or case.layout == "scalar":
            raise Unmakeable("has no such type" if dtype is None else "has no 0-d arrays")
        if a.dtype.kind not in "biuf":
            x = self.lib.empty(a.shape, dtype=dtype, device="cpu")
            import ctypes

            ctypes.memmove(x.ptr, a.tobytes(), a.nbytes)
            return x
        return self.lib.array(a, dtype=dtype, device="cpu")

    def take_view(self, x, case):
        if case.layout in ("negative", "broadcast"):
            raise Unmakeable("no way to make such a view")
        return x.transpose() if case.layout == "transposed" else super().take_view(x, case)

    def view(self, x):
        said = super().view(x)
        assert said.pointer == (x.ptr or 0) or 0 in x.shape
        return said

    def values(self, x):
        return x.numpy().tolist() if x.dtype in (self.lib.float32, self.lib.float64, self.lib.int32, self.lib.bool) else None


class Mlx(Adapter):
    package, module, target = "mlx", "mlx.core", "mlx"
    big_taken = "copies CPU memory: 2 GiB would be touched"

    def of_numpy(self, a, case):
        if not hasattr(self.lib, case.dtype + ("_" if case.dtype == "bool" else "")):
            raise Unmakeable("has no such type")
        if case.dtype in ("float64", "complex128"):
            raise Unmakeable("rounds to 32 bits")
        return self.lib.array(a)

    def take_view(self, x, case):
        if case.layout == "broadcast":
            x = self.lib.broadcast_to(x, case.shape)
        else:
            x = super().take_view(x, case)
        self.lib.eval(x)
        return x

    def values(self, x):
        return x.tolist()


class Strict(Adapter):
    package, module, target = "array-api-strict", "array_api_strict", "array_api_strict"

    def make(self, case):
        a = NumPy.make(self, case)
        return self.lib.asarray(a, copy=False)

    def base(self, case):
        if case.dtype == "float16":
            raise Unmakeable("has no such type")
        return NumPy.base(self, case)

    def of_numpy(self, a, case):
        return a

    def view(self, x):
        return NumPy.view(self, x._array)

    def values(self, x):
        return x._array.tolist()


def sycl_queue():
    """A queue of the CPU's SYCL device, or an ImportError that says what is missing."""
    import dpctl

    # The .icd file of Intel's package names a path of the machine that built it.
    files = importlib.metadata.files("intel-opencl-rt") or ()
    for file in files:
        if file.name == "libintelocl.so":
            os.environ.setdefault("OCL_ICD_FILENAMES", str(Path(file.locate()).resolve()))
    try:
        return dpctl.SyclQueue("opencl:cpu")
    except Exception as e:
        raise ImportError(f"no SYCL device of the CPU ({type(e).__name__}: {e})") from None


class Dpnp(Adapter):
    """Real SYCL memory of a CPU device: (14, 0) to DLPack."""

    package, module, target = "dpnp", "dpnp", "dpnp"
    big_taken = "copies CPU memory: 2 GiB would be touched"

    @property
    def versions(self):
        return {name: importlib.metadata.version(name) for name in ("dpnp", "dpctl", "intel-opencl-rt")}

    def load(self):
        # The .icd file of the pip package names a path of the machine that built it.
        self.queue = sycl_queue()
        super().load()

    def device(self):
        return (14, 0)

    def of_numpy(self, a, case):
        if not hasattr(np, case.dtype) and case.dtype != "bool":
            raise Unmakeable("has no such type")
        return self.lib.asarray(a, sycl_queue=self.queue)

    def take_view(self, x, case):
        if case.layout == "broadcast":
            return self.lib.broadcast_to(x, case.shape)
        return super().take_view(x, case)

    def values(self, x):
        return x.tolist() if isinstance(x, np.ndarray) else self.lib.asnumpy(x).tolist()


class CudaCore(Adapter):
    package, module = "cuda-core", "cuda.core.utils"
    target = None

    def make(self, case):
        a = NumPy.make(self, case)
        return self.own(a)

    def base(self, case):
        return NumPy.base(self, case)

    def of_numpy(self, a, case):
        return a

    def own(self, t):
        x = self.lib.StridedMemoryView.from_dlpack(t, stream_ptr=-1)
        x.dtype  # noqa: B018 (an unknown one fails when it is read)
        return x

    def view(self, x):
        name = np.dtype(x.dtype).name
        dtype = g.DType(name)
        return View(x.ptr, x.shape, x.strides, (dtype.code, dtype.bits, dtype.lanes), x.readonly)


ADAPTERS = {
    "numpy": NumPy,
    "ml_dtypes": MlDtypes,
    "torch": Torch,
    "jax": Jax,
    "jax x64": Jax64,
    "tensorflow": TensorFlow,
    "paddle": Paddle,
    "tvm_ffi": TvmFfi,
    "tvm_ffi call": TvmCall,
    "nanobind": Nanobind,
    "nanobind ro": NanobindReadOnly,
    "pyarrow.Tensor": ArrowTensor,
    "pyarrow.Array": ArrowArray,
    "onnxruntime": OnnxRuntime,
    "warp": Warp,
    "mlx": Mlx,
    "array_api_strict": Strict,
    "dpnp": Dpnp,
    "cuda.core": CudaCore,
}
__all__ = ["ADAPTERS", "Adapter", "Memory", "Unmakeable", "View"]
