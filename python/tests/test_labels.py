"""`labels=` of every view, against an oracle: the value after, the input itself, or none; in every dtype, with and without masks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

import windrow as wr

Kind = Literal["next", "same"] | None
Array = npt.NDArray[Any]
# A value of a record, or of padding: None.
Place = tuple[int, int]

VIEWS = ("pack", "records", "windows", "bins", "segments")
KINDS: tuple[Kind, ...] = ("next", "same", None)
LENGTH, STRIDE = 4, 3


def pieces_of(lengths: list[int], cut: str, ahead: int) -> list[list[list[Place]]]:
    """Each sample's pieces, cut by loops: `ahead` is 1 where labels are one value later."""
    whole = [[(r, i) for i in range(length)] for r, length in enumerate(lengths)]
    if cut == "pack":
        stream = sum(whole, [])
        return [[stream[a : a + LENGTH + ahead]] for a in range(0, len(stream) - LENGTH - ahead + 1, LENGTH)]
    if cut == "records":
        return [[places[: LENGTH + ahead]] for places in whole]
    if cut == "windows":
        starts = [range(0, max(1, len(p) - LENGTH - ahead + 1), STRIDE) if len(p) > ahead else range(0) for p in whole]
        return [[p[a : a + LENGTH + ahead]] for p, own in zip(whole, starts, strict=True) for a in own]
    rows: list[list[list[Place]]] = []
    free: list[int] = []
    for places in whole:
        taken = 0
        while taken + (ahead if cut == "segments" else 0) < len(places):
            # Of bins the first with room for the record; of segments the last row.
            need = min(len(places), LENGTH) if cut == "bins" else 1
            found = [row for row in range(len(rows)) if free[row] >= need]
            if not found:
                rows.append([])
                free.append(LENGTH)
                found = [len(rows) - 1]
            n = need if cut == "bins" else min(len(places) - ahead - taken, free[found[0]])
            rows[found[0]].append(places[taken : taken + n + ahead])
            free[found[0]] -= n
            taken = len(places) if cut == "bins" else taken + n
    return rows


def rows_of(records: list[Array], excluded: list[Array], cut: str, labels: Kind) -> Iterator[dict[str, list[Any]]]:
    """Each sample as lists: `input_ids`, `labels`, `loss_masks`."""
    ahead = int(labels == "next")
    ignored = np.full_like(records[0][0], -100).tolist() if records[0].dtype.kind in "iu" else None
    padding = np.zeros_like(records[0][:1])[0].tolist()
    for pieces in pieces_of([len(record) for record in records], cut, ahead):
        row: dict[str, list[Any]] = {"input_ids": [], "labels": [], "loss_masks": []}
        for piece in pieces:
            n = len(piece) - ahead if cut == "segments" else min(len(piece), LENGTH)
            for at, place in enumerate(piece[:n]):
                target = piece[at + ahead] if at + ahead < len(piece) else None
                told = target is not None and not excluded[target[0]][target[1]]
                if labels == "same" and cut in ("bins", "segments") and place[1] == 0:
                    told = False
                row["input_ids"].append(records[place[0]][place[1]].tolist())
                row["labels"].append(padding if target is None else records[target[0]][target[1]].tolist())
                row["loss_masks"].append(int(told))
        for name, values in row.items():
            values += [0 if name == "loss_masks" else padding] * (LENGTH - len(values))
        if labels == "same" and ignored is not None:
            row["labels"] = [label if m else ignored for label, m in zip(row["labels"], row["loss_masks"], strict=True)]
        yield row


def of_lengths(lengths: list[int], dtype: Any) -> list[Array]:
    starts = np.cumsum([1, *lengths])
    return [np.arange(start, start + n).astype(dtype) for start, n in zip(starts, lengths, strict=False)]


