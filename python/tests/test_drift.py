"""Files of one data set whose columns differ: every cell of the tables in docs/formats.md is a test."""

import io
import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

import windrow as wr
from foreign_cases import with_loaders

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()


def table(head):
    """The cells of the table with this first column: (case, format, word)."""
    lines = PAGE[PAGE.index(f"| {head} |") :].split("\n\n")[0].splitlines()
    names, *rows = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in [lines[0], *lines[2:]])
    return [(row[0], name, word) for row in rows for name, word in zip(names[1:], row[1:], strict=True)]


READ, WRITTEN = table("two files differ in"), table("rows differ in")

# The type and the values of a column in two files, as pyarrow has them; None where the file has no such column.
TYPED = """
import datetime, decimal, json, pathlib, sys
import pyarrow as pa, pyarrow.parquet as pq
folder = pathlib.Path(sys.argv[1])
moment, length, D = datetime.datetime(2020, 1, 2, 3, 4, 5), datetime.timedelta(seconds=5), decimal.Decimal
struct = lambda **fields: pa.struct(list(fields.items()))
CASES = {
    "int32, int64": ((pa.int32(), [1, None]), (pa.int64(), [2**40, 3])),
    "int8, uint8": ((pa.int8(), [-1, 2]), (pa.uint8(), [255, None])),
    "float32, float64": ((pa.float32(), [1.5, None]), (pa.float64(), [0.1])),
    "whole numbers, fractions": ((pa.int64(), [1, 2**53]), (pa.float64(), [0.5])),
    "digits of decimals": ((pa.decimal128(5, 2), [D("1.25"), None]), (pa.decimal128(7, 3), [D("-0.125")])),
    "units of timestamps": ((pa.timestamp("s"), [moment, None]), (pa.timestamp("ms"), [moment])),
    "units of durations": ((pa.duration("s"), [length, None]), (pa.duration("ns"), [length])),
    "a column more": (None, (pa.string(), ["web", None])),
    "a column less": ((pa.string(), ["web", None]), None),
    "a column of nulls, of text": ((pa.null(), [None, None]), (pa.string(), ["web"])),
    "fields of a struct": ((struct(a=pa.int32(), c=pa.int8()), [{"a": 1, "c": 2}, None]), (struct(a=pa.int64(), b=pa.string()), [{"a": 2, "b": "x"}])),
    "list, large_list": ((pa.list_(pa.int32()), [[1, 2], []]), (pa.large_list(pa.int32()), [[3], None])),
    "fixed_size_list, list": ((pa.list_(pa.int32(), 2), [[1, 2], [3, 4]]), (pa.list_(pa.int32()), [[5], []])),
    "items of lists: int32, float32": ((pa.list_(pa.int32()), [[1, 2], []]), (pa.list_(pa.float32()), [[0.5], None])),
    "text, large_string": ((pa.string(), ["a"]), (pa.large_string(), ["b"])),
    "text, bytes": ((pa.string(), ["a", None]), (pa.binary(), [b"\\xff"])),
    "text, numbers": ((pa.string(), ["a", None]), (pa.int64(), [1])),
    "a struct, a list": ((struct(a=pa.int32()), [{"a": 1}]), (pa.list_(pa.int32()), [[1]])),
}
def shown(value):
    if isinstance(value, datetime.datetime): return value.isoformat()
    if isinstance(value, datetime.timedelta): return f"PT{int(value.total_seconds())}S"
    if isinstance(value, bytes): return {"bytes": value.hex()}
    if isinstance(value, dict): return {k: shown(v) for k, v in value.items()}
    return [shown(v) for v in value] if isinstance(value, list) else str(value) if isinstance(value, D) else value
expected = {}
for case, halves in CASES.items():
    tables = []
    for number, half in enumerate(halves):
        rows = len(half[1]) if half else 2
        columns = {"text": pa.array([f"t{number}{row}" for row in range(rows)])}
        if half: columns["x"] = pa.array(half[1], half[0])
        tables.append(pa.table(columns))
        name = case.replace(" ", "_").replace(",", "").replace(":", "")
        for kind in ("parquet", "arrow"):
            (folder / kind / name).mkdir(parents=True, exist_ok=True)
            file = folder / kind / name / f"part-{number}.{kind}"
            if kind == "parquet": pq.write_table(tables[-1], file)
            else:
                with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, tables[-1].schema) as writer: writer.write_table(tables[-1])
    try: expected[case] = [shown(row) for row in pa.concat_tables(tables, promote_options="permissive").to_pylist()]
    except pa.ArrowInvalid: expected[case] = None
    except pa.ArrowTypeError: expected[case] = None
print(json.dumps(expected))
"""

