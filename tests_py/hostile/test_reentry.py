"""Producers that come back: that call dlferry again, close tensors, raise what nobody expects, change what they gave, or are dropped half-way."""

import ctypes as C
import gc
import threading
import weakref
from unittest import mock

import numpy as np
import pytest
from support import N1, Fake, Table, alone, api, bad, c_library, exchange_type, have_compiler
from support.table import address_of

import dlferry as g

SIZE = C.cast(api.PyObject_Size, C.c_void_p).value


def test_a_producer_that_imports_through_dlferry_while_it_is_asked():
    inner = Fake(bytes([9] * 4))

    class P(Fake):
        def __dlpack__(self, **kw):
            self.inside = [g.from_dlpack(inner), g.asarray(inner), g.from_dlpack(inner.capsule()), g.convert(inner, "numpy")]
            return super().__dlpack__(**kw)

        def __dlpack_device__(self):
            assert g.from_dlpack(Fake()).tolist() == [0, 1, 2, 3]
            return super().__dlpack_device__()

    f = P()
    t = g.from_dlpack(f)
    assert t.tolist() == [0, 1, 2, 3] and all(list(x.tolist()) == [9] * 4 for x in f.inside)
    f.inside.clear()
    del t
    assert f.balanced() and inner.balanced()


def test_a_producer_that_asks_for_itself_for_ever_is_a_recursion_error():
    class P(Fake):
        def __dlpack__(self, **kw):
            return g.from_dlpack(self).__dlpack__(**kw)

    for take in (g.from_dlpack, g.asarray, lambda x: g.convert(x, "numpy")):
        with pytest.raises(RecursionError):
            take(P())


@pytest.mark.parametrize("keywords", [{}, {"max_version": (1, 3)}])
def test_a_producer_may_hand_a_tensor_of_ours_on(keywords):
    source = Fake()
    ours = g.from_dlpack(source)

    class P:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, **kw):
            return self.t.__dlpack__(**(keywords and kw))

        def __dlpack_device__(self):
            return self.t.__dlpack_device__()

    t = g.from_dlpack(P(ours))
    assert t.data_ptr() == ours.data_ptr() and t.tolist() == [0, 1, 2, 3]
    ours.close()
    assert t.tolist() == [0, 1, 2, 3] and source.freed == 0
    del t
    assert source.freed == 1


def test_a_producer_that_closes_the_tensor_it_exports_gives_a_tensor_or_an_error():
    source = Fake()
    ours = g.from_dlpack(source)

    class P:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, **kw):
            c = self.t.__dlpack__(**kw)
            self.t.close()
            return c

    p = P(ours)
    t = g.from_dlpack(p)
    assert t.tolist() == [0, 1, 2, 3] and source.freed == 0
    del t
    assert source.freed == 1
    assert isinstance(bad(lambda: g.from_dlpack(p)), ValueError)


def test_a_producer_that_consumes_its_own_capsule_first():
    class P(Fake):
        def __dlpack__(self, **kw):
            c = super().__dlpack__(**kw)
            self.mine = g.from_dlpack(c)
            return c

    f = P()
    assert type(bad(lambda: g.from_dlpack(f))) is BufferError
    assert f.mine.tolist() == [0, 1, 2, 3]
    del f.mine
    assert f.freed == 1 and f.balanced()


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, RecursionError, StopIteration, BaseException])
@pytest.mark.parametrize("where", ["__dlpack__", "__dlpack_device__", "attribute", "retry", "table", "convert"])
def test_what_is_raised_on_the_way_arrives_and_nothing_is_left(raised, where):
    f = Fake()

    def fail(self, *args, **kw):
        raise raised("mine")

    def retry(self, **kw):
        if "max_version" in kw:
            raise TypeError("old")
        raise raised("mine")

    P = {
        "__dlpack__": lambda: type("P", (Fake,), {"__dlpack__": fail}),
        "__dlpack_device__": lambda: type("P", (Fake,), {"__dlpack_device__": fail}),
        "attribute": lambda: type("P", (), {"__dlpack__": property(fail)}),
        "retry": lambda: type("P", (Fake,), {"__dlpack__": retry}),
        "table": lambda: exchange_type(Table(from_py=SIZE).capsule(), object, __len__=fail),
        "convert": lambda: type("P", (Fake,), {"__dlpack__": fail}),
    }[where]()
    p = P()
    take = (lambda: g.convert([f, {"k": (p,)}], "numpy")) if where == "convert" else lambda: g.from_dlpack(p)
    with pytest.raises(raised, match="mine"):
        take()
    gc.collect()
    assert f.balanced()


