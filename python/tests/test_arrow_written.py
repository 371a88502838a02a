"""Arrow and Parquet as windrow writes them: read back equal, and by pyarrow and datasets; what a column does not hold is named."""

import base64
import json

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import GOLDEN, same, value, with_loaders

FORMATS = ["arrow", "parquet"]

# Rows as JSON, with bytes in base64, and the type of each column.
READ = """
import base64, json, sys
import pyarrow as pa, pyarrow.parquet as pq
path = sys.argv[1]
def plain(value):
    if isinstance(value, bytes):
        return {"$b": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value
if path.endswith(".arrow"):
    table = pa.ipc.open_stream(pa.memory_map(path)).read_all()
    table.validate(full=True)
else:
    file = pq.ParquetFile(path)
    table = file.read()
    table.validate(full=True)
    assert file.metadata.created_by.startswith("windrow version "), file.metadata.created_by
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    assert all(group.column(i).has_offset_index for group in groups for i in range(group.num_columns))
print(json.dumps({"rows": plain(table.to_pylist()), "types": {f.name: str(f.type) for f in table.schema}}))
"""

DATASETS = """
import json, sys
import datasets
datasets.disable_progress_bars()
path = sys.argv[1]
if path.endswith(".arrow"):
    ds = datasets.Dataset.from_file(path)
else:
    ds = datasets.Dataset.from_parquet(path, cache_dir=sys.argv[2])
numpy = ds.with_format("numpy")
print(json.dumps({"rows": [ds[i] for i in range(len(ds))], "shapes": [numpy[i]["tokens"].shape for i in range(len(ds))]}))
"""


def path(folder, to):
    return folder / f"out.{to}"


def written(folder, records, to, **options):
    wr.write(path(folder, to), records, to=to, **options)
    assert wr.verify(path(folder, to))["problems"] == []
    return path(folder, to)


def jsonable(found):
    if isinstance(found, bytes):
        return {"$b": base64.b64encode(found).decode()}
    if isinstance(found, np.ndarray):
        return found.tolist()
    if isinstance(found, dict):
        return {key: jsonable(one) for key, one in found.items()}
    return [jsonable(one) for one in found] if isinstance(found, list) else found


ROWS = [
    {
        "int": None if i % 3 == 0 else i - 5,
        "large": 2**63 + i,
        "float": i / 4,
        "flag": i % 2 == 0,
        "late": None if i < 1500 else f"late {i}",
        "text": f"straw ü {i}",
        "raw": bytes([i % 256]) * (i % 4),
        "ids": np.arange(i % 7, dtype="uint16"),
        "grid": np.full((i % 3, 2), i, "float32"),
        "cube": np.full((2, 2, 3), i % 100, "int8"),
        "mask": np.array([True, i % 2 == 0]),
        "half": np.array([0.5, i % 8], "float16"),
        "words": ["a", None, f"b{i}"][: i % 4],
        "nested": None if i % 5 == 0 else {"k": i, "l": [1.5, i / 2], "m": {"t": [f"x{i}"]}},
    }
    for i in range(2300)
]


@pytest.mark.parametrize("to", FORMATS)
def test_rows_come_back_and_pyarrow_reads_the_same(tmp_path, to):
    out = written(tmp_path, ROWS, to)
    found = list(wr.open(out))
    # A list of numbers is an array here.
    expected = [row | {"nested": row["nested"] and row["nested"] | {"l": np.array(row["nested"]["l"])}} for row in ROWS]
    assert same(found, expected)
    read = with_loaders(READ, out)
    assert read["rows"] == jsonable(ROWS)
    assert read["types"]["ids"].startswith("list<") and "uint16" in read["types"]["ids"]
    assert "fixed_size_list" in read["types"]["grid"] and read["types"]["large"] == "uint64"
    assert "halffloat" in read["types"]["half"]


