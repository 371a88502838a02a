"""How the rows of a view reach ``torch.utils.data.DataLoader``: assembled once, and handed over as one piece.

``DataLoader`` asks a view for all rows of a batch at once. They lie in one batch already, so its collate function finds
that batch again instead of stacking copies of its rows; and in a worker process that batch is one block of shared memory
from the start. A custom ``collate_fn`` sees a sequence of dicts of tensors, as ever, and what it assigns to them is stacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import torch
from torch.utils.data import get_worker_info

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
        # Those that were handed out: none, the first one, or all.
        self._rows: list[Row] = []

    def __len__(self) -> int:
        return len(next(iter(self.whole.values())))

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> list[Row]: ...
    def __getitem__(self, key: int | slice) -> Row | list[Row]:
        if isinstance(key, slice):
            return self._all()[key]
        if key != 0:
            return self._all()[key]
        # torch's collate function looks at this one only.
        if not self._rows:
            self._rows = [Row((name, tensor[0]) for name, tensor in self.whole.items())]
        return self._rows[0]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    def __repr__(self) -> str:
        return f"Rows({list(self)!r})"

    def _is_unchanged(self) -> bool:
        """Whether the rows that were handed out still have the batch's names and tensors. Values may have changed in place."""
        rows = self._rows
        return all(row.keys() == self.whole.keys() for row in rows) and all(
            _is_same(row[name], tensor)
            for name, column in self.whole.items()
            for row, tensor in zip(rows, column[: len(rows)].unbind(), strict=True)
        )

    def _all(self) -> list[Row]:
        if len(self._rows) < len(self):
            columns = [tensor.unbind() for tensor in self.whole.values()]
            rows = [Row(zip(self.whole, row, strict=True)) for row in zip(*columns, strict=True)]
            rows[: len(self._rows)] = self._rows
            self._rows = rows
        return self._rows


def _is_same(value: Any, tensor: torch.Tensor) -> bool:
    # More than `is` would say: a tensor can change its shape, or its memory, in place.
    return type(value) is torch.Tensor and value.is_set_to(tensor)


def collate(batch: Sequence[Row], *, collate_fn_map: dict[Any, Any]) -> Any:
    """What ``default_collate`` does with rows: the batch that they lie in; others, and changed ones, are stacked as dicts are."""
    if isinstance(batch, Rows) and collate_fn_map.get(torch.Tensor) is collate_tensor_fn and batch._is_unchanged():
        return batch.whole
    return collate_as_torch([dict(row) for row in batch], collate_fn_map=collate_fn_map)


# torch's documented way of teaching its collate function a type; without it rows are stacked, which is only slower.
try:
    from torch.utils.data._utils.collate import collate as collate_as_torch
    from torch.utils.data._utils.collate import collate_tensor_fn, default_collate_fn_map
except ImportError:
    pass
else:
    default_collate_fn_map[Row] = collate
