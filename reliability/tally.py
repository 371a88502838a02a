"""What a part of the torture counts: cases tried, what went wrong in them, and how long things took."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What may go wrong with data: it is gone; it is other data; nothing was said; nothing happened; something from a file was run.
WRONGS = ("lost", "wrong", "silent", "hung", "executed")
KEPT = 20


class Part:
    """One part of the torture, in a process of its own: it tries cases as long as there is time, and says what came of them.

    Each part begins in an empty folder with random numbers of its own, so that the same seed tries the same cases.
    """

    def __init__(self, folder: Path, seconds: float, seed: int) -> None:
        self.folder, self.seed, self.random = folder, seed, random.Random(seed)
        self._until = time.monotonic() + seconds
        self._rows: dict[str, dict[str, int]] = {}
        self._times: dict[str, list[float]] = {}
        self._findings: list[str] = []

    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._until - time.monotonic())

    def rounds(self) -> Iterator[int]:
        """0, 1, 2, … until the time is over; always one round."""
        number = 0
        while number == 0 or self.left() > 0:
            yield number
            number += 1

    def tried(self, row: str, times: int = 1) -> None:
        """Adds cases of this row of the table."""
        found = self._rows.setdefault(row, dict.fromkeys(("tried", *WRONGS), 0))
        found["tried"] += times

    def found(self, row: str, what: str, said: str) -> None:
        """A case went wrong: `what` is one of WRONGS, `said` is how to see it again."""
        if what not in WRONGS:
            raise ValueError(f"{what!r} is not one of {', '.join(WRONGS)}")
        self.tried(row, 0)
        self._rows[row][what] += 1
        print(f"{what}: {row}: {said}", flush=True)
        if len(self._findings) < KEPT:
            self._findings.append(f"{what}: {row}: {said}")

    def took(self, row: str, seconds: float) -> None:
        """How long one case of this row took, where the time is what matters."""
        self.tried(row, 0)
        self._times.setdefault(row, []).append(seconds)

    def report(self) -> dict[str, Any]:
        """The rows, as they are kept in reliability/runs."""
        rows: dict[str, dict[str, float]] = {name: {**counts} for name, counts in self._rows.items()}
        for name, times in self._times.items():
            times.sort()
            # The nearest rank: of 100 times the 99th.
            at = math.ceil(0.99 * len(times)) - 1
            rows[name] |= {"timed": len(times), "p99_ms": round(1e3 * times[at], 1), "max_ms": round(1e3 * times[-1], 1)}
        return {"rows": rows, "findings": self._findings}

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.report()))
