"""DLFERRY_AFTER_FORK=reload: a forked child opens a Go runtime of its own."""

import pytest
from support import alone, without_sanitizer
from test_fork import CHILD

pytestmark = without_sanitizer("each of the many children opens an instrumented Go library")

RELOAD = {"DLFERRY_AFTER_FORK": "reload"}

GO = """
    def go_works():
        t = g.asarray([1, 2, 300]).astype("float32")
        assert t.tolist() == [1, 2, 300] and t.astype("bfloat16").astype("int16").tolist() == [1, 2, 300]
        n = 3 << 20  # above the size where the GIL is given up and goroutines share the work
        big = g.full((n,), 7, dtype="int32").astype("float64")
        assert big[0].item() == big[n - 1].item() == 7 and big[::-1].copy()[5].item() == 7
        assert type(bad(lambda: g.from_dlpack(Fake(ndim=-1)))) is BufferError
        assert g._core._go_state() == "loaded" and "go" in g._core._go_info().lower()
"""


def test_a_child_of_a_parent_with_go_opens_a_runtime_of_its_own():
    # case M01, https://github.com/golang/go/issues/15538
    alone(
        CHILD
        + GO
        + """
    start_go()
    for _ in range(3):
        child(lambda: (go_works(), everything_in_c(), go_works()))
        go_works()  # the parent's is untouched
    """,
        env=RELOAD,
    )


def test_children_of_children_each_open_one():
    # case M01
    alone(
        CHILD
        + GO
        + """
    start_go()
    def generation(n):
        assert g._core._go_state() == "lost by fork"
        everything_in_c()
        assert g._core._go_state() == "loaded"  # the refusals were worded by Go
        go_works()
        if n:
            child(lambda: generation(n - 1))
            child(lambda: generation(n - 1))
            go_works()
    child(lambda: generation(3))
    go_works()
    """,
        env=RELOAD,
        timeout=180,
    )


def test_a_generation_that_needed_no_go_does_not_matter():
    alone(
        CHILD
        + GO
        + """
    start_go()
    def quiet():
        assert g.zeros(3).tolist() == [0, 0, 0] and g._core._go_state() == "lost by fork"
        child(lambda: child(go_works))
        assert g._core._go_state() == "lost by fork"
        go_works()
    child(quiet)
    """,
        env=RELOAD,
    )


def test_the_setting_may_come_after_the_fork():
    alone(
        CHILD
        + GO
        + """
    start_go()
    def work():
        try:
            g.zeros(3).astype("int8")
        except RuntimeError as e:
            assert "DLFERRY_AFTER_FORK=reload" in str(e), e
        else:
            raise AssertionError("no error")
        os.environ["DLFERRY_AFTER_FORK"] = "reload"
        go_works()
    child(work)
    """,
        env={"DLFERRY_AFTER_FORK": ""},
    )


@pytest.mark.parametrize("value", ["", "1", "yes", "RELOAD", "reload ", "refuse", "ignore", "reloaded"])
def test_another_value_refuses(value):
    alone(
        CHILD
        + """
    start_go()
    def work():
        everything_in_c()
        for _ in range(2):
            try:
                g.zeros(3).astype("int8")
            except RuntimeError as e:
                assert "spawn" in str(e) and "forkserver" in str(e)
            else:
                raise AssertionError("no error")
    child(work)
    start_go()
    """,
        env={"DLFERRY_AFTER_FORK": value},
    )


def test_a_child_of_a_busy_parent_opens_its_own():
    # case M01
    alone(
        CHILD
        + GO
        + """
    import threading
    start_go()
    stop = False
    def busy():
        t = g.full((4 << 20,), 1.5)
        while not stop:
            t.astype("float64")
    threads = [threading.Thread(target=busy) for _ in range(3)]
    for th in threads: th.start()
    try:
        for _ in range(6):
            child(lambda: (everything_in_c(), go_works()))
    finally:
        stop = True
        for th in threads: th.join()
    go_works()
    """,
        env=RELOAD,
        timeout=180,
    )


