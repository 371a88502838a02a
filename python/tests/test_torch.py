"""Batches as torch tensors: the same memory, every dtype, and the quick way into DataLoader."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr


def test_tensors_lie_in_the_batchs_memory(view: wr.View) -> None:
    given: list[dict[str, Any]] = []
    loader = wr.Loader(view, 8, shuffle=False, framework="torch", collate=lambda batch: given.append(batch) or batch)
    batch = next(loader)
    assert set(batch) == {"input_ids", "labels"}
    for tensor in batch.values():
        assert (tensor.shape, tensor.dtype) == ((8, 16), torch.int64)
        assert tensor.is_contiguous()
        assert tensor.data_ptr() % 64 == 0
        assert tensor.data_ptr() == tensor.numpy().ctypes.data
    assert batch is given[0]
    batch["labels"][0, 0] = 5
    assert batch["labels"].numpy()[0, 0] == 5


def test_torch_gets_what_numpy_gets(view: wr.View) -> None:
    pairs = zip(wr.Loader(view, 8, seed=1), wr.Loader(view, 8, seed=1, framework="torch"), strict=False)
    for a, b in islice(pairs, 20):
        assert all(np.array_equal(a[name], b[name].numpy()) for name in a)


def test_a_kept_tensor_keeps_its_values(view: wr.View) -> None:
    loader = wr.Loader(view, 8, shuffle=False, framework="torch")
    kept = [next(loader)["input_ids"] for _ in range(50)]
    assert [int(tensor[0, 0]) for tensor in kept] == [16 * 8 * k for k in range(50)]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint16", "float16", "float32", "float64", "bfloat16", torch.bfloat16])
def test_every_dtype(dataset: wr.Dataset, dtype: Any) -> None:
    view = wr.open(dataset.path, format="tokens", dtype="uint8").pack(4) if dtype == "uint8" else dataset.pack(4)
    batch = next(wr.Loader(view, 3, shuffle=False, framework="torch", dtype=dtype))
    name = str(dtype).removeprefix("torch.")
    assert batch["labels"].dtype == getattr(torch, name)
    if name != "uint8":
        assert batch["labels"][:, 0].tolist() == [1, 5, 9]


def test_data_loader_gets_tensors_where_torch_is_imported(view: wr.View) -> None:
    rows = view.__getitems__([3, 0])
    assert all(type(tensor) is torch.Tensor for row in rows for tensor in row.values())
    assert rows[0]["input_ids"].tolist() == list(range(48, 64))
    batches = list(torch.utils.data.DataLoader(view, batch_size=32))
    assert torch.equal(torch.cat([b["labels"] for b in batches])[:, 0], torch.arange(len(view)) * 16 + 1)


def test_data_loader_shuffles_a_view(view: wr.View) -> None:
    batches = torch.utils.data.DataLoader(view, batch_size=32, shuffle=True)
    starts = torch.cat([b["input_ids"][:, 0] for b in batches]) // 16
    assert sorted(starts.tolist()) == list(range(len(view)))


def test_lengths_come_as_numbers_per_row(dataset: wr.Dataset) -> None:
    view = dataset.crop(8, mode="start")
    batch = next(iter(torch.utils.data.DataLoader(view, batch_size=1)))
    assert batch["lengths"].tolist() == [8]


def test_rows_are_a_sequence_of_dicts(view: wr.View) -> None:
    rows = view.__getitems__([3, 0, 5])
    assert len(rows) == 3
    assert [int(row["input_ids"][0]) for row in rows] == [48, 0, 80]
    assert int(rows[-1]["labels"][0]) == 81
    assert [int(row["input_ids"][0]) for row in rows[1:]] == [0, 80]
    assert all(isinstance(row, dict) and list(row) == ["input_ids", "labels"] for row in rows)
    with pytest.raises(IndexError):
        rows[3]
    assert len(view.__getitems__([])) == 0


def test_default_collate_finds_the_batch_again(view: wr.View) -> None:
    rows = view.__getitems__([3, 0])
    batch = torch.utils.data.default_collate(rows)
    assert batch["input_ids"].data_ptr() == rows[0]["input_ids"].data_ptr()
    assert batch["input_ids"][:, 0].tolist() == [48, 0]
    # Rows of several batches are stacked, as dicts are.
    stacked = torch.utils.data.default_collate([rows[1], view.__getitems__([7])[0]])
    assert stacked["labels"][:, 0].tolist() == [1, 113]


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_a_worker_sends_a_batch_as_one_block(view: wr.View, start_method: str) -> None:
    loader = torch.utils.data.DataLoader(
        view, batch_size=32, num_workers=2, multiprocessing_context=start_method, timeout=120
    )
    batches = list(loader)
    assert all(type(batch) is dict and list(batch) == ["input_ids", "labels"] for batch in batches)
    for batch in batches:
        inputs, labels = batch["input_ids"], batch["labels"]
        assert inputs.untyped_storage().data_ptr() == labels.untyped_storage().data_ptr()
        assert inputs.is_contiguous()
        assert inputs.dtype == torch.int64
        assert torch.equal(inputs[:, 1:], labels[:, :-1])
        inputs[0, 0] = -1
        assert int(labels[0, 0]) != -1
    assert torch.equal(torch.cat([b["labels"] for b in batches])[:, 0], torch.arange(len(view)) * 16 + 1)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_custom_collate_function_sees_every_row(view: wr.View, workers: int) -> None:
    def firsts(rows: Any) -> list[int]:
        return [int(row["input_ids"][0]) // 16 for row in rows]

    subset = torch.utils.data.Subset(view, range(0, len(view), 2))
    loader = torch.utils.data.DataLoader(subset, batch_size=5, num_workers=workers, collate_fn=firsts, timeout=120 * (workers > 0))
    assert [n for batch in loader for n in batch] == list(range(0, len(view), 2))


def relabeled(rows: Any) -> Any:
    for number, row in enumerate(rows):
        row["labels"] = torch.where(row["labels"] % 2 == 0, row["labels"], -100)
        row["weight"] = number / 2
    return rows


def unlabeled(rows: Any) -> Any:
    for row in rows:
        del row["labels"]
    return rows


def first_relabeled(rows: Any) -> Any:
    rows[0]["labels"] = -rows[0]["labels"]
    return rows


def last_relabeled(rows: Any) -> Any:
    rows[-1]["labels"] = -rows[-1]["labels"]
    return rows


def reshaped(rows: Any) -> Any:
    for row in rows:
        row["input_ids"].unsqueeze_(0)
    return rows


def masked_in_place(rows: Any) -> Any:
    for row in rows:
        row["labels"][0] = -100
    return rows


CHANGES = [relabeled, unlabeled, first_relabeled, last_relabeled, reshaped, masked_in_place]


class Changed(torch.utils.data.Dataset[Any]):
    """A data set that changes the rows of a view."""

    def __init__(self, view: wr.View, change: Any) -> None:
        self.view, self.change = view, change

    def __len__(self) -> int:
        return len(self.view)

    def __getitems__(self, indices: list[int]) -> Any:
        return self.change(self.view.__getitems__(indices))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_assigned_to_rows_is_in_the_batch_as_with_dicts(view: wr.View, change: Any, workers: int) -> None:
    def changing(rows: Any) -> Any:
        return torch.utils.data.default_collate(change(rows))

    options = {"batch_size": 500, "num_workers": workers, "timeout": 120 * (workers > 0)}
    for at, (found, wrapped) in enumerate(
        zip(
            torch.utils.data.DataLoader(view, collate_fn=changing, **options),
            torch.utils.data.DataLoader(Changed(view, change), **options),
            strict=True,
        )
    ):
        some = range(len(view))[at * 500 : (at + 1) * 500]
        dicts = [{name: torch.from_numpy(values) for name, values in view[i].items()} for i in some]
        expected = torch.utils.data.default_collate(change(dicts))
        for batch in (found, wrapped):
            assert list(batch) == list(expected)
            assert all(torch.equal(batch[name], expected[name]) for name in expected)


def test_rows_that_were_only_read_are_not_stacked(view: wr.View) -> None:
    rows = view.__getitems__([3, 0, 5])
    assert [row["labels"].sum() for row in rows]
    assert torch.utils.data.default_collate(rows) is rows.whole


def test_rows_are_stacked_by_a_function_that_torch_was_given(view: wr.View) -> None:
    from torch.utils.data._utils.collate import collate, default_collate_fn_map

    def last_first(tensors: Any, *, collate_fn_map: Any = None) -> Any:
        return torch.stack(tensors).flip(0)

    rows = view.__getitems__([3, 0])
    batch = collate(rows, collate_fn_map={**default_collate_fn_map, torch.Tensor: last_first})
    assert batch["input_ids"][:, 0].tolist() == [0, 48]
