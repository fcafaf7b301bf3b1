"""Faults of other libraries that dlferry works around: docs/concepts/peers.md lists them.

Each test shows the fault with the library alone, so that it fails when a new version has mended it (take it off the page then), and what comes
out through dlferry. Every one runs in a process of its own: the libraries' import orders clash.
"""

import importlib.metadata
import importlib.util
import textwrap

import pytest
from support import alone, requires, run

START = """
import gc, os, sys
import dlferry as g, numpy as np
from support import Fake, peek
def error(f):
    try:
        f()
    except Exception as e:
        return e
    return None
def refused(f):
    e = error(f)
    assert type(e) is BufferError, repr(e)
    return str(e)
def exports():
    gc.collect()
    return g.ledger()["exports"]
"""
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def shows(code):
    alone(START + textwrap.dedent(code), quiet=False, env=ENVIRONMENT, timeout=200)


def at_least(package, version):
    """Tests of a fault that is known of this version on."""
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return pytest.mark.skipif(True, reason=f"needs {package}, not installed for this Python")
    old = [int("0" + "".join(filter(str.isdigit, n))) for n in found.split(".")[:2]] < [int(n) for n in version.split(".")]
    return pytest.mark.skipif(old, reason=f"needs {package} {version}, got {found}")


# --- PyTorch ---


@requires("torch")
def test_torch_sends_negative_views_without_their_sign():
    shows("""
    import torch
    z = torch.full((2,), 1 + 2j).conj().imag
    assert z.tolist() == [-2, -2] and np.from_dlpack(z).tolist() == [2, 2]
    assert "neg" in refused(lambda: g.from_dlpack(z)) and "neg" in refused(lambda: g.convert(z, "numpy"))
    assert g.from_dlpack(z.resolve_neg()).tolist() == [-2, -2]
    """)


@at_least("torch", "2.10")
def test_torchs_table_gives_what_its_dlpack_method_refuses():
    shows("""
    import torch
    from support import our_table
    import ctypes
    table = our_table(torch.Tensor)
    for x in (torch.full((2,), 1 + 2j).conj(), torch.ones(2, requires_grad=True)):
        assert isinstance(error(x.__dlpack__), BufferError)
        out = ctypes.c_void_p()
        assert table.from_py(x, ctypes.byref(out)) == 0  # the table gives it
        g.from_address(out.value).close()
        for take in (g.from_dlpack, g.asarray, lambda x: g.convert(x, "numpy")):
            refused(lambda: take(x))
    """)


@requires("torch")
def test_torch_makes_read_only_memory_writable():
    shows("""
    import torch
    a = np.arange(3.0); a.flags.writeable = False
    torch.from_dlpack(a)[0] = 9
    assert a[0] == 9  # torch alone
    x = g.convert(a, "torch")
    x[0] = 5
    assert a[0] == 9 and "read-only" in refused(lambda: g.convert(a, "torch", copy=False))
    """)


@requires("torch")
def test_torch_has_no_negative_strides():
    shows("""
    import torch
    a = np.arange(3.0)[::-1]
    assert "overflow" in str(error(lambda: torch.from_dlpack(a)))
    assert g.convert(a, "torch").tolist() == [2, 1, 0]
    assert "strides" in refused(lambda: g.convert(a, "torch", copy=False))
    """)


# --- JAX ---


@requires("jax")
def test_jax_copies_memory_that_is_not_aligned_to_64_bytes_in_silence():
    shows("""
    import jax
    t = g.zeros((64,))
    assert t.data_ptr() % 64 == 0
    x = jax.dlpack.from_dlpack(t)
    assert x.unsafe_buffer_pointer() == t.data_ptr()  # our own memory is shared
    x = jax.dlpack.from_dlpack(t[4:])
    assert x.unsafe_buffer_pointer() != t[4:].data_ptr()  # jax alone copies
    assert "64" in refused(lambda: g.convert(t[4:], "jax", copy=False))
    assert g.convert(t[4:], "jax").shape == (60,)
    """)


@requires("jax")
def test_jax_rounds_wide_numbers_in_silence():
    shows("""
    import jax
    t = g.asarray([1 + 2.0**-40])
    assert jax.dlpack.from_dlpack(t).dtype == "float32"
    assert "x64" in refused(lambda: g.convert(t, "jax"))
    """)


