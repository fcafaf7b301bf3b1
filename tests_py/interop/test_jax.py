"""JAX: immutable arrays stay read-only; 64-byte aligned memory is shared."""

from importlib.metadata import version

import numpy as np
import pytest
from support import bad, requires

import dlferry as g

pytestmark = requires("jax")
jax = pytest.importorskip("jax", reason="needs jax, not installed for this Python")
jnp = jax.numpy


OLD = tuple(int(n) for n in version("jax").split(".")[:2]) < (0, 12)


@pytest.mark.skipif(OLD, reason="JAX before 0.12 exports legacy capsules, which cannot say read-only")
def test_jax_arrays_are_shared_and_read_only():
    j = jnp.arange(6.0).reshape(2, 3)
    t = g.from_dlpack(j)
    assert t.readonly and t.tolist() == j.tolist() and t.data_ptr() == j.unsafe_buffer_pointer()
    assert type(bad(lambda: t.__setitem__((0, 0), 1))) is BufferError
    assert not np.from_dlpack(t).flags.writeable and g.convert(j, "dlferry").readonly
    assert not g.from_dlpack(j, copy=True).readonly


@pytest.mark.skipif(OLD, reason="JAX before 0.12 exports legacy capsules, which cannot say read-only")
def test_our_memory_is_shared_with_jax():
    t = g.full((2, 3), 1.5)
    for j in (jax.dlpack.from_dlpack(t), jnp.from_dlpack(t), g.convert(t, "jax"), g.convert(t, jax.Array)):
        assert isinstance(j, jax.Array) and j.unsafe_buffer_pointer() == t.data_ptr() and j.tolist() == [[1.5] * 3] * 2


@pytest.mark.skipif(OLD, reason="JAX before 0.12 exports legacy capsules, which cannot say read-only")
def test_an_immutable_array_does_not_become_writable_in_torch_or_numpy():
    j = jnp.arange(3.0)
    pytest.importorskip("torch", reason="needs torch, not installed for this Python")
    x = g.convert(j, "torch")
    x[0] = 99
    assert j[0] == 0
    assert type(bad(lambda: g.convert(j, "torch", copy=False))) is BufferError
    assert not g.convert(j, "numpy").flags.writeable


@pytest.mark.parametrize(
    "name", ["bool_", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn", "float8_e5m2"]
)
def test_dtypes_cross_both_ways(name):
    j = jnp.array([0, 1, 1]).astype(getattr(jnp, name))
    try:
        j.__dlpack__(max_version=(1, 3))
    except (BufferError, ValueError, RuntimeError, TypeError, NotImplementedError) as e:
        with pytest.raises(type(e)):
            g.from_dlpack(j)
        return
    t = g.from_dlpack(j)
    assert t.dtype == name.rstrip("_") and t.tolist() == np.asarray(j).astype("c8" if name == "complex64" else "f4").tolist()
    k = g.convert(t, "jax")
    assert k.dtype == j.dtype and k.tolist() == j.tolist()


def test_64_bit_numbers_are_not_rounded_in_silence():
    t = g.asarray([1.0 + 2**-40])
    if not jax.config.jax_enable_x64:
        e = bad(lambda: g.convert(t, "jax"))
        assert type(e) is BufferError and "x64" in str(e) and "float64" in str(e)


def test_strided_and_reversed_memory_arrives_right():
    t = g.asarray(list(range(12)), dtype="int32").reshape((3, 4))
    for v in (t.T, t[:, ::2], t[::-1], t[1:, 1:], t[0, :0], t[1, 1]):
        assert g.convert(v, "jax").tolist() == v.tolist()


def test_copy_false_refuses_what_jax_would_copy():
    t = g.asarray(list(range(12)), dtype="int32")
    for v in (t[1:], t[::2], t[::-1]):
        assert type(bad(lambda v=v: g.convert(v, "jax", copy=False))) is BufferError
    assert g.convert(t, "jax", copy=False).unsafe_buffer_pointer() == t.data_ptr()


def test_tracers_are_refused_without_a_crash():
    seen = []

    @jax.jit
    def f(x):
        try:
            g.from_dlpack(x)
        except Exception as e:
            seen.append(e)
        return x

    f(jnp.ones(3))
    assert len(seen) == 1 and not isinstance(seen[0], SystemError)


def test_containers_become_pytrees_of_jax():
    t = g.full((2,), 1.5)
    out = g.convert({"w": t, "n": [t, 3]}, "jax")
    assert jax.tree_util.tree_map(lambda x: x, out)["n"][1] == 3 and isinstance(out["w"], jax.Array)
