"""A view as an ``IterableDataset`` with a state: for hosts that want a data set of torch's and build the loader themselves."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from windrow import Loader, Mix, View
from windrow.errors import ConfigError
from windrow.failure import describe, failure

from .ahead import Ahead, check, n_processes, reads

__all__ = ["Stream"]


class Stream(IterableDataset[Any]):
    """The samples of a view in a loader's order, one by one; with ``batch_size`` its batches, for ``DataLoader(stream, batch_size=None)``.

    ``for sample in stream`` gives what is left of the current epoch, the next ``for`` the next epoch. ``state_dict()`` says where it
    is, to the sample. It reads ahead in threads of its own: give it ``num_threads=``, and ``DataLoader`` no workers.

    Args:
        view: a ``View`` or ``Mix``.
        batch_size: rows of a batch; without it, and without ``global_batch_size``, samples come one by one.
        options: those of ``windrow.Loader``. Where the host shares samples out among ranks, as Accelerate and transformers' Trainer do
            with what they prepare, say ``rank=0, world_size=1``; elsewhere, as under Lightning, each rank finds its part itself.

    Raises:
        ConfigError: as ``windrow.Loader``; in a ``for``: in a worker process of ``DataLoader``; under Accelerate with several processes
            where no rank was given; in several processes with ``use_stateful_dataloader=True``.

    >>> import windrow as wr, numpy as np, tempfile, pathlib, torch
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(1000, dtype=np.uint16).tofile(path)
    >>> stream = wr.torch.Stream(wr.open(path, dtype="uint16").pack(8), seed=1)
    >>> batch = next(iter(torch.utils.data.DataLoader(stream, batch_size=4)))
    >>> len(stream), tuple(batch["labels"].shape), stream.state_dict()["samples"]
    (124, (4, 8), 4)
    """

    def __init__(self, view: View | Mix, batch_size: int | None = None, **options: Any) -> None:
        sizes = (batch_size, options.get("global_batch_size"), options.get("max_tokens"))
        self.is_batched = any(size is not None for size in sizes)
        rows = batch_size if self.is_batched else 1
        self.loader = Loader(view, rows, **{"framework": "torch", **options})
        self._made_from: tuple[Any, ...] = (view, batch_size, options)
        self._is_ranked = any(options.get(name) is not None for name in ("rank", "world_size", "group"))
        self._is_collated = False
        self._count = _Count()
        self._ahead: Ahead | None = None

    @classmethod
    def of(cls, loader: Loader, is_collated: bool) -> Stream:
        """The samples of a loader one by one; both are at the same place."""
        stream = cls.__new__(cls)
        stream.is_batched, stream.loader = False, loader
        stream._is_ranked, stream._is_collated, stream._count, stream._ahead = True, is_collated, _Count(), None
        return stream

    def __iter__(self) -> Iterator[Any]:
        if get_worker_info() is not None:
            raise failure(
                ConfigError,
                "a Stream in a worker process of DataLoader: each worker would read all samples",
                hint="DataLoader(stream, num_workers=0); Stream(view, num_threads=…) reads ahead in threads",
            )
        if not self._is_ranked and n_processes() > 1:
            raise failure(
                ConfigError,
                "a Stream under Accelerate, with several processes, does not know who shares the samples out",
                hint="Stream(view, rank=0, world_size=1) where its DataLoader is prepared, as Trainer does; else give this process's rank",
            )
        if self._is_collated:
            raise failure(
                ConfigError,
                "the samples of a loader with collate= or map=: they are batches already",
                hint="windrow.torch.Stream(view), and collate_fn= of its DataLoader; with map= its batches, Stream(view, batch_size=…, map=…)",
            )
        return _For(self)

    def _rest(self) -> Iterator[Any]:
        self._return_unread()
        host = reads(self)
        if hasattr(host, "iteration"):
            yield from self._read_ahead(Ahead(host))
            return
        if hasattr(host, "skip_batches"):
            self._warn_of_trainer()
        for batch in self.loader:
            yield from self._items(batch)

    def _read_ahead(self, ahead: Ahead) -> Iterator[Any]:
        batches = iter(self.loader)
        self._ahead = ahead
        while True:
            ahead.reading(self.loader)
            try:
                batch = next(batches)
            except StopIteration:
                ahead.ended()
                return
            yield from self._items(batch)

    def _items(self, batch: Any) -> Iterator[Any]:
        if self.is_batched:
            yield batch
        elif isinstance(batch, list):
            # Records of a view of rows.
            yield from batch
        else:
            for row in range(len(next(iter(batch.values())))):
                yield {name: field[row] for name, field in batch.items()}

    def _return_unread(self) -> None:
        # What a host read before a ``break``, and did not give, comes first in its next ``for``.
        ahead, self._ahead = self._ahead, None
        if ahead is not None and not ahead.is_given():
            self.loader.load_state_dict(ahead.before)

    def _warn_of_trainer(self) -> None:
        if "transformers.trainer" in sys.modules and self.loader.epoch == 0 and self.loader.samples == 0:
            warnings.warn(
                describe(
                    "batches of a Loader are skipped in the order of epoch 0: Trainer does not tell it the epoch in which it resumes",
                    path=None,
                    record=None,
                    byte=None,
                    hint="give Trainer a windrow.torch.Stream; or call loader.set_epoch(…) in a callback's on_epoch_begin",
                ),
                stacklevel=2,
            )

    def __len__(self) -> int:
        """Samples of an epoch, or batches, that this rank gets."""
        rows = 1 if self.is_batched else self.loader.batch_size
        if rows is None:
            raise TypeError("the samples of a loader with max_tokens are not counted; len(loader) counts its batches")
        return len(self.loader) * rows

    def set_epoch(self, epoch: int) -> None:
        """Goes to the first sample of an epoch; the epoch that it is in keeps its place.

        A host that counts from 0 again after a state was loaded, as Accelerate does, continues from the state's epoch.
        """
        # Each process is told the epoch, also those that read nothing.
        check(reads(self), self.is_batched)
        self._return_unread()
        self.loader.set_epoch(self._count.epoch(epoch))

    def state_dict(self) -> dict[str, Any]:
        """Where it is, as ``windrow.Loader.state_dict``; the state fits a loader of the same view and seed too.

        A batch that Accelerate has read ahead, and not given yet, does not count.
        """
        if self._ahead is not None and not self._ahead.is_given():
            return dict(self._ahead.before)
        return dict(self.loader.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where another stream or loader of the same view and seed was."""
        self._ahead = None
        self.loader.load_state_dict(state)
        self._count.loaded(self.loader.epoch)

    def as_dataset(self) -> Any:
        """The run from here on as an ``IterableDataset`` of `datasets`, for trainers that take nothing else, as TRL's and axolotl's.

        Rows are dicts of NumPy arrays, or the records of a view of rows, in the loader's order, epoch after epoch; with ``epochs=1``
        a ``for`` ends after one, as validation wants. ``column_names`` and ``features`` are those of the first row. Rows with
        ``cu_seqlens`` have ``seq_lengths`` too, the length of each document and of the padding, which TRL reads with ``padding_free``.

        It holds all rows, and whoever trains shares them out among ranks: the trainer, or ``split_dataset_by_node``. A ``for``
        begins where the stream is, after ``set_epoch(n)`` at the first row of the n-th epoch from there, and after ``load_state_dict`` where the
        state was, without reading what is before it. It is one shard: of several workers of a ``DataLoader`` one reads.

        Raises:
            ConfigError: `datasets` of version 5 or later is not installed; a stream of batches, or of a rank among several. In a ``for``:
                TRL would lose the documents of packed rows, or shift their labels twice.
            MismatchError: in a ``for``: a state of another plan was loaded.

        >>> import windrow as wr, numpy as np, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> stream = wr.torch.Stream(wr.open(path, dtype="uint16").pack(8, labels="same"), seed=1)
        >>> rows = stream.as_dataset()
        >>> rows.column_names, next(iter(rows))["input_ids"].shape
        (['input_ids', 'labels'], (8,))
        """
        made = getattr(self, "_made_from", None)
        if made is None or self.is_batched:
            raise failure(
                ConfigError,
                "a data set of `datasets` holds rows one by one, this is a stream of batches or of a loader",
                hint="windrow.torch.Stream(view, seed=…).as_dataset(), and the batch size to the trainer",
            )
        view, _, options = made
        if options.get("group") is not None or (options.get("world_size") or 1) > 1:
            raise failure(
                ConfigError,
                "a data set of `datasets` holds all rows, this is the stream of one rank: they would be shared out twice",
                hint="leave rank=, world_size= and group= out: the trainer shares rows out, or datasets.distributed.split_dataset_by_node()",
            )
        try:
            from .dataset import dataset
        except ImportError as error:
            raise failure(ConfigError, f"as_dataset() needs the package datasets ({error})", hint='pip install "datasets>=5"') from error
        return dataset(view, options, self.state_dict())

    def __reduce__(self) -> tuple[Callable[..., Stream], tuple[Any, ...]]:
        return _again, (*self._made_from, self.state_dict())


