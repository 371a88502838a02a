"""w: 35 domains, read by one rank of 64: threads, files and memory that a loader takes, and processor time of a row."""

import collections
import json
import os
import statistics
import subprocess
import sys
import time

import grain
import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter

import windrow as wr
from measure import DATA, versions, warm

DOMAINS, DOCUMENTS, WIDTH, SHARDS = 35, 500, 1025, 4
RANKS, BATCH, SEED = 64, 16, 1
# As MaxText's configuration has them: of each domain, or of the mixture.
READ = grain.ReadOptions(num_threads=16, prefetch_buffer_size=500)
ALONE = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
FIRST, MEASURED, CHECKED = 100, 300, 200
FOLDER = DATA / f"domains-{DOMAINS}"


def weights():
    """Shares of the domains by Zipf's law."""
    parts = 1 / np.arange(1, DOMAINS + 1)
    return (parts / parts.sum()).tolist()


def documents():
    """Token IDs of all domains, [domains, documents, tokens], the same in every run."""
    return np.random.default_rng(0).integers(0, 50_000, (DOMAINS, DOCUMENTS, WIDTH), np.uint16)


def shards(domain):
    return [FOLDER / f"{domain:02}.array_record-{shard:05}-of-{SHARDS:05}" for shard in range(SHARDS)]


def store():
    """Writes each domain as a token file, and by ArrayRecord's own writer."""
    if not FOLDER.exists():
        made = FOLDER.with_suffix(".tmp")
        made.mkdir(exist_ok=True)
        for domain, of_domain in enumerate(documents()):
            of_domain.tofile(made / f"{domain:02}.bin")
            for path, part in zip(shards(domain), np.split(of_domain, SHARDS), strict=True):
                writer = ArrayRecordWriter(str(made / path.name), "group_size:1")
                for document in part:
                    writer.write(document.tobytes())
                writer.close()
        made.rename(FOLDER)
    for path in FOLDER.iterdir():
        warm(path)


def windrow(views, ranks, **options):
    parts = {f"domain{domain:02}": (view, share) for domain, (view, share) in enumerate(zip(views, weights(), strict=True))}
    mixture = wr.mix(parts, stop="never")
    return wr.Loader(mixture, global_batch_size=ranks * BATCH, rank=0, world_size=ranks, seed=SEED, **options).stream()


def from_tokens(ranks):
    return windrow((wr.open(FOLDER / f"{domain:02}.bin", dtype="uint16").pack(WIDTH - 1) for domain in range(DOMAINS)), ranks)


def array(record):
    return np.frombuffer(record, np.uint16)


def from_records(ranks):
    views = (wr.open(shards(domain)).rows() for domain in range(DOMAINS))
    return windrow(views, ranks, collate=lambda rows: np.stack([array(row) for row in rows]))


def sources(ranks):
    """What the first rank reads of each domain, shuffled and repeated, as Grain has it."""
    for domain in range(DOMAINS):
        source = grain.sources.ArrayRecordDataSource([str(path) for path in shards(domain)])
        yield grain.MapDataset.source(source).shuffle(seed=SEED).repeat()[0::ranks]


def each_read(ranks, options=READ):
    """An iterator of each domain, then their mixture: what MaxText does."""
    parts = [part.to_iter_dataset(options) for part in sources(ranks)]
    return iter(grain.IterDataset.mix(parts, weights()).map(array).batch(BATCH))


def mixed_first(ranks):
    """The mixture, then one iterator of it: what a pull request to MaxText proposes."""
    return iter(grain.MapDataset.mix([*sources(ranks)], weights()).map(array).to_iter_dataset(READ).batch(BATCH))


LOADERS = {
    "windrow, token files": from_tokens,
    "windrow, ArrayRecord": from_records,
    "Grain, an iterator of each domain, 16 threads": each_read,
    "Grain, an iterator of each domain, 0 threads": lambda ranks: each_read(ranks, ALONE),
    "Grain, one iterator, 16 threads": mixed_first,
}


