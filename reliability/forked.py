"""Python code run in forks of one warm process that has the library of faults loaded: a start takes a millisecond, not half a second."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from preload import Preload, stripped
from program import LIMIT, Ran

# Names of jobs that the code may use, beside wr, np and time.
NAMES = ("TEXTS", "RECORDS", "OTHERS", "CODES")
# Before the time, on the clock of all processes, at which Ctrl-C was an exception.
INTERRUPTED = "interrupted at "


class Forked:
    """The warm process; `run` is as of the program."""

    def __init__(self, preload: Preload, folder: Path) -> None:
        self._errors = folder / "forked.err"
        # Without a folder the library does nothing.
        environment = stripped() | {"LD_PRELOAD": str(preload.library), "WINDROW_FAULT_PARENT": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._errors)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, code: str, folder: Path, environment: Mapping[str, str], limit: float = LIMIT) -> Ran:
        pid = self.start(code, folder, environment)
        return self.end(pid, limit)

    def start(self, code: str, folder: Path, environment: Mapping[str, str]) -> int:
        """The process that runs the code."""
        self._ask({"code": code, "folder": str(folder), "environment": dict(environment)})
        return int(self._answer())

    def end(self, pid: int, limit: float = LIMIT) -> Ran:
        self._ask({"wait": pid, "limit": limit})
        code = json.loads(self._answer())
        return Ran(code, "", self._errors.read_text(errors="replace"))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, request: dict[str, object]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


def serve(errors: str) -> None:
    """Forks for each line of stdin, and waits for the child when it is asked to."""
    import ctypes

    import numpy as np
    import windrow as wr

    # The module is whole before anything is forked.
    wr.formats()
    import jobs

    begin = ctypes.CDLL(None).faults_begin
    names = {"wr": wr, "np": np, "time": time, **{name: getattr(jobs, name) for name in NAMES}}
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            print(json.dumps(waited(request["wait"], request["limit"])), flush=True)
            continue
        # A signal that comes early is the child's, once it can say so.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.environ.update(request["environment"])
            os.chdir(request["folder"])
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), 2)
            os.dup2(2, 1)
            begin()
            child(request["code"], names)
        print(pid, flush=True)


def child(code: str, names: dict[str, object]) -> None:
    """Runs the code and ends as the program would: 1 for an error that says what is wrong, 130 for Ctrl-C, 101 for all else."""
    import traceback

    ended = 101
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        exec(code, names)
        # A signal that comes late finds the work done, as one that comes after a program's end.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        ended = 0
    except KeyboardInterrupt:
        print(f"{INTERRUPTED}{time.monotonic()}", file=sys.stderr, flush=True)
        ended = 130
    except names["wr"].WindrowError as error:  # type: ignore[attr-defined]
        print(f"error: {error}", file=sys.stderr, flush=True)
        ended = 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(ended)


def waited(pid: int, limit: float) -> int | None:
    """How it ended, as subprocess says it; None where it did not."""
    until = time.monotonic() + limit
    pause = 0.0002
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(0.01, pause * 1.5)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


if __name__ == "__main__":
    serve(sys.argv[1])
