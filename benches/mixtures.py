"""q: packs of documents. r: a mixture of many parts in many phases."""

import time

import numpy as np

import windrow as wr
from measure import DATA, in_turns, limit, per_second, table, warm

LENGTH, BATCH, DOCUMENT, EOS = 1024, 32, 512, 0
PARTS, PHASES = 100, 10


def documents(n=100_000_000):
    """Documents of 1 to 1,023 tokens, each ending with EOS."""
    path = DATA / "documents_u16.bin"
    if not path.exists() or path.stat().st_size != 2 * n:
        rng = np.random.default_rng(0)
        ids = rng.integers(1, 50_000, n, dtype=np.uint16)
        ends = np.cumsum(rng.integers(1, 2 * DOCUMENT, 2 * n // DOCUMENT))
        ids[ends[ends < n] - 1] = EOS
        ids.tofile(path)
    warm(path)
    return path


def bench_q(passes, seconds):
    path = documents()
    result = {}

    def windrow(threads, **options):
        view = wr.open(path, format="tokens", dtype="uint16").pack(LENGTH, **options)
        with wr.Loader(view, batch_size=BATCH, num_threads=threads) as loader:
            return per_second(loader.stream(), seconds, BATCH)

    def by_records(threads):
        view = wr.open(path, format="tokens", dtype="uint16", document_eos=EOS).pack(LENGTH, documents=True)
        with wr.Loader(view, batch_size=BATCH, num_threads=threads) as loader:
            return per_second(loader.stream(), seconds, BATCH)

    def rust(kind, *arguments):
        found = limit(kind, path, LENGTH, BATCH, *arguments, seconds)
        return found["samples"] / found["secs"]

    for threads in (1, 2):
        found = in_turns(
            passes,
            **{
                "limit: the same bytes": lambda: rust("packs", DOCUMENT, threads),
                "windrow, documents end with EOS": lambda: windrow(threads, documents=True, eos=EOS),
                "windrow, documents are records": lambda: by_records(threads),
                "limit: widen": lambda: rust("widen", threads),
                "windrow, plain pack": lambda: windrow(threads),
            },
        )
        title = f"(q) samples/s, length {LENGTH}, batch {BATCH}, {threads} threads"
        result[str(threads)] = table(title, found, "limit: the same bytes")
        print(f"  plain pack of its limit: {found['windrow, plain pack'] / found['limit: widen']:.3f}")
    return result


def bench_r(passes, seconds):
    whole = documents()
    folder = DATA / "parts"
    folder.mkdir(exist_ok=True)
    ids = np.memmap(whole, dtype=np.uint16, mode="r")
    paths = [folder / f"part{number:02}.bin" for number in range(PARTS)]
    for path, part in zip(paths, np.array_split(ids, PARTS), strict=True):
        if not path.exists():
            part.tofile(path)
        warm(path)
    rng = np.random.default_rng(1)
    weights = {path.stem: float(rng.uniform(0.5, 2)) for path in paths}
    phases = [(0, weights)] + [(10_000 * n, {name: float(rng.uniform(0, 2)) for name in weights}) for n in range(1, PHASES)]
    views = {path.stem: wr.open(path, dtype="uint16").pack(LENGTH) for path in paths}

    def mixed(batches=None):
        # Phases of batches of one part begin with a batch.
        starts = [(start // BATCH * BATCH, shares) for start, shares in phases] if batches else phases
        return wr.mix({name: (view, weights[name]) for name, view in views.items()}, phases=starts, stop="never", batches=batches)

    def mixture(threads, batches=None):
        with wr.Loader(mixed(batches), batch_size=BATCH, num_threads=threads) as loader:
            return per_second(loader.stream(), seconds, BATCH)

    def one(threads):
        with wr.Loader(wr.open(whole, dtype="uint16").pack(LENGTH), batch_size=BATCH, num_threads=threads) as loader:
            return per_second(loader.stream(), seconds, BATCH)

    result = {}
    for threads in (1, 2):
        found = in_turns(
            passes,
            **{
                "one view": lambda: one(threads),
                "100 parts, 10 phases": lambda: mixture(threads),
                "batches of one part each": lambda: mixture(threads, "part"),
            },
        )
        result[str(threads)] = table(f"(r) samples/s, length {LENGTH}, batch {BATCH}, {threads} threads", found, "one view")
    times = []
    for _ in range(passes):
        start = time.perf_counter()
        wr.Loader(mixed(), batch_size=BATCH).state_dict()
        times.append(1000 * (time.perf_counter() - start))
    result["milliseconds to mix and open"] = sorted(times)[passes // 2]
    print(f"  to mix, make the loader and its state: {result['milliseconds to mix and open']:.1f} ms")
    return result