def rows(batch):
    """The documents of a batch; windrow's packed rows hold theirs as inputs and labels."""
    if isinstance(batch, dict):
        return np.concatenate([batch["input_ids"], batch["labels"][:, -1:]], axis=1).astype(np.uint16)
    return batch


def check(name):
    """Every row is one that its domain holds, and the domains have their shares, before anything is timed."""
    domain_of = {}
    for domain, of_domain in enumerate(documents()):
        stream = of_domain.reshape(-1)
        packed = (stream[first : first + WIDTH] for first in range(0, stream.size - WIDTH + 1, WIDTH - 1))
        domain_of |= dict.fromkeys((row.tobytes() for row in [*of_domain, *packed]), domain)
    of_the_rank = LOADERS[name](RANKS)
    assert all(row.tobytes() in domain_of for _ in range(CHECKED) for row in rows(next(of_the_rank))), name
    # What a rank has of a step is any part of it: shares are those of all ranks together.
    of_all = LOADERS[name](1)
    found = collections.Counter(domain_of[row.tobytes()] for _ in range(CHECKED) for row in rows(next(of_all)))
    for domain, share in enumerate(weights()):
        expected = CHECKED * BATCH * share
        assert abs(found[domain] - expected) <= 3, (name, domain, found[domain], expected)


def taken():
    """What this process has of the machine."""
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    with open("/proc/self/maps") as file:
        maps = sum(1 for _ in file)
    files = len(os.listdir("/proc/self/fd"))
    mebibytes = {name: int(status[key].split()[0]) / 1024 for name, key in [("MiB", "VmRSS"), ("MiB, not of files", "RssAnon")]}
    return {"threads": int(status["Threads"]), "open files": files, "memory maps": maps, **mebibytes}


def rest():
    """Waits until all read ahead is there: nothing works in the background any more."""
    before, quiet = time.process_time(), 0
    for _ in range(600):
        time.sleep(0.2)
        now = time.process_time()
        quiet = quiet + 1 if now - before < 0.004 else 0
        if quiet == 3:
            return
        before = now
    raise TimeoutError("the loader works on although nothing is asked for")


def measure(name):
    before, start, processor = taken(), time.perf_counter(), time.process_time()
    batches = LOADERS[name](RANKS)
    next(batches)
    found = {"first batch, seconds": time.perf_counter() - start, "first batch, processor seconds": time.process_time() - processor}
    for _ in range(FIRST):
        next(batches)
    rest()
    processor = time.process_time()
    for _ in range(MEASURED):
        next(batches)
    rest()
    found["processor µs a row"] = 1e6 * (time.process_time() - processor) / (MEASURED * BATCH)
    return {what: n - before[what] for what, n in taken().items()} | found


def alone(what, name):
    """Runs one loader in a process of its own."""
    out = subprocess.run([sys.executable, __file__, what, name], check=True, capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def bench_w(passes, seconds):
    store()
    for name in LOADERS:
        alone("check", name)
    turns = {name: [] for name in LOADERS}
    for _ in range(passes):
        for name, found in turns.items():
            found.append(alone("measure", name))
    result = {"versions": versions("grain", "array_record")}
    print(f"\n(w) {DOMAINS} domains, rank 0 of {RANKS}, {BATCH} rows a batch: what a loader adds to its process")
    for name, found in turns.items():
        result[name] = {what: statistics.median(turn[what] for turn in found) for what in found[0]}
        print(f"  {name}\n    " + ", ".join(f"{what}: {n:.4g}" for what, n in result[name].items()))
    return result


if __name__ == "__main__":
    done = {"check": check, "measure": measure}[sys.argv[1]](sys.argv[2])
    print(json.dumps(done))
    sys.stdout.flush()
    # Threads of a loader that reads ahead without end are not waited for.
    os._exit(0)
