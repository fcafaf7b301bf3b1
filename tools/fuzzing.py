"""The fuzzers: Go's own targets, and libFuzzer over the C shim."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from build_backend import native, toolchain

from .progress import StepFailed, note, step
from .project import ROOT, gates, go_environment

SANITIZE = ("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
FUZZ_CORPUS = ROOT / "internal" / "fuzz" / "shim" / "corpus.txt"


def fuzz() -> None:
    """Every fuzzer for FUZZTIME each."""
    tools, env = go_environment()
    seconds = os.environ.get("FUZZTIME", "60s")
    gates(lambda: go_fuzz(tools, env, seconds), lambda: fuzz_shim(tools, seconds))


def go_fuzz(tools: toolchain.Toolchain, env: dict[str, str], time_each: str) -> None:
    """Go's fuzz targets, each for a while; what they find is kept in testdata by Go itself."""
    mod = toolchain.mod_flags(ROOT)
    command = [tools.go.path, "test", *mod, *native.header_flags(ROOT), "-list=^Fuzz", "./..."]
    found: list[tuple[str, str]] = []
    names: list[str] = []
    for line in step("Go fuzz targets, listed", command, cwd=ROOT, env=env).splitlines():
        words = line.split()
        if line.startswith("Fuzz"):
            names.append(words[0])
        elif words[:1] == ["ok"]:
            found += [(name, words[1]) for name in names]
            names = []
    if not found:
        print("no fuzz target found", flush=True)
        raise StepFailed("Go fuzz targets")

    def one(name: str, package: str) -> None:
        flags = ["-run=^$", f"-fuzz=^{name}$", f"-fuzztime={time_each}"]
        command = [tools.go.path, "test", *mod, *native.header_flags(ROOT), *flags, package]
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        # Before Go 1.27 the end of the time may itself be called a failure (golang/go#75804); a real one names the input that it wrote.
        failed = done.returncode and ("context deadline exceeded" not in done.stdout or "Failing input" in done.stdout)
        note(f"{name} for {time_each}", f"{time.monotonic() - started:6.1f} s{'  FAILED' if failed else ''}")
        if failed:
            print(done.stdout + done.stderr, flush=True)
            raise StepFailed(name)
        closing(done.stdout, "fuzz: elapsed: ")

    gates(*[lambda pair=pair: one(*pair) for pair in found])


def closing(output: str, start: str) -> None:
    """The last line that begins so: how much the fuzzer tried."""
    lines = [line for line in output.splitlines() if line.startswith(start)]
    print(*(f"    {line}" for line in lines[-1:]), flush=True)


def fuzz_command(compiler: list[str], output: Path, *flags: str) -> list[str]:
    """The shim's sources over the small Python of internal/fuzz; without those that need a real one."""
    folder = FUZZ_CORPUS.parent
    sources = [folder / "import.c", folder.parent / "python.c", folder.parent / "missing.c"]
    sources += [path for path in native.c_sources(ROOT) if path.name not in ("golib.c", "module.c")]
    return [
        *compiler,
        *("-std=gnu11", "-Wall", "-Wextra", *SANITIZE, *flags, "-o", str(output)),
        *(str(path.relative_to(ROOT)) for path in sources),
        *("-Wl,--wrap=malloc,--wrap=calloc", "-rdynamic", "-ldl", "-lm"),
    ]


def fuzz_replay(tools: toolchain.Toolchain) -> None:
    """The inputs that the shim's fuzzer found, once more."""
    folder = ROOT / "build" / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    replay = folder / "replay"
    step("the shim's fuzzer, built to replay", fuzz_command(list(tools.cc.argv), replay, "-DREPLAY"), cwd=ROOT)
    step("the shim's fuzzer, its corpus", [replay, FUZZ_CORPUS], cwd=ROOT, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"})


def fuzz_shim(tools: toolchain.Toolchain, time_each: str) -> None:
    """libFuzzer over the shim. New inputs stay in build/fuzz/corpus; one that fails is printed, to be added to corpus.txt."""
    clang = shutil.which("clang")
    folder = ROOT / "build" / "fuzz"
    corpus, found = folder / "corpus", folder / "found"
    for path in (corpus, found):
        path.mkdir(parents=True, exist_ok=True)
    probe = subprocess.run(
        [clang or "false", "-fsanitize=fuzzer", "-x", "c", "-", "-o", folder / "probe"],
        input="int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return !d && n; }",
        capture_output=True,
        text=True,
    )
    if probe.returncode:
        note("the shim's fuzzer", "skipped: needs clang with libFuzzer (Debian: clang, libclang-rt-dev)")
        return
    for number, line in enumerate(FUZZ_CORPUS.read_text().split()):
        (corpus / f"seed{number}").write_bytes(bytes.fromhex(line))
    seconds = int(float(time_each.removesuffix("s").removesuffix("m")) * (60 if time_each.endswith("m") else 1))
    fuzzer = folder / "fuzzer"
    step("the shim's fuzzer, built", fuzz_command([clang or ""], fuzzer, "-fsanitize=fuzzer"), cwd=ROOT)
    try:
        said = step(
            f"the shim's fuzzer for {seconds} s",
            [fuzzer, f"-max_total_time={seconds}", "-max_len=160", "-timeout=10", "-print_final_stats=1", f"-artifact_prefix={found}/", corpus],
            cwd=folder,
        )
        closing(said, "Done ")
    finally:
        for path in sorted(found.iterdir()):
            print(f"{path.name}: {path.read_bytes().hex()}", flush=True)
