"""Steps that are laid before they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")

THREADS = 2
STEPS = 4


class Ahead(Generic[T]):
    """Answers for steps: once they come one after the other, threads make the next few.

    What an answer is depends on nothing but the step and `key`, so one made ahead is the one that would have been made.
    """

    def __init__(self, end: int) -> None:
        self._end = end
        self._pid: int | None = None

    def get(self, step: int, key: Hashable, make: Callable[[int], T]) -> T:
        """`make(step)`, made before where this is the step after the last one, for the same key."""
        if self._pid != os.getpid():
            # A forked process has none of its parent's threads.
            self._pid, self._pool = os.getpid(), ThreadPoolExecutor(THREADS, "windrow-ahead")
            self._begun: dict[tuple[int, Hashable], Future[T]] = {}
            self._last: tuple[int, Hashable] | None = None
        begun = self._begun.pop((step, key), None)
        follows, self._last = self._last == (step - 1, key), (step, key)
        if follows:
            for later in range(step + 1, min(step + 1 + STEPS, self._end)):
                if (later, key) not in self._begun:
                    self._begun[later, key] = self._pool.submit(make, later)
        else:
            for other in list(self._begun.values()):
                other.cancel()
            self._begun.clear()
        return make(step) if begun is None else begun.result()
