"""The epoch that samples are drawn for, as `set_epoch` said: one number that worker processes see change too."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from typing import Any

from windrow._native import _Closes

__all__ = ["Epoch"]

NOT_SAID = -1


class Epoch:
    """An epoch, or None. Worker processes of a `DataLoader` follow it, also those that live on from epoch to epoch.

    >>> epoch = Epoch()
    >>> epoch.get()
    >>> epoch.set(3)
    >>> epoch.get()
    3
    """

    def __init__(self, epoch: int | None = None) -> None:
        # Memory is taken when it is needed: most views are never told an epoch.
        self._file: int | None = None
        self._cell: memoryview | None = None
        if epoch is not None:
            self.set(epoch)

    def get(self) -> int | None:
        """What was said last, here or in the process that this one was started by."""
        epoch = NOT_SAID if self._cell is None else self._cell[0]
        return None if epoch == NOT_SAID else epoch

    def set(self, epoch: int) -> None:
        """Says which epoch the next samples are drawn for."""
        if self._cell is None:
            self._share()
        assert self._cell is not None
        self._cell[0] = epoch

    def _share(self, file: int | None = None) -> int:
        if file is None:
            file = os.memfd_create("windrow-epoch")
            os.write(file, NOT_SAID.to_bytes(8, sys.byteorder, signed=True))
        # Without a ``__del__``: Ctrl-C that comes while one runs is lost.
        self._file, self._closes = file, _Closes(file)
        self._cell = memoryview(mmap.mmap(file, 8)).cast("q")
        return file

    def __reduce__(self) -> tuple[Callable[..., Epoch], tuple[Any, ...]]:
        from multiprocessing import context, reduction

        if context.get_spawning_popen() is None:
            return Epoch, (self.get(),)
        # A process that is being started gets the memory itself.
        file = self._share() if self._file is None else self._file
        return _of_file, (reduction.DupFd(file),)


def _of_file(file: Any) -> Epoch:
    epoch = Epoch()
    epoch._share(file.detach())
    return epoch
