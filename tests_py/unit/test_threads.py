"""Threads at one capsule, one tensor, one first call."""

import gc
import threading

import pytest
from support import GO_LIBRARY, Fake, alone

import dlferry as g


def race(n, work):
    barrier = threading.Barrier(n)
    results = [None] * n

    def go(i):
        barrier.wait()
        try:
            results[i] = work(i)
        except BaseException as e:
            results[i] = e

    threads = [threading.Thread(target=go, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    return results


@pytest.mark.parametrize("ver", [(1, 1), None])
def test_of_eight_threads_at_one_capsule_exactly_one_gets_the_tensor(ver):
    for _ in range(15):
        f = Fake(ver=ver)
        c = f.capsule()
        results = race(8, lambda i, c=c: g.from_dlpack(c))
        winners = [r for r in results if isinstance(r, g.Tensor)]
        losers = [r for r in results if not isinstance(r, g.Tensor)]
        assert len(winners) == 1 and winners[0].tolist() == [0, 1, 2, 3] and f.freed == 0
        assert all(type(e) is BufferError and "consumed" in str(e) for e in losers)
        del results, winners, losers
        gc.collect()
        assert f.freed == 1


def test_eight_threads_share_views_and_exports_of_one_tensor():
    f = Fake(bytes(range(64)), (8, 8))
    t = g.from_dlpack(f)

    def work(i):
        for _ in range(300):
            u = g.from_dlpack(t[i].__dlpack__(max_version=(1, 3)))
            assert u.tolist() == list(range(8 * i, 8 * i + 8))
            memoryview(t)[i, 0]
            t.T.copy()
            repr(t.shape)
        return True

    assert race(8, work) == [True] * 8
    del t
    assert f.freed == 1


def test_close_in_one_thread_while_others_export_is_an_error_or_a_tensor():
    for _ in range(30):
        f = Fake(bytes(64), (64,))
        t = g.from_dlpack(f)

        def work(i, t=t):
            if i == 0:
                t.close()
                return None
            try:
                return g.from_dlpack(t.__dlpack__()).tolist()
            except ValueError as e:
                return str(e)

        for r in race(4, work):
            assert r is None or r == [0] * 64 or "closed" in r
        assert f.freed == 1


def test_the_first_import_of_32_threads_at_once_works():
    # case B10, https://github.com/numpy/numpy/issues/28881
    alone("""
        import threading, dlferry as g
        from support import Fake
        fakes = [Fake() for _ in range(32)]
        barrier, seen = threading.Barrier(32), []
        def work(f):
            barrier.wait()
            t = g.from_dlpack(f)
            seen.append((t.tolist(), str(t.dtype), str(t.device), g.convert(t, g.Tensor) is t, t.__dlpack__(max_version=(1, 0)) is not None))
        threads = [threading.Thread(target=work, args=(f,)) for f in fakes]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert seen == [([0, 1, 2, 3], "uint8", "cpu", True, True)] * 32
        assert [f.freed for f in fakes] == [1] * 32
    """)


def test_the_first_call_of_go_from_16_threads_opens_it_once():
    assert GO_LIBRARY.exists()
    alone("""
        import threading, dlferry as g
        t = g.asarray([1, 2, 3])
        barrier, seen = threading.Barrier(16), []
        def work():
            barrier.wait()
            seen.append(t.astype("float32").tolist())
        threads = [threading.Thread(target=work) for _ in range(16)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert seen == [[1, 2, 3]] * 16 and g._core._go_state() == "loaded"
    """)


def test_a_tensor_closed_by_another_thread_during_a_long_copy_is_not_freed_under_it():
    alone("""
        import threading, dlferry as g
        n = 48 << 20
        for _ in range(6):
            t = g.full((n,), 7, dtype="uint8")
            started = threading.Event()
            result = []
            def work():
                started.set()
                result.append(t.copy())
            th = threading.Thread(target=work)
            th.start(); started.wait()
            while th.is_alive() and not result:
                try:
                    t.close()
                    break
                except BufferError:
                    pass
            th.join()
            if result:
                c = memoryview(result[0])
                assert bytes(c[:100]) == bytes(c[-100:]) == bytes([7]) * 100
    """)


def test_a_long_copy_keeps_its_source_and_target_when_both_are_closed():
    alone("""
        import threading, dlferry as g
        n = 24 << 20
        for _ in range(6):
            src, dst = g.full((n,), 7, dtype="int16"), g.zeros((n,), dtype="int32")
            started = threading.Event()
            def work():
                started.set()
                try:
                    dst[...] = src
                except ValueError as e:
                    assert "closed" in str(e)
            th = threading.Thread(target=work)
            th.start(); started.wait()
            for x in (src, dst):
                try:
                    x.close()
                except BufferError:
                    pass
            th.join()
    """)
