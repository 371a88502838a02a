"""Ctrl-C at random times: how long until it is answered, that nothing half is seen then, and that a rerun is right.

Answered is, in Python, a KeyboardInterrupt, and of a command its end, with 130. Calls that wait for others are among them: for
a generator, a function of the user's, a server that never answers.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import program
import tree
from cases import Bench, Case, Failed
from forked import INTERRUPTED
from jobs import Command, Job
from program import Ran
from tally import Part

# An answer that takes longer does not count.
LATE = 10.0
AT_ONCE = 6
COMMANDS, WRITERS, READERS, LOADERS, CALLED, REMOTE = (
    "commands",
    "wr.tokenize, convert, index, write",
    "wr.verify, open, records",
    "loaders",
    "generators and functions of the user's",
    "a server that never answers",
)
# How long a job is to take, so that there is something to interrupt; lines of its input that are made at a time.
LONG, BLOCK = 0.15, 2_000
# What is converted and loaded.
NUMBERS = "wr.write('numbers', [np.arange(i, i + 1000) for i in range(600)], to='shards', dtype='int32', fsync=False)"
VIEW = "wr.open('numbers').windows(16, stride=1"
SLOW_TEXTS = "(time.sleep(0.05) or text for text in TEXTS)"


@dataclass(frozen=True)
class Endless:
    """What continues until it is interrupted, and writes nothing."""

    row: str
    command: Command

    @property
    def name(self) -> str:
        return "python" if isinstance(self.command, str) else self.command[0]


def torture(part: Part) -> None:
    # Whoever starts this may ignore Ctrl-C, and what is started here would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    bench = Bench(part.folder)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lines = lines_that_take(bench, LONG)
        tried: list[Job | Endless] = [*jobs(), *endless(silent.getsockname()[1])]
        trials = [Trial(part, bench, what, lines) for what in tried]
        part.random.shuffle(trials)
        for number in part.rounds():
            trials[number % len(trials)].go_on()


def jobs() -> list[Job]:
    """What writes."""
    tokenize = ["--tokenizer", "bytes", "--out", "out", "--checkpoint-bytes", "100000", "-q"]
    of_texts = f"wr.tokenize({SLOW_TEXTS}, 'out', tokenizer='bytes')"
    of_records = "wr.write('out.npz', (time.sleep(0.02) or record for record in RECORDS), to='npz', dtype='float32')"
    called = "wr.tokenize('small', 'out', tokenizer=lambda text: time.sleep(0.02) or [1, 2, 3], vocab_size=9, eos=0)"
    return [
        Job(COMMANDS, "tokenize", ["tokenize", "big", *tokenize], reads="out"),
        Job(COMMANDS, "tokenize, 1 thread", ["tokenize", "big", *tokenize, "--num-threads", "1"], reads="out"),
        Job(COMMANDS, "tokenize to flat-tokens", ["tokenize", "big", *tokenize, "--to", "flat-tokens"], reads="out"),
        Job(COMMANDS, "index", ["index", "big", "-q"], reads="big"),
        Job(COMMANDS, "convert", ["convert", "numbers", "out", "--to", "megatron", "-q"], reads="out.idx"),
        Job(COMMANDS, "convert rows", ["convert", "big/a.jsonl", "out.parquet", "--to", "parquet", "-q"], reads="out.parquet"),
        Job(COMMANDS, "dummy", ["dummy", "--vocab-size", "999", "--tokens", "4000000", "--out", "out.bin", "-q"]),
        Job(WRITERS, "wr.tokenize", "wr.tokenize('big', 'out', tokenizer='bytes')", reads="out"),
        Job(WRITERS, "wr.index", "wr.index('big')", reads="big"),
        Job(WRITERS, "wr.convert", "wr.convert('numbers', 'out', to='shards')", reads="out"),
        Job(WRITERS, "wr.write", "wr.write('out', ([i, i + 1] for i in range(100_000)), to='shards', dtype='int32')", reads="out"),
        Job(CALLED, "texts of a slow generator", of_texts, reads="out"),
        Job(CALLED, "a slow tokenizer", called, reads="out"),
        Job(CALLED, "records of a slow generator", of_records, reads="out.npz"),
    ]


def endless(port: int) -> list[Endless]:
    """What reads and waits."""
    store = f"store_options={{'endpoint_url': 'http://127.0.0.1:{port}', 'anon': True}}"
    slow = "scaler=lambda values: time.sleep(0.05) or values - values[0], scaler_name='slow'"
    found = [
        Endless(READERS, "while True: wr.verify('numbers'); wr.verify('big')"),
        Endless(READERS, "while True: wr.open('big/a.jsonl')"),
        Endless(READERS, "ds = wr.open('numbers')\nwhile True:\n    for record in ds: pass"),
        Endless(READERS, "ds = wr.open('big/a.jsonl')\nwhile True: ds[range(len(ds))]"),
        Endless(REMOTE, f"wr.open('http://127.0.0.1:{port}/a.jsonl')"),
        Endless(REMOTE, f"wr.verify('http://127.0.0.1:{port}/a.jsonl')"),
        Endless(REMOTE, f"wr.tokenize('http://127.0.0.1:{port}/a.jsonl', 'out', tokenizer='bytes')"),
        Endless(REMOTE, f"wr.open('s3://bucket/a', {store})"),
        Endless(REMOTE, f"wr.write('s3://bucket/a.npz', RECORDS, to='npz', dtype='float32', {store})"),
        Endless(REMOTE, ["inspect", f"http://127.0.0.1:{port}/a.jsonl"]),
        Endless(REMOTE, ["verify", f"http://127.0.0.1:{port}/a.jsonl"]),
    ]
    for threads in (0, 2):
        loop = f"num_threads={threads}, seed=1)\nfor batch in loader: pass"
        found.append(Endless(LOADERS, f"loader = wr.Loader({VIEW}), batch_size=64, {loop}"))
        found.append(Endless(CALLED, f"loader = wr.Loader({VIEW}, {slow}), batch_size=64, {loop}"))
    return found


def inputs(lines: int) -> Callable[[Path], None]:
    """Inputs so large that jobs take a while; only a few lines for what is slow by itself."""

    def make(folder: Path) -> None:
        for name, n in {"big": lines, "small": 60}.items():
            (folder / name).mkdir()
            text = "".join(json.dumps({"text": f"{i} " + "word " * (i % 20)}) + "\n" for i in range(min(n, BLOCK)))
            (folder / name / "a.jsonl").write_text(text * max(1, n // BLOCK))

    return make


def lines_that_take(bench: Bench, seconds: float) -> int:
    """How many lines a run of tokenize needs so long for."""
    lines = BLOCK
    while lines < 1_000_000:
        tree.put({}, bench.run)
        inputs(lines)(bench.run)
        began = time.monotonic()
        bench.ran(["tokenize", "big", "--tokenizer", "bytes", "--out", "out", "-q"])
        if time.monotonic() - began > seconds:
            break
        lines *= 2
    return lines


class Trial:
    """One job or endless call, interrupted at random times."""

    def __init__(self, part: Part, bench: Bench, what: Job | Endless, lines: int) -> None:
        self.part, self.bench, self.what, self.lines = part, bench, what, lines
        self.case: Case | None = None
        self.seconds = LONG
        self.start: tree.Tree = {}

    def go_on(self) -> None:
        """A few interruptions."""
        if not self.start:
            try:
                self._begin()
            except Failed as error:
                self.part.found(self.what.row, "lost", f"without any interruption: {error}")
                # Never again.
                self.lines = 0
        for _ in range(AT_ONCE if self.start else 0):
            if self.part.left() == 0 or self.lines == 0:
                return
            self._interrupt()

    def _begin(self) -> None:
        if isinstance(self.what, Job):
            began = time.monotonic()
            self.case = Case(self.bench, replace(self.what, steps=[NUMBERS]), inputs(self.lines))
            began = time.monotonic()
            self.case.reset()
            self.bench.ran(self.what.command, fast=False)
            self.seconds = time.monotonic() - began
            self.start = self.case.start
            return
        tree.put({}, self.bench.run)
        inputs(self.lines)(self.bench.run)
        if (ran := self.bench.ran(NUMBERS)).code != 0:
            raise Failed(str(ran))
        self.start = tree.take(self.bench.run)

    def _interrupt(self) -> None:
        command, row = self.what.command, self.what.row
        tree.put(self.start, self.bench.run)
        # Most of them early: a call looks for things where it begins.
        wait = self.seconds * self.part.random.random() ** 2
        said = f"{self.what.name}, Ctrl-C after {wait:.3f} s"
        if isinstance(command, str):
            ran, took = self._of_python(command, wait)
            said += f": {command!r}"
        else:
            ran, took = self._of_program(command, wait)
            said += f": windrow {' '.join(command)}"
        if ran.code == 0 and took is None:
            # It was over before.
            return
        self.part.tried(row)
        if took is not None:
            self.part.took(row, took)
        if ran.hung or (took or 0) > LATE:
            self.part.found(row, "hung", f"{said}: no answer in {LATE:.0f} s ({ran})")
            # Once is enough: it takes long.
            self.lines = 0
        # Before the program has begun, Ctrl-C ends it as it ends any other.
        elif ran.code not in (0, 130) and not (isinstance(command, list) and ran.code == -signal.SIGINT):
            self.part.found(row, "wrong", f"{said}: {ran}")
        elif self.case:
            wrong = self.case.wrong_with() or self.case.wrong_after_rerun(self.case.is_whole())
            if wrong:
                self.part.found(row, wrong[0], f"{said}: {wrong[1]}")

    def _of_python(self, code: str, wait: float) -> tuple[Ran, float | None]:
        """How it ended, and how long after the signal KeyboardInterrupt was raised, or it ended otherwise; None for before it."""
        pid = self.bench.forked.start(code, self.bench.run, self.bench.preload.environment(fast=False))
        time.sleep(wait)
        # A process that has ended is there until it is waited for.
        was_over = has_ended(pid)
        pressed = time.monotonic()
        os.kill(pid, signal.SIGINT)
        ran = self.bench.forked.end(pid, LATE + 1)
        took = time.monotonic() - pressed
        for line in ran.err.splitlines():
            if line.startswith(INTERRUPTED):
                took = float(line.removeprefix(INTERRUPTED)) - pressed
        return ran, None if was_over else took

    def _of_program(self, command: list[str], wait: float) -> tuple[Ran, float | None]:
        """How it ended, and how long after the signal; None for before it."""
        environment = self.bench.preload.environment(fast=False)
        process = program.start(program.windrow(*command), self.bench.run, environment)
        ended = os.pidfd_open(process.pid)
        try:
            time.sleep(wait)
            was_over = has_ended(process.pid)
            pressed = time.monotonic()
            process.send_signal(signal.SIGINT)
            is_over, _, _ = select.select([ended], [], [], LATE + 1)
            took = time.monotonic() - pressed
        finally:
            os.close(ended)
        ran = program.end(process, program.LIMIT if is_over else 0.1)
        return ran, None if was_over else took


def has_ended(pid: int) -> bool:
    """Whether a process is only there to be waited for."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
