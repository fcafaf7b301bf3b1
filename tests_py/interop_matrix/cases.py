"""What is tried with every library: a dtype, a layout, and the very bytes that must arrive."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import tempfile
from dataclasses import dataclass, field

# name of dlferry: (code, bits, lanes)
DTYPES = {
    "bool": (6, 8, 1),
    "int8": (0, 8, 1),
    "int16": (0, 16, 1),
    "int32": (0, 32, 1),
    "int64": (0, 64, 1),
    "uint8": (1, 8, 1),
    "uint16": (1, 16, 1),
    "uint32": (1, 32, 1),
    "uint64": (1, 64, 1),
    "float16": (2, 16, 1),
    "float32": (2, 32, 1),
    "float64": (2, 64, 1),
    "bfloat16": (4, 16, 1),
    "complex64": (5, 64, 1),
    "complex128": (5, 128, 1),
    "float8_e3m4": (7, 8, 1),
    "float8_e4m3": (8, 8, 1),
    "float8_e4m3b11fnuz": (9, 8, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float4_e2m1fn_x2": (17, 4, 2),
}
_STRUCT = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float16": "e", "float32": "f", "float64": "d", "complex64": "2f", "complex128": "2d",
}  # fmt: skip
# Where each layout of two axes lies in its base: base shape, what to take of it, offset and strides in elements.
LAYOUTS = {
    "plain": ((2, 3), lambda a: a, (2, 3), 0, (3, 1)),
    "strided": ((4, 6), lambda a: a[::2, ::2], (2, 3), 0, (12, 2)),
    "transposed": ((3, 2), lambda a: a.T, (2, 3), 0, (1, 2)),
    "negative": ((2, 3), lambda a: a[:, ::-1], (2, 3), 2, (3, -1)),
    "broadcast": ((1, 3), None, (2, 3), 0, (0, 1)),
    "empty": ((0, 3), lambda a: a, (0, 3), 0, (3, 1)),
    "scalar": ((), lambda a: a, (), 0, ()),
    "offset": ((3, 3), lambda a: a[1:], (2, 3), 3, (3, 1)),
    "unaligned": ((2, 3), None, (2, 3), 0, (3, 1)),
}
# The same for libraries whose arrays have one axis.
FLAT = {
    "plain": ((6,), lambda a: a, (6,), 0, (1,)),
    "strided": ((12,), lambda a: a[::2], (6,), 0, (2,)),
    "negative": ((6,), lambda a: a[::-1], (6,), 5, (-1,)),
    "broadcast": ((1,), None, (6,), 0, (0,)),
    "empty": ((0,), lambda a: a, (0,), 0, (1,)),
    "offset": ((7,), lambda a: a[1:], (6,), 1, (1,)),
    "unaligned": ((6,), None, (6,), 0, (1,)),
}


@dataclass(frozen=True)
class Case:
    name: str
    dtype: str = "float32"
    layout: str = "plain"
    readonly: bool = False
    flat: bool = False
    spec: tuple = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "spec", (FLAT if self.flat else LAYOUTS)[self.layout])

    @property
    def base_shape(self):
        return self.spec[0]

    @property
    def take(self):
        """The view of a base array, as slices of it; None where slicing does not give it."""
        return self.spec[1]

    @property
    def shape(self):
        return self.spec[2]

    @property
    def offset(self):
        return self.spec[3]

    @property
    def strides(self):
        return self.spec[4]

    @property
    def key(self):
        return DTYPES[self.dtype]

    @property
    def itemsize(self):
        _, bits, lanes = self.key
        return bits * lanes // 8

    def element(self, i):
        """The bytes of the base's element i, and its value where Python has one."""
        if self.dtype == "bool":
            return struct.pack("?", i % 2 == 0), i % 2 == 0
        if self.dtype in ("complex64", "complex128"):
            return struct.pack(_STRUCT[self.dtype], i + 1, -i), complex(i + 1, -i)
        if self.dtype == "bfloat16":
            return struct.pack("<f", i + 1)[2:], float(i + 1)
        if self.dtype in _STRUCT:
            value = -(i + 1) if self.dtype.startswith("int") else i + 1
            return struct.pack(_STRUCT[self.dtype], value), value
        return bytes([0x31 + i]), None  # small floats: a number that every one of them has

    @property
    def base(self):
        """The bytes of the whole base."""
        n = 1
        for extent in self.base_shape:
            n *= extent
        return b"".join(self.element(i)[0] for i in range(n))

    def _walk(self, get):
        def axis(k, at):
            if k == len(self.shape):
                return get(at)
            return [axis(k + 1, at + i * self.strides[k]) for i in range(self.shape[k])]

        return axis(0, self.offset)

    @property
    def raw(self):
        """The bytes of each element, as nested lists."""
        return self._walk(lambda i: self.element(i)[0])

    @property
    def values(self):
        """The values as nested lists; None for types that Python has no number for."""
        return None if self.element(0)[1] is None else self._walk(lambda i: self.element(i)[1])


def cases(flat=False):
    found = [
        Case("contiguous", flat=flat),
        Case("strided", layout="strided", flat=flat),
        Case("negative stride", layout="negative", flat=flat),
        Case("stride 0", layout="broadcast", flat=flat),
        Case("no elements", layout="empty", flat=flat),
        Case("view at an offset", layout="offset", flat=flat),
        Case("unaligned", layout="unaligned", flat=flat),
        Case("read-only", readonly=True, flat=flat),
    ]
    if not flat:
        found.insert(2, Case("transposed", layout="transposed"))
        found.insert(5, Case("no axes", layout="scalar"))
    return found + [Case(name, dtype=name, flat=flat) for name in DTYPES if name != "float32"]


# Cases that are no small tensor of known bytes.
STORM, BIG = "200 of 1 MiB", "over 2^31 elements"
BIG_SIZE = (1 << 31) + 8


def names():
    return [*(c.name for c in cases()), STORM, BIG]


def read(pointer, shape, strides, itemsize):
    """The bytes of each element in memory, as nested lists; strides None: row-major."""
    if strides is None:
        strides = [1] * len(shape)
        for k in range(len(shape) - 2, -1, -1):
            strides[k] = strides[k + 1] * shape[k + 1]

    def axis(k, at):
        if k == len(shape):
            return ctypes.string_at(pointer + at * itemsize, itemsize)
        return [axis(k + 1, at + i * strides[k]) for i in range(shape[k])]

    return axis(0, 0)


class Memory:
    """Memory of a case, at an address that is a multiple of 256 (or just not, for the unaligned one), which a weakref can watch."""

    def __init__(self, case):
        content = case.base
        self.bytes = ctypes.create_string_buffer(len(content) + 512)
        self.address = -(-ctypes.addressof(self.bytes) // 256) * 256 + (1 if case.layout == "unaligned" else 0)
        ctypes.memmove(self.address, content, len(content))


class BigMemory:
    """A sparse file of more than 2^31 bytes, mapped; all 0 but the last byte, which is 7."""

    def __init__(self):
        with tempfile.TemporaryFile() as file:
            os.truncate(file.fileno(), BIG_SIZE)
            os.pwrite(file.fileno(), b"\x07", BIG_SIZE - 1)
            self.map = mmap.mmap(file.fileno(), BIG_SIZE, mmap.MAP_SHARED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
