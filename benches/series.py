"""g: windows of time series, scaled, and h: ten million series."""

import statistics
import subprocess
import sys
import time

import numpy as np

import windrow as wr
from measure import DATA, forever, in_turns, limit, per_second, table, warm


def shards(n_series=20_000, length=5_000):
    """Random walks in one shard folder: 1e8 float32 points."""
    out = DATA / "shards"
    if not (out / "meta.json").exists():
        rng = np.random.default_rng(0)
        wr.write(out, (rng.normal(size=length).cumsum().astype(np.float32) for _ in range(n_series)), to="shards", fsync=False)
    path = next(out.glob("data-1-of-1.bin"))
    warm(path)
    return out, path, n_series, length


def bench_g(passes, seconds):
    import torch

    folder, path, n_series, length = shards()
    context, stride, batch = 256, 64, 256
    per_series = 1 + (length - context - 1) // stride

    def windrow(threads, scaler="zero"):
        view = wr.open(folder).windows(context_length=context, stride=stride, scaler=scaler)
        assert len(view) == n_series * per_series
        with wr.Loader(view, batch_size=batch, num_threads=threads) as loader:
            return per_second(loader, seconds, batch)

    def rust(threads):
        found = limit("windows", path, n_series, context, stride, batch, threads, seconds)
        return found["samples"] / found["secs"]

    class Implied(torch.utils.data.Dataset):
        # What the document describes: the whole sequence is read and normalised for each window.
        def __init__(self):
            self.data = np.memmap(path, dtype=np.float32, mode="r")

        def __len__(self):
            return n_series * per_series

        def __getitem__(self, i):
            series, k = divmod(i, per_series)
            whole = torch.from_numpy(self.data[series * length : (series + 1) * length].copy())
            whole = (whole - whole.mean()) / whole.std(unbiased=False)
            window = whole[k * stride : k * stride + context + 1]
            mask = torch.ones(context, dtype=torch.int32)
            return {"input_ids": window[:-1], "labels": window[1:], "loss_masks": mask}

    def data_loader(data, workers):
        loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers, drop_last=True)
        return per_second(forever(lambda: loader), seconds, batch)

    flat = np.memmap(path, dtype=np.float32, mode="r")
    means = flat.reshape(n_series, length).mean(axis=1, dtype=np.float64).astype(np.float32)
    stds = flat.reshape(n_series, length).std(axis=1, dtype=np.float64).astype(np.float32)

    def vectorised():
        rows = np.lib.stride_tricks.as_strided(flat, (n_series, per_series, context + 1), (4 * length, 4 * stride, 4))

        def epoch():
            order = np.random.default_rng(0).permutation(n_series * per_series)
            masks = np.ones((batch, context), dtype=np.int32)
            for i in range(0, len(order) - batch + 1, batch):
                series, k = np.divmod(order[i : i + batch], per_series)
                block = (rows[series, k] - means[series, None]) / stds[series, None]
                yield {
                    "input_ids": np.ascontiguousarray(block[:, :-1]),
                    "labels": np.ascontiguousarray(block[:, 1:]),
                    "loss_masks": masks.copy(),
                }

        return per_second(forever(epoch), seconds, batch)

    view = wr.open(folder).windows(context_length=context, stride=stride, scaler="zero")
    found = in_turns(
        passes,
        **{
            "limit: read and scale, 1 thread": lambda: rust(1),
            "windrow, 1 thread": lambda: windrow(1),
            "limit: read and scale, 2 threads": lambda: rust(2),
            "windrow, 2 threads": lambda: windrow(2),
            "windrow, 2 threads, unscaled": lambda: windrow(2, None),
            "numpy, vectorised, statistics known": vectorised,
            "data set as described, 0 workers": lambda: data_loader(Implied(), 0),
            "data set as described, 2 workers": lambda: data_loader(Implied(), 2),
            "DataLoader over a windrow view, 2 workers": lambda: data_loader(view, 2),
        },
    )
    return table("(g) windows/s, context 256, stride 64, batch 256", found, "limit: read and scale, 2 threads")


MANY = """
import sys, time
import numpy
import windrow as wr

def resident():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * (int(status["RssAnon"].split()[0]) + int(status["RssFile"].split()[0]))

before = resident()
start = time.perf_counter()
data = wr.open(sys.argv[1])
opened = time.perf_counter()
view = data.windows(context_length=256, stride=64)
count = len(view)
counted = time.perf_counter()
held = resident() - before
view[count // 3]
first = time.perf_counter()
for i in range(1000):
    view[i * 7919 * 10007 % count]
drawn = time.perf_counter()
with wr.Loader(view, batch_size=256, num_threads=1) as loader:
    s = loader.state_dict()
    s["samples"] = 256 * 100_000 if count > 256 * 100_000 else 256
    loader.load_state_dict(s)
    next(iter(loader))
resumed = time.perf_counter()
print(opened - start, counted - opened, first - counted, (drawn - first) / 1000, resumed - drawn, held, count)
"""


def sparse_shards(n):
    """Series of 6,500 to 6,686 points, about a hundred windows each, in one shard that is a hole."""
    out = DATA / f"sparse-series{n}"
    if not (out / "meta.json").exists():
        out.mkdir(parents=True, exist_ok=True)
        offset = 0
        with open(out / "meta.tmp", "w") as meta:
            meta.write('{"num_sequences": %d, "dtype": "float32", "scales": [' % n)
            for i in range(n):
                length = 6500 + i * 31 % 187
                meta.write('%s{"offset": %d, "length": %d}' % (", " if i else "", offset, length))
                offset += length
            meta.write('], "files": {"data-1-of-1.bin": %d}}' % offset)
        with open(out / "data-1-of-1.bin", "wb") as shard:
            shard.truncate(4 * offset)
        (out / "meta.tmp").rename(out / "meta.json")
    return out


def bench_h(passes, seconds):
    names = ["open", "count", "first window", "any window", "resume at step 1e5"]
    sizes = [10**4, 10**7]

    def many(n):
        folder = sparse_shards(n)
        out = subprocess.run([sys.executable, "-c", MANY, str(folder)], check=True, capture_output=True, text=True)
        return list(map(float, out.stdout.split()))

    start = time.perf_counter()
    # The description is read once.
    many(sizes[-1])
    print(f"reading the description of 1e7 series and all below, once: {time.perf_counter() - start:.1f} s")
    runs = {n: [many(n) for _ in range(max(passes, 5))] for n in sizes}
    middle = {n: [statistics.median(column) for column in zip(*found)] for n, found in runs.items()}
    found = {}
    for i, name in enumerate(names):
        for n in sizes:
            found[f"{name}, {n:.0e} series"] = middle[n][i] * 1e6
    result = {"microseconds": table("(h) microseconds", found, f"open, {sizes[0]:.0e} series")}
    held = {f"bytes held for each of {sizes[-1]:.0e} series": middle[sizes[-1]][5] / sizes[-1]}
    held["windows"] = middle[sizes[-1]][6]
    result["memory"] = table("(h) memory", held, next(iter(held)))
    return result
