"""Exchange tables of others: broken, newer, failing, and ours called by others."""

import ctypes as C

import pytest
from support import FREE, U0, U1, Api, Fake, New, Out, Table, Ten, alone, api, bad, exchange_type, our_table, peek
from support.table import SET_ERROR, address_of

import dlferry as g

SIZE = C.cast(api.PyObject_Size, C.c_void_p).value  # returns -1 and sets what __len__ of the object raised: a callback that fails with an exception


class Producer:
    """What a type with a table does otherwise: the same tensor through __dlpack__."""

    def __init__(self, fake=None, **kw):
        self.fake = fake or Fake(**kw)

    def __dlpack_device__(self):
        return self.fake.__dlpack_device__()

    def __dlpack__(self, **kw):
        return self.fake.__dlpack__(**kw)


def typed(attribute, **namespace):
    return exchange_type(attribute, Producer, **namespace)


def test_a_table_is_used_instead_of_the_method():
    table = Table(lambda p: p.fake.address)
    p = typed(table.capsule())()
    t = g.from_dlpack(p)
    assert t.tolist() == [0, 1, 2, 3] and table.given == 1 and p.fake.calls == []
    del t
    assert p.fake.freed == 1


@pytest.mark.parametrize("attribute", [0, 12345, "x", None, object(), b"dlpack_exchange_api", 1.5, [], type])
def test_an_attribute_that_is_no_table_is_passed_over(attribute):
    # case E10, https://github.com/apache/tvm-ffi/pull/301
    p = typed(attribute)()
    assert g.from_dlpack(p).tolist() == [0, 1, 2, 3] and len(p.fake.calls) == 1


def test_a_capsule_of_another_name_is_passed_over():
    # case E10
    for name in (b"dltensor", b"", b"dlpack_exchange_api2"):
        p = typed(Table(lambda p: 0).capsule(name))()
        assert g.from_dlpack(p).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("raised", [AttributeError, KeyError, RuntimeError, RecursionError])
def test_a_descriptor_that_raises_is_passed_over_or_heard(raised):
    # case E10
    class Meta(type):
        @property
        def __dlpack_c_exchange_api__(cls):
            raise raised("mine")

    P = Meta("P", (Producer,), {})
    try:
        t = g.from_dlpack(P())
    except raised as e:
        assert raised is not AttributeError and "mine" in str(e)
    else:
        assert t.tolist() == [0, 1, 2, 3]


def test_an_attribute_of_the_instance_is_not_read():
    p = Producer()
    p.__dlpack_c_exchange_api__ = Table(lambda p: 0).capsule()
    assert g.from_dlpack(p).tolist() == [0, 1, 2, 3] and len(p.fake.calls) == 1


def test_a_table_without_functions_is_passed_over():
    for table in (Table(), Table(None, lambda m: None)):
        p = typed(table.capsule())()
        assert g.from_dlpack(p).tolist() == [0, 1, 2, 3]


def test_older_tables_are_found_behind_newer_ones():
    # case E13, https://github.com/dmlc/dlpack/pull/174
    old = Table(lambda p: p.fake.address)
    for table in (Table(lambda p: 0, version=(2, 0), prev=old), Table(version=(3, 1), prev=Table(version=(2, 0), prev=old))):
        p = typed(table.capsule())()
        before = old.given
        assert g.from_dlpack(p).tolist() == [0, 1, 2, 3] and old.given == before + 1 and table.given == 0


@pytest.mark.parametrize("version", [(0, 0), (0, 9), (2, 0), (2**32 - 1, 0)])
def test_without_a_table_of_our_version_the_method_is_used(version):
    # case E13
    p = typed(Table(lambda p: p.fake.address, version=version).capsule())()
    assert g.from_dlpack(p).tolist() == [0, 1, 2, 3] and len(p.fake.calls) == 1


def test_a_cycle_of_tables_ends():
    # case E13
    alone(
        """
        import ctypes as C, dlferry as g
        from support import Fake, Table, exchange_type
        a = Table(version=(2, 0)); b = Table(version=(3, 0), prev=a); a.table.prev = C.addressof(b.table)
        c = Table(version=(2, 0)); c.table.prev = C.addressof(c.table)
        for table in (a, b, c):
            P = exchange_type(table.capsule(), Fake)
            assert g.from_dlpack(P()).tolist() == [0, 1, 2, 3]
    """,
        timeout=30,
    )