# Values of two files that hold any; MISSING where a row has no such key.
MISSING = object()
PLAIN = {
    "whole numbers, fractions": ([1, 2], [0.5]),
    "a column more": ([MISSING, MISSING], ["web"]),
    "a column less": (["web", "web"], [MISSING]),
    "a column of nulls, of text": ([None, None], ["web"]),
    "fields of a struct": ([{"a": 1, "c": 2}], [{"a": 2, "b": "x"}]),
    "text, numbers": (["a"], [1]),
    "a struct, a list": ([{"a": 1}], [[1]]),
}
# What encodings of MDS differ in.
MDS = {
    "int32, int64": ([np.array([1], "int32")], [np.array([2**40], "int64")]),
    "int8, uint8": ([np.array([-1], "int8")], [np.array([255], "uint8")]),
    "float32, float64": ([np.array([1.5], "float32")], [np.array([0.1], "float64")]),
    "whole numbers, fractions": ([1], [0.5]),
    "a column more": ([MISSING], ["web"]),
    "a column less": (["web"], [MISSING]),
    "fields of a struct": ([{"a": 1, "c": 2}], [{"a": 2, "b": "x"}]),
    "items of lists: int32, float32": ([np.array([1, 2], "int32")], [np.array([0.5], "float32")]),
    "text, bytes": (["a"], [b"\xff"]),
    "text, numbers": (["a"], [1]),
    "a struct, a list": ([{"a": 1}], [[1]]),
}
LITDATA = ("a column more", "a column less", "a column of nulls, of text", "fields of a struct")
WRITE_LITDATA = """
import json, sys
from litdata.streaming.writer import BinaryWriter
writer = BinaryWriter(sys.argv[1], chunk_size=2)
for number, row in enumerate(json.loads(sys.argv[2])):
    writer[number] = row
writer.done()
writer.merge(1)
print("[]")
"""


def rows_of(halves):
    """Rows of two files."""
    of = [[{"text": f"t{number}{row}", "x": x} for row, x in enumerate(half)] for number, half in enumerate(halves)]
    return [[{key: x for key, x in row.items() if x is not MISSING} for row in half] for half in of]


