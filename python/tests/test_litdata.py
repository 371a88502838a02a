"""LitData: golden cases of the package, damage, what a pickle may be, and what windrow writes."""

import json
import pickle
import shutil
import struct

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import same, with_loaders

GOLDEN = foreign_cases.GOLDEN / "litdata"
CASES = foreign_cases.names("litdata")


def test_there_are_cases():
    assert len(CASES) >= 33


@pytest.mark.parametrize("name", CASES)
def test_golden(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    foreign_cases.holds(GOLDEN / name, "litdata")
    # What a pickle would have made.
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("broken", "pickle", "encrypted"))])
def test_good_ones_verify_and_damage_is_found(name, tmp_path):
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    assert wr.verify(tmp_path / "copy")["problems"] == []
    chunk = max((tmp_path / "copy").glob("chunk-*"), key=lambda path: path.stat().st_size)
    chunk.write_bytes(chunk.read_bytes()[:-1])
    assert wr.verify(tmp_path / "copy")["problems"]


def test_a_column_of_frames(tmp_path):
    rows = wr.open(GOLDEN / "temporal")
    ds = wr.open(GOLDEN / "temporal", column="features")
    assert all((a == b["features"]).all() for a, b in zip(ds, rows)) and ds[0].shape[1] == 2
    assert same(ds.extras(0), {"score": rows[0]["score"], "valid": rows[0]["valid"]})
    assert wr.open(GOLDEN / "temporal", column="valid")[1].dtype == "bool"


@pytest.mark.parametrize("name", ["tokens_int32", "tokens_int64", "tokens_zstd"])
def test_tokens_are_joined_over_chunks(name):
    ds = wr.open(GOLDEN / name)
    blocks = ds.pack(16)
    joined = np.concatenate(list(ds))
    found = np.concatenate([blocks[i]["input_ids"] for i in range(len(blocks))])
    assert found.tolist() == joined[: len(found)].tolist()
    loader = wr.Loader(blocks, batch_size=2, seed=1)
    next(loader)
    other = wr.Loader(blocks, batch_size=2, seed=1)
    other.load_state_dict(loader.state_dict())
    assert (next(loader)["input_ids"] == next(other)["input_ids"]).all()


@pytest.mark.parametrize("name", ["zstd_batch", "zstd_sample", "zstd_chunk"])
def test_compressed_numbers_are_those_of_the_rows(name):
    ds = wr.open(GOLDEN / name, column="x")
    assert all((a == b["x"]).all() for a, b in zip(ds, wr.open(GOLDEN / name)))
    assert len(wr.Loader(ds.pack(4), batch_size=2, seed=0).__next__()["input_ids"]) == 2


@pytest.mark.parametrize("name", ["rows_arrow", "rows_arrow_zstd"])
def test_a_column_of_rows_of_plain_json_is_numbers(name):
    ds = wr.open(GOLDEN / name, column="ids")
    rows = wr.open(GOLDEN / name)
    assert all(a.tolist() == list(b["ids"]) for a, b in zip(ds, rows))
    assert ds.extras(2)["msgs"] == rows[2]["msgs"]


# Stands in for the clients of clouds, which the package imports and no test uses.
PACKAGE = """
import json, os, sys
from unittest.mock import MagicMock
for name in ("boto3", "botocore", "botocore.credentials", "botocore.utils"):
    sys.modules[name] = MagicMock()
import litdata
from litdata.streaming.item_loader import TokensLoader
"""

BLOCKS = PACKAGE + """
ds = litdata.StreamingDataset(sys.argv[1], item_loader=TokensLoader(block_size=4), shuffle=False)
print(json.dumps([[str(block.dtype), block.tolist()] for block in (ds[i] for i in range(len(ds)))]))
"""

ITEMS = PACKAGE + """
def plain(v):
    if hasattr(v, "tolist") and not isinstance(v, memoryview):
        return [str(v.dtype), list(v.shape), v.tolist()]
    return {k: plain(x) for k, x in v.items()} if isinstance(v, dict) else bytes(v).hex() if isinstance(v, (bytes, memoryview)) else v
ds = litdata.StreamingDataset(sys.argv[1], shuffle=False)
print(json.dumps([plain(ds[i]) for i in range(len(ds))]))
"""


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"])
def test_tokens_loader_reads_tokens_that_windrow_wrote(tmp_path, dtype):
    records = [np.arange(n, dtype=dtype) % 100 for n in (8, 0, 5, 4, 7)]
    wr.write(tmp_path / "out", records, to="litdata")
    ds = wr.open(tmp_path / "out")
    assert ds.format == "litdata" and all(map(same, ds, records))
    assert wr.verify(tmp_path / "out")["problems"] == []
    joined = np.concatenate(records)
    name = dtype if dtype in ("uint32", "uint64") else f"torch.{dtype}"
    assert with_loaders(BLOCKS, tmp_path / "out") == [[name, joined[i : i + 4].tolist()] for i in range(0, 24, 4)]


def test_chunks_of_tokens_are_bounded(tmp_path):
    records = [np.arange(20, dtype="uint16") + i for i in range(50)]
    report = wr.write(tmp_path / "out", records, to="litdata", chunk_bytes=300)
    assert report["files"] > 5 and all(p.stat().st_size <= 300 for p in (tmp_path / "out").glob("chunk-*"))
    assert all(map(same, wr.open(tmp_path / "out"), records))
    blocks = with_loaders(BLOCKS, tmp_path / "out")
    assert len(blocks) == 250 and blocks[0] == ["torch.uint16", [0, 1, 2, 3]]
    wr.convert(tmp_path / "out", tmp_path / "shards", to="shards")
    wr.convert(tmp_path / "shards", tmp_path / "again", to="litdata", chunk_bytes=300)
    assert same([p.read_bytes() for p in sorted((tmp_path / "out").glob("chunk-*"))], [p.read_bytes() for p in sorted((tmp_path / "again").glob("chunk-*"))])


