"""The short ways past a library's Python: they must say the same as the long ones, refuse what those refuse, and keep what they hold."""

import gc
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest
from support import alone, bad, requires

import dlferry as g


def address(a):
    return a.__array_interface__["data"][0]


def described(t):
    return t.shape, t.strides, t.dtype, t.data_ptr(), t.readonly, t.device


class Method:
    """The same array by its method alone."""

    def __init__(self, a):
        self.__dlpack__, self.__dlpack_device__ = a.__dlpack__, a.__dlpack_device__


def arrays():
    for code in "?bBhHiIlLqQefdFD":
        a = np.arange(24).astype(code).reshape(2, 3, 4)
        yield from (a, a.T, a[:, ::-1], a[..., ::2], a[:, :, 1:2], a[:0], a[0, 0, 0:0], a[1, 2, 3, ...], np.asfortranarray(a))
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    yield frozen
    yield np.zeros((1,) * 32)
    yield np.lib.stride_tricks.as_strided(np.arange(3), shape=(4, 3), strides=(0, 8))


def test_an_array_read_in_place_is_what_its_method_says():
    for a in arrays():
        try:
            want = described(g.from_dlpack(Method(a)))
        except BufferError:  # NumPy before 2.1 has no capsule for read-only arrays
            assert not a.flags.writeable
            continue
        got = described(g.from_dlpack(a))
        step = [s for s, n in zip(got[1], got[0], strict=True) if n > 1 and 0 not in got[0]]
        assert step == [s for s, n in zip(want[1], want[0], strict=True) if n > 1 and 0 not in want[0]]
        assert (got[0], *got[2:]) == (want[0], *want[2:]), a.dtype


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(3).astype(">i4"),
        lambda: np.zeros(3, dtype="M8[s]"),
        lambda: np.zeros(3, dtype=[("a", "i4"), ("b", "f4")]),
        lambda: np.zeros(3, dtype=object),
        lambda: np.zeros(3, dtype="S4"),
        lambda: np.zeros(2, dtype=[("a", "i1"), ("b", "i4")])["b"],
        lambda: np.ma.masked_array([1, 2], mask=[0, 1]),
    ],
    ids=["big-endian", "datetime", "record", "object", "bytes", "stride of 5", "masked"],
)
def test_what_the_method_refuses_is_refused(make):
    a = make()
    before = sys.getrefcount(a)
    for f in (g.from_dlpack, lambda a: g.convert(a, g.Tensor)):
        bad(lambda f=f: f(a))
    assert sys.getrefcount(a) == before


def test_broadcast_arrays_are_as_their_method_says():
    a, _ = np.broadcast_arrays(np.zeros((1, 3)), np.zeros((2, 3)))
    with warnings.catch_warnings(action="ignore"):  # NumPy's, about writing to them
        t = g.from_dlpack(a)
    assert t.shape == (2, 3) and t.data_ptr() == address(a)


def test_a_subclass_answers_for_itself():
    class Other(np.ndarray):
        def __dlpack__(self, **kw):
            return np.arange(2.0).__dlpack__(**kw)

    assert g.from_dlpack(np.zeros(3).view(Other)).tolist() == [0, 1]


def test_the_array_is_held_as_long_as_anything_over_it():
    a = np.arange(8.0)
    count, before = sys.getrefcount(a), g.ledger()
    t = g.from_dlpack(a)
    b = np.from_dlpack(t)
    assert sys.getrefcount(a) == count + 1
    del t
    assert sys.getrefcount(a) == count + 1 and b[7] == 7
    del b
    assert sys.getrefcount(a) == count and g.ledger() == before
    r = weakref.ref(a)
    t = g.from_dlpack(a)
    del a
    assert r() is not None and t.tolist() == list(range(8))
    t.close()
    assert r() is None


