"""`Loader(names=, dtypes=)`: the same batches under other names and of other dtypes, and fields that are made of others."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import windrow as wr

MEGATRON = {
    "input_ids": "tokens", "labels": "labels", "loss_masks": "loss_mask", "segment_ids": None, "cu_seqlens": None, "max_seqlen": None,
}  # fmt: skip
OF_MEGATRON = {"loss_masks": "float32", "position_ids": "int64"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of 1 to 30 tokens that end with 0; all other tokens are above 0."""
    rng = np.random.default_rng(5)
    documents = [np.append(rng.integers(1, 1000, rng.integers(0, 30)), 0) for _ in range(100)]
    path = tmp_path_factory.mktemp("tokens") / "tokens.bin"
    np.concatenate(documents).astype(np.uint16).tofile(path)
    return path


@pytest.fixture(scope="module")
def ds(path: Path) -> wr.Dataset:
    """One stream."""
    return wr.open(path, dtype="uint16")


@pytest.fixture(scope="module")
def records(path: Path) -> wr.Dataset:
    """A record for each document."""
    return wr.open(path, dtype="uint16", document_eos=0)


@pytest.fixture(scope="module")
def view(ds: wr.Dataset) -> wr.View:
    return ds.pack(32, eos=0, documents=True)


def loader(view: wr.View | wr.Mix, **options: Any) -> wr.Loader:
    return wr.Loader(view, **{"batch_size": 4, "seed": 3, "rank": 0, "world_size": 1, **options})


def test_a_batch_is_as_megatron_takes_it(view: wr.View) -> None:
    plain, other = loader(view, framework="torch"), loader(view, framework="torch", names=MEGATRON, dtypes=OF_MEGATRON)
    for _ in range(5):
        batch, given = next(plain), next(other)
        assert {name: values.dtype for name, values in given.items()} == {
            "tokens": torch.int64,
            "labels": torch.int64,
            "position_ids": torch.int64,
            "loss_mask": torch.float32,
        }
        assert torch.equal(given["tokens"], batch["input_ids"]) and torch.equal(given["labels"], batch["labels"])
        assert torch.equal(given["position_ids"], batch["position_ids"].long())
        assert torch.equal(given["loss_mask"], (batch["labels"] != -100).float())
        # A token is not learned where it begins a document: after the one that ends the last.
        assert torch.equal(given["loss_mask"] == 0, given["tokens"] == 0)


def test_a_batch_is_as_maxtext_takes_it(view: wr.View) -> None:
    names = {"input_ids": "inputs", "labels": "targets", "position_ids": "inputs_position", "segments": "inputs_segmentation", "segment_ids": None}
    given = next(loader(view, dtype="int32", names=names))
    batch = next(loader(view))
    assert [name for name in given if name.startswith("inputs")] == ["inputs", "inputs_position", "inputs_segmentation"]
    assert all(values.dtype == np.int32 for values in given.values())
    assert np.array_equal(given["inputs_segmentation"], batch["segment_ids"] + 1)


@pytest.mark.parametrize("labels", ["next", "same"])
def test_the_made_ones_of_bins(records: wr.Dataset, labels: Any) -> None:
    bins = records.bins(64, "first_fit", labels=labels)
    has_padding = False
    plain, other = loader(bins), loader(bins, names={"segments": "segments", "seq_lens": "doc_lens", "loss_masks": "mask"})
    for batch, given in zip(plain, other, strict=True):
        assert np.array_equal(given["mask"], batch["loss_masks"])
        assert np.array_equal(given["segments"], batch["segment_ids"] + 1)
        has_padding |= bool((given["segments"] == 0).any())
        assert np.array_equal(given["doc_lens"], np.diff(batch["cu_seqlens"], axis=1))
        for row, lens in zip(batch["segment_ids"], given["doc_lens"], strict=True):
            assert lens[lens > 0].tolist() == np.unique(row[row >= 0], return_counts=True)[1].tolist()
    assert has_padding


DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_dtypes_of_frameworks(view: wr.View, framework: Any, dtype: str) -> None:
    field = "loss_masks" if dtype == "bool" else "position_ids"
    given = next(loader(view, framework=framework, names={"loss_masks": "loss_masks"}, dtypes={field: dtype}))[field]
    plain = next(loader(view, names={"loss_masks": "loss_masks"}))[field]
    # jax has no 64 bits by default.
    expected = dtype.replace("64", "32") if framework == "jax" else dtype
    assert str(given.dtype).removeprefix("torch.") == expected
    values = given.to(dtype=__import__("torch").int64).numpy() if framework == "torch" else np.asarray(given)
    assert np.array_equal(values.astype(np.int64), plain)