@pytest.mark.parametrize("to", FORMATS)
def test_the_same_rows_give_the_same_bytes(tmp_path, to):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, ROWS, to)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("to", FORMATS)
def test_numbers_are_records_with_their_metadata(tmp_path, to, channels, dtype):
    shape = [-1] if channels is None else [-1, channels]
    series = [(np.arange(n * (channels or 1)) % 100).astype(dtype).reshape(shape) for n in (5, 0, 1, 9)]
    out = written(tmp_path, series, to)
    ds = wr.open(out)
    assert ds.format == to and all(map(same, ds, series))
    named = written(tmp_path, ({"sequence": one, "name": f"s{i}"} for i, one in enumerate(series)), to, to_column="x", overwrite=True)
    ds = wr.open(named, column="x")
    assert all(map(same, ds, series)) and [ds.extras(i) for i in range(4)] == [{"name": f"s{i}"} for i in range(4)]
    wr.convert(ds, tmp_path / "back", to="shards")
    assert [record.tolist() for record in wr.open(tmp_path / "back")] == [one.tolist() for one in series]


@pytest.mark.parametrize("channels", [None, 4])
@pytest.mark.parametrize("to", FORMATS)
def test_datasets_reads_it(tmp_path, to, channels):
    shape = (7,) if channels is None else (7, channels)
    records = [np.arange(np.prod(shape), dtype="int32").reshape(shape) + i for i in range(30)]
    out = written(tmp_path, ({"sequence": one, "text": f"t{i}"} for i, one in enumerate(records)), to)
    read = with_loaders(DATASETS, out, tmp_path / "cache")
    assert read["rows"] == [{"tokens": one.tolist(), "text": f"t{i}"} for i, one in enumerate(records)]
    assert read["shapes"] == [list(shape)] * 30


CASES = [
    (group, name)
    for group in ("arrow", "mds", "parquet", "litdata", "series", "tokens")
    for name in foreign_cases.names(group)
    if json.loads((GOLDEN / group / name / "case.json").read_text())["records"] != "error"
]


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize(("group", "name"), CASES)
def test_golden_records_go_through_it(tmp_path, monkeypatch, group, name, to):
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    case = json.loads((GOLDEN / group / name / "case.json").read_text())
    try:
        ds = wr.open(GOLDEN / group / name / case["open"], **case["options"])
        records, extras = list(ds), [ds.extras(i) for i in range(len(ds))]
    except wr.WindrowError:
        # Of some cases only the numbers are data.
        assert case.get("error_ok") or "note" in case
        return
    try:
        wr.convert(ds, path(tmp_path, to), to=to)
    except wr.ConfigError as error:
        # What a column cannot hold is named.
        assert len(ds) == 0 or error.field or "bfloat16" in str(error), error
        assert not path(tmp_path, to).exists()
        return
    masked = name == "datatrove_loss"
    rows = case["records"] == "dicts" and not masked
    has_columns = masked or (extras and extras[0])
    found = wr.open(path(tmp_path, to), **({} if rows else {"column": "tokens"} if has_columns else {}))
    assert not masked or (found.info()["mask_columns"], ds.info()["mask_columns"]) == (["loss_mask"], ["loss"])
    assert len(found) == len(records)
    for i, record in enumerate(records):
        # A mask beside the tokens is a column; arrays of several dtypes become those of one.
        record = record["input_ids"] if isinstance(record, dict) and not rows else record
        record = {"value": record} if rows and not isinstance(record, dict) else record
        assert alike(found[i], record) or (name == "tokens_any_dtype" and np.array_equal(found[i], record))
        assert rows or masked or alike(found.extras(i), extras[i])
    if masked:
        masks = [[row["loss_masks"].tolist() for row in data.records(19)] for data in (found, ds)]
        assert masks[0] == masks[1] and any(0 in mask for mask in masks[0])