def test_what_a_deleter_raises_does_not_reach_the_caller():
    alone("""
        import gc, sys, threading, dlferry as g
        from support import Fake, bad
        seen = []
        sys.unraisablehook = lambda u: seen.append(type(u.exc_value))
        for raised in (ValueError, KeyboardInterrupt, SystemExit, MemoryError):
            class F(Fake):
                def _free(self, p):
                    super()._free(p)
                    raise raised
            f = F(); t = g.from_dlpack(f); u = t[1:]; c = t.__dlpack__(); del t, u; assert f.freed == 0
            del c
            assert f.freed == 1
            f = F(); t = g.from_dlpack(f, copy=True); assert f.freed == 1 and t.tolist() == [0, 1, 2, 3]
            f = F(ver=(2, 0)); assert type(bad(lambda: g.from_dlpack(f))) is BufferError and f.freed == 1
            f = F(flags=2); assert type(bad(lambda: g.from_dlpack(f, copy=False))) is BufferError and f.freed == 1
            f = F()
            with g.from_dlpack(f):
                pass
            assert f.freed == 1
        assert len(seen) == 20, seen
    """)


def test_a_deleter_that_drops_and_makes_other_tensors():
    class F(Fake):
        def _free(self, p):
            super()._free(p)
            self.others.clear()
            self.made = g.from_dlpack(Fake()).copy()
            gc.collect()

    f = F()
    f.others = [g.from_dlpack(Fake()) for _ in range(50)]
    g.from_dlpack(f)
    assert f.freed == 1 and not f.others and f.made.tolist() == [0, 1, 2, 3]
    del f.made


def test_a_deleter_that_drops_the_next_of_a_long_chain():
    # each deleter ends the next import: as deep as the chain is long, if nothing stops it
    alone("""
        import dlferry as g
        from support import Fake, KEEP
        class F(Fake):
            next = None
            def _free(self, p):
                super()._free(p)
                self.next = None
        last, fakes = None, []
        for _ in range(5000):
            f = F(); f.next = last; fakes.append(f)
            last = g.from_dlpack(f)
        del last, f
        g.ledger()
        assert sum(f.freed for f in fakes) == 5000, sum(f.freed for f in fakes)
        assert g.ledger()["imports"] == 0 and g.ledger()["storages"] == 0
    """)


def test_a_deleter_that_lets_another_thread_use_dlferry():
    results = []

    class F(Fake):
        def _free(self, p):
            super()._free(p)
            th = threading.Thread(target=lambda: results.append(g.from_dlpack(Fake()).tolist()))
            th.start()
            th.join(30)

    g.from_dlpack(F())
    assert results == [[0, 1, 2, 3]]


def test_a_tensor_dropped_on_another_python_thread_ends_there():
    where = []

    class F(Fake):
        def _free(self, p):
            super()._free(p)
            where.append(threading.current_thread())

    held = [g.from_dlpack(F())]
    th = threading.Thread(target=held.clear)
    th.start()
    th.join(30)
    assert where == [th]


@pytest.mark.parametrize("ver", [None, (1, 3)])
def test_what_a_producer_changes_later_does_not_matter(ver):
    f = Fake(bytes(range(24)), (2, 3, 4), ver=ver)
    t = g.from_dlpack(f)
    want, view = t.tolist(), t[1]
    f.shape[:] = [2**40, -1, 7]
    f.strides[:] = [2**40] * 3
    f.m.t.ndim = 64
    f.m.t.data = 1
    f.m.t.off = 2**63
    f.m.t.ty.bits = 64
    f.m.t.dev.type = 2
    if ver:
        f.m.major = 9
        f.m.flags = 2**64 - 1
    assert t.tolist() == want and view.tolist() == want[1] and t.copy().tolist() == want and t.device == "cpu" and t.dtype == "uint8"
    assert g.from_dlpack(t.__dlpack__(max_version=(1, 3))).tolist() == want and np.from_dlpack(t).tolist() == want
    f.m.free = f.m.free
    del t, view
    assert f.freed == 1