def test_a_dtype_is_written_as_elsewhere(view: wr.View) -> None:
    for dtype in (np.float32, np.dtype("int16"), ml_dtypes.bfloat16, "i8"):
        assert next(loader(view, dtypes={"position_ids": dtype}))["position_ids"].dtype == np.dtype(dtype)
    assert next(loader(view, framework="torch", dtypes={"position_ids": torch.bfloat16}))["position_ids"].dtype == torch.bfloat16


def test_dtypes_win_over_dtype(view: wr.View) -> None:
    both = loader(view, dtype="int32", dtypes={"labels": "int64"})
    batch = next(both)
    assert (batch["input_ids"].dtype, batch["labels"].dtype) == (np.int32, np.int64)
    assert both.plan == loader(view, dtype="int32").plan != loader(view).plan


def test_names_and_dtypes_are_in_no_plan_and_no_state(ds: wr.Dataset, view: wr.View) -> None:
    mix = wr.mix({"a": (view, 0.5), "b": (ds.pack(32, eos=0, documents=True), 0.5)})
    for of in (view, mix):
        plain, other = loader(of), loader(of, names=MEGATRON, dtypes=OF_MEGATRON)
        assert other.plan == plain.plan and other.recipe() == plain.recipe()
        next(plain), next(plain)
        other.load_state_dict(plain.state_dict())
        assert np.array_equal(next(other)["tokens"], next(plain)["input_ids"])
        assert other.state_dict() == plain.state_dict()
        # Counts of what was read are the same.
        assert plain.stats()["padding_share"] == other.stats()["padding_share"]
        assert wr.diff(plain, other)["first"] is None


def test_a_mix_says_the_part_under_another_name(ds: wr.Dataset) -> None:
    parts = {"short": (ds.pack(16, eos=0, documents=True), 0.5), "long": (ds.pack(64, eos=0, documents=True), 0.5)}
    mix = wr.mix(parts, batches="part", part_ids=True)
    given = loader(mix, names={"part": "source", "seq_lens": "lens", "cu_seqlens": None}, dtypes={"part": "uint8", "seq_lens": "int64"})
    seen = set()
    for batch, plain in zip(given, loader(mix), strict=True):
        assert np.array_equal(batch["source"], plain["part"]) and batch["source"].dtype == np.uint8
        assert np.array_equal(batch["lens"], np.diff(plain["cu_seqlens"], axis=1)) and "cu_seqlens" not in batch
        seen.add(batch["lens"].shape[1])
    assert seen == {16, 64}


def test_rows_of_the_longest_of_a_batch(records: wr.Dataset) -> None:
    rows = records.records(64, pad="longest", labels="same")
    plain, given = loader(rows), loader(rows, names={"input_ids": "tokens", "labels": None}, dtypes={"input_ids": "int32"})
    shapes = set()
    for _ in range(8):
        batch, other = next(plain), next(given)
        assert list(other) == ["tokens", "loss_masks"]
        assert np.array_equal(batch["input_ids"], other["tokens"]) and other["tokens"].dtype == np.int32
        shapes.add(other["tokens"].shape)
    assert len(shapes) > 1


def test_ranks_context_and_balance(records: wr.Dataset) -> None:
    view = records.pack(32, documents=True, multiple=4)
    options: dict[str, Any] = {"names": {"loss_masks": "mask"}, "dtypes": {"loss_masks": "bool"}}
    whole = next(loader(view, **options))["mask"]
    halves = [next(loader(view, rank=None, world_size=None, context=(rank, 2), **options))["mask"] for rank in (0, 1)]
    assert sum(half.sum() for half in halves) == whole.sum() and halves[0].shape[1] == whole.shape[1] // 2
    documents = records.pack(32, documents=True)
    ranks = [wr.Loader(documents, global_batch_size=4, seed=3, rank=rank, world_size=2, balance="attention", **options) for rank in (0, 1)]
    rows = np.concatenate([next(rank)["mask"] for rank in ranks])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, next(loader(documents, **options))["mask"]))


def test_a_number_that_does_not_fit_is_an_error_of_its_batch(view: wr.View) -> None:
    given = loader(view, dtypes={"labels": "uint16"})
    for _ in range(2):  # the next call tries the same batch again
        with pytest.raises(wr.CorruptError, match=r"labels of row \d of the batch: the number -100 does not fit uint16") as raised:
            next(given)
        assert raised.value.hint == "choose another dtype for labels in dtypes="
    assert given.samples == 0
    assert list(next(loader(view, dtypes={"input_ids": "uint16"}))["input_ids"].shape) == [4, 32]


