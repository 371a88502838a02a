"""Arrow: golden cases of pyarrow and datasets, and damage."""

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import resumes_on_other_ranks, same, with_loaders

GOLDEN = foreign_cases.GOLDEN / "arrow"
CASES = foreign_cases.names("arrow")


def test_there_are_cases():
    assert len(CASES) >= 20


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    foreign_cases.holds(GOLDEN / name, "arrow")


# Rows of token IDs, saved by `datasets` in two shards; prints what it reads back.
SAVED = """
import json, sys
import numpy as np
import datasets
datasets.disable_progress_bars()
rng = np.random.default_rng(1)
ids = [rng.integers(0, 60000, n).astype(np.uint16) for n in rng.integers(1, 300, 500)]
texts = ["row %d" % i for i in range(500)]
features = datasets.Features({"input_ids": datasets.List(datasets.Value("uint16")), "text": datasets.Value("string")})
ds = datasets.Dataset.from_dict({"input_ids": ids, "text": texts}, features=features)
split = ds.train_test_split(test_size=100, shuffle=False)
split.save_to_disk(sys.argv[1], num_shards={"train": 2, "test": 1})
back = datasets.load_from_disk(sys.argv[1])
print(json.dumps({k: [back[k]["input_ids"][i] for i in range(len(back[k]))] for k in back}))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "set"
    return folder, with_loaders(SAVED, folder)


def test_what_datasets_saves_is_read_in_place(saved):
    folder, rows = saved
    for split, expected in rows.items():
        ds = wr.open(folder, split=split, column="input_ids")
        assert [row.tolist() for row in ds] == expected
        assert ds[0].dtype == "uint16"
        assert ds.extras(7)["text"] == f"row {7 + (400 if split == 'test' else 0)}"
    with pytest.raises(wr.ConfigError, match="train, test"):
        wr.open(folder)


def test_every_split_that_datasets_saved_is_verified(saved, tmp_path):
    folder, _ = saved
    found = wr.verify(folder)
    assert (found["problems"], found["read_files"], found["checked_records"]) == ([], 3, 500)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (data,) = (copy / "test").glob("*.arrow")
    data.write_bytes(data.read_bytes()[:-2000])
    assert {problem["file"] for problem in wr.verify(copy)["problems"]} == {str(data)}


def test_a_saved_set_is_mixed_with_raw_tokens_and_resumed_on_other_ranks(saved, tmp_path):
    folder, rows = saved
    tokens = np.arange(30000, dtype=np.uint16)
    tokens.tofile(tmp_path / "t.bin")
    saved_part = wr.open(folder, split="train", column="input_ids")
    raw = wr.open(tmp_path / "t.bin", dtype="uint16")
    view = wr.mix({"saved": (saved_part.pack(64), 0.5), "raw": (raw.pack(64), 0.5)})

    resumes_on_other_ranks(view)
    # Every value of a row is at the byte that trace says.
    single = wr.Loader(view, 6, seed=5)
    batch = next(single)["input_ids"]
    for row in range(6):
        (traced,) = wr.trace(single, 0, row=row)
        found = []
        for read in traced["reads"]:
            for place in read["locations"]:
                bytes_ = Path(place["file"]).read_bytes()[place["start"] : place["start"] + place["size"]]
                found += np.frombuffer(bytes_, np.uint16).tolist()
        assert found[:64] == batch[row].tolist()[:64]


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("broken") and name != "saved_dict_without_split"])
def test_a_file_that_is_cut_never_gives_other_rows(name, tmp_path):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    whole = list(wr.open(tmp_path / "copy" / case["open"], **case["options"]))
    below = tmp_path / "copy" / case["options"].get("split", "")
    files = [p for p in below.rglob("*") if p.suffix in (".arrow", ".feather") and p.name != "indices.arrow"]
    file = max(files, key=lambda path: path.stat().st_size)
    content = file.read_bytes()
    for cut in range(0, len(content), max(len(content) // 40, 1)):
        file.write_bytes(content[:cut])
        try:
            found = list(wr.open(tmp_path / "copy" / case["open"], **case["options"]))
        except wr.WindrowError:
            continue
        # A stream may end behind any batch: no row is another one.
        assert len(found) < len(whole) or cut >= len(content) - 8
        assert same(found, whole[: len(found)]) or name in ("saved_text", "saved_old_indices")


@pytest.mark.parametrize("name", ["file_plain", "saved_small_batches", "views", "saved_kinds"])
def test_a_changed_byte_is_an_error_or_another_value_but_no_crash(name, tmp_path):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    source = next(p for p in (GOLDEN / name).iterdir() if p.suffix == ".arrow")
    content = bytearray(source.read_bytes())
    file = tmp_path / "t.arrow"
    rng = np.random.default_rng(3)
    for at in rng.integers(0, len(content), 150):
        changed = content.copy()
        changed[at] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        try:
            list(wr.open(file, **case["options"]))
        except wr.WindrowError as error:
            assert "t.arrow" in str(error)


# What save_to_disk writes of no rows names no files.
def test_a_saved_set_without_rows_has_no_records(tmp_path):
    state = {"_data_files": [], "_fingerprint": "49b4d0211f1e8203", "_format_columns": None, "_split": None}
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "state.json").write_text(json.dumps(state))
        (tmp_path / split / "dataset_info.json").write_text("{}")
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    for ds in (wr.open(tmp_path / "train"), wr.open(tmp_path, split="test")):
        assert len(ds) == 0 and list(ds) == [] and ds.format == "arrow"
    assert wr.verify(tmp_path / "train")["problems"] == []


def refused(path, message, **options):
    with pytest.raises(wr.WindrowError, match=message):
        list(wr.open(path, **options))


# Files that pyarrow writes, and what is wrong with them.
MADE = """
import json, sys
import numpy as np
import pyarrow as pa
folder = sys.argv[1]
def write(name, table, **options):
    with pa.OSFile(f"{folder}/{name}", "wb") as f, pa.ipc.new_stream(f, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
        w.write_table(table)
write("union.arrow", pa.table({"u": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])])}))
write("plain.arrow", pa.table({"x": pa.array([[1, 2], [3], []], pa.list_(pa.int32()))}))
write("other.arrow", pa.table({"x": pa.array([["a"]], pa.list_(pa.string()))}))
write("dictionary.arrow", pa.table({"x": pa.array(["a", "b", "a"]).dictionary_encode()}))
write("two_nulls.arrow", pa.table({"x": pa.array([[1, None], None, [2]], pa.list_(pa.int32()))}))
write("times.arrow", pa.table({"t": pa.array([1, 86399999999], pa.time64("us")), "d": pa.array([5, 7], pa.duration("s"))}))
pictures = [b"x" * 2000, None, b"" , b"y" * 13]
write("bytes.arrow", pa.table({"b": pa.array(pictures)}), compression="lz4")
write("numbers.arrow", pa.table({"b": pa.array([np.arange(5).tobytes(), np.arange(3).tobytes()])}))
delta = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
schema = pa.schema({"x": pa.dictionary(pa.int8(), pa.string())})
with pa.OSFile(f"{folder}/delta.arrow", "wb") as f, pa.ipc.new_stream(f, schema, options=delta) as w:
    for words in (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        w.write_batch(pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([len(words) - 1, 0], pa.int8()), pa.array(words))], schema=schema))