def test_a_producer_that_changes_its_struct_between_two_exports_is_read_each_time():
    f = Fake(bytes(range(24)), (2, 3))
    first = g.from_dlpack(f)
    f.shape[:] = [3, 2]
    f.strides[:] = [2, 1]
    second = g.from_dlpack(f)
    assert first.shape == (2, 3) and second.shape == (3, 2) and second.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_producer_that_is_dropped_half_way():
    class P(Fake):
        def __dlpack_device__(self):
            holder.clear()  # the last name of the producer that the test has
            return (1, 0)

    import support

    holder = [P()]
    support.KEEP.clear()
    w = weakref.ref(holder[0])
    try:
        t = g.from_dlpack(holder[0])
        assert t.shape == (4,)
        w().buf  # noqa: B018 - the struct still names the producer's memory: it must be alive while the call runs
    except AttributeError:
        pass
    finally:
        support.KEEP.extend(p for p in [w()] if p)


def test_a_container_that_changes_while_it_is_converted():
    class P(Fake):
        def __dlpack__(self, **kw):
            things.clear()
            gc.collect()
            return super().__dlpack__(**kw)

    for make in (lambda: [P(), Fake(), Fake()], lambda: {"a": P(), "b": Fake(), "c": Fake()}):
        things = make()
        try:
            g.convert(things, "numpy")
        except (RuntimeError, ValueError, TypeError, KeyError, IndexError) as e:
            assert not isinstance(e, SystemError)


def test_a_producer_whose_class_changes_while_it_is_asked():
    class Other(Fake):
        def __dlpack__(self, **kw):
            raise AssertionError("the old class was asked for the device")

    class P(Fake):
        def __dlpack_device__(self):
            self.__class__ = Other
            return (1, 0)

    with pytest.raises((AssertionError, BufferError, TypeError)):
        g.from_dlpack(P())
    assert g.from_dlpack(Fake()).tolist() == [0, 1, 2, 3]


# --- objects that answer everything ---


def test_objects_with_an_answer_for_every_attribute_are_a_type_error():
    class Everything:
        def __getattr__(self, name):
            return lambda *a, **k: 5

    class Itself:
        def __getattr__(self, name):
            return self

        def __call__(self, *a, **k):
            return self

    things = [Everything(), Itself(), mock.Mock(), mock.MagicMock(), mock.NonCallableMock(), mock.create_autospec(g.Tensor, instance=True)]
    for thing in things:
        for take in (g.from_dlpack, lambda x: g.convert(x, "numpy")):
            e = bad(lambda take=take, thing=thing: take(thing))
            assert isinstance(e, (TypeError, ValueError)) and len(str(e)) < 2000, repr(e)


def test_an_object_that_lies_about_its_type_is_not_taken_for_ours():
    class Liar:
        @property
        def __class__(self):
            return g.Tensor

    class AlsoCapsule:
        __class__ = type(g.zeros(1).__dlpack__())

    for thing in (Liar(), AlsoCapsule()):
        for take in (
            g.from_dlpack,
            g.Tensor,
            lambda x: g.convert(x, "numpy"),
            lambda x: g.zeros(3).__setitem__(0, x),
            lambda x: g.zeros(3).__setitem__(..., x),
        ):
            bad(lambda take=take, thing=thing: take(thing))


@pytest.mark.parametrize("said", [
    None, 1, (), (1,), (1, 0, 0), [1, 0], "10", "1,0", ("1", "0"), (1.0, 0), (1, 0.5), (None, 0), (None, None), (object(), 0), (2**31, 0), (-1, 0), (1, 2**31), (1, -(2**31) - 1), (2**200, 0), {1: 0},
    ((1, 0),), b"\x01\x00", range(2), (True, "x"), (1j, 0), (float("nan"), 0), (1, []),
])  # fmt: skip
def test_a_device_that_is_no_pair_of_ints_is_a_type_error_or_the_pair_it_means(said):
    # case H02, https://github.com/PaddlePaddle/Paddle/pull/69632
    class P(Fake):
        def __dlpack_device__(self):
            return said

    f = P()
    e = bad(lambda: g.from_dlpack(f))
    assert isinstance(e, (TypeError, ValueError, BufferError)) and f.balanced() and f.calls == []
    assert "__dlpack_device__" in str(e), e