def masked(folder: Path) -> tuple[wr.Dataset, list[Array], list[Array]]:
    """Records of 7 tokens, some of them excluded from the loss by a mask beside them."""
    records = of_lengths([7] * 5, np.uint32)
    excluded = [np.array([(3 * r + i) % 4 == 0 for i in range(7)], np.uint8) for r in range(5)]
    (folder / "index").mkdir(parents=True)
    samples = [record.tobytes() + mask.tobytes() for record, mask in zip(records, excluded, strict=True)]
    (folder / "samples.bin").write_bytes(b"".join(samples))
    (folder / "index" / "file_location.txt").write_text("samples.bin\n")
    np.array([[0, 35 * r, 35] for r in range(5)], "<u8").tofile(folder / "index" / "sample_locations.bin")
    arrays = [{"name": "tokens", "dtype": "uint32", "offset": 0}, {"name": "loss_mask", "dtype": "uint8", "offset": 28}]
    schema = {"sample_size": 7, "arrays": arrays, "total_bytes_per_sample": 35}
    (folder / "index" / "sample_schema.json").write_text(json.dumps(schema))
    return wr.open(folder), records, excluded


def ragged(folder: Path, dtype: str) -> tuple[wr.Dataset, list[Array], list[Array]]:
    records = of_lengths([6, 1, 0, 4, 2, 9, 5, 3, 1, 8], dtype)
    wr.write(folder, records, to="shards", dtype=dtype)
    return wr.open(folder), records, [np.zeros(len(record), np.uint8) for record in records]


def channels(folder: Path) -> tuple[wr.Dataset, list[Array], list[Array]]:
    records = [np.stack([record, -record], 1) for record in of_lengths([6, 1, 4, 2, 9], np.float32)]
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps([record.tolist() for record in records]))
    return wr.open(folder / "a.json"), records, [np.zeros(len(record), np.uint8) for record in records]


def numbers(folder: Path) -> tuple[wr.Dataset, list[Array], list[Array]]:
    """Whole numbers ``[T, C]``."""
    folder.mkdir()
    records = [np.stack([record, record + 50], 1) for record in of_lengths([6, 1, 4, 2, 9], np.int32)]
    lines = "".join(json.dumps({"sequence": record.tolist()}) + "\n" for record in records)
    (folder / "a.jsonl").write_text(lines)
    return wr.open(folder / "a.jsonl"), records, [np.zeros(len(record), np.uint8) for record in records]


DATA: dict[str, Callable[[Path], tuple[wr.Dataset, list[Array], list[Array]]]] = {
    "tokens": lambda folder: ragged(folder, "uint16"),
    "signed": lambda folder: ragged(folder, "int64"),
    "floats": lambda folder: ragged(folder, "float32"),
    "masked": masked,
    "channels": channels,
    "whole channels": numbers,
}


def cut(ds: wr.Dataset, name: str, labels: Kind, **options: Any) -> wr.View:
    more = {"windows": {"stride": STRIDE}, "bins": {"strategy": "first_fit"}}.get(name, {})
    view: wr.View = getattr(ds, name)(LENGTH, labels=labels, **more, **options)
    return view


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("labels", KINDS)
@pytest.mark.parametrize("name", VIEWS)
def test_labels_are_those_of_an_oracle(tmp_path: Path, name: str, labels: Kind, data: str) -> None:
    ds, records, excluded = DATA[data](tmp_path / "data")
    if data.endswith("channels") and name == "bins":
        return
    has_masks = name != "pack" or data == "masked"
    whole = records[0].dtype.kind in "iu"
    dtypes = ["int64", "int32", "int16", "int8", "uint16", "float32", "float64", "float16"] if whole else ["float32"]
    for dtype in dtypes:
        if labels == "same" and dtype == "uint16" and has_masks:
            with pytest.raises(wr.ConfigError, match="-100") as caught:
                cut(ds, name, labels, dtype=dtype)
            assert caught.value.hint
            with pytest.raises(wr.ConfigError, match="-100"):
                wr.Loader(cut(ds, name, labels), 1, dtype=dtype)
            continue
        kept = np.dtype(dtype).kind if whole else "f"
        expected = list(rows_of([r.astype("int64" if kept in "iu" else "f8") for r in records], excluded, name, labels))
        view = cut(ds, name, labels, dtype=dtype)
        assert len(view) == len(expected) > 3
        # Twice the rows of a batch go through memory that is used again.
        batches = list(wr.Loader(view, 2, shuffle=False, drop_last=False, epochs=1))
        for field in ("input_ids", "labels", "loss_masks"):
            is_there = (labels is not None or field != "labels") and (has_masks or field != "loss_masks")
            assert (field in view[0]) == is_there
            if not is_there:
                continue
            found = np.concatenate([batch[field] for batch in batches])
            assert found.dtype == (np.int32 if field == "loss_masks" else np.dtype(dtype)), field
            assert found.tolist() == [row[field] for row in expected], (field, dtype)
        check_coverage(view, records, name, labels)


