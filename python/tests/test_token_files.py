"""Token files of other programs: golden cases, written and read by the rules of their own readers, and damage."""

import csv
import gzip
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import same, value, with_loaders

GOLDEN = foreign_cases.GOLDEN / "tokens"
CASES = foreign_cases.names("tokens")


def test_there_are_cases():
    assert len(CASES) >= 27


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    path = GOLDEN / name / case["open"]
    if case["records"] == "error":
        with pytest.raises(wr.WindrowError):
            wr.open(path, **case["options"])
        return
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    ds = wr.open(path, **case["options"])
    assert len(ds) == len(expected["records"])
    assert all(same(value(want), found) for want, found in zip(expected["records"], ds))
    for i, extras in enumerate(expected.get("extras", [])):
        assert value(extras).items() <= ds.extras(i).items()
    assert wr.verify(path)["problems"] == []


def test_the_loss_bytes_are_the_masks_of_views():
    ds = wr.open(GOLDEN / "datatrove_loss")
    view = ds.pack(8, labels="same")
    batch = view.batch(range(len(view)))
    learned = np.concatenate([record["loss"] for record in ds])
    masks = batch["loss_masks"].reshape(-1)
    assert masks.tolist() == learned[: len(masks)].tolist()
    next_token = ds.pack(8).batch([0])["loss_masks"][0]
    assert next_token.tolist() == learned[1:9].tolist()


DOCUMENTS = [np.array([5, 6, 7], "uint16"), np.array([8], "uint16"), np.array([], "uint16"), np.array([9, 50_000], "uint16")]


def joined(dtype):
    return np.concatenate(DOCUMENTS).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_written_for_llmc_as_its_reader_checks(tmp_path, dtype):
    out = tmp_path / "x_train_000001.bin"
    wr.write(out, [d for d in DOCUMENTS if len(d)], to="llmc", dtype=dtype)
    header = np.fromfile(out, "<i4", 256)
    magic, version = {"uint16": (20240520, 1), "uint32": (20240801, 7)}[dtype]
    tokens = np.fromfile(out, dtype, offset=1024)
    assert header[:3].tolist() == [magic, version, len(tokens)] and not header[3:].any()
    assert out.stat().st_size == 1024 + len(tokens) * tokens.itemsize
    assert tokens.tolist() == joined(dtype).tolist()
    assert wr.open(out)[0].tolist() == tokens.tolist() and wr.open(out).format == "llmc"


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_written_for_datatrove(tmp_path, dtype):
    wr.write(tmp_path / "out", DOCUMENTS, to="datatrove", dtype=dtype)
    data = next((tmp_path / "out").glob("*.ds"))
    ends = np.fromfile(f"{data}.index", "<u8")
    first, count, _ = Path(f"{data}.metadata").read_text().split("\n")
    assert ends.tolist() == np.cumsum([len(d) for d in DOCUMENTS]).tolist()
    assert int(first.rsplit("|", 1)[1]) == np.dtype(dtype).itemsize and int(count) == ends[-1]
    assert np.fromfile(data, dtype).tolist() == joined(dtype).tolist()
    ds = wr.open(tmp_path / "out")
    assert [record.tolist() for record in ds] == [d.tolist() for d in DOCUMENTS] and ds.format == "datatrove"


def test_written_for_olmo_with_its_documents(tmp_path):
    records = [{"id": "a,b", "src": 's3://x/"y".gz', "loc": 3}, {"id": "c", "src": "z", "loc": 9}]
    tracks = tmp_path / "in.jsonl"
    tracks.write_text("".join(json.dumps({"sequence": [1, 2, i], **extras}) + "\n" for i, extras in enumerate(records)))
    wr.convert(wr.open(tracks, format="series-jsonl"), tmp_path / "out", to="olmo", dtype="uint16")
    data = next((tmp_path / "out").glob("*.npy"))
    rows = list(csv.reader(io.TextIOWrapper(gzip.open(str(data)[:-4] + ".csv.gz"), encoding="utf-8", newline="")))
    assert rows == [["0", "3", "a,b", 's3://x/"y".gz', "3"], ["3", "6", "c", "z", "9"]]
    assert np.fromfile(data, "uint16").tolist() == [1, 2, 0, 1, 2, 1]
    ds = wr.open(tmp_path / "out")
    assert [ds.extras(i) for i in range(2)] == records and ds.format == "olmo"


@pytest.mark.parametrize("to", ["llmc", "datatrove"])
def test_a_corpus_is_tokenised_into_it(tmp_path, to):
    texts = ["one line", "another", "three"]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    wr.tokenize(tmp_path / "in.jsonl", tmp_path / "out", tokenizer="bytes", to=to, append_eos=True)
    ds = wr.open(tmp_path / "out")
    found = np.concatenate(list(ds)).tolist()
    assert found == [byte for text in texts for byte in [*text.encode(), 256]]
    assert len(ds) == {"llmc": 1, "datatrove": 3}[to]
    assert wr.verify(tmp_path / "out")["problems"] == []


@pytest.mark.parametrize(("to", "out"), [("llmc", "out.bin"), ("datatrove", "out"), ("olmo", "out"), ("tokens", "out.bin")])
def test_series_of_several_channels_are_refused_as_such(tmp_path, to, out):
    wr.write(tmp_path / "ts", [np.zeros((4, 3), "float32")], to="shards")
    with pytest.raises(wr.ConfigError, match=r"hold records \[T\], and these are \[T, 3\]") as refused:
        wr.convert(tmp_path / "ts", tmp_path / out, to=to)
    assert "dtype" not in refused.value.hint and not (tmp_path / out).exists()


