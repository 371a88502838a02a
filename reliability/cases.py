"""A job made ready: what is there before it and after an unbroken run, and what may be seen in between."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import program
import tree
import windrow as wr
from forked import Forked
from jobs import Command, Job, inputs
from preload import Preload
from program import Ran

REFUSED = "refused"
# Of more records than this, a reader looks at this number.
MOST = 2_000
# What a step of a run that was stopped may end with where its output is there already.
EXISTS = "exists already"


class Failed(Exception):
    """A job that does not even run undisturbed."""


class Bench:
    """Where jobs run, one at a time: all at one path, since some of what they write names it."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.preload = Preload(folder, self.run)
        self._forked: Forked | None = None
        self._folder = folder

    def ran(self, command: Command, fault: str = "count", *, limit: float = program.LIMIT, **settings: Any) -> Ran:
        """The command with a fault; `fast` runs make no fsync."""
        environment = self.preload.environment(fault, **settings)
        if isinstance(command, str):
            return self.forked.run(command, self.run, environment, limit)
        return program.run(program.windrow(*command), self.run, environment, limit)

    @property
    def forked(self) -> Forked:
        if self._forked is None:
            self._forked = Forked(self.preload, self._folder)
        return self._forked

    def typed(self, command: Command, fault: str, **settings: str | int) -> str:
        """How to see it again."""
        line = " ".join(["windrow", *command]) if isinstance(command, list) else f"python: {command}"
        return f"{self.preload.typed(fault, **settings)} {line}"


class Case:
    """One job, its inputs in memory, and what may be seen of it."""

    def __init__(self, bench: Bench, job: Job, prepare: Callable[[Path], None] = inputs) -> None:
        self.bench, self.job = bench, job
        tree.put({}, bench.run)
        prepare(bench.run)
        for step in [*job.steps, *([job.older] if job.older else [])]:
            self._done(step)
        self.start = tree.take(bench.run)
        self.before = tree.visible(self.start)
        self.read_before = self.read()
        self._done(job.command)
        self.calls = bench.preload.counts()
        self.n = self.calls.change
        end = tree.take(bench.run)
        self.after = tree.visible(end)
        self.read_after = self.read()
        # Inputs: what the job leaves as it was, not what it writes again.
        self.kept = {name: data for name, data in self.before.items() if self.start[name] == end.get(name)}
        if self.after == self.before or (job.reads and not job.apart and self.read_after.startswith(REFUSED)):
            raise Failed(f"{job.name}: it wrote nothing that can be read: {self.read_after}")

    def _done(self, command: Command) -> None:
        if (ran := self.bench.ran(command)).code != 0:
            raise Failed(f"{self.job.name}: {command}: {ran}")

    def reset(self) -> None:
        tree.put(self.start, self.bench.run)

    def read(self) -> str:
        """What a reader gets: a hash of all records, or how it was refused."""
        return digest(self.bench.run / self.job.reads) if self.job.reads else ""

    def wrong_with(self, strict: bool = False) -> tuple[str, str] | None:
        """What is wrong with what is seen now; `strict` where nothing but the old or the new whole may be seen."""
        seen = self._seen()
        if gone := {name: data for name, data in self.kept.items() if seen.get(name) != data}:
            return "lost", f"an input changed: {tree.difference(gone, {n: d for n, d in seen.items() if n in gone})}"
        read = self.read()
        if seen == self.after:
            return None if read == self.read_after else ("lost", f"all files are there, and a reader says {read}")
        if seen == self.before:
            # What is refused may be refused for another reason: an empty folder instead of none.
            is_same = read == self.read_before or (read.startswith(REFUSED) and self.read_before.startswith(REFUSED))
            return None if is_same else ("lost", f"nothing visible changed, and a reader says {read}")
        if self.job.apart:
            others = {name: data for name, data in seen.items() if data not in (self.before.get(name), self.after.get(name))}
            if others:
                return "silent", f"a part of a file is visible: {sorted(others)}"
        if not read.startswith(REFUSED) and read not in (self.read_before, self.read_after):
            return "silent", f"a part is accepted as whole ({read}): {tree.difference(self.after, seen)}"
        if not self.job.reads and not self.job.apart:
            return "silent", f"other bytes are visible: {tree.difference(self.after, seen)}"
        if strict:
            return "lost", f"neither the old nor the new is seen: {tree.difference(self.before, seen)}"
        return None

    def wrong_after_rerun(self, was_whole: bool) -> tuple[str, str] | None:
        """Runs the command again, undisturbed: it ends in the same bytes as an unbroken run, and leaves nothing behind."""
        if was_whole and self.job.once:
            return None
        ran = self.bench.ran(self.job.command)
        now = tree.take(self.bench.run)
        if ran.hung:
            return "hung", "the rerun"
        if ran.crashed:
            return "wrong", f"the rerun: {ran}"
        seen = self._seen()
        if ran.code != 0 and not (seen == self.after and (was_whole or EXISTS in ran.err)):
            return "lost", f"the rerun: {ran}"
        if seen != self.after:
            read = self.read()
            how = "wrong" if read.startswith(REFUSED) or read == self.read_after else "silent"
            return how, f"after the rerun: {tree.difference(self.after, seen)}; a reader says {read}"
        if self.read() != self.read_after:
            return "lost", f"after the rerun a reader says {self.read()}"
        if self.job.tidy:
            # Others may still be working there: a run does not remove what is not its own.
            ran, now = self.bench.ran(self.job.tidy), tree.take(self.bench.run)
            if ran.code != 0 or self._seen() != self.after:
                return "lost", f"{self.job.tidy}: {ran}: {tree.difference(self.after, self._seen())}"
        if left := tree.left(now):
            return "wrong", f"the rerun left {left[:4]}"
        return None

    def is_whole(self) -> bool:
        return self._seen() == self.after

    def is_unchanged(self) -> bool:
        return self._seen() == self.before

    def _seen(self) -> dict[str, bytes]:
        """The files that readers look at, but for a report of what failed."""
        seen = tree.visible(tree.take(self.bench.run))
        return {name: data for name, data in seen.items() if name not in self.job.also or name in self.after}


def digest(path: Path) -> str:
    """A hash of the records of a data set as a reader gets them, or how it was refused."""
    total = hashlib.sha256()
    try:
        ds = wr.open(path)
        for i in range(0, len(ds), max(1, len(ds) // MOST)):
            record = ds[i]
            if isinstance(record, np.ndarray):
                total.update(f"{record.dtype}{record.shape}".encode() + record.tobytes())
            else:
                total.update(json.dumps(record, default=repr, sort_keys=True).encode())
            if extras := ds.extras(i):
                total.update(json.dumps(extras, default=repr, sort_keys=True).encode())
    except wr.WindrowError as error:
        return f"{REFUSED}: {type(error).__name__}: {error}".splitlines()[0]
    return f"{len(ds)} records {total.hexdigest()[:16]}"
