"""Sub-interpreters are refused cleanly."""

import pytest
from support import alone


@pytest.mark.parametrize("own_gil", [True, False])
def test_a_sub_interpreter_gets_an_import_error(own_gil):
    # case B05, https://github.com/pybind/pybind11/pull/5965
    alone(f"""
    import sys, dlferry as g
    lines = [
        "import sys",
        "sys.path[:] = " + repr(sys.path),
        "try:",
        "    import dlferry",
        "except ImportError as e:",
        "    assert 'interpreter' in str(e).lower(), e",
        "else:",
        "    raise SystemExit('imported')",
    ]
    code = chr(10).join(lines)
    try:
        import _interpreters as I
    except ImportError:
        import _xxsubinterpreters as I
    try:
        i = I.create("isolated" if {own_gil} else "legacy")
    except TypeError:
        i = I.create(isolated={own_gil})
    r = I.run_string(i, code)
    assert r is None, r
    I.destroy(i)
    t = g.from_dlpack(g.asarray([1, 2]).__dlpack__())
    assert t.tolist() == [1, 2] and g.asarray([1]).astype("int8").tolist() == [1]
    """)


def test_releases_on_threads_still_work_after_a_sub_interpreter_existed():
    # PyGILState_Check says yes on every thread from then on
    alone("""
    import sys, ctypes as C, dlferry as g
    from support import Fake, U1, api, managed
    try:
        import _interpreters as I
    except ImportError:
        import _xxsubinterpreters as I
    i = I.create()
    I.run_string(i, "x = 1")
    free_type = C.CFUNCTYPE(None, C.c_void_p)
    fakes = []
    for _ in range(200):
        f = Fake(); fakes.append(f)
        t = g.from_dlpack(f)
        c = t.__dlpack__(max_version=(1, 3)); m = managed(c); api.PyCapsule_SetName(c, U1)
        del t
        free_type(m.free)(C.addressof(m))
    I.destroy(i)
    g.zeros(1)
    assert all(f.freed == 1 for f in fakes)
    """)


def test_the_extension_can_be_imported_twice():
    alone("""
    import sys, gc, dlferry
    first = dlferry.Tensor
    t = dlferry.zeros(2)
    for name in [m for m in sys.modules if m.partition(".")[0] == "dlferry"]:
        del sys.modules[name]
    del dlferry
    gc.collect()
    import dlferry
    assert dlferry.Tensor is first and t.tolist() == [0, 0] and dlferry.from_dlpack(t).tolist() == [0, 0] and dlferry.zeros(1)[0].item() == 0
    """)
