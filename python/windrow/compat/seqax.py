"""Shuffled batches of flat-tokens, any step at once: seqax's loader, batch for batch.

The order is the original's. Blocks of consecutive rows are dealt to streams by one permutation, and the rows of a
shuffle buffer are mixed by another; both come from numpy's Philox generator, so a step needs no state but its number.
`windrow.open(path, split=…).pack(length, shifted=True)` is the native view, with inputs and segment ids beside the
targets, and a loader that shuffles all rows among each other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import windrow
from windrow._native import _swapped

from .ahead import Ahead
from ..failure import failure

__all__ = ["FlatTokensParams", "ShufflingLoader", "TokenBatch", "TokenBatchParams"]

SPLITS = ("train", "validation")


@dataclass(frozen=True)
class FlatTokensParams:
    """Where the data lies and in which order it comes.

    `filespec`: the zarr folder that holds the splits. `streams`: parts that are read side by side; the batch must be a
    multiple of it. `read_blocks_per_shuffle_buffer` blocks of `sequences_per_read_block` rows are mixed at a time.
    `sequence_packing`: rows are cut from the joined tokens; else a row is a sequence, padded.
    """

    filespec: str | os.PathLike[str]
    streams: int
    read_blocks_per_shuffle_buffer: int
    sequences_per_read_block: int
    seed: int
    sequence_packing: bool


@dataclass(frozen=True)
class TokenBatchParams:
    """Tokens in a row, and rows in a batch."""

    len: int
    batch: int


@dataclass(frozen=True)
class TokenBatch:
    """`targets` uint32, `is_seq_start` bool and `loss_mask` bool, each `[rows, len]`.

    `loss_mask` is False where a row of an unpacked batch is padded; there the target is 0 and `is_seq_start` True.
    """

    targets: Any
    is_seq_start: Any
    loss_mask: Any


class ShufflingLoader:
    """The batches of one split, by step.

    `overlong` says what an unpacked sequence longer than a row becomes: its first tokens (`"cut"`), an error (`"error"`),
    or a row for each part (`"split"`; needs one look at all lengths). `fill_missing` reads zeros where a chunk is missing,
    which is an error else; an unpacked sequence that begins in one stays an error, because its mark is gone.

    Attributes: `max_token_id`, `step_count`, `seq_count` (rows there are), `read_block_count`, `minipoch_count`,
    `read_block_ordering` (the blocks' numbers in the order in which they are dealt to the streams).

    Raises `windrow.ConfigError` for parameters that do not fit each other or the data, what `windrow.open` raises.

    >>> import tempfile, windrow
    >>> folder = tempfile.mkdtemp() + "/corpus.zarr"
    >>> _ = windrow.write(folder + "/train", [[1, 2], [3, 4, 5], [6, 7, 8]], to="flat-tokens")
    >>> params = FlatTokensParams(folder, 1, 1, 1, seed=0, sequence_packing=True)
    >>> batch = ShufflingLoader("train", params, TokenBatchParams(len=8, batch=1)).load(0)
    >>> batch.targets.tolist(), batch.is_seq_start.astype(int).tolist()
    ([[1, 2, 3, 4, 5, 6, 7, 8]], [[1, 0, 1, 0, 0, 1, 0, 0]])
    """

    def __init__(
        self,
        split: str,
        params: FlatTokensParams,
        token_batch_params: TokenBatchParams,
        *,
        overlong: Literal["cut", "error", "split"] = "cut",
        fill_missing: bool = False,
    ) -> None:
        if split not in SPLITS:
            raise failure(windrow.ConfigError, f"split is {split!r}, expected 'train' or 'validation'")
        if overlong not in ("cut", "error", "split"):
            raise failure(windrow.ConfigError, f"overlong is {overlong!r}, expected 'cut', 'error' or 'split'")
        self.params, self.token_batch_params = params, token_batch_params
        length, batch = token_batch_params.len, token_batch_params.batch
        counts = {
            "len": length,
            "batch": batch,
            "streams": params.streams,
            "read_blocks_per_shuffle_buffer": params.read_blocks_per_shuffle_buffer,
            "sequences_per_read_block": params.sequences_per_read_block,
        }
        for name, count in counts.items():
            if count < 1:
                raise failure(windrow.ConfigError, f"{name} is {count}, expected at least 1")
        if batch % params.streams:
            raise failure(windrow.ConfigError, f"a batch of {batch} rows is no multiple of {params.streams} streams")
        self._data = windrow.open(
            params.filespec,
            format="flat-tokens",
            split=split,
            fill_missing=fill_missing,
            # The rows of a shuffle buffer come in random order: what they are made of is decoded once.
            memory_limit=(256 << 20) + 4 * params.streams * self._rows_per_buffer * length,
        )
        self.max_token_id: int = self._data.info()["vocab_size"] - 1
        self._rows: _Packed | _Unpacked = (
            _Packed(self._data, length) if params.sequence_packing else _Unpacked(self._data, length, overlong)
        )
        self.seq_count = len(self._rows)
        self.read_block_count = (
            self.seq_count // params.sequences_per_read_block // params.streams * params.streams
        )
        if self.read_block_count == 0:
            raise failure(
                windrow.ConfigError,
                f"{self.seq_count} rows give none of {params.streams} streams a block of "
                f"{params.sequences_per_read_block}",
                path=self._data.path,
                hint="choose fewer streams, or fewer sequences_per_read_block",
            )
        self.step_count = self.read_block_count * params.sequences_per_read_block // batch
        self.minipoch_count = -(-self.read_block_count // (params.streams * params.read_blocks_per_shuffle_buffer))
        self._order = _order(params.seed, self.read_block_count)
        self._buffers: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
        self._ahead: Ahead[TokenBatch] = Ahead(self.step_count)

    @property
    def read_block_ordering(self) -> list[int]:
        """The number of each block, in the order in which blocks are dealt to the streams."""
        ordering: list[int] = self._order.tolist()
        return ordering

    def load(self, step: int, rows: slice = slice(None)) -> TokenBatch:
        """The batch of a step, or those of its rows that a host needs; no others are read.

        Once steps come one after the other, the next few are assembled by two threads meanwhile.

        Raises `windrow.OutOfRangeError` from `step_count` on, and before 0.
        """
        if not 0 <= step < self.step_count:
            raise failure(windrow.OutOfRangeError, f"step {step}, expected 0 to {self.step_count - 1}")
        places = range(self.token_batch_params.batch)[rows]
        return self._ahead.get(step, places, lambda step: self._rows.batch(self._sequences(step, np.asarray(places))))

    def _sequences(self, step: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Which of the data's rows are in these rows of a batch."""
        rows_per_stream = self.token_batch_params.batch // self.params.streams
        stream, place = np.divmod(rows, rows_per_stream)
        minipoch, index = np.divmod(step * rows_per_stream + place, self._rows_per_buffer)
        if len(rows) and (stream == stream[0]).all() and (minipoch == minipoch[0]).all():
            sequences: npt.NDArray[np.int64] = self._buffer(int(stream[0]), int(minipoch[0]))[index]
            return sequences
        sequences = np.empty(len(rows), np.int64)
        for one in set(zip(stream.tolist(), minipoch.tolist())):
            here = (stream == one[0]) & (minipoch == one[1])
            sequences[here] = self._buffer(*one)[index[here]]
        return sequences

    @property
    def _rows_per_buffer(self) -> int:
        return self.params.read_blocks_per_shuffle_buffer * self.params.sequences_per_read_block

    def _buffer(self, stream: int, minipoch: int) -> npt.NDArray[np.int64]:
        found = self._buffers.get((stream, minipoch))
        if found is None:
            found = self._buffers[stream, minipoch] = self._mixed(stream, minipoch)
            # Two a stream: a batch may end one and begin the next. Threads may find one gone that was there.
            for old in list(self._buffers)[: -2 * self.params.streams]:
                self._buffers.pop(old, None)
        return found

    def _mixed(self, stream: int, minipoch: int) -> npt.NDArray[np.int64]:
        """The rows of a shuffle buffer, in the order in which they leave it."""
        params = self.params
        first = minipoch * params.read_blocks_per_shuffle_buffer
        blocks = min(params.read_blocks_per_shuffle_buffer, self.read_block_count // params.streams - first)
        seed = params.seed + 1 + minipoch * params.streams + stream
        mixed = _order(seed, blocks * params.sequences_per_read_block)
        block, offset = np.divmod(mixed, params.sequences_per_read_block)
        blocks_of_rows: npt.NDArray[np.int64] = self._order[(first + block) * params.streams + stream]
        return blocks_of_rows * params.sequences_per_read_block + offset


def permutation(seed: int, n: int) -> list[int]:
    """The numbers 0 to n - 1 in the order that a seed gives: swapped from the end by numpy's Philox.

    >>> permutation(0, 10)
    [0, 4, 6, 5, 2, 1, 9, 3, 7, 8]
    """
    order: list[int] = _order(seed, n).tolist()
    return order


def _order(seed: int, n: int) -> npt.NDArray[np.int64]:
    # The first number drawn is for the first place: places are swapped from the last one down.
    return _swapped(np.asarray(np.random.Philox(seed).random_raw(n), np.uint64))


class _Packed:
    """Rows cut from the joined tokens."""

    def __init__(self, data: windrow.Dataset, length: int) -> None:
        self._view = data.pack(length, shifted=True, fields=["targets", "is_seq_start"], dtype="uint32")
        self._length = length

    def __len__(self) -> int:
        return len(self._view)

    def batch(self, numbers: npt.NDArray[np.int64]) -> TokenBatch:
        fields = self._view.batch(numbers)
        targets, starts = fields["targets"], fields["is_seq_start"]
        return TokenBatch(targets, starts, np.ones(targets.shape, np.bool_))


class _Unpacked:
    """A row per sequence, or per part of one."""

    def __init__(self, data: windrow.Dataset, length: int, overlong: str) -> None:
        self._data, self._length, self._overlong = data, length, overlong
        self._ends: npt.NDArray[np.int64] | None = None
        if overlong == "split":
            lengths = np.fromiter((data.length(i) for i in range(len(data))), np.int64, len(data))
            self._ends = np.cumsum(np.maximum(1, -(-lengths // length)))

    def __len__(self) -> int:
        if self._ends is None:
            return len(self._data)
        return int(self._ends[-1]) if len(self._ends) else 0

    def batch(self, numbers: npt.NDArray[np.int64]) -> TokenBatch:
        targets = np.zeros((len(numbers), self._length), np.uint32)
        # A padded place is stored as 1: the id 0, and the start of a sequence.
        starts, mask = np.ones(targets.shape, np.bool_), np.zeros(targets.shape, np.bool_)
        for row, number in enumerate(numbers.tolist()):
            ids, is_first = self._row(number)
            targets[row, : len(ids)], mask[row, : len(ids)] = ids, True
            starts[row, int(is_first) : len(ids)] = False
        return TokenBatch(targets, starts, mask)

    def _row(self, number: int) -> tuple[npt.NDArray[np.uint32], bool]:
        if self._ends is None:
            sequence, part = number, 0
        else:
            sequence = int(np.searchsorted(self._ends, number, side="right"))
            part = number - (int(self._ends[sequence - 1]) if sequence else 0)
        ids = self._data[sequence]
        if self._overlong == "error" and len(ids) > self._length:
            raise failure(
                windrow.ConfigError,
                f"a sequence of {len(ids)} tokens in rows of {self._length}",
                path=self._data.path,
                record=sequence,
                hint="choose a larger len, or overlong='cut' or 'split'",
            )
        return ids[part * self._length : (part + 1) * self._length], part == 0