def test_a_callback_that_fails_without_an_exception_falls_back():
    # case A24, https://github.com/SunDoge/dlpark/commit/952ae8a
    def fail(p):
        raise RuntimeError

    p = typed(Table(fail).capsule())()
    assert g.from_dlpack(p).tolist() == [0, 1, 2, 3]
    assert p.fake.balanced()


def test_a_callback_that_says_success_and_gives_null_falls_back():
    p = typed(Table(lambda p: None).capsule())()
    assert g.from_dlpack(p).tolist() == [0, 1, 2, 3]
    assert p.fake.balanced()


@pytest.mark.parametrize("raised", [ValueError, BufferError, TypeError, RuntimeError, AttributeError])
def test_a_callback_that_fails_with_an_exception_falls_back_to_the_method(raised):
    def length(self):
        raise raised("from the table")

    p = typed(Table(from_py=SIZE).capsule(), __len__=length)()
    assert g.from_dlpack(p).tolist() == [0, 1, 2, 3]
    assert p.fake.balanced()


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_must_not_be_swallowed_is_not(raised):
    def length(self):
        raise raised

    p = typed(Table(from_py=SIZE).capsule(), __len__=length)()
    with pytest.raises(raised):
        g.from_dlpack(p)
    assert p.fake.calls == []


def test_a_failing_table_without_a_method_shows_its_exception():
    def length(self):
        raise ValueError("from the table")

    P = exchange_type(Table(from_py=SIZE).capsule(), object, __len__=length)
    with pytest.raises(ValueError, match="from the table"):
        g.from_dlpack(P())
    P = exchange_type(Table(lambda p: None).capsule(), object)
    assert type(bad(lambda: g.from_dlpack(P()))) is BufferError


@pytest.mark.parametrize("fault", [{"ver": (2, 0)}, {"ndim": -1}, {"null": True}, {"ty": (2, 32, 0)}, {"shape": (2**62, 4)}, {"off": 2**63}])
def test_a_broken_tensor_from_a_table_is_given_back_once(fault):
    f = Fake(**fault)
    P = exchange_type(Table(lambda p: f.address).capsule(), object)
    assert type(bad(lambda: g.from_dlpack(P()))) is BufferError
    assert f.freed == 1
    f = Fake(**fault)
    p = typed(Table(lambda p: p.fake.address).capsule())(f)
    bad(lambda: g.from_dlpack(p))
    assert f.freed == sum(n in (U0, U1) for n in f.names()) + 1


def test_read_only_and_copied_flags_of_a_table_are_kept():
    p = typed(Table(lambda p: p.fake.address).capsule())(flags=1)
    assert g.from_dlpack(p).readonly
    q = typed(Table(lambda p: p.fake.address).capsule())(flags=2)
    assert type(bad(lambda: g.from_dlpack(q, copy=False))) is BufferError
    assert q.fake.freed == 1 + len(q.fake.caps)


def test_copy_true_ends_the_producers_tensor_at_once():
    p = typed(Table(lambda p: p.fake.address).capsule())()
    t = g.from_dlpack(p, copy=True)
    assert p.fake.freed == 1 and t.tolist() == [0, 1, 2, 3] and t.data_ptr() != p.fake.pointer


def test_a_stream_goes_through_the_method_that_can_take_it():
    p = typed(Table(lambda p: p.fake.address).capsule())(dev=(2, 0))
    g.from_dlpack(p, stream=7)
    assert p.fake.calls[0]["stream"] == 7


def test_a_move_goes_through_the_method_that_can_do_it():
    for asked in ("cpu", "cuda:1"):
        p = typed(Table(lambda p: p.fake.address).capsule())(dev=(2, 0))
        bad(lambda p=p, asked=asked: g.from_dlpack(p, device=asked))
        assert p.fake.calls and tuple(p.fake.calls[0]["dl_device"]) == g.Device(asked)
        assert p.fake.freed == 1 + sum(n in (U0, U1) for n in p.fake.names())


