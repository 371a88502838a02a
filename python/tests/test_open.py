"""`open` and the records it gives: values, dtypes, ways to index, extras, info."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr


def lines(path: Path, *records: str) -> Path:
    path.write_text("".join(record + "\n" for record in records))
    return path


def test_tokens_come_in_the_stored_dtype_and_read_only(tokens: Path) -> None:
    ds = wr.open(tokens, format="tokens", dtype="uint16")
    record = ds[0]
    assert (len(ds), record.dtype, record.shape) == (1, np.uint16, (20_000,))
    assert np.array_equal(record, np.arange(20_000))
    assert not record.flags.writeable
    with pytest.raises(ValueError):
        record[0] = 1


@pytest.mark.parametrize("dtype", ["uint16", np.uint16, np.dtype("<u2"), "<u2", "torch.uint16"])
def test_a_dtype_may_be_said_in_many_ways(tokens: Path, dtype: Any) -> None:
    assert wr.open(tokens, format="tokens", dtype=dtype)[0].dtype == np.uint16


def test_numpy_reads_i8_as_eight_bytes_and_so_does_windrow(tmp_path: Path) -> None:
    np.arange(4, dtype=np.int64).tofile(tmp_path / "x.bin")
    assert wr.open(tmp_path / "x.bin", format="tokens", dtype="i8")[0].tolist() == [0, 1, 2, 3]


def test_path_may_be_a_string_or_a_path(tokens: Path) -> None:
    assert len(wr.open(str(tokens), dtype="uint16")) == len(wr.open(tokens, dtype="uint16")) == 1


def test_json_records_are_parsed_values(tmp_path: Path) -> None:
    records = ['{"a": [1, -2.5e3, true, null]}', '"text"', "7", '{"é": "\\ud83d\\ude00\\n"}']
    ds = wr.open(lines(tmp_path / "a.jsonl", *records))
    assert list(ds) == [json.loads(r) for r in records]


@pytest.mark.parametrize(
    "text",
    [
        "123456789012345678901234567890",
        "-9223372036854775809",
        "[9223372036854775807, -9223372036854775808]",
        "0.1",
        "-0.0",
        "1e-400",
        "2.2250738585072014e-308",
        "179769313486231570000",
        '{"k": 1, "k": 2}',
        '{"": {"": []}}',
        '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u4e2d"',
        '  [ 1 , { "a" : [ ] } ]  ',
        "[" * 100 + "]" * 100,
    ],
)
def test_json_is_read_as_python_reads_it(tmp_path: Path, text: str) -> None:
    # A list of numbers is a series, unless it is read as JSON outright.
    found = wr.open(lines(tmp_path / "a.jsonl", text), format="jsonl")[0]
    assert found == json.loads(text)
    assert repr(found) == repr(json.loads(text))


@pytest.mark.parametrize(
    ("text", "byte"),
    [
        ("NaN", 0),
        ("[1, Infinity]", 4),
        ("-Infinity", 1),
        ("1e400", 0),
        ("[1, " + "9" * 400 + "]", 4),
        ("9" * 5000, 0),
        ("{'a': 1}", 1),
        ('{"a" 1}', 5),
        ("[1 2]", 3),
        ("[1,]", 3),
        ("01", 2),
        ("1.", 2),
        ('"\\x"', 2),
        ('"\\ud800"', 7),
        ('"open', 0),
        ('"tab\there"', 4),
        ("[1] x", 4),
        ("tru", 0),
        ("[" * 200, 128),
    ],
)
def test_what_is_not_json_is_an_error_at_its_byte(tmp_path: Path, text: str, byte: int) -> None:
    ds = wr.open(lines(tmp_path / "a.jsonl", '"before"', text))
    with pytest.raises(wr.CorruptError) as found:
        ds[1]
    assert (found.value.record, found.value.byte) == (1, len('"before"\n') + byte)
    assert str(tmp_path / "a.jsonl") in str(found.value)
    assert ds[0] == "before"


def test_every_way_to_index(tmp_path: Path) -> None:
    ds = wr.open(lines(tmp_path / "a.jsonl", *map(str, range(10))))
    assert (ds[0], ds[-1], ds[np.int64(3)], ds[np.uint8(4)]) == (0, 9, 3, 4)
    assert ds[2:10:2] == [2, 4, 6, 8]
    assert ds[::-1] == list(range(9, -1, -1))
    assert ds[5:2] == []
    assert ds[[5, 1, 1, -1]] == [5, 1, 1, 9]
    assert ds[np.array([3, -2])] == [3, 8]
    assert ds[()] == ds[[]] == []
    assert list(ds) == list(range(10))


@pytest.mark.parametrize("index", [10, -11, 10**30, np.int64(10), [0, 10]])
def test_out_of_range_is_an_index_error(tmp_path: Path, index: Any) -> None:
    ds = wr.open(lines(tmp_path / "a.jsonl", *map(str, range(10))))
    with pytest.raises(IndexError, match="there are 10"):
        ds[index]


@pytest.mark.parametrize("index", [1.0, "1", None, {"a": 1}, np.array([True] * 10), [1.5], np.zeros((2, 2))])
def test_no_index_is_a_type_error(tmp_path: Path, index: Any) -> None:
    ds = wr.open(lines(tmp_path / "a.jsonl", *map(str, range(10))))
    with pytest.raises(TypeError):
        ds[index]


def test_split_opens_the_folder_below(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    lines(tmp_path / "train" / "a.jsonl", "1", "2")
    assert wr.open(tmp_path, split="train")[:] == wr.open(tmp_path / "train")[:] == [1, 2]


def test_info_counts(documents: Path) -> None:
    info = wr.open(documents).info()
    assert info["format"] == "forager"
    assert (info["records"], info["values"], info["dtype"]) == (60, sum(range(60)), "uint16")
    assert (info["length_min"], info["length_mean"], info["length_max"]) == (0, 29.5, 59)
    assert info["bytes"] == sum(file["size"] for file in info["files"])


def test_extras_are_empty_where_nothing_stands_beside(documents: Path) -> None:
    assert wr.open(documents).extras(-1) == {}


def test_a_data_set_pickles_by_path(documents: Path) -> None:
    ds = wr.open(documents)
    again = pickle.loads(pickle.dumps(ds))
    assert again.path == ds.path
    assert all(np.array_equal(a, b) for a, b in zip(again, ds, strict=True))


@pytest.mark.parametrize(
    ("line", "format"),
    [
        ("[1, 2]", "series-jsonl"),
        ("[[1, 2], [3, 4]]", "series-jsonl"),
        ('{"id": {"a": [1]}, "sequence": [1, 2], "tags": ["x"]}', "series-jsonl"),
        ('[1, {"a": []}]', "jsonl"),
        ('[1, "a"]', "jsonl"),
        ('["a", 1]', "jsonl"),
        ('{"text": "a", "ids": [1, 2]}', "jsonl"),
        ('{"sequence": "a"}', "jsonl"),
        ("1", "jsonl"),
    ],
)
def test_a_line_of_numbers_is_a_series(tmp_path: Path, line: str, format: str) -> None:
    assert wr.open(lines(tmp_path / "a.jsonl", line)).format == format


def test_bytes_are_those_of_the_record(tmp_path: Path) -> None:
    assert wr.open(lines(tmp_path / "a.jsonl", "[1,  2]"), format="jsonl").bytes(0) == b"[1,  2]"


def test_real_text_is_what_json_reads(testdata: Path) -> None:
    path = testdata / "text" / "corpus.jsonl"
    ds = wr.open(path)
    expected = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(ds) == len(expected)
    assert ds[:] == expected


def test_arrays_beside_the_tokens_come_as_a_dict(testdata: Path, tmp_path: Path) -> None:
    case = testdata / "golden" / "3_forager" / "30_aux_loss_mask"
    shutil.copytree(case / "expected_index", tmp_path / "index")
    shutil.copytree(case / "expected_samples", tmp_path / "tokenized-samples")
    sample = wr.open(tmp_path)[0]
    stored = (case / "expected_samples" / "a-tokenized-samples.bin").read_bytes()
    assert np.array_equal(sample["tokens"], np.frombuffer(stored, np.uint32, count=5))
    assert np.array_equal(sample["loss_mask"], np.frombuffer(stored, np.uint8, count=5, offset=20))


@pytest.mark.parametrize(
    ("url", "error", "says"),
    [
        ("hf://datasets/owner", wr.ConfigError, "expected hf://datasets/owner/name"),
        ("hf://models/owner/name", wr.ConfigError, "models and spaces hold no data sets"),
        ("ftp://example.com/a.bin", wr.UnsupportedError, "expected s3://, gs://"),
        ("file://far/data/a.jsonl", wr.UnsupportedError, "file:///PATH"),
    ],
)
def test_a_url_that_is_none_says_what_one_is(url: str, error: type[wr.WindrowError], says: str) -> None:
    with pytest.raises(error) as raised:
        wr.open(url)
    assert says in str(raised.value)


def test_a_file_url_is_the_path_that_it_names(tmp_path: Path) -> None:
    folder = tmp_path / "two words, 100 %"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "one"}\n')
    for url in (folder.as_uri(), folder.as_uri().replace("file://", "file://localhost"), (folder / "a.jsonl").as_uri()):
        ds = wr.open(url)
        assert ds[0] == {"text": "one"}
        assert ds.path.startswith(str(folder)) and pickle.loads(pickle.dumps(ds))[0] == ds[0]
    assert wr.open(tmp_path.as_uri(), split=folder.name)[0] == {"text": "one"}
    with pytest.raises(wr.ConfigError, match="two hexadecimal digits"):
        wr.open("file:///a%2")


def test_an_edit_that_keeps_size_time_and_end_is_not_served_from_the_cache(tmp_path: Path) -> None:
    rest = ", ".join(["7"] * 3000)
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(f"[[1, {rest}]]")
    times = os.stat(one)
    assert wr.open(one)[0][0] == 1
    one.write_text(f"[[2, {rest}]]")
    os.utime(one, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert wr.open(one)[0][0] == 2
    # A link that leads elsewhere afterwards.
    other.write_text(f"[[3, {rest}]]")
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    link = tmp_path / "link.json"
    for path, first in ((one, 2), (other, 3)):
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        assert wr.open(link)[0][0] == first
