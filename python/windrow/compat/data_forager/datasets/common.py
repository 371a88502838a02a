"""Random access to samples by an index; what the datasets share."""

from __future__ import annotations

import abc
import errno
import logging
import operator
import os
import stat
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import windrow

from ....failure import failure
from ..index_stores.fs_based import IndexStore
from ..sample_index import SampleIndex, SampleLocation

MOST_FILES_KEPT = 256
SIZE_BELIEVED = 1 << 20


class Dataset(abc.ABC):
    """`len(dataset)` samples; `dataset[i]` is made by `_process_sample` from the bytes of sample i.

    Files are opened at the first access and read by position: one dataset may be used from several threads and in
    forked workers, and it pickles. Works as a map-style dataset of `torch.utils.data.DataLoader`.
    """

    @classmethod
    def create_from_index_on_filesystem(
        cls, base_path: str | os.PathLike[str], index_data_folder: str = "index", name: str | None = None, **kwargs: Any
    ) -> Any:
        """The dataset over the index in `<base_path>/<index_data_folder>/`; `kwargs` go to the constructor.

        Raises what `IndexStore.load` raises.
        """
        return cls(IndexStore(base_path, index_data_folder=index_data_folder).load(), name=name, **kwargs)

    def __init__(self, sample_index: SampleIndex, name: str | None = None, **kwargs: Any) -> None:
        if kwargs:
            raise TypeError(f"{type(self).__name__} got unexpected arguments: {', '.join(kwargs)}")
        self._log = logging.getLogger(name or type(self).__name__)
        self._sample_index = sample_index
        self._file_handles: dict[str, int] | None = None

    def initialize(self) -> None:
        """Makes ready for reading; the first access does it, too."""
        if self._file_handles is None:
            self._file_handles = {}

    @property
    def is_initialized(self) -> bool:
        """Whether something was read, or `initialize` called."""
        return self._file_handles is not None

    def __len__(self) -> int:
        return len(self._sample_index)

    def __getitem__(self, idx: Any) -> Any:
        """Sample `idx`, negative from the end; a list of samples for a slice, a list or an array of integers.

        Raises IndexError beyond the ends, ValueError for anything that is not an index, and errors that are ValueErrors
        for a sample that cannot be understood.
        """
        if type(idx) is int:  # the common case first
            return self._sample_at(idx)
        if isinstance(idx, slice):
            return [self._sample_at(i) for i in range(*idx.indices(len(self)))]
        if isinstance(idx, Sequence | np.ndarray) and not isinstance(idx, str | bytes) and np.ndim(idx) == 1:
            return [self._sample_at(_as_index(i)) for i in idx]
        return self._sample_at(_as_index(idx))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file_handles": None}

    def __del__(self) -> None:
        self._close_files()

    @abc.abstractmethod
    def _process_sample(self, sample_bytes: bytes) -> Any:
        """The sample made of these bytes."""

    def _sample_at(self, idx: int) -> Any:
        return self._get_sample(self._sample_index[idx])

    def _get_sample(self, location: SampleLocation) -> Any:
        return self._process_sample(self._get_sample_bytes(location))

    def _get_sample_bytes(self, location: SampleLocation) -> bytes:
        path, first, size = location.file_path, location.byte_offset, location.num_bytes
        try:
            found = self._read(path, first, size)
        except FileNotFoundError as error:
            raise failure(windrow.NotFoundError, "a file of the index is not there", path=path) from error
        except (OSError, OverflowError, MemoryError) as error:
            message = f"cannot read {size} bytes: {error}"
            raise failure(windrow.IoError, message, path=path, byte=first) from error
        if len(found) != size:
            raise failure(
                windrow.CorruptError,
                f"the file ends too early: found {len(found)} of {size} bytes of the sample",
                path=path,
                byte=first,
                hint="the file was cut or changed after it was indexed",
            )
        return found

    def _read(self, path: str, first: int, size: int) -> bytes:
        self.initialize()
        assert self._file_handles is not None
        handle = self._file_handles.get(path)
        if handle is not None:
            return _read_at(handle, first, size)
        handle = _open_file(path)
        # A kept file stays open: another thread may be reading it.
        if len(self._file_handles) < MOST_FILES_KEPT and self._file_handles.setdefault(path, handle) == handle:
            return _read_at(handle, first, size)
        try:
            return _read_at(handle, first, size)
        finally:
            os.close(handle)

    def _close_files(self) -> None:
        handles, self._file_handles = getattr(self, "_file_handles", None), None
        for handle in (handles or {}).values():
            os.close(handle)


class SubsampledDataset:
    """`int(subsample_factor * len(dataset))` samples of another dataset, drawn without repetition.

    `seed`: the same seed gives the same samples; None draws others each time. They come in the order of the dataset, or, with
    `random_order=True`, in random order.

    Raises ValueError unless `0 < subsample_factor <= 1`.

    >>> list(SubsampledDataset([10, 11, 12, 13], 0.5, seed=1))
    [11, 12]
    """

    def __init__(
        self, dataset: Any, subsample_factor: float, seed: int | None = None, random_order: bool = False
    ) -> None:
        if not 0 < subsample_factor <= 1:
            raise failure(
                windrow.ConfigError, f"subsample_factor is {subsample_factor}, expected more than 0 and at most 1"
            )
        size = len(dataset)
        drawn = np.random.default_rng(seed).choice(size, size=int(subsample_factor * size), replace=False)
        self._dataset = dataset
        self._indices: list[int] = (drawn if random_order else np.sort(drawn)).tolist()

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: Any) -> Any:
        """As `dataset[i]` of the i-th drawn sample; a list of samples for a slice."""
        if isinstance(idx, slice):
            return [self._dataset[i] for i in self._indices[idx]]
        return self._dataset[self._indices[_as_index(idx)]]

    def __getitems__(self, indices: list[int]) -> Any:
        """What torch's DataLoader fetches a batch with."""
        if hasattr(self._dataset, "__getitems__"):
            return self._dataset.__getitems__([self._indices[i] for i in indices])
        return [self[i] for i in indices]


def _as_index(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        found = type(value).__name__
        raise failure(windrow.ConfigError, f"found an index of type {found}, expected int or slice") from error


def in_native_order(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy that torch takes: writable, in the machine's byte order."""
    return values.astype(values.dtype.newbyteorder("="))


def _open_file(path: str) -> int:
    # Not waiting for a writer: a pipe in the place of a file must not hang.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return handle


def _read_at(handle: int, first: int, size: int) -> bytes:
    if size > SIZE_BELIEVED:
        # The size comes from the index: no more memory is asked for than the file can fill.
        size = min(size, max(0, os.fstat(handle).st_size - first))
    found = os.pread(handle, size, first)
    while len(found) < size:
        more = os.pread(handle, size - len(found), first + len(found))
        if not more:
            break
        found += more
    return found
