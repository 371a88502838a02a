"""Sequences that windrow does not open as one data set: arrays in memory, handed out as its data sets do."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Sequence
from operator import index as as_index
from typing import Any, overload

import numpy as np
import numpy.typing as npt

import windrow

from ...failure import failure

Array = npt.NDArray[Any]


class Arrays:
    """Sequences by number, from either end; a slice or a list of numbers gives a list."""

    def __init__(self, sequences: Sequence[Array]) -> None:
        self._sequences = list(sequences)

    def __len__(self) -> int:
        return len(self._sequences)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int]) -> list[Array]: ...
    def __getitem__(self, index: Any) -> Array | list[Array]:
        if isinstance(index, slice):
            return self._sequences[index]
        if np.ndim(index):
            return [self[i] for i in index]
        return self._sequences[in_range(index, len(self), "sequence")]

    def length(self, index: int) -> int:
        """Values in sequence number `index`."""
        return len(self[index])


def has_no_lines(path: str) -> bool:
    """Whether it is a file of JSON lines, as it is or in a gzip stream, without a byte in it."""
    if path.endswith(".jsonl"):
        return os.path.isfile(path) and os.path.getsize(path) == 0
    # Without a byte even of the stream it is no empty file, but one that was cut off.
    if path.endswith(".jsonl.gz") and os.path.isfile(path) and os.path.getsize(path):
        try:
            with gzip.open(path) as file:
                return not file.read(1)
        except (OSError, EOFError, zlib.error):
            return False
    return False


def in_range(index: Any, length: int, what: str) -> int:
    """A number from either end as one from the front; raises `windrow.OutOfRangeError` (an IndexError)."""
    number = as_index(index)
    if not -length <= number < length:
        raise failure(windrow.OutOfRangeError, f"{what} {number} is out of range: there are {length}")
    return number % length
