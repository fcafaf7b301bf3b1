"""An exception in flight while something of ours dies: C code that holds the last reference, has an error set, and returns NULL."""

import ctypes as C
import gc

import pytest
from support import N0, N1, U0, U1, Fake, api, c_library, have_compiler, our_table

import dlferry as g

# Called through PyDLL: with the GIL, and with ctypes looking for an exception when it returns NULL. Python's functions are found in the interpreter.
SOURCE = r"""
extern void *PyExc_ValueError;
void PyErr_SetString(void *, const char *);
void *PyErr_Occurred(void);
void Py_DecRef(void *);
void *PyObject_CallObject(void *, void *);
int PyCapsule_SetName(void *, const char *);

void *dies_after(void *make)
{
    void *held = PyObject_CallObject(make, 0);
    if (!held)
        return 0;
    PyErr_SetString(PyExc_ValueError, "mine");
    Py_DecRef(held);
    return 0;
}

void *dies_renamed(void *make, const char *name)
{
    void *held = PyObject_CallObject(make, 0);
    if (!held || PyCapsule_SetName(held, name))
        return 0;
    PyErr_SetString(PyExc_ValueError, "mine");
    Py_DecRef(held);
    return 0;
}

/* The deleter of a managed tensor, called with an error set. */
void *deletes(void (*deleter)(void *), void *managed)
{
    PyErr_SetString(PyExc_ValueError, "mine");
    deleter(managed);
    return 0;
}
"""

pytestmark = have_compiler()


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    lib = c_library(tmp_path_factory.mktemp("in_flight"), SOURCE, loader=C.PyDLL)
    lib.dies_after.restype = lib.dies_renamed.restype = lib.deletes.restype = C.py_object
    lib.dies_after.argtypes = [C.py_object]
    lib.dies_renamed.argtypes = [C.py_object, C.c_char_p]
    lib.deletes.argtypes = [C.c_void_p, C.c_void_p]
    return lib


class Loud(Fake):
    """Its deleter runs Python code, fails in it, and uses dlferry."""

    def _free(self, p):
        super()._free(p)
        try:
            g.from_dlpack(5)
        except TypeError:
            pass
        assert g.zeros(2).tolist() == [0, 0]


class Owner:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append(1)
        try:
            raise KeyError("in the finaliser")
        except KeyError:
            pass


def ours(**keywords):
    return lambda: g.asarray([1, 2]).__dlpack__(**keywords)


def foreign(**keywords):
    return lambda: g.from_dlpack(Loud()).__dlpack__(**keywords)


def view_of_a_buffer(**keywords):
    return lambda: g.from_buffer(bytearray(8))[2:].__dlpack__(**keywords)


def owned(**keywords):
    def make():
        t = g.zeros(4, dtype="uint8")
        return g.wrap_pointer(t.data_ptr(), (4,), "uint8", owner=[t, Owner([])]).__dlpack__(**keywords)

    return make


@pytest.mark.parametrize("keywords", [{}, {"max_version": (1, 3)}, {"copy": True}], ids=["legacy", "versioned", "copied"])
@pytest.mark.parametrize("make", [ours, foreign, view_of_a_buffer, owned])
def test_an_unused_capsule_that_dies_keeps_the_error_of_its_holder(lib, make, keywords):
    # case A08, https://github.com/pytorch/pytorch/issues/84056
    for _ in range(3):
        with pytest.raises(ValueError, match="^mine$") as e:
            lib.dies_after(make(**keywords))
        assert e.value.__context__ is None and e.value.__cause__ is None


@pytest.mark.parametrize("ver", [None, (1, 3)])
def test_a_used_capsule_that_dies_keeps_the_error_of_its_holder(lib, ver):
    # case A08
    def make():
        c = foreign(max_version=ver)()
        g.from_dlpack(c)
        assert api.PyCapsule_GetName(c) == (U1 if ver else U0)
        return c

    with pytest.raises(ValueError, match="^mine$"):
        lib.dies_after(make)


@pytest.mark.parametrize("name", [U0, U1, b"", b"something else", None])
def test_a_capsule_that_was_renamed_keeps_the_error_of_its_holder(lib, name):
    # case A08
    taken = []

    def make():
        t = g.zeros(3)
        c = t.__dlpack__(max_version=(1, 3))
        taken.append(api.PyCapsule_GetPointer(c, N1))
        return c

    with pytest.raises(ValueError, match="^mine$"):
        lib.dies_renamed(make, name)
    assert g.from_address(taken[0]).tolist() == [0, 0, 0]  # whoever renames a capsule owns what was in it


def test_everything_else_that_may_die_keeps_the_error_too(lib):
    # case A08
    class Sub(g.Tensor):
        def __del__(self):
            assert self.tolist()

    for make in (
        lambda: g.from_dlpack(Loud()),
        lambda: g.from_dlpack(Loud())[1:],
        lambda: g.from_buffer(bytearray(4)),
        lambda: Sub(g.from_dlpack(Loud())),
        lambda: memoryview(g.from_dlpack(Loud())),
        lambda: iter(g.from_dlpack(Loud())),
        lambda: [g.from_dlpack(Loud()), g.zeros(1).__dlpack__()],
        lambda: g.wrap_pointer(g.zeros(1).data_ptr(), (1,), "uint8", owner=Owner([])),
    ):
        with pytest.raises(ValueError, match="^mine$"):
            lib.dies_after(make)
    gc.collect()


@pytest.mark.parametrize("kind", ["ours", "foreign", "buffer"])
def test_a_deleter_called_with_an_error_set_leaves_it(lib, kind):
    # case A08
    t = {"ours": lambda: g.zeros(3), "foreign": lambda: g.from_dlpack(Loud()), "buffer": lambda: g.from_buffer(bytearray(3))}[kind]()
    from support import managed

    for keywords, name in (({}, U0), ({"max_version": (1, 3)}, U1)):
        c = t.__dlpack__(**keywords)
        m = managed(c)
        assert api.PyCapsule_GetName(c) in (N0, N1)
        api.PyCapsule_SetName(c, name)
        with pytest.raises(ValueError, match="^mine$"):
            lib.deletes(m.free, C.addressof(m))
    c = t.__dlpack__(max_version=(1, 3))
    m = managed(c)
    api.PyCapsule_SetName(c, U1)
    del t
    with pytest.raises(ValueError, match="^mine$"):
        lib.deletes(m.free, C.addressof(m))


def test_our_table_sets_the_error_of_this_call_and_no_other(lib):
    # case A08: a table of ours that fails answers -1 and sets one exception, also after one that was handled
    table = our_table(g.Tensor)
    for _ in range(3):
        try:
            raise KeyError("handled")
        except KeyError:
            with pytest.raises(TypeError, match=r"dlferry\.Tensor"):
                table.from_py(5, C.c_void_p())
        out = C.c_void_p()
        t = g.zeros(2)
        assert table.from_py(t, out) == 0
        g.from_address(out.value)
