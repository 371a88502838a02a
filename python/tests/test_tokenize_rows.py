"""Text in a column: Parquet, Arrow, what `datasets` saved, WebDataset and others give the token IDs of the same JSON Lines."""

import io
import itertools
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

import windrow as wr
from conftest import running
from foreign_cases import with_loaders

# In three parts, with empty texts, texts of several bytes a character, a long one, and a part without rows.
MADE = """
import json, os, sys
import pyarrow as pa, pyarrow.feather, pyarrow.parquet as pq
import datasets
datasets.disable_progress_bars()
folder = sys.argv[1]
for kind in ("parquet", "arrow", "feather"):
    os.mkdir(f"{folder}/{kind}")
texts = ["wörd %d " % i * (i % 5) + "雨" * (i % 3) for i in range(700)]
texts[300] = "long " * 60_000
parts = {"a1": texts[:250], "a2": [], "a10": texts[250:]}
for name, part in parts.items():
    table = pa.table({
        "id": pa.array(range(len(part)), pa.int64()),
        "text": pa.array(part, pa.string()),
        "meta": pa.array([{"body": text, "n": 1} for text in part], pa.struct({"body": pa.string(), "n": pa.int32()})),
        "large": pa.array(part, pa.large_string()),
    })
    pq.write_table(table, f"{folder}/parquet/{name}.parquet", row_group_size=90, compression="zstd", data_page_size=500)
    with pa.OSFile(f"{folder}/arrow/{name}.arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=80)
    pa.feather.write_feather(table, f"{folder}/feather/{name}.feather", compression="lz4", chunksize=100)
ds = datasets.Dataset.from_dict({"text": texts, "id": list(range(700))})
datasets.DatasetDict({"train": ds, "test": ds.select(range(5))}).save_to_disk(f"{folder}/saved", num_shards={"train": 3, "test": 1})
print(json.dumps(parts))
"""
KINDS = ["parquet", "arrow", "feather", "webdataset", "mds", "tfrecord"]
LAYOUTS = {
    "forager": {"sample_size": 64},
    "tokens": {},
    "shards": {},
    "megatron": {},
    "flat-tokens": {"tokens_chunk_size": 4096},
    "llmc": {},
    "datatrove": {},
}


