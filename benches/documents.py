"""i: documents in raw tokens."""

import os
import statistics
import tempfile

import numpy as np

from measure import DATA, in_turns, limit, table, warm


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