def test_more_types_than_the_cache_holds_all_work():
    for i in range(300):
        table = Table(lambda p: p.fake.address)
        p = typed(table.capsule() if i % 3 else 0)()
        for _ in range(2):
            assert g.from_dlpack(p).tolist() == [0, 1, 2, 3]
            p.fake.freed = 0
        assert table.given == (2 if i % 3 else 0)


def test_subclasses_inherit_the_table():
    P = typed(Table(lambda p: p.fake.address).capsule())

    class Q(P):
        pass

    q = Q()
    assert g.from_dlpack(q).tolist() == [0, 1, 2, 3]
    assert q.fake.calls == []


def test_a_table_that_runs_dlferry_again_works():
    def give(p):
        assert g.from_dlpack(Fake()).tolist() == [0, 1, 2, 3]
        return p.fake.address

    assert g.from_dlpack(typed(Table(give).capsule())()).tolist() == [0, 1, 2, 3]


def test_a_failing_target_is_an_error_and_frees_at_most_once():
    alone("""
        import dlferry as g
        from support import FREE, Fake, New, Table, bad, exchange_type
        def keep_and_fail(m):
            raise RuntimeError
        def free_and_fail(m):
            FREE(New.from_address(m).free)(m)
            raise RuntimeError
        for take in (keep_and_fail, free_and_fail, lambda m: None):
            table = Table(lambda p: 0, take)
            P = exchange_type(table.capsule())
            f = Fake()
            e = bad(lambda: g.convert(f, P))
            assert type(e) is BufferError and len(table.taken) == 1, repr(e)
            assert f.freed <= 1
    """)


# --- ours, called by others ---


@pytest.fixture(params=["__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"])
def ours(request):
    return our_table(g.Tensor, request.param)


def test_both_attributes_hold_one_capsule_with_all_functions(ours):
    assert g.Tensor.__dlpack_c_exchange_api__ is g.Tensor.__c_dlpack_exchange_api__
    a = ours.api
    assert (a.major, a.minor) == g.DLPACK_VERSION and a.prev is None
    assert a.allocate and a.from_py and a.to_py and a.view and a.stream
    assert not hasattr(g, "__dlpack_c_exchange_api__") and g._core._exchange_table(g.Tensor)


def test_an_object_becomes_a_managed_tensor(ours):
    class Sub(g.Tensor):
        pass

    for t in (g.asarray([[1, 2], [3, 4]]).T, Sub([1, 2]), g._core._readonly(g.zeros(3)), g.full(2, 1.0, dtype="float8_e4m3fn")):
        out = C.c_void_p()
        assert ours.from_py(t, out) == 0
        m = New.from_address(out.value)
        assert (
            m.t.data == t.data_ptr()
            and [m.t.shape[i] for i in range(m.t.ndim)] == list(t.shape)
            and [m.t.strides[i] for i in range(m.t.ndim)] == list(t.strides)
        )
        assert (m.major, m.minor) == g.DLPACK_VERSION and bool(m.flags & 1) == t.readonly
        FREE(m.free)(out.value)


def test_a_managed_tensor_becomes_an_object(ours):
    f = Fake(flags=1)
    out = C.c_void_p()
    assert ours.to_py(f.address, out) == 0
    t = C.cast(out, C.py_object).value
    api.Py_DecRef(t)
    assert type(t) is g.Tensor and t.tolist() == [0, 1, 2, 3] and t.readonly
    del t
    assert f.freed == 1


@pytest.mark.parametrize("fault", [{"ver": (2, 0)}, {"ndim": -1}, {"null": True}, {"ty": (2, 32, 0)}, {"shape": (2**62, 4)}])
def test_a_refused_managed_tensor_stays_the_callers(ours, fault):
    f = Fake(**fault)
    out = C.c_void_p(7)
    with pytest.raises(BufferError):
        ours.to_py(f.address, out)
    assert f.freed == 0 and not out.value


def test_null_is_refused(ours):
    out = C.c_void_p(7)
    with pytest.raises(ValueError):
        ours.to_py(None, out)
    assert not out.value