def check_coverage(view: wr.View, records: list[Array], name: str, labels: Kind) -> None:
    samples = pieces_of([len(record) for record in records], name, int(labels == "next"))
    read = [place for sample in samples for piece in sample for place in piece]
    used = len(set(read))
    found = view.coverage()
    assert (found["used"], found["repeated"]) == (used, len(read) - used)
    assert found["unseen"] == sum(map(len, records)) - used
    assert found["skipped_records"] == len(records) - len({record for record, _ in read})
    inputs = sum(int((row["segment_ids"] >= 0).sum()) for row in view) if name in ("bins", "segments") else None
    if inputs is not None:
        assert found["padded"] == LENGTH * len(view) - inputs
    elif labels != "next":
        assert found["padded"] == LENGTH * len(view) - len(read)


@pytest.mark.parametrize("labels", KINDS)
def test_an_id_between_records_is_its_own_label(tmp_path: Path, labels: Kind) -> None:
    ds, records, excluded = masked(tmp_path / "data")
    ahead = int(labels == "next")
    stream = np.concatenate([[*record, 99] for record in records])
    mask = np.concatenate([[*(m == 0), True] for m in excluded])
    view = ds.pack(LENGTH, eos=99, labels=labels)
    assert len(view) == (len(stream) - ahead) // LENGTH
    for i, row in enumerate(view):
        inputs = slice(LENGTH * i, LENGTH * (i + 1))
        targets = slice(inputs.start + ahead, inputs.stop + ahead)
        assert row["input_ids"].tolist() == stream[inputs].tolist()
        assert row["loss_masks"].tolist() == mask[targets].astype(int).tolist()
        if labels is not None:
            want = stream[targets] if labels == "next" else np.where(mask[inputs], stream[inputs], -100)
            assert row["labels"].tolist() == want.tolist()


def test_only_the_prediction_is_learned(tmp_path: Path) -> None:
    ds, _, _ = ragged(tmp_path / "data", "int64")
    row = ds.windows(2, prediction_length=2, loss_on="prediction", labels="same")[0]
    assert row["input_ids"].tolist() == [1, 2, 3, 4] and row["labels"].tolist() == [-100, -100, 3, 4]
    assert row["loss_masks"].tolist() == [0, 0, 1, 1]
    row = ds.windows(2, prediction_length=2, loss_on="prediction", labels=None)[0]
    assert row["loss_masks"].tolist() == [0, 0, 1, 1] and "labels" not in row


@pytest.mark.parametrize("name", ["windows", "segments"])
def test_nan_is_masked_where_it_stands(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"sequence": [1, NaN, 3, 4, 5]}\n')
    for labels in ("same", None):
        row = cut(wr.open(path), name, labels, nan="mask")[0]
        first = int(name == "windows" or labels is None)
        assert row["input_ids"].tolist() == [1, 0, 3, 4] and row["loss_masks"].tolist() == [first, 0, 1, 1]
        assert labels is None or row["labels"].tolist() == [1, 0, 3, 4]


@pytest.mark.parametrize("scaler", ["max", lambda series: series / 2])
def test_scaled_values_are_their_own_labels(tmp_path: Path, scaler: Any) -> None:
    ds, _, _ = ragged(tmp_path / "data", "float32")
    for row, other in zip(*(cut(ds, "windows", kind, scaler=scaler) for kind in ("same", None)), strict=True):
        assert row["labels"].tolist() == row["input_ids"].tolist() == other["input_ids"].tolist()


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_the_inputs_changes_no_label(tmp_path: Path, name: str) -> None:
    ds, _, _ = ragged(tmp_path / "data", "int64")
    view = cut(ds, name, "same")
    for batch in (view[0], view.batch([0, 1]), next(wr.Loader(view, 2))):
        labels = batch["labels"].copy()
        batch["input_ids"][...] = -1
        assert np.array_equal(batch["labels"], labels)
        assert not np.shares_memory(batch["input_ids"], batch["labels"])


