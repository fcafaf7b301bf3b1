"""Arguments that run code while they are read: they close the tensor, drop it, raise, or change what was read before."""

import pytest
from support import Fake, alone

import dlferry as g

EVIL = """
    import gc, dlferry as g
    from support import Fake, bad

    class Index:
        def __init__(self, n, act): self.n, self.act = n, act
        def __index__(self): self.act(); return self.n
        __int__ = __index__
    class Real:
        def __init__(self, act): self.act = act
        def __float__(self): self.act(); return 1.5
        def __bool__(self): self.act(); return True
    class Text(str):
        act = None
        def __eq__(self, o):
            if self.act: self.act()
            return str.__eq__(self, o)
        __hash__ = str.__hash__
    class Shape:
        def __init__(self, act, items): self.act, self.items = act, items
        def __iter__(self):
            for i in self.items:
                self.act(); yield i
        def __len__(self): self.act(); return len(self.items)
        def __getitem__(self, i): self.act(); return self.items[i]
    class Source(Fake):
        act = None
        def __dlpack__(self, **kw):
            self.act(); return super().__dlpack__(**kw)
    def text(act, s="int16"):
        t = Text(s); t.act = act; return t
    def source(act):
        f = Source(bytes(64), (4, 4)); f.act = act; return f

    VERBS = {
        "index": lambda t, act: t[Index(1, act)],
        "slice": lambda t, act: t[Index(1, act):Index(3, act):Index(1, act)],
        "indices": lambda t, act: t[Index(1, act), Index(2, act)],
        "reshape": lambda t, act: t.reshape((Index(2, act), Index(8, act))),
        "reshape of a sequence": lambda t, act: t.reshape(Shape(act, (2, 8))),
        "reshape copy": lambda t, act: t.reshape((16,), copy=Real(act)),
        "permute": lambda t, act: t.permute_dims((Index(1, act), Index(0, act))),
        "astype": lambda t, act: t.astype(text(act)),
        "astype copy": lambda t, act: t.astype("int16", copy=Real(act)),
        "set": lambda t, act: t.__setitem__(Index(1, act), 5),
        "set a float": lambda t, act: t.__setitem__(..., Real(act)),
        "set a producer": lambda t, act: t.__setitem__(..., source(act)),
        "set a list": lambda t, act: t.__setitem__(0, [Index(1, act)] * 4),
        "export copy": lambda t, act: g.from_dlpack(t.__dlpack__(copy=Real(act))),
        "export stream": lambda t, act: g.from_dlpack(t.__dlpack__(stream=Index(1, act))),
        "export version": lambda t, act: g.from_dlpack(t.__dlpack__(max_version=(Index(1, act), Index(0, act)))),
        "export device": lambda t, act: g.from_dlpack(t.__dlpack__(dl_device=(Index(1, act), Index(0, act)))),
        "import copy": lambda t, act: g.from_dlpack(t, copy=Real(act)),
        "import device": lambda t, act: g.from_dlpack(t, device=text(act, "cpu")),
        "asarray dtype": lambda t, act: g.asarray(t, dtype=text(act)),
        "to": lambda t, act: t.to(text(act, "cpu"), copy=Real(act)),
        "convert copy": lambda t, act: g.convert(t, "dlferry", copy=Real(act)),
        "convert": lambda t, act: g.convert([t, source(act), t], "numpy"),
        "array": lambda t, act: t.__array__(dtype="int16", copy=Real(act)),
        "subclass": lambda t, act: type("Sub", (g.Tensor,), {})(t, dtype=text(act)),
    }
"""


def test_an_argument_that_closes_the_tensor_gives_an_error_or_a_result():
    alone(
        EVIL
        + """
    def values(r):
        if isinstance(r, g.Tensor):
            return r.tolist()
        return [values(x) for x in r] if isinstance(r, list) else getattr(r, "tolist", lambda: 0)()
    def flat(v):
        return [y for x in v for y in flat(x)] if isinstance(v, list) else [v]
    for name, verb in VERBS.items():
        for k in range(1, 5):  # at the k-th look at an argument
            t = g.full((4, 4), 3, dtype="uint8")
            left = [k]
            def act():
                left[0] -= 1
                if left[0] == 0:
                    t.close()
                    [g.full((4, 4), 200, dtype="uint8").close() for _ in range(4)]
            try:
                r = verb(t, act)
            except (ValueError, TypeError, BufferError) as e:
                assert not isinstance(e, SystemError)
            else:
                assert set(flat(values(r))) <= {3, 0}, (name, k, values(r))
            r = None
    gc.collect()
    """,
        env={"MALLOC_PERTURB_": "165"},
    )


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "MemoryError", "ZeroDivisionError"])
def test_an_argument_that_raises_is_heard(raised):
    alone(
        EVIL
        + f"""
    class Stop(Exception): pass
    for name, verb in VERBS.items():
        for k in range(1, 5):
            t = g.full((4, 4), 3, dtype="uint8")
            before = g.ledger()
            left = [k]
            def act():
                left[0] -= 1
                if left[0] == 0: raise {raised}("mine")
            try:
                r = verb(t, act)
            except {raised} as e:
                assert "mine" in str(e), (name, e)
                e.__traceback__ = None
            except (TypeError, ValueError, BufferError) as e:
                assert left[0] > 0, (name, k, repr(e))  # the argument was no good for another reason, before
            else:
                assert left[0] > 0, (name, k, "swallowed")
            r = None
            gc.collect()
            after = g.ledger()
            assert after == before, (name, k, before, after)
            t.close()
    """
    )


def test_an_argument_that_drops_the_last_name_of_the_tensor():
    alone(
        EVIL
        + """
    for name, verb in VERBS.items():
        held = [g.full((4, 4), 3, dtype="uint8")]
        def act():
            held.clear(); gc.collect()
            [g.full((4, 4), 200, dtype="uint8").close() for _ in range(4)]
        try:
            r = verb(held[0], act)
        except (ValueError, TypeError, BufferError):
            pass
        r = None
    """,
        env={"MALLOC_PERTURB_": "165"},
    )


def test_a_shape_that_changes_between_its_length_and_its_items():
    class Grows:
        n = 1

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            self.n += 1
            if i >= 1000:
                raise IndexError
            return 1

        def __iter__(self):
            return (1 for _ in range(1000))

    class Shrinks(list):
        def __iter__(self):
            while self:
                yield self.pop()

    f = Fake()
    for make in (
        lambda s: g.zeros(s),
        lambda s: g.empty(s),
        lambda s: g.zeros(1).reshape(s),
        lambda s: g.wrap_pointer(f.pointer, s, "uint8"),
        lambda s: g.wrap_pointer(f.pointer, (1,), "uint8", strides=s),
        lambda s: g.zeros((1,) * 3).permute_dims(s),
    ):
        for shape in (Grows(), Shrinks([1, 2, 0])):
            try:
                t = make(shape)
            except (ValueError, TypeError, BufferError) as e:
                assert not isinstance(e, SystemError)
            else:
                assert t.ndim <= 64 and t.size in (0, 1)
