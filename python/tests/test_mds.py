"""MDS: golden cases of mosaicml-streaming, read both ways with the package itself, and damage."""

import json
import shutil

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import same, value, with_loaders

GOLDEN = foreign_cases.GOLDEN / "mds"
CASES = foreign_cases.names("mds")


def test_there_are_cases():
    assert len(CASES) >= 25


@pytest.mark.parametrize("name", CASES)
def test_golden(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = json.loads((GOLDEN / name / "case.json").read_text())
    path = GOLDEN / name / case["open"]
    if case["records"] == "error":
        with pytest.raises(wr.WindrowError):
            ds = wr.open(path, **case["options"])
            assert case["stage"] == "read"
            [(ds[i], ds.extras(i)) for i in range(len(ds))]
        assert not list(tmp_path.iterdir())
        return
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    try:
        ds = wr.open(path, **case["options"])
        found = list(ds)
    except wr.WindrowError:
        assert case.get("error_ok")
        return
    assert ds.format == "mds"
    assert same(found, value(expected["records"]))
    for i, extras in enumerate(expected.get("extras", [])):
        assert value(extras).items() <= ds.extras(i).items()


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("broken", "pickle"))])
def test_good_ones_verify_and_damage_is_found(name, tmp_path):
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    case = json.loads((GOLDEN / name / "case.json").read_text())
    root = tmp_path / "copy" / case["open"] / case["options"].get("split", "")
    assert wr.verify(root)["problems"] == []
    shard = max(root.rglob("*.mds*"), key=lambda path: path.stat().st_size)
    shard.write_bytes(shard.read_bytes()[:-1])
    assert wr.verify(root)["problems"]


def test_a_flipped_bit_in_a_compressed_shard_is_found_by_its_hash(tmp_path):
    shutil.copytree(GOLDEN / "text_zstd_5", tmp_path / "copy")
    shard = tmp_path / "copy" / "shard.00000.mds.zstd"
    good = shard.read_bytes()
    for at in range(0, len(good), 7):
        shard.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
        with pytest.raises(wr.CorruptError, match="sha1|xxh64"):
            wr.open(tmp_path / "copy")[0]


ROWS = [
    {"id": 7, "text": "hay", "raw": b"\x00\xff", "x": 0.5, "tags": ["a", 1, None], "ids": np.array([1, 2], "int32")},
    {"id": -1, "text": "ü", "raw": b"", "x": 2, "tags": {"k": True}, "ids": np.array([[3], [4]], "int32")},
]

READ = """
import json, sys
from streaming import StreamingDataset
rows = []
for row in StreamingDataset(local=sys.argv[1], batch_size=1, shuffle=False, num_canonical_nodes=1):
    rows.append({k: v.tolist() if hasattr(v, "tolist") else v.hex() if isinstance(v, bytes) else v for k, v in row.items()})
print(json.dumps(rows))
"""

WRITE = """
import json, sys
import numpy as np
from streaming import MDSWriter
columns = {"n": "int", "text": "str", "ids": "ndarray:uint16", "any": "ndarray", "j": "json"}
with MDSWriter(out=sys.argv[1], columns=columns, size_limit=1500, compression=sys.argv[2] or None, hashes=["sha1", "xxh64"]) as out:
    for i in range(60):
        out.write({"n": i * 10**12, "text": "straw " * i, "ids": np.arange(i + 1, dtype="uint16"),
                   "any": np.full((2, i + 1), i / 4, "float64"), "j": {"i": [i, None]}})
print("{}")
"""


@pytest.mark.parametrize("compression", [None, "zstd", "zstd:7"])
def test_the_package_reads_rows_that_windrow_wrote(tmp_path, compression):
    out = tmp_path / "out"
    rows = ROWS * 40
    report = wr.write(out, rows, to="mds", size_limit=600, compression=compression)
    assert report["records"] == 80 and report["files"] > 5
    expected = [
        {key: v.tolist() if hasattr(v, "tolist") else v.hex() if isinstance(v, bytes) else v for key, v in row.items()}
        for row in rows
    ]
    assert with_loaders(READ, out) == expected
    assert wr.verify(out)["problems"] == []
    found = wr.open(out)
    assert [row["text"] for row in found] == [row["text"] for row in rows]
    assert same(found[1]["ids"], ROWS[1]["ids"]) and found[0]["tags"] == ["a", 1, None]


