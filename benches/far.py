"""p: token IDs in a slow store: windrow in blocks and in global order, LitData and MosaicML Streaming, from one server."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from measure import DATA, HERE, ROOT, table

LOADERS = Path(sys.prefix) / "loaders"
WAIT_MS, MEGABYTES = 20, 100
LENGTH, BATCH = 1024, 256
# 200 MB of int32.
SAMPLES = int(os.environ.get("WINDROW_BENCH_FAR_SAMPLES", 48_640))
SIZE = SAMPLES * LENGTH * 4
# LitData's chunks of this many samples give 14 of them; MDS's of 8 MiB are 25.
CHUNK = -(-SAMPLES // 14)
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


def write(folder):
    """Equal samples for each loader; the first token of a sample is its number."""
    import windrow as wr

    if (folder / "done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    bucket = folder / "bucket"
    bucket.mkdir(parents=True)
    ids = np.random.default_rng(0).integers(0, 50_000, (SAMPLES, LENGTH), dtype=np.int32)
    ids[:, 0] = np.arange(SAMPLES)
    ids.tofile(bucket / "tokens.bin")
    wr.write(bucket / "mds", ({"tokens": row} for row in ids), to="mds", size_limit=8 << 20)
    chunks = []
    (bucket / "litdata").mkdir()
    for number, first in enumerate(range(0, SAMPLES, CHUNK)):
        items = ids[first : first + CHUNK]
        ends = (4 + 4 * (len(items) + 1) + 4 * LENGTH * np.arange(len(items) + 1)).astype("<u4")
        data = np.uint32(len(items)).tobytes() + ends.tobytes() + items.tobytes()
        (bucket / "litdata" / f"chunk-0-{number}.bin").write_bytes(data)
        size = {"chunk_size": len(items), "chunk_bytes": len(data), "dim": items.size}
        chunks.append({"filename": f"chunk-0-{number}.bin", **size})
    spec = json.dumps([1, {"type": None, "context": None, "children_spec": []}])
    config = {
        "compression": None, "compression_level": None, "data_format": ["no_header_tensor:16"], "encryption": None,
        "data_spec": spec, "item_loader": "TokensLoader",
    }  # fmt: skip
    (bucket / "litdata" / "index.json").write_text(json.dumps({"chunks": chunks, "config": config, "updated_at": "0"}))
    (folder / "done").touch()


def room(detail):
    """What is kept: all on disk, nothing beside memory that holds all, or a tenth of the data, on disk and in memory together."""
    return {"all": {}, "none": {"cache_limit": 0}, "tenth": {"cache_limit": SIZE // 20, "read_ahead": SIZE // 20}}[detail]


def windrow(url, cache, shuffle, detail, state=None):
    """Batches of the numbers of samples."""
    import windrow as wr

    options = {"endpoint_url": url, "access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"}
    ds = wr.open("s3://bucket/tokens.bin", dtype="int32", store_options=options, cache=cache, **room(detail))
    # The data are 24 blocks of the usual 8 MiB, and a batch would draw from 6 of them at a time. Two pools of 8
    # blocks fit into a twentieth of them.
    blocks = {"bytes": SIZE // 400, "lanes": 8, "pool": 1} if detail == "tenth" else {"bytes": "4MiB"}
    order = wr.Blocks(**blocks) if shuffle == "blocks" else True
    # What the others give, too: the IDs alone, as they are stored.
    view = ds.pack(LENGTH, labels=None, dtype="int32")
    loader = wr.Loader(view, batch_size=BATCH, shuffle=order, seed=1, epochs=2)
    if state is not None:
        loader.load_state_dict(state)
    return loader


def numbers_of_windrow(loader):
    for batch in loader:
        yield np.asarray(batch["input_ids"])[:, 0]


def litdata(url, cache, workers):
    import litdata
    from litdata.streaming import downloader
    from litdata.streaming.item_loader import TokensLoader

    # Its faster client speaks to servers without TLS only where it is told so.
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    dataset = litdata.StreamingDataset(
        "s3://bucket/litdata", cache_dir=cache, item_loader=TokensLoader(block_size=LENGTH), shuffle=True, seed=1,
        storage_options={"endpoint_url": url}, max_cache_size="10GB",
    )  # fmt: skip
    for batch in litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers):
        yield np.asarray(batch)[:, 0]


def mosaicml(cache, limit):
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader

    dataset = StreamingDataset(
        remote="s3://bucket/mds", local=f"{cache}/mds", shuffle=True, shuffle_algo="naive", shuffle_seed=1,
        batch_size=BATCH, cache_limit=limit,
    )  # fmt: skip
    for batch in DataLoader(dataset, batch_size=BATCH, num_workers=0):
        yield np.asarray(batch["tokens"])[:, 0]


def run_one(what, url, seconds):
    """One loader for so long, or for an epoch, from opening on; what came as JSON on the last line."""
    sys.path.append(str(LOADERS))
    os.environ["S3_ENDPOINT_URL"] = url
    name, _, detail = what.partition(":")
    # What importing takes is no matter of stores.
    __import__({"litdata": "litdata", "mosaicml": "streaming"}.get(name, "windrow"))
    __import__("torch.utils.data" if name in ("litdata", "mosaicml") else "windrow")
    counts(url)
    with tempfile.TemporaryDirectory(dir=DATA) as cache:
        began = time.perf_counter()
        if name == "litdata":
            batches = litdata(url, cache, int(detail))
        elif name == "mosaicml":
            batches = mosaicml(cache, SIZE // 2)
        else:
            loader = windrow(url, cache, name, detail)
            batches = numbers_of_windrow(loader)
        seen, first = [], None
        for batch in batches:
            first = first or time.perf_counter() - began
            seen.append(batch)
            if len(seen) * BATCH >= SAMPLES // BATCH * BATCH or time.perf_counter() - began > seconds:
                break
        elapsed = time.perf_counter() - began
        found = {"samples a second": len(seen) * BATCH / elapsed, "first batch": first, "batches": len(seen)}
        found.update(counts(url))
        found["received / delivered"] = found["bytes"] / (len(seen) * BATCH * LENGTH * 4)
        found["effective"] = {size: effective(seen, size) for size in (CHUNK, SAMPLES // 25)}
        if name in ("blocks", "global"):
            found["resumed"] = resumed(url, name, detail)
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


def effective(batches, size):
    """Runs of `size` samples that a batch effectively draws from: G² over the sum of squares, in the mean of all."""
    squares = [np.sum(np.bincount(np.asarray(batch) // size).astype(float) ** 2) for batch in batches]
    return BATCH**2 / float(np.mean(squares))


def resumed(url, order, detail):
    """Seconds from opening in a new cache until the batch in mid-epoch, and whether it is the unbroken run's."""
    import windrow as wr

    steps = SAMPLES // BATCH // 2
    with tempfile.TemporaryDirectory(dir=DATA) as cache:
        fresh = windrow(url, cache, order, detail)
        state = fresh.state_dict()
        wanted = None
        for step, batch in enumerate(fresh):
            if step + 1 == steps:
                state = fresh.state_dict()
            if step == steps:
                wanted = np.asarray(batch["input_ids"]).copy()
                break
        fresh.close()
    with tempfile.TemporaryDirectory(dir=DATA) as cache:
        counts(url)
        began = time.perf_counter()
        again = windrow(url, cache, order, detail, state)
        batch = np.asarray(next(iter(again))["input_ids"])
        took = time.perf_counter() - began
        return {"seconds": took, "equal": bool((batch == wanted).all()), **counts(url)}


