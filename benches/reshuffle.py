"""s: documents in a new order in every epoch."""

import os
import shutil
import types

import grain
import numpy as np
import torch
from grain.experimental import ConcatThenSplitIterDataset
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset
from megatron.core.datasets.utils import Split

import windrow as wr
from measure import DATA, in_turns, limit, per_second, processor_secs, spent, table, times, warm

LENGTH, BATCH, EOS, THREADS = 2048, 32, 1, 2
IDX_U16 = 8


def documents(n):
    """Documents of 500 to 1,523 tokens, the last of each EOS, as Megatron-LM stores them."""
    path = DATA / f"megatron_{n}"
    if not path.with_suffix(".idx").exists():
        rng = np.random.default_rng(0)
        lengths = rng.integers(500, 1524, n, dtype=np.int32)
        ends = np.cumsum(lengths, dtype=np.int64)
        with open(path.with_suffix(".bin"), "wb") as out:
            for first in range(0, n, 10_000):
                part = lengths[first : first + 10_000]
                ids = rng.integers(2, 50_000, part.sum(), dtype=np.uint16)
                ids[np.cumsum(part) - 1] = EOS
                out.write(ids.tobytes())
        head = b"MMIDIDX\x00\x00" + np.uint64(1).tobytes() + np.uint8(IDX_U16).tobytes()
        counts = np.array([n, n + 1], np.uint64).tobytes()
        starts = 2 * (ends - lengths)
        written = path.with_suffix(".tmp")
        written.write_bytes(head + counts + lengths.tobytes() + starts.tobytes() + np.arange(n + 1, dtype=np.int64).tobytes())
        written.rename(path.with_suffix(".idx"))
    warm(path.with_suffix(".bin"))
    return path


def megatron(path, cache):
    """Megatron-Core's data set, whose first step is to build its index of all documents and samples."""
    shutil.rmtree(cache, ignore_errors=True)
    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=LENGTH,
        blend=None,
        split="1",
        path_to_cache=str(cache),
        tokenizer=types.SimpleNamespace(vocab_size=50_000, eod=EOS, pad=EOS, unique_identifiers={"class": "ids"}),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    indexed = IndexedDataset(str(path))
    return GPTDataset(indexed, str(path), np.arange(len(indexed), dtype=np.int32), None, Split.train, config)


def grains(path):
    """Grain's shuffle of documents, then its packing."""
    indexed = IndexedDataset(str(path))
    source = grain.MapDataset.source(indexed).seed(1).shuffle().map(lambda ids: {"tokens": ids})
    options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=64)
    rows = ConcatThenSplitIterDataset(source.to_iter_dataset(options), length_struct={"tokens": LENGTH})
    return rows


def same_documents(path, rows):
    """Rows without their labels, one after the other, are the documents in some order, but for what no row holds at the end."""
    stream = np.concatenate(list(rows))
    found = {part.tobytes() for part in np.split(stream, np.flatnonzero(stream == EOS) + 1)[:-1]}
    indexed = IndexedDataset(str(path))
    stored = [np.asarray(indexed[number], stream.dtype).tobytes() for number in range(len(indexed))]
    assert found <= set(stored) and len(found) > len(stored) - 6, (len(found), len(stored))
    assert [*found] != stored


def check():
    """That all give whole documents, each once, before anything is timed."""
    path = documents(2_000)
    view = wr.open(path.with_suffix(".bin")).pack(LENGTH, reshuffle=True)
    for epoch in range(2):
        view.set_epoch(epoch)
        same_documents(path, (view[number]["input_ids"].astype(np.uint16) for number in range(len(view))))
    dataset = megatron(path, DATA / "megatron-check")
    in_order = np.argsort(dataset.shuffle_index)
    same_documents(path, (dataset[int(number)]["tokens"].numpy().astype(np.uint16) for number in in_order))
    same_documents(path, (np.asarray(row["tokens"], np.uint16) for row in grains(path)))


def bench_s(passes, seconds):
    check()
    path = documents(1_000_000)
    dataset = wr.open(path.with_suffix(".bin"))
    views = {
        "windrow, pack": dataset.pack(LENGTH),
        "windrow, reshuffled": dataset.pack(LENGTH, reshuffle=True),
        "windrow, reshuffled, scope 1,024": dataset.pack(LENGTH, reshuffle=True, scope=1024),
    }

    def windrow(view):
        with wr.Loader(view, batch_size=BATCH, num_threads=THREADS) as loader:
            return per_second(loader.stream(), seconds, BATCH, processor_secs)

    cache = DATA / "megatron-cache"
    core = megatron(path, cache)

    def in_workers():
        return per_second(torch.utils.data.DataLoader(core, BATCH, num_workers=THREADS), seconds, BATCH, processor_secs)

    def of_grain():
        return per_second(iter(grains(path).batch(BATCH)), seconds, BATCH, processor_secs)

    measures = {name: lambda view=view: windrow(view) for name, view in views.items()}
    found = in_turns(passes, **measures, **{"Megatron-Core, 2 workers": in_workers, "Grain, 2 threads": of_grain})
    result = table(f"(s) samples a second of processors, 1,000,000 documents, length {LENGTH}, batch {BATCH}", found, "windrow, pack")

    def first_batch():
        with wr.Loader(wr.open(path.with_suffix(".bin")).pack(LENGTH, reshuffle=True), batch_size=BATCH) as loader:
            next(loader)

    starts = {
        "Megatron-Core builds its index": lambda: spent(lambda: megatron(path, cache)[0]),
        "windrow opens and gives a batch": lambda: spent(first_batch),
    }
    result["start"] = times("(s) ms to the first sample", passes, starts)
    result["10^8 documents"] = limit("order", 100_000_000, LENGTH, os.cpu_count(), 1_000_000)
    print(f"  10^8 documents: {result['10^8 documents']}")
    result["waits"] = {}
    for n, rows, rate in [(1_000_000, 400_000, 0), (10_000_000, 60_000, 3200), (100_000_000, 120_000, 3200)]:
        result["waits"][f"{n} documents, {rate or 'all'} rows/s"] = waits = limit("pauses", n, LENGTH, THREADS, rows, rate)
        print(f"  waits for a batch from {rows:,} rows before an epoch's end to as many after it, {n:,} documents: {waits}", flush=True)
    return result