def test_unaligned_arrays_are_copied_and_not_handed_on():
    a = np.frombuffer(bytearray(33), dtype=np.uint8)[1:].view(np.int64)
    assert not a.flags.aligned
    t = g.from_dlpack(a)
    assert t.data_ptr() % 8 == 0 and t.data_ptr() != address(a)
    bad(lambda: g.from_dlpack(a, copy=False))


def test_arrays_made_for_numpy_are_as_numpy_makes_them():
    for a in arrays():
        t = g.from_dlpack(a)
        made = g.convert(t, np.ndarray)
        assert type(made) is np.ndarray and made.dtype == a.dtype and made.shape == a.shape and made.tolist() == a.tolist()
        assert made.flags.writeable == a.flags.writeable and made.flags.aligned
        if a.size:
            assert address(made) == address(a)
            assert (made.flags.c_contiguous, made.flags.f_contiguous) == (a.flags.c_contiguous, a.flags.f_contiguous)


def test_an_array_outlives_the_tensor_it_was_made_of():
    before = g.ledger()
    t = g.full((1000,), 3.0)
    a = g.convert(t, np.ndarray)
    t.close()
    del t
    waste = [np.zeros(1000, np.float32) for _ in range(20)]
    assert a.sum() == 3000 and len(waste) == 20
    view = a[1:]
    del a
    assert view[0] == 3
    del view
    assert g.ledger() == before


def test_a_read_only_tensor_makes_a_read_only_array():
    t = g._core._readonly(g.zeros((3,)))
    a = g.convert(t, np.ndarray)
    assert not a.flags.writeable
    with pytest.raises(ValueError):
        a[0] = 1
    with pytest.raises(ValueError):
        a.flags.writeable = True


def test_a_type_that_gets_a_table_later_is_soon_asked_again():
    class Late:
        def __init__(self, a):
            self.a = a
            self.asked = 0

        def __dlpack__(self, **kw):
            self.asked += 1
            return self.a.__dlpack__(**kw)

        def __dlpack_device__(self):
            return (1, 0)

    x = Late(np.zeros(3))
    g.from_dlpack(x)
    Late.__dlpack_c_exchange_api__ = g.Tensor.__dlpack_c_exchange_api__  # refuses: x is no Tensor; then the method is asked
    for _ in range(300):
        assert g.from_dlpack(x).shape == (3,)
    assert g._core._exchange_table(Late)
    del Late.__dlpack_c_exchange_api__


