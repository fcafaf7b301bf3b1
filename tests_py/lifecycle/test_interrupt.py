"""Ctrl-C ends dlferry's own long verbs."""

import signal
import time

import numpy as np
import pytest
from support import without_sanitizer

import dlferry as g

pytestmark = without_sanitizer("an instrumented Go library takes minutes for the long casts")


def test_a_long_cast_ends_before_it_is_done_when_interrupted_and_leaves_nothing():
    one = g.asarray([1], dtype="uint8")
    source = g._core._view(one, (1 << 18, 1024), (0, 0), 0)  # as many elements as wanted over one byte
    before = g.ledger()
    start = time.monotonic()
    source.astype("int16")
    whole = time.monotonic() - start

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    took = []
    try:
        while not took or (min(took) > 0.8 * whole and len(took) < 5):  # a machine may be busy just now
            signal.setitimer(signal.ITIMER_REAL, whole / 20)
            start = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                source.astype("int16")
                time.sleep(whole)
            took.append(time.monotonic() - start)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert min(took) <= 0.8 * whole, (took, whole)
    assert g.ledger() == before


def test_a_copy_in_pieces_is_the_copy():
    a = np.arange(40 << 20, dtype="u4").reshape(5, 1 << 20, 8)
    t = g.from_dlpack(a)
    for axes in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        assert np.array_equal(np.from_dlpack(t.permute_dims(axes).copy()), a.transpose(axes))
