"""Windows over sequences, and rows packed of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch

import windrow

from ....failure import failure
from ...in_range import in_range
from .arrays import Arrays
from .sequences import ConcatSequenceDataset, SequenceDataset, StoredDataset

Sample = dict[str, torch.Tensor]
# (row length, [(sequence, first value, pairs)])
Pack = tuple[int, list[tuple[int, int, int]]]

# Bytes of transformed sequences that a process keeps.
MOST_BYTES = 256 << 20


class WindowedDataset:
    """Windows of `context_length + prediction_length` inputs, `stride` apart (None or 0: their width).

    `dataset[i]` is `{"input_ids", "labels", "loss_masks"}`, `[W]` or `[W, C]` float32, the masks `[W]` int32: 1 where the
    label is real. A sequence of L values gives `1 + max(0, (L - (W + 1)) // stride)` windows, none where L < 2; a short one
    is filled with zeros.

    With `pack_sequences` rows are filled with sequences one after the other, split where a row is full; they also have
    `segment_ids` (`[T]` int32, -1 in padding) and `pack_bucket` (int32). T is W, or one of `pack_buckets`: the smallest that
    takes the rest of the sequence a row starts in.

    `i` counts from either end; a slice or a list gives a list. Windows of stored data sets without a transform, or with
    "max" or "zero", are cut by windrow itself: `views` are they, for `windrow.Loader`. For any other sequence data set whole
    sequences are read and kept as long as they take little memory.

    Raises `windrow.ConfigError` (a ValueError) for a negative stride, a width below 1, a bucket above the width.
    """

    def __init__(
        self,
        dataset: SequenceDataset,
        context_length: int,
        prediction_length: int = 0,
        stride: int | None = None,
        pack_sequences: bool = False,
        pack_buckets: Sequence[int] | None = None,
    ) -> None:
        self.dataset = dataset
        self.context_length, self.prediction_length = context_length, prediction_length
        self.width = context_length + prediction_length
        if min(context_length, prediction_length) < 0 or self.width < 1:
            raise failure(
                windrow.ConfigError,
                f"context_length is {context_length} and prediction_length {prediction_length}, expected 1 or more together",
            )
        if stride is not None and stride < 0:
            raise failure(windrow.ConfigError, f"stride is {stride}, expected 0 or more", hint="None is the width")
        self.stride = stride or self.width
        self.pack_sequences = pack_sequences
        self.pack_buckets = sorted(set(pack_buckets or ()))
        if self.pack_buckets and not 1 <= self.pack_buckets[0] <= self.pack_buckets[-1] <= self.width:
            raise failure(
                windrow.ConfigError,
                f"pack_buckets {self.pack_buckets} are not all from 1 to {self.width}, "
                "context_length + prediction_length",
            )
        self._parts = list(self._cut())
        self._ends = list(accumulate(len(part) for part in self._parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int]) -> list[Sample]: ...
    def __getitem__(self, index: Any) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return self.__getitems__(range(*index.indices(len(self))))
        if hasattr(index, "__len__") and getattr(index, "ndim", True):
            return self.__getitems__(index)
        part, number = self._find(index)
        return self._parts[part][number]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """What torch's DataLoader fetches a batch with."""
        return [self._parts[part][number] for part, number in map(self._find, indices)]

    def __iter__(self) -> Iterator[Sample]:
        return (self[i] for i in range(len(self)))

    @property
    def views(self) -> list[windrow.View]:
        """The windows as windrow's views, where all of them are."""
        views = [part.view for part in self._parts if isinstance(part, _Native)]
        if len(views) < len(self._parts):
            raise failure(
                windrow.ConfigError,
                "sequences pass through Python, so their windows are no view",
                hint="windrow.open(path).windows(…, scaler=function) takes a function of arrays",
            )
        return views

    @property
    def window_counts(self) -> list[int]:
        """Windows of each sequence."""
        return [windows_of(length, self.width, self.stride) for length in self._lengths()]

    @property
    def pack_plan(self) -> list[list[Any]]:
        """For each row `[length, [[sequence, first value, pairs], …]]`; empty without packing."""
        if not self.pack_sequences:
            return []
        return [[target, [list(segment) for segment in segments]] for target, segments in self._packs()]

    @property
    def pack_bucket_indices(self) -> dict[int, list[int]]:
        """The rows of each bucket; empty without buckets."""
        found: dict[int, list[int]] = {}
        if self.pack_sequences and self.pack_buckets:
            for number, (target, _) in enumerate(self._packs()):
                found.setdefault(target, []).append(number)
        return dict(sorted(found.items()))

    def _find(self, index: int) -> tuple[int, int]:
        index = in_range(index, len(self), "window")
        part = bisect_right(self._ends, index)
        return part, index - (self._ends[part - 1] if part else 0)

    def _lengths(self) -> list[int]:
        return [self.dataset.get_sequence_length_by_idx(i) for i in range(len(self.dataset))]

    def _packs(self) -> list[Pack]:
        return packs_of(self._lengths(), self.width, self.pack_buckets)

    def _cut(self) -> Iterator[_Native | _Windows | _Packs]:
        leaves = list(leaves_of(self.dataset))
        if self.pack_sequences:
            # A row may hold sequences of two data sets: only one alone is windrow's own.
            native = [native_of(leaf) for leaf in leaves]
            if len(leaves) == 1 and native[0] is not None:
                stored, scaler = native[0]
                cut = partial(stored.segments, self.width, self.pack_buckets, dtype="float32")
                yield _Native(cut, scaler)
            elif leaves:
                yield _Packs(self.dataset, self._packs())
            return
        for leaf in leaves:
            if (found := native_of(leaf)) is not None:
                stored, scaler = found
                cut = partial(stored.windows, self.width, stride=self.stride, dtype="float32")
                yield _Native(cut, scaler)
            else:
                yield _Windows(leaf, self.width, self.stride)