@pytest.mark.parametrize("compression", ["", "zstd:5", "gz"])
def test_windrow_reads_what_the_package_wrote(tmp_path, compression):
    out = tmp_path / "out"
    with_loaders(WRITE, out, compression)
    ds = wr.open(out)
    assert len(ds) == 60 and list(ds[3]) == ["any", "ids", "j", "n", "text"]
    assert ds[59]["text"] == "straw " * 59 and ds[59]["j"] == {"i": [59, None]} and ds[7]["n"] == 7 * 10**12
    assert same(ds[2]["any"], np.full((2, 3), 0.5))
    assert wr.verify(out)["problems"] == []
    ids = wr.open(out, column="ids")
    assert ids[4].tolist() == [0, 1, 2, 3, 4] and ids[4].dtype == np.uint16 and ids.extras(4)["n"] == 4 * 10**12
    loader = ids.pack(16).loader(batch_size=4, seed=3)
    first = next(loader)["input_ids"].tolist()
    state = loader.state_dict()
    then = next(loader)["input_ids"].tolist()
    again = ids.pack(16).loader(batch_size=2, rank=0, world_size=2, seed=3)
    again.load_state_dict(state)
    assert next(again)["input_ids"].tolist() == then[:2] and len(first) == 4


def test_series_and_tokens_go_in_and_out(tmp_path):
    series = [np.arange(n * 2, dtype="float32").reshape(n, 2) for n in (5, 1, 9)]
    wr.write(tmp_path / "series", ({"sequence": one, "name": f"s{i}"} for i, one in enumerate(series)), to="mds", to_column="x")
    ds = wr.open(tmp_path / "series", column="x")
    assert all(map(same, ds, series)) and [ds.extras(i)["name"] for i in range(3)] == ["s0", "s1", "s2"]
    wr.convert(ds, tmp_path / "shards", to="shards")
    wr.convert(tmp_path / "shards", tmp_path / "again", to="mds", to_column="x")
    assert all(map(same, wr.open(tmp_path / "again", column="x"), series))
    wr.convert(tmp_path / "series", tmp_path / "copy", to="mds")
    assert same(wr.open(tmp_path / "copy")[2], wr.open(tmp_path / "series")[2])


@pytest.mark.parametrize(
    ("records", "options", "what"),
    [
        ([{"a": 1}, {"a": "x"}], {}, "first row decided"),
        ([{"a": 1}, {"b": 1}], {}, "a row of b"),
        ([{"a": np.zeros((0,), "int32")}], {}, "shape"),
        ([{"a": 1}], {"compression": "lz4"}, "compression"),
        ([{"a": 1}], {"size_limit": 2**33}, "size_limit"),
        ([], {}, "no record"),
    ],
)
def test_what_it_cannot_hold_is_refused_and_nothing_is_left(tmp_path, records, options, what):
    with pytest.raises(wr.ConfigError, match=what):
        wr.write(tmp_path / "out", records, to="mds", **options)
    assert list(tmp_path.iterdir()) == []


def test_rows_for_formats_of_numbers_are_refused(tmp_path):
    with pytest.raises(wr.ConfigError, match="sequence"):
        wr.write(tmp_path / "out", [{"a": 1}], to="shards")


@pytest.mark.parametrize("name", ["shard.00000.mds", "index.json"])
def test_cut_anywhere_it_is_an_error(tmp_path, name):
    shutil.copytree(GOLDEN / "tokens_ndarray_int32", tmp_path / "copy")
    path = tmp_path / "copy" / name
    whole = path.read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:size])
        with pytest.raises(wr.WindrowError):
            list(wr.open(tmp_path / "copy", format="mds"))


def test_changed_bytes_are_an_error_or_values_and_never_more(tmp_path):
    shutil.copytree(GOLDEN / "encodings", tmp_path / "copy")
    for name in ("shard.00000.mds", "index.json"):
        path = tmp_path / "copy" / name
        whole = path.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 150)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
            try:
                list(wr.open(tmp_path / "copy"))
            except (wr.WindrowError, RecursionError):
                pass
        path.write_bytes(whole)


def test_samples_that_are_not_there(tmp_path):
    wr.write(tmp_path / "d", ({"tokens": np.arange(i + 3, dtype=np.int32)} for i in range(20)), to="mds")
    index = tmp_path / "d" / "index.json"
    said = json.loads(index.read_text())
    for path in (tmp_path / "d").glob("windrow.*"):
        path.unlink()
    said["shards"][0]["samples"] = 1 << 48
    index.write_text(json.dumps(said))
    with pytest.raises(wr.CorruptError, match=r"281474976710656 samples, which its \d+ bytes cannot hold[\s\S]*index.json"):
        wr.open(tmp_path / "d")
    assert wr.verify(tmp_path / "d")["n_problems"] == 1


def test_samples_that_a_compressed_shard_may_have_and_has_not(tmp_path):
    shutil.copytree(GOLDEN / "text_zstd_5", tmp_path / "copy")
    index = tmp_path / "copy" / "index.json"
    said = json.loads(index.read_text())
    said["shards"][0]["samples"], said["shards"][0]["raw_data"]["bytes"] = 1 << 48, 1 << 60
    index.write_text(json.dumps(said))
    found = wr.verify(tmp_path / "copy")
    # Each of them is a problem, and not all of them are looked for.
    assert 10_000 <= found["n_problems"] < 10_100
    assert any("10000 problems in its first" in note for note in found["notes"])
