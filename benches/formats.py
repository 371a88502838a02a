"""o: what other loaders wrote: records at random, and token IDs packed, beside raw token IDs and the loaders themselves."""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

import windrow as wr
from measure import DATA, in_turns, per_second, table

# The packages of other loaders, behind everything else.
LOADERS = Path(sys.prefix) / "loaders"
RECORDS = 20_000
SHARDS = 1_000
CLOUDS = ("boto3", "botocore", "botocore.credentials", "botocore.utils")
PACKED = int(os.environ.get("WINDROW_BENCH_TOKENS", 40_000_000))


def write(folder, ids):
    """Writes the records in every format; gives what opens each."""
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


def litdata(folder, ids, each=2000):
    """Chunks of tokens as litdata's TokensLoader reads them."""
    folder.mkdir()
    chunks = []
    for number, first in enumerate(range(0, len(ids), each)):
        items = [row.tobytes() for row in ids[first : first + each]]
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


def write_shards(folder):
    """1,000 shards of 20 records in every format whose package opens a folder of them; how windrow and the package open it."""
    from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter
    import bagz
    import datasets
    import pyarrow as pa
    import pyarrow.dataset
    import pyarrow.parquet as pq
    from datatrove.utils.dataset import DatatroveFolderDataset

    # Clients of clouds that it imports, and does not need for folders.
    for name in CLOUDS:
        sys.modules.setdefault(name, mock.MagicMock())
    import litdata as theirs_litdata
    from litdata.streaming.item_loader import TokensLoader
    from streaming import StreamingDataset
    from tfrecord.tools import tfrecord2idx

    rng = np.random.default_rng(2)
    ids = [rng.integers(0, 50_000, 64).astype(np.int32) for _ in range(20 * SHARDS)]
    shards = [ids[first : first + 20] for first in range(0, len(ids), 20)]
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("datatrove", "parquet", "tfrecord", "array_record", "bagz"):
            (folder / name).mkdir(parents=True)
        # This limit in bytes gives shards of about 20 records.
        wr.write(folder / "mds", ({"tokens": row} for row in ids), to="mds", size_limit=20 * 272)
        litdata(folder / "litdata", ids, 20)
        datasets.Dataset.from_dict({"input_ids": ids}).save_to_disk(str(folder / "arrow"), num_shards=SHARDS)
        for number, shard in enumerate(shards):
            np.concatenate(shard).astype("<u4").tofile(folder / f"datatrove/{number:05d}.ds")
            np.cumsum([64] * 20).astype("<u8").tofile(folder / f"datatrove/{number:05d}.ds.index")
            column = pa.table({"input_ids": pa.array([row.tolist() for row in shard], pa.list_(pa.int32()))})
            pq.write_table(column, folder / f"parquet/{number:05d}.parquet")
            part = f"{number:05d}-of-{SHARDS:05d}"
            with open(folder / f"tfrecord/train.tfrecord-{part}", "wb") as out:
                for row in shard:
                    out.write(frame(row.tobytes()))
            writer = ArrayRecordWriter(str(folder / f"array_record/train.array_record-{part}"), "group_size:1")
            for row in shard:
                writer.write(row.tobytes())
            writer.close()
            with bagz.Writer(str(folder / f"bagz/{number:05d}.bag")) as writer:
                for row in shard:
                    writer.write(row.tobytes())
        (folder / "done").touch()
    files = lambda name: sorted(str(path) for path in (folder / name).iterdir() if path.name != "windrow.json")

    def indexed():
        with tempfile.TemporaryDirectory() as out:
            for number, path in enumerate(files("tfrecord")):
                tfrecord2idx.create_index(path, f"{out}/{number}")

    tokens = lambda: TokensLoader(block_size=64)
    return {
        "mds": lambda: len(StreamingDataset(local=str(folder / "mds"), shuffle=False, batch_size=1)),
        "litdata": lambda: len(theirs_litdata.StreamingDataset(str(folder / "litdata"), item_loader=tokens())),
        "arrow": lambda: len(datasets.load_from_disk(str(folder / "arrow"))),
        "datatrove": lambda: len(DatatroveFolderDataset(str(folder / "datatrove"), seq_len=63, token_size=4)),
        "parquet": lambda: pyarrow.dataset.dataset(files("parquet")).count_rows(),
        "tfrecord": indexed,
        "array_record": lambda: sum(ArrayRecordReader(path).num_records() for path in files("array_record")),
        "bagz": lambda: sum(len(bagz.Reader(path)) for path in files("bagz")),
    }


def frame(data):
    """A record of TFRecord: its size and bytes, each with a masked CRC-32C."""
    import crc32c

    def masked(part):
        crc = crc32c.crc32c(part)
        return np.uint32((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF).tobytes()

    size = np.uint64(len(data)).tobytes()
    return size + masked(size) + data + masked(data)


def without_cache(work):
    """How long it takes where nothing was opened before."""
    with tempfile.TemporaryDirectory(dir=DATA) as cache:
        before = os.environ.get("WINDROW_CACHE")
        os.environ["WINDROW_CACHE"] = cache
        start = time.perf_counter()
        work()
        elapsed = time.perf_counter() - start
        os.environ.pop("WINDROW_CACHE")
        if before is not None:
            os.environ["WINDROW_CACHE"] = before
    return elapsed


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def opening(passes):
    """Microseconds until the number of records is known."""
    folder = DATA / "formats-shards"
    result = {}
    for name, theirs in write_shards(folder).items():
        ours = lambda: len(wr.open(folder / name))
        ours()
        measures = {
            "windrow, nothing cached": lambda: 1e6 * without_cache(ours),
            "windrow, again": lambda: 1e6 * timed(ours),
            "its package": lambda: 1e6 * timed(theirs),
        }
        found = in_turns(passes, **measures)
        result[name] = table(f"1,000 shards of {name} opened, microseconds", found, "its package")
    return result


def decoding(passes, path):
    """Microseconds to have a column of token IDs: in the cache of windrow; by pyarrow in memory, and in a file that can be mapped."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def to_file():
        column = pq.read_table(path, columns=["input_ids"])
        with tempfile.TemporaryDirectory(dir=DATA) as folder:
            with pa.OSFile(f"{folder}/column.arrow", "wb") as file, pa.ipc.new_stream(file, column.schema) as out:
                out.write_table(column)

    measures = {
        "windrow, into the cache on disk, and packed": lambda: 1e6 * without_cache(lambda: wr.open(path).pack(1024)),
        "pyarrow, into memory": lambda: 1e6 * timed(lambda: pq.read_table(path, columns=["input_ids"])),
        "pyarrow, into a file": lambda: 1e6 * timed(to_file),
    }
    return table("a column of Parquet decoded, microseconds", in_turns(passes, **measures), "pyarrow, into a file")


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
    result["decoding"] = decoding(passes, DATA / f"formats-{PACKED}" / "zstd.parquet")
    result["opening"] = opening(passes)
    result["packed"] = table(f"{PACKED:,} tokens packed at 1,024, rows a second on one thread", found, "raw .bin")
    return result