def archive(path, samples):
    with tarfile.open(path, "w") as tar:
        for key, members in samples:
            for suffix, data in members.items():
                info = tarfile.TarInfo(f"{key}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def lines(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    parts = with_loaders(MADE, folder)
    for kind in ("jsonl", "webdataset"):
        (folder / kind).mkdir()
    for name, texts in parts.items():
        lines(folder / "jsonl" / f"{name}.jsonl", texts)
        if texts:
            members = ({"txt": text.encode(), "json": json.dumps({"a": {"body": text}}).encode()} for text in texts)
            archive(folder / "webdataset" / f"{name}.tar", ((f"{i:06}", one) for i, one in enumerate(members)))
    texts = [text for part in parts.values() for text in part]
    rows = [{"text": text, "id": i} for i, text in enumerate(texts)]
    wr.write(folder / "mds", rows, to="mds")
    wr.write(folder / "one.tfrecord", rows, to="tfrecord")
    (folder / "tfrecord").mkdir()
    for path in folder.glob("one.tfrecord*"):
        path.rename(folder / "tfrecord" / path.name)
    return folder, texts


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def field(kind):
    return "txt" if kind == "webdataset" else "text"


def ids(texts):
    return [[*text.encode()] for text in texts]


def data_files(folder):
    """What was written, without what says of which inputs; names of files follow those of inputs."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(("windrow.json", "windrow.sums", "meta.json", "metadata")):
            found[path.suffix, path.parent.name] = found.get((path.suffix, path.parent.name), b"") + path.read_bytes()
    return {key: data for key, data in found.items() if "index" not in key[1]}


@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_are_those_of_the_same_lines(made, cache, tmp_path, kind, to):
    folder, texts = made
    options = {"tokenizer": "bytes", "to": to, "fsync": False, **LAYOUTS[to]}
    reports = {}
    for name in ("jsonl", kind):
        out = tmp_path / name / "out"
        out.parent.mkdir()
        reports[name] = wr.tokenize(folder / name, out, text_field=field(name), **options)
    for count in ("documents", "tokens", "records", "dropped_tokens"):
        assert reports[kind][count] == reports["jsonl"][count]
    assert data_files(tmp_path / kind) == data_files(tmp_path / "jsonl") != {}
    assert wr.verify(out)["problems"] == []
    if to in ("shards", "megatron", "flat-tokens"):
        assert [record.tolist() for record in wr.open(out)] == ids(texts)
    assert wr.tokenize(folder / kind, out, text_field=field(kind), **options)["unchanged"]


def test_text_is_read_once_and_not_kept(made, cache, tmp_path):
    folder, _ = made
    wr.tokenize(folder / "parquet", tmp_path / "out", tokenizer="bytes", to="tokens")
    assert not cache.exists()


def test_files_one_by_one_go_in_the_order_given(made, tmp_path):
    folder, texts = made
    for kind in ("parquet", "webdataset"):
        ending = "tar" if kind == "webdataset" else kind
        files = [folder / kind / f"{name}.{ending}" for name in ("a10", "a1")]
        report = wr.tokenize(files, tmp_path / kind, tokenizer="bytes", text_field=field(kind))
        assert [record.tolist() for record in wr.open(tmp_path / kind)] == ids(texts[250:] + texts[:250])
        names = [path.name for path in (tmp_path / kind / "tokenized-samples").iterdir()]
        assert sorted(names) == ["a1-tokenized-samples.bin", "a10-tokenized-samples.bin"]
        assert report["input_bytes"] == sum(file.stat().st_size for file in files)
    mixed = [folder / "parquet" / "a1.parquet", folder / "jsonl" / "a10.jsonl"]
    wr.tokenize(mixed, tmp_path / "mixed", tokenizer="bytes")
    assert [record.tolist() for record in wr.open(tmp_path / "mixed")] == ids(texts)
    with pytest.raises(wr.ConfigError, match="an input before has it already"):
        wr.tokenize([folder / "parquet", mixed[0]], tmp_path / "twice", tokenizer="bytes")


def test_threads_and_checkpoints_change_nothing(made, tmp_path):
    folder, texts = made
    for threads in (1, 4):
        wr.tokenize(folder / "parquet", tmp_path / str(threads), tokenizer="bytes", num_threads=threads)
        assert [record.tolist() for record in wr.open(tmp_path / str(threads))] == ids(texts)


@pytest.mark.parametrize(
    ("kind", "text_field"),
    [("parquet", "meta.body"), ("arrow", "meta.body"), ("parquet", "large"), ("webdataset", "json.a.body")],
)
def test_a_path_of_names_goes_into_structs_and_json(made, tmp_path, kind, text_field):
    folder, texts = made
    wr.tokenize(folder / kind, tmp_path / "out", tokenizer="bytes", to="megatron", text_field=text_field)
    assert [record.tolist() for record in wr.open(tmp_path / "out")] == ids(texts)


def test_a_split_of_what_datasets_saved(made, tmp_path):
    folder, texts = made
    wr.tokenize(folder / "saved", tmp_path / "train", tokenizer="bytes", split="train")
    assert [record.tolist() for record in wr.open(tmp_path / "train")] == ids(texts)
    command = [sys.executable, "-m", "windrow", "tokenize", str(folder / "saved"), "--tokenizer", "bytes", "-q"]
    subprocess.run([*command, "--split", "test", "--out", str(tmp_path / "test")], check=True)
    assert [record.tolist() for record in wr.open(tmp_path / "test")] == ids(texts[:5])
    with pytest.raises(wr.ConfigError, match="train, test"):
        wr.tokenize(folder / "saved", tmp_path / "both", tokenizer="bytes")
    with pytest.raises(wr.WindrowError, match="dev"):
        wr.tokenize(folder / "saved", tmp_path / "none", tokenizer="bytes", split="dev")


def test_a_split_by_the_names_of_files(made, tmp_path):
    folder, texts = made
    for name, of in (("a1", "train"), ("a10", "validation")):
        for kind, ending in (("parquet", "parquet"), ("jsonl", "jsonl")):
            place = tmp_path / kind / f"{of}-00000-of-00001.{ending}"
            place.parent.mkdir(exist_ok=True)
            place.write_bytes((folder / kind / f"{name}.{ending}").read_bytes())
    for kind in ("parquet", "jsonl"):
        for split, expected in (("train", texts[:250]), ("validation", texts[250:])):
            out = tmp_path / f"{kind}-{split}"
            wr.tokenize(tmp_path / kind, out, tokenizer="bytes", split=split)
            assert [record.tolist() for record in wr.open(out)] == ids(expected)
    file = tmp_path / "jsonl" / "train-00000-of-00001.jsonl"
    with pytest.raises(wr.NotFoundError, match="no file is of that split"):
        wr.tokenize(file, tmp_path / "out", tokenizer="bytes", split="validation")
    wr.tokenize(file, tmp_path / "out", tokenizer="bytes", split="train")
    assert [record.tolist() for record in wr.open(tmp_path / "out")] == ids(texts[:250])


def test_a_function_takes_the_texts_too(made, tmp_path):
    folder, texts = made
    report = wr.tokenize(
        folder / "parquet", tmp_path / "out", tokenizer=lambda text: [len(text)], vocab_size=1 << 20, eos=None
    )
    assert report["tokens"] == len(texts)
    assert [record.tolist() for record in wr.open(tmp_path / "out")] == [[len(text)] for text in texts]
    with pytest.raises(wr.ConfigError, match="reads lines"):
        wr.tokenize(folder / "parquet", tmp_path / "no", tokenizer="bytes", text_function=lambda line: "x")


WRONG = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
folder = sys.argv[1]
texts = ["x"] * 100
pq.write_table(pa.table({"text": [*texts, None, "y"], "n": list(range(102))}), f"{folder}/null.parquet", row_group_size=40)
pq.write_table(pa.table({"n": [1, 2], "body": ["a", "b"], "ids": [[1], [2]]}), f"{folder}/other.parquet")
pq.write_table(pa.table({"text": pa.array([], pa.string())}), f"{folder}/empty.parquet")
pq.write_table(pa.table({"ids": pa.array([[1], [2]], pa.list_(pa.int32()))}), f"{folder}/ids.parquet")
pq.write_table(pa.table({"data": pa.array([b"a", b"b"], pa.binary())}), f"{folder}/bytes.parquet")
print("[]")
"""


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    with_loaders(WRONG, folder)
    return folder


@pytest.mark.parametrize(
    ("file", "text_field", "error", "says"),
    [
        ("null.parquet", "text", wr.CorruptError, "holds null; expected text"),
        ("other.parquet", "text", wr.ConfigError, "n, body, ids"),
        ("other.parquet", "body.inner", wr.CorruptError, "body.inner"),
        ("other.parquet", "n", wr.CorruptError, "holds int64; expected text"),
        ("other.parquet", "ids", wr.CorruptError, "expected text"),
        ("ids.parquet", "text", wr.ConfigError, "ids"),
        ("bytes.parquet", "data", wr.CorruptError, "holds bytes; expected text"),
    ],
)
def test_what_is_no_text_is_an_error(wrong, tmp_path, file, text_field, error, says):
    with pytest.raises(error, match=says) as raised:
        wr.tokenize(wrong / file, tmp_path / "out", tokenizer="bytes", text_field=text_field)
    assert file in str(raised.value)
    if error is wr.CorruptError:
        assert raised.value.record == (100 if file == "null.parquet" else 0)
        assert raised.value.path == str(wrong / file)
        assert raised.value.field == text_field
    else:
        assert raised.value.field == "text_field"
    assert not (tmp_path / "out" / "index").exists()


def test_a_member_that_is_not_there(tmp_path):
    archive(tmp_path / "a.tar", [("0", {"txt": b"a"}), ("1", {"json": b"{}"})])
    with pytest.raises(wr.CorruptError, match="txt") as raised:
        wr.tokenize(tmp_path / "a.tar", tmp_path / "out", tokenizer="bytes", text_field="txt")
    assert (raised.value.record, raised.value.path) == (1, str(tmp_path / "a.tar"))
    with pytest.raises(wr.CorruptError, match="json.text"):
        archive(tmp_path / "b.tar", [("0", {"json": b'{"text": "a", "id": 1}'})])
        wr.tokenize(tmp_path / "b.tar", tmp_path / "out", tokenizer="bytes", text_field="json")


def test_no_rows_are_no_documents(wrong, tmp_path):
    with pytest.raises(wr.NotFoundError, match="there are no texts"):
        wr.tokenize(wrong / "empty.parquet", tmp_path / "out", tokenizer="bytes", to="forager")
    report = wr.tokenize(wrong / "empty.parquet", tmp_path / "out", tokenizer="bytes", to="forager", allow_empty=True)
    assert report["documents"] == 0


def test_formats_that_are_mixed_in_a_folder_are_refused(made, tmp_path):
    folder, _ = made
    for others in (("jsonl/a1.jsonl",), ("arrow/a1.arrow",), ("webdataset/a10.tar",)):
        place = tmp_path / others[0].replace("/", "-")
        place.mkdir()
        for name in ("parquet/a1.parquet", *others):
            (place / Path(name).name).write_bytes((folder / name).read_bytes())
        (place / "README.md").write_text("notes")
        with pytest.raises(wr.ConfigError, match="several formats") as raised:
            wr.tokenize(place, tmp_path / "out", tokenizer="bytes")
        assert "a1.parquet" in str(raised.value) and Path(others[0]).name in str(raised.value)


@pytest.mark.parametrize("to", ["forager", "megatron"])
@pytest.mark.parametrize("kind", ["parquet", "saved", "webdataset"])
def test_a_killed_run_continues_where_it_was(made, tmp_path, kind, to):
    folder, texts = made
    path = folder / "saved" / "train" if kind == "saved" else folder / kind
    command = [sys.executable, "-m", "windrow", "tokenize", str(path), "--tokenizer", "gpt2", "--to", to, "--num-threads", "1"]
    command += ["--text-field", field(kind), "--no-fsync", "-q", "--checkpoint-bytes", "400"]
    subprocess.run([*command, "--out", str(tmp_path / "whole" / "x")], check=True)
    n_killed = 0
    for after in (0.02, 0.05, 0.1, 0.2, 0.4):
        out = tmp_path / str(after) / "x"
        out.parent.mkdir()
        with running([*command, "--out", str(out)]) as process:
            time.sleep(after)
            process.send_signal(signal.SIGKILL)
        n_killed += process.returncode == -signal.SIGKILL
        done = subprocess.run([*command, "--json", "--out", str(out)], check=True, capture_output=True, text=True)
        assert data_files(out.parent) == data_files(tmp_path / "whole")
        assert json.loads(done.stdout)["report"]["documents"] == len(texts)
    assert n_killed > 0


def test_a_changed_input_begins_again_and_a_change_meanwhile_is_refused(made, tmp_path):
    folder, texts = made
    path = tmp_path / "a.parquet"
    path.write_bytes((folder / "parquet" / "a1.parquet").read_bytes())
    wr.tokenize(path, tmp_path / "out", tokenizer="bytes")
    assert wr.tokenize(path, tmp_path / "out", tokenizer="bytes")["unchanged"]
    path.write_bytes((folder / "parquet" / "a10.parquet").read_bytes())
    with pytest.raises(wr.ExistsError):
        wr.tokenize(path, tmp_path / "out", tokenizer="bytes")

    # More than is read before the first text is encoded.
    wr.write(path, ({"text": "word " * 100} for _ in range(10_000)), to="parquet", overwrite=True)
    times = itertools.count(1)

    def changes(text):
        os.utime(path, ns=(next(times),) * 2)
        return [1]

    with pytest.raises(wr.StaleError, match="changed while it was read") as raised:
        wr.tokenize(path, tmp_path / "meanwhile", tokenizer=changes, eos=None, vocab_size=9)
    assert raised.value.path == str(path)


def test_progress_is_told_in_bytes_of_the_files(made, tmp_path):
    folder, _ = made
    told = []
    wr.tokenize(folder / "parquet", tmp_path / "out", tokenizer="bytes", progress=told.append)
    size = sum(path.stat().st_size for path in (folder / "parquet").iterdir())
    assert told[-1]["done_bytes"] == told[-1]["total_bytes"] == size
