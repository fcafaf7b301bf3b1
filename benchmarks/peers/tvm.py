"""A C++ function of apache-tvm-ffi that takes three tensors and does nothing."""

from __future__ import annotations

from typing import Any

from benchmarks.build import BUILT, Unavailable, tool

SOURCE = "void take3(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {}"


def take3() -> Any:
    """The function, built by tvm-ffi itself."""
    tool("g++", "c++", "clang++")
    tool("ninja")
    try:
        from tvm_ffi import cpp

        folder = BUILT / "tvm"
        folder.mkdir(parents=True, exist_ok=True)
        return cpp.load_inline(name="dlferry_bench", cpp_sources=SOURCE, functions="take3", build_directory=str(folder)).take3
    except Exception as e:  # a build by another tool: it may end in any error
        raise Unavailable(f"tvm_ffi.cpp.load_inline: {e}") from e
