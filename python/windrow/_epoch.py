"""The epoch that samples are drawn for, as `set_epoch` set it: one number that a process's workers see change too."""

from __future__ import annotations

import itertools
import mmap
import os
import weakref
from collections.abc import Callable
from typing import Any

from windrow._native import _Closes

__all__ = ["Epoch"]

NOT_SAID = -1


class Epoch:
    """An epoch, or None. Worker processes follow the process that started them, also those that live on from epoch to epoch.

    What a process says itself goes before what those that it was started by say; only its own workers follow it.

    >>> epoch = Epoch()
    >>> epoch.get()
    >>> epoch.set(3)
    >>> epoch.get()
    3
    """

    def __init__(self, epoch: int | None = None) -> None:
        # By process ID, where each process writes: those that this one was started by, the first one first, then this one.
        # Memory is taken when it is needed: most views are never told an epoch.
        self._cells: dict[int, tuple[_Page, int]] = {}
        _living.add(weakref.ref(self, _living.discard))
        if epoch is not None:
            self.set(epoch)

    def get(self) -> int | None:
        """What was set last, here or else in the process that this one was started by."""
        for page, number in reversed(list(self._cells.values())):
            epoch = page.numbers[number]
            if epoch != NOT_SAID:
                return epoch
        return None

    def set(self, epoch: int) -> None:
        """Says which epoch the next samples are drawn for."""
        page, number = self._own()
        page.numbers[number] = epoch

    def _own(self) -> tuple[_Page, int]:
        process = os.getpid()
        # ``setdefault`` takes no notice of what another thread did not finish.
        return self._cells.get(process) or self._cells.setdefault(process, _cell())

    def __reduce__(self) -> tuple[Callable[..., Epoch], tuple[Any, ...]]:
        from multiprocessing import context

        if context.get_spawning_popen() is None:
            return Epoch, (self.get(),)
        # A process that is being started gets the memory itself.
        self._own()
        return _of_cells, (self._cells,)


def _of_cells(cells: dict[int, tuple[_Page, int]]) -> Epoch:
    epoch = Epoch()
    epoch._cells = cells
    return epoch


# The callback is not Python code: Ctrl-C that comes while such a one, or a ``__del__``, runs is lost.
_living: set[weakref.ref[Epoch]] = set()


def _before_fork() -> None:
    # What is set first after the fork must be seen in the child, so the memory must be there.
    for reference in list(_living):
        epoch = reference()
        if epoch is not None:
            epoch._own()


os.register_at_fork(before=_before_fork)


class _Page:
    """Numbers in memory that the processes share which this one starts: two file handles for the epochs of hundreds of views."""

    def __init__(self, file: int) -> None:
        self._file, self._closes = file, _Closes(file)
        self.numbers = memoryview(mmap.mmap(file, mmap.PAGESIZE)).cast("q")
        self.process = os.getpid()
        self.free = itertools.count()

    def __reduce__(self) -> tuple[Callable[..., _Page], tuple[Any, ...]]:
        from multiprocessing import reduction

        return _of_file, (reduction.DupFd(self._file),)


def _of_file(file: Any) -> _Page:
    return _Page(file.detach())


# Where this process took the last number, which does not keep the page: its file closes with the last epoch in it.
_latest: Callable[[], _Page | None] = lambda: None


def _cell() -> tuple[_Page, int]:
    global _latest
    page = _latest()
    if page is not None and page.process == os.getpid():
        number = next(page.free)
        if number < len(page.numbers):
            return page, number
    file = os.memfd_create("windrow-epoch")
    # Every number is NOT_SAID.
    os.write(file, b"\xff" * mmap.PAGESIZE)
    page = _Page(file)
    number = next(page.free)
    _latest = weakref.ref(page)
    return page, number
