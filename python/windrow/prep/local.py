"""Tasks in processes on this machine. They share one pipe of task numbers: who is free takes the next one."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from .job import STORE_OPTIONS, attempt, cores, worker_environment

__all__ = ["executor"]

NUMBER = struct.Struct("<Q")


def executor(
    workers: int | None, threads: int | None, store_options: dict[str, str] | None
) -> Callable[[str, Sequence[int]], None]:
    """Starts processes with a number of threads each; by default one process that uses all cores."""

    def start(job: str, tasks: Sequence[int]) -> None:
        n = min(workers or 1, len(tasks))
        threads_each = threads or (max(1, cores() // n) if n > 1 else 0)
        numbers, feed = os.pipe()
        feeding = threading.Thread(target=_write, args=(feed, tasks), daemon=True)
        feeding.start()
        command = [sys.executable, "-m", __name__, job, str(threads_each), str(os.getpid())]
        running: list[subprocess.Popen[bytes]] = []
        try:
            try:
                for _ in range(n):
                    running.append(subprocess.Popen(command, stdin=numbers, env=worker_environment(store_options)))
            finally:
                # Once all workers have ended, a write must fail instead of waiting for a reader.
                os.close(numbers)
            for process in running:
                process.wait()
            feeding.join()
        finally:
            # A task may be killed at any moment.
            for process in running:
                process.kill()
            for process in running:
                process.wait()

    return start


def _write(feed: int, tasks: Sequence[int]) -> None:
    with contextlib.suppress(BrokenPipeError), open(feed, "wb", buffering=0) as pipe:
        for task in tasks:
            pipe.write(NUMBER.pack(task))


def main(job: str, threads: str, parent: str) -> None:
    """One worker: takes numbers until there are none, or the process that started it is gone."""
    # Who started it ends it, on Ctrl-C too.
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = os.environ.get(STORE_OPTIONS)
    store_options = None if told is None else json.loads(told)
    # Numbers are written and read whole: the system does a read or write of 8 bytes at once.
    while os.getppid() == int(parent) and len(number := os.read(0, NUMBER.size)) == NUMBER.size:
        attempt(job, NUMBER.unpack(number)[0], int(threads) or None, store_options)


if __name__ == "__main__":
    main(*sys.argv[1:])