def alike(a, b):
    """Equal; a list of numbers may have become an array, a whole number among fractions one of them."""
    if isinstance(a, np.ndarray) and isinstance(b, list):
        return np.array_equal(a, np.array(b, a.dtype))
    if isinstance(a, dict) and isinstance(b, dict):
        return all(alike(a.get(key), b.get(key)) for key in a.keys() | b.keys())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, int):
        return a == b
    return same(a, b)


def test_values_of_golden_cases_are_read_here():
    assert len(CASES) > 60 and value({"$f": "1.5"}) == 1.5


@pytest.mark.parametrize("to", FORMATS)
def test_a_loader_gives_the_same_batches_as_from_the_source(tmp_path, to):
    ids = [np.arange(n, n + 40 + n % 9, dtype="uint16") for n in range(300)]
    wr.write(tmp_path / "shards", ids, to="shards")
    wr.convert(tmp_path / "shards", path(tmp_path, to), to=to)
    batches = [
        [next(loader)["input_ids"].tolist() for _ in range(5)]
        for loader in (wr.Loader(wr.open(p).pack(64), 4, seed=3) for p in (tmp_path / "shards", path(tmp_path, to)))
    ]
    assert batches[0] == batches[1]


MANY = 1500


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize(
    ("first", "last", "field", "says"),
    [
        ({"n": 1}, {"n": 0.5}, "n", "0.5, where the first rows hold int64"),
        ({"n": 1.0}, {"n": 2**60 + 1}, "n", "where the first rows hold float64"),
        ({"n": 1}, {"n": "x"}, "n", 'where the first rows hold int64'),
        ({"n": np.zeros(2, "int32")}, {"n": np.zeros(2, "int64")}, "n", "lists of int32"),
        ({"n": np.zeros((2, 3), "int32")}, {"n": np.zeros((2, 4), "int32")}, "n", "lists of lists of 3 int32"),
        ({"n": {"a": 1}}, {"n": {"b": 1}}, "n", "a field \"b\""),
        ({"n": 1}, {"n": 1, "m": 2}, "m", "a column, which the first rows lack"),
    ],
)
def test_a_later_value_of_another_type_is_named(tmp_path, to, first, last, field, says):
    with pytest.raises(wr.ConfigError, match=says) as caught:
        wr.write(path(tmp_path, to), [*[first] * MANY, last], to=to)
    assert (caught.value.record, caught.value.field) == (MANY, field) and caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", FORMATS)
def test_values_of_two_types_among_the_first_are_named(tmp_path, to):
    for rows, says in [
        ([{"n": 1}, {"n": "x"}], "a value of text; the rows before it hold int64"),
        ([{"n": 1}, {"n": [1, "a"]}], "a list with int64 and text"),
    ]:
        with pytest.raises(wr.ConfigError, match=says) as caught:
            wr.write(path(tmp_path, to), rows, to=to)
        assert (caught.value.record, caught.value.field) == (1, "n")


@pytest.mark.parametrize("to", FORMATS)
def test_a_column_waits_for_its_first_value(tmp_path, to):
    rows = [{"n": i, "seldom": None if i < 6000 else "there", "never": None, "empty": []} for i in range(6001)]
    found = wr.open(written(tmp_path, rows, to))
    assert found[6000] == rows[6000] and found[0] == rows[0]
    # Whole numbers among fractions, and what a row lacks.
    rows = [{"x": 1}, {"x": 2.5, "y": "a"}]
    found = wr.open(written(tmp_path, rows, to, overwrite=True))
    assert list(found) == [{"x": 1.0, "y": None}, {"x": 2.5, "y": "a"}]


