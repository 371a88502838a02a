"""The command-line program, run with a time limit: what hangs is ended, and counts."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from preload import stripped

ROOT = Path(__file__).resolve().parent.parent
# After this a process counts as hung.
LIMIT = 120.0


def path() -> Path:
    """The debug build, which checks its own arithmetic; WINDROW_PROGRAM names another."""
    named = os.environ.get("WINDROW_PROGRAM")
    return Path(named) if named else Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "windrow"


@dataclass
class Ran:
    """What came of a process; `code` is negative for a signal, and None where it hung."""

    code: int | None
    out: str
    err: str

    @property
    def hung(self) -> bool:
        return self.code is None

    @property
    def crashed(self) -> bool:
        """A panic, or a signal that was not sent from here."""
        return "panicked at" in self.err or (self.code is not None and (self.code < 0 or self.code == 101))

    def __str__(self) -> str:
        return f"{'hung' if self.hung else f'exit {self.code}'}: {' '.join(self.err.split())[-400:]}"


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """A process in a process group of its own, so that everything it starts can be ended with it."""
    return subprocess.Popen(
        list(command),
        cwd=folder,
        env={**stripped(), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], limit: float = LIMIT) -> Ran:
    """Waits until it ends, at most so long; then its whole group is killed."""
    try:
        out, err = process.communicate(timeout=limit)
        return Ran(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        kill(process)
        out, err = process.communicate()
        return Ran(None, out, err)
    finally:
        kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, limit: float = LIMIT) -> Ran:
    return end(start(command, folder, environment), limit)


def windrow(*arguments: str) -> list[str]:
    """The command line of the program."""
    return [str(path()), *arguments]
