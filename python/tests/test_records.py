"""Records of bytes, TFRecord, ArrayRecord and Bagz: golden cases, read beside their packages, and damage."""

import base64
import json
import re
import shutil
import zlib

import numpy as np
import pytest
from numcodecs import Zstd

import windrow as wr
import foreign_cases
from foreign_cases import same, value, with_loaders

GOLDEN = foreign_cases.GOLDEN / "records"
CASES = foreign_cases.names("records")


def test_there_are_cases():
    assert len(CASES) >= 28


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    path = GOLDEN / name / case["open"]
    if case["records"] == "error":
        with pytest.raises(wr.WindrowError):
            ds = wr.open(path, **case["options"])
            assert case["stage"] == "read"
            list(ds)
        return
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    if case.get("error_ok"):
        with pytest.raises(wr.UnsupportedError, match="transposed"):
            wr.open(path, **case["options"])
        return
    ds = wr.open(path, **case["options"])
    if case["records"] == "digest":
        assert [{"sha": zlib.crc32(record), "size": len(record)} for record in ds] == expected["records"]
        return
    assert same(list(ds), value(expected["records"]))
    for i, extras in enumerate(expected.get("extras", [])):
        assert {k: v for k, v in value(extras).items() if not same(v, ds.extras(i).get(k))} == {}


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("broken", "ar_transposed"))])
def test_good_ones_verify_and_damage_is_found(name, tmp_path):
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    for made in ("case.json", "expected.json"):
        (tmp_path / "copy" / made).unlink()
    found = wr.verify(tmp_path / "copy")
    assert found["problems"] == []
    # Nobody said that it holds examples: a field that they do not have is told of, and is no damage.
    told = [note for note in found["notes"] if "field 9 of tf.train.Example, which is not known" in note]
    assert len(told) == (name == "tf_unpacked")
    data = max((tmp_path / "copy").glob("*.*"), key=lambda path: path.stat().st_size)
    data.write_bytes(data.read_bytes()[:-1])
    assert wr.verify(tmp_path / "copy")["problems"]


def test_every_flipped_bit_of_a_tfrecord_is_found(tmp_path):
    good = (GOLDEN / "tf_unpacked" / "data.tfrecord").read_bytes()
    path = tmp_path / "a.tfrecord"
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 16]) + good[at + 1 :])
        with pytest.raises(wr.WindrowError):
            list(wr.open(path))


