"""Views: the samples that each way of cutting gives, as dicts of fresh arrays."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr


def test_pack_gives_every_token_but_the_first_as_a_label_once(view: wr.View) -> None:
    assert len(view) == (20_000 - 1) // 16
    labels = np.concatenate([sample["labels"] for sample in view])
    assert np.array_equal(labels, np.arange(1, len(view) * 16 + 1))
    first = view[0]
    assert np.array_equal(first["input_ids"], np.arange(16))
    assert first["input_ids"].dtype == first["labels"].dtype == np.int64


def test_pack_puts_the_end_id_after_every_record(documents: Path) -> None:
    view = wr.open(documents).pack(8, eos=199)
    joined = np.concatenate([sample["input_ids"] for sample in view])
    expected = [value for i in range(60) for value in [*range(i, 2 * i), 199]]
    assert joined.tolist() == expected[: len(joined)]


def test_records_pad_short_ones_and_mask_what_is_no_label(documents: Path) -> None:
    view = wr.open(documents).records(8, pad_value=7)
    sample = next(s for s in view if s["input_ids"][0] == 3)
    assert sample["input_ids"][:2].tolist() == [3, 4]
    assert sample["labels"][:2].tolist() == [4, 5]
    assert sample["loss_masks"].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]


def test_windows_slide(dataset: wr.Dataset) -> None:
    view = dataset.windows(6, prediction_length=2, stride=4)
    assert [view[i]["input_ids"][0] for i in range(3)] == [0, 4, 8]
    assert view[1]["labels"].tolist() == list(range(5, 13))
    assert set(view[0]) == {"input_ids", "labels", "loss_masks"}
    assert len(dataset.windows(8)) == len(dataset.windows(8, stride=8))


def test_crop_starts_where_it_says(documents: Path) -> None:
    ds = wr.open(documents)
    view = ds.crop(4, mode="start")
    assert view[20]["values"].tolist() == [20, 21, 22, 23]
    assert view[2]["values"][:2].tolist() == [2, 3]
    assert int(view[2]["lengths"]) == 2
    a, b = ds.crop(4, seed=1), ds.crop(4, seed=1)
    assert all(np.array_equal(a[i]["values"], b[i]["values"]) for i in range(60))
    other = ds.crop(4, seed=2)
    assert any(not np.array_equal(a[i]["values"], other[i]["values"]) for i in range(60))


def test_bins_hold_whole_records(documents: Path) -> None:
    view = wr.open(documents).bins(64, strategy="first_fit", pad_value=0)
    names = {"input_ids", "labels", "loss_masks", "position_ids", "segment_ids", "cu_seqlens"}
    assert set(view[0]) == names
    found = []
    for sample in view:
        starts = np.flatnonzero((sample["position_ids"] == 0) & (sample["segment_ids"] >= 0))
        found += sample["input_ids"][starts].tolist()
        ends = sample["cu_seqlens"]
        assert np.array_equal(np.unique(ends[:-1][ends[:-1] < ends[-1]]), starts)
    # Record i starts with the value i; record 0 is empty.
    assert sorted(found) == list(range(1, 60))


@pytest.mark.parametrize("dtype", ["int32", "uint16", "float32", np.int64])
def test_tensors_come_as_asked(dataset: wr.Dataset, dtype: Any) -> None:
    sample = dataset.pack(16, dtype=dtype)[3]
    assert sample["input_ids"].dtype == np.dtype(dtype)
    assert sample["input_ids"].tolist() == list(range(48, 64))


def test_samples_are_fresh_and_writable(view: wr.View) -> None:
    sample = view[0]
    sample["input_ids"][:] = -1
    assert view[0]["input_ids"].tolist() == list(range(16))
    assert sample["labels"].tolist() == list(range(1, 17))


def test_every_way_to_index(view: wr.View) -> None:
    def starts(samples: list[Any]) -> list[int]:
        return [int(s["input_ids"][0]) // 16 for s in samples]

    assert starts([view[-1], view[np.int64(5)]]) == [len(view) - 1, 5]
    assert starts(view[3:9:3]) == [3, 6]
    assert starts(view[[4, 4, -2]]) == [4, 4, len(view) - 2]
    assert starts(view.__getitems__([2, 0, -1])) == [2, 0, len(view) - 1]
    with pytest.raises(IndexError):
        view[len(view)]
    with pytest.raises(IndexError):
        view.__getitems__([0, len(view)])


def test_coverage_adds_up(dataset: wr.Dataset, view: wr.View) -> None:
    coverage = view.coverage()
    assert coverage["used"] + coverage["unseen"] == 20_000
    assert set(coverage) == {"used", "repeated", "padded", "unseen", "skipped_records"}


def test_a_view_pickles_by_recipe(documents: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(documents.parent)
    view = wr.open("documents").crop(5, seed=3, dtype="int32")
    data = pickle.dumps(view)
    assert len(data) < 2_000
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    for a, b in zip(view, again, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in a)
        assert a["values"].dtype == b["values"].dtype == np.int32


def test_a_mixtures_samples_are_those_of_its_own_sequence(dataset: wr.Dataset, view: wr.View) -> None:
    other = dataset.pack(16, eos=9)
    mix = pickle.loads(pickle.dumps(wr.mix({"a": (view, 0.9), "b": (other, 0.1)})))
    firsts = [int(batch["input_ids"][0, 0]) for batch in wr.Loader(mix, 1, shuffle=False)]
    assert [int(sample["input_ids"][0]) for sample in mix] == firsts
    assert len(mix) == len(firsts) and bool(mix)
    rows = mix.__getitems__([0, len(mix) - 1, 1, -1])
    assert [int(r["input_ids"][0]) for r in rows] == [firsts[0], firsts[-1], firsts[1], firsts[-1]]
    assert mix[-1]["labels"].tolist() == mix[len(mix) - 1]["labels"].tolist()
    assert [s["labels"].tolist() for s in mix[3:9:2]] == [mix[i]["labels"].tolist() for i in (3, 5, 7)]
    with pytest.raises(IndexError):
        mix[len(mix)]
    assert set(mix.coverage()) == {"a", "b"}


def test_weights_and_names_are_checked(view: wr.View, dataset: wr.Dataset) -> None:
    with pytest.raises(wr.ConfigError):
        wr.mix({})
    with pytest.raises(wr.ConfigError, match="weight"):
        wr.mix({"a": (view, 0.0)})
    with pytest.raises(wr.MismatchError):
        wr.mix({"a": (view, 1.0), "b": (dataset.pack(8), 1.0)})


def test_a_number_that_does_not_fit_names_its_record(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2, 3], [4, 300, 6]], np.uint16))
    ds = wr.open(tmp_path / "a.npy")
    views = [ds.pack(2), ds.pack(2, shifted=True), ds.records(2), ds.windows(2), ds.segments(2), ds.bins(3), ds.crop(3)]
    for view in views:
        loader = wr.Loader(view, len(view), shuffle=False, dtype="uint8")
        with pytest.raises(wr.CorruptError, match="does not fit uint8") as caught:
            next(loader)
        assert caught.value.record == 1


def test_a_view_without_samples_says_what_it_lacks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "few.bin"
    np.arange(3, dtype=np.uint32).tofile(path)
    ds = wr.open(path, dtype="uint32")
    assert len(ds.pack(2)) == len(ds.pack(3, labels=None)) == 1 and not caplog.records
    view = ds.pack(100)
    # A DataLoader over it runs no batch: this is all that it says.
    (told,) = caplog.records
    lacks = "all records together have 3 values, and each sample needs 101"
    assert told.getMessage() == f"{path}: the view has no samples: {lacks}"
    with pytest.raises(wr.ConfigError, match=f"the view has no samples: {lacks}") as caught:
        wr.Loader(view, batch_size=1)
    assert caught.value.path == str(path)
    with pytest.raises(wr.ConfigError, match=f'"few" has no samples: {lacks}'):
        wr.mix({"few": (view, 1.0)})
    with pytest.raises(wr.ConfigError, match="3 values, and each sample needs 4"):
        wr.Loader(ds.pack(4, labels=None), batch_size=1)


def test_a_mix_that_cannot_be_says_why(dataset: wr.Dataset) -> None:
    pack = dataset.pack(4)
    with pytest.raises(wr.MismatchError) as caught:
        wr.mix({"web": (pack, 0.5), "code": (dataset.bins(8), 0.5)})
    said = str(caught.value)
    assert '"web" and "code" give different tensors' in said
    assert 'only "code" has loss_masks, position_ids, segment_ids, cu_seqlens' in said
    assert 'input_ids is int64 [4] of "web", int64 [8] of "code"' in said
    assert caught.value.hint
    with pytest.raises(wr.MismatchError, match='input_ids is int64 .4. of "web", int32 .4. of "code"'):
        wr.mix({"web": (pack, 0.5), "code": (dataset.pack(4, dtype="int32"), 0.5)})
    inner = wr.mix({"web": (pack, 0.5), "code": (pack, 0.5)})
    with pytest.raises(wr.MismatchError, match='"all/web" and "more" give different tensors'):
        wr.mix({"all": (inner, 1.0), "more": (dataset.bins(8), 1.0)})
    for part, found in ((dataset, "a Dataset"), ((dataset, 1.0), "a Dataset"), ((pack, "much"), "a weight"), (pack, "a View")):
        wrong: Any = {"a": part}
        with pytest.raises(TypeError, match=found):
            wr.mix(wrong)


@pytest.mark.parametrize(
    ("dtype", "first"), [("float16", 2_049), ("bfloat16", 257), ("torch.bfloat16", 257), ("float32", 16_777_217)]
)
def test_a_whole_number_that_a_float_does_not_hold_exactly_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, dtype: str, first: int
) -> None:
    name, asked = dtype.removeprefix("torch."), dtype
    if dtype.startswith("torch."):
        asked = getattr(torch, name)
    np.save(tmp_path / "a.npy", np.array([[1, 2, 3], [4, first, 6]], np.uint32))
    np.save(tmp_path / "b.npy", np.array([[1, 2, 3], [4, first - 1, 6]], np.uint32))
    ds, exact = wr.open(tmp_path / "a.npy"), wr.open(tmp_path / "b.npy")
    for cut in ("pack", "records", "windows", "segments", "bins", "crop"):
        length = 3 if cut in ("bins", "crop") else 2
        for of, fits in ((ds, False), (exact, True)):
            view = getattr(of, cut)(length, dtype=asked)
            loader = wr.Loader(getattr(of, cut)(length), len(view), shuffle=False, dtype=asked)
            for assemble in (lambda view=view: view[:], lambda loader=loader: next(loader)):
                caplog.clear()
                assemble()
                said = [record.getMessage() for record in caplog.records]
                assert len(said) == (not fits), said
                assert fits or all(part in said[0] for part in (f"the number {first} ", f"does not fit {name}", "record 1")), said
    for cut in (ds.records, ds.bins):
        with pytest.raises(wr.ConfigError, match=f"padding value {first} does not fit {name}"):
            cut(3, pad_value=first, dtype=asked)
        cut(3, pad_value=first - 1, dtype=asked)
    with pytest.raises(wr.ConfigError, match=f"{first} between records does not fit {name}"):
        exact.pack(2, eos=first, dtype=asked)[:]
    if name == "bfloat16":  # which shards do not have
        return
    wrong, right = (np.load(tmp_path / f"{letter}.npy") for letter in "ab")
    with pytest.raises(wr.ConfigError, match=f"does not fit {name}"):
        wr.convert(tmp_path / "a.npy", tmp_path / "out", to="shards", dtype=asked)
    with pytest.raises(wr.ConfigError, match=f"does not fit {name}") as caught:
        wr.write(tmp_path / "out", wrong, to="shards", dtype=asked)
    assert caught.value.record == 1 and not (tmp_path / "out").exists()
    wr.convert(tmp_path / "b.npy", tmp_path / "converted", to="shards", dtype=asked)
    wr.write(tmp_path / "written", right, to="shards", dtype=asked)
    for folder in ("converted", "written"):
        read = wr.open(tmp_path / folder).crop(3, mode="start", dtype="float64")
        assert [row["values"].tolist() for row in read] == right.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**64 - 1, 2**53 + 1])
def test_the_largest_whole_numbers_are_written_as_no_others(tmp_path: Path, number: int, dtype: str) -> None:
    with pytest.raises(wr.ConfigError, match=f"does not fit {dtype}"):
        wr.write(tmp_path / "out", [np.array([0, number], np.uint64)], to="shards", dtype=dtype)


def test_text_cannot_be_cut(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(wr.ConfigError, match="tokenize"):
        wr.open(tmp_path / "a.jsonl").pack(4)