@pytest.mark.parametrize("to", FORMATS)
def test_what_it_does_not_hold_is_refused_and_nothing_is_left(tmp_path, to):
    for records, options, says in [
        ([{}], {}, "a row without columns"),
        ([{"n": 2**70}], {}, "which 64 bits do not hold"),
        ([{"n": np.zeros((2, 0))}], {}, "shape"),
        ([[1.0]], {"dtype": "bfloat16"}, "no bfloat16 dtype"),
        ([{"sequence": [1], "tokens": 2}], {}, "also the name of its numbers"),
    ]:
        with pytest.raises(wr.ConfigError, match=says):
            wr.write(path(tmp_path, to), records, to=to, **options)
    with pytest.raises(wr.ConfigError, match="a name that ends in"):
        wr.write(tmp_path / "out", [[1]], to=to)
    if to == "parquet":
        with pytest.raises(wr.ConfigError, match="a struct without fields") as caught:
            wr.write(path(tmp_path, to), [{"n": {}}], to=to)
        assert caught.value.field == "n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("page", [False, True])
def test_every_split_in_a_folder_is_verified(tmp_path, to, page):
    def data(split, count=1):
        return tmp_path / "data" / f"{split}-00000-of-{count:05}.{to}"

    (tmp_path / "data").mkdir()
    wr.write(data("train"), [{"text": "a", "label": 1}, {"text": "b", "label": 0}], to=to)
    # Others have columns of their own.
    wr.write(data("test"), [{"text": "c"}], to=to)
    for manifest in (tmp_path / "data").glob("*.windrow*"):
        manifest.unlink()
    if page:
        paths = "".join(f"  - split: {split}\n    path: data/{split}-*\n" for split in ("train", "test"))
        (tmp_path / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files:\n{paths}---\n")
    found = wr.verify(tmp_path)
    assert (found["problems"], found["read_files"], found["checked_records"]) == ([], 2, 3)
    whole = data("test").read_bytes()
    data("test").write_bytes(whole[: len(whole) // 2])
    assert {problem["file"] for problem in wr.verify(tmp_path)["problems"]} == {str(data("test"))}
    data("test").write_bytes(whole)
    if to == "parquet":
        data("train").rename(data("train", 2))
        (problem,) = wr.verify(tmp_path)["problems"]
        assert "a shard of 2 is not there" in problem["found"]


@pytest.mark.parametrize("to", FORMATS)
def test_no_records_are_a_file_without_rows(tmp_path, to):
    assert len(wr.open(written(tmp_path, [], to))) == 0
    assert with_loaders(READ, path(tmp_path, to)) == {"rows": [], "types": {"tokens": "list<item: float>"}}


@pytest.mark.parametrize("compression", ["zstd", "zstd:9", "snappy", "none"])
def test_the_codec_of_parquet_is_chosen(tmp_path, compression):
    rows = [{"text": "straw " * 100, "n": i} for i in range(1000)]
    out = written(tmp_path, rows, "parquet", compression=compression)
    assert list(wr.open(out)) == rows and with_loaders(READ, out)["rows"] == rows


def test_row_groups_of_parquet_are_bounded(tmp_path):
    rng = np.random.default_rng(1)
    records = (rng.integers(0, 2**31, 1 << 18, dtype="int32") for _ in range(100))
    out = written(tmp_path, records, "parquet", compression="none", fsync=False)
    groups = """
import json, sys
import pyarrow.parquet as pq
meta = pq.ParquetFile(sys.argv[1]).metadata
print(json.dumps([meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)]))
"""
    sizes = with_loaders(groups, out)
    assert len(sizes) >= 2 and max(sizes) < 100 << 20


@pytest.mark.parametrize("to", [*FORMATS, "litdata"])
def test_json_lines_are_written_as_rows_of_their_keys(tmp_path, to):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "n": 1}\n{"text": "b", "n": 2}\n')
    out = path(tmp_path, to) if to in FORMATS else tmp_path / "out"
    wr.convert(wr.open(tmp_path / "a.jsonl", format="jsonl"), out, to=to)
    assert list(wr.open(out)) == [{"text": "a", "n": 1}, {"text": "b", "n": 2}]
    if to in FORMATS:
        assert with_loaders(READ, out)["rows"] == list(wr.open(out))
