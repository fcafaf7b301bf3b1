import gonumstats
import numpy as np
import pytest

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (200, 5)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_least_squares_is_that_of_numpy(shape, order):
    a = np.asarray(RANDOM.standard_normal(shape), order=order)
    b = RANDOM.standard_normal(shape[0])
    before = a.copy(), b.copy()
    x = gonumstats.least_squares(a, b)
    assert type(x) is np.ndarray
    np.testing.assert_allclose(x, np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-9)
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])


def test_strided_and_read_only_arrays_do_too():
    a, b = RANDOM.standard_normal((60, 8))[::3, ::2], RANDOM.standard_normal(40)[::-2]
    a.flags.writeable = False
    np.testing.assert_allclose(gonumstats.least_squares(a, b), np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-9)


def test_a_line_through_points():
    t = np.linspace(0, 1, 50)
    intercept, slope = gonumstats.least_squares(np.stack([np.ones_like(t), t], axis=1), 3 + 2 * t)
    assert (intercept, slope) == (pytest.approx(3), pytest.approx(2))


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones(3), np.ones(3), r"a has the shape \[3\]"),
        (np.ones((0, 2)), np.ones(0), r"a has the shape \[0 2\]"),
        (np.ones((2, 3)), np.ones(2), "2 rows and 3 columns"),
        (np.ones((3, 2)), np.ones(2), r"b has the shape \[2\], want \[3\]"),
        (np.ones((3, 2)), np.ones(3), "no unique solution"),
    ],
)
def test_what_can_not_be_solved_is_refused(a, b, message):
    with pytest.raises(ValueError, match=message):
        gonumstats.least_squares(a, b)


def test_mean_and_standard_deviation():
    x = RANDOM.standard_normal(1000) + 5
    assert gonumstats.mean_std(x) == pytest.approx((x.mean(), x.std(ddof=1)))
    assert gonumstats.mean_std(x[::7]) == pytest.approx((x[::7].mean(), x[::7].std(ddof=1)))
    with pytest.raises(ValueError, match="at least two elements"):
        gonumstats.mean_std(x[:1])


def test_correlation():
    x, y = RANDOM.standard_normal((2, 500))
    y += x
    assert gonumstats.correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert gonumstats.correlation(x, -x) == pytest.approx(-1)
    with pytest.raises(ValueError, match=r"\[500\] and \[499\]"):
        gonumstats.correlation(x, y[1:])
    with pytest.raises(TypeError, match="float32"):
        gonumstats.correlation(x, y.astype(np.float32))
