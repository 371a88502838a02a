"""j: flat-tokens in zarr, four layouts, and k: seqax's loader."""

import json
import os
import shutil
import sys
import time

import numpy as np

import windrow as wr
from measure import CORPUS, DATA, forever, in_turns, per_second, table, warm

LENGTH, BATCH = 1024, 32
LAYOUTS = {
    "v2, blosc chunks of 4 Mi tokens": {},
    "v2, blosc chunks of 64 Ki tokens": {"tokens_chunk_size": 65_536},
    "v3, zstd chunks of 4 Ki tokens in shards": {
        "zarr_format": 3,
        "tokens_chunk_size": 4_096,
        "chunks_per_shard": 256,
    },
    "v2, uncompressed": None,
}


def sequences(n):
    """The real corpus as cl100k ids, its documents in random order, over and over, until there are n tokens."""
    tokenizer = wr.Tokenizer("cl100k_base")
    documents = [
        np.asarray(tokenizer.encode(json.loads(line)["text"]), np.uint32)
        for line in CORPUS.open(encoding="utf-8")
    ]
    rng, left = np.random.default_rng(0), n
    while left:
        for i in rng.permutation(len(documents)):
            sequence = documents[i][:left]
            yield sequence
            left -= len(sequence)
            if not left:
                return


def stores(n=500_000_000):
    """One store a layout, and the ids as raw tokens."""
    raw = DATA / f"flat{n}.bin"
    if not raw.exists():
        wr.write(raw, sequences(n), to="tokens", dtype="uint32", fsync=False)
    found = {}
    for i, (name, options) in enumerate(LAYOUTS.items()):
        path = DATA / f"flat{n}-{i}.zarr"
        if not path.exists():
            if options is None:
                uncompressed(DATA / f"flat{n}-0.zarr", path)
            else:
                wr.write(path, sequences(n), to="flat-tokens", fsync=False, **options)
        found[name] = path
    return raw, found


def uncompressed(source, out):
    """Writes the arrays by zarr-python, without a compressor."""
    import zarr

    part = out.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    have, group = zarr.open_group(source, mode="r"), zarr.create_group(part, zarr_format=2)
    group.attrs.update(dict(have.attrs))
    for name in ["encoded_tokens", "seq_starts"]:
        array, step = have[name], 4_194_304
        made = group.create_array(
            name, shape=array.shape, dtype=array.dtype, chunks=(step,), compressors=None, filters=None
        )
        for start in range(0, array.shape[0], step):
            made[start : start + step] = array[start : start + step]
    part.rename(out)


def warm_folder(path):
    for file in sorted(path.rglob("*")):
        if file.is_file():
            warm(file)


def spans(n_tokens, seed):
    """Batches of row starts, all rows in a random order."""
    n = n_tokens // LENGTH
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(n)
        for k in range(0, n - BATCH, BATCH):
            yield order[k : k + BATCH] * LENGTH


def shifted(encoded):
    """What a trainer does with the stored numbers: targets, starts, inputs."""
    targets, starts = encoded >> 1, (encoded & 1).astype(bool)
    inputs = np.zeros_like(targets)
    inputs[:, 1:] = targets[:, :-1]
    inputs[starts] = 0
    return {"inputs": inputs, "targets": targets, "is_seq_start": starts}


def by_zarr(path, pipeline=None):
    """zarr-python, with its own codecs or those of zarrs-python."""
    import zarr

    setting = {"codec_pipeline.path": pipeline} if pipeline else {}
    with zarr.config.set(setting):
        tokens = zarr.open_array(path / "encoded_tokens", mode="r")
        for starts in spans(tokens.shape[0], 1):
            yield shifted(np.stack([tokens[s : s + LENGTH] for s in starts]))


def by_tensorstore(path):
    import tensorstore

    driver = "zarr3" if (path / "zarr.json").exists() else "zarr"
    spec = {
        "driver": driver,
        "kvstore": {"driver": "file", "path": str(path / "encoded_tokens")},
        # As much as windrow keeps.
        "context": {"cache_pool": {"total_bytes_limit": 256 << 20}},
    }
    tokens = tensorstore.open(spec, open=True).result()
    for starts in spans(tokens.shape[0], 1):
        with tensorstore.Batch() as batch:
            rows = [tokens[s : s + LENGTH].read(batch=batch) for s in starts]
        yield shifted(np.stack([row.result() for row in rows]))