@requires("jax")
def test_jax_has_a_float4_of_half_bytes():
    shows("""
    import jax.numpy as jnp
    if not hasattr(jnp, "float4_e2m1fn"):
        sys.exit()
    x = jnp.zeros((4,), dtype=jnp.float4_e2m1fn)
    e = error(lambda: x.__dlpack__(max_version=(1, 3)))
    if e is None:
        assert peek(x.__dlpack__(max_version=(1, 3)))["ty"] == (17, 4, 1)
        assert "float4" in refused(lambda: g.from_dlpack(x))
    """)


@pytest.mark.skipif(
    importlib.util.find_spec("jax") is not None and int(importlib.metadata.version("jax").split(".")[1]) < 12,
    reason="JAX before 0.12 exports legacy capsules, which cannot say read-only",
)
@requires("jax", "torch")
def test_immutable_arrays_of_jax_become_writable_in_torch():
    shows("""
    import jax.numpy as jnp, torch
    j = jnp.arange(3.0)
    torch.from_dlpack(j)[0] = 7
    assert float(j[0]) == 7  # torch alone changes it
    k = jnp.arange(3.0)
    g.convert(k, "torch")[0] = 7
    assert float(k[0]) == 0
    """)


# --- MLX ---

REVERSED = """
import mlx.core as mx
x = mx.array([[0.0, 1, 2], [3, 4, 5]])[:, ::-1]
mx.eval(x)
right = [[2, 1, 0], [5, 4, 3]]
said = peek(x.__dlpack__())
assert said["off"] == 8 and said["strides"] == [3, -1] and said["name"] == b"dltensor"
t = g.from_dlpack(x)
assert t.tolist() == right and t.data_ptr() == said["data"] + 8
assert peek(t.__dlpack__())["off"] == 0
"""


@requires("mlx")
def test_mlx_exports_a_byte_offset_and_arrives_right():
    shows(REVERSED)


@requires("mlx", "warp")
def test_warp_ignores_the_byte_offset_of_mlx_and_not_ours():
    shows(
        REVERSED
        + """
import warp as wp
wp.config.quiet = True
wp.init()
assert wp.from_dlpack(x).numpy().tolist() != right  # warp alone reads the wrong memory
assert wp.from_dlpack(t).numpy().tolist() == right and g.convert(x, "warp").numpy().tolist() == right
"""
    )


@requires("mlx", "paddle")
def test_paddle_ignores_the_byte_offset_of_mlx_and_not_ours():
    shows(
        """
    import mlx.core as mx, paddle
    x = mx.array([0.0, 1, 2, 3, 4])[2:]
    mx.eval(x)
    assert peek(x.__dlpack__())["off"] == 8
    assert paddle.from_dlpack(x.__dlpack__()).tolist() != [2, 3, 4]  # paddle alone reads the wrong memory
    assert g.convert(x, "paddle").tolist() == [2, 3, 4] and paddle.from_dlpack(g.from_dlpack(x)).tolist() == [2, 3, 4]
    """
    )


@requires("mlx", "tensorflow")
def test_tensorflow_refuses_the_byte_offset_of_mlx_and_not_ours():
    shows("""
    import mlx.core as mx, tensorflow as tf
    x = mx.array([0.0, 1, 2, 3, 4])[2:]
    mx.eval(x)
    assert error(lambda: tf.experimental.dlpack.from_dlpack(x.__dlpack__())) is not None
    assert g.convert(x, "tensorflow").numpy().tolist() == [2, 3, 4]
    """)


@requires("mlx")
def test_mlx_rounds_wide_numbers_and_copies():
    shows("""
    import mlx.core as mx
    t = g.asarray([1 + 2.0**-40])
    assert mx.from_dlpack(t).dtype == mx.float32
    assert "32 bits" in refused(lambda: g.convert(t, "mlx"))
    u = g.zeros((2,))
    assert "share" in refused(lambda: g.convert(u, "mlx", copy=False))
    """)


# --- PaddlePaddle ---


@requires("paddle")
def test_paddle_names_no_device_number():
    shows("""
    import paddle
    x = paddle.ones([2])
    device = x.__dlpack_device__()
    assert int(device[0]) == 1 and device[1] is None
    for take in (g.from_dlpack, g.asarray, lambda x: g.convert(x, g.Tensor)):
        assert take(x).device == (1, 0)
    """)


@requires("paddle")
def test_negative_strides_are_copied_for_paddle_which_reads_the_wrong_memory():
    shows("""
    import paddle
    a = np.arange(6, dtype="float32").reshape(2, 3)[:, ::-1]
    x = g.convert(a, "paddle")
    assert min(x.strides) >= 0 and x.tolist() == a.tolist()
    assert "strides" in refused(lambda: g.convert(a, "paddle", copy=False))
    """)


