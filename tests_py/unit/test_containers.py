"""Lists and generators of tensors: each element is alive while it is used, and nothing is left after an error."""

import gc

import numpy as np
import pytest
from support import Fake, bad

import dlferry as g


def fakes(n=4):
    return [Fake(bytes([i] * 4)) for i in range(n)]


def test_a_list_of_producers_that_nobody_else_holds():
    # case M16, https://github.com/go-python/gopy/pull/351
    out = g.convert([np.full(1000, i, "f4") for i in range(100)], "dlferry")
    gc.collect()
    waste = [np.ones(1000) for _ in range(100)]
    assert [t[999].item() for t in out] == list(range(100)) and len(waste) == 100


def test_a_list_that_a_producer_empties():
    # case M16
    class P(Fake):
        def __dlpack__(self, **kw):
            self.things.clear()
            gc.collect()
            return super().__dlpack__(**kw)

    for where in range(3):
        things = fakes(3)
        p = P(bytes([9] * 4))
        things[where] = p
        p.things = things
        try:
            out = g.convert(things, "numpy")
        except (RuntimeError, IndexError, ValueError, TypeError) as e:
            assert "SystemError" not in repr(e)
        else:
            assert out[where].tolist() == [9] * 4
        out = None


def test_the_same_tensor_twice():
    # case M16
    f, a = Fake(), np.arange(3)
    out = g.convert([f, f, a, a, {"x": f}], "dlferry")
    assert out[0].data_ptr() == f.pointer and out[0] is out[1] is out[4]["x"] and out[2] is out[3] and len(f.caps) == 1
    out = None
    assert f.balanced()
    t = g.asarray([1, 2])
    out = g.convert([t, t], "dlferry")
    assert out[0] is t and out[1] is t


@pytest.mark.parametrize("element", [Fake(raises=RuntimeError("mine")), Fake(ndim=-1), Fake(ver=(9, 9)), Fake(ty=(2, 0, 1))])
@pytest.mark.parametrize("where", [0, 1, 3])
def test_an_element_that_fails_leaves_nothing(element, where):
    # cases M16 and A07 https://github.com/microsoft/onnxruntime/pull/32732
    element.freed, element.caps = 0, []
    for make in (list, tuple, lambda x: dict(enumerate(x)), lambda x: [[v] for v in x], lambda x: {"a": tuple(x)}):
        things = fakes()
        things[where] = element
        try:
            g.convert(make(things), "numpy")
        except (RuntimeError, BufferError) as e:
            assert not isinstance(e, SystemError)
            e.__traceback__ = None
        else:
            raise AssertionError("accepted")
        gc.collect()
        assert all(f.balanced() for f in things)


def test_elements_that_are_no_tensors_are_left_or_refused():
    # case M16
    f = Fake()
    out = g.convert([f, 5, "x", None, object], "numpy")
    assert out[1:] == [5, "x", None, object]
    del out
    assert f.balanced()
    for thing in ([np.ones(2), object()], [1, "x"], [[1], 2], [g.zeros(2), None]):
        bad(lambda thing=thing: g.asarray(thing))


def test_a_generator_is_not_a_container():
    # case M16: an iterator is used up by looking at it
    f = Fake()
    things = (x for x in [f])
    try:
        out = g.convert(things, "numpy")
    except TypeError:
        assert list(things) == [f] and f.calls == []
    else:
        assert [a.tolist() for a in out] == [[0, 1, 2, 3]]
    for make in (lambda: iter([1, 2]), lambda: (x for x in [1, 2])):
        try:
            assert g.asarray(make()).tolist() == [1, 2]
        except TypeError:
            pass


def test_subclasses_of_containers_that_lie():
    class Long(list):
        def __len__(self):
            return 10**6

        def __iter__(self):
            return iter([f, 5])

    class Raises(dict):
        def items(self):
            raise KeyError("mine")

        __iter__ = keys = values = items

    f = Fake()
    for thing in (Long([f]), Raises(a=f)):
        try:
            g.convert(thing, "numpy")
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as e:
            assert not isinstance(e, SystemError)
            e.__traceback__ = None
    gc.collect()
    assert f.balanced()
