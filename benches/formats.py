"""o: what other loaders wrote: records at random, and token IDs packed, beside raw token IDs and the loaders themselves."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import windrow as wr
from measure import DATA, in_turns, per_second, table

# The packages of other loaders, behind everything else.
LOADERS = Path(sys.prefix) / "loaders"
RECORDS = 20_000
PACKED = int(os.environ.get("WINDROW_BENCH_TOKENS", 40_000_000))


def write(folder, ids):
    """The same records in every format; what opens each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    flat = np.concatenate(ids)
    flat.tofile(folder / "raw.bin")
    if not (folder / "done").exists():
        wr.write(folder / "mds", ({"tokens": row} for row in ids), to="mds")
        for name in ("llmc", "datatrove", "olmo"):
            kept = (row.astype(np.uint32) for row in ids)
            wr.write(folder / (name + (".bin" if name == "llmc" else "")), kept, to=name)
        values = pa.ListArray.from_arrays(np.cumsum([0, *map(len, ids)]).astype(np.int32), pa.array(flat))
        column = pa.table({"input_ids": values})
        with pa.OSFile(str(folder / "plain.arrow"), "wb") as f, pa.ipc.new_stream(f, column.schema) as out:
            out.write_table(column, max_chunksize=1000)
        pq.write_table(column, folder / "zstd.parquet", compression="zstd", row_group_size=100_000)
        litdata(folder / "litdata", ids)
        (folder / "done").touch()
    return {
        "raw .bin": lambda: wr.open(folder / "raw.bin", dtype="int32"),
        "mds": lambda: wr.open(folder / "mds"),
        "litdata tokens": lambda: wr.open(folder / "litdata"),
        "datatrove .ds": lambda: wr.open(folder / "datatrove"),
        "llm.c": lambda: wr.open(folder / "llmc.bin"),
        "olmo": lambda: wr.open(folder / "olmo"),
        "arrow": lambda: wr.open(folder / "plain.arrow"),
        "parquet, from the cache": lambda: wr.open(folder / "zstd.parquet"),
    }


def litdata(folder, ids):
    """Chunks of tokens as litdata's TokensLoader reads them."""
    folder.mkdir()
    chunks = []
    for number, first in enumerate(range(0, len(ids), 2000)):
        items = [row.tobytes() for row in ids[first : first + 2000]]
        ends = np.cumsum([4 + 4 * (len(items) + 1), *map(len, items)]).astype("<u4")
        data = np.uint32(len(items)).tobytes() + ends.tobytes() + b"".join(items)
        name = f"chunk-0-{number}.bin"
        (folder / name).write_bytes(data)
        tokens = sum(map(len, items)) // 4
        chunks.append({"filename": name, "chunk_size": len(items), "chunk_bytes": len(data), "dim": tokens})
    config = {
        "compression": None, "compression_level": None, "data_format": ["no_header_tensor:16"], "encryption": None,
        "data_spec": json.dumps([1, {"type": None, "context": None, "children_spec": []}]), "item_loader": "TokensLoader",
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"chunks": chunks, "config": config, "updated_at": "0"}))


def at_random(get, n, seconds):
    """Records a second, in another order each time."""
    order = np.random.default_rng(1).permutation(n)
    for i in order[:50]:
        get(int(i))
    count, start = 0, time.perf_counter()
    while True:
        for i in order[count % n : count % n + 500]:
            get(int(i))
        count += 500
        elapsed = time.perf_counter() - start
        if elapsed > seconds:
            return count / elapsed


def bench_o(passes, seconds):
    sys.path.append(str(LOADERS))
    import pyarrow as pa

    rng = np.random.default_rng(0)
    lengths = rng.integers(256, 769, RECORDS)
    ids = [rng.integers(0, 50_000, n).astype(np.int32) for n in lengths]
    folder = DATA / "formats"
    opened = {name: make() for name, make in write(folder, ids).items()}
    flat, ends = np.concatenate(ids), np.concatenate([[0], np.cumsum(lengths)])
    mapped = pa.ipc.open_stream(pa.memory_map(str(folder / "plain.arrow"))).read_all()["input_ids"]
    getters = {"numpy slice and copy": lambda i: flat[ends[i] : ends[i + 1]].copy()}
    for name, ds in opened.items():
        if len(ds) == RECORDS:
            getters[f"windrow {name}"] = ds.__getitem__
    getters["pyarrow, a mapped column"] = lambda i: mapped[i].values.to_numpy()
    try:
        from streaming import StreamingDataset

        theirs = StreamingDataset(local=str(folder / "mds"), shuffle=False, batch_size=1)
        getters["mosaicml-streaming"] = theirs.__getitem__
    except ImportError as error:
        print("mosaicml-streaming is left out:", error)
    records = in_turns(passes, **{name: lambda get=get: at_random(get, RECORDS, seconds) for name, get in getters.items()})
    result = {"records": table("20,000 records of 256 to 768 int32 at random, a second", records, "numpy slice and copy")}

    many = PACKED // 512
    lengths = rng.integers(256, 769, many)
    ids = [rng.integers(0, 50_000, n).astype(np.int32) for n in lengths]
    views = {name: make().pack(1024) for name, make in write(DATA / f"formats-{PACKED}", ids).items()}
    del ids

    def packed(view):
        with wr.Loader(view, batch_size=32, num_threads=1, seed=0) as loader:
            return per_second(loader.stream(), seconds, 32)

    found = in_turns(passes, **{name: lambda view=view: packed(view) for name, view in views.items()})
    result["packed"] = table(f"{PACKED:,} tokens packed at 1,024, rows a second on one thread", found, "raw .bin")
    return result
