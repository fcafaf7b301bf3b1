"""A DLPack producer made of ctypes, and a reader of other producers' capsules."""

from __future__ import annotations

import ctypes as C

api = C.PyDLL(None)  # private: other packages set prototypes on ctypes.pythonapi
KEEP: list[object] = []  # a tensor may outlive the name of its Fake; conftest.py empties it after each test


class Dev(C.Structure):
    _fields_ = [("type", C.c_int32), ("id", C.c_int32)]


class Ty(C.Structure):
    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


I64P = C.POINTER(C.c_int64)


class Ten(C.Structure):
    _fields_ = [
        ("data", C.c_void_p),
        ("dev", Dev),
        ("ndim", C.c_int32),
        ("ty", Ty),
        ("shape", I64P),
        ("strides", I64P),
        ("off", C.c_uint64),
    ]


class Old(C.Structure):
    _fields_ = [("t", Ten), ("ctx", C.c_void_p), ("free", C.c_void_p)]


class New(C.Structure):
    _fields_ = [
        ("major", C.c_uint32),
        ("minor", C.c_uint32),
        ("ctx", C.c_void_p),
        ("free", C.c_void_p),
        ("flags", C.c_uint64),
        ("t", Ten),
    ]


FREE = C.CFUNCTYPE(None, C.c_void_p)
for _name, _result, _args in (
    ("PyCapsule_New", C.py_object, [C.c_void_p, C.c_char_p, C.c_void_p]),
    ("PyCapsule_GetName", C.c_char_p, [C.py_object]),
    ("PyCapsule_GetPointer", C.c_void_p, [C.py_object, C.c_char_p]),
    ("PyCapsule_SetName", C.c_int, [C.py_object, C.c_char_p]),
    ("Py_IncRef", None, [C.py_object]),
    ("Py_DecRef", None, [C.py_object]),
):
    _f = getattr(api, _name)
    _f.restype = _result
    _f.argtypes = _args
N0, N1, U0, U1 = b"dltensor", b"dltensor_versioned", b"used_dltensor", b"used_dltensor_versioned"


def compact(shape):
    """Row-major strides; extents that do not fit are left to the library under test."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return [s if -(2**63) <= s < 2**63 else 0 for s in reversed(strides)]


class Fake:
    """Producer whose every field the test controls. ver=None: the legacy struct."""

    def __init__(
        self,
        buf=bytes(range(64)),
        shape=(4,),
        strides="c",
        ty=(1, 8, 1),
        off=0,
        dev=(1, 0),
        ver=(1, 1),
        flags=0,
        null=False,
        nofree=False,
        ndim=None,
        shape_null=False,
        old_api=False,
        cap=None,
        raises=None,
        data=None,
    ):
        self.buf = C.create_string_buffer(bytes(buf), max(1, len(buf)))
        self.freed = 0
        self.calls = []
        self.caps = []
        self.dev, self.ver, self.old_api, self.cap, self.raises = dev, ver, old_api, cap, raises
        self.shape = (C.c_int64 * max(1, len(shape)))(*shape)
        if isinstance(strides, str):
            strides = compact(shape)
        self.strides = None if strides is None else (C.c_int64 * max(1, len(strides)))(*strides)
        m = New() if ver else Old()
        t = m.t
        t.data = None if null else C.addressof(self.buf) if data is None else data
        t.dev = Dev(*dev)
        t.ty = Ty(*ty)
        t.off = off
        t.ndim = len(shape) if ndim is None else ndim
        t.shape = None if shape_null else C.cast(self.shape, I64P)
        t.strides = None if self.strides is None else C.cast(self.strides, I64P)
        self.callback = FREE(self._free)
        m.free = None if nofree else C.cast(self.callback, C.c_void_p).value
        if ver:
            m.major, m.minor, m.flags = ver[0], ver[1], flags
        self.m = m
        KEEP.append(self)

    def _free(self, _):
        self.freed += 1

    def __repr__(self):
        t = self.m.t
        shape, strides = list(self.shape), self.strides and list(self.strides)
        flags = self.m.flags if self.ver else None
        at = t.data and t.data % 64
        return f"<Fake {at=} {shape=} {strides=} ndim={t.ndim} ty={(t.ty.code, t.ty.bits, t.ty.lanes)} off={t.off} dev={self.dev} ver={self.ver} {flags=}>"

    @property
    def address(self):
        return C.addressof(self.m)

    @property
    def pointer(self):
        return C.addressof(self.buf)

    def capsule(self):
        c = api.PyCapsule_New(self.address, self.cap or (N1 if self.ver else N0), None)
        self.caps.append(c)
        return c

    def __dlpack_device__(self):
        return self.dev

    def __dlpack__(self, **kw):
        self.calls.append(dict(kw))
        if self.old_api and set(kw) - {"stream"}:
            raise TypeError("unexpected keyword argument")
        if self.raises is not None:
            raise self.raises
        return self.capsule()

    def names(self):
        return [api.PyCapsule_GetName(c) for c in self.caps]

    def balanced(self):
        """Each capsule is either untouched, or was consumed and freed exactly once."""
        return self.freed == sum(n in (U0, U1) for n in self.names())


def capsule_name(capsule):
    return api.PyCapsule_GetName(capsule)


def managed(capsule):
    """The struct inside an unconsumed capsule."""
    name = api.PyCapsule_GetName(capsule)
    return (New if name == N1 else Old).from_address(api.PyCapsule_GetPointer(capsule, name))


def peek(capsule):
    """What an exporter put into an unconsumed capsule."""
    name = api.PyCapsule_GetName(capsule)
    m = managed(capsule)
    t = m.t
    n = t.ndim
    return {
        "name": name,
        "address": C.addressof(m),
        "ver": (m.major, m.minor) if name == N1 else None,
        "flags": m.flags if name == N1 else None,
        "free": m.free,
        "ctx": m.ctx,
        "data": t.data,
        "off": t.off,
        "ndim": n,
        "dev": (t.dev.type, t.dev.id),
        "ty": (t.ty.code, t.ty.bits, t.ty.lanes),
        "shape": [t.shape[i] for i in range(n)],
        "strides": [t.strides[i] for i in range(n)] if t.strides else None,
    }


def delete_all(capsules):
    """Consumes capsules as a library would: renames them and calls the deleter."""
    for c in capsules:
        m = managed(c)
        api.PyCapsule_SetName(c, U1 if isinstance(m, New) else U0)
        FREE(m.free)(C.addressof(m))


def bad(f):
    """Calls f, which must refuse with BufferError, ValueError or TypeError (never SystemError); gives the exception back."""
    try:
        result = f()
    except (BufferError, ValueError, TypeError) as e:
        return e
    raise AssertionError(f"accepted, gave a {type(result).__name__}")  # printing it may read memory that is not there
