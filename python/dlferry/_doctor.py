"""``python -m dlferry doctor``: what dlferry meets on this machine, and whether it works here."""

from __future__ import annotations

import ctypes.util
import json
import os
import platform
import resource
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import dlferry

from . import _capsule, _core
from ._peers import PEERS, Peer, faults_of, installed
from ._terminal import bad, bold, dim, good
from ._zconst import ATTR_EXCHANGE, ATTR_EXCHANGE_OLD

__all__ = ["doctor", "report"]

_SETTINGS = {
    "DLFERRY_NUM_THREADS": "threads of bulk copies and casts",
    "DLFERRY_AFTER_FORK": "'reload' gives a forked child a Go library of its own",
}
_ROOM = 4 << 30  # address space that Go's runtime and a framework want to reserve


def doctor(*, as_json: bool = False, imports: bool = False) -> int:
    """Print the report; 0 when dlferry works here, else 1."""
    found = report(imports=imports)
    print(json.dumps(found, indent=2) if as_json else "\n".join(_text(found)))
    return 0 if found["ok"] else 1


def report(*, imports: bool = False) -> dict[str, Any]:
    """The findings. The Go library is opened, no framework is imported here.

    Parameters
    ----------
    imports : bool
        Import each framework in a process of its own, to see whether that works and which exchange tables it has.
    """
    before = _core._go_state()
    checks = [_check("exchange", _exchange), _check("go", _go)]
    return {
        "ok": all(c["ok"] for c in checks),
        "checks": checks,
        "dlferry": {
            "version": dlferry.__version__,
            "dlpack": list(dlferry.DLPACK_VERSION),
            "extension": str(_core.__file__),
            "go_library": _go_library(),
            "go_state_before": before,
            "go": _go_info(),
            "ledger": dlferry.ledger(),
        },
        "python": _python(),
        "platform": _platform(),
        "devices": _devices(),
        "settings": _settings(),
        "frameworks": [_framework(peer, version, imports) for peer, version in installed()],
        "not_installed": _absent(),
    }


# --- does it work? ---


def _check(name: str, run: Any) -> dict[str, Any]:
    try:
        return {"name": name, "ok": True, "text": run()}
    except Exception as e:
        return {"name": name, "ok": False, "text": f"{type(e).__name__}: {e}"}


class _Wrong(Exception):
    pass


def _exchange() -> str:
    before = dlferry.ledger()
    t = dlferry.full((2, 3), 1.5)
    u = dlferry.from_dlpack(t.T.__dlpack__(max_version=dlferry.DLPACK_VERSION))
    u[0, 1] = 4.0
    if u.data_ptr() != t.data_ptr() or t.tolist() != [[1.5, 1.5, 1.5], [4.0, 1.5, 1.5]]:
        raise _Wrong("a tensor came back from its own capsule as another one")
    del t, u
    if dlferry.ledger() != before:
        raise _Wrong(f"not everything was freed: {before} before, {dlferry.ledger()} after")
    return "a tensor went out through a capsule and came back over the same memory; everything was freed"


def _go() -> str:
    if dlferry.asarray([1.0, -2.5, 1e6]).astype("bfloat16").astype("float32").tolist() != [1.0, -2.5, 999424.0]:
        raise _Wrong("a cast in Go gave wrong values")
    return "a cast ran in Go"


def _go_library() -> str | None:
    path = Path(str(_core.__file__)).parent / "libdlferry.so"
    return str(path) if path.exists() else None


def _go_info() -> dict[str, Any] | None:
    if _core._go_state() != "loaded":
        return None
    found: dict[str, Any] = json.loads(_core._go_info())
    return found


# --- where are we? ---


def _python() -> dict[str, Any]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    }


def _platform() -> dict[str, Any]:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "cpus": len(os.sched_getaffinity(0)),
        "address_space_limit": None if limit == resource.RLIM_INFINITY else limit,
    }


def _devices() -> dict[str, Any]:
    """What lies on the disk; no driver is started."""
    nvidia = Path("/proc/driver/nvidia/version")
    return {
        "cuda_driver": ctypes.util.find_library("cuda"),
        "nvidia_kernel_module": nvidia.read_text().splitlines()[0] if nvidia.exists() else None,
        "rocm_runtime": ctypes.util.find_library("amdhip64"),
    }


def _settings() -> list[dict[str, Any]]:
    names = [*_SETTINGS, *sorted(n for n in os.environ if n.startswith("DLFERRY_") and n not in _SETTINGS)]
    return [{"name": n, "value": os.environ.get(n), "known": n in _SETTINGS, "what": _SETTINGS.get(n)} for n in names]


# --- the frameworks ---


def _absent() -> list[str]:
    here = {peer.name for peer, _ in installed()}
    return [peer.name for peer in PEERS if peer.name not in here]