class _Native:
    """Windows that windrow cuts."""

    def __init__(self, cut: Callable[..., windrow.View], scaler: Any) -> None:
        self.view = cut(scaler=scaler)
        self.cut = cut

    def __len__(self) -> int:
        return len(self.view)

    def __getitem__(self, number: int) -> Sample:
        try:
            sample = self.view[number]
        except windrow.CorruptError:
            # A whole number that float32 does not hold is an error in windrow; the original rounds it. What is corrupt is
            # so again.
            sample = self._rounded[number]
        return {name: torch.from_numpy(array) for name, array in sample.items()}

    @cached_property
    def _rounded(self) -> windrow.View:
        return self.cut(scaler=_as_float32)


def _as_float32(sequence: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A sequence as windrow gives it to a scaler: rounded already."""
    return sequence


class _Windows:
    """Windows of sequences that come from Python."""

    def __init__(self, dataset: SequenceDataset, width: int, stride: int) -> None:
        self.sequences = _Sequences(dataset)
        self.width, self.stride = width, stride
        lengths = (dataset.get_sequence_length_by_idx(i) for i in range(len(dataset)))
        self.ends = np.cumsum([windows_of(length, width, stride) for length in lengths], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def __getitem__(self, number: int) -> Sample:
        sequence = int(np.searchsorted(self.ends, number, side="right"))
        start = (number - (int(self.ends[sequence - 1]) if sequence else 0)) * self.stride
        values = self.sequences[sequence][start : start + self.width + 1]
        row = _Row(self.width, values)
        row.add(values, self.width)
        # The last value of a short window is an input too: its label is padding.
        if 0 < len(values) <= self.width:
            row.sample["input_ids"][len(values) - 1] = values[-1]
        return row.sample


class _Packs:
    """Packed rows of sequences that come from Python, or from several data sets."""

    def __init__(self, dataset: SequenceDataset, packs: list[Pack]) -> None:
        self.sequences = _Sequences(dataset)
        self.packs = packs

    def __len__(self) -> int:
        return len(self.packs)

    def __getitem__(self, number: int) -> Sample:
        target, segments = self.packs[number]
        row = _Row(target, self.sequences[segments[0][0]])
        ids = torch.full((target,), -1, dtype=torch.int32)
        for segment, (sequence, start, pairs) in enumerate(segments):
            ids[row.at : row.at + pairs] = segment
            row.add(self.sequences[sequence][start : start + pairs + 1], pairs)
        return {**row.sample, "segment_ids": ids, "pack_bucket": torch.tensor(target, dtype=torch.int32)}


class _Row:
    """One sample being filled; zeros to begin with."""

    def __init__(self, width: int, like: torch.Tensor) -> None:
        shape = (width, *like.shape[1:])
        self.sample = {
            "input_ids": torch.zeros(shape, dtype=torch.float32),
            "labels": torch.zeros(shape, dtype=torch.float32),
            "loss_masks": torch.zeros(width, dtype=torch.int32),
        }
        self.at = 0

    def add(self, values: torch.Tensor, places: int) -> None:
        """Inputs and their labels, one value later, in the next `places`.

        A transform may have left fewer values than were counted: the places of the others stay zero.
        """
        pairs = max(0, len(values) - 1)
        end = self.at + pairs
        self.sample["input_ids"][self.at : end] = values[:pairs]
        self.sample["labels"][self.at : end] = values[1:]
        self.sample["loss_masks"][self.at : end] = 1
        self.at += places


class _Sequences:
    """Whole sequences, those used last kept."""

    def __init__(self, dataset: SequenceDataset) -> None:
        self.dataset = dataset
        self.kept: OrderedDict[int, torch.Tensor] = OrderedDict()
        self.bytes = 0

    def __getitem__(self, number: int) -> torch.Tensor:
        found = self.kept.get(number)
        if found is not None:
            self.kept.move_to_end(number)
            return found
        made = torch.as_tensor(self.dataset[number]).to(torch.float32)
        self.kept[number] = made
        self.bytes += made.nbytes
        while self.bytes > MOST_BYTES and len(self.kept) > 1:
            self.bytes -= self.kept.popitem(last=False)[1].nbytes
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "kept": OrderedDict(), "bytes": 0}


def leaves_of(dataset: SequenceDataset) -> Iterator[SequenceDataset]:
    """The data sets that a concatenation is made of, in order."""
    if isinstance(dataset, ConcatSequenceDataset):
        for part in dataset.datasets:
            yield from leaves_of(part)
    else:
        yield dataset


def native_of(dataset: SequenceDataset) -> tuple[windrow.Dataset, Any] | None:
    """The data set and its scaler as windrow knows them; None where Python must be asked."""
    if not isinstance(dataset, StoredDataset) or not dataset.is_native or isinstance(dataset.native, Arrays):
        return None
    return dataset.native, dataset.scaler


def windows_of(length: int, width: int, stride: int) -> int:
    """Windows of a sequence of `length` values."""
    return 0 if length < 2 else 1 + max(0, (length - (width + 1)) // stride)


def packs_of(lengths: Sequence[int], width: int, buckets: Sequence[int]) -> list[Pack]:
    """The rows that sequences of these lengths fill, in order."""
    packs: list[Pack] = []
    left = 0
    for sequence, length in enumerate(lengths):
        start, pairs = 0, length - 1
        while pairs > 0:
            if left == 0:
                left = next((b for b in buckets if b >= pairs), buckets[-1] if buckets else width)
                packs.append((left, []))
            taken = min(left, pairs)
            packs[-1][1].append((sequence, start, taken))
            start, pairs, left = start + taken, pairs - taken, left - taken
    return packs