def test_evaluation_files_of_llmc_are_refused_by_name(tmp_path):
    (tmp_path / "hellaswag_val.bin").write_bytes(np.array([20240522, 1, 3] + [0] * 253, "<i4").tobytes() + b"\0" * 64)
    with pytest.raises(wr.WindrowError, match="evaluation file"):
        wr.open(tmp_path / "hellaswag_val.bin")


def test_a_folder_with_several_splits_says_which(tmp_path):
    shutil.copytree(GOLDEN / "llmc_folder", tmp_path / "copy")
    with pytest.raises(wr.WindrowError, match="split="):
        wr.open(tmp_path / "copy")
    assert len(wr.open(tmp_path / "copy", split="val")) == 1


def test_an_array_of_numpy_is_still_one(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6, dtype="uint16").reshape(2, 3))
    assert wr.open(tmp_path / "a.npy").format == "npy"


def test_a_line_without_an_end_takes_no_memory(tmp_path):
    (tmp_path / "a.npy").write_bytes(bytes(range(1, 101)))
    with gzip.open(tmp_path / "a.csv.gz", "wb") as file:
        for _ in range(64):
            file.write(b"1" * (1 << 20))
    with pytest.raises(wr.CorruptError, match="more than"):
        wr.open(tmp_path / "a.npy", dtype="uint16")


def test_mixed_packed_and_resumed_on_other_ranks(tmp_path):
    wr.write(tmp_path / "plain.bin", [np.arange(3000, dtype="uint16")], to="tokens")
    parts = {
        "plain": wr.open(tmp_path / "plain.bin").pack(16),
        "datatrove": wr.open(GOLDEN / "datatrove_u16").pack(16),
        "olmo": wr.open(GOLDEN / "olmo_uint16", dtype="uint16").pack(16),
        "llmc": wr.open(GOLDEN / "llmc_gpt2" / "tiny_val.bin").pack(16),
    }
    mixture = wr.mix({name: (view, 1.0) for name, view in parts.items()}, stop="never")

    def loader(rank, world):
        return wr.Loader(mixture, global_batch_size=12, shuffle=True, seed=3, rank=rank, world_size=world)

    one = loader(0, 1)
    before = [next(one) for _ in range(3)]
    state = one.state_dict()
    after = next(one)
    assert len(before) == 3
    resumed = []
    for rank in range(3):
        other = loader(rank, 3)
        other.load_state_dict(state)
        resumed.append(next(other)["input_ids"])
    assert np.concatenate(resumed).tolist() == after["input_ids"].tolist()
    traced = wr.trace(one, 0)
    assert len(traced) == 12
    text = json.dumps(traced)
    assert ".bin" in text and ".ds" in text and ".npy" in text


READ = """
import json, sys
from pathlib import Path
from datatrove.utils.dataset import DatatroveFileDataset
data = str(next(Path(sys.argv[1]).glob("*.ds")))
blocks = DatatroveFileDataset(data, int(sys.argv[2]), token_size=int(sys.argv[3]))
print(json.dumps([blocks[i]["input_ids"].tolist() for i in range(len(blocks))]))
"""


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_datatrove_reads_what_was_written(tmp_path, dtype):
    records = [np.arange(n, n + 40, dtype=dtype) for n in range(30)]
    wr.write(tmp_path / "out", records, to="datatrove", dtype=dtype)
    blocks = with_loaders(READ, tmp_path / "out", 15, np.dtype(dtype).itemsize)
    # Blocks of 15 + 1 tokens that share none.
    expected = np.concatenate(records)
    assert blocks == expected[: len(blocks) * 16].reshape(-1, 16).tolist() and len(blocks) == 75


@pytest.mark.parametrize("together", [True, False])
def test_an_array_of_numpy_among_headerless_files_is_refused(tmp_path, together):
    np.arange(100, dtype="<u2").tofile(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.arange(100, dtype=np.uint16))
    if not together:
        (tmp_path / "a.npy").unlink()
    with pytest.raises(wr.CorruptError, match="without a header, found an array of numpy's") as error:
        ds = wr.open(tmp_path, format="olmo", dtype="uint16")
        [np.asarray(ds[i]) for i in range(len(ds))]
    assert "b.npy" in str(error.value)


def array_of_numpy():
    file = io.BytesIO()
    np.save(file, np.arange(100, dtype=np.uint16))
    return file.getvalue()


OTHERS = {
    "Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + 32 * b"ab" + b"\nsize 1234567\n",
    "HTML page": b"<!DOCTYPE html><html><body>404</body></html>\n",
    "gz stream": gzip.compress(np.arange(100, dtype=np.uint16).tobytes(), mtime=0),
    "numpy": array_of_numpy(),
}


# An array that numpy wrote into `.npy` is read as what it is.
OTHERS_AS = [(kind, name) for kind in OTHERS for name in ("a.ds", "part-0-00000.npy") if kind != "numpy" or name == "a.ds"]


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize(("kind", "name"), OTHERS_AS)
def test_files_of_other_programs_are_not_taken_for_token_ids(tmp_path, kind, name, is_folder):
    path = tmp_path / name
    path.write_bytes(OTHERS[kind] + (len(OTHERS[kind]) % 2) * b"\n")
    for options in [{}, {"dtype": "uint16"}]:
        with pytest.raises(wr.UnsupportedError, match="expected raw token IDs") as error:
            wr.open(tmp_path if is_folder else path, **options)
        assert kind in str(error.value) and name in str(error.value)
    ds = wr.open(path, dtype="uint16", trust=True)
    assert ds[0].tobytes() == path.read_bytes()
