"""Who keeps what alive: close, with, weak references, subclasses, views and exports."""

import gc
import weakref

import numpy as np
import pytest
from support import N0, U1, Fake, alone, bad, capsule_name, delete_all, peek

import dlferry as g


def test_close_gives_memory_back_at_once_and_ends_use():
    f = Fake()
    t = g.from_dlpack(f)
    t.close()
    assert f.freed == 1 and t.closed
    t.close()
    assert f.freed == 1
    for use in (
        t.tolist,
        t.item,
        t.copy,
        t.contiguous,
        t.data_ptr,
        t.__dlpack__,
        t.numpy,
        lambda: memoryview(t),
        lambda: t[0],
        lambda: t.reshape(-1),
        lambda: g.from_dlpack(t),
        lambda: g.asarray(t),
        lambda: g.convert(t, "numpy"),
        lambda: t.__setitem__(0, 1),
        lambda: t.astype("int8"),
        lambda: np.from_dlpack(t),
        t.__enter__,
        lambda: t.permute_dims((0,)),
        lambda: t.to("cpu", copy=True),
        lambda: bool(t[:1]),
        lambda: g.Tensor(t),
        lambda: list(t),
        lambda: t.__array__(),
        lambda: g._core._readonly(t),
    ):
        e = bad(use)
        assert isinstance(e, ValueError) and "closed" in str(e), repr(e)
    assert t.shape == (4,) and t.dtype == "uint8" and t.device == "cpu" and "closed" in repr(t) and len(t) == 4
    assert isinstance(t.astype("uint8", copy=False), g.Tensor)


def test_views_and_exports_outlive_close():
    f = Fake()
    with g.from_dlpack(f) as t:
        view, capsule = t[1:], t.__dlpack__()
        a = np.from_dlpack(t)
    assert t.closed and f.freed == 0 and view.tolist() == [1, 2, 3] and a.tolist() == [0, 1, 2, 3]
    del view, a
    assert f.freed == 0
    del capsule
    assert f.freed == 1


def test_a_with_block_closes_after_an_exception_and_lets_it_pass():
    f = Fake()
    with pytest.raises(KeyError), g.from_dlpack(f):
        raise KeyError
    assert f.freed == 1


def test_a_with_block_that_cannot_close_says_so():
    t = g.zeros((2,))
    with pytest.raises(BufferError), t:
        m = memoryview(t)
    m.release()


def test_unconsumed_capsules_of_both_kinds_give_everything_back():
    # case A04, https://github.com/Genesis-Embodied-AI/quadrants/pull/598
    t = g.asarray([1.0] * 1000)
    w = weakref.ref(t)
    before = g.ledger()["exports"]
    for _ in range(1000):
        t.__dlpack__()
        t.__dlpack__(max_version=(1, 1))
    assert g.ledger()["exports"] == before
    del t
    assert w() is None


@pytest.mark.parametrize(
    "keywords",
    [{"max_version": (0, 8)}, {"dl_device": (2, 0)}, {"stream": "x"}, {"max_version": "1"}, {"dl_device": 5}, {"copy": 1, "dl_device": (99, 0)}],
)
def test_an_export_that_fails_keeps_nothing(keywords):
    # case A06, https://github.com/pytorch/pytorch/issues/171820
    t = g.empty((1 << 20,), dtype="float8_e4m3fn")
    w = weakref.ref(t)
    before = g.ledger()
    for _ in range(100):
        bad(lambda: t.__dlpack__(**keywords))
    assert g.ledger() == before
    del t
    gc.collect()
    assert w() is None


def test_an_exception_in_flight_survives_the_death_of_a_capsule():
    # case A08, https://github.com/pytorch/pytorch/issues/84056
    def unused():
        c = g.asarray([1]).__dlpack__()  # noqa: F841
        raise ValueError("x")

    def used():
        c = g.from_dlpack(Fake()).__dlpack__(max_version=(1, 0))
        g.from_dlpack(c)
        raise ValueError("x")

    for h in (unused, used):
        with pytest.raises(ValueError, match="^x$"):
            h()


def test_the_source_may_die_before_its_exports():
    # case A13, https://github.com/apache/mxnet/issues/13658
    def make():
        return np.from_dlpack(g.asarray(list(range(1000)))[::-1][::-1])

    a = make()
    gc.collect()
    waste = [np.full(1 << 17, 7) for _ in range(100)]
    assert a.tolist() == list(range(1000)) and len(waste) == 100


def test_capsule_names_are_static():
    # case A16, https://github.com/data-apis/array-api/pull/300
    c = g.asarray([1]).__dlpack__()
    d = g.asarray([1]).__dlpack__(max_version=(1, 0))
    t = g.from_dlpack(d)
    waste = [str(i).encode() * 2 for i in range(100_000)]
    del waste
    gc.collect()
    assert capsule_name(c) == N0 and capsule_name(d) == U1 and t.tolist() == [1]


def test_no_cycle_goes_through_a_tensor_itself():
    # case A17, https://github.com/wjakob/nanobind/issues/930
    gc.disable()
    try:
        a = np.arange(3)
        t = g.from_dlpack(a)
        w = weakref.ref(t)
        del t
        assert w() is None
    finally:
        gc.enable()


def test_a_cycle_through_an_attribute_of_a_subclass_is_collected():
    class Sub(g.Tensor):
        pass

    f = Fake()
    t = Sub(g.from_dlpack(f))
    t.me = [t]
    w = weakref.ref(t)
    del t
    gc.collect()
    assert w() is None and f.freed == 1


def test_a_cycle_through_a_producer_may_leak_but_does_not_crash():
    # case A17
    alone("""
        import gc, dlferry as g, numpy as np
        class A(np.ndarray):
            pass
        for _ in range(100):
            a = np.arange(1000).view(A)
            a.tensor = g.from_dlpack(a)
            del a
            gc.collect()
    """)


