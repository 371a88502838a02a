"""Power losses: each job is recorded, and the disk as it may be at a moment that is drawn is read, tidied up, and run again on."""

from __future__ import annotations

import hashlib

import changes
import tree
from cases import Bench, Case, Failed
from crash import Disk
from jobs import Job, jobs
from tally import Part

AT_ONCE = 20
IN_ORDER = "names reach the disk in order"
IN_ANY = "names reach the disk in any order"
AT_END = "after the command has ended"
TIDIED = "verify --gc after it"


def torture(part: Part) -> None:
    bench = Bench(part.folder)
    order = jobs()
    part.random.shuffle(order)
    recorded = [Recorded(part, bench, job) for job in order]
    for number in part.rounds():
        recorded[number % len(recorded)].go_on()


class Recorded:
    """One job, whose changes were recorded once."""

    def __init__(self, part: Part, bench: Bench, job: Job) -> None:
        self.part, self.bench, self.job = part, bench, job
        self.case: Case | None = None
        self.is_broken = False
        self.changes: list[changes.Change] = []
        self.end: tree.Tree = {}
        self._start: tree.Tree = {}
        self._times: list[int] = []
        self._seen: set[bytes] = set()

    def go_on(self) -> None:
        """A few images."""
        if self.case is None and not self.is_broken:
            try:
                self._record()
            except Failed as error:
                self.part.found(IN_ORDER, "lost", f"without any fault: {error}")
                self.is_broken = True
        for _ in range(AT_ONCE if self.case else 0):
            if self.part.left() == 0:
                return
            self._image()

    def _record(self) -> None:
        case = Case(self.bench, self.job)
        self._start = case.start
        case.reset()
        ran = self.bench.ran(self.job.command, "record")
        self.changes = changes.read(self.bench.preload.log, self.bench.preload.below)
        self.end = tree.take(self.bench.run)
        disk = self._disk(len(self.changes))
        if ran.code != 0 or tree.visible(self.end) != case.after:
            raise Failed(f"{self.job.name}, recorded: {ran}")
        # The model of the disk knows every change: nothing is written past it.
        if bytes_of(disk.now()) != bytes_of(self.end):
            raise Failed(f"{self.job.name}: what was recorded is not what is there")
        self._times = disk.times(self.end)
        self.case = case

    def _disk(self, n: int) -> Disk:
        disk = Disk(self._start)
        for change in self.changes[:n]:
            disk.make(change)
        for file, time_ns in zip(disk.files, self._times, strict=False):
            file.time_ns = time_ns
        return disk

    def _image(self) -> None:
        """The power is lost at some change, half of the time near the end, where it becomes visible."""
        case, draw = self.case, self.part.random
        assert case
        n_all = len(self.changes)
        n = draw.choice([draw.randint(0, n_all), draw.randint(max(0, n_all - 16), n_all), n_all])
        seed, in_order = draw.getrandbits(32), draw.random() < 0.5
        image = self._disk(n).after_loss(type(draw)(seed), in_order)
        row = IN_ANY if not in_order else AT_END if n == n_all else IN_ORDER
        # The same image twice shows nothing new.
        known = hashlib.sha256(repr(sorted((name, item and item[0]) for name, item in image.items())).encode()).digest()
        if known in self._seen and n != n_all:
            return
        self._seen.add(known)
        self.part.tried(row)
        tree.put(image, self.bench.run)
        order = "in order" if in_order else "in any order"
        said = f"{self.job.name}, power lost after change {n} of {n_all}, names {order}, image {seed}"
        if wrong := case.wrong_with():
            self.part.found(row, "wrong" if wrong[0] == "silent" else wrong[0], f"{said}: {wrong[1]}")
        elif n == n_all and not case.is_whole():
            self.part.found(row, "lost", f"{said}: it has ended, and its output is not on the disk")
        elif draw.random() < 0.2:
            self._tidied(image, said)
        elif wrong := case.wrong_after_rerun(case.is_whole()):
            self.part.found(row, wrong[0] if wrong[0] == "hung" else "lost", f"{said}: {wrong[1]}")

    def _tidied(self, image: tree.Tree, said: str) -> None:
        """What may be seen after `verify --gc` is what may be seen before; what was whole stays."""
        case = self.case
        assert case
        self.part.tried(TIDIED)
        was_whole = case.is_whole()
        ran = self.bench.ran(["verify", "--gc", "-q", "."])
        said += ", then windrow verify --gc -q ."
        if ran.hung or ran.crashed:
            self.part.found(TIDIED, "hung" if ran.hung else "wrong", f"{said}: {ran}")
        elif wrong := case.wrong_with():
            self.part.found(TIDIED, "wrong" if wrong[0] == "silent" else wrong[0], f"{said}: {wrong[1]}")
        elif was_whole and not case.is_whole():
            self.part.found(TIDIED, "lost", f"{said}: the new output was there, and is not any more")
        elif wrong := case.wrong_after_rerun(case.is_whole()):
            self.part.found(TIDIED, wrong[0] if wrong[0] == "hung" else "lost", f"{said}: {wrong[1]}")


def bytes_of(found: tree.Tree) -> dict[str, bytes | None]:
    return {name: item and item[0] for name, item in found.items()}
