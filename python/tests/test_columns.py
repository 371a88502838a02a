"""Records that are rows of named columns, and one column as numbers."""

import json
import pickle

import numpy as np
import pytest

import windrow as wr

ROWS = [
    {"id": 1, "text": "hay", "nested": {"a": [1, 2.5]}, "big": 2**64 - 1},
    {"text": "straw", "id": None, "nested": None, "big": -1},
    {"id": 3, "text": "", "other": True},
]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_columns_of_json_lines_are_rows_in_the_order_asked_for(lines):
    ds = wr.open(lines, columns=["text", "id"])
    assert len(ds) == 3
    assert [list(row) for row in ds] == [["text", "id"]] * 3
    assert ds[0] == {"text": "hay", "id": 1}
    assert ds[1:] == [{"text": "straw", "id": None}, {"text": "", "id": 3}]
    assert ds[[2, 0]] == [{"text": "", "id": 3}, {"text": "hay", "id": 1}]
    assert pickle.loads(pickle.dumps(ds))[-1] == ds[-1]
    assert ds.info()["columns"] == [["text", "JSON"], ["id", "JSON"]]
    assert "rows of text, id" in repr(ds)
    with pytest.raises(IndexError):
        ds[3]


def test_a_missing_key_is_none_and_values_keep_their_types(lines):
    ds = wr.open(lines, columns=["other", "big", "nested"])
    assert ds[0] == {"other": None, "big": 2**64 - 1, "nested": {"a": [1, 2.5]}}
    assert ds[2] == {"other": True, "big": None, "nested": None}


def test_a_folder_with_an_index_has_columns_too(lines):
    wr.index(lines.parent)
    ds = wr.open(lines.parent, columns=["id"])
    assert ds.format == "forager" and [row["id"] for row in ds] == [1, None, 3]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"columns": ["txt"]}, "no key 'txt'|no key \"txt\""),
        ({"columns": []}, "no column is named"),
        ({"columns": ["id", "id"]}, "twice"),
        ({"columns": ["id"], "column": "id"}, "give one of them"),
        ({"columns": ["id"], "format": "series-jsonl"}, "no rows of columns"),
    ],
)
def test_wrong_columns_are_refused(lines, options, what):
    with pytest.raises(wr.ConfigError, match=what) as caught:
        wr.open(lines, **options)
    assert caught.value.hint or "twice" in what or "named" in what


def test_a_record_that_is_no_object_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n[1, 2]\n{"id": 2}\n')
    ds = wr.open(path, columns=["id"])
    assert ds[2] == {"id": 2}
    with pytest.raises(wr.CorruptError, match="found a list") as caught:
        ds[1]
    assert caught.value.record == 1 and str(caught.value.path).endswith("a.jsonl")


def test_rows_have_no_views_and_say_what_has(lines):
    ds = wr.open(lines, columns=["text", "id"])
    for view in (lambda: ds.pack(8), lambda: ds.windows(context_length=4), lambda: ds.records(4), lambda: ds.codes(4)):
        with pytest.raises(wr.ConfigError, match="rows of text, id"):
            view()
    with pytest.raises(wr.ConfigError, match="rows of text, id"):
        wr.convert(ds, lines.parent / "out", to="shards")


def test_one_column_of_numbers_is_the_record_and_the_others_are_beside_it(tmp_path):
    path = tmp_path / "ids.jsonl"
    rows = [{"doc": "a", "input_ids": [5, 6, 7]}, {"doc": "b", "input_ids": []}, {"input_ids": [2**40], "doc": None}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ds = wr.open(path, column="input_ids")
    assert [record.tolist() for record in ds] == [[5, 6, 7], [], [2**40]]
    assert ds[0].dtype == np.int64
    assert [ds.extras(i) for i in range(3)] == [{"doc": "a"}, {"doc": "b"}, {"doc": None}]
    assert ds.pack(2)[0]["input_ids"].tolist() == [5, 6]


def test_fractions_make_a_column_float32(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"x": [1, 2], "k": 0}\n{"x": [0.5], "k": 1}\n')
    ds = wr.open(path, column="x")
    assert ds[0].dtype == np.float32 and ds[1].tolist() == [0.5] and ds.extras(1) == {"k": 1}


def test_a_record_without_the_column_is_named(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"x": [1, 2]}\n{"y": [3]}\n')
    with pytest.raises(wr.CorruptError, match="x") as caught:
        wr.open(path, column="x")
    assert caught.value.record == 1


def test_the_program_shows_rows(lines, capfd):
    from windrow import _native

    assert _native._main(["windrow", "inspect", str(lines), "--columns", "text,id"]) == 0
    assert "columns" in (out := capfd.readouterr().out) and "text (JSON), id (JSON)" in out
    assert _native._main(["windrow", "peek", str(lines), "--columns", "text,id", "-n", "1"]) == 0
    assert "hay" in capfd.readouterr().out


def test_a_table_of_one_number_a_row_names_from_frame(tmp_path):
    for to in ("parquet", "arrow"):
        path = tmp_path / f"a.{to}"
        wr.write(path, [{"date": f"2024-01-{i + 1:02}", "a": i + 0.5} for i in range(9)], to=to)
        with pytest.raises(wr.ConfigError, match="wr.from_frame"):
            wr.open(path).windows(8)
        with pytest.raises(wr.ConfigError, match="wr.from_frame"):
            wr.open(path, column="a")