ONE_LATER = "next_token(length=4,dtype=int64,pad=0,mask={})"
PLANS = {
    "pack": ("pack(length=4,eos=none)", ONE_LATER.format("none")),
    "records": ("records(length=4)", ONE_LATER.format("real")),
    "windows": ("windows(width=4,stride=4,tail=drop)", ONE_LATER.format("real")),
    "bins": ("bins(length=4,strategy=best_fit)", "segments(length=4,dtype=int64,pad=0)"),
    "segments": ("segments(length=4)", "pairs(length=4,dtype=int64)"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_plans_of_other_labels_are_other_plans(tmp_path: Path, name: str) -> None:
    ds, _, _ = ragged(tmp_path / "data", "int64")
    loaders = [wr.Loader(cut(ds, name, kind), 2, seed=3) for kind in KINDS]
    plain = wr.Loader(getattr(ds, name)(LENGTH), 2, seed=3)
    # A state that was saved before there was a choice of labels.
    parts = dict(part.split("=", 1) for part in plain.state_dict()["plan"].split(";"))
    assert (parts["view"], parts["layout"]) == PLANS[name]
    assert "labels" not in json.dumps(plain.recipe()["parts"][0]["view"]) and "labels" not in plain.state_dict()["plan"]
    assert len({loader.state_dict()["plan"] for loader in loaders}) == 3
    for loader, other in ((a, b) for a in loaders for b in loaders if a is not b):
        with pytest.raises(wr.MismatchError, match="labels"):
            loader.load_state_dict(other.state_dict())
    for kind, loader in zip(KINDS, loaders, strict=True):
        next(loader)
        batch, state = next(loader), loader.state_dict()
        view = pickle.loads(pickle.dumps(cut(ds, name, kind)))
        again = wr.Loader(view, 2, seed=3)
        again.load_state_dict({**state, "samples": state["samples"] - 2})
        assert {field: a.tolist() for field, a in next(again).items()} == {field: a.tolist() for field, a in batch.items()}
        # A trace reads the values that the rows show, and no other ones.
        rows = wr.trace(loader.recipe(), step=1)
        read = [sum(span["len"] for span in row["reads"]) for row in rows]
        if kind != "next" and "segment_ids" in batch:
            assert read == (batch["segment_ids"] >= 0).sum(1).tolist()
        elif kind != "next":
            assert max(read) <= LENGTH
        for read_record in {span["record"] for row in rows for span in row["reads"]}:
            assert any(found["step"] == 1 for found in wr.find(loader.recipe(), record=read_record))


def test_a_mix_needs_the_same_labels(tmp_path: Path) -> None:
    ds, _, _ = ragged(tmp_path / "data", "int64")
    for kind in KINDS:
        mixed = wr.mix({"a": (cut(ds, "bins", kind), 1), "b": (cut(ds, "bins", kind), 2)})
        assert ("labels" in next(wr.Loader(mixed, 3))) == (kind is not None)
    with pytest.raises(wr.MismatchError, match='"a" and "b" give different tensors: only "a" has labels'):
        wr.mix({"a": (ds.pack(4), 1), "b": (ds.pack(4, labels=None), 1)})
    with pytest.raises(wr.MismatchError, match="labels=same") as caught:
        wr.mix({"a": (ds.pack(4), 1), "b": (ds.pack(4, labels="same"), 1)})
    assert "labels" in str(caught.value.hint)


def test_labels_that_cannot_be_are_refused(tmp_path: Path) -> None:
    ds, _, _ = ragged(tmp_path / "data", "uint16")
    wrong: Any = "other"
    with pytest.raises(wr.ConfigError, match="labels=") as caught:
        ds.pack(4, labels=wrong)
    assert "next, same, none" in str(caught.value.hint)
    for kind in ("same", None):
        with pytest.raises(wr.ConfigError, match="targets"):
            ds.pack(4, shifted=True, labels=kind)
