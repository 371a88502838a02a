"""Records of bytes, TFRecord, ArrayRecord and Bagz: golden cases, read beside their packages, and damage."""

import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from numcodecs import Zstd

import windrow as wr
from foreign_cases import same, value

GOLDEN = Path(__file__).parents[2] / "testdata" / "golden" / "6_foreign" / "records"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/case.json"))


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
    assert wr.verify(tmp_path / "copy")["problems"] == []
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
