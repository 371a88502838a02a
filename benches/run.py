"""windrow beside its peers and beside the machine's limit, in one run.

    make bench                       # everything, about ten minutes
    python benches/run.py a c        # some of it

Each figure is the median of several passes taken in turns, so that a noisy machine hits all alike; what is printed is
the ratio. Results are kept in benches/runs/<date>-<machine>.json.

a  shuffled token batches     b  indexing JSONL          c  JSON records at random
d  tokenise and pack          e  open, first batch, resume      f  memory
g  windows of time series, scaled     h  ten million series
i  documents in raw tokens       j  audio codes with prompts and masks
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import windrow as wr

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
DATA = pathlib.Path(os.environ.get("WINDROW_BENCH_DIR", ROOT / "target" / "bench-data"))
LIMITS = ROOT / "target" / "release" / "windrow-limits"
CORPUS = ROOT / "testdata" / "text" / "corpus.jsonl"
TINY = ROOT / "testdata" / "tokenizer" / "tiny4k" / "tokenizer.json"


def limit(*args):
    """Runs one command of windrow-limits."""
    out = subprocess.run([LIMITS, *map(str, args)], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def in_turns(passes, **measures):
    """Calls each measure `passes` times in turns and returns the medians."""
    found = {name: [] for name in measures}
    for _ in range(passes):
        for name, measure in measures.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}


def per_second(batches, seconds, rows):
    """Rows per second of an iterator of batches, the first few left out."""
    batches = iter(batches)
    for _ in range(3):
        next(batches)
    count, start = 0, time.perf_counter()
    while True:
        for _ in range(8):
            next(batches)
        count += 8
        elapsed = time.perf_counter() - start
        if elapsed > seconds:
            return count * rows / elapsed


def forever(make):
    while True:
        yield from make()


def table(title, found, base):
    """Prints each figure and its ratio to the one that `base` names."""
    print(f"\n{title}")
    for name, value in found.items():
        print(f"  {name:<44} {value:>14,.0f}   {value / found[base]:>7.3f} of {base}")
    sys.stdout.flush()
    return found


# ---------------------------------------------------------------- data


def tokens(n=500_000_000):
    path = DATA / "tokens_u16.bin"
    if not path.exists() or path.stat().st_size != 2 * n:
        rng = np.random.default_rng(0)
        with open(path, "wb") as out:
            for start in range(0, n, 10_000_000):
                out.write(rng.integers(0, 50_000, min(10_000_000, n - start), dtype=np.uint16).tobytes())
    warm(path)
    return path


def jsonl(size=1_000_000_000, name="docs.jsonl"):
    """About 1 KB a line, cut from the real corpus."""
    path = DATA / name.split(".")[0] / name
    if not path.exists() or abs(path.stat().st_size - size) > size // 10:
        path.parent.mkdir(exist_ok=True)
        lines = []
        for line in CORPUS.open(encoding="utf-8"):
            record = json.loads(line)
            text = record["text"]
            for i, start in enumerate(range(0, len(text), 900)):
                cut = {"id": f"{record['id']}/{i}", "text": text[start : start + 900], "lang": record.get("lang")}
                lines.append(json.dumps(cut, ensure_ascii=False).encode() + b"\n")
        block = b"".join(lines)
        with open(path, "wb") as out:
            for _ in range(max(1, size // len(block))):
                out.write(block)
    warm(path)
    return path


def warm(path):
    """Reads a file so that all find it in the page cache."""
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 24)
        while file.readinto(buffer):
            pass


# ---------------------------------------------------------------- a: shuffled token batches


def bench_a(passes, seconds):
    import torch

    path, batch = tokens(), 32
    result = {}
    for length in (1024, 2048):
        flat = np.memmap(path, dtype=np.uint16, mode="r")
        n = (len(flat) - 1) // length

        def windrow(threads, framework="numpy"):
            view = wr.open(path, format="tokens", dtype="uint16").pack(length)
            with wr.Loader(view, batch_size=batch, num_threads=threads, framework=framework) as loader:
                return per_second(loader, seconds, batch)

        def fancy(contiguous):
            # The strongest numpy there is: rows of one strided view, gathered at once, widened once.
            rows = np.lib.stride_tricks.as_strided(flat, (n, length + 1), (2 * length, 2))

            def epoch():
                order = np.random.default_rng(0).permutation(n)
                for i in range(0, n - batch + 1, batch):
                    block = rows[order[i : i + batch]].astype(np.int64)
                    inputs, labels = block[:, :-1], block[:, 1:]
                    if contiguous:
                        inputs, labels = np.ascontiguousarray(inputs), np.ascontiguousarray(labels)
                    yield {"input_ids": inputs, "labels": labels}

            return per_second(forever(epoch), seconds, batch)

        class Memmap(torch.utils.data.Dataset):
            def __init__(self):
                self.data = np.memmap(path, dtype=np.uint16, mode="r")

            def __len__(self):
                return n

            def __getitem__(self, i):
                block = torch.from_numpy(self.data[i * length : i * length + length + 1].astype(np.int64))
                return {"input_ids": block[:-1], "labels": block[1:]}

        def data_loader(data, workers):
            loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers, drop_last=True)
            return per_second(forever(lambda: loader), seconds, batch)

        def forager():
            from data_forager.datasets.tokens import TokensDataset

            base = DATA / f"forager{length}"
            if not (base / "index").exists():
                (base / "index").mkdir(parents=True)
                (base / "index" / "file_location.txt").write_text(f"../{path.name}\n")
                rows = np.zeros((n, 3), dtype=np.uint64)
                rows[:, 1] = np.arange(n, dtype=np.uint64) * (2 * length)
                rows[:, 2] = 2 * (length + 1)
                rows.tofile(base / "index" / "sample_locations.bin")
            data = TokensDataset.create_from_index_on_filesystem(str(base), token_dtype=np.uint16)

            def epoch():
                order = np.random.default_rng(0).permutation(n)
                for i in range(0, n - batch + 1, batch):
                    block = np.stack([data[int(k)] for k in order[i : i + batch]]).astype(np.int64)
                    yield {"input_ids": block[:, :-1], "labels": block[:, 1:]}

            return per_second(forever(epoch), seconds, batch)

        def rust(kind, threads):
            found = limit(kind, path, length, batch, threads, seconds)
            return found["samples"] / found["secs"]

        view = wr.open(path, format="tokens", dtype="uint16").pack(length)
        found = in_turns(
            passes,
            **{
                "limit: widen, 1 thread": lambda: rust("widen", 1),
                "windrow, 1 thread": lambda: windrow(1),
                "limit: widen, 2 threads": lambda: rust("widen", 2),
                "windrow, Rust, 2 threads": lambda: rust("batches", 2),
                "windrow, 2 threads": lambda: windrow(2),
                "windrow, 2 threads, torch tensors": lambda: windrow(2, "torch"),
                "numpy memmap, fancy index, contiguous": lambda: fancy(True),
                "numpy memmap, fancy index, views": lambda: fancy(False),
                "DataLoader over a memmap, 0 workers": lambda: data_loader(Memmap(), 0),
                "DataLoader over a memmap, 2 workers": lambda: data_loader(Memmap(), 2),
                "DataLoader over a windrow view, 0 workers": lambda: data_loader(view, 0),
                "DataLoader over a windrow view, 2 workers": lambda: data_loader(view, 2),
                "data-forager": forager,
                "limit: memcpy, 1 thread (u16 as they are)": lambda: rust("memcpy", 1),
            },
        )
        result[str(length)] = table(f"(a) samples/s, length {length}, batch {batch}", found, "windrow, 2 threads")
        print(f"  of the limit: 1 thread {found['windrow, 1 thread'] / found['limit: widen, 1 thread']:.3f},"
              f" 2 threads {found['windrow, 2 threads'] / found['limit: widen, 2 threads']:.3f}")
    return result


# ---------------------------------------------------------------- b: indexing


def bench_b(passes, seconds):
    path = jsonl()
    size = path.stat().st_size

    def windrow():
        start = time.perf_counter()
        wr.index(path.parent, overwrite=True)
        return size / (time.perf_counter() - start)

    def memchr():
        return size / limit("newlines", path)["secs"]

    def forager():
        import shutil

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


# ---------------------------------------------------------------- c: JSON records at random


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


# ---------------------------------------------------------------- d: tokenise and pack


def bench_d(passes, seconds):
    path = jsonl(400_000_000, "text.jsonl")
    result = {}
    for name in (str(TINY), "cl100k_base"):
        label = "tiny4k (tokenizer.json)" if name == str(TINY) else name

        def windrow():
            import shutil

            out = DATA / "packed"
            shutil.rmtree(out, ignore_errors=True)
            start = time.perf_counter()
            wr.tokenize([path], out, tokenizer=name, sample_size=1024, threads=2)
            return text_bytes / (time.perf_counter() - start)

        def bare():
            found = limit("encode", path, name, 2)
            return found["bytes"] / found["secs"]

        text_bytes = limit("encode", path, name, 2)["bytes"]
        found = in_turns(passes, **{"limit: bare tokenizer, 2 threads": bare, "windrow tokenize, 2 threads": windrow})
        result[label] = table(f"(d) bytes of text/s, {label}", found, "limit: bare tokenizer, 2 threads")
    return result


# ---------------------------------------------------------------- e: open, first batch, resume

FIRST_BATCH = """
import sys, time
import numpy
import windrow as wr
start = time.perf_counter()
data = wr.open(sys.argv[1], dtype="uint16")
loader = wr.Loader(data.records(64), batch_size=4, num_threads=1)
state = int(sys.argv[2])
if state:
    s = loader.state_dict(); s["samples"] = 4 * state; loader.load_state_dict(s)