def refused(view: wr.View | wr.Mix, **options: Any) -> wr.ConfigError:
    with pytest.raises(wr.ConfigError) as raised:
        loader(view, **options)
    return raised.value


def test_what_cannot_be_is_refused_by_name(ds: wr.Dataset, view: wr.View, tmp_path: Path) -> None:
    error = refused(view, names={"label": "targets"})
    assert "no field 'label'" in str(error).replace('"', "'") and "did you mean labels? It has input_ids, labels, position_ids" in str(error.hint)
    assert "did you mean segments?" in str(refused(view, dtypes={"segment": "int32"}).hint)
    assert "both called" in str(refused(view, names={"labels": "input_ids"}))
    assert "made of segment_ids" in str(refused(ds.pack(8), names={"segments": "segments"}))
    assert "names= leaves out every field" in str(refused(ds.pack(8), names={"input_ids": None, "labels": None}))
    series = tmp_path / "series.json"
    series.write_text("[[0.5, 1.5, 2.5, 3.5]]")
    windows = wr.open(series).windows(2)
    assert "int32 holds whole numbers only" in str(refused(windows, dtypes={"labels": "int32"}))
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    for stack in (False, True):
        rows = wr.open(tmp_path / "rows.jsonl").rows(stack=stack)
        assert "of a view of rows" in str(refused(rows, names={"a": "b"}))
    for function in ("map", "collate"):
        for option in ({"names": {"labels": "x"}}, {"dtypes": {"labels": "int32"}}):
            error = refused(view, **{function: lambda *given: given[0]}, **option)
            assert f"{next(iter(option))}= and {function}= are given" in str(error)
    for wrong in ({"names": ["labels"]}, {"names": {"labels": 3}}, {"dtypes": {"labels": "x"}}, {"dtypes": "int32"}):
        with pytest.raises((TypeError, wr.ConfigError)) as raised:
            loader(view, **wrong)
        assert next(iter(wrong)) in str(raised.value) or "x" in str(raised.value)


def test_varlen_takes_the_names_of_the_loader(view: wr.View) -> None:
    names = {"input_ids": "tokens", "labels": "targets", "loss_masks": "loss_mask", "cu_seqlens": "ends", "segments": "segments"}
    plain = wr.torch.varlen(next(loader(view)))
    given = wr.torch.varlen(next(loader(view, names=names, dtypes={"loss_masks": "float32"})), names)
    assert set(given) == {"tokens", "targets", "position_ids", "segment_ids", "loss_mask", "segments", "ends", "max_seqlen"}
    for ours, theirs in {**names, "position_ids": "position_ids", "max_seqlen": "max_seqlen"}.items():
        if ours in plain:
            assert given[theirs] == plain[ours] if ours == "max_seqlen" else given[theirs].equal(plain[ours])
    assert given["loss_mask"].equal((plain["labels"] != -100).float())
    assert given["segments"].equal(plain["segment_ids"] + 1)
    with pytest.raises(wr.ConfigError, match="no cu_seqlens") as raised:
        wr.torch.varlen(next(loader(view, names=names)))
    assert "names=" in str(raised.value.hint)


def test_streams_forks_and_what_is_shown(view: wr.View) -> None:
    stream = wr.torch.Stream(view, seed=3, rank=0, world_size=1, names=MEGATRON, dtypes=OF_MEGATRON)
    row = next(iter(stream))
    assert list(row) == ["tokens", "labels", "position_ids", "loss_mask"] and row["loss_mask"].dtype == torch.float32
    again = pickle.loads(pickle.dumps(stream))
    assert list(next(iter(again))) == list(row)
    given = loader(view, names=MEGATRON, dtypes=OF_MEGATRON)
    first = next(given)
    assert "fields: tokens int64, labels int64, position_ids int64, loss_mask float32" in repr(given)
    assert "fields" not in repr(loader(view)) and "loss_mask float32" in given._repr_html_()
    assert list(wr.extract(given, step=0)) == list(first)


def test_a_forked_child_gives_the_same_fields(path: Path, run_script: Callable[..., str]) -> None:
    said = run_script(
        """
        import os, sys, windrow as wr
        view = wr.open(sys.argv[1], dtype="uint16").pack(32, eos=0, documents=True)
        loader = wr.Loader(view, 4, names={"input_ids": "tokens", "loss_masks": "mask", "max_seqlen": None}, dtypes={"loss_masks": "float32"})
        first = next(loader)
        child = os.fork()
        batch = next(loader)
        os.write(1, " ".join([*batch, str(batch["mask"].dtype)]).encode() + b"\\n")
        if child:
            os.waitpid(child, 0)
        """,
        path,
    )
    assert said.splitlines() == ["tokens labels position_ids segment_ids cu_seqlens mask float32"] * 2