def test_counts_hold_over_more_threads_than_lines():
    before = g.ledger()
    start, keep = threading.Barrier(150), []

    def one():
        mine = [g.empty((i,)) for i in range(20)] + [g.from_dlpack(np.zeros(3))]
        start.wait(60)
        keep.append([np.from_dlpack(t) for t in mine[1:]])

    threads = [threading.Thread(target=one) for _ in range(150)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    now = g.ledger()
    assert now["exports"] - before["exports"] == 150 * 20 and now["bytes"] - before["bytes"] == 150 * 4 * sum(range(1, 20))
    keep.clear()
    gc.collect()
    assert g.ledger() == before


@requires("torch")
class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        self.t = pytest.importorskip("torch", reason="needs torch, not installed for this Python")

    def test_the_layout_of_tensors_is_learned(self):
        g.from_dlpack(self.t.zeros(3))
        assert g._core._torch_layout_known()

    def test_tensors_that_mean_more_than_their_bytes_are_refused_on_every_way(self):
        t = self.t
        z = t.tensor([1 + 2j, 3 - 4j])
        leaf = t.ones(3, requires_grad=True)
        odd = {
            "conjugate": z.conj(),
            "conjugate view": z.conj()[:1],
            "negative": z.conj().imag,
            "negative view": z.conj().imag[1:],
            "negative int": t._neg_view(t.arange(3)),
            "requires grad": leaf,
            "result of it": leaf * 2,
            "view of it": leaf[1:],
            "parameter": t.nn.Parameter(t.ones(2)),
        }
        for what, x in odd.items():
            before = sys.getrefcount(x)
            for f in (
                g.from_dlpack,
                g.asarray,
                lambda x: g.convert(x, np.ndarray),
                lambda x: g.convert(x, g.Tensor),
                lambda x: g.convert(x, "numpy"),
            ):
                assert isinstance(bad(lambda f=f, x=x: f(x)), BufferError), what
            assert sys.getrefcount(x) == before

    def test_what_looks_like_them_is_taken(self):
        t = self.t
        base = t.arange(6.0)
        with t.no_grad():
            inside = (t.ones(3, requires_grad=True) * 2)[1:]
        with t.inference_mode():
            inferred = t.ones(3)[1:]
        for x in (
            base[2:],
            base.view(2, 3).T,
            t.ones(3, requires_grad=True).detach(),
            inside,
            inferred,
            z_resolved(t),
            t.nn.Parameter(t.ones(2), requires_grad=False),
        ):
            assert g.from_dlpack(x).data_ptr() == x.data_ptr()
            assert g.convert(x, np.ndarray).tolist() == x.tolist()

    def test_a_tensor_is_held_and_let_go(self):
        x = self.t.arange(8.0)
        r = weakref.ref(x)
        before = g.ledger()
        held, a = g.from_dlpack(x), g.convert(x, np.ndarray)
        del x
        gc.collect()
        assert r() is not None and a[7] == 7 and held[7].item() == 7
        del held
        assert r() is not None
        del a
        assert r() is None and g.ledger() == before

    def test_an_array_for_torch_is_let_go_with_the_tensor(self):
        a = np.arange(8.0)
        count, before = sys.getrefcount(a), g.ledger()
        x = g.convert(a, self.t.Tensor)
        view = x[1:]
        del x
        assert sys.getrefcount(a) == count + 1 and view[0] == 1
        del view
        assert sys.getrefcount(a) == count and g.ledger() == before

    def test_an_array_whose_last_reference_torch_holds(self):
        a = np.arange(4.0)
        r = weakref.ref(a)
        x = g.convert(a, self.t.Tensor)
        del a
        gc.collect()
        assert r() is not None and x.tolist() == [0, 1, 2, 3]
        del x
        assert r() is None

    def test_threads_that_end_arrays_while_others_hold_the_gil(self):
        alone(
            """
            import sys, threading, numpy, torch, dlferry as g
            sys.setswitchinterval(1e-5)
            stop = threading.Event()
            def spin():
                while not stop.is_set():
                    sum(range(100))
            def churn():
                for i in range(3000):
                    x = g.convert(numpy.arange(4.0), torch.Tensor)
                    assert x[3] == 3
                    del x
            spinners = [threading.Thread(target=spin) for _ in range(2)]
            workers = [threading.Thread(target=churn) for _ in range(3)]
            for t in spinners + workers: t.start()
            for t in workers: t.join()
            stop.set()
            for t in spinners: t.join()
            assert g.ledger()["storages"] == 0, g.ledger()
            """,
            timeout=120,
        )

    def test_tensors_over_arrays_may_end_in_autograd_threads_and_at_exit(self):
        alone(
            """
            import numpy, torch, dlferry as g
            class F(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, c):
                    ctx.save_for_backward(c)
                    return x * 2
                @staticmethod
                def backward(ctx, grad):
                    (c,) = ctx.saved_tensors
                    return grad * c, None
            for _ in range(50):
                x = torch.ones(3, requires_grad=True)
                F.apply(x, g.convert(numpy.full(3, 5.0), torch.Tensor)).sum().backward()
                assert x.grad.tolist() == [5, 5, 5]
            keep = g.convert(numpy.arange(3.0), torch.Tensor)
            torch.kept_to_the_end = keep
            """,
            timeout=120,
        )


def z_resolved(t):
    return t.tensor([1 + 2j, 3 - 4j]).conj().resolve_conj()
