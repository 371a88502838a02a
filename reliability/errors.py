"""Calls that fail: a full disk, a broken one, short reads and writes. The error names a file, nothing half is seen, a rerun is right.

Each job is walked call by call: one call fails, or every one from there on. The errors are those that the system gives.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable
from typing import Any

import changes
from cases import Bench, Case, Failed
from jobs import Job, jobs
from program import Ran
from tally import Part

AT_ONCE = 12
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Rows: which calls fail, with what, and whether all that follow fail, too.
KINDS: dict[str, tuple[str, tuple[int, ...], bool]] = {
    "a write finds no room": ("write", NO_ROOM, False),
    "no room from some write on": ("write", NO_ROOM, True),
    "a change fails": ("change", (errno.EIO, errno.ENOSPC), False),
    "every change from some on fails": ("change", (errno.EIO, errno.EROFS), True),
    "fsync fails": ("sync", (errno.EIO,), False),
    "every fsync fails": ("sync", (errno.EIO, errno.ENOSPC), True),
    "a read fails": ("read", (errno.EIO,), False),
    "a read is interrupted": ("read", (errno.EINTR,), False),
    "a file cannot be mapped": ("map", (errno.ENOMEM, errno.ENODEV), False),
}
SHORT = "half of reads and writes short or interrupted"


def torture(part: Part) -> None:
    bench = Bench(part.folder)
    order = jobs()
    part.random.shuffle(order)
    walks = [Walk(part, bench, job) for job in order]
    for number in part.rounds():
        walks[number % len(walks)].go_on()


class Walk:
    """The failing calls of one job, each kind from a call that is drawn on, round and round."""

    def __init__(self, part: Part, bench: Bench, job: Job) -> None:
        self.part, self.bench, self.job = part, bench, job
        self.case: Case | None = None
        self.is_broken = False
        self.syncs = 0
        self._at: dict[str, itertools.cycle[int]] = {}

    def go_on(self) -> None:
        """A few more of them."""
        if self.case is None and not self.is_broken:
            try:
                self._begin()
            except Failed as error:
                self.part.found(SHORT, "lost", f"without any fault: {error}")
                self.is_broken = True
        tries: list[Callable[[], None]] = [self._short, *(lambda row=row: self._fails(row) for row in self._at)]
        for _ in range(AT_ONCE if self.case else 0):
            if self.part.left() == 0:
                return
            self.part.random.choice(tries)()

    def _begin(self) -> None:
        case = Case(self.bench, self.job)
        case.reset()
        self.bench.ran(self.job.command, "record")
        self.syncs = changes.syncs_before_visible(changes.read(self.bench.preload.log, self.bench.preload.below))
        for row, (of, _, _) in KINDS.items():
            if n := getattr(case.calls, of):
                begin = self.part.random.randrange(n)
                self._at[row] = itertools.cycle([1 + (begin + i) % n for i in range(n)])
        self.case = case

    def _fails(self, row: str) -> None:
        """One call fails, or all from there on."""
        case = self.case
        assert case
        of, errors, ever = KINDS[row]
        settings: dict[str, Any] = {
            "of": of, "at": next(self._at[row]), "errno": self.part.random.choice(errors), "ever": int(ever),
        }
        self.part.tried(row)
        case.reset()
        ran = self.bench.ran(self.job.command, "error", **settings)
        name = errno.errorcode[int(settings["errno"])]
        said = f"{self.job.name}, {name} at {of} {settings['at']}: {self.bench.typed(self.job.command, 'error', **settings)}"
        if wrong := self._wrong(ran, row, int(settings["at"])):
            self.part.found(row, wrong[0], f"{said}: {wrong[1]} ({ran})")
        elif wrong := case.wrong_after_rerun(case.is_whole()):
            self.part.found(row, wrong[0], f"{said}: then {wrong[1]}")

    def _wrong(self, ran: Ran, row: str, n: int) -> tuple[str, str] | None:
        """What is wrong with what came of it."""
        case = self.case
        assert case
        if ran.hung:
            return "hung", "it did not end"
        if ran.crashed:
            return "wrong", "it crashed"
        of, errors, ever = KINDS[row]
        if ran.code == 0:
            # The call did not matter, or something else was done instead.
            return None if case.is_whole() else ("silent", "it ended with 0, and its output is not there")
        if self.bench.preload.counts().fired == 0:
            return "wrong", "no call failed, and it did"
        if errno.EINTR in errors:
            return "wrong", "an interrupted call is to be made again"
        if "at: " not in ran.err and str(self.bench.run) not in ran.err:
            return "wrong", "the message names no file"
        # Where no change succeeds any more, none can be taken back; the error says so.
        if self.job.once and case.is_whole() and not (ever and "could not be taken back" in ran.err):
            return "wrong", "it failed, and it is done: run again it would be done twice"
        if of == "sync" and not self.job.apart and n <= self.syncs and not case.is_unchanged():
            return "wrong", "it was published without being on the disk"
        # Where no rename succeeds any more, none can be taken back either: the rerun does it.
        return case.wrong_with(strict=self.job.older is not None and not ever)

    def _short(self) -> None:
        """Reads and writes of part of what was asked for, and interrupted ones, change nothing."""
        case = self.case
        assert case
        seed = self.part.random.getrandbits(32)
        self.part.tried(SHORT)
        case.reset()
        ran = self.bench.ran(self.job.command, "short", seed=seed)
        said = f"{self.job.name}: {self.bench.typed(self.job.command, 'short', seed=seed)}"
        if ran.hung:
            self.part.found(SHORT, "hung", said)
        elif ran.crashed or ran.code != 0:
            self.part.found(SHORT, "wrong", f"{said}: {ran}")
        elif wrong := case.wrong_with() or (None if case.is_whole() else ("silent", "its output is not there")):
            self.part.found(SHORT, wrong[0], f"{said}: {wrong[1]}")