@pytest.mark.parametrize("thing", [5, None, "x", object(), [1], g.Tensor])
def test_an_object_that_is_no_tensor_of_ours_is_a_type_error(ours, thing):
    out, ten = C.c_void_p(7), Ten()
    with pytest.raises(TypeError, match="dlferry.Tensor"):
        ours.from_py(thing, out)
    assert not out.value
    with pytest.raises(TypeError, match="dlferry.Tensor"):
        ours.view(thing, ten)


def test_a_closed_tensor_is_refused(ours):
    t = g.zeros(3)
    t.close()
    with pytest.raises(ValueError, match="closed"):
        ours.from_py(t, C.c_void_p())
    with pytest.raises(ValueError, match="closed"):
        ours.view(t, Ten())


def test_a_borrowed_view_tells_everything(ours):
    t = g.asarray([[1, 2, 3], [4, 5, 6]], dtype="int16")[:, ::2]
    before = g.ledger()
    ten = Ten()
    assert ours.view(t, ten) == 0 and g.ledger() == before
    assert ten.data == t.data_ptr() and ten.off == 0 and ten.ndim == 2 and ten.shape[:2] == [2, 2] and ten.strides[:2] == [3, 2]
    assert (ten.ty.code, ten.ty.bits, ten.ty.lanes) == (0, 16, 1) and (ten.dev.type, ten.dev.id) == (1, 0)


def test_the_work_stream_of_the_cpu_is_null(ours):
    # case E14, https://github.com/apache/tvm-ffi/pull/371
    out = C.c_void_p(7)
    assert ours.stream(1, 0, out) == 0 and not out.value


def prototype(shape, ty=(2, 32, 1), dev=(1, 0), ndim=None):
    f = Fake(bytes(1), shape, strides=None, ty=ty, dev=dev, null=True, ndim=ndim)
    return f.m.t


def allocated(ours, ten):
    errors = []
    say = SET_ERROR(lambda ctx, kind, message: errors.append((ctx, kind, message)))
    out = C.c_void_p(7)
    rc = ours.allocate(ten, out, 99, address_of(say))
    return rc, out.value, errors


def test_the_allocator_gives_aligned_owned_memory(ours):
    for shape in ((), (3,), (2, 0), (4, 5, 6), (1,) * 12):
        rc, m, errors = allocated(ours, prototype(shape))
        assert rc == 0 and not errors
        s = New.from_address(m)
        assert (
            s.t.data % 64 == 0 and [s.t.shape[i] for i in range(s.t.ndim)] == list(shape) and s.flags == 0 and (s.major, s.minor) == g.DLPACK_VERSION
        )
        t = g.from_address(m)
        assert t.shape == shape and t.dtype == "float32" and t.is_contiguous()


@pytest.mark.parametrize("bad_prototype", [
    {"shape": (-1,)}, {"shape": (2**62, 4)}, {"shape": (4,), "ndim": -1}, {"shape": (4,), "ndim": 65}, {"shape": (4,), "ty": (2, 32, 0)}, {"shape": (4,), "dev": (2, 0)}, {"shape": (2**61,)}, {"shape": (2**46,)},
])  # fmt: skip
def test_the_allocator_refuses_through_set_error_and_without_it(ours, bad_prototype):
    ten = prototype(**bad_prototype)
    rc, m, errors = allocated(ours, ten)
    assert rc == -1 and not m and len(errors) == 1
    ctx, kind, message = errors[0]
    assert ctx == 99 and kind in (b"ValueError", b"BufferError", b"MemoryError") and message
    out = C.c_void_p(7)
    assert ours.allocate(ten, out, None, None) == -1 and not out.value
    assert ours.allocate(None, out, None, None) == -1
    assert ours.allocate(ten, Out(), None, None) == -1


def test_our_capsule_is_found_on_subclasses_and_round_trips():
    class Sub(g.Tensor):
        pass

    t = Sub([1, 2, 3])
    out = C.c_void_p()
    table = our_table(Sub)
    assert table.from_py(t, out) == 0
    u = g.from_address(out.value)
    assert u.data_ptr() == t.data_ptr()
    assert C.sizeof(Api) == 7 * 8 and peek(t.__dlpack__())["data"] == t.data_ptr()
