"""Killed before every change that is made to files: what was there is read, whole, or what is new is; a rerun completes it.

Each job is walked change by change with one thread, from a place that is drawn, a few changes a round; once all are walked,
kills come at random times with two threads. A rerun is sometimes killed as well, several times, and so is `verify --gc`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import program
import tree
from cases import Bench, Case, Failed
from jobs import Command, Job, jobs
from tally import Part

# Kills of one job in a round.
AT_ONCE = 12
# One in this number of kills is followed by others, and one by `verify --gc` killed at every change.
COMPOUND, TIDIED = 6, 12
AGAIN = "killed twice and more"
TIDY = "verify --gc"
AT_TIMES = "at random times, 2 threads"


def torture(part: Part) -> None:
    bench = Bench(part.folder)
    order = jobs()
    part.random.shuffle(order)
    walks = [Walk(part, bench, job) for job in order]
    for number in part.rounds():
        open_walks = [walk for walk in walks if not walk.is_over]
        if open_walks:
            # One after the other: the first rounds already meet all of them.
            open_walks[number % len(open_walks)].go_on()
        else:
            at_random_times(part, bench, part.random.choice([walk for walk in walks if walk.case]))
        if part.left() == 0:
            break
    walked = sum(walk.is_over for walk in walks)
    print(f"{walked} of {len(walks)} jobs were walked from the first change to the last")


class Walk:
    """The kills of one job, from a change that is drawn to the one before it."""

    def __init__(self, part: Part, bench: Bench, job: Job) -> None:
        self.part, self.bench, self.job = part, bench, job
        self.case: Case | None = None
        self.is_over = False
        self._left: Iterator[int] = iter(())

    def go_on(self) -> None:
        """A few more kills."""
        if self.case is None:
            try:
                self.case = Case(self.bench, self.job)
            except Failed as error:
                self.part.found(self.job.row, "lost", f"without any fault: {error}")
                self.is_over = True
                return
            begin = self.part.random.randrange(self.case.n)
            self._left = iter([1 + (begin + i) % self.case.n for i in range(self.case.n)])
        for _ in range(AT_ONCE):
            n = next(self._left, None)
            if n is None:
                self.is_over = True
            if n is None or self.part.left() == 0:
                return
            draw = self.part.random.random()
            if draw < 1 / COMPOUND:
                killed_again(self.part, self.case, n)
            elif draw < 1 / COMPOUND + 1 / TIDIED:
                tidied(self.part, self.case, n)
            else:
                killed(self.part, self.case, n)


def killed(part: Part, case: Case, n: int) -> None:
    """Killed once, read, and run again."""
    row = case.job.row
    part.tried(row)
    case.reset()
    said = f"{case.job.name}, killed before change {n} of {case.n}: {case.bench.typed(case.job.command, 'kill', at=n)}"
    if kill_at(part, case, row, n, said):
        check(part, case, row, said)


def killed_again(part: Part, case: Case, n: int) -> None:
    """Killed, the rerun killed, too, and so on; then it is left alone."""
    part.tried(AGAIN)
    case.reset()
    at = [n]
    while at[-1] and len(at) < 6:
        said = f"{case.job.name}, killed before changes {at} of one run after the other: {case.bench.typed(case.job.command, 'kill', at=n)}"
        if not kill_at(part, case, AGAIN, at[-1], said) or note(part, AGAIN, case.wrong_with(), said):
            return
        # The rerun has less to do.
        made = case.bench.preload.counts().change
        at.append(part.random.randint(1, max(2, min(made, case.n) + 3)))
        if case.is_whole():
            break
    check(part, case, AGAIN, said)


def tidied(part: Part, case: Case, n: int) -> None:
    """Killed, then `verify --gc` killed at a change of its own, then run whole; and then the command again."""
    part.tried(TIDY)
    case.reset()
    said = f"{case.job.name}, killed before change {n}: {case.bench.typed(case.job.command, 'kill', at=n)}"
    if not kill_at(part, case, TIDY, n, said):
        return
    tidy: Command = ["verify", "--gc", "-q", "."]
    at = part.random.randint(1, 12)
    ran = case.bench.ran(tidy, "kill", at=at)
    said += f"; then windrow {' '.join(tidy)} killed before change {at}"
    if ran.code == -9 and note(part, TIDY, case.wrong_with(), said):
        return
    ran = case.bench.ran(tidy)
    if ran.hung or ran.crashed or ran.code not in (0, 1, 3):
        part.found(TIDY, "hung" if ran.hung else "wrong", f"{said}, and then not killed: {ran}")
        return
    # What is below a folder that is only written in tasks is tidied up by `prep clean`.
    left = [name for name in tree.left(tree.take(case.bench.run)) if not name.startswith("parts/")]
    if left:
        part.found(TIDY, "wrong", f"{said}, and then not killed: it left {left[:4]} ({ran})")
        return
    check(part, case, TIDY, said)


def at_random_times(part: Part, bench: Bench, walk: Walk) -> None:
    """Kills that come whenever they come, with two threads where the command takes threads."""
    case = walk.case
    assert case
    if isinstance(case.job.command, str):
        return
    command = ["2" if before == "--num-threads" else word for before, word in zip(["", *case.job.command], case.job.command, strict=False)]
    for _ in range(AT_ONCE):
        if part.left() == 0:
            return
        part.tried(AT_TIMES)
        case.reset()
        wait = part.random.uniform(0, 0.04)
        process = program.start(program.windrow(*command), bench.run, bench.preload.environment())
        time.sleep(wait)
        program.kill(process)
        ran = program.end(process)
        said = f"{case.job.name}, killed after {1e3 * wait:.1f} ms: windrow {' '.join(command)}"
        if ran.code not in (0, -9):
            part.found(AT_TIMES, "wrong", f"{said}: {ran}")
        else:
            check(part, case, AT_TIMES, said)


def kill_at(part: Part, case: Case, row: str, n: int, said: str) -> bool:
    """Whether the process was killed there, or ended well before it made `n` changes."""
    ran = case.bench.ran(case.job.command, "kill", at=n)
    if ran.code == -9 or ran.code == 0 or (ran.code == 1 and case.is_whole()):
        return True
    part.found(row, "hung" if ran.hung else "wrong", f"{said}: {ran}")
    return False


def check(part: Part, case: Case, row: str, said: str) -> None:
    """What is seen now, and what a rerun makes of it."""
    if not note(part, row, case.wrong_with(), said):
        note(part, row, case.wrong_after_rerun(case.is_whole()), said)


def note(part: Part, row: str, wrong: tuple[str, str] | None, said: str) -> bool:
    """Whether something was wrong, which then counts."""
    if wrong:
        part.found(row, wrong[0], f"{said}: {wrong[1]}")
    return wrong is not None
