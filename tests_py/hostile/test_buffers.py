"""Buffer producers written in Python (from 3.12 on): what they raise, what they release, what they change."""

import ctypes
import gc
import sys

import pytest
from support import alone, bad

import dlferry as g

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="needs Python 3.12: before, classes have no __buffer__")


class Buffer:
    def __init__(self, give):
        self.give, self.released = give, 0

    def __buffer__(self, flags):
        return self.give(flags)

    def __release_buffer__(self, view):
        self.released += 1


TAKES = {
    "from_buffer": g.from_buffer,
    "asarray": g.asarray,
    "Tensor": g.Tensor,
    "convert": lambda x: g.convert(x, "dlferry"),
    "numpy": lambda x: g.convert(x, "numpy"),
}


@pytest.mark.parametrize("raised", [BufferError, ValueError, KeyError, RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("take", TAKES)
def test_what_a_buffer_raises_arrives(take, raised):
    # case E01, https://github.com/IntelPython/dpctl/pull/1789, for buffers
    def give(flags):
        raise raised("real")

    with pytest.raises(raised, match="real"):
        TAKES[take](Buffer(give))


@pytest.mark.parametrize("take", TAKES)
def test_a_type_error_of_a_buffer_is_not_lost(take):
    # case E01: "not a tensor" is for objects without the protocol
    def give(flags):
        raise TypeError("real")

    e = bad(lambda: TAKES[take](Buffer(give)))
    assert isinstance(e, TypeError) and ("real" in repr(e) or "real" in repr(e.__cause__ or e.__context__)), repr(e)


@pytest.mark.parametrize("take", ["from_buffer", "asarray", "Tensor", "convert"])
def test_a_buffer_is_held_until_the_last_share_and_released_once(take):
    # case N01, https://github.com/numpy/numpy/issues/9537
    b = Buffer(lambda flags: memoryview(bytearray(range(8))))
    t = TAKES[take](b)
    released = b.released  # asking whether there is a buffer may take and release one
    u, c = t[2:], t.__dlpack__(max_version=(1, 3))
    assert t.tolist() == list(range(8))
    t.close()
    del t
    assert b.released == released and u.tolist() == [2, 3, 4, 5, 6, 7]
    del u
    assert b.released == released
    del c
    gc.collect()
    assert b.released == released + 1


def test_a_refused_buffer_is_released_and_its_release_may_raise():
    alone("""
        import ctypes, sys, dlferry as g
        from support import bad
        seen = []
        sys.unraisablehook = lambda u: seen.append(type(u.exc_value))
        class S(ctypes.Structure):
            _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]
        class B:
            released = 0
            def __init__(self, m): self.m = m
            def __buffer__(self, flags): return self.m
            def __release_buffer__(self, v):
                self.released += 1
                raise KeyError
        for m in (memoryview(bytearray(8)).cast("P"), memoryview(S())):
            b = B(m)
            e = bad(lambda: g.from_buffer(b))
            assert type(e) is BufferError and "format" in str(e) and b.released == 1, (e, b.released)
        b = B(memoryview(bytearray(8)))
        t = g.from_buffer(b); del t
        assert b.released == 1 and set(seen) == {KeyError} and len(seen) == 3
    """)


def test_a_buffer_that_comes_back():
    def give(flags):
        assert g.from_buffer(bytearray(3)).shape == (3,)
        gc.collect()
        return memoryview(bytearray(4))

    b = Buffer(give)
    assert g.from_buffer(b).tolist() == [0] * 4

    def give_ours(flags):
        return memoryview(g.asarray([1, 2, 3]))

    assert g.from_buffer(Buffer(give_ours)).tolist() == [1, 2, 3]

    def give_again(flags):
        return memoryview(g.from_buffer(again))

    again = Buffer(give_again)
    with pytest.raises(RecursionError):
        g.from_buffer(again)


def test_answers_that_are_no_memoryview():
    for answer in (None, 5, b"x", bytearray(3), object()):
        for take in TAKES.values():
            e = bad(lambda take=take, answer=answer: take(Buffer(lambda flags: answer)))
            assert isinstance(e, TypeError)


def test_read_only_views_of_writable_memory_stay_read_only():
    # cases D03 https://github.com/developmentseed/zarrista/issues/108 and D05
    memory = bytearray(range(4))
    t = g.from_buffer(Buffer(lambda flags: memoryview(memory).toreadonly()))
    assert t.readonly and isinstance(bad(lambda: t.__setitem__(0, 9)), BufferError) and memory[0] == 0
    u = g.from_buffer((ctypes.c_uint8 * 4).from_buffer(memory))
    u[0] = 9
    assert memory[0] == 9 and t[0].item() == 9
