"""How the rows of a view reach ``torch.utils.data.DataLoader``: laid together once, and handed over as one piece.

``DataLoader`` asks a view for all rows of a batch at once. They lie in one batch already, so its collate function finds
that batch again instead of stacking copies of its rows; and in a worker process that batch is one block of shared memory
from the start. A custom ``collate_fn`` sees a sequence of dicts of tensors, as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import torch
from torch.utils.data import default_collate, get_worker_info

from .shared import in_shared_memory

__all__ = ["Row", "Rows"]


class Row(dict[str, torch.Tensor]):
    """One sample: name → tensor. A class of its own, so that ``default_collate`` can be told what to do with it."""


class Rows(Sequence[Row]):
    """The samples of one batch, each a dict of tensors over the batch's memory; in a worker process, shared memory.

    Args:
        whole: the batch, name → tensor ``[B, …]``.

    Raises:
        SharedMemoryError: a worker process gets no shared memory for the batch.
    """

    def __init__(self, whole: dict[str, torch.Tensor]) -> None:
        self.whole = whole if get_worker_info() is None else in_shared_memory(whole)
        self._rows: list[Row] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.whole.values())))

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> list[Row]: ...
    def __getitem__(self, key: int | slice) -> Row | list[Row]:
        if isinstance(key, slice):
            return self._all()[key]
        # The collate function looks at the first one only.
        if self._rows is None and key == 0:
            return Row((name, tensor[0]) for name, tensor in self.whole.items())
        return self._all()[key]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    def __repr__(self) -> str:
        return f"Rows({list(self)!r})"

    def _all(self) -> list[Row]:
        if self._rows is None:
            columns = [tensor.unbind() for tensor in self.whole.values()]
            self._rows = [Row(zip(self.whole, row, strict=True)) for row in zip(*columns, strict=True)]
        return self._rows


def collate(batch: Sequence[Row], *, collate_fn_map: Any = None) -> dict[str, Any]:
    """What ``default_collate`` does with rows: the batch that they lie in; others are stacked as dicts are."""
    if not isinstance(batch, Rows):
        return {name: default_collate([row[name] for row in batch]) for name in batch[0]}
    return batch.whole


# torch's documented way of teaching its collate function a type; without it rows are stacked, which is only slower.
try:
    from torch.utils.data._utils.collate import default_collate_fn_map
except ImportError:
    pass
else:
    default_collate_fn_map[Row] = collate
