"""Sequences that windrow does not open as one data set: arrays in memory, handed out as its data sets do."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

import windrow

from ....failure import failure
from ...in_range import in_range

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


def members_of(path: str) -> Arrays:
    """The sequences of an `.npz` whose members are of different kinds: each `[T]`, or one per row, in archive order.

    All of them are read into memory. Raises `windrow.CorruptError` and `windrow.UnsupportedError` with the member.
    """
    sequences: list[Array] = []
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".npy"):
                    sequences += rows_of(read_member(archive, name), f"{path}#{name}")
    except (zipfile.BadZipFile, OSError) as error:
        raise failure(windrow.CorruptError, f"the archive cannot be read: {error}", path=path) from error
    return Arrays(sequences)


def read_member(archive: zipfile.ZipFile, name: str) -> Array:
    """An array of an archive; nothing in it is executed."""
    try:
        with archive.open(name) as file:
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, MemoryError, NotImplementedError, RuntimeError, zlib.error) as error:
        path = f"{archive.filename}#{name}"
        raise failure(windrow.CorruptError, f"the array cannot be read: {error}", path=path) from error
    return array


def rows_of(array: Array, path: str) -> list[Array]:
    """`[T]` as one sequence, `[N, T]` or `[N, T, C]` as N of them."""
    if array.dtype.kind not in "biuf" or not 1 <= array.ndim <= 3:
        raise failure(
            windrow.UnsupportedError,
            f"found an array of shape {list(array.shape)} and dtype {array.dtype}, expected numbers in 1 to 3 dimensions",
            path=path,
            hint="a series is [T], one per row of [N, T], or [N, T, C]",
        )
    return [array] if array.ndim == 1 else list(array)
