"""windrow.compat.oxidizr: the recorded batches, the document's examples, threads and processes that end."""

from __future__ import annotations

import gc
import gzip
import json
import multiprocessing
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import windrow
from windrow.compat.oxidizr import LitDataLoader, PrefetchDataLoader, create_dummy_data

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden" / "1_oxidizr"
CASES = json.loads((GOLDEN / "cases.json").read_text())
# Where the original read outside its shard, windrow refuses.
REFUSED = ("panics", "reads_outside_shard")


def open_case(case):
    path = GOLDEN / case["file"]
    if case["mode"] == "mem":
        loader = LitDataLoader(np.fromfile(path, "<u4").tolist(), case["batch_size"], case["seq_len"])
    else:
        loader = LitDataLoader.from_file(path, case["batch_size"], case["seq_len"])
    if case["world_size"] is not None:
        loader = loader.with_sharding(case["rank"], case["world_size"])
    return PrefetchDataLoader(loader, 2) if case["mode"] == "prefetch" else loader


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case):
    expected = case["expected"]
    if "open_error" in expected:
        with pytest.raises(windrow.WindrowError, match=case["file"]):
            open_case(case)
        return
    loader = open_case(case)
    assert loader.dataset_size() == loader.dataset_size == expected["dataset_size"]
    assert loader.shard_size() == loader.shard_size == expected["shard_size"]
    for batch in expected["batches"]:
        if "inputs" not in batch or any(word in case["name"] for word in REFUSED):
            with pytest.raises(windrow.CorruptError, match="one batch needs"):
                loader.next_batch()
            return
        inputs, targets = loader.next_batch()
        assert inputs.dtype == targets.dtype == np.uint32
        assert inputs.flags.c_contiguous and targets.flags.c_contiguous
        assert inputs.tolist() == batch["inputs"]
        assert targets.tolist() == batch["targets"]


def test_the_document_reads_and_writes_plain_u32(tmp_path):
    path = tmp_path / "data.bin"
    tokens = [100, 200, 300, 400, 500]
    np.array(tokens, dtype=np.uint32).tofile(path)
    first = path.read_bytes()
    path.write_bytes(b"".join(struct.pack("<I", token) for token in tokens))
    assert path.read_bytes() == first
    assert windrow.open(path, format="tokens", dtype="uint32")[0].tolist() == tokens
    inputs, targets = LitDataLoader.from_file(path, batch_size=1, seq_len=4).next_batch()
    assert (inputs.tolist(), targets.tolist()) == ([tokens[:4]], [tokens[1:]])


def test_the_document_concatenates_examples(tmp_path):
    import splintr

    tokenizer, eos = splintr.Tokenizer.from_pretrained("cl100k_base"), 100257
    all_tokens = []
    for text in ["First training example.", "Second training example.", "Third training example."]:
        all_tokens.extend(tokenizer.encode(text))
        all_tokens.append(eos)
    np.array(all_tokens, dtype=np.uint32).tofile(tmp_path / "data.bin")
    loader = LitDataLoader.from_file(tmp_path / "data.bin", 1, len(all_tokens) - 1)
    assert loader.dataset_size() == len(all_tokens)
    inputs, targets = loader.next_batch()
    assert inputs[0].tolist() == all_tokens[:-1] and targets[0].tolist() == all_tokens[1:]


def test_the_cursor_is_twenty_lines_of_numpy():
    random = np.random.default_rng(0)
    for _ in range(200):
        tokens = random.integers(0, 1 << 32, size=int(random.integers(1, 300)), dtype=np.uint32)
        rows, length, world = (int(n) for n in random.integers(1, 6, size=3))
        rank = int(random.integers(0, world))
        size = len(tokens) // world
        shard = tokens[rank * size :] if rank == world - 1 else tokens[rank * size : (rank + 1) * size]
        loader = LitDataLoader(tokens, rows, length).with_sharding(rank, world)
        needed, cursor = rows * (length + 1), 0
        for _ in range(20):
            if len(shard) < needed:
                with pytest.raises(windrow.CorruptError):
                    loader.next_batch()
                break
            if cursor + needed > len(shard):
                cursor = 0
            block = shard[cursor : cursor + needed].reshape(rows, length + 1)
            cursor += rows * length
            inputs, targets = loader.next_batch()
            assert np.array_equal(inputs, block[:, :-1]) and np.array_equal(targets, block[:, 1:])


def test_wrong_arguments_are_errors(tmp_path):
    for tokens in ([-1], [1 << 32], [0.5], [[1, 2]]):
        with pytest.raises(windrow.ConfigError):
            LitDataLoader(tokens, 1, 1)
    for batch_size, seq_len in ((0, 1), (1, 0), (-1, 1)):
        with pytest.raises(windrow.ConfigError):
            LitDataLoader([1, 2], batch_size, seq_len)
    for rank, world_size in ((1, 1), (-1, 2), (0, 0)):
        with pytest.raises(windrow.ConfigError):
            LitDataLoader([1, 2], 1, 1).with_sharding(rank, world_size)
    with pytest.raises(FileNotFoundError, match="nope.bin"):
        LitDataLoader.from_file(tmp_path / "nope.bin", 1, 1)
    with pytest.raises(OSError, match=tmp_path.name):
        LitDataLoader.from_file(tmp_path, 1, 1)