def rate(batches, seconds):
    """Rows per second; one batch first, since a peer may take seconds for one."""
    next(batches)
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        next(batches)
        count += BATCH
    return count / elapsed


def bench_j(passes, seconds):
    raw, found = stores()
    result = {}

    def tokens(shifted):
        view = wr.open(raw, format="tokens", dtype="uint32").pack(LENGTH, shifted=shifted)
        with wr.Loader(view, batch_size=BATCH) as loader:
            return per_second(loader, seconds, BATCH)

    for name, path in found.items():

        def windrow(path=path, shifted=True):
            view = wr.open(path, format="flat-tokens").pack(LENGTH, shifted=shifted)
            with wr.Loader(view, batch_size=BATCH) as loader:
                return per_second(loader, seconds, BATCH)

        warm_folder(path)
        warm(raw)
        measures = {
            "windrow, shifted": windrow,
            "windrow, next-token pairs": lambda: windrow(shifted=False),
            "zarr-python 3": lambda path=path: rate(by_zarr(path), seconds),
            "zarrs-python": lambda path=path: rate(by_zarr(path, "zarrs.ZarrsCodecPipeline"), seconds),
            "tensorstore": lambda path=path: rate(by_tensorstore(path), seconds),
            "raw .bin, shifted": lambda: tokens(True),
            "raw .bin, next-token pairs": lambda: tokens(False),
        }
        measured = in_turns(passes, **measures)
        result[name] = table(f"(j) rows/s, {name}, length {LENGTH}, batch {BATCH}", measured, "windrow, shifted")
        fastest = max(measured["zarrs-python"], measured["tensorstore"])
        print(
            f"  {measured['windrow, shifted'] / measured['zarr-python 3']:.1f} times zarr-python,"
            f" {measured['windrow, shifted'] / fastest:.1f} times the fastest other,"
            f" {measured['windrow, shifted'] / measured['raw .bin, shifted']:.3f} and"
            f" {measured['windrow, next-token pairs'] / measured['raw .bin, next-token pairs']:.3f} of raw .bin"
        )
    return result


def bench_k(passes, seconds):
    """The blocks of one of seqax's shuffle buffers, read by zarr-python and kept, as its loader does before it mixes them;
    the mixing is not counted. windrow assembles the batches."""
    import zarr

    from windrow.compat.seqax import FlatTokensParams, ShufflingLoader, TokenBatchParams

    path = stores()[1]["v2, blosc chunks of 4 Mi tokens"]
    folder = DATA / "flat-seqax.zarr"
    folder.mkdir(exist_ok=True)
    if not (folder / "train").exists():
        os.symlink(path, folder / "train")
    # The values that its configurations ship with, but for the batch.
    params = FlatTokensParams(folder, 1, 128, 1024, seed=0, sequence_packing=True)
    warm_folder(path)

    def windrow():
        loader = ShufflingLoader("train", params, TokenBatchParams(LENGTH, 64))
        start = time.perf_counter()
        rows = 128 * 1024
        for step in range(rows // 64):
            loader.load(step)
        return rows / (time.perf_counter() - start)

    def blocks():
        tokens = zarr.open_array(path / "encoded_tokens", mode="r")
        n = tokens.shape[0] // LENGTH // 1024
        order = np.random.default_rng(0).permutation(n)[:128]
        start = time.perf_counter()
        kept = [tokens[block * 1024 * LENGTH : (block + 1) * 1024 * LENGTH] for block in order]
        assert len(kept) == 128
        return 128 * 1024 / (time.perf_counter() - start)

    found = in_turns(passes, **{"windrow's ShufflingLoader": windrow, "zarr-python, blocks only": blocks})
    return table(f"(k) rows/s of seqax's order, length {LENGTH}", found, "windrow's ShufflingLoader")
