"""Rows as GluonTS writes them: `start` and `target`, of several channels `[C, T]`, a missing value as the text "NaN"."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import windrow as wr

CHANNELS = np.array([[1.5, 2.5, 3.5, 4.5], [10.0, 20.0, 30.0, 40.0], [-1.0, -2.0, -3.0, -4.0]])


def rows(n: int = 2) -> list[dict]:
    return [{"start": "2021-01-01", "target": (CHANNELS[:, : 4 - i] + i).tolist(), "item_id": f"T{i}"} for i in range(n)]


def written(folder: Path, rows: list[dict]) -> list[Path]:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "a.jsonl").write_text(lines)
    (folder / "b.json").write_text(lines)
    (folder / "c.json").write_text(json.dumps(rows, indent=1))
    (folder / "d.yaml").write_text("".join(f"- {json.dumps(row)}\n" for row in rows))
    (folder / "e.pkl").write_bytes(pickle.dumps([{**row, "target": np.array(row["target"])} for row in rows]))
    return sorted(folder.iterdir())


def test_channels_come_first_in_the_file_and_last_in_a_record(tmp_path: Path) -> None:
    for path in written(tmp_path, rows()):
        for options in ({}, {"column": "target"}):
            data = wr.open(path, **options)
            assert [data[i].shape for i in range(2)] == [(4, 3), (3, 3)], path
            for i in range(2):
                np.testing.assert_array_equal(data[i], (CHANNELS[:, : 4 - i] + i).T.astype(np.float32))
            assert data.extras(0) == {"start": "2021-01-01", "item_id": "T0"}
        assert wr.open(path).windows(2)[0]["input_ids"].tolist() == CHANNELS.T[:2].tolist()


def test_covariates_beside_a_target_leave_it_the_series(tmp_path: Path) -> None:
    beside = {"feat_static_cat": [3], "feat_static_real": [0.5, 1.5], "feat_dynamic_real": [[0.5, 0.25, 0.125]]}
    for order in (lambda row: row, lambda row: dict(reversed(row.items()))):
        rows = [order({"start": "2024-01-01", "target": [1 + i, 2, 3], **beside}) for i in range(2)]
        for path in written(tmp_path, rows):
            data = wr.open(path)
            assert [record.tolist() for record in data] == [[1, 2, 3], [2, 2, 3]], path
            assert data.extras(0) == {"start": "2024-01-01", **beside}, path
    # Without a start, numbers beside others are those of an object as any.
    (tmp_path / "f.jsonl").write_text(json.dumps({"target": [1, 2], **beside}) + "\n")
    assert wr.open(tmp_path / "f.jsonl").format == "jsonl"


def test_start_may_follow_and_a_record_may_be_large(tmp_path: Path) -> None:
    large = np.arange(3 * 70_001).reshape(3, -1)
    (tmp_path / "a.jsonl").write_text(json.dumps({"target": large.tolist(), "start": "2021"}) + "\n")
    assert (wr.open(tmp_path / "a.jsonl")[0] == large.T).all()
    (tmp_path / "one.jsonl").write_text(json.dumps({"start": "2021", "target": [[1, 2, 3]]}) + "\n")
    assert wr.open(tmp_path / "one.jsonl")[0].tolist() == [[1], [2], [3]]


def test_rows_of_others_are_what_they_are(tmp_path: Path) -> None:
    values = [[1, 2, 3], [4, 5, 6]]
    for name, row in {
        "no start": {"target": values},
        "sequence": {"start": "2021", "sequence": values},
        "flat": {"start": "2021", "target": values[0]},
    }.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(row) + "\n")
        assert wr.open(path)[0].tolist() == row.get("sequence", row.get("target"))
    ragged = tmp_path / "ragged.jsonl"
    ragged.write_text(json.dumps({"start": "2021", "target": [[1, 2, 3], [4, 5]]}) + "\n")
    with pytest.raises(wr.CorruptError, match="expected 3 numbers in row 1"):
        wr.open(ragged)
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps({"start": "2021", "target": values[:n]}) + "\n" for n in (1, 2)))
    with pytest.raises(wr.CorruptError, match=r"a record \[T, 2\], where those before it are \[T, 1\]"):
        wr.open(other)


def test_a_missing_value_is_text(tmp_path: Path) -> None:
    for target, right in ((["NaN", 2.5, "NaN"], [np.nan, 2.5, np.nan]), ([["NaN", 1], [2, 3]], [[np.nan, 2], [1, 3]])):
        for path in written(tmp_path, [{"start": "2021", "target": target}] * 2)[:4]:
            np.testing.assert_array_equal(wr.open(path)[0], np.array(right, np.float32), err_msg=str(path))
    for row in ({"start": "2021", "target": [1.5, "nil"]}, {"sequence": [1.5, "NaN"]}):
        (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
        with pytest.raises(wr.CorruptError, match="expected a number, found a string"):
            wr.open(tmp_path / "x.jsonl", column=None if "sequence" in row else "target", format="series-jsonl")