def frames(records):
    """TFRecord of these, by the table of CRC-32C."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)

    def checksum(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc = table[(crc ^ byte) & 255] ^ crc >> 8
        crc ^= 0xFFFFFFFF
        return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")

    out = b""
    for record in records:
        length = len(record).to_bytes(8, "little")
        out += length + checksum(length) + record + checksum(record)
    return out


def test_payloads(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frames([b'{"id": 1, "ids": [1, 2, 3]}', b'{"id": 2, "ids": [4], "x": null}']))
    assert wr.open(path)[0] == b'{"id": 1, "ids": [1, 2, 3]}'
    assert wr.open(path, payload="text")[1].startswith('{"id": 2')
    assert wr.open(path, payload="json")[1] == {"id": 2, "ids": [4], "x": None}
    assert wr.open(path, payload="json", columns=["x", "id"])[0] == {"x": None, "id": 1}
    ds = wr.open(path, payload="json", column="ids")
    assert [record.tolist() for record in ds] == [[1, 2, 3], [4]] and ds[0].dtype == "int64"
    assert ds.extras(1) == {"id": 2, "x": None}
    with pytest.raises(wr.ConfigError, match="payload"):
        wr.open(path, column="ids")
    with pytest.raises(wr.CorruptError, match=r"record 0"):
        wr.open(path, payload="example")[0]
    with pytest.raises(wr.ConfigError, match="payload"):
        wr.open(GOLDEN.parent / "tokens" / "llmc_gpt2" / "tiny_val.bin", payload="text")


def test_tokens_in_bytes_are_packed_shuffled_and_resumed(tmp_path):
    rng = np.random.default_rng(0)
    documents = [rng.integers(0, 50_000, n).astype("uint16") for n in rng.integers(1, 60, 200)]
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frames([d.tobytes() for d in documents]))
    ds = wr.open(path, dtype="uint16")
    assert all((record == want).all() for record, want in zip(ds, documents))
    plain = tmp_path / "b.bin"
    wr.write(plain, [np.concatenate(documents)], to="tokens")
    loader = wr.Loader(ds.pack(32), batch_size=4, seed=1)
    other = wr.Loader(wr.open(plain).pack(32), batch_size=4, seed=1)
    for _ in range(5):
        assert (next(loader)["input_ids"] == next(other)["input_ids"]).all()
    again = wr.Loader(ds.pack(32), batch_size=4, seed=1)
    again.load_state_dict(loader.state_dict())
    assert (next(again)["labels"] == next(other)["labels"]).all()


def test_rows_are_written_elsewhere(tmp_path):
    wr.convert(wr.open(GOLDEN / "tf_example" / "data.tfrecord", columns=["n", "tokens"]), tmp_path / "out", to="mds")
    found, given = wr.open(tmp_path / "out"), wr.open(GOLDEN / "tf_example" / "data.tfrecord")
    assert same([row["tokens"] for row in found], [row["tokens"] for row in given])


def test_a_frame_that_expands_to_very_much_is_refused(tmp_path):
    frame = Zstd(level=19).encode(bytes(64 << 20))
    assert len(frame) < 10_000
    (tmp_path / "a.bagz").write_bytes(frame + len(frame).to_bytes(8, "little"))
    with pytest.raises(wr.CorruptError, match="expand"):
        wr.open(tmp_path / "a.bagz", payload="bytes")[0]
    (tmp_path / "a.bagz").write_bytes(b"straw" + (5).to_bytes(8, "little"))
    with pytest.raises(wr.CorruptError, match="zstd"):
        wr.open(tmp_path / "a.bagz", payload="bytes")[0]


def test_a_missing_shard_is_an_error(tmp_path):
    for case, gone in [("ar_tokens", "corpus-train.array_record-00000-of-00002"), ("tf_bytes", "x.tfrecord-00001-of-00002")]:
        shutil.copytree(GOLDEN / case, tmp_path / case)
        (tmp_path / case / gone).unlink()
        options = json.loads((GOLDEN / case / "case.json").read_text())["options"]
        with pytest.raises(FileNotFoundError, match=gone):
            wr.open(tmp_path / case, **options)
        assert [p for p in wr.verify(tmp_path / case)["problems"] if p["what"] == "shards"]
        other = next((tmp_path / case).glob("*rec*-of-*2"))
        assert len(wr.open(other, payload="bytes")) == 6


def test_a_tfds_folder_is_told_from_its_descriptions(tmp_path):
    for shard in (GOLDEN / "ar_tokens").glob("*.array_record*"):
        shutil.copy(shard, tmp_path)
    (tmp_path / "dataset_info.json").write_text('{"name": "corpus", "splits": [{"name": "train", "shardLengths": ["6", "6"]}]}')
    (tmp_path / "features.json").write_text('{"type": "tensor"}')
    assert len(wr.open(tmp_path, split="train", payload="bytes")) == 12
    assert len(wr.open(tmp_path, split="test")) == 1
    with pytest.raises(wr.ConfigError, match="split"):
        wr.open(tmp_path)


def test_tokens_in_groups_are_packed_as_those_in_a_file(tmp_path):
    ds = wr.open(GOLDEN / "ar_tokens", split="train", dtype="uint16")
    plain = tmp_path / "b.bin"
    wr.write(plain, [np.concatenate(list(ds))], to="tokens")
    loader = wr.Loader(ds.pack(16), batch_size=3, seed=1)
    other = wr.Loader(wr.open(plain).pack(16), batch_size=3, seed=1)
    for _ in range(5):
        assert (next(loader)["input_ids"] == next(other)["input_ids"]).all()


READERS = """
import base64, json, sys
import numpy as np

def of(path):
    if ".bag" in path:
        import bagz
        return [bytes(record) for record in bagz.Reader(path)]
    if path.endswith(".array_record"):
        from array_record.python.array_record_module import ArrayRecordReader
        reader = ArrayRecordReader(path)
        return reader.read(list(range(reader.num_records())))
    from tfrecord.reader import tfrecord_iterator
    return [bytes(record) for record in tfrecord_iterator(path)]

def examples(path):
    from tfrecord.example_pb2 import Example
    kinds = {"bytes_list": lambda f: ["bytes", [base64.b64encode(b).decode() for b in f.bytes_list.value]],
             "float_list": lambda f: ["float", list(f.float_list.value)],
             "int64_list": lambda f: ["whole", list(f.int64_list.value)], None: lambda f: None}
    found = [Example.FromString(record).features.feature for record in of(path)]
    return [{k: kinds[f.WhichOneof("kind")](f) for k, f in features.items()} for features in found]

