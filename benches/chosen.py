"""x: chosen records: a comparison over a column of Parquet, a mask over 10⁹ rows, batches of a tenth of them."""

import importlib.util
import os
import shutil

import numpy as np
import polars

import windrow as wr
from measure import DATA, in_turns, limit, per_second, processor_secs, spent, table, times, warm

ROWS, RECORDS, DOCUMENTS = 100_000_000, 1_000_000_000, 100_000_000
LENGTH, THREADS = 2048, 2


def scores():
    """Rows in Parquet with a score each, and the scores."""
    path, drawn = DATA / f"scores-{ROWS}.parquet", np.random.default_rng(0).random(ROWS, np.float32)
    if not path.exists():
        languages = np.random.default_rng(1).integers(0, 100, ROWS, np.int16)
        polars.DataFrame({"score": drawn, "lang": languages}).write_parquet(path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)
    warm(path)
    return path, drawn


def comparisons(passes):
    """A comparison over a column, beside plain reads of it."""
    path, drawn = scores()
    cache = DATA / "chosen-cache"
    os.environ["WINDROW_CACHE"] = str(cache)
    dataset = wr.open(path)
    assert np.array_equal(dataset.where("score", ">=", 0.9).numbers, np.flatnonzero(drawn.astype(np.float64) >= 0.9))

    def first():
        shutil.rmtree(cache)
        return spent(lambda: dataset.where("score", ">=", 0.9))

    measures = {
        "polars reads the column": lambda: spent(lambda: polars.read_parquet(path, columns=["score"])),
        "windrow, where": first,
        "windrow, where, the second time": lambda: spent(lambda: dataset.where("score", ">=", 0.9)),
        "windrow, opened and where, the second time": lambda: spent(lambda: wr.open(path).where("score", ">=", 0.9)),
    }
    if importlib.util.find_spec("pyarrow"):
        from pyarrow import parquet

        measures["pyarrow reads the column"] = lambda: spent(lambda: parquet.read_table(path, columns=["score"]))
    else:
        print("\n(x) pyarrow is not installed: python -m pip install -r benches/requirements.txt")
    result = times(f"(x) ms of `where` over {ROWS:,} rows of Parquet", passes, measures)
    shutil.rmtree(cache)
    del os.environ["WINDROW_CACHE"]
    return result


def rows(passes, seconds):
    """A tenth of 10⁹ rows of two numbers, and batches of it beside batches of all."""
    path = DATA / "rows.npy"
    # Of zeros, which take no room on disk: what a row holds decides nothing here.
    np.lib.format.open_memmap(path, "w+", np.int8, (RECORDS, 2)).flush()
    try:
        warm(path)
        dataset = wr.open(path)
        rng = np.random.default_rng(2)
        mask = np.concatenate([rng.random(RECORDS // 100, np.float32) < 0.1 for _ in range(100)])
        chosen = times(f"(x) ms to choose of {RECORDS:,} rows", passes, {"windrow, select by a mask": lambda: spent(lambda: dataset.select(mask))})
        some = dataset.select(mask)
        assert len(some) == mask.sum()
        del mask

        def rate(view, batch):
            with wr.Loader(view, batch_size=batch, num_threads=THREADS) as loader:
                return per_second(loader.stream(), seconds, batch, processor_secs)

        result = {"select": chosen}
        for name, view, batch in [
            ("pack", lambda ds: ds.pack(LENGTH), 32),
            ("records", lambda ds: ds.records(2, labels=None), 4096),
        ]:
            of_all, of_some = view(dataset), view(some)
            measures = {"all": lambda: rate(of_all, batch), "chosen": lambda: rate(of_some, batch)}
            result[name] = table(f"(x) {name}, rows a second of processors", in_turns(passes, **measures), "all")
        return result
    finally:
        path.unlink()


def bench_x(passes, seconds):
    result = {"where": comparisons(passes), "rows": rows(passes, seconds)}
    result["documents"] = limit("chosen", DOCUMENTS, LENGTH, THREADS, seconds, passes)
    print(f"\n(x) {DOCUMENTS:,} documents, rows a second of processors: {result['documents']}")
    return result
