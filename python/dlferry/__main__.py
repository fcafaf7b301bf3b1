"""``python -m dlferry``: what can be seen of dlferry from a shell."""

from __future__ import annotations

import argparse
import os
import sys

# What the generator does: it reads their arguments itself.
GENERATOR_COMMANDS = {
    "build": "make a wheel of the functions of a Go package (build --help says how)",
    "new": "start a Go package whose functions are for Python",
}


def main(argv: list[str] | None = None) -> int:
    """Run a command; the exit code is 0 when all is as the command says, 1 when not, 2 for wrong arguments."""
    import dlferry

    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in GENERATOR_COMMANDS:
        from ._build import main as generate

        return generate(argv[0], argv[1:])

    parser = argparse.ArgumentParser(prog="python -m dlferry", description="Tensors between Go and every array library, without a copy.")
    version = f"dlferry {dlferry.__version__}, DLPack {'.'.join(map(str, dlferry.DLPACK_VERSION))}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    for name, text in GENERATOR_COMMANDS.items():
        commands.add_parser(name, help=text)

    demo = commands.add_parser(
        "demo",
        help="show NumPy, Go and PyTorch share one buffer, and check it",
        description="NumPy -> Go -> PyTorch -> Go -> NumPy over one buffer. Every claim is checked; the exit code says whether all hold.",
    )
    demo.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    demo.add_argument("--npy", metavar="FILE", help="start from the array in a .npy file; the file is not changed")

    doctor = commands.add_parser(
        "doctor",
        help="show what dlferry meets on this machine, and whether it works here",
        description="Versions, paths, devices, settings, the installed libraries with their known faults, and a check of dlferry itself: "
        "one exchange and one call of Go. No framework is imported. The exit code is 0 when dlferry works.",
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    doctor.add_argument(
        "--import", action="store_true", dest="imports", help="import each library in a process of its own, and look for its exchange table"
    )

    matrix = commands.add_parser(
        "matrix",
        help="give the tensors of every installed library to every other one",
        description="Each pair is tried, in processes of their own, so that a crash is a cell and not the end. "
        "The exit code is 1 when dlferry, taking a tensor, crashed, hung or changed it.",
    )
    matrix.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    matrix.add_argument(
        "--cases", metavar="NAME,...", default="contiguous", help="what to try: contiguous (the default), or more; a wrong name lists them"
    )
    matrix.add_argument("--all", action="store_true", help="try every case")
    matrix.add_argument("--only", metavar="NAME,...", help="try these libraries alone, with dlferry")

    explain = commands.add_parser(
        "explain",
        help="say what the array in a .npy file is to DLPack, and who would take it",
        description="What dlferry.explain says about the array, mapped from the file. The file is not changed.",
    )
    explain.add_argument("--npy", metavar="FILE", required=True, help="a file that numpy.save wrote")
    explain.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    explain.add_argument("--import", metavar="NAME,...", dest="imports", default="", help="import these libraries first, so that they are asked")

    bench = commands.add_parser(
        "bench",
        help="time dlferry against the frameworks that are installed",
        description="All cases in rounds, in one process, each checked before it is timed. Quiet machines give figures; others give ratios.",
    )
    bench.add_argument("--quick", action="store_true", help="fewer rounds and smaller buffers: about a minute")
    bench.add_argument("--only", metavar="PATTERN", default="", help="the rows whose key matches this regular expression (--json - shows keys)")
    bench.add_argument("--rounds", metavar="N", type=int, help="how often each case is visited")
    bench.add_argument("--no-memory", action="store_true", help="without the copies of whole buffers (2 GiB)")
    bench.add_argument("--no-process", action="store_true", help="without import time, memory left behind and threads")
    bench.add_argument("--json", metavar="FILE", help="write what was found as JSON; - prints it instead of the table")

    arguments = parser.parse_args(argv)
    if arguments.command == "bench":
        from ._bench import bench as run_bench

        if arguments.rounds is not None and arguments.rounds < 1:
            parser.error(f"bench: --rounds, got {arguments.rounds}, want 1 or more")
        return run_bench(
            quick=arguments.quick,
            only=arguments.only,
            rounds=arguments.rounds,
            heavy=not arguments.no_memory,
            process=not arguments.no_process,
            as_json=arguments.json,
        )
    if arguments.command == "doctor":
        from ._doctor import doctor as run_doctor

        return run_doctor(as_json=arguments.json, imports=arguments.imports)
    if arguments.command == "matrix":
        from ._matrix import CASES
        from ._matrix import matrix as run_matrix

        cases = list(CASES) if arguments.all else arguments.cases.split(",")
        wrong = [name for name in cases if name not in CASES]
        if wrong:
            parser.error(f"matrix: --cases, got {wrong[0]!r}, want some of {', '.join(CASES)}")
        return run_matrix(cases=cases, only=arguments.only.split(",") if arguments.only else None, as_json=arguments.json)
    if arguments.command == "explain":
        return _explain(arguments.npy, arguments.imports, as_json=arguments.json)
    if arguments.command == "demo":
        from ._demo import demo as run

        return run(npy=arguments.npy, as_json=arguments.json)
    raise AssertionError(arguments.command)


def _explain(path: str, imports: str, *, as_json: bool) -> int:
    from importlib import import_module
    from json import dumps

    import dlferry

    try:
        import numpy

        for name in filter(None, imports.split(",")):
            import_module({"mlx": "mlx.core"}.get(name, name))
        array = numpy.load(path, mmap_mode="r", allow_pickle=False)
    except (ImportError, OSError, ValueError) as e:
        print(f"explain: {path}: {e}" if not isinstance(e, ImportError) else f"explain: {e}", file=sys.stderr)
        return 1
    found = dlferry.explain(array)
    print(dumps(found.as_dict(), indent=2) if as_json else found)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit is quiet
        sys.exit(1)