ROWS = [
    {
        "id": i,
        "x": i / 4,
        "flag": i % 2 == 0,
        "text": f"straw ü {i}",
        "raw": bytes([i]) * (i % 3),
        "ids": np.arange(i, dtype="int32"),
        "grid": np.full((2, i + 1), i, "float32"),
        "tags": ["a", None, {"k": i}],
        "none": None,
    }
    for i in range(12)
]


def test_the_package_reads_rows_that_windrow_wrote(tmp_path):
    wr.write(tmp_path / "out", ROWS, to="litdata", chunk_bytes=700)
    assert all(map(same, wr.open(tmp_path / "out"), ROWS))
    assert wr.verify(tmp_path / "out")["problems"] == []

    def plain(v, name):
        if isinstance(v, np.ndarray):
            return [("torch." if name == "ids" else "") + str(v.dtype), list(v.shape), v.tolist()]
        return v.hex() if isinstance(v, bytes) else v

    assert with_loaders(ITEMS, tmp_path / "out") == [{name: plain(v, name) for name, v in row.items()} for row in ROWS]


def test_channels_and_metadata_go_in_and_out(tmp_path):
    series = [np.arange(n * 2, dtype="float32").reshape(n, 2) for n in (5, 1, 9)]
    wr.write(tmp_path / "alone", series, to="litdata")
    assert all(map(same, wr.open(tmp_path / "alone"), series))
    assert with_loaders(ITEMS, tmp_path / "alone") == [["float32", list(one.shape), one.tolist()] for one in series]
    wr.write(tmp_path / "named", ({"sequence": one, "name": f"s{i}"} for i, one in enumerate(series)), to="litdata", to_column="x")
    ds = wr.open(tmp_path / "named", column="x")
    assert all(map(same, ds, series)) and [ds.extras(i) for i in range(3)] == [{"name": f"s{i}"} for i in range(3)]


@pytest.mark.parametrize(
    ("records", "options", "says", "field"),
    [
        ([{"a": 1}, {"a": "x"}], {}, "x.*where the rows before it have a leaf of the kind int", "a"),
        ([{"a": np.arange(2)}, {"b": 1}], {}, "null, where the rows before it have a leaf of the kind no_header", "a"),
        ([{"b": 1}, {"a": np.arange(2), "b": 1}], {}, "arrays of a key that earlier rows lack", "a"),
        ([{"a": 2**70}], {}, "kind json", "a"),
        ([{"sequence": [1], "x": 2}], {"to_column": "x"}, "also the name of its numbers", "x"),
        ([{"a": 1}], {"chunk_bytes": 2**32}, "chunk_bytes", "chunk_bytes"),
        ([], {}, "no record", None),
    ],
)
def test_what_it_does_not_hold_is_refused_and_nothing_is_left(tmp_path, records, options, says, field):
    with pytest.raises(wr.ConfigError, match=says) as caught:
        wr.write(tmp_path / "out", records, to="litdata", **options)
    assert caught.value.field == field and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dim", [7, 2**64 - 1])
def test_a_count_of_tokens_that_the_chunk_does_not_hold_is_an_error(tmp_path, dim):
    wr.write(tmp_path / "out", [np.arange(9, dtype="uint16")], to="litdata")
    index = tmp_path / "out" / "index.json"
    text = json.loads(index.read_text())
    assert text["chunks"][0]["dim"] == 9
    text["chunks"][0]["dim"] = dim
    index.write_text(json.dumps(text))
    with pytest.raises(wr.CorruptError, match="18 bytes of tokens, the index says"):
        list(wr.open(tmp_path / "out", trust=True))


def test_scalars_of_numpy_are_their_values(tmp_path):
    values = [np.int64(-7), np.uint64(2**64 - 1), np.float32(0.5), np.float16(1.5), np.bool_(True), {"in": [np.uint16(9), np.int8(-1)]}]
    leaf = {"type": None, "context": None, "children_spec": []}
    leaves = [pickle.dumps(value, protocol) for value, protocol in zip(values, [2, 3, 4, 5, 4, 4])]
    item = struct.pack(f"<{len(leaves)}I", *map(len, leaves)) + b"".join(leaves)
    chunk = struct.pack("<3I", 1, 12, 12 + len(item)) + item
    (tmp_path / "chunk-0-0.bin").write_bytes(chunk)
    spec = [1, {"type": "builtins.list", "context": "null", "children_spec": [leaf] * len(values)}]
    config = {"chunk_bytes": None, "chunk_size": 1, "compression": None, "data_format": ["pickle"] * len(values),
              "data_spec": json.dumps(spec), "encryption": None, "item_loader": "PyTreeLoader"}  # fmt: skip
    chunks = [{"chunk_bytes": len(chunk), "chunk_size": 1, "dim": None, "filename": "chunk-0-0.bin"}]
    (tmp_path / "index.json").write_text(json.dumps({"chunks": chunks, "config": config, "updated_at": "1"}))
    assert wr.open(tmp_path)[0] == [-7, 2**64 - 1, 0.5, 1.5, True, {"in": [9, -1]}]
    assert wr.verify(tmp_path)["problems"] == []