with pa.OSFile(f"{folder}/replaced.arrow", "wb") as f, pa.ipc.new_stream(f, schema) as w:
    for words in (["a", "b"], ["c"], ["d", "e", "f"]):
        w.write_batch(pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([len(words) - 1, 0], pa.int8()), pa.array(words))], schema=schema))
print(json.dumps([]))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with_loaders(MADE, folder)
    return folder


def test_what_is_refused_is_named(made, tmp_path):
    refused(made / "union.arrow", "union")
    (tmp_path / "old.feather").write_bytes(b"FEA1" + b"\0" * 40 + b"FEA1")
    refused(tmp_path / "old.feather", "Feather 1")
    stream = (made / "plain.arrow").read_bytes()
    (tmp_path / "two.arrow").write_bytes(stream + stream)
    refused(tmp_path / "two.arrow", "behind the end")
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(made / "plain.arrow", folder / "a.arrow")
    shutil.copy(made / "other.arrow", folder / "b.arrow")
    with pytest.raises(wr.MismatchError, match="\"x\" is list of text, but list of int32 in"):
        wr.open(folder)


def test_an_index_beyond_its_dictionary_is_an_error(made, tmp_path):
    content = bytearray((made / "dictionary.arrow").read_bytes())
    place = content.rfind(struct.pack("<iii", 0, 1, 0))
    assert place > 0
    content[place : place + 4] = struct.pack("<i", 9)
    (tmp_path / "t.arrow").write_bytes(content)
    refused(tmp_path / "t.arrow", "value 9 of a dictionary")


def test_dictionaries_grow_and_are_replaced(made):
    assert [row["x"] for row in wr.open(made / "delta.arrow")] == ["b", "a", "c", "a", "d", "a"]
    assert [row["x"] for row in wr.open(made / "replaced.arrow")] == ["b", "a", "c", "c", "f", "d"]


def test_a_null_is_an_error_of_its_record_alone(made):
    ds = wr.open(made / "two_nulls.arrow")
    assert len(ds) == 3 and ds[2].tolist() == [2]
    for record, message in ((0, "a null among"), (1, "null")):
        with pytest.raises(wr.CorruptError, match=message) as error:
            ds[record]
        assert error.value.record == record
    assert [row["x"] if row["x"] is None else list(row["x"]) for row in wr.open(made / "two_nulls.arrow", columns=["x"])] == [[1, None], None, [2]]


def test_times_and_bytes(made):
    assert [row["t"] for row in wr.open(made / "times.arrow")] == ["00:00:00.000001", "23:59:59.999999"]
    assert [row["d"] for row in wr.open(made / "times.arrow")] == ["PT5S", "PT7S"]
    assert [row["b"] for row in wr.open(made / "bytes.arrow")] == [b"x" * 2000, None, b"", b"y" * 13]
    ds = wr.open(made / "numbers.arrow", column="b", dtype="int64")
    assert [row.tolist() for row in ds] == [[0, 1, 2, 3, 4], [0, 1, 2]]


def test_buffers_that_expand_to_more_than_they_may_are_refused(made):
    refused(made / "bytes.arrow", "cache_limit", cache_limit=1000)
