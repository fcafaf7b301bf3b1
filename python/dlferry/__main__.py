"""``python -m dlferry``: what can be seen of dlferry from a shell."""

from __future__ import annotations

import argparse
import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run a command; the exit code is 0 when all is as the command says, 1 when not, 2 for wrong arguments."""
    import dlferry

    parser = argparse.ArgumentParser(prog="python -m dlferry", description="Tensors between Go and every array library, without a copy.")
    version = f"dlferry {dlferry.__version__}, DLPack {'.'.join(map(str, dlferry.DLPACK_VERSION))}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    demo = commands.add_parser(
        "demo",
        help="show NumPy, Go and PyTorch share one buffer, and check it",
        description="NumPy -> Go -> PyTorch -> Go -> NumPy over one buffer. Every claim is checked; the exit code says whether all hold.",
    )
    demo.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    demo.add_argument("--npy", metavar="FILE", help="start from the array in a .npy file; the file is not changed")

    arguments = parser.parse_args(argv)
    if arguments.command == "demo":
        from ._demo import demo as run

        return run(npy=arguments.npy, as_json=arguments.json)
    raise AssertionError(arguments.command)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit is quiet
        sys.exit(1)
