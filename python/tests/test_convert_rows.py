"""Rows and JSON records as JSON Lines, and JSON records as rows of other formats."""

import json
import math

import numpy as np
import pytest

import windrow as wr
import foreign_cases


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def like(a, b):
    """Whether two values are the same but for the digits of narrow floats."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or np.float32(a) == np.float32(b) or math.isclose(a, b, rel_tol=1e-2)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(like(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(like, a, b))
    return type(a) is type(b) and a == b


def fits(value):
    """Whether JSON holds it."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(fits, value.values()))
    return all(map(fits, value)) if isinstance(value, list) else not isinstance(value, bytes)


CASES = [(kind, name) for kind in ("parquet", "arrow", "webdataset") for name in foreign_cases.names(kind)]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=str)
def test_golden_rows_come_back(kind, name, tmp_path):
    folder = foreign_cases.GOLDEN / kind / name
    case = json.loads((folder / "case.json").read_text())
    if case["records"] == "error":
        return
    ds = wr.open(folder / case["open"], **{k: v for k, v in case["options"].items() if k != "column"})
    if not len(ds):
        with pytest.raises(wr.ConfigError, match="no records to convert"):
            wr.convert(ds, tmp_path / "out.jsonl", to="jsonl")
        return
    if not isinstance(ds[0], dict):
        return
    rows = [plain(row) for row in ds]
    out = tmp_path / "out.jsonl"
    if not all(map(fits, rows)):
        with pytest.raises(wr.ConfigError, match="which JSON does not hold") as raised:
            wr.convert(ds, out, to="jsonl")
        assert raised.value.field in rows[raised.value.record]
        assert not out.exists()
        return
    assert wr.convert(ds, out, to="jsonl")["records"] == len(rows)
    again = wr.open(out)
    assert again.format == "jsonl" and len(again) == len(rows)
    assert all(map(like, again, rows))
    assert all(map(like, map(json.loads, out.read_text().splitlines()), rows))
    assert wr.verify(out)["problems"] == []


def test_rows_that_look_like_series_stay_rows(tmp_path):
    rows = [{"id": f"a{i}", "values": [0.5 * i, 1.5]} for i in range(3)]
    wr.write(tmp_path / "a.jsonl", rows, to="jsonl")
    ds = wr.open(tmp_path / "a.jsonl")
    assert (ds.format, list(ds)) == ("jsonl", rows)
    assert wr.open(tmp_path / "a.jsonl", column="values")[1].tolist() == [0.5, 1.5]


def test_json_records_are_copied_and_become_rows_elsewhere(tmp_path):
    records = [{"text": "é", "n": 12345678901234567890123, "x": 1e-7, "l": [1, {"a": None}]}, {"text": "b"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    wr.convert(tmp_path / "a.jsonl", tmp_path / "b.jsonl", to="jsonl")
    assert (tmp_path / "b.jsonl").read_text() == (tmp_path / "a.jsonl").read_text()
    assert wr.open(tmp_path / "b.jsonl")[0] == records[0]
    rows = [{"text": "a", "n": 1}, {"text": "b", "n": 2}]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(record) + "\n" for record in rows))
    wr.convert(tmp_path / "c.jsonl", tmp_path / "mds", to="mds")
    assert list(wr.open(tmp_path / "mds")) == rows
    (tmp_path / "d.jsonl").write_text('{"a": NaN}\n')
    with pytest.raises(wr.CorruptError) as raised:
        wr.convert(tmp_path / "d.jsonl", tmp_path / "e.jsonl", to="jsonl")
    assert raised.value.record == 0


def test_what_json_does_not_hold_names_its_column(tmp_path):
    for value in (b"raw", float("nan"), np.array([np.inf])):
        with pytest.raises(wr.ConfigError, match='column "x" holds') as raised:
            wr.write(tmp_path / "a.jsonl", [{"x": 1, "y": 2}, {"x": value, "y": 2}], to="jsonl")
        assert (raised.value.record, raised.value.field) == (1, "x")
        assert not (tmp_path / "a.jsonl").exists()