def test_two_exports_share_no_struct():
    # case A19, https://github.com/NVIDIA/cudnn-frontend/pull/547
    t = g.zeros((2, 3))
    first = t.__dlpack__()
    a = peek(first)
    second = t.reshape(6).__dlpack__()
    b = peek(second)
    assert peek(first) == a and a["shape"] == [2, 3] and b["shape"] == [6] and a["address"] != b["address"]
    assert a["free"] and a["ctx"] and b["ctx"] != a["ctx"]
    delete_all([second])
    assert peek(first) == a


def test_an_import_leaves_the_producers_struct_alone():
    # case A20, https://github.com/cupy/cupy/pull/1082
    f = Fake(bytes(96), (2, 3), ty=(2, 32, 1), off=4)
    before = bytes(f.m), list(f.shape), list(f.strides)
    t = g.from_dlpack(f)
    u = g.from_dlpack(t.T.__dlpack__())
    np.from_dlpack(u)
    assert (bytes(f.m), list(f.shape), list(f.strides)) == before


def test_our_own_tensor_comes_home_without_wrapping():
    f = Fake()
    t = g.from_dlpack(f)
    base = g.ledger()
    for _ in range(50):
        t = g.from_dlpack(t.__dlpack__(max_version=(1, 3)))
        t = g.from_dlpack(t.__dlpack__())
        t = g.from_dlpack(t)
    assert g.ledger() == base and f.freed == 0
    del t
    assert f.freed == 1


def test_weak_references_and_their_callbacks_work():
    t = g.zeros((1,))
    seen = []
    w = weakref.ref(t, seen.append)
    assert w() is t and weakref.WeakKeyDictionary({t: 1})[t] == 1
    del t
    assert w() is None and seen == [w]


def test_tensors_have_no_dict_and_hash_by_identity():
    t = g.zeros((1,))
    with pytest.raises(AttributeError):
        t.x = 1
    assert hash(t) == hash(t) and t in {t} and not gc.is_tracked(t)


def test_properties_cannot_be_set():
    t = g.zeros((1,))
    for name in ("shape", "strides", "dtype", "device", "ndim", "size", "itemsize", "nbytes", "readonly", "closed", "T"):
        with pytest.raises(AttributeError):
            setattr(t, name, None)


def test_a_subclass_is_a_full_tensor():
    class Sub(g.Tensor):
        def __init__(self, *args, **kwargs):
            self.label = "s"

    t = Sub([[1, 2], [3, 4]], dtype="int8")
    assert t.label == "s" and t.shape == (2, 2) and isinstance(t, g.Tensor) and gc.is_tracked(t) and repr(t).startswith("Sub(")
    assert type(t[0]) is g.Tensor and np.from_dlpack(t).tolist() == [[1, 2], [3, 4]] and g.from_dlpack(t).data_ptr() == t.data_ptr()
    assert Sub(t).data_ptr() == t.data_ptr() and memoryview(t).obj is t
    w = weakref.ref(t)
    del t
    gc.collect()
    assert w() is None


def test_a_subclass_may_be_made_with_slots_new_and_many_bases():
    class Mixin:
        __slots__ = ()

        def double(self):
            return [2 * x for x in self.tolist()]

    class Sub(Mixin, g.Tensor):
        __slots__ = ("unit",)

        def __new__(cls, values, unit):
            self = super().__new__(cls, values)
            self.unit = unit
            return self

    t = Sub([1, 2], "m")
    assert t.unit == "m" and t.double() == [2, 4] and not hasattr(t, "__dict__")
    for _ in range(100):
        Sub([1], "x")


def test_a_resurrected_subclass_instance_stays_usable():
    kept = []

    class Sub(g.Tensor):
        def __del__(self):
            kept.append(self)

    Sub([1, 2, 3])
    gc.collect()
    assert kept[0].tolist() == [1, 2, 3]
    t = kept.pop()
    del t
    kept.clear()


def test_a_long_chain_of_owners_ends_without_overflowing_the_stack():
    alone("""
        import dlferry as g
        t = g.zeros((1,), dtype="uint8")
        p = t.data_ptr()
        for _ in range(300_000):
            t = g.wrap_pointer(p, (1,), "uint8", owner=t)
        del t
        assert g.ledger()["storages"] == 0, g.ledger()
        t = g.zeros((1,), dtype="uint8")
        for _ in range(300_000):
            t = g.from_buffer(t)
        del t
        assert g.ledger()["storages"] == 0, g.ledger()
    """)


def test_a_deleter_that_uses_dlferry_again_works():
    seen = []

    class F(Fake):
        def _free(self, _):
            super()._free(_)
            seen.append(g.from_dlpack(Fake()).tolist())
            seen.append(g.ledger()["tensors"] >= 0)

    t = g.from_dlpack(F())
    del t
    assert seen == [[0, 1, 2, 3], True]


def test_an_exception_in_flight_survives_a_deleter_of_python():
    f = Fake()

    def h():
        t = g.from_dlpack(f)  # noqa: F841
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        h()
    gc.collect()
    assert f.freed == 1


def test_the_memory_of_a_tensor_survives_a_close_in_the_middle_of_tolist():
    f = Fake(bytes(range(64)), (64,))
    t = g.from_dlpack(f).reshape((8, 8))
    gc.collect()
    old = gc.get_threshold()

    def hook(phase, info):
        t.close()

    gc.callbacks.append(hook)
    gc.set_threshold(1, 1, 1)
    try:
        values = t.tolist()
    finally:
        gc.set_threshold(*old)
        gc.callbacks.remove(hook)
    assert sum(values, []) == list(range(64)) and t.closed and f.freed == 1