def _again(view: Any, batch_size: int | None, options: dict[str, Any], state: dict[str, Any]) -> Stream:
    stream = Stream(view, batch_size, **options)
    stream.load_state_dict(state)
    return stream


class _For(Iterator[Any]):
    """One ``for`` over a stream, begun when the first item is asked for: a state may be loaded between.

    It has a state of its own, of all that was read, for torchdata, whose loader asks when it has read only what it gives.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream, self._items = stream, stream._rest()

    def __next__(self) -> Any:
        return next(self._items)

    def state_dict(self) -> dict[str, Any]:
        self._look()
        return dict(self._stream.loader.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._stream.load_state_dict(state)

    def _look(self) -> None:
        if self._stream._ahead is not None:
            self._stream._ahead.is_given()

    # After a ``break``, the host still knows whether it gave the last batch.
    __del__ = _look


class _Count:
    """Epochs as a host counts them, told by its ``set_epoch``."""

    def __init__(self) -> None:
        self._said: int | None = None
        self._loaded: int | None = None
        self._offset = 0

    def loaded(self, epoch: int) -> None:
        """A state of this epoch was loaded."""
        self._loaded = epoch

    def epoch(self, said: int) -> int:
        """The epoch that the host means."""
        if self._loaded is not None:
            if self._said is not None and said > self._said:
                # Its count went on from what it was when the state came.
                self._offset = self._loaded - self._said
            else:
                # A count below the state's epoch started over.
                self._offset = max(0, self._loaded - said)
            self._loaded = None
        self._said = said
        return said + self._offset
