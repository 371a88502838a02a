"""Steps that are assembled before they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["Ahead"]

T = TypeVar("T")

THREADS = 2
STEPS = 4
# Parts of a batch that devices ask for; more are no pattern.
MOST_KEYS = 256


class Ahead(Generic[T]):
    """Answers for steps: once those for a key come one after the other, threads make the next few.

    What an answer is depends on nothing but the step and `key`, so one made ahead is the one that would have been made.
    """

    def __init__(self, end: int) -> None:
        self._end = end
        self._pid: int | None = None

    def get(self, step: int, key: Hashable, make: Callable[[int], T]) -> T:
        """`make(step)`, made before where this is the step after the last one for this key."""
        if self._pid != os.getpid():
            # A forked process has none of its parent's threads.
            self._pid, self._pool = os.getpid(), ThreadPoolExecutor(THREADS, "windrow-ahead")
            self._begun: dict[Hashable, dict[int, Future[T]]] = {}
            self._last: dict[Hashable, int] = {}
        if len(self._last) > MOST_KEYS:
            self._begun, self._last = {}, {}
        begun = self._begun.setdefault(key, {})
        answer = begun.pop(step, None)
        follows = self._last.get(key) == step - 1
        self._last[key] = step
        if follows:
            for later in range(step + 1, min(step + 1 + STEPS, self._end)):
                if later not in begun:
                    begun[later] = self._pool.submit(make, later)
        else:
            self._begun[key] = {}
            for other in list(begun.values()):
                other.cancel()
        return make(step) if answer is None else answer.result()