def _framework(peer: Peer, version: str, imports: bool) -> dict[str, Any]:
    faults = [{"seen": f.seen, "what": f.what, "dlferry": f.dlferry} for f in faults_of(peer.name)]
    entry: dict[str, Any] = {"name": peer.name, "version": version, "imported": peer.module in sys.modules, "error": None}
    entry["exchange_table"] = None
    entry["faults"] = faults
    if imports:
        entry.update(_import_elsewhere(peer))
    elif entry["imported"]:
        entry["exchange_table"] = tables(peer)
    return entry


def tables(peer: Peer) -> dict[str, Any]:
    """The exchange tables of the tensor type of a library that is imported, by attribute."""
    from ._convert import _TARGETS, _attribute

    target = _TARGETS.get(peer.name)
    cls = _attribute(sys.modules[peer.module], target.type_name) if target is not None else ()
    found = {name: getattr(cls, name, None) for name in (ATTR_EXCHANGE, ATTR_EXCHANGE_OLD)}
    return {name: _capsule.table_of(value) for name, value in found.items() if value is not None}


def _import_elsewhere(peer: Peer) -> dict[str, Any]:
    code = (
        f"import sys; sys.path.append({str(Path(dlferry.__file__).parent.parent)!r})\n"
        "import importlib, json, time; start = time.perf_counter()\n"
        f"importlib.import_module({peer.module!r}); took = time.perf_counter() - start\n"
        "from dlferry import _doctor, _peers\n"
        f"peer = next(p for p in _peers.PEERS if p.name == {peer.name!r})\n"
        "print('\\n' + json.dumps({'exchange_table': _doctor.tables(peer), 'import_seconds': round(took, 2)}))"
    )
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "its import does not end within 300 s"}
    if done.returncode < 0:
        return {"error": f"its import is ended by signal {-done.returncode}"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"its import ends with exit code {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


# --- words ---


def _text(f: dict[str, Any]) -> list[str]:
    ours, python, system, devices = f["dlferry"], f["python"], f["platform"], f["devices"]
    go = ours["go"]
    lines = [bold(f"dlferry {ours['version']}, DLPack {'.'.join(map(str, ours['dlpack']))}")]
    lines += [f"  {good('ok  ') if c['ok'] else bad('FAIL')}  {c['name']}: {c['text']}" for c in f["checks"]]
    lines += ["", bold("Where")]
    rows = [
        ("extension", ours["extension"]),
        ("Go library", f"{ours['go_library'] or 'missing'}, {go['go'] if go else _core._go_state()}"),
        ("ledger", ", ".join(f"{v} {k}" for k, v in ours["ledger"].items())),
        ("Python", f"{python['implementation']} {python['version']}{', free-threaded' if python['free_threaded'] else ''}, {python['executable']}"),
        ("platform", f"{system['system']} {system['release']} {system['machine']}, {system['libc'] or 'libc not known'}"),
        ("processors", f"{system['cpus']} for this process; bulk work takes {dlferry.get_num_threads() or 'as many'} threads"),
        ("address space", _space(system["address_space_limit"])),
        ("CUDA", devices["cuda_driver"] or "no driver library"),
        ("ROCm", devices["rocm_runtime"] or "no runtime library"),
    ]
    if devices["nvidia_kernel_module"]:
        rows.append(("", devices["nvidia_kernel_module"]))
    if ours["go_state_before"] == "lost by fork":
        rows.append(("fork", "this process was forked after Go started: what needs Go raises RuntimeError; exchange goes on working"))
    lines += [f"  {name:14}{value}" for name, value in rows]
    lines += ["", bold("Settings")]
    for s in f["settings"]:
        value = "not set" if s["value"] is None else repr(s["value"])
        lines.append(f"  {s['name']:22}{value:12}{s['what'] if s['known'] else bad('not known to this version')}")
    lines += ["", bold("Libraries")]
    for e in f["frameworks"]:
        lines += _framework_text(e)
    if f["not_installed"]:
        lines.append(dim(f"  not installed: {', '.join(f['not_installed'])}"))
    lines += ["", good("dlferry works here.") if f["ok"] else bad("dlferry does not work here: see the failed checks above.")]
    return lines


def _space(limit: int | None) -> str:
    if limit is None:
        return "no limit"
    text = f"limited to {limit >> 20} MiB (ulimit -v)"
    return text if limit >= _ROOM else bad(f"{text}: Go may fail to start, frameworks too; raise it")


def _framework_text(e: dict[str, Any]) -> list[str]:
    table = e["exchange_table"]
    if e["error"]:
        state = bad(e["error"])
    elif table is None:
        state = dim("not imported; --import looks for its exchange table")
    else:
        state = ", ".join(_table_text(name, t) for name, t in table.items()) or "no exchange table"
    lines = [f"  {e['name'] + ' ' + e['version']:24}{state}"]
    for fault in e["faults"]:
        seen = "" if fault["seen"] == e["version"] else f" (seen in {fault['seen']})"
        lines += [f"    - {fault['what']}{seen}", dim(f"      dlferry: {fault['dlferry']}")]
    return lines


def _table_text(name: str, table: dict[str, Any]) -> str:
    return f"{name} {table['problem']}" if "problem" in table else f"{name} {'.'.join(map(str, table['version']))}"
