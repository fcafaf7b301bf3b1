"""Casts every pair of element types with NumPy and ml_dtypes, for cast_test.go.

Writes, for each pair: a line "source target count", the source's bytes, the target's bytes.
"""

import sys
import warnings

import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")
rng = np.random.default_rng(11)

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = (
    "float16 bfloat16 float32 float64 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()
COMPLEX = "complex64 complex128".split()


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def bits(d, n):
    return np.frombuffer(rng.bytes(n * d.itemsize), d)


def values(name):
    d = dtype(name)
    if name == "bool":
        return np.array([False, True, True, False])
    if name in INTEGERS:
        info = np.iinfo(d)
        edges = [
            v
            for v in (0, 1, 2, 127, 128, 255, 256, 65504, 65520, 2**24 + 1, 2**53 + 1, info.min, info.max, info.max - 1)
            if info.min <= v <= info.max
        ]
        return np.concatenate([np.array(edges, d), bits(d, 500), (bits(d, 200) % 100).astype(d)])
    if d.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(d)
    if d.itemsize == 2:
        return np.arange(65536, dtype=np.uint16).view(d)
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1.5, -1.75, 448, 464, 465, 480, 240, 248, 57344, 61440, 65519, 65520, 1e30, 3.4e38, 1e-42]
    )
    scaled = rng.standard_normal(3000) * 2.0 ** rng.integers(-30, 20, 3000)
    real = np.concatenate([special, scaled])
    if name in COMPLEX:
        return (real + 1j * real[::-1]).astype(d)
    return np.concatenate([real.astype(d), bits(d, 1000)])


def comparable(v, source, target):
    """Leaves out what C does not define, floats that the integer cannot hold, and where ml_dtypes does not round to the nearest: e8m0 below 2**-126."""
    if target in INTEGERS and source not in INTEGERS + ["bool"]:
        info = np.iinfo(target)
        real = np.real(v).astype(np.float64)
        return v[(real > max(info.min, -(2.0**62))) & (real < min(info.max, 2.0**62))]
    if target == "float8_e8m0fnu" and source not in INTEGERS + ["bool"]:
        real = np.real(v).astype(np.float64)
        return v[~((real > 0) & (real < 2.0**-126))]
    return v


def main(path):
    names = ["bool"] + INTEGERS + FLOATS + COMPLEX
    with open(path, "wb") as f:
        for source in names:
            for target in names:
                if source == target:
                    continue
                v = np.ascontiguousarray(comparable(values(source), source, target))
                try:
                    w = v.astype(dtype(target))
                except TypeError:
                    print(f"{source} to {target}: not offered", file=sys.stderr)
                    continue
                f.write(f"{source} {target} {v.size}\n".encode() + v.tobytes() + w.tobytes())


main(sys.argv[1])
