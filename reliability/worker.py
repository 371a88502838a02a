"""Cases tried in a process that may crash or hang: it is watched, and a new one takes its place.

    python reliability/worker.py MODULE FUNCTION

answers each line of standard input, a JSON object, with the JSON object that `MODULE.FUNCTION(**object)` gives.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def own_panic(text: str) -> bool:
    """Whether windrow's own code panicked. Decoders of libraries panic on damaged bytes; that is caught, and becomes an error."""
    return "panicked at crates/" in text


class Died(Exception):
    """The process ended by itself; what it said last."""


class Hung(Exception):
    """No answer in time; the process was killed."""


class Worker:
    """A process for the cases of one function."""

    def __init__(self, module: str, function: str, folder: Path, limit_secs: float = 60) -> None:
        self.command = [sys.executable, __file__, module, function]
        self.log, self.limit_secs = folder / f"{module}.{function}.log", limit_secs
        self.process: subprocess.Popen[bytes] | None = None
        self.read = 0

    def ask(self, **case: Any) -> Any:
        """What the function gives for a case.

        Raises `Died` and `Hung`, or `RuntimeError` with the text where the function raised, which is a mistake of the part.
        """
        process = self.started()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(case).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise Died(self.ended()) from None
        line = self.line(process)
        answer = json.loads(line)
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer["gave"]

    def said(self) -> str:
        """What the process has written to standard error since the last question about it."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(self.read)
            text = file.read()
        self.read += len(text)
        return text.decode(errors="replace")

    def memory(self) -> tuple[int, int]:
        """Bytes in memory at most since `forget_peak`, and now."""
        process = self.started()
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) << 10, int(fields["VmRSS"].split()[0]) << 10

    def forget_peak(self) -> None:
        Path(f"/proc/{self.started().pid}/clear_refs").write_text("5")

    def stop(self) -> None:
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process = None

    def started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True, bufsize=0
                )
            self.selector = selectors.DefaultSelector()
            assert self.process.stdout
            self.selector.register(self.process.stdout, selectors.EVENT_READ)
        return self.process

    def line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout
        line, until = b"", time.monotonic() + self.limit_secs
        while not line.endswith(b"\n"):
            if not self.selector.select(max(0.0, until - time.monotonic())):
                self.stop()
                raise Hung(f"no answer in {self.limit_secs:.0f} s: {self.said()[-1000:]}")
            part = os.read(process.stdout.fileno(), 1 << 20)
            if not part:
                raise Died(self.ended())
            line += part
        return line

    def ended(self) -> str:
        assert self.process
        code = self.process.wait()
        self.stop()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
        return f"{how}: {self.said()[-1000:]}"


def main() -> None:
    module, function = sys.argv[1:]
    # Nothing that the function prints may come between the answers.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    call = getattr(importlib.import_module(module), function)
    for line in sys.stdin.buffer:
        try:
            answer = {"gave": call(**json.loads(line))}
        except Exception as error:
            import traceback

            answer = {"failed": f"{error!r}\n{traceback.format_exc()}"}
        out.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
