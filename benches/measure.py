"""How things are measured: in turns, as ratios."""

import importlib.metadata
import json
import multiprocessing
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


def versions(*packages):
    """Of the installed packages among these."""
    installed = {package.metadata["Name"]: package.version for package in importlib.metadata.distributions()}
    return {name: installed[name] for name in packages if name in installed}


def in_turns(passes, **measures):
    """Calls each measure `passes` times in turns and returns the medians."""
    found = {name: [] for name in measures}
    for _ in range(passes):
        for name, measure in measures.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}


def per_second(batches, seconds, rows, clock=time.perf_counter):
    """Rows per second of an iterator of batches, the first few left out; the seconds are those of `clock`."""
    batches = iter(batches)
    for _ in range(3):
        next(batches)
    count, start, since = 0, time.perf_counter(), clock()
    while True:
        for _ in range(8):
            next(batches)
        count += 8
        if time.perf_counter() - start > seconds:
            return count * rows / (clock() - since)


def processor_secs():
    """Processor time of this process and of those it started that still run."""
    secs = time.process_time()
    for child in multiprocessing.active_children():
        with open(f"/proc/{child.pid}/stat") as stat:
            # Behind the name, which may have spaces: times are fields 14 and 15.
            user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
        secs += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return secs


def spent(work):
    """Seconds of the clock and of processors that a call takes."""
    start, processor = time.perf_counter(), processor_secs()
    work()
    return time.perf_counter() - start, processor_secs() - processor


def times(title, passes, measures):
    """Prints and returns medians of the clock and of processors, in ms, of measures that return both in seconds."""
    found = {name: [] for name in measures}
    for _ in range(passes):
        for name, measure in measures.items():
            found[name].append(measure())
    print(f"\n{title}")
    result = {}
    for name, pairs in found.items():
        clock, processor = (1000 * statistics.median(secs) for secs in zip(*pairs, strict=True))
        print(f"  {name:<44} {clock:>10.0f} ms {processor:>10.0f} ms of processors", flush=True)
        result[name] = {"ms": clock, "processor ms": processor}
    return result


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
