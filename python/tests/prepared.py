"""A process that has imported what many short programs begin with, and forks for each of them: the import takes seconds, the rest does not."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any


class Prepared:
    """Runs code in forks of a process that has imported these packages, as far as they are there."""

    def __init__(self, packages: list[str], env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *packages], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def run(self, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Runs code as `python -c code arguments` would."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            job = {"code": code, "arguments": [*map(str, arguments)], "stdout": f"{folder}/stdout", "stderr": f"{folder}/stderr"}
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            printed, complained = (Path(job[stream]).read_text() for stream in ("stdout", "stderr"))
            return subprocess.CompletedProcess([code], os.waitstatus_to_exitcode(status), printed, complained)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(packages: list[str]) -> None:
    """Reads jobs from stdin until it ends, and prints the wait status of each."""
    for package in packages:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            work(job)
        print(os.waitpid(child, 0)[1], flush=True)


def work(job: dict[str, Any]) -> None:
    """In a fork: runs the code of a job and ends; what it would have had done at its end is done."""
    for number, stream in ((1, "stdout"), (2, "stderr")):
        opened = os.open(job[stream], os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["-c", *job["arguments"]]
    main = sys.modules["__main__"] = type(sys)("__main__")
    status = 0
    try:
        exec(compile(job["code"], "<code>", "exec"), main.__dict__)
    except BaseException:
        traceback.print_exc()
        status = 1
    main.__dict__.clear()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    # Python's own end would go through all that was imported, which takes seconds in a fork.
    os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1:])