def test_threads_of_a_child_open_it_once():
    alone(
        CHILD
        + GO
        + """
    import threading
    start_go()
    def work():
        barrier, seen = threading.Barrier(8), []
        def one():
            barrier.wait()
            seen.append(g.asarray([1, 2]).astype("int8").tolist())
        threads = [threading.Thread(target=one) for _ in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert seen == [[1, 2]] * 8
        with open("/proc/self/maps") as f:
            copies = {line.split(None, 5)[5].strip() for line in f if "memfd:libdlferry" in line}
        assert len(copies) == 1, copies
    child(work)
    """,
        env=RELOAD,
    )


def test_memory_of_the_parent_is_read_written_and_freed_by_the_childs_runtime():
    alone(
        CHILD
        + GO
        + """
    start_go()
    made_by_go = g.asarray(list(range(1000))).astype("float64"); f = Fake(); t = g.from_dlpack(f); a = np.from_dlpack(made_by_go)
    def work():
        global made_by_go, t, a
        assert made_by_go.astype("int32").tolist() == list(range(1000)) and t.astype("int64").tolist() == [0, 1, 2, 3]
        made_by_go[...] = g.asarray([5] * 1000); assert a[999] == 5
        del made_by_go, t, a
        assert f.freed == 1
        go_works()
    child(work)
    assert made_by_go[999].item() == 999 and f.freed == 0
    """,
        env=RELOAD,
    )


def test_descriptors_do_not_pile_up_in_the_parent():
    alone(
        CHILD
        + GO
        + """
    def fds():
        return {n: os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")}
    start_go()
    before = fds()
    for _ in range(5):
        child(go_works)
    assert fds() == before
    def work():
        go_works()
        opened = {n: to for n, to in fds().items() if n not in before}
        copies = [n for n, to in opened.items() if "memfd:libdlferry" in to]
        assert len(copies) == 1 and not os.get_inheritable(int(copies[0])) and len(opened) <= 4, opened  # and what Go's poller has
        go_works()
        assert {n for n in fds() if n not in before} == set(opened)
    child(work)
    """,
        env=RELOAD,
    )


def test_no_room_for_a_copy_is_an_error_and_not_the_end():
    alone(
        CHILD
        + """
    import resource
    start_go()
    def work():
        low, high = resource.getrlimit(resource.RLIMIT_NOFILE)
        held = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, high))
        try:
            while True: held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            g.zeros(3).astype("int8")
        except RuntimeError as e:
            assert "copy" in str(e), e
        else:
            raise AssertionError("no error")
        for fd in held: os.close(fd)
        assert g.zeros(3).tolist() == [0, 0, 0]
        try:
            assert g.zeros(3).astype("int8").tolist() == [0, 0, 0]
        except RuntimeError as e:
            assert "did not open" in str(e), e
    child(work)
    start_go()
    """,
        env=RELOAD,
    )


def test_a_child_with_its_own_runtime_ends_normally():
    alone(
        CHILD
        + GO
        + """
    start_go()
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        keep = [g.from_dlpack(np.arange(3)).astype("float16")]
        go_works()
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    """,
        env=RELOAD,
    )


def test_a_multiprocessing_pool_by_fork_works(tmp_path):
    # case M01
    script = tmp_path / "main.py"
    script.write_text("""
import multiprocessing as mp, dlferry as g

def work(t):
    return t.astype("int32").tolist()

if __name__ == "__main__":
    t = g.asarray([1.0, 2.0])
    t.astype("float32")
    with mp.get_context("fork").Pool(2) as pool:
        assert pool.map_async(work, [t] * 8).get(60) == [[1, 2]] * 8
""")
    alone(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", options=("-W", "ignore::DeprecationWarning"), env=RELOAD)
