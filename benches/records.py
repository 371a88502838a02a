"""b: indexing JSONL, and c: its records at random."""

import os
import shutil
import time

import numpy as np

import windrow as wr
from data import jsonl
from measure import in_turns, limit, table


def bench_b(passes, seconds):
    path = jsonl()
    size = path.stat().st_size

    def windrow():
        # Neither side removes an index while it is timed.
        shutil.rmtree(path.parent / "index", ignore_errors=True)
        start = time.perf_counter()
        wr.index(path.parent)
        return size / (time.perf_counter() - start)

    def memchr():
        return size / limit("newlines", path)["secs"]

    def forager():
        from data_forager.indexers.jsonl_indexer import create_default_jsonl_indexer

        shutil.rmtree(path.parent / "index", ignore_errors=True)
        start = time.perf_counter()
        create_default_jsonl_indexer(str(path.parent))()
        secs = time.perf_counter() - start
        shutil.rmtree(path.parent / "index", ignore_errors=True)
        return size / secs

    found = in_turns(passes, **{"limit: memchr over a map": memchr, "windrow": windrow})
    found |= in_turns(1, **{"data-forager": forager})
    return table("(b) bytes/s, indexing 1 GB of JSONL", found, "limit: memchr over a map")


def bench_c(passes, seconds):
    import mmap

    import orjson

    path = jsonl()
    wr.index(path.parent, overwrite=True)
    data = wr.open(path.parent)
    order = np.random.default_rng(1).integers(0, len(data), 200_000).tolist()

    def records(read):
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for i in order[:500]:
                read(i)
            count += 500
        return count / (time.perf_counter() - start)

    locations = np.fromfile(path.parent / "index" / "sample_locations.bin", dtype=np.uint64).reshape(-1, 3)
    starts, sizes = locations[:, 1].tolist(), locations[:, 2].tolist()
    held = mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)

    def by_orjson(i):
        start = starts[i]
        return orjson.loads(held[start : start + sizes[i]])

    def forager():
        from data_forager.datasets.jsonl import JsonlDataset

        peer = JsonlDataset.create_from_index_on_filesystem(str(path.parent))
        return records(lambda i: peer[i])

    def rust(command, what):
        found = limit(command, what, seconds)
        return found["records"] / found["secs"]

    found = in_turns(
        passes,
        **{
            "limit: Rust, read and parse": lambda: rust("parse", path),
            "windrow, Rust": lambda: rust("records", path.parent),
            "windrow, Python": lambda: records(data.__getitem__),
            "mmap + orjson, Python": lambda: records(by_orjson),
            "data-forager": forager,
        },
    )
    return table("(c) JSON records/s at random", found, "limit: Rust, read and parse")
