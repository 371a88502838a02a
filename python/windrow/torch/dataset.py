"""The rows of a run as an ``IterableDataset`` of `datasets`: what TRL and axolotl take, and no other data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from datasets.iterable_dataset import _BaseExamplesIterable

from windrow import Loader, ranks
from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["dataset"]

if int(datasets.__version__.partition(".")[0]) < 5:
    # Before, only what was shuffled learned of epochs.
    raise ImportError(f"datasets {datasets.__version__}")


def dataset(view: Any, options: Mapping[str, Any], start: Mapping[str, Any]) -> datasets.IterableDataset:
    """The rows of a view from a state on; ``options`` are those of a ``Stream``."""
    rows = Rows(view, options, start)
    return datasets.IterableDataset(rows, info=datasets.DatasetInfo(features=rows.features))


class Rows(_BaseExamplesIterable):  # type: ignore[misc]
    """What `datasets` asks for rows. It holds no loader, so that a worker process gets it as a pickle."""

    features: Any = None
    is_typed = True
    num_shards = 1
    sleep_on_threads_shutdown = False

    def __init__(self, view: Any, options: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        super().__init__()
        self._view, self._start = view, dict(start)
        self._options = {**options, "framework": "numpy", "rank": 0, "world_size": 1}
        self._epochs = 1 if self._options.pop("whole", False) else self._options.pop("epochs", None)
        # Epochs after that of the start, as set_epoch() said.
        self._epoch = 0
        (first,) = self._items(next(self._loader(num_threads=0)))
        self.features = features(first)

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        state = (self._state_dict or {}).get("run") or self._begin()
        last = None if self._epochs is None else self._start["epoch"] + self._epoch + int(self._epochs)
        loader = self._loader(epochs=last)
        loader.load_state_dict(state)
        state = dict(loader.state_dict())
        for number, batch in enumerate(loader.stream()):
            (row,) = self._items(batch)
            if number == 0:
                check_trl(row)
            if self._state_dict is not None:
                self._state_dict["run"] = {**state, "epoch": loader.epoch, "samples": loader.samples}
            yield number, row

    def _begin(self) -> dict[str, Any]:
        if self._epoch == 0:
            return self._start
        return {**self._start, "epoch": self._start["epoch"] + self._epoch, "samples": 0}

    def _loader(self, **more: Any) -> Loader:
        return Loader(self._view, 1, **{**self._options, **more})

    def _items(self, batch: Any) -> Iterator[dict[str, Any]]:
        if isinstance(batch, list):
            yield from batch
            return
        row = {name: values[0] for name, values in batch.items()}
        if row.keys() >= {"input_ids", "cu_seqlens"}:
            row["seq_lengths"] = lengths(row["cu_seqlens"], len(row["input_ids"]))
        yield row

    def _init_state_dict(self) -> dict[str, Any]:
        self._state_dict: dict[str, Any] | None = {"run": None, "type": type(self).__name__}
        return self._state_dict

    def shift_rngs(self, value: int) -> Rows:
        """Those of a later epoch: `datasets` counts them here."""
        later = copy(self)
        later._epoch += value
        return later

    def shuffle_data_sources(self, generator: np.random.Generator) -> Rows:
        """As they are: the run has an order of its own in each epoch."""
        return self

    def reshard_data_sources(self) -> Rows:
        """As they are: one shard."""
        return self

    def shard_data_sources(self, num_shards: int, index: int, contiguous: bool = True) -> Rows:
        """The only shard."""
        if index > 0:
            raise failure(
                ConfigError,
                f"shard {index} of {num_shards}: the rows of a Stream are one shard",
                hint="datasets.distributed.split_dataset_by_node(dataset, rank, world_size) shares its rows out",
            )
        return self


def features(row: Mapping[str, Any]) -> datasets.Features:
    """The types of a row."""
    table = pa.table({name: pa.array([nested(value)]) for name, value in row.items()})
    return datasets.Features.from_arrow_schema(table.schema)


def nested(value: Any) -> Any:
    """Arrow makes lists of arrays of one dimension only."""
    return [nested(part) for part in value] if isinstance(value, np.ndarray) and value.ndim > 1 else value


def lengths(ends: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    """Of each document of a row, and of the padding behind them."""
    found = np.diff(ends)
    found, padding = found[found > 0], length - ends[-1]
    return np.append(found, padding) if padding else found


# Modules whose objects say what becomes of a row.
_READERS = {"datasets.iterable_dataset", "torch.utils.data._utils.fetch"}


def check_trl(row: Mapping[str, Any]) -> None:
    """Refuses what TRL does with packed rows in silence."""
    is_packed = "segment_ids" in row or "position_ids" in row
    for reader in ranks.callers(_READERS):
        function = getattr(reader, "function", None)
        if is_packed and _is_trls(function) and "pack" in function.__name__:
            raise failure(
                ConfigError,
                "packing=True packs rows again that are packed already: the documents in them would see each other",
                hint="SFTConfig(packing=False, padding_free=True, max_length=None); or a view of single documents, as records(length)",
            )
        collate = getattr(reader, "collate_fn", None)
        collate = getattr(collate, "data_collator", collate)
        if _is_trls(type(collate)):
            _check_collator(row, is_packed, getattr(collate, "padding_free", True))


def _check_collator(row: Mapping[str, Any], is_packed: bool, is_padding_free: bool) -> None:
    if is_packed and not (is_padding_free and "seq_lengths" in row):
        raise failure(
            ConfigError,
            "TRL drops position_ids: the documents of a row would see each other",
            hint="SFTConfig(padding_free=True, packing=False, max_length=None), of a view with cu_seqlens among its fields",
        )
    tokens, labels = (np.asarray(row.get(name, [])) for name in ("input_ids", "labels"))
    if tokens.shape == labels.shape and ((labels != tokens) & (labels >= 0)).any():
        raise failure(
            ConfigError,
            "the labels are not the inputs: TRL's models shift labels themselves, and would learn the token after the next",
            hint='cut the view with labels="same"',
        )


def _is_trls(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] == "trl"
