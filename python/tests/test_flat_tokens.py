"""flat-tokens: written here, read by zarr-python and tensorstore; written by zarr-python, read here; splits and views."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numcodecs
import numpy as np
import pytest
import tensorstore
import windrow as wr
import zarr

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden" / "2_flat_tokens"
RNG = np.random.default_rng(5)
SEQUENCES = [RNG.integers(0, 50_000, n).tolist() for n in RNG.integers(0, 40, 200)]
KINDS = [
    {"zarr_format": 2},
    {"zarr_format": 3},
    {"zarr_format": 3, "chunks_per_shard": 4},
]


def encoded(sequences):
    tokens = [2 * token + (i == 0) for ids in sequences for i, token in enumerate(ids)]
    return tokens, [0, *np.cumsum([len(ids) for ids in sequences]).tolist()]


def lists(ds):
    return [ids.tolist() for ids in ds]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_others_read_what_is_written(tmp_path, kind):
    root = tmp_path / "corpus.zarr"
    options = {"tokens_chunk_size": 300, "seq_starts_chunk_size": 50, **kind}
    report = wr.write(root / "train", SEQUENCES[:120], to="flat-tokens", **options)
    assert (report["records"], report["tokens"]) == (120, sum(map(len, SEQUENCES[:120])))
    wr.write(root / "train", map(np.array, SEQUENCES[120:]), to="flat-tokens", append=True)
    wr.write(root / "validation", SEQUENCES[:7], to="flat-tokens", **options)
    tokens, starts = encoded(SEQUENCES)
    group = zarr.open_group(root, mode="r")
    assert group["train"].attrs["max_token_id"] == max(map(max, filter(None, SEQUENCES)))
    assert group["train/encoded_tokens"].dtype == np.uint32 and group["train/seq_starts"].dtype == np.uint64
    assert group["train/encoded_tokens"][:].tolist() == tokens
    assert group["train/seq_starts"][:].tolist() == starts
    assert group["validation/seq_starts"].shape == (8,)
    driver = "zarr" if kind["zarr_format"] == 2 else "zarr3"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{root}/train/encoded_tokens/"}}
    assert tensorstore.open(spec).result().read().result().tolist() == tokens
    assert lists(wr.open(root, split="train")) == SEQUENCES
    assert lists(wr.open(root / "validation")) == SEQUENCES[:7]
    assert not wr.verify(root)["problems"]


def test_what_zarr_python_writes_is_read(tmp_path):
    tokens, starts = encoded(SEQUENCES)
    codecs = {
        "default": {},
        "blosc": {"compressors": zarr.codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")},
        "gzip": {"compressors": zarr.codecs.GzipCodec()},
        "none": {"compressors": None},
        "two": {"compressors": [zarr.codecs.ZstdCodec(level=3), zarr.codecs.Crc32cCodec()]},
        "shards": {"shards": (1200,)},
        "blosc_shards": {"shards": (1200,), "compressors": zarr.codecs.BloscCodec(cname="lz4")},
    }
    for name, options in codecs.items():
        group = zarr.open_group(tmp_path / name, mode="w", attributes={"max_token_id": 50_000})
        for array, numbers, dtype in (("encoded_tokens", tokens, "u4"), ("seq_starts", starts, "u8")):
            made = group.create_array(array, shape=(len(numbers),), chunks=(300,), dtype=dtype, **options)
            made[:] = np.array(numbers, dtype)
        assert lists(wr.open(tmp_path / name)) == SEQUENCES, name
        wr.write(tmp_path / name, [[7, 8]], to="flat-tokens", append=True)
        assert lists(wr.open(tmp_path / name)) == [*SEQUENCES, [7, 8]], name


def test_what_its_codecs_of_version_2_write_is_read(tmp_path):
    tokens, starts = encoded(SEQUENCES)
    codecs = {
        "zlib": {"compressors": numcodecs.Zlib(1)},
        "bz2": {"compressors": numcodecs.BZ2(1)},
        "blosclz": {"compressors": numcodecs.Blosc("blosclz", 5, numcodecs.Blosc.NOSHUFFLE)},
        "fletcher32": {"filters": [numcodecs.Fletcher32()], "compressors": None},
        "adler32": {"filters": [numcodecs.Adler32()], "compressors": numcodecs.Zstd()},
        "shuffle": {"filters": [numcodecs.Shuffle(4)], "compressors": numcodecs.Zlib(1)},
        "order": {"order": "F"},
    }
    for name, options in codecs.items():
        group = zarr.open_group(tmp_path / name, mode="w", zarr_format=2, attributes={"max_token_id": 50_000})
        for array, numbers, dtype in (("encoded_tokens", tokens, "u4"), ("seq_starts", starts, "u8")):
            made = group.create_array(array, shape=(len(numbers),), chunks=(300,), dtype=dtype, **options)
            made[:] = np.array(numbers, dtype)
        assert lists(wr.open(tmp_path / name)) == SEQUENCES, name
    group.create_array("other", shape=(3,), dtype="u4", compressors=numcodecs.LZ4())
    (tmp_path / "order/other").rename(tmp_path / "other")
    (tmp_path / "order/seq_starts").rename(tmp_path / "starts")
    (tmp_path / "other").rename(tmp_path / "order/seq_starts")
    with pytest.raises(wr.UnsupportedError, match="lz4"):
        wr.open(tmp_path / "order")


def test_a_split_is_a_folder(tmp_path):
    with pytest.raises(wr.NotFoundError, match="split="):
        wr.open(GOLDEN / "doc.zarr")
    with pytest.raises(wr.NotFoundError):
        wr.open(GOLDEN / "doc.zarr", split="test")
    for name in ("..", "a/b", "/etc", ""):
        with pytest.raises(wr.ConfigError, match="split"):
            wr.open(GOLDEN / "doc.zarr", split=name)
    ds = wr.open(GOLDEN / "doc.zarr", split="validation")
    assert lists(ds) == [[1, 2], [3, 4, 5], [6, 7, 8]]
    info = ds.info()
    assert (info["format"], info["records"], info["values"], info["vocab_size"]) == ("flat-tokens", 3, 8, 9)


def test_the_document_s_example_of_inputs_and_targets():
    sample = wr.open(GOLDEN / "doc.zarr", split="validation").pack(8, shifted=True)[0]
    assert sample["inputs"].tolist() == [0, 1, 0, 3, 4, 0, 6, 7]
    assert sample["targets"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert sample["is_seq_start"].tolist() == [True, False, True, False, False, True, False, False]
    assert sample["segment_ids"].tolist() == [1, 1, 2, 2, 2, 3, 3, 3]
    assert sample["position_ids"].tolist() == [0, 1, 0, 1, 2, 0, 1, 2]


def test_views_of_sequences_and_of_the_stream(tmp_path):
    wr.write(tmp_path / "train", SEQUENCES, to="flat-tokens")
    ds = wr.open(tmp_path, split="train")
    stream = [token for ids in SEQUENCES for token in ids]
    view = ds.pack(16)
    assert len(view) == (len(stream) - 1) // 16
    assert view[3]["input_ids"].tolist() == stream[48:64] and view[3]["labels"].tolist() == stream[49:65]
    row = ds.records(10)[5]
    assert row["input_ids"].tolist() == (SEQUENCES[5][:10] + [0] * 10)[:10]
    # Any layout of ids can be cut so: a record's first value starts a sequence.
    path = tmp_path / "ids.bin"
    np.arange(1, 9, dtype=np.uint16).tofile(path)
    sample = wr.open(path, format="tokens", dtype="uint16").pack(4, shifted=True)[1]
    assert sample["inputs"].tolist() == [0, 5, 6, 7] and not sample["is_seq_start"].any()
    loader = ds.pack(16, shifted=True).loader(batch_size=4, seed=3)
    batch = next(loader)
    assert batch["targets"].shape == batch["segment_ids"].shape == (4, 16)


def test_writing_refuses_what_is_no_id(tmp_path):
    out = tmp_path / "train"
    for wrong in ([[1], [-1]], [[1], [1 << 31]], [[1], [1 << 40]], [[1], [1.5]], [[1], [[1]]]):
        with pytest.raises(wr.ConfigError) as caught:
            wr.write(out, wrong, to="flat-tokens")
        assert caught.value.record == 1
        assert not out.exists()
    wr.write(out, [[1]], to="flat-tokens")
    with pytest.raises(wr.ExistsError):
        wr.write(out, [[1]], to="flat-tokens")


def test_a_writer_that_is_killed_leaves_what_was_there(tmp_path):
    out = tmp_path / "train"
    wr.write(out, SEQUENCES[:50], to="flat-tokens", tokens_chunk_size=64, seq_starts_chunk_size=8)
    program = (
        "import os, sys, windrow\n"
        "def some():\n"
        "    for i in range(500):\n"
        "        if i == int(sys.argv[2]): os.kill(os.getpid(), 9)\n"
        "        yield [i] * 9\n"
        "windrow.write(sys.argv[1], some(), to='flat-tokens', append=True)\n"
    )
    for at in (0, 1, 77, 499):
        done = subprocess.run([sys.executable, "-c", program, str(out), str(at)], timeout=60, check=False)
        assert done.returncode == -9
        assert lists(wr.open(out)) == SEQUENCES[:50]
    wr.write(out, SEQUENCES[50:], to="flat-tokens", append=True)
    assert lists(wr.open(out)) == SEQUENCES
    assert sorted(p.name for p in tmp_path.iterdir()) == [".zgroup", "train"]


def test_conversion_and_the_program(tmp_path):
    source = tmp_path / "series.jsonl"
    source.write_text("[1, 2]\n[3, 4, 5]\n")
    assert wr.convert(source, tmp_path / "a", to="flat-tokens")["records"] == 2
    run = [sys.executable, "-m", "windrow"]
    subprocess.run([*run, "convert", str(source), str(tmp_path / "z/train"), "--to", "flat-tokens"], check=True)
    for path in (tmp_path / "a", tmp_path / "z/train"):
        assert lists(wr.open(path)) == [[1, 2], [3, 4, 5]]
    shown = subprocess.run(
        [*run, "inspect", str(tmp_path / "z"), "--split", "train"], check=True, capture_output=True, text=True
    )
    assert "flat-tokens" in shown.stdout
    subprocess.run([*run, "verify", str(tmp_path / "z")], check=True)
    chunk = tmp_path / "z/train/encoded_tokens/0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    bad = subprocess.run([*run, "verify", str(tmp_path / "z")], check=False, capture_output=True, text=True)
    assert bad.returncode == 3 and "encoded_tokens/0" in bad.stdout + bad.stderr


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_large_batch_is_decoded_by_several_threads(tmp_path, kind):
    ids = RNG.integers(0, 70_000, 2_000_000)
    wr.write(tmp_path / "large", np.split(ids, 500), to="flat-tokens", tokens_chunk_size=50_000, **kind)
    length = 1_000
    rows = ids[: len(ids) // length * length].reshape(-1, length)
    view = wr.open(tmp_path / "large").pack(length, shifted=True, fields=["targets", "is_seq_start"], dtype="uint32")
    order = RNG.permutation(len(view))
    # The first rows find out how chunks are cut; what follows is decoded ahead.
    for part in np.split(order, [50, 1_500]):
        batch = view.batch(part)
        assert np.array_equal(batch["targets"], rows[part])
        assert not batch["is_seq_start"][part % 4 != 0].any() and batch["is_seq_start"][part % 4 == 0, 0].all()
    for wrong in (["labels"], ["targets", "targets"], []):
        with pytest.raises(wr.ConfigError):
            wr.open(tmp_path / "large").pack(length, shifted=True, fields=wrong)
    with pytest.raises(wr.ConfigError, match="shifted"):
        wr.open(tmp_path / "large").pack(length, fields=["targets"])


def test_what_fails_in_a_thread_is_told_with_its_place(tmp_path):
    ids = RNG.integers(0, 70_000, 2_000_000)
    wr.write(tmp_path / "large", np.split(ids, 500), to="flat-tokens", tokens_chunk_size=1_000_000)
    view = wr.open(tmp_path / "large").pack(1_000, shifted=True)
    view.batch([0, 1_000])
    chunk = tmp_path / "large" / "encoded_tokens" / "1"
    size = chunk.stat().st_size
    with chunk.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size - size // 2))
    with pytest.raises(wr.CorruptError) as error:
        view.batch(np.arange(2_000))
    assert pathlib.Path(error.value.path) == chunk
    assert view.batch(np.arange(1_000))["targets"].shape == (1_000, 1_000)


def flip(path, at, bit=0):
    """One bit of the file, its time kept."""
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_file_has_checksums_which_appending_brings_up_to_date(tmp_path, kind):
    out = tmp_path / "corpus.zarr" / "train"
    wr.write(out, SEQUENCES[:120], to="flat-tokens", tokens_chunk_size=300, seq_starts_chunk_size=50, **kind)
    wr.write(out, SEQUENCES[120:], to="flat-tokens", append=True)
    assert json.loads((out / "windrow.json").read_text())["records"] == len(SEQUENCES)
    assert lists(wr.open(out, verify_checksums=True)) == SEQUENCES
    view = wr.open(out, verify_checksums=True).pack(16, shifted=True)
    stream = [token for ids in SEQUENCES for token in ids][: 16 * len(view)]
    assert view.batch(range(len(view)))["targets"].ravel().tolist() == stream
    for path in files_of(out):
        at = path.stat().st_size // 2
        flip(path, at)
        # Of a whole corpus, too: of each of its splits.
        for place in (out, out.parent):
            problems = wr.verify(place)["problems"]
            # Damaged names in the table of the checksums are those of files that are not there.
            is_named = path.name == "windrow.sums" or any(path.name in problem["file"] for problem in problems)
            assert problems and is_named, (path, problems)
        with pytest.raises((wr.CorruptError, wr.ConfigError)):
            lists(wr.open(out, verify_checksums=True))
        flip(path, at)
    assert not wr.verify(out.parent)["problems"]


def test_a_damaged_chunk_of_version_3_is_refused_by_every_reader(tmp_path):
    for kind in KINDS[1:]:
        out = tmp_path / str(len(kind))
        wr.write(out, SEQUENCES, to="flat-tokens", tokens_chunk_size=300, **kind)
        chunk = out / "encoded_tokens" / "c" / "1"
        refused = 0
        for at in range(0, 600, 7):
            flip(chunk, at, at % 8)
            with pytest.raises(wr.CorruptError):
                lists(wr.open(out))
            try:
                zarr.open_group(out, mode="r")["encoded_tokens"][:]
            except Exception as error:
                refused += "crc32c" in str(error).lower() or "checksum" in str(error).lower()
            flip(chunk, at, at % 8)
        assert refused == len(range(0, 600, 7))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_appending_to_damaged_data_is_refused_rather_than_made_good(tmp_path, kind):
    out = tmp_path / "train"
    wr.write(out, SEQUENCES[:50], to="flat-tokens", tokens_chunk_size=300, **kind)
    # The last chunk is not full: it is written again.
    chunks = [path for path in files_of(out / "encoded_tokens") if path.name.isdigit()]
    last = max(chunks, key=lambda path: int(path.name))
    flip(last, last.stat().st_size // 2)
    before = {path: path.read_bytes() for path in files_of(out)}
    with pytest.raises(wr.CorruptError, match="those that were written"):
        wr.write(out, SEQUENCES[50:], to="flat-tokens", append=True)
    assert {path: path.read_bytes() for path in files_of(out)} == before


def test_what_is_appended_to_data_without_checksums_has_some(tmp_path):
    out = tmp_path / "train"
    tokens, starts = encoded(SEQUENCES[:100])
    group = zarr.open_group(out, mode="w", zarr_format=2, attributes={"max_token_id": 50_000})
    for array, numbers, dtype in (("encoded_tokens", tokens, "u4"), ("seq_starts", starts, "u8")):
        made = group.create_array(array, shape=(len(numbers),), chunks=(300,), dtype=dtype)
        made[:] = np.array(numbers, dtype)
    full = len(tokens) // 300
    wr.write(out, SEQUENCES[100:], to="flat-tokens", append=True)
    assert lists(wr.open(out)) == SEQUENCES and not wr.verify(out)["problems"]
    with pytest.raises(wr.ConfigError, match="no block checksums"):
        lists(wr.open(out, verify_checksums=True))
    flip(out / "encoded_tokens" / str(full + 1), 20)
    assert any(problem["file"].endswith(f"encoded_tokens/{full + 1}") for problem in wr.verify(out)["problems"])
