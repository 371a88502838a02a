"""e: open, first batch, resume, and f: their memory."""

import subprocess
import sys

from measure import DATA, in_turns, table


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


def bench_f(passes, seconds):
    found = in_turns(
        passes,
        **{
            "peak resident bytes, 1e6 samples": lambda: first_batch(10**6)[1],
            "peak resident bytes, 1e9 samples": lambda: first_batch(10**9)[1],
        },
    )
    return table("(f) bytes", found, "peak resident bytes, 1e6 samples")
