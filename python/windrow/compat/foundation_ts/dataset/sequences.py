"""Whole sequences by number, as tensors."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

import windrow

from ....failure import failure
from ...in_range import in_range
from .arrays import Arrays, has_no_lines, members_of
from .normalizers import NATIVE, Transform


# What holds arrays, which have no keys.
ARRAYS = (".npy", ".npy.gz", ".npy.zst", ".npz")


@runtime_checkable
class SequenceDataset(Protocol):
    """What windows can be cut from."""

    def __len__(self) -> int:
        """Number of sequences."""
        ...

    def __getitem__(self, index: int) -> torch.Tensor:
        """Sequence number `index`: `[T]` or `[T, C]`."""
        ...

    def get_sequence_length_by_idx(self, index: int) -> int:
        """Values in that sequence."""
        ...

    def get_num_tokens(self) -> int:
        """Values in all sequences."""
        ...


class StoredDataset:
    """Sequences of one data set on disk; `native` is that data set as windrow reads it, or `Arrays`.

    `dataset[i]` is a tensor `[T]` or `[T, C]` in the dtype of that sequence (de-normalised where the data says how), passed
    through `transform`. `i` counts from either end; a slice or a list of numbers gives a list.
    """

    def __init__(self, native: windrow.Dataset | Arrays, transform: Transform | None) -> None:
        self.native = native
        self.transform = transform

    def __len__(self) -> int:
        return len(self.native)

    @overload
    def __getitem__(self, index: int) -> torch.Tensor: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int]) -> list[torch.Tensor]: ...
    def __getitem__(self, index: Any) -> torch.Tensor | list[torch.Tensor]:
        # windrow reads all records of a file as one dtype; here each sequence has its own.
        found = self.native[index] if isinstance(self.native, Arrays) else self.native._stored(index)
        if isinstance(found, list):
            return [self._tensor(array) for array in found]
        return self._tensor(found)

    def get_sequence_length_by_idx(self, index: int) -> int:
        """Values in sequence number `index`; reads none of them."""
        return self.native.length(index)

    def get_num_tokens(self) -> int:
        """Values in all sequences."""
        return sum(self.get_sequence_length_by_idx(i) for i in range(len(self)))

    @property
    def scaler(self) -> str | None:
        """The transform as windrow's windows know it; KeyError where they do not."""
        try:
            return NATIVE[self.transform]
        except TypeError:  # no hash
            raise KeyError(self.transform) from None

    @property
    def is_native(self) -> bool:
        """Whether windrow gives the same without Python."""
        if isinstance(self.native, Arrays):
            return False
        try:
            _ = self.scaler
        except KeyError:
            return False
        # A class of the user's may hand out other values than are stored.
        return type(self).__module__.startswith(__package__ or "-")

    def _tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        tensor = as_tensor(array)
        return tensor if self.transform is None else self.transform(tensor)


class GeneralSequenceDataset(StoredDataset):
    """The sequences of one file: .json, .jsonl, .yaml, .yml, .npy, .npz, .pkl, .pickle, compressed or not.

    Nothing in the file is executed. Arrays keep their dtype; a list of numbers is int64 where all are whole, bool where all
    are true or false, else float32.

    Raises `windrow.NotFoundError`, `windrow.UnrecognisedError`, and `windrow.CorruptError` with the place in the file.
    """

    def __init__(self, data_path: str | os.PathLike[str], transform: Transform | None = None) -> None:
        self.data_path = os.fspath(data_path)
        if os.path.isdir(self.data_path):
            raise failure(
                windrow.ConfigError,
                "found a folder, expected a file of sequences",
                path=self.data_path,
                hint="BinarySequenceDataset reads a folder of shards, build_ts_dataset any folder",
            )
        super().__init__(open_series(self.data_path), transform)

    def get_sequence_length_by_idx(self, index: int) -> int:
        """Values in sequence number `index`, as a transform in Python leaves them; without one it reads none of them."""
        return super().get_sequence_length_by_idx(index) if self.is_native else len(self[index])


class BinarySequenceDataset(StoredDataset):
    """The sequences of a folder of shards: `meta.json` and `.bin` files.

    Files are mapped, or read by position with `use_mmap=False`; the operating system decides how many maps stay, so
    `mmap_cache_size` changes nothing.

    Raises `windrow.NotFoundError`, and `windrow.CorruptError` when `meta.json` and the shards do not agree.
    """

    def __init__(
        self,
        data_path: str | os.PathLike[str],
        transform: Transform | None = None,
        use_mmap: bool = True,
        mmap_cache_size: int = 32,
    ) -> None:
        self.data_path = os.fspath(data_path)
        self.use_mmap, self.mmap_cache_size = use_mmap, mmap_cache_size
        super().__init__(windrow.open(self.data_path, format="shards", io="mmap" if use_mmap else "pread"), transform)

    def get_num_tokens(self) -> int:
        """Values in all shards, as `meta.json` counts them."""
        meta = json.loads((Path(self.data_path) / "meta.json").read_text(encoding="utf-8"))
        return sum(meta["files"].values())


class ConcatSequenceDataset:
    """Several data sets as one, the sequences of the first before those of the second."""

    def __init__(self, datasets: Sequence[SequenceDataset]) -> None:
        self.datasets = list(datasets)
        self._ends = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> torch.Tensor: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int]) -> list[torch.Tensor]: ...
    def __getitem__(self, index: Any) -> torch.Tensor | list[torch.Tensor]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if hasattr(index, "__len__") and getattr(index, "ndim", True):
            return [self[i] for i in index]
        dataset, number = self._find(index)
        return dataset[number]

    def get_sequence_length_by_idx(self, index: int) -> int:
        """Values in sequence number `index`."""
        dataset, number = self._find(index)
        return dataset.get_sequence_length_by_idx(number)

    def get_num_tokens(self) -> int:
        """Values in all sequences."""
        return sum(dataset.get_num_tokens() for dataset in self.datasets)

    def _find(self, index: int) -> tuple[SequenceDataset, int]:
        index = in_range(index, len(self), "sequence")
        part = bisect_right(self._ends, index)
        return self.datasets[part], index - (self._ends[part - 1] if part else 0)


def as_tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """An array's numbers as a tensor of its own memory."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array, array.dtype.newbyteorder("="), order="C"))


def open_series(path: str) -> windrow.Dataset | Arrays:
    """A file of sequences: JSON lines that hold lists are sequences here, not text."""
    if has_no_lines(path):
        return Arrays([])
    # The original knows one key of a dict. With a key, lines that hold lists are sequences, not text.
    column = None if path.endswith(ARRAYS) else "sequence"
    try:
        return windrow.open(path, column=column)
    except windrow.MismatchError:
        # windrow's own data sets are of one kind.
        if not path.endswith(".npz"):
            raise
        return members_of(path)
