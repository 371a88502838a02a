"""`verify_checksums=True`: damage is an error where it is read, in whichever process reads it."""

import os
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import windrow as wr


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "d.bin"
    wr.write(path, [wr.create_dummy_data(1000, 50_000)], to="tokens", dtype="uint32")
    return path


def flip(path, at):
    """One bit of the file, its time kept."""
    times = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_batches_are_those_without_it(tokens):
    batches = []
    for verify_checksums in (False, True):
        view = wr.open(tokens, verify_checksums=verify_checksums).pack(100)
        loader = wr.Loader(view, batch_size=7, seed=3, epochs=1, num_threads=2)
        batches.append([batch["input_ids"].copy() for batch in loader])
        batches[-1].append(pickle.loads(pickle.dumps(view))[3]["labels"])
    assert all(np.array_equal(a, b) for a, b in zip(*batches, strict=True))


def test_a_state_continues_with_and_without_it(tokens):
    loader = wr.Loader(wr.open(tokens).pack(100), batch_size=7, seed=3)
    next(iter(loader))
    state = loader.state_dict()
    other = wr.Loader(wr.open(tokens, verify_checksums=True).pack(100), batch_size=7, seed=3)
    other.load_state_dict(state)
    assert np.array_equal(next(iter(other))["input_ids"], next(iter(loader))["input_ids"])


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_damage_is_an_error_where_it_is_read(tokens, io):
    view = wr.open(tokens, verify_checksums=True, io=io).pack(100)
    flip(tokens, 90_001)
    # It is served where nobody looks.
    assert len(list(wr.Loader(wr.open(tokens).pack(100), batch_size=8, epochs=1)))
    bad = 90_001 // 4 // 100
    view[0]
    with pytest.raises(wr.CorruptError, match="not those that were written") as error:
        view[bad]
    assert error.value.path == str(tokens) and error.value.byte == 90_001 // 4096 * 4096
    with pytest.raises(wr.CorruptError):
        list(wr.Loader(view, batch_size=8, epochs=1))
    flip(tokens, 90_001)
    view[bad]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_look_too(tokens, context):
    view = wr.open(tokens, verify_checksums=True).pack(100)
    flip(tokens, 90_001)
    bad = 90_001 // 4 // 100
    loader = torch.utils.data.DataLoader(view, sampler=[bad], num_workers=1, multiprocessing_context=context)
    with pytest.raises(wr.CorruptError, match="not those that were written"):
        next(iter(loader))


def test_written_shards_and_text(tmp_path):
    wr.write(tmp_path / "shards", [np.arange(5000, dtype=np.float32)] * 3, to="shards")
    view = wr.open(tmp_path / "shards", verify_checksums=True).windows(context_length=100)
    view[0]
    flip(tmp_path / "shards" / "data-1-of-1.bin", 3)
    with pytest.raises(wr.CorruptError):
        view[0]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.jsonl").write_text('{"text": "some words"}\n' * 500)
    wr.index(tmp_path / "a", checksum=True)
    lines = wr.open(tmp_path / "a", verify_checksums=True)
    flip(tmp_path / "a" / "a.jsonl", 12)
    with pytest.raises(wr.CorruptError):
        lines[0]
    assert lines[499] == {"text": "some words"}


def test_what_has_no_sums_is_refused(tokens, tmp_path):
    np.arange(100, dtype=np.uint32).tofile(tmp_path / "raw.bin")
    with pytest.raises(wr.ConfigError, match="no block checksums") as error:
        wr.open(tmp_path / "raw.bin", dtype="uint32", verify_checksums=True)
    assert "convert" in error.value.hint
    # As seqax and earlier versions wrote it.
    wr.write(tmp_path / "flat", [[1, 2, 3]], to="flat-tokens")
    (tmp_path / "flat" / "windrow.sums").unlink()
    (tmp_path / "flat" / "windrow.json").unlink()
    assert wr.open(tmp_path / "flat")[0].tolist() == [1, 2, 3] and not wr.verify(tmp_path / "flat")["problems"]
    with pytest.raises(wr.ConfigError, match="no block checksums"):
        wr.open(tmp_path / "flat", verify_checksums=True)
    wr.tokenize(
        [_jsonl(tmp_path)], tmp_path / "without", tokenizer="bytes", sample_size=8, block_sums=False
    )
    assert not list((tmp_path / "without").rglob("*.sums"))
    with pytest.raises(wr.ConfigError, match="no block checksums"):
        wr.open(tmp_path / "without", verify_checksums=True)
    with pytest.raises(TypeError, match="argument 'verify_checksums'"):
        wr.open(tokens, verify_checksums="always")
    with pytest.raises(wr.ConfigError, match="block_sums"):
        wr.tokenize([_jsonl(tmp_path)], tmp_path / "s", tokenizer="bytes", to="shards", block_sums=False)


def _jsonl(folder):
    path = folder / "text.jsonl"
    path.write_text('{"text": "some words"}\n' * 20)
    return path


def test_what_was_made_of_bytes_that_nobody_compared_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "series.jsonl"
    wr.write(path, [np.arange(5000, dtype=np.float32)] * 3, to="jsonl")
    times = path.stat()
    text = path.read_bytes()
    at = text.index(b"1234.0", 5000)
    path.write_bytes(text[:at] + b"9" + text[at + 1 :])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    # A file that was just written is compared as a whole with what was made of it.
    time.sleep(1.2)
    assert 9234 in wr.open(path)[0]
    with pytest.raises(wr.CorruptError, match="not those that were written"):
        wr.open(path, verify_checksums=True)


@pytest.mark.parametrize("name", ["ids.bin", "ids.bag", "ids.tfrecord", "ids.array_record", "ids.npy", "folder"])
def test_checksums_without_their_manifest_are_no_data(tmp_path: Path, name: str) -> None:
    to = {"ids.bin": "tokens", "ids.bag": "bagz", "folder": "webdataset"}.get(name, name.partition(".")[2])
    path = tmp_path / name
    dtype = {"npy": "float32", "tfrecord": "int64"}.get(to, "uint16")
    wr.write(path, [np.arange(100, dtype=np.uint16)] * 3, to=to, dtype=dtype)
    assert wr.verify(path)["n_problems"] == 0
    (path / "windrow.json" if path.is_dir() else tmp_path / f"{name}.windrow.json").unlink()
    for options in ({}, {"verify_checksums": True}):
        with pytest.raises(wr.CorruptError, match="windrow.json"):
            wr.open(path, **options)
    assert wr.verify(path)["n_problems"] > 0
    assert wr.verify(tmp_path)["n_problems"] > 0
