"""`python -m windrow`: the same program as `windrow` on the command line."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from windrow._native import _main


def main() -> NoReturn:
    """Runs the program on this process's arguments and exits with its code."""
    # The program has its own way with Ctrl-C; Python's would raise after it has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_main(["windrow", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