@requires("paddle")
def test_paddle_loses_the_first_of_two_imports_of_one_address():
    shows("""
    import paddle
    a = np.ones(3, dtype="float32")
    count = sys.getrefcount(a)
    x = paddle.from_dlpack(a); y = paddle.from_dlpack(a)
    del x, y
    gc.collect()
    assert sys.getrefcount(a) == count + 1  # paddle alone: one reference is never given back
    t = g.zeros((3,))
    before = exports()
    x = paddle.from_dlpack(t); del x
    assert exports() == before
    x = g.convert(t, "paddle"); y = g.convert(x, "paddle")
    assert y is x
    del x, y
    assert exports() == before
    """)


@requires("paddle")
def test_paddle_makes_read_only_memory_writable():
    shows("""
    import paddle
    a = np.arange(3.0); a.flags.writeable = False
    x = paddle.from_dlpack(a); x[0] = 9
    assert a[0] == 9
    y = g.convert(a, "paddle"); y[0] = 5
    assert a[0] == 9 and "read-only" in refused(lambda: g.convert(a, "paddle", copy=False))
    """)


@requires("paddle")
def test_paddles_older_table_attribute_is_an_integer_or_a_capsule_and_either_is_taken():
    shows("""
    import paddle
    assert g._core._exchange_table(paddle.Tensor)
    x = paddle.ones([3])
    assert g.from_dlpack(x).data_ptr() == x.data_ptr()
    """)


@requires("paddle", "tensorflow")
def test_paddle_after_tensorflow_dies_and_dlferry_imports_neither():
    done = run("import tensorflow, paddle; print('both')", timeout=120, env=ENVIRONMENT)
    assert "both" not in done.stdout and done.returncode != 0, "it works now: take it off the page"
    shows("""
    import tensorflow as tf
    t = g.from_dlpack(tf.constant([1.0, 2.0]))
    assert t.tolist() == [1, 2] and "paddle" not in sys.modules
    """)


# --- Warp, ONNX Runtime, TensorFlow, tvm-ffi ---


@requires("warp")
def test_warp_knows_no_max_version_and_writes_no_strides():
    shows("""
    import warp as wp
    wp.config.quiet = True
    wp.init()
    x = wp.array(np.arange(6, dtype="float32").reshape(2, 3), device="cpu")
    assert isinstance(error(lambda: x.__dlpack__(max_version=(1, 3))), TypeError)
    assert peek(x.__dlpack__())["strides"] is None
    t = g.from_dlpack(x)
    assert t.data_ptr() == x.ptr and t.strides == (3, 1) and t.tolist() == [[0, 1, 2], [3, 4, 5]]
    """)


@requires("warp")
def test_warp_has_no_arrays_without_axes():
    shows("""
    import warp as wp
    wp.config.quiet = True
    wp.init()
    assert isinstance(error(lambda: wp.from_dlpack(np.array(1.0))), IndexError)
    before = exports()
    assert isinstance(error(lambda: g.convert(g.full((), 1.0), "warp")), (IndexError, BufferError)) and exports() == before
    assert g.convert(g.full((), 1.0).reshape((1,)), "warp").numpy().tolist() == [1]
    """)


@requires("onnxruntime")
def test_onnxruntime_knows_no_max_version():
    shows("""
    import onnxruntime as ort
    a = np.arange(3.0)
    x = ort.OrtValue.ortvalue_from_numpy(a)
    assert isinstance(error(lambda: x.__dlpack__(max_version=(1, 3))), TypeError)
    t = g.from_dlpack(x)
    assert t.data_ptr() == x.data_ptr() and t.tolist() == [0, 1, 2]
    """)


@requires("onnxruntime")
def test_a_tensor_of_onnxruntime_does_not_hold_the_numpy_array_it_is_over():
    # The capsule holds the OrtValue's inner part, and only its Python part holds the array: nothing to be seen from the outside.
    shows("""
    import onnxruntime as ort, weakref
    class Watched(np.ndarray):
        pass
    a = np.arange(3.0).view(Watched)
    gone = weakref.ref(a)
    x = ort.OrtValue.ortvalue_from_numpy(a)
    capsule = x.__dlpack__()
    del a, x
    gc.collect()
    assert gone() is None  # onnxruntime alone: the capsule outlives its memory
    y = ort.OrtValue.ortvalue_from_numpy(np.arange(3.0))
    t = g.from_dlpack(y, copy=True)  # the way out
    del y
    assert t.tolist() == [0, 1, 2]
    """)