def test_what_is_known_not_to_be_raw_u32_is_refused(tmp_path):
    tokens = np.arange(40)
    windrow.write(tmp_path / "narrow.bin", [tokens], dtype="uint16", to="tokens")
    windrow.write(tmp_path / "wide.bin", [tokens], dtype="uint32", to="tokens")
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, 40
    (tmp_path / "llmc.bin").write_bytes(header.tobytes() + tokens.astype("<u2").tobytes())
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + 32 * b"ab" + b"\nsize 1234567\n"
    (tmp_path / "pointer.bin").write_bytes(pointer)
    (tmp_path / "raw.bin.gz").write_bytes(gzip.compress(tokens.astype("<u4").tobytes()) + b"\0" * 3)
    os.truncate(tmp_path / "raw.bin.gz", (tmp_path / "raw.bin.gz").stat().st_size // 4 * 4)
    for name, kind, says in (
        ("narrow.bin", windrow.MismatchError, "the manifest says uint16"),
        ("llmc.bin", windrow.UnsupportedError, "a token file of llm.c"),
        ("pointer.bin", windrow.UnsupportedError, "a Git LFS pointer"),
        ("raw.bin.gz", windrow.UnsupportedError, "the name of a compressed file"),
    ):
        assert (tmp_path / name).stat().st_size % 4 == 0, name
        with pytest.raises(kind, match=says) as found:
            LitDataLoader.from_file(tmp_path / name, 1, 4)
        assert found.value.path == str(tmp_path / name)
    assert LitDataLoader.from_file(tmp_path / "wide.bin", 1, 39).next_batch()[0].tolist() == [tokens[:-1].tolist()]
    with (tmp_path / "wide.bin").open("ab") as file:
        file.write(bytes(8))
    with pytest.raises(windrow.StaleError, match="the manifest says 160"):
        LitDataLoader.from_file(tmp_path / "wide.bin", 1, 4)


def test_a_file_is_read_part_by_part(tmp_path):
    path = tmp_path / "data.bin"
    np.arange(100_000, dtype="<u4").tofile(path)
    loader = LitDataLoader.from_file(path, 2, 1000)
    loader.next_batch()
    # A loader that goes to another process takes the path along, not the tokens.
    pickled = pickle.dumps(loader)
    assert len(pickled) < 1000
    os.truncate(path, 12_000)
    with pytest.raises(windrow.StaleError, match="became shorter") as failed:
        loader.next_batch()
    assert (failed.value.path, failed.value.byte) == (str(path), 12_000)
    with pytest.raises(windrow.StaleError, match="found 12000 bytes where 400000 were"):
        pickle.loads(pickled)
    np.arange(100_000, dtype="<u4").tofile(path)
    # The same batch again, in both.
    inputs, _ = pickle.loads(pickled).next_batch()
    assert inputs[0, 0] == 2000
    assert np.array_equal(inputs, loader.next_batch()[0])


def test_dummy_data_differs_and_stays_below_the_vocabulary():
    first, second = create_dummy_data(50, 10_000), create_dummy_data(50, 10_000)
    assert first.dtype == np.uint32 and first.shape == (10_000,)
    assert first.max() == 49 and first.min() == 0
    assert not np.array_equal(first, second)
    assert len(create_dummy_data(10, 0)) == 0
    with pytest.raises(windrow.ConfigError):
        create_dummy_data(0, 10)


def test_prefetch_gives_the_same_batches_and_its_thread_ends():
    plain = LitDataLoader(range(1000), 3, 7)
    with PrefetchDataLoader(LitDataLoader(range(1000), 3, 7), 4) as ahead:
        for _ in range(200):
            assert all(np.array_equal(a, b) for a, b in zip(plain.next_batch(), ahead.next_batch(), strict=True))
    with pytest.raises(windrow.ConfigError, match="shut down"):
        ahead.next_batch()
    wait_for_no_threads()


def test_dropping_a_prefetcher_with_a_full_queue_does_not_hang():
    for capacity in (0, 1, 3):
        ahead = PrefetchDataLoader(LitDataLoader(range(1000), 2, 4), capacity)
        ahead.next_batch()
        del ahead
        gc.collect()
    wait_for_no_threads()
    code = (
        "from windrow.compat.oxidizr import *\n"
        "ahead = PrefetchDataLoader(LitDataLoader(range(1000), 2, 4), 1)\n"
        "ahead.next_batch()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_waits_is_called_n():
    with PrefetchDataLoader(LitDataLoader(range(100), 2, 4), n=3) as ahead:
        assert ahead.next_batch()[0].shape == (2, 4)
    with pytest.raises(windrow.ConfigError, match="n is -1"):
        PrefetchDataLoader(loader=LitDataLoader(range(100), 2, 4), n=-1)


def test_prefetch_hands_an_error_on_every_time():
    ahead = PrefetchDataLoader(LitDataLoader([1, 2, 3], 2, 4), 2)
    for _ in range(3):
        with pytest.raises(windrow.CorruptError):
            ahead.next_batch()


def test_prefetch_continues_in_a_forked_child():
    ahead = PrefetchDataLoader(LitDataLoader(range(1000), 2, 4), 2)
    plain = LitDataLoader(range(1000), 2, 4)
    for _ in range(3):
        ahead.next_batch(), plain.next_batch()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=lambda: answers.put(ahead.next_batch()[0].tolist()))
    child.start()
    assert answers.get(timeout=60) == plain.next_batch()[0].tolist()
    child.join(timeout=60)
    assert child.exitcode == 0


def wait_for_no_threads():
    end = time.monotonic() + 10
    while any(thread.name == "windrow-prefetch" for thread in threading.enumerate()):
        assert time.monotonic() < end, "the prefetching thread is still there"
        time.sleep(0.01)