def plain(value):
    """A value as JSON and pyarrow's lists have it; a null among floats of a list is NaN."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    return folder, with_loaders(TYPED, folder)


def name_of(case):
    return re.sub("[,:]", "", case).replace(" ", "_")


def write_jsonl(out, halves):
    for number, rows in enumerate(halves):
        (out / f"part-{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_webdataset(out, halves):
    for number, rows in enumerate(halves):
        with tarfile.open(out / f"part-{number}.tar", "w") as tar:
            for row, values in enumerate(rows):
                for key, value in values.items():
                    of_bytes = isinstance(value, bytes)
                    content = value if of_bytes else json.dumps(value).encode()
                    member = tarfile.TarInfo(f"{number}{row}.{key}.{'bin' if of_bytes else 'json'}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def write_mds(out, halves):
    shards = []
    for number, rows in enumerate(halves):
        wr.write(out / f"{number}", rows, to="mds")
        of_half = json.loads((out / f"{number}" / "index.json").read_text())
        for shard in of_half["shards"]:
            shard["raw_data"]["basename"] = f"{number}/{shard['raw_data']['basename']}"
        shards += of_half["shards"]
        (out / f"{number}" / "index.json").unlink()
        (out / f"{number}" / "windrow.json").unlink()
    (out / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))


def write_litdata(out, halves):
    # The chunks are of two rows each.
    with_loaders(WRITE_LITDATA, out, json.dumps([row for half in halves for row in half]))


def stored(case, kind, out):
    """Writes the files of a case, and gives the rows that they hold; None where there are no such files."""
    out.mkdir()
    if kind == "webdataset" and case == "text, bytes":
        halves = rows_of((["a"], [b"\xff"]))
    elif kind == "mds":
        halves = rows_of(MDS[case]) if case in MDS else None
    elif kind == "litdata":
        halves = rows_of(tuple(half * 2 for half in PLAIN[case]) if case in LITDATA else ()) or None
        halves = halves and [half[:2] for half in halves]
    else:
        halves = rows_of(PLAIN[case]) if case in PLAIN else None
    if halves is not None:
        globals()[f"write_{kind}"](out, halves)
    return halves


@pytest.mark.parametrize(("case", "kind", "word"), [cell for cell in READ if cell[1] in ("parquet", "arrow")])
def test_typed_columns(case, kind, word, typed, tmp_path):
    folder, expected = typed[0] / kind / name_of(case), typed[1][case]
    files = sorted(folder.iterdir())
    ways = [folder, files, str(folder / "*")]
    texts = [wr.open(file)[i]["text"] for file in files for i in range(len(wr.open(file)))]
    for way in ways:
        if word == "error":
            with pytest.raises(wr.MismatchError, match='column "x" is ') as caught:
                wr.open(way)
            types = {wr.open(file).info()["columns"][1][1] for file in files}
            assert expected is None and all(of in str(caught.value) for of in types), str(caught.value)
            assert caught.value.path == str(files[1]) and files[0].name in str(caught.value)
        else:
            assert word in ("wider", "null")
            assert [plain(row) for row in wr.open(way)[:]] == expected
        # Whatever the others are.
        assert [row["text"] for row in wr.open(way, columns=["text"])[:]] == texts
    wr.tokenize(folder, tmp_path / "ids", tokenizer="bytes")
    assert [bytes(ids.tolist()).decode() for ids in wr.open(tmp_path / "ids")] == texts
    found = wr.verify(folder)
    assert found["problems"] == [] and (word == "error") == any("one by one" in note for note in found["notes"])


@pytest.mark.parametrize(("case", "kind", "word"), [cell for cell in READ if cell[1] not in ("parquet", "arrow")])
def test_other_formats(case, kind, word, tmp_path):
    halves = stored(case, kind, tmp_path / "data")
    if word == "—":
        assert halves is None
        return
    rows = [row for half in halves for row in half]
    if word == "error":
        with pytest.raises(wr.MismatchError, match='"x"'):
            wr.open(tmp_path / "data")
        return
    is_own = {"null": False, "own": True}[word]
    ending = {"webdataset": ".json"}.get(kind, "")

    def as_read(row):
        fields = {key for half in halves for one in half if isinstance(one.get("x"), dict) for key in one["x"]}
        if not is_own and isinstance(row.get("x"), dict):
            row = row | {"x": {field: row["x"].get(field) for field in fields}}
        row = row if is_own else {"text": row["text"], "x": row.get("x")}
        return {f"{key}{'.bin' if isinstance(value, bytes) else ending}": plain(value) for key, value in row.items()}

    ds = wr.open(tmp_path / "data")
    if kind in ("jsonl", "webdataset"):
        assert wr.open(str(tmp_path / "data" / "*"))[:] == ds[:]
    assert [plain({key: value for key, value in row.items() if key != "__key__"}) for row in ds[:]] == [as_read(row) for row in rows]
    if kind in ("jsonl", "webdataset"):
        column = f"x{ending}"
        for way in (tmp_path / "data", str(tmp_path / "data" / "*")):
            chosen = [plain(row[column]) for row in wr.open(way, columns=[column])[:]]
            assert chosen == [None if isinstance(row.get("x"), bytes) else row.get("x") for row in rows]


ROWS = {
    "a key that later rows lack": [{"n": 1, "x": "web"}, {"n": 2}, {"n": 3, "x": "web"}],
    "a key that the first row lacks": [{"n": 1}, {"n": 2, "x": "web"}, {"n": 3}],
    "a value that is null": [{"n": 1, "x": "web"}, {"n": 2, "x": None}],
    "fields of a struct": [{"n": 1, "x": {"a": 1}}, {"n": 2, "x": {"b": 2}}],
    "whole numbers, then fractions": [{"n": 1, "x": 1}, {"n": 2, "x": 0.5}],
    "text, then numbers": [{"n": 1, "x": "web"}, {"n": 2, "x": 1}],
}


@pytest.mark.parametrize("way", ["write", "convert"])
@pytest.mark.parametrize(("case", "to", "word"), WRITTEN)
def test_written_rows(case, to, word, way, tmp_path):
    rows = ROWS[case]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / ("out." + {"arrow": "arrow", "parquet": "parquet", "jsonl": "jsonl"}.get(to, "d"))

    def act():
        if way == "write":
            wr.write(out, rows, to=to)
        else:
            wr.convert(tmp_path / "in.jsonl", out, to=to)

    if word == "error":
        with pytest.raises(wr.ConfigError) as caught:
            act()
        assert caught.value.record == 1 and not out.exists()
        return
    act()
    found = [plain({key: value for key, value in row.items() if key != "__key__"}) for row in wr.open(out)[:]]
    if to == "webdataset":
        # Endings say what a member holds; null is left out.
        found = [{key.split(".")[0]: value for key, value in row.items()} for row in found]
        rows = [{key: value for key, value in row.items() if value is not None} for row in rows]
    if word == "null":
        fields = sorted({key for row in rows if isinstance(row.get("x"), dict) for key in row["x"]})
        rows = [row | {"x": {key: row["x"].get(key) for key in fields}} if fields else {"n": row["n"], "x": row.get("x")} for row in rows]
    if word == "wider":
        assert [type(row["x"]) for row in found] == [float, float]
    assert found == rows


def test_every_case_has_a_cell():
    assert {case for case, _, _ in READ} >= set(PLAIN) | set(MDS)
    assert {case for case, _, _ in WRITTEN} == set(ROWS)
    assert len(READ) == 18 * 6 and len(WRITTEN) == 6 * 6


# Keys that come and go over chunks that are complete already: these are written again, and the package reads them.
DRIFTING = [
    {
        "n": i,
        **({"tag": f"x{i}"} if i % 3 else {}),
        **({"raw": bytes([i])} if i > 9 else {}),
        **({"late": {"k": [i, None]}} if i == 19 else {}),
        **({"early": i / 2} if i < 4 else {}),
    }
    for i in range(20)
]
READ_LITDATA = """
import json, sys
from litdata import StreamingDataset
rows = [dict(row) for row in StreamingDataset(sys.argv[1])]
print(json.dumps([{k: v.hex() if isinstance(v, bytes) else v for k, v in row.items()} for row in rows]))
"""


def test_the_package_reads_optional_keys_of_litdata(tmp_path):
    wr.write(tmp_path / "out", DRIFTING, to="litdata", chunk_bytes=100)
    assert len(list((tmp_path / "out").glob("chunk-*.bin"))) > 5
    present = [{key: value for key, value in row.items() if value is not None} for row in wr.open(tmp_path / "out")]
    assert present == DRIFTING and wr.verify(tmp_path / "out")["problems"] == []
    types = json.loads((tmp_path / "out" / "index.json").read_text())["config"]["types"]
    assert types["n"] == "int" and types["tag"] == {"type": "str", "optional": True}
    theirs = [{key: value for key, value in row.items() if value is not None} for row in with_loaders(READ_LITDATA, tmp_path / "out")]
    assert theirs == [row | ({"raw": row["raw"].hex()} if "raw" in row else {}) for row in DRIFTING]


def test_chunks_of_litdata_that_are_stored_in_two_ways(tmp_path):
    # The package stores rows of one type as Arrow, and trees of leaves once a list holds two types.
    rows = [{"n": i, "x": [i] if i < 5 else ["web", i], **({"tag": "x"} if i == 2 else {})} for i in range(10)]
    write_litdata(tmp_path / "data", [rows])
    kinds = {file.read_bytes().endswith(b"LDARW01\0") for file in (tmp_path / "data").glob("chunk-*.bin")}
    assert kinds == {True, False}
    ds = wr.open(tmp_path / "data")
    assert [(row["n"], row["x"]) for row in ds] == [(row["n"], row["x"]) for row in rows]
    theirs = with_loaders(READ_LITDATA, tmp_path / "data")
    assert [[(key, value) for key, value in row.items() if key in theirs[i]] for i, row in enumerate(ds)] == [list(row.items()) for row in theirs]
    assert [row["x"] for row in wr.open(tmp_path / "data", columns=["x"])] == [row["x"] for row in rows]
    assert wr.verify(tmp_path / "data")["problems"] == []
    resumed = wr.Loader(ds.rows(), batch_size=2, seed=1)
    next(resumed)
    other = wr.Loader(ds.rows(), batch_size=2, seed=1)
    other.load_state_dict(resumed.state_dict())
    assert next(resumed) == next(other)
    with pytest.raises(wr.ConfigError, match="not numbers"):
        wr.open(tmp_path / "data", column="x")


def test_a_column_of_numbers_widens_and_is_traced(typed, tmp_path):
    folder, expected = typed
    name = "items of lists: int32, float32"
    for kind in ("parquet", "arrow"):
        lists = [row["x"] for row in expected[name]]
        ds = wr.open(folder / kind / name_of(name), column="x")
        assert ds[0].dtype == "float64" and [ds[i].tolist() for i in range(3)] == lists[:3]
        with pytest.raises(wr.CorruptError, match="null"):
            ds[3]
        name_of_lists = name_of("fixed_size_list, list")
        ds = wr.open(folder / kind / name_of_lists, column="x")
        loader = wr.Loader(ds.pack(2), batch_size=2, shuffle=False)
        assert next(loader)["input_ids"].tolist() == [[1, 2], [3, 4]]
        assert {place["file"].split("/")[-1] for row in wr.trace(loader, 0) for read in row["reads"] for place in read["locations"]} == {f"part-0.{kind}", f"part-1.{kind}"}


def test_conversations_beside_columns_that_differ(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    talk = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
    for number, value in enumerate(("text", 1)):
        wr.write(folder / f"part-{number}.parquet", [talk | {"x": value}], to="parquet")
    options = {"tokenizer": "bytes", "chat": True, "chat_template": "chatml"}
    with pytest.raises(wr.MismatchError, match='column "x" is int64, but text in'):
        wr.open(folder)
    wr.tokenize(folder, tmp_path / "ids", **options)
    wr.tokenize(iter([talk, talk]), tmp_path / "items", **options)
    assert [plain(one) for one in wr.open(tmp_path / "ids")] == [plain(one) for one in wr.open(tmp_path / "items")]
    with pytest.raises(wr.ConfigError, match="no column"):
        wr.tokenize(folder, tmp_path / "none", messages_field="talks", **options)


def test_a_key_that_only_later_files_have_is_found(tmp_path):
    (tmp_path / "part-0.jsonl").write_text('{"n": 1}\n' * 300)
    (tmp_path / "part-1.jsonl").write_text('{"n": 2, "tag": "x"}\n' * 300)
    for way in (tmp_path, str(tmp_path / "*.jsonl")):
        assert [row["tag"] for row in wr.open(way, columns=["tag"])] == [None] * 300 + ["x"] * 300
        with pytest.raises(wr.ConfigError, match='no key "tags"'):
            wr.open(way, columns=["tags"])


def test_a_file_without_the_numbers_is_named(tmp_path):
    for number, key in enumerate(("ids", "other")):
        wr.write(tmp_path / f"part-{number}.arrow", [{key: np.arange(3), "n": 1}], to="arrow")
    for path in (tmp_path, tmp_path / "part-*.arrow"):
        assert [row["ids"] is None for row in wr.open(path)] == [False, True]
        with pytest.raises(wr.WindrowError, match='"ids"') as caught:
            wr.open(path, column="ids")
        assert not isinstance(caught.value, wr.CorruptError)


# int8 that Arrow's extension type calls truth values.
BOOL8 = """
import pathlib, sys
import pyarrow as pa, pyarrow.parquet as pq
folder = pathlib.Path(sys.argv[1])
marked = {"ARROW:extension:name": "arrow.bool8", "ARROW:extension:metadata": ""}
schema = pa.schema([pa.field("flag", pa.int8(), metadata=marked), pa.field("flags", pa.list_(pa.field("item", pa.int8(), metadata=marked))), pa.field("d", pa.duration("ms"))])
table = pa.table([pa.array([-1, 0, None, 1], pa.int8()), pa.array([[1, 0, 2], [], None, [None]], pa.list_(pa.int8())), pa.array([5001, -86400000, None, 0], pa.duration("ms"))], schema=schema)
pq.write_table(table, folder / "t.parquet")
with pa.ipc.new_file(str(folder / "t.arrow"), schema) as writer: writer.write_table(table)
print("[]")
"""


def test_truth_values_of_a_byte_and_durations(tmp_path):
    with_loaders(BOOL8, tmp_path)
    for name in ("t.parquet", "t.arrow"):
        rows = wr.open(tmp_path / name)[:]
        assert [row["flag"] for row in rows] == [True, False, None, True]
        assert rows[0]["flags"].dtype == bool and rows[0]["flags"].tolist() == [True, False, True]
        assert rows[1]["flags"].tolist() == [] and rows[2]["flags"] is None and rows[3]["flags"] == [None]
        assert [row["d"] for row in rows] == ["PT5.001S", "-P1D", None, "PT0S"]
        assert wr.open(tmp_path / name).info()["columns"] == [["flag", "bool"], ["flags", "list of bool"], ["d", "duration in ms"]]
        assert wr.open(tmp_path / name, columns=["flags"])[0]["flags"].tolist() == [True, False, True]
