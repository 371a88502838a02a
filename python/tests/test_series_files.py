"""Files of series as other programs write them: keys, axes, times beside the numbers, names that are not UTF-8."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import pickle
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is converted lies here."""
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))


def written(folder: Path, rows: list[dict[str, Any]]) -> list[Path]:
    """Records in every notation."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"rows.{ending}" for ending in ("json", "jsonl", "yaml", "pkl")]
    paths[0].write_text(json.dumps(rows))
    paths[1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    # JSON is YAML.
    paths[2].write_text(json.dumps(rows))
    paths[3].write_bytes(pickle.dumps(rows))
    return paths


def test_a_column_names_the_series(tmp_path: Path) -> None:
    rows = [{"start": "2021-01-01", "target": [1.5, 2.5, i], "feat": [[7, 8]], "item_id": i} for i in range(3)]
    for path in written(tmp_path / "a", rows):
        ds = wr.open(path, column="target")
        assert len(ds) == 3 and ds[2].tolist() == [1.5, 2.5, 2], path.name
        assert ds.extras(1) == {"start": "2021-01-01", "feat": [[7, 8]], "item_id": 1}
        assert wr.open(path, column="feat")[1].shape == (1, 2)
        with pytest.raises(wr.CorruptError, match="`targets`") as error:
            wr.open(path, column="targets")
        assert all(key in error.value.hint for key in rows[0]) and error.value.record == 0
        with pytest.raises(wr.CorruptError, match="`start` to be a list of numbers") as error:
            wr.open(path, column="start")
        # What keys come after it was not read.
        assert error.value.hint == "column= names the key that holds the series"
        again = pickle.loads(pickle.dumps(ds))
        assert again[0].tolist() == [1.5, 2.5, 0]
    # Two lists of numbers: which one is meant has to be said, unless a start beside the target says it.
    assert wr.open(tmp_path / "a" / "rows.jsonl")[0].tolist() == [1.5, 2.5, 0]
    rows = [{name: value for name, value in row.items() if name != "start"} for row in rows]
    written(tmp_path / "b", rows)
    assert wr.open(tmp_path / "b" / "rows.jsonl")[0] == rows[0]
    with pytest.raises(wr.CorruptError, match="`sequence`") as error:
        wr.open(tmp_path / "b" / "rows.json")
    assert "numbers are in target, feat" in error.value.hint
    folder = tmp_path / "lines"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.jsonl").write_text(json.dumps({"ids": [1, 2], "text": name}) + "\n")
    assert wr.open(folder).format == "jsonl"
    assert [ids.tolist() for ids in wr.open(folder, column="ids")] == [[1, 2], [1, 2]]
    np.save(tmp_path / "n.npy", np.arange(3))
    with pytest.raises(wr.ConfigError, match="column was given, but npy"):
        wr.open(tmp_path / "n.npy", column="x")
    with pytest.raises(wr.CorruptError, match="found a list"):
        (tmp_path / "l.json").write_text("[[1, 2]]")
        wr.open(tmp_path / "l.json", column="x")


def test_whole_numbers_beyond_int64_are_floats_where_float64_is_asked_for(tmp_path: Path) -> None:
    rows = [{"target": [1, 2**53 + 1, 2**63]}, {"target": [2, 3]}, {"target": [2**64 - 1, 0.1]}]
    for path in written(tmp_path / "a", rows):
        with pytest.raises(wr.CorruptError, match="the whole number 9223372036854775808 does not fit int64") as error:
            wr.open(path, column="target")
        assert 'dtype="float64"' in error.value.hint
        ds = wr.open(path, column="target", dtype="float64")
        assert [series.tolist() for series in ds] == [[float(x) for x in row["target"]] for row in rows], path.name
        assert ds[0].dtype == np.float64


def test_the_only_list_of_numbers_is_the_series(tmp_path: Path) -> None:
    rows = [{"start": "2021-01-01", "target": [1, 2, i], "item_id": f"T{i}"} for i in range(3)]
    for path in written(tmp_path / "a", rows):
        ds = wr.open(path)
        assert ds[2].tolist() == [1, 2, 2] and ds[2].dtype == np.int64, path.name
        assert ds.extras(2) == {"start": "2021-01-01", "item_id": "T2"}
        assert wr.verify(path)["problems"] == []
    for path in written(tmp_path / "b", [{"name": "a", "values": [[0.5, 1.5], [2.5, 3.5]], "unit": {"of": [1]}}]):
        assert wr.open(path)[0].shape == (2, 2), path.name
    # A long one, behind which `sequence` may still come.
    long = [0.5] * 5_000_000
    (tmp_path / "long.json").write_text(json.dumps([{"values": long, "id": 1}]))
    assert wr.open(tmp_path / "long.json").length(0) == len(long)
    (tmp_path / "later.json").write_text(json.dumps([{"values": [1, 2], "sequence": [3]}]))
    assert wr.open(tmp_path / "later.json")[0].tolist() == [3]
    # The usual key is the only one where it is named; lists are series by themselves then, too.
    with pytest.raises(wr.CorruptError, match="`sequence`"):
        wr.open(tmp_path / "a" / "rows.json", column="sequence")
    (tmp_path / "lists.json").write_text("[[1, 2]]")
    assert wr.open(tmp_path / "lists.json", column="sequence")[0].tolist() == [1, 2]
    # One record without it is an error, not another series.
    (tmp_path / "gap.json").write_text('[{"target": [1]}, {"other": [2]}]')
    with pytest.raises(wr.CorruptError, match="`target`") as error:
        wr.open(tmp_path / "gap.json")
    assert error.value.record == 1 and "other" in error.value.hint
    for text in ('{"text": "a", "embedding": [0.5]}', '{"ids": [1, 2]}', '{"messages": [{"a": 1}], "target": [1]}'):
        (tmp_path / "t.jsonl").write_text(text + "\n")
        assert wr.open(tmp_path / "t.jsonl")[0] == json.loads(text)


def test_an_array_may_be_one_series(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    array = np.arange(7000, dtype=np.float64).reshape(1000, 7)
    np.save(tmp_path / "a.npy", array)
    np.save(tmp_path / "f.npy", np.asfortranarray(array))
    np.savez(tmp_path / "a.npz", x=array)
    np.savez_compressed(tmp_path / "c.npz", x=array)
    (tmp_path / "a.json").write_text(json.dumps(array.tolist()))
    (tmp_path / "a.yaml").write_text(json.dumps(array[:50].tolist()))
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(array))
    (tmp_path / "d.pkl").write_bytes(pickle.dumps({"sequence": array, "id": 1}))
    for path in sorted(tmp_path.glob("*.*")):
        series = wr.open(path, axis="time")
        wanted = array[:50] if path.suffix == ".yaml" else array
        assert len(series) == 1 and np.array_equal(series[0], wanted), path.name
        window = series.windows(20, scaler="zero")[1]["input_ids"]
        right = (wanted - wanted.mean()) / wanted.std()
        np.testing.assert_allclose(window, right[20:40], rtol=1e-6)
        assert not caplog.records
        if path.name == "d.pkl":
            continue
        rows = wr.open(path)
        assert len(rows) == len(wanted) and rows[1].tolist() == list(range(7, 14))
        rows.windows(96, prediction_length=24)
        (told,) = caplog.records
        assert f"{len(wanted)} of {len(wanted)} windows are padded" in told.getMessage()
        assert 'wr.open(x, axis="time")' in told.getMessage()
        caplog.clear()
        rows.windows(6)
        assert not caplog.records
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4)))
    with pytest.raises(wr.UnsupportedError, match="as one series"):
        wr.open(tmp_path / "cube.npy", axis="time")
    (tmp_path / "l.jsonl").write_text("[1, 2]\n")
    with pytest.raises(wr.ConfigError, match="axis was given"):
        wr.open(tmp_path / "l.jsonl", axis="time")
    # Another reading of the same bytes is other data.
    views = [wr.open(tmp_path / "a.npy", axis=axis).windows(3) for axis in (None, "time")]
    plans = {wr.Loader(view, batch_size=1).plan.split("source=")[1].split(";")[0] for view in views}
    assert len(plans) == 2


def test_shards_hold_channels(tmp_path: Path) -> None:
    series = [np.arange(n * 3, dtype=np.float32).reshape(n, 3) for n in (4, 1, 9)]
    wr.write(tmp_path / "plain", series, to="shards")
    wr.write(tmp_path / "normal", ({"sequence": x.astype(np.float64) + 1e9, "id": len(x)} for x in series), to="shards", normalize=True)
    for name in ("plain", "normal"):
        ds = wr.open(tmp_path / name)
        assert [len(x) for x in ds] == [4, 1, 9] and ds.info()["channels"] == 3
        assert wr.verify(tmp_path / name)["problems"] == []
    assert all(np.array_equal(a, b) for a, b in zip(wr.open(tmp_path / "plain"), series, strict=True))
    assert ds.extras(2) == {"id": 9}
    right = (series[2] - series[2].mean()) / series[2].std()
    np.testing.assert_allclose(ds.windows(8, scaler="zero")[-1]["input_ids"], right[:8], rtol=1e-5)
    for wrong in ([series[0], [1.0, 2.0]], [[1.0], series[0]], [series[0], np.zeros((2, 4))]):
        with pytest.raises(wr.ConfigError, match="among records") as error:
            wr.write(tmp_path / "wrong", wrong, to="shards")
        assert error.value.record == 1
    with pytest.raises(wr.ConfigError, match="of shape"):
        wr.write(tmp_path / "wrong", [np.zeros((2, 2, 2))], to="shards")
    assert not (tmp_path / "wrong").exists()
    assert wr.write(tmp_path / "none", [], to="shards")["records"] == 0


@pytest.mark.parametrize("protocol", range(6))
def test_times_beside_a_series_are_text(tmp_path: Path, protocol: int) -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    extras: dict[str, tuple[Any, Any]] = {
        "start": (dt.datetime(2020, 1, 2, 3, 4, 5, 678), "2020-01-02T03:04:05.000678"),
        "utc": (dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc), "2020-01-02T00:00:00+00:00"),
        "west": (dt.datetime(1999, 12, 31, tzinfo=dt.timezone(-dt.timedelta(hours=3.5))), "1999-12-31T00:00:00-03:30"),
        "zone": (dt.datetime(2020, 10, 25, 2, 30, tzinfo=berlin, fold=1), "2020-10-25T02:30:00[Europe/Berlin]"),
        "date": (dt.date(9999, 12, 31), "9999-12-31"),
        "time": (dt.time(23, 59, 1), "23:59:01"),
        "span": (dt.timedelta(days=-1, seconds=5, microseconds=7), "-1 day, 0:00:05.000007"),
        "price": (decimal.Decimal("1.50"), "1.50"),
        "hour": (np.datetime64("2020-01-02T03", "h"), "2020-01-02T03"),
        "step": (np.timedelta64(15, "m"), "15 minutes"),
        "never": (np.datetime64("NaT", "ns"), "NaT"),
        "index": (np.array(["2020-01-01", "2020-02-29"], "M8[D]"), ["2020-01-01", "2020-02-29"]),
        "big": (np.array(["2020-01-01"], ">M8[ns]"), ["2020-01-01T00:00:00.000000000"]),
    }
    record = {"sequence": [1.0, 2.5], **{name: value for name, (value, _) in extras.items()}}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps([record], protocol=protocol))
    ds = wr.open(tmp_path / "a.pkl")
    assert ds[0].tolist() == [1, 2.5]
    assert ds.extras(0) == {name: text for name, (_, text) in extras.items()}


def test_tensors_of_unsigned_numbers_in_a_pickle(tmp_path: Path) -> None:
    values = [1, 2, 65535]
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        series = [torch.tensor(values).to(dtype), torch.nn.Parameter(torch.tensor([7]).to(dtype), requires_grad=False)]
        (tmp_path / "a.pkl").write_bytes(pickle.dumps(series))
        assert [x.tolist() for x in wr.open(tmp_path / "a.pkl")] == [values, [7]]


def test_only_metadata_is_told_to_become_null(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    series = {
        "a.jsonl": '{"start": "2020", "target": [1.0, NaN, 2.5]}\n{"start": "2020", "target": [NaN]}\n',
        "b.json": '[{"values": [[1.0, 2.0], [NaN, 4.0]]}]',
        "c.yaml": "- {n: 3, x: [.nan, 1.5]}\n",
    }
    for name, text in series.items():
        (tmp_path / name).write_text(text)
        assert np.isnan(wr.open(tmp_path / name)[0]).any(), name
    assert not caplog.records
    metadata = {
        "d.jsonl": '{"noise": [NaN, 1.0], "sequence": [1.0]}\n{"sequence": [2.0], "noise": [NaN]}\n',
        "e.json": '[{"values": [1.0, NaN], "noise": Infinity}]',
    }
    for name, text in metadata.items():
        (tmp_path / name).write_text(text)
        ds = wr.open(tmp_path / name)
        assert ds.extras(0)["noise"] in (None, [None, 1.0]), name
        (told,) = caplog.records
        assert "in the metadata of a record is read as null" in told.getMessage()
        caplog.clear()


def test_a_name_that_is_not_utf8_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "one"}\n')
    other = os.fsencode(folder) + b"/lies-mich-f\xfcr.md"
    Path(os.fsdecode(other)).write_text("x")
    assert len(wr.open(folder)) == 1
    assert "name is not UTF-8" in caplog.text
    assert wr.tokenize(folder, tmp_path / "o", tokenizer="bytes")["documents"] == 1
    assert wr.verify(folder)["problems"] == []
    # Once, with what it is really called.
    told = [record.getMessage() for record in caplog.records if "name is not UTF-8" in record.getMessage()]
    assert len(told) == 1
    assert told[0].startswith(f'"{folder}/lies-mich-f\\xFCr.md": no data is read from it')
    # Data must not vanish.
    data = os.fsencode(folder) + b"/f\xfcr.jsonl"
    Path(os.fsdecode(data)).write_text('{"text": "two"}\n')
    with pytest.raises(wr.UnsupportedError, match=r"^a file name that is not UTF-8\n") as found:
        wr.open(folder)
    assert str(found.value).count("at:") == 1
    with pytest.raises(wr.UnsupportedError, match=r"^a file name that is not UTF-8\n"):
        wr.tokenize(folder, tmp_path / "no", tokenizer="bytes")
