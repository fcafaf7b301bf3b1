"""DLPack exchange tables made of ctypes, and a caller of dlferry's own."""

from __future__ import annotations

import ctypes as C

from .fake import FREE, KEEP, Ten, api

EXCHANGE = b"dlpack_exchange_api"


class Api(C.Structure):
    _fields_ = [
        ("major", C.c_uint32),
        ("minor", C.c_uint32),
        ("prev", C.c_void_p),
        ("allocate", C.c_void_p),
        ("from_py", C.c_void_p),
        ("to_py", C.c_void_p),
        ("view", C.c_void_p),
        ("stream", C.c_void_p),
    ]


Out = C.POINTER(C.c_void_p)
FROM = C.PYFUNCTYPE(C.c_int, C.c_void_p, Out)
TO = C.PYFUNCTYPE(C.c_int, C.c_void_p, Out)
VIEW = C.PYFUNCTYPE(C.c_int, C.c_void_p, C.POINTER(Ten))
STREAM = C.PYFUNCTYPE(C.c_int, C.c_int32, C.c_int32, Out)
SET_ERROR = C.CFUNCTYPE(None, C.c_void_p, C.c_char_p, C.c_char_p)
ALLOCATE = C.CFUNCTYPE(C.c_int, C.POINTER(Ten), Out, C.c_void_p, C.c_void_p)

FOREVER: list[object] = []  # tables live as long as the process, as the standard asks


def address_of(function):
    return C.cast(function, C.c_void_p).value


class Table:
    """An exchange table of Python functions.

    give(obj) returns the address of a managed tensor, or raises to fail without an exception. take(address) returns an object, or raises.
    Instead of functions, `from_py` and `to_py` may be addresses of C functions.
    """

    def __init__(self, give=None, take=None, *, version=(1, 3), prev=None, from_py=None, to_py=None):
        self.given = 0
        self.taken = []
        t = self.table = Api()
        t.major, t.minor = version
        t.prev = C.addressof(prev.table) if isinstance(prev, Table) else prev
        if give is not None:

            def give_out(obj, out):
                try:
                    value = give(C.cast(obj, C.py_object).value)
                except Exception:
                    return -1
                self.given += 1
                out[0] = value
                return 0

            self.from_callback = FROM(give_out)
            t.from_py = address_of(self.from_callback)
        if take is not None:

            def take_in(m, out):
                self.taken.append(m)
                try:
                    value = take(m)
                except Exception:
                    return -1
                if value is not None:
                    api.Py_IncRef(C.py_object(value))
                    out[0] = id(value)
                return 0

            self.to_callback = TO(take_in)
            t.to_py = address_of(self.to_callback)
        if from_py is not None:
            t.from_py = from_py
        if to_py is not None:
            t.to_py = to_py
        FOREVER.append(self)

    def capsule(self, name=EXCHANGE):
        return table_capsule(self.table, name)


def table_capsule(table, name=EXCHANGE):
    FOREVER.append(table)
    FOREVER.append(name)
    return api.PyCapsule_New(C.addressof(table), name, None)


def exchange_type(attribute, base=object, **namespace):
    """A type that carries an exchange table (or whatever else) under the standard's name."""
    cls = type("Producer", (base,), {"__dlpack_c_exchange_api__": attribute, **namespace})
    FOREVER.append(cls)
    return cls


class OurTable:
    """Calls the functions of a type's table as a C library would, with the GIL held."""

    def __init__(self, cls, attribute="__dlpack_c_exchange_api__"):
        self.address = api.PyCapsule_GetPointer(getattr(cls, attribute), EXCHANGE)
        self.api = Api.from_address(self.address)
        self.from_py = C.PYFUNCTYPE(C.c_int, C.py_object, Out)(self.api.from_py)
        self.to_py = TO(self.api.to_py)
        self.view = C.PYFUNCTYPE(C.c_int, C.py_object, C.POINTER(Ten))(self.api.view)
        self.stream = STREAM(self.api.stream)
        self.allocate = ALLOCATE(self.api.allocate)  # called without the GIL


def our_table(cls, attribute="__dlpack_c_exchange_api__"):
    return OurTable(cls, attribute)


__all__ = ["EXCHANGE", "FREE", "KEEP", "SET_ERROR", "Api", "Out", "Table", "address_of", "exchange_type", "our_table", "table_capsule"]
