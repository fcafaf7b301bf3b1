"""Builds nanobind_peer.cpp with the compiler at hand, once for a version of nanobind and of Python."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("nanobind_peer.cpp")
NAME = "dlferry_nanobind_peer"


def compiler():
    return shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")


def build():
    """The path of the extension, or an ImportError that names what is missing."""
    import nanobind

    cxx = compiler()
    if cxx is None:
        raise ImportError("no C++ compiler (g++, c++ or clang++)")
    python = Path(sysconfig.get_path("include"))
    if not (python / "Python.h").exists():
        raise ImportError("no Python.h")
    include = Path(nanobind.include_dir())
    key = hashlib.sha256(f"{SOURCE.read_text()}{importlib.metadata.version('nanobind')}{sys.version}{cxx}".encode()).hexdigest()[:16]
    built = ROOT / "build" / "interop" / key / f"{NAME}.so"
    built.parent.mkdir(parents=True, exist_ok=True)
    with open(built.with_name("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes want it at once
        if built.exists():
            return built
        away = built.with_name(f"{os.getpid()}.so")
        robin = include.parent / "ext" / "robin_map" / "include"
        flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG"]
        includes = [f"-I{folder}" for folder in (include, robin, python)]
        subprocess.run([cxx, *flags, *includes, "-o", away, SOURCE, include.parent / "src" / "nb_combined.cpp"], check=True)
        away.replace(built)
    return built


def extension():
    spec = importlib.util.spec_from_file_location(NAME, build())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
