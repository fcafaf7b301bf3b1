"""Many threads, a short time, everything at once."""

from support import alone


def test_a_storm_of_threads_ends_with_nothing_left():
    # case B07, https://github.com/wjakob/nanobind/issues/377
    alone("""
    import gc, random, threading, time, dlferry as g, numpy as np
    from support import Fake
    stop = time.monotonic() + 4
    shared = [g.full((64, 64), 1.5), g.from_dlpack(np.arange(4096).reshape(64, 64)), g.from_buffer(bytearray(64))]
    errors = []
    def work(seed):
        r = random.Random(seed)
        mine = []
        try:
            while time.monotonic() < stop:
                t = r.choice(shared)
                k = r.randrange(10)
                if k == 0: mine.append(g.from_dlpack(t.__dlpack__(max_version=(1, 3))))
                elif k == 1: mine.append(t[r.randrange(64)])
                elif k == 2: t.astype("float64")
                elif k == 3: mine.append(np.from_dlpack(t))
                elif k == 4: memoryview(t)[0:1]
                elif k == 5: mine.append(g.from_dlpack(np.ones(32)))
                elif k == 6: g.convert({"a": [t, t]}, "numpy")
                elif k == 7: t.copy(); t.tolist()
                elif k == 8: mine.clear()
                else: mine.append(g.zeros((r.randrange(50),)))
                if len(mine) > 40: del mine[::2]
        except BaseException as e:
            errors.append(repr(e))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    assert not errors, errors[:3]
    shared.clear()
    gc.collect()
    left = g.ledger()
    assert not any(left.values()), left
    """)