next(iter(loader))
secs = time.perf_counter() - start
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
# The peak of this process alone; what getrusage gives begins with the parent's.
print(secs, int(status["VmHWM"].split()[0]) * 1024)
"""


def sparse_index(n):
    """An index of n samples of 128 bytes: one real gigabyte-sized hole of tokens, rows that are all valid."""
    base = DATA / f"sparse{n}"
    if not (base / "index" / "sample_locations.bin").exists():
        (base / "index").mkdir(parents=True, exist_ok=True)
        (base / "index" / "file_location.txt").write_text("t.bin\n")
        with open(base / "t.bin", "wb") as out:
            out.truncate(1 << 30)
        # Rows are holes too: file 0, byte 0, size 0, an empty sample, which is what a sparse index can say.
        with open(base / "index" / "sample_locations.bin", "wb") as out:
            out.truncate(24 * n)
    return base


def first_batch(n, step=0):
    out = subprocess.run([sys.executable, "-c", FIRST_BATCH, str(sparse_index(n)), str(step)], check=True, capture_output=True, text=True)
    secs, rss = map(float, out.stdout.split())
    return secs, rss


def bench_e(passes, seconds):
    found = in_turns(
        max(passes, 5),
        **{
            "open + first batch, 1e6 samples": lambda: first_batch(10**6)[0] * 1e6,
            "open + first batch, 1e9 samples": lambda: first_batch(10**9)[0] * 1e6,
            "resume at step 1e5, 1e9 samples": lambda: first_batch(10**9, 10**5)[0] * 1e6,
        },
    )
    return table("(e) microseconds", found, "open + first batch, 1e6 samples")


# ---------------------------------------------------------------- f: memory


def bench_f(passes, seconds):
    found = in_turns(
        passes,
        **{
            "peak resident bytes, 1e6 samples": lambda: first_batch(10**6)[1],
            "peak resident bytes, 1e9 samples": lambda: first_batch(10**9)[1],
        },
    )
    return table("(f) bytes", found, "peak resident bytes, 1e6 samples")


# ---------------------------------------------------------------- g: windows of time series


def shards(n_series=20_000, length=5_000):
    """Random walks in one shard folder: 1e8 float32 points."""
    out = DATA / "shards"
    if not (out / "meta.json").exists():
        rng = np.random.default_rng(0)
        wr.write_shards(out, (rng.normal(size=length).cumsum().astype(np.float32) for _ in range(n_series)), durable=False)
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


# ---------------------------------------------------------------- h: many series

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


# ---------------------------------------------------------------- i: documents in raw tokens


def documents(dtype, eos, size=1_000_000_000):
    """Ids in documents of about a thousand, without the byte 0xf5: memchr then finds nothing and is at its fastest."""
    path = DATA / f"documents_{dtype}.bin"
    if not path.exists():
        rng = np.random.default_rng(0)
        width = np.dtype(dtype).itemsize
        with open(path.with_suffix(".tmp"), "wb") as out:
            for _ in range(size // width // 10_000_000):
                bytes_ = rng.integers(0, 240, (10_000_000, width), dtype=np.uint8)
                bytes_[:, 2:] = 0
                ids = bytes_.reshape(-1).view(dtype)
                ids[ids == eos] = 1
                ids[rng.integers(0, 10_000_000, 10_000)] = eos
                out.write(ids.tobytes())
        path.with_suffix(".tmp").rename(path)
    warm(path)
    return path


def bench_i(passes, seconds):
    result = {}
    for dtype in ["uint8", "uint16", "uint32"]:
        path, eos = documents(dtype, 7), 7

        def first(path=path, dtype=dtype, eos=eos):
            with tempfile.TemporaryDirectory(dir=DATA) as cache:
                os.environ["WINDROW_CACHE"] = cache
                done = limit("documents", path, dtype, eos)
                again = limit("documents", path, dtype, eos)
            del os.environ["WINDROW_CACHE"]
            opened_again.append(again["secs"])
            return done["bytes"] / done["secs"]

        def memchr(threads, path=path):
            done = limit("bytes", path, 0xF5, threads)
            assert done["found"] == 0
            return done["bytes"] / done["secs"]

        opened_again = []
        found = in_turns(
            passes,
            **{
                "memchr, 1 thread": lambda: memchr(1),
                "memchr, all threads": lambda: memchr(os.cpu_count()),
                "windrow, first open, all threads": first,
            },
        )
        result[dtype] = table(f"(i) bytes/s of {dtype} ids cut into documents", found, "memchr, all threads")
        result[dtype]["milliseconds, later opens"] = statistics.median(opened_again) * 1e3
        print(f"  later opens: {result[dtype]['milliseconds, later opens']:.2f} ms")
    return result


# ---------------------------------------------------------------- j: audio codes


def tracks(n=2_000):
    """Pre-encoded tracks of about 1,500 frames by torch, and the same as shards."""
    import torch

    folder, shards = DATA / "tracks", DATA / "track-shards"
    if not (folder / "metadata.json").exists():
        (folder / "encoded_audio").mkdir(parents=True, exist_ok=True)
        generator = torch.Generator().manual_seed(0)
        told = {}
        for i in range(n):
            frames = int(torch.randint(1_200, 1_800, (), generator=generator))
            codes = torch.randint(0, 1024, (frames, 18), generator=generator).to(torch.int16)
            torch.save(codes, folder / "encoded_audio" / f"track{i}.pt")
            told[f"track{i}.pt"] = {"text": ", ".join(f"tag {i % k}" for k in range(2, 22))}
        (folder / "metadata.json").write_text(json.dumps(told))
    if not shards.exists():
        wr.convert(folder, shards, to="shards")
    for path in [*(folder / "encoded_audio").iterdir(), *shards.iterdir()]:
        warm(path)
    return folder, shards


def bench_j(passes, seconds):
    import torch

    folder, shards = tracks()
    length, text_length, batch = 600, 512, 16
    delays = torch.tensor([*range(9), *range(9)])

    def windrow(path, threads, masks):
        view = wr.open(path).codes(length, text_length=text_length, masks=masks)
        with wr.Loader(view, batch_size=batch, num_threads=threads) as loader:
            return per_second(loader, seconds, batch)

    def size(masks):
        with wr.Loader(wr.open(shards).codes(length, masks=masks), batch_size=batch) as loader:
            return sum(array.nbytes for array in next(loader).values())

    def fill(masks, threads):
        found = limit("fill", size(masks), threads, seconds)
        return found["batches"] * batch / found["secs"]

    class Loaded(torch.utils.data.Dataset):
        # What the document describes: torch.load of the whole track, a random crop.
        def __init__(self):
            self.files = sorted((folder / "encoded_audio").glob("*.pt"))
            self.told = json.loads((folder / "metadata.json").read_text())

        def __len__(self):
            return len(self.files)

        def __getitem__(self, i):
            codes = torch.load(self.files[i], weights_only=True)
            start = int(torch.randint(0, len(codes) - length + 1, ()))
            return self.told[self.files[i].name]["text"], codes[start : start + length].long()

    def collate(items, dense=True):
        longest = max(len(codes) for _, codes in items)
        src = torch.zeros(len(items), text_length, dtype=torch.long)
        codes = torch.full((len(items), longest, 18), 1025)
        lens = torch.tensor([len(c) for _, c in items])
        for row, (text, own) in enumerate(items):
            text = text.encode()[:text_length]
            src[row, : len(text)] = torch.tensor(list(text))
            codes[row, : len(own)] = own
        at = torch.arange(longest)[:, None] - delays
        delayed = torch.where(at < 0, 1026, codes[:, at.clamp(min=0), torch.arange(18)])
        tgt = torch.full((len(items), longest + 2, 18), 1025)
        tgt[:, 0] = 1026
        for row, n in enumerate(lens.tolist()):
            tgt[row, 1 : n + 1] = delayed[row, :n]
            tgt[row, n + 1] = 1024
        laid = {
            "src_tokens": src,
            "src_positions": torch.arange(text_length).expand(len(items), -1).contiguous(),
            "tgt_tokens": tgt,
            "tgt_positions": torch.arange(longest + 2).expand(len(items), -1).contiguous(),
            "seq_lens": lens,
            "tgt_lens": lens + 2,
        }
        if dense:
            text, frames = src != 0, (tgt != 1025).any(-1)
            causal = torch.ones(longest + 2, longest + 2, dtype=torch.bool).tril()
            laid["enc_self_attn_mask"] = (text[:, :, None] & text[:, None, :])[:, None]
            laid["dec_self_attn_mask"] = (frames[:, :, None] & frames[:, None, :] & causal)[:, None]
            laid["dec_cross_attn_mask"] = (frames[:, :, None] & text[:, None, :])[:, None]
        return laid

    def data_loader(workers):
        loader = torch.utils.data.DataLoader(
            Loaded(), batch_size=batch, shuffle=True, num_workers=workers, drop_last=True, collate_fn=collate
        )
        return per_second(forever(lambda: loader), seconds, batch)

    def opened(path):
        start = time.perf_counter()
        wr.open(path)
        return 1 / (time.perf_counter() - start)

    found = in_turns(
        passes,
        **{
            "torch.load and collate, 0 workers": lambda: data_loader(0),
            "torch.load and collate, 2 workers": lambda: data_loader(2),
            "windrow, dense, 1 thread": lambda: windrow(folder, 1, "dense"),
            "windrow, dense, 2 threads": lambda: windrow(folder, 2, "dense"),
            "windrow, lengths, 1 thread": lambda: windrow(folder, 1, "lengths"),
            "windrow, lengths, 2 threads": lambda: windrow(folder, 2, "lengths"),
            "shards, dense, 2 threads": lambda: windrow(shards, 2, "dense"),
            "limit: write as much, dense, 2 threads": lambda: fill("dense", 2),
            "shards, lengths, 2 threads": lambda: windrow(shards, 2, "lengths"),
            "limit: write as much, lengths, 2 threads": lambda: fill("lengths", 2),
        },
    )
    opening = in_turns(passes, folder=lambda: opened(folder), shards=lambda: opened(shards))
    result = table("(j) tracks/s, crops of 600 of 1,500 frames, batch 16", found, "torch.load and collate, 0 workers")
    for name, per_sec in opening.items():
        result[f"milliseconds to open the {name}"] = 1e3 / per_sec
        print(f"  opening the {name}: {1e3 / per_sec:.1f} ms")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", choices=[*"abcdefghij", []], metavar="a…j")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    args = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    run = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "windrow": wr.__version__,
        "python": platform.python_version(),
        "passes": args.passes,
    }
    for letter in args.which or "abcdefghij":
        run[letter] = globals()[f"bench_{letter}"](args.passes, args.seconds)
    runs = HERE / "runs"
    runs.mkdir(exist_ok=True)
    name = f"{run['date']}-{platform.machine()}-{os.cpu_count()}cores-{''.join(args.which) or 'all'}.json"
    (runs / name).write_text(json.dumps(run, indent=2) + "\n")
    print(f"\nkept in benches/runs/{name}")


if __name__ == "__main__":
    main()
