import fastops
import numpy as np
import pytest


def random(*shape, dtype=np.float32):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_add_writes_into_the_callers_array(dtype):
    a, b = random(2, 30, 40, dtype=dtype)
    dst = np.empty_like(a)
    assert fastops.add(dst, a, b) is None
    np.testing.assert_array_equal(dst, a + b)
    fastops.add(dst.T, a.T, b.T)  # strides are no matter
    np.testing.assert_array_equal(dst, a + b)
    want = a + b
    fastops.add(a, a, b)
    np.testing.assert_array_equal(a, want)


def test_add_refuses_other_shapes_and_read_only_memory():
    a = random(4)
    with pytest.raises(ValueError, match=r"\[4\], \[4\] and \[2\], want the same"):
        fastops.add(a, a, a[:2])
    with pytest.raises(BufferError, match="read-only"):
        fastops.add(np.broadcast_to(a[:1], 4), a, a)
    with pytest.raises(TypeError, match="float64"):
        fastops.add(a, a, a.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sum(dtype):
    x = random(50, 60, dtype=dtype)
    assert fastops.sum(x) == pytest.approx(x.sum(dtype=np.float64), rel=1e-6)
    assert fastops.sum(x[::-1, ::3]) == pytest.approx(x[:, ::3].sum(dtype=np.float64), rel=1e-6)
    assert fastops.sum(x[:0]) == 0


@pytest.mark.parametrize("radius", [0, 1, 2, 100])
def test_box_blur_is_the_mean_of_the_window(radius):
    x = random(7, 9)
    want = [[x[max(i - radius, 0) : i + radius + 1, max(j - radius, 0) : j + radius + 1].mean() for j in range(9)] for i in range(7)]
    got = fastops.box_blur(x, radius)
    assert type(got) is np.ndarray
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(fastops.box_blur(np.asfortranarray(x), radius=radius), got)


def test_box_blur_of_nothing_and_of_wrong_things():
    assert fastops.box_blur(np.empty((0, 3), np.float32)).shape == (0, 3)
    with pytest.raises(ValueError, match="1 dimensions, want 2"):
        fastops.box_blur(random(3))
    with pytest.raises(ValueError, match="radius is -1"):
        fastops.box_blur(random(3, 3), -1)


@pytest.mark.parametrize("k", [0, 1, 10, 200])
def test_top_k(k):
    x = random(200).round(1)  # with ties
    values, indices = fastops.top_k(x, k)
    assert (values.dtype, indices.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(indices, np.argsort(-x, kind="stable")[:k])
    np.testing.assert_array_equal(values, x[indices])


def test_top_k_refuses_more_than_there_are():
    with pytest.raises(ValueError, match="k is 4, want 0 to 3"):
        fastops.top_k(random(3), 4)


def test_torch_gets_tensors_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.randperm(100).float()
    got, want = fastops.top_k(x, 5), torch.topk(x, 5)
    assert torch.equal(got[0], want.values)
    assert torch.equal(got[1], want.indices)

    dst = torch.empty(100)
    fastops.add(dst, x, x)
    assert torch.equal(dst, x + x)

    image = torch.rand(8, 8)
    blurred = fastops.box_blur(image, 1)
    want = torch.nn.functional.avg_pool2d(image[None, None], 3, stride=1, padding=1, count_include_pad=False)[0, 0]
    torch.testing.assert_close(blurred, want)