path = sys.argv[2]
plain = lambda path: [base64.b64encode(record).decode() for record in of(path)]
print(json.dumps({"examples": examples, "of": plain}[sys.argv[1]](path)))
"""


def read_by_its_package(what, path):
    found = with_loaders(READERS, what, path)
    return [base64.b64decode(one) for one in found] if what == "of" else found


WRITTEN = ["a.tfrecord", "a.array_record", "a.bagz", "a.bag"]


def format_of(name):
    return "bagz" if ".bag" in name else name.split(".")[1]


def field(number, body):
    """A field of a Protocol Buffers message: of bytes, of a length below 128."""
    assert len(body) < 128
    return bytes([number << 3 | 2, len(body)]) + body


def feature(*numbers):
    return field(3, field(1, bytes(numbers)))


def entry(name, value):
    return field(1, field(1, name.encode()) + field(2, value))


EXAMPLE = field(1, entry("id", feature(5)))
LISTS = field(2, entry("words", field(1, feature(7)) + field(1, feature(8, 9))))

CHECKED_BY = {"a.tfrecord": "CRC-32C of records", "a.array_record": "HighwayHash of chunks"}

# A tf.train.SequenceExample, and fields that no version of tf.train.Example has, each where one may be.
NOT_EXAMPLES = {
    "context": (EXAMPLE + LISTS, "tf.train.SequenceExample"),
    "lists": (LISTS, "tf.train.SequenceExample"),
    "lists_first": (LISTS + EXAMPLE, "tf.train.SequenceExample"),
    "no_lists": (EXAMPLE + field(2, b""), "tf.train.SequenceExample"),
    "example": (EXAMPLE + field(3, b"more"), "field 3 of tf.train.Example"),
    "another_two": (EXAMPLE + field(2, b"more"), "field 2 of tf.train.Example"),
    "number": (EXAMPLE + b"\x20\x01", "field 4 of tf.train.Example"),
    "features": (field(1, entry("id", feature(5)) + field(2, b"more")), "field 2 of tf.train.Features"),
    "entry": (field(1, field(1, field(1, b"id") + field(2, feature(5)) + field(9, b""))), "field 9 of .* of tf.train.Features"),
    "kind": (field(1, entry("id", feature(5)) + entry("x", field(4, b"more"))), "field 4 of tf.train.Feature"),
    "list": (field(1, entry("id", field(3, field(1, b"\x05") + field(2, b"\x06")))), "field 2 of tf.train.Int64List"),
    "wire": (field(1, entry("id", field(2, field(1, bytes(4)) + b"\x08\x05"))), "field 1 of tf.train.FloatList"),
}


def plain_records(path, records):
    """A file of these bytes, of which nothing beside it says what they hold."""
    wr.write(path, [{"value": record} for record in records], to=format_of(path.name))
    for beside in path.parent.glob(f"{path.name}.windrow*"):
        beside.unlink()


@pytest.mark.parametrize("file", WRITTEN)
@pytest.mark.parametrize("name", NOT_EXAMPLES)
def test_what_an_example_has_not_is_refused_by_its_name(file, name, tmp_path):
    record, words = NOT_EXAMPLES[name]
    path, later = tmp_path / file, tmp_path / "later" / file
    later.parent.mkdir()
    plain_records(path, [record, EXAMPLE])
    plain_records(later, [EXAMPLE, record])
    refused = {"first": lambda: wr.open(path), "said": lambda: wr.open(path, payload="example")[0]}
    if name in ("number", "wire"):
        # Numbers hold no features: where it is said that these are examples, they are skipped as other readers do.
        assert refused.pop("said")()["id"].size < 2
    for options in [{}, *([{"payload": "example"}] if "said" in refused else []), {"column": "id"}, {"columns": ["id"]}]:
        refused[f"later, {options}"] = lambda options=options: list(wr.open(later, **options))
    refused["written"] = lambda: wr.convert(wr.open(later), tmp_path / "out.jsonl", to="jsonl")
    for what, read in refused.items():
        with pytest.raises(wr.UnsupportedError, match=words) as caught:
            read()
        assert (caught.value.record, caught.value.path) == ((0, str(path)) if what in ("first", "said") else (1, str(later)))
        assert 'payload="bytes"' in caught.value.hint, what
    assert list(wr.open(path, payload="bytes")) == [record, EXAMPLE]
    assert wr.verify(later)["problems"][0]["record"] == 1
    # It is whole: the frames were read, and what opens them is said.
    for at in (path, tmp_path):
        for beside in [later] if at == tmp_path and later.exists() else []:
            beside.unlink()
        found = wr.verify(at)
        state = {"state": "read"} if "bag" in file else {"state": "checked", "by": CHECKED_BY[file]}
        assert found["files"] == {file: state} and found["problems"] == [] and found["checked_records"] == 2
        [note] = [note for note in found["notes"] if file in note and "payload" in note]
        assert re.search(words, note) and note.endswith('; payload="bytes" opens it')
    damaged = bytearray(path.read_bytes())
    damaged[damaged.rindex(record or EXAMPLE)] ^= 1
    path.write_bytes(damaged)
    if "bag" not in file:
        assert wr.verify(path)["files"][file]["state"] == "bad"


# Other messages of Protocol Buffers, and what only begins as an example does, are bytes as before.
@pytest.mark.parametrize("record", [b"\x08\x05", field(1, b"hello"), field(2, b"hello") + field(7, b""), field(2, field(1, b"")), b""])
def test_other_messages_are_bytes(record, tmp_path):
    plain_records(tmp_path / "a.tfrecord", [record])
    assert list(wr.open(tmp_path / "a.tfrecord")) == [record]


@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_are_read_back_and_by_its_package(name, tmp_path):
    path, to = tmp_path / name, format_of(name)
    for dtype in ["uint16", "int64", "float32", "uint8", "float16"]:
        arrays = [np.arange(n, n + n % 7, dtype=dtype) for n in range(40)]
        if to == "tfrecord":
            stored = "float32" if dtype.startswith("float") else "int64"
            records = [{"sequence": array, "name": f"n{n}"} for n, array in enumerate(arrays)]
        else:
            stored, records = dtype, arrays
        assert wr.write(path, records, to=to, overwrite=True)["records"] == 40
        ds = wr.open(path)
        assert same(list(ds), [array.astype(stored) for array in arrays])
        assert wr.verify(path)["problems"] == []
        if to == "tfrecord":
            assert ds.extras(3) == {"name": [b"n3"]}
            kind = "float" if stored == "float32" else "whole"
            theirs = read_by_its_package("examples", path)
            assert [row["tokens"] for row in theirs] == [[kind, array.tolist()] for array in arrays]
        else:
            assert read_by_its_package("of", path) == [array.tobytes() for array in arrays]
    with pytest.raises(wr.ConfigError, match=r"holds records \[T\], and these have 2 channels") as caught:
        wr.write(path, [[[1, 2], [3, 4]]], to=to, overwrite=True)
    assert "parquet" in caught.value.hint and caught.value.field == ("tokens" if to == "tfrecord" else None)


# Numbers that are decoded out of a record have no place of their own: the stored record is what was read.
@pytest.mark.parametrize("name", WRITTEN)
def test_trace_names_the_bytes_of_the_records_that_were_read(name, tmp_path):
    path, to = tmp_path / name, format_of(name)
    arrays = [np.arange(100 * n, 100 * n + 3 + n % 5, dtype="int64") for n in range(20)]
    wr.write(path, [{"sequence": array} for array in arrays] if to == "tfrecord" else arrays, to=to)
    ds = wr.open(path)
    loader = wr.Loader(ds.pack(4), batch_size=2, seed=1)
    reads = [read for step in range(5) for row in wr.trace(loader, step) for read in row["reads"]]
    content, places = path.read_bytes(), {}
    for read in reads:
        (place,) = read["locations"]
        assert place["file"] == str(path)
        stored = content[place["start"] : place["start"] + place["size"]]
        if to == "array_record" or name == "a.bag":
            assert arrays[read["record"]].tobytes() in stored
        places[read["record"]] = (place["start"], len(stored))
    assert all(size > 0 for _, size in places.values()) and len(set(places.values())) == len(places) > 5
    with pytest.raises(wr.CorruptError, match="outside the vocabulary") as caught:
        wr.open(path, vocab_size=1000)
    assert caught.value.byte > 0 and caught.value.record == 10


@pytest.mark.parametrize("name", WRITTEN)
def test_rows_are_read_back_and_by_its_package(name, tmp_path):
    path, to = tmp_path / name, format_of(name)
    rows = [
        {"text": f"größe {n}", "n": -n, "score": n / 3, "tokens": np.arange(n, dtype="uint16"), "tags": ["a", f"{n}"], "no": None}
        for n in range(30)
    ]
    wr.write(path, rows, to=to)
    found = list(wr.open(path))
    if to == "bagz":
        assert found == [{**row, "tokens": row["tokens"].tolist()} for row in rows]
        assert [json.loads(record) for record in read_by_its_package("of", path)] == found
        tokens = wr.open(path, column="tokens")
        assert (tokens[7] == rows[7]["tokens"]).all() and tokens.extras(7)["n"] == -7
        return
    expected = [
        {
            "text": [row["text"].encode()],
            "n": np.array([row["n"]]),
            "score": np.array([row["score"]], dtype="float32"),
            "tokens": row["tokens"].astype("int64"),
            "tags": [tag.encode() for tag in row["tags"]],
            "no": None,
        }
        for row in rows
    ]
    assert same(found, expected)
    for theirs, row in zip(read_by_its_package("examples", path), expected):
        assert theirs["no"] is None and theirs["n"] == ["whole", row["n"].tolist()]
        assert theirs["text"] == ["bytes", [base64.b64encode(row["text"][0]).decode()]]
        assert theirs["score"] == ["float", row["score"].tolist()] and theirs["tokens"] == ["whole", row["tokens"].tolist()]


@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_a_folder_open_as_their_manifests_say(name, tmp_path):
    to, end = format_of(name), name[1:]
    numbers = [np.arange(n, n + 4, dtype="int64") for n in range(6)]

    def write(stem, records):
        records = [{"sequence": one} for one in records] if to == "tfrecord" else records
        wr.write(tmp_path / "d" / f"{stem}{end}", records, to=to)

    (tmp_path / "d").mkdir()
    write("x", numbers[:4])
    write("y", numbers[4:])
    assert same(list(wr.open(tmp_path / "d")), numbers)
    wr.write(tmp_path / "d" / f"z{end}", [{"value": "hay"}], to=to)
    with pytest.raises(wr.MismatchError, match="the records are text, those of .* are int64 numbers") as caught:
        wr.open(tmp_path / "d")
    assert f"z{end}" in str(caught.value)
    assert wr.open(tmp_path / "d", payload="bytes")[6] == b"hay"
    # Of one without a manifest nobody said that it is as the others.
    (tmp_path / "d" / f"z{end}.windrow.json").unlink()
    (tmp_path / "d" / f"z{end}.windrow.sums").unlink()
    assert not isinstance(wr.open(tmp_path / "d")[0], np.ndarray)
    (tmp_path / "d" / f"z{end}").unlink()
    data = tmp_path / "d" / f"y{end}"
    data.write_bytes(data.read_bytes() + bytes(8))
    with pytest.raises(wr.WindrowError):
        wr.open(tmp_path / "d")


@pytest.mark.parametrize("name", WRITTEN)
def test_records_of_bytes_and_text_are_written_as_they_are(name, tmp_path):
    to = format_of(name)
    rng = np.random.default_rng(0)
    # Beyond blocks of 64 KiB, and exactly to the end of one.
    blobs = [rng.bytes(int(n)) for n in [0, 5, 200_000, 1, 65_000, 0, *rng.integers(0, 3000, 60)]]
    for records, payload in [(blobs, "bytes"), (["größe", "", "hay"], "text")]:
        path = tmp_path / f"{payload}{name[1:]}"
        wr.write(path, [{"value": record} for record in records], to=to)
        assert list(wr.open(path)) == records
        stored = [record.encode() if payload == "text" else record for record in records]
        assert read_by_its_package("of", path) == stored
        for other in WRITTEN:
            copy = tmp_path / f"copy-{payload}-{other}"
            wr.convert(wr.open(path), copy, to=format_of(other))
            assert list(wr.open(copy)) == records
    with pytest.raises(wr.ConfigError, match="another kind"):
        wr.write(path, [{"value": b"a"}, {"value": "a"}], to=to, overwrite=True)
    assert list(wr.open(path)) == records


def test_what_an_example_or_json_does_not_hold_is_refused(tmp_path):
    for value in [{"a": 1}, 2**63, [1, "a"], [None], np.zeros((2, 2)), 1e300]:
        with pytest.raises(wr.ConfigError, match="x"):
            wr.write(tmp_path / "a.tfrecord", [{"x": value, "y": 1}], to="tfrecord")
    for value in [b"a", float("nan"), np.array([np.inf]), 2**70]:
        with pytest.raises(wr.ConfigError, match="x"):
            wr.write(tmp_path / "a.bagz", [{"x": value, "y": 1}], to="bagz")
    with pytest.raises(wr.ConfigError, match="float32"):
        wr.write(tmp_path / "a.tfrecord", [[0.1]], to="tfrecord", dtype="float64")
    with pytest.raises(wr.ConfigError, match="expand"):
        wr.write(tmp_path / "a.bagz", [{"value": bytes(64 << 20)}], to="bagz")
    wr.write(tmp_path / "a.bag", [{"value": bytes(64 << 20)}], to="bagz")
    assert len(wr.open(tmp_path / "a.bag")[0]) == 64 << 20
    rows = [{"x": [[1, 2], [3]], "y": np.arange(6, dtype="int8").reshape(2, 3), "z": {"a": np.array([True])}}]
    wr.write(tmp_path / "b.bagz", rows, to="bagz")
    assert wr.open(tmp_path / "b.bagz")[0] == {"x": [[1, 2], [3]], "y": [[0, 1, 2], [3, 4, 5]], "z": {"a": [True]}}


@pytest.mark.parametrize("name", ["ar_big", "ar_uncompressed_json", "ar_empty"])
def test_array_record_is_written_byte_for_byte_as_by_its_package(name, tmp_path):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    golden = (GOLDEN / name / "data.array_record").read_bytes()
    records = list(wr.open(GOLDEN / name, payload="bytes"))
    path = tmp_path / "a.array_record"
    if not records:
        with pytest.raises(wr.ConfigError, match="no record"):
            wr.write(path, [], to="array_record")
        return
    wr.write(path, [{"value": record} for record in records], to="array_record")
    if "group_size:1," in case["about"] or name == "ar_big":
        assert path.read_bytes() == golden
    assert read_by_its_package("of", path) == records


def test_an_index_beside_a_large_tfrecord_is_a_checked_claim(tmp_path):
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.tfindex"
    rng = np.random.default_rng(0)
    records = [rng.bytes(int(n)) for n in rng.integers(0, 9000, 2000)]
    wr.write(path, [{"value": record} for record in records], to="tfrecord")
    assert path.stat().st_size > 5 << 20
    # As another program leaves it.
    (tmp_path / "a.tfrecord.windrow.json").unlink()
    (tmp_path / "a.tfrecord.windrow.sums").unlink()
    sizes = [len(record) + 16 for record in records]
    places = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
    lines = [[place, size] for place, size in zip(places, sizes)]

    def listed(name, lines):
        (tmp_path / name).write_text("".join(f"{place} {size}\n" for place, size in lines))
        return wr.open(path, payload="bytes")

    for name in ["a.tfindex", "a.tfrecord.tfindex", "a.idx"]:
        ds = listed(name, lines)
        assert len(ds) == 2000 and all(ds[i] == records[i] for i in range(0, 2000, 7))
        (tmp_path / name).unlink()
    # What lists a border inside a record, or leaves one out, is found when that is read.
    inside = [*lines[:5], [places[5], 16], [places[5] + 16, sizes[5] - 16], *lines[6:]]
    for wrong, at in [(inside, 5), ([*lines[:5], [places[5], sizes[5] + sizes[6]], *lines[7:]], 5)]:
        ds = listed("a.tfindex", wrong)
        assert ds[4] == records[4]
        with pytest.raises(wr.CorruptError, match="index|checksum"):
            ds[at]
    # What does not cover the file is not used.
    for wrong in [lines[:-1], lines[1:], [[1, 2]], [*lines, [places[-1], 16]], [[0, 2**70]]]:
        assert list(listed("a.tfindex", wrong)) == records
    index.write_bytes(b"\xff" * 1000)
    assert list(wr.open(path, payload="bytes")) == records


def test_a_file_in_capitals_is_read_as_it_is_written(tmp_path):
    wr.write(tmp_path / "x.BAGZ", [[1, 2], [3]], to="bagz", dtype="uint16")
    assert [one.tolist() for one in wr.open(tmp_path / "x.BAGZ")] == [[1, 2], [3]]
    assert wr.verify(tmp_path / "x.BAGZ")["problems"] == []