def test_devices_that_are_kinds_of_int_are_taken():
    # case H03, https://github.com/ml-explore/mlx/pull/1165
    class Int(int):
        pass

    class Index:
        def __index__(self):
            return 1

    class Pair(tuple):
        __slots__ = ()

    for said in ((Int(1), Int(0)), (True, False), (np.int64(1), np.int32(0)), (Index(), 0), Pair((1, 0)), (1, None)):

        class P(Fake):
            def __dlpack_device__(self, said=said):
                return said

        try:
            assert g.from_dlpack(P()).tolist() == [0, 1, 2, 3]
        except TypeError as e:
            assert type(said[0]) in (Index, np.int64), e


# --- tables ---


# ctypes prints what a callback raises; C leaves it set.
CALLBACKS = r"""
extern void *PyExc_ValueError, *PyExc_KeyError;
void PyErr_SetString(void *, const char *);
void PyErr_Clear(void);
void *next;
int code, sets;

int give(void *object, void **out)
{
    (void)object;
    *out = next;
    if (sets)
        PyErr_SetString(PyExc_ValueError, "left behind");
    return code;
}

/* As a target: it took the tensor, whatever it says. */
int take(void *managed, void **out)
{
    next = managed;
    *out = 0;
    if (sets)
        PyErr_SetString(PyExc_ValueError, "left behind");
    return code;
}

/* Destructors of capsules, and deleters, that leave the error indicator changed. */
void clears(void *p) { (void)p; PyErr_Clear(); }
void sets_one(void *p) { (void)p; PyErr_SetString(PyExc_KeyError, "left behind"); }
"""


@pytest.fixture(scope="module")
def rude(tmp_path_factory):
    lib = c_library(tmp_path_factory.mktemp("rude"), CALLBACKS, loader=C.PyDLL)
    lib.next = C.c_void_p.in_dll(lib, "next")
    lib.code, lib.sets = C.c_int.in_dll(lib, "code"), C.c_int.in_dll(lib, "sets")
    yield lib
    lib.next.value, lib.code.value, lib.sets.value = None, -1, 0