def counts(url):
    with urllib.request.urlopen(f"{url}/-/counts") as answer:
        return json.load(answer)


def bench_p(passes, seconds):
    folder = DATA / f"far-{SAMPLES}"
    write(folder)
    kinds = ["blocks:all", "blocks:none", "blocks:tenth", "global:none", "global:tenth", "litdata:0", "litdata:2", "mosaicml"]
    server = [sys.executable, str(HERE / "far_server.py"), str(folder), str(WAIT_MS), str(MEGABYTES)]
    found = {kind: [] for kind in kinds}
    process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        for _ in range(passes):
            for kind in kinds:
                work = [sys.executable, str(HERE / "far.py"), kind, url, str(max(20 * seconds, 20))]
                out = subprocess.run(work, stdout=subprocess.PIPE, text=True, env={**os.environ, **KEYS}, cwd=ROOT)
                if out.returncode != 0:
                    print(kind, "ended with", out.returncode)
                    continue
                found[kind].append(json.loads(out.stdout.strip().splitlines()[-1]))
                print(kind, json.dumps(found[kind][-1]))
    finally:
        process.stdin.close()
        process.wait()
    median = lambda kind: float(np.median([one["samples a second"] for one in found[kind]])) if found[kind] else 0.0
    rates = {kind: median(kind) for kind in kinds}
    title = f"{SAMPLES:,} samples of {LENGTH} int32 behind {WAIT_MS} ms and {MEGABYTES} MB/s a connection, samples a second"
    table(title, rates, max(("litdata:0", "litdata:2"), key=rates.get))
    for kind in kinds:
        for one in found[kind][:1]:
            print(f"{kind:15}{one['received / delivered']:8.2f} bytes received for each that was delivered")
    return found


if __name__ == "__main__":
    run_one(sys.argv[1], sys.argv[2], float(sys.argv[3]))