@pytest.mark.parametrize(
    ("package", "take"),
    [
        ("tvm_ffi", "tvm_ffi.from_dlpack(a)"),
        ("warp", "warp.from_dlpack(a)"),
        ("onnxruntime", "onnxruntime.OrtValue.from_dlpack(a)"),
        ("tensorflow", "tensorflow.experimental.dlpack.from_dlpack(a.__dlpack__())"),
    ],
)
def test_libraries_of_legacy_capsules_refuse_read_only_arrays_and_get_a_copy(package, take):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}, not installed for this Python")
    shows(f"""
    import {package}
    if {package!r} == "warp":
        warp.config.quiet = True
        warp.init()
    a = np.arange(3.0); a.flags.writeable = False
    assert isinstance(error(lambda: {take}), BufferError)
    x = g.convert(a, {package!r})
    assert g.from_dlpack(x).tolist() == [0, 1, 2] and g.from_dlpack(x).data_ptr() != a.__array_interface__["data"][0]
    assert "read-only" in refused(lambda: g.convert(a, {package!r}, copy=False))
    """)


def test_a_table_attribute_that_is_an_integer_is_passed_over():
    # DLPack 1.2 had an integer there.
    shows("""
    class Producer:
        __dlpack_c_exchange_api__ = 5
        __c_dlpack_exchange_api__ = 5
        def __init__(self, a): self.a = a
        def __dlpack__(self, **kw): return self.a.__dlpack__(**kw)
        def __dlpack_device__(self): return self.a.__dlpack_device__()
    a = np.arange(3)
    assert g.from_dlpack(Producer(a)).data_ptr() == a.__array_interface__["data"][0]
    """)


# --- dpnp, nanobind, PyArrow, NumPy ---

DPNP = """
from interop_matrix.adapters import sycl_queue
queue = sycl_queue()
import dpnp
"""


def sycl_device():
    done = run("from interop_matrix.adapters import sycl_queue; sycl_queue()")
    if done.returncode:
        pytest.skip(f"needs a SYCL device of the CPU: {done.stderr.strip().splitlines()[-1]}")


@requires("dpnp", "dpctl")
def test_dpnp_exports_offsets_and_calls_arrays_without_axes_read_only():
    sycl_device()
    shows(
        DPNP
        + """
x = dpnp.asarray(np.arange(6, dtype="float32").reshape(2, 3), sycl_queue=queue)[:, ::-1]
said = peek(x.__dlpack__(max_version=(1, 3)))
assert said["off"] == 8 and said["dev"] == (14, 0)
t = g.from_dlpack(x)
assert t.device == (14, 0) and dpnp.asnumpy(dpnp.from_dlpack(t)).tolist() == [[2, 1, 0], [5, 4, 3]]
assert "host" in refused(t.tolist)
assert g.from_dlpack(x, device="cpu").tolist() == [[2, 1, 0], [5, 4, 3]]
one = dpnp.ones((), sycl_queue=queue)
assert one.flags.writable and g.from_dlpack(one).readonly
"""
    )


@requires("nanobind")
def test_nanobind_hides_the_reason_of_a_failed_import():
    shows("""
    from interop_matrix import nanobind_build
    peer = nanobind_build.extension()
    a = np.arange(3.0); a.flags.writeable = False
    e = error(lambda: peer.take(g.from_dlpack(a)))
    assert isinstance(e, TypeError) and "incompatible function arguments" in str(e)
    before = exports()
    assert peek(peer.take_readonly(g.from_dlpack(a)).__dlpack__(max_version=(1, 3)))["flags"] & 1
    assert exports() == before
    """)


@at_least("pyarrow", "26.0")
def test_pyarrow_takes_versioned_capsules_alone():
    shows("""
    import pyarrow as pa
    class Legacy:
        def __init__(self, a): self.a = a
        def __dlpack__(self, **kw): return self.a.__dlpack__()
        def __dlpack_device__(self): return self.a.__dlpack_device__()
    a = np.arange(3.0)
    assert isinstance(error(lambda: pa.Tensor.from_dlpack(Legacy(a))), ValueError)
    assert g.convert(Legacy(a), "pyarrow").to_numpy().__array_interface__["data"][0] == a.__array_interface__["data"][0]
    """)


@at_least("numpy", "2.2")
def test_numpy_shows_every_legacy_capsule_as_read_only():
    shows("""
    class Legacy:
        def __init__(self, a): self.a = a
        def __dlpack__(self, **kw): return self.a.__dlpack__()
        def __dlpack_device__(self): return self.a.__dlpack_device__()
    a = np.arange(3.0)
    assert not np.from_dlpack(Legacy(a)).flags.writeable
    assert g.convert(Legacy(a), "numpy").flags.writeable
    """)