@have_compiler()
@pytest.mark.parametrize("rc", [1, 2, -1, -2, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("sets", [True, False])
def test_any_code_but_0_is_a_failure(rude, rc, sets):
    """Without a tensor; with one in the out parameter it is left alone, since nobody says whose it is."""
    f = Fake()
    for address in (None, f.address):
        rude.next.value, rude.code.value, rude.sets.value = address, rc, sets
        p = exchange_type(Table(from_py=address_of(rude.give)).capsule(), Fake)()
        t = g.from_dlpack(p)
        assert t.tolist() == [0, 1, 2, 3] and len(p.calls) == 1
        del t
        assert p.balanced() and f.freed == 0
        q = exchange_type(Table(from_py=address_of(rude.give)).capsule(), object)()
        e = bad(lambda q=q: g.from_dlpack(q))
        assert ("left behind" in str(e)) == sets and f.freed == 0


@have_compiler()
def test_success_with_an_exception_set_is_success(rude):
    f = Fake(bytes([5, 6, 7, 8]))
    rude.next.value, rude.code.value, rude.sets.value = f.address, 0, 1
    p = exchange_type(Table(from_py=address_of(rude.give)).capsule(), object)()
    t = g.from_dlpack(p)
    assert t.tolist() == [5, 6, 7, 8] and g.zeros(1).tolist() == [0]
    del t
    assert f.freed == 1
    broken = Fake(ndim=-1)
    rude.next.value = broken.address
    assert type(bad(lambda: g.from_dlpack(p))) is BufferError and broken.freed == 1


@have_compiler()
@pytest.mark.parametrize("rc", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("sets", [True, False])
def test_a_target_that_gives_nothing_is_an_error_whatever_it_says(rude, rc, sets):
    alone(f"""
        import ctypes as C, dlferry as g
        from support import FREE, Fake, New, Table, bad, exchange_type
        from support.table import address_of
        lib = C.PyDLL({rude._name!r})
        C.c_int.in_dll(lib, "code").value, C.c_int.in_dll(lib, "sets").value = {rc}, {int(sets)}
        P = exchange_type(Table(lambda p: 0, to_py=address_of(lib.take)).capsule())
        for _ in range(3):
            f = Fake()
            e = bad(lambda: g.convert(f, P))
            assert f.freed == 0  # a leak is better than a double free
            assert g.zeros(1).tolist() == [0]
            m = C.c_void_p.in_dll(lib, "next").value
            FREE(New.from_address(m).free)(m)
            assert f.freed == 1
    """)


@have_compiler()
@pytest.mark.parametrize("destructor", ["clears", "sets_one"])
@pytest.mark.parametrize("fault", [{}, {"ndim": -1}, {"ver": (2, 0)}, {"cap": b"other"}, {"dev": (2, 0)}, {"flags": 2}], ids=str)
def test_a_capsule_whose_destructor_changes_the_error_does_not_change_ours(rude, destructor, fault):
    # case A08, https://github.com/pytorch/pytorch/issues/84056: there the destructor of a capsule that was consumed cleared the error
    class P(Fake):
        def __dlpack__(self, **kw):
            return api.PyCapsule_New(self.address, self.cap or N1, address_of(getattr(rude, destructor)))

        def __dlpack_device__(self):
            return (1, 0)

    f = P(**fault)
    if not fault:
        t = g.from_dlpack(f)
        assert t.tolist() == [0, 1, 2, 3]
        return
    for _ in range(2):
        e = bad(lambda: g.from_dlpack(f, copy=False))
        assert type(e) in (BufferError, ValueError) and "from_dlpack" in str(e), repr(e)


@have_compiler()
@pytest.mark.parametrize("deleter", ["clears", "sets_one"])
@pytest.mark.parametrize("fault", [{}, {"ndim": -1}, {"ver": (2, 0)}, {"flags": 2}], ids=str)
def test_a_deleter_that_changes_the_error_does_not_change_ours(rude, deleter, fault):
    for ver in (None, (1, 3)):
        if ver is None and ("ver" in fault or "flags" in fault):
            continue
        f = Fake(**{"ver": ver, **fault})
        f.m.free = address_of(getattr(rude, deleter))
        if not fault:
            t = g.from_dlpack(f)
            del t
            assert g.from_dlpack(f, copy=True).tolist() == [0, 1, 2, 3]
            with pytest.raises(KeyError, match="mine"), g.from_dlpack(f):
                raise KeyError("mine")
            continue
        for take in (lambda f=f: g.from_dlpack(f, copy=False), lambda f=f: g.from_dlpack(f.capsule(), copy=False)):
            e = bad(take)
            assert type(e) is BufferError and "from_dlpack" in str(e), repr(e)


def test_a_table_whose_callbacks_come_back():
    depth = []

    def give(p):
        depth.append(1)
        if len(depth) < 20:
            return Fake(bytes([len(depth)] * 4)).address if g.from_dlpack(p) is None else p.address
        return p.address

    P = exchange_type(Table(give).capsule(), Fake)
    p = P()
    t = g.from_dlpack(p)
    assert len(depth) == 20 and t.tolist() == [0, 1, 2, 3]
    del t
    assert p.freed == 20


def test_a_table_that_closes_the_tensor_it_is_given():
    held = []  # a table is never freed, and so is what its functions name

    def take(m):
        held.append(g.from_address(m))
        held[0].close()
        return held[1]

    P = exchange_type(Table(lambda p: 0, take).capsule())
    f = Fake()
    held.append(g.from_dlpack(f))
    try:
        x = g.convert(held[0], P)
    except (BufferError, ValueError, TypeError):
        assert f.freed == 0
    else:
        assert x.tolist() == [0, 1, 2, 3]
        del x
    held.clear()
    assert f.freed == 1


def test_the_type_of_a_table_may_go_while_its_table_runs():
    def give(p):
        P.__dlpack_c_exchange_api__ = None
        gc.collect()
        for _ in range(200):  # other types push this one out of any cache
            g.from_dlpack(type("Q", (Fake,), {})())
        return p.address

    P = exchange_type(Table(give).capsule(), Fake)
    assert g.from_dlpack(P()).tolist() == [0, 1, 2, 3]


# --- deleters ---


def test_a_deleter_that_clears_itself():
    class F(Fake):
        def _free(self, p):
            super()._free(p)
            self.m.free = None
            C.memset(C.addressof(self.m), 0xA5, C.sizeof(self.m))

    for ver in (None, (1, 3)):
        f = F(ver=ver)
        t = g.from_dlpack(f)
        del t
        assert f.freed == 1
        f = F(ver=ver, shape=(-1,))
        e = bad(lambda f=f: g.from_dlpack(f))
        assert type(e) is BufferError and f.freed == 1 and "-1" in str(e)
    f = F(ver=(7, 0))
    e = bad(lambda: g.from_dlpack(f))
    assert "7" in str(e) and f.freed == 1
