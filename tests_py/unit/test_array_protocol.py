import numpy as np
import pytest
from support import Fake, alone, bad

import dlferry as g


def shares(a, t):
    return a.__array_interface__["data"][0] == t.data_ptr()


def test_numpy_functions_take_tensors():
    # case N03, https://github.com/numpy/numpy/issues/25941
    t = g.asarray([1.0, 2.0, 3.0])
    assert shares(np.asarray(t), t) and not shares(np.array(t), t)
    assert np.sum(t) == 6 and (np.asarray(t) + 1).tolist() == [2, 3, 4]
    assert not shares(t.__array__(copy=True), t) and shares(t.__array__(copy=False), t) and shares(t.__array__(), t)
    assert t.__array__("f4").dtype == "f4" and t.__array__(dtype="f4", copy=True).dtype == "f4" and shares(t.__array__("f8", copy=False), t)
    assert isinstance(bad(lambda: t.__array__("f4", copy=False)), ValueError)
    with pytest.raises(ValueError):
        np.asarray(t, dtype="f4", copy=False)
    assert np.asarray(t, dtype="int32").tolist() == [1, 2, 3]


def test_a_copy_of_a_read_only_tensor_is_writable_and_a_view_is_not():
    t = g.from_buffer(b"abc")
    assert not t.__array__().flags.writeable and t.__array__(copy=True).flags.writeable and not np.asarray(t).flags.writeable


def test_arrays_keep_the_memory_alive_and_see_writes():
    # case A13, https://github.com/apache/mxnet/issues/13658
    t = g.asarray(list(range(1000)))
    a = np.asarray(t)
    t[0] = -5
    del t
    for _ in range(50):
        np.full(1 << 18, 3)
    assert a[0] == -5 and a.tolist()[1:] == list(range(1, 1000))


def test_device_and_exotic_tensors_are_no_arrays():
    for t in (g.from_dlpack(Fake(dev=(2, 0))), g.from_dlpack(Fake(ty=(3, 64, 1), shape=(1,))), g.from_dlpack(Fake(ty=(2, 32, 4), shape=(1,)))):
        e = bad(lambda t=t: np.asarray(t))
        assert isinstance(e, (BufferError, TypeError))


def test_a_dtype_numpy_lacks_comes_with_advice():
    # case G06, https://github.com/dmlc/dlpack/issues/45; alone, since ml_dtypes registers its types with NumPy when it is imported
    alone("""
    import dlferry
    try:
        dlferry.zeros((2,), dtype="bfloat16").numpy()
    except BufferError as e:
        assert "astype" in "".join(e.__notes__) and "import ml_dtypes" in "".join(e.__notes__)
    else:
        raise AssertionError("no BufferError")
    """)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 1)])
def test_shapes_survive(shape):
    assert np.asarray(g.zeros(shape)).shape == shape == g.zeros(shape).numpy().shape
