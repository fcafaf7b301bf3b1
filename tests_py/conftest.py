import gc
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support import KEEP

import dlferry

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control has started us in the background; children must not inherit that, or Ctrl-C never reaches them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

try:
    from hypothesis import settings
except ImportError:  # declared for the tests, yet the packaging tests run without it
    pass
else:
    settings.register_profile("quick", max_examples=60, deadline=None)
    # 100,000 in test_fields.py, whose first test takes four times as many; a tenth of that where a sanitizer makes each slower
    settings.register_profile("long", max_examples=2_000 if os.environ.get("DLFERRY_SANITIZED") else 20_000, deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.passed = outcome.get_result().passed


def _settled(floor):
    """The live counts, after a collection if they are above the floor."""
    now = dlferry.ledger()
    if any(now[k] > floor[k] for k in now):
        gc.collect()
        now = dlferry.ledger()
    return now


@pytest.fixture(autouse=True)
def ledger(request):
    """Every test gives back what it took: dlferry's live counts return to what they were."""
    before = dlferry.ledger()
    yield before
    if not getattr(request.node, "passed", False):
        request.session.dlferry_failed = True  # the traceback of a failure keeps tensors alive, for a while
        return
    after = _settled(before)
    if after["imports"] == 0:  # nobody holds a Fake's struct
        KEEP.clear()
    changed = {k: after[k] - before[k] for k in after if after[k] != before[k]}
    if getattr(request.session, "dlferry_failed", False):
        changed = {k: n for k, n in changed.items() if n > 0}
    assert not changed, f"left behind: {changed}"
