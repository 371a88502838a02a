"""Rows of whole records: records longer than a row, the fields that are asked for, rows as long as the longest."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import windrow as wr

LENGTHS = [3, 9, 2, 0, 20, 5, 8, 1, 1, 16, 7]


def written(folder: Path, lengths: list[int] = LENGTHS) -> tuple[wr.Dataset, list[list[int]]]:
    starts = np.cumsum([1, *lengths])
    records = [list(range(a, a + n)) for a, n in zip(starts.tolist(), lengths, strict=False)]
    wr.write(folder, [np.array(record, np.uint32) for record in records], to="shards", dtype="uint32")
    return wr.open(folder), records


def segments_of(row: dict[str, npt.NDArray[Any]], name: str) -> list[list[int]]:
    ids = row["segment_ids"]
    return [row[name][ids == segment].tolist() for segment in range(int(ids.max()) + 1)]


@pytest.mark.parametrize("strategy", ["best_fit", "first_fit"])
def test_every_token_is_in_a_piece_where_records_are_split(tmp_path: Path, strategy: Any) -> None:
    ds, records = written(tmp_path / "d")
    view = ds.bins(8, strategy, overlong="split")
    pieces = sorted(piece for row in view for piece in segments_of(row, "input_ids"))
    assert pieces == sorted(record[at : at + 8] for record in records for at in range(0, len(record), 8))
    ends = {record[-1] for record in records if record}
    for row in view:
        for tokens, labels, masks in zip(*(segments_of(row, n) for n in ("input_ids", "labels", "loss_masks")), strict=True):
            # A label is the next token of the record, also the one that begins its next piece.
            expected = [(token + 1, 1) if token not in ends else (0, 0) for token in tokens]
            assert list(zip(labels, masks, strict=True)) == expected
        assert row["position_ids"].tolist()[: len(row["input_ids"])] == [
            at for piece in segments_of(row, "input_ids") for at in range(len(piece))
        ] + [0] * int((row["segment_ids"] == -1).sum())
    covered = view.coverage()
    assert (covered["used"], covered["unseen"], covered["skipped_records"]) == (sum(LENGTHS), 0, 1)


def test_rows_within_a_scope_hold_neighbours_and_are_read_by_blocks(tmp_path: Path) -> None:
    lengths = np.random.default_rng(0).integers(1, 30, 2000).tolist()
    ds, records = written(tmp_path / "d", lengths)
    starts = np.array([record[0] for record in records])
    view = ds.bins(32, scope=100)

    def rows_of(batch: dict[str, Any]) -> list[set[int]]:
        return [records_of({name: field[i] for name, field in batch.items()}) for i in range(len(batch["input_ids"]))]

    def records_of(row: dict[str, Any]) -> set[int]:
        tokens, firsts = row["input_ids"], (row["position_ids"] == 0) & (row["segment_ids"] >= 0)
        return set(np.searchsorted(starts, np.asarray(tokens)[np.asarray(firsts)]).tolist())

    rows = [records_of(row) for row in view]
    assert sorted(record for row in rows for record in row) == list(range(2000))
    scopes = [{record // 100 for record in row} for row in rows]
    assert all(len(scope) == 1 for scope in scopes) and scopes == sorted(scopes, key=min)
    assert len(ds.bins(32)) <= len(view) < 1.1 * len(ds.bins(32))

    options: dict[str, Any] = {"global_batch_size": 8, "shuffle": wr.Blocks(size=20), "seed": 1}
    loader = wr.Loader(view, **options, epochs=1)
    batches = [rows_of(batch) for batch in loader]
    assert len({record for batch in batches for row in batch for record in row}) > 1900
    # Of 20 scopes a batch needs those of a few blocks.
    assert all(len({record // 100 for row in batch for record in row}) < 12 for batch in batches[: len(batches) // 2])
    rank = wr.Loader(pickle.loads(pickle.dumps(view)), **options, rank=1, world_size=2)
    assert [rows_of(next(rank)) for _ in range(3)] == [batch[4:] for batch in batches[:3]]

    # All of them are less than 8 MiB.
    assert [row["input_ids"].tolist() for row in ds.bins(32, scope="block")] == [row["input_ids"].tolist() for row in ds.bins(32)]
    for wrong in ("blocks", 0):
        with pytest.raises(wr.ConfigError, match="a number of records"):
            ds.bins(32, scope=wrong)  # type: ignore[arg-type]
    with pytest.raises(wr.ConfigError, match='scope="block"'):
        wr.Loader(ds.bins(32), **options)


def test_long_records_are_cut_with_a_warning_or_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ds, records = written(tmp_path / "d")
    cut = ds.bins(8)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "2 of 11 records are longer than 8 positions and are cut" in said[0]
    assert 'overlong="split"' in said[0]
    assert cut.coverage()["unseen"] == sum(max(0, n - 9) for n in LENGTHS)
    caplog.clear()
    dropped = ds.bins(8, overlong="drop")
    assert sorted(p for row in dropped for p in segments_of(row, "input_ids")) == [r for r in records if 0 < len(r) <= 8]
    assert dropped.coverage()["unseen"] == 9 + 20 + 16
    assert dropped.coverage()["skipped_records"] == 4
    assert not caplog.records
    with pytest.raises(wr.ConfigError, match="overlong"):
        ds.bins(8, overlong="keep")  # type: ignore[arg-type]


def test_split_rows_are_found_and_go_on_on_any_ranks(tmp_path: Path) -> None:
    ds, records = written(tmp_path / "d")
    view = pickle.loads(pickle.dumps(ds.bins(8, overlong="split")))
    loader = wr.Loader(view, global_batch_size=4, seed=3, rank=0, world_size=1, drop_last=False)
    tokens = [set(sample["input_ids"].tolist()) for sample in view]
    for number, record in enumerate(records):
        own = {sample for sample in range(len(view)) if set(record) & tokens[sample]}
        assert {found["sample"] for found in wr.find(loader, number)} == own
    loader = wr.Loader(view, global_batch_size=4, seed=3, rank=0, world_size=1)
    next(loader)
    state = loader.state_dict()
    halves = [wr.Loader(view, global_batch_size=4, seed=3, rank=rank, world_size=2) for rank in (0, 1)]
    for half in halves:
        half.load_state_dict(state)
    whole, parts = next(loader), [next(half) for half in halves]
    assert all(np.array_equal(whole[name], np.concatenate([part[name] for part in parts])) for name in whole)
    with pytest.raises(wr.MismatchError, match="overlong=split"):
        wr.Loader(ds.bins(8), global_batch_size=4, seed=3, rank=0, world_size=1).load_state_dict(state)


@pytest.mark.parametrize("labels", ["next", "same", None])
@pytest.mark.parametrize("cut", ["bins", "segments"])
def test_fields_mean_the_same_in_bins_and_segments(tmp_path: Path, cut: str, labels: Any) -> None:
    ds, _ = written(tmp_path / "d")
    options: dict[str, Any] = {"labels": labels, **({"overlong": "split"} if cut == "bins" else {})}
    names = ["max_seqlen", "input_ids", "loss_masks", "segment_ids", "position_ids", "cu_seqlens", "attention_mask"]
    names += ["labels"] if labels else []
    usual, chosen = (getattr(ds, cut)(8, **options, **more) for more in ({}, {"fields": names}))
    for number in range(len(usual)):
        row = chosen[number]
        assert list(row) == names
        for name in set(usual[number]) & set(row):
            assert np.array_equal(usual[number][name], row[name]), name
        sizes = [len(piece) for piece in segments_of(row, "input_ids")]
        ends = np.cumsum(sizes).tolist()
        assert row["cu_seqlens"].tolist() == ([0, *ends] + [ends[-1]] * 9)[: len(row["cu_seqlens"])]
        assert int(row["max_seqlen"]) == max(sizes)
        assert row["position_ids"].tolist() == [at for n in sizes for at in range(n)] + [0] * (8 - ends[-1])
        assert row["attention_mask"].tolist() == [1] * ends[-1] + [0] * (8 - ends[-1])
        for name in names:
            alone = getattr(ds, cut)(8, **options, fields=[name])[number]
            assert list(alone) == [name]
            assert np.array_equal(alone[name], row[name]), name
    assert str(row["attention_mask"].dtype) == "int64"
    for wrong in (["bins"], ["input_ids", "input_ids"], []):
        with pytest.raises(wr.ConfigError) as error:
            getattr(ds, cut)(8, fields=wrong)
        assert wrong != ["bins"] or "max_seqlen" in str(error.value.hint)


def test_bins_of_two_data_sets_mix_without_cu_seqlens(tmp_path: Path) -> None:
    for name, lengths in {"short": [1, 2, 2, 1, 2, 3, 1], "long": [8, 5, 7]}.items():
        records = [np.full(length, 7, np.uint16) for length in lengths]
        wr.write(tmp_path / name, records, to="shards", dtype="uint16")
    short, long = (wr.open(tmp_path / name) for name in ("short", "long"))
    with pytest.raises(wr.MismatchError, match="different tensors: cu_seqlens is int32") as error:
        wr.mix({"a": (short.bins(8), 0.5), "b": (long.bins(8), 0.5)})
    assert "fields= without cu_seqlens" in error.value.hint
    fields = ["input_ids", "labels", "loss_masks", "position_ids", "segment_ids"]
    mixed = wr.mix({"a": (short.bins(8, fields=fields), 0.5), "b": (long.bins(8, fields=fields), 0.5)}, stop="all")
    assert list(next(wr.Loader(mixed, 2, rank=0, world_size=1))) == fields


def test_rows_are_as_long_as_the_longest_of_their_batch(tmp_path: Path) -> None:
    ds, records = written(tmp_path / "d")
    view = pickle.loads(pickle.dumps(ds.records(10, pad_value=7, pad="longest")))
    full = ds.records(10, pad_value=7)
    for batch in ([0, 2], [1, 4], [7, 8], [3], [10, 0, 5]):
        got, expected = view.batch(batch), full.batch(batch)
        longest = max(1, *(min(10, len(records[number]) - 1) for number in batch))
        for name in ("input_ids", "labels", "loss_masks"):
            assert np.array_equal(got[name], expected[name][:, :longest]), name
    loader = wr.Loader(view, batch_size=4, seed=1, rank=0, world_size=1)
    plain = wr.Loader(full, batch_size=4, seed=1, rank=0, world_size=1)
    for got, expected in zip(loader, plain, strict=True):
        n = got["input_ids"].shape[1]
        assert np.array_equal(got["input_ids"], expected["input_ids"][:, :n])
        assert not expected["loss_masks"][:, n:].any()
    with pytest.raises(wr.MismatchError, match="to=longest"):
        plain.load_state_dict(loader.state_dict())
    with pytest.raises(wr.ConfigError, match="pad"):
        ds.records(10, pad="shortest")  # type: ignore[arg-type]
