"""How things are measured: in turns, as ratios."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

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


def warm(path):
    """Reads a file so that all find it in the page cache."""
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 24)
        while file.readinto(buffer):
            pass
