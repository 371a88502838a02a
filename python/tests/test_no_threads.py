"""Where the system gives no more threads, reading does without them; what cannot says so. Nothing hangs or panics."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SOURCE = Path(__file__).with_name("no_threads.c")

# Run by a process that has `no_threads.c` loaded: each act with threads and without them.
PROGRAM = """
import ctypes, os, pathlib, shutil, sys
import numpy as np
import windrow as wr

threads = ctypes.CDLL(None)
folder = pathlib.Path(sys.argv[1])
os.sched_setaffinity(0, range(os.cpu_count()))

lines = "".join('{"text": "%s", "n": %d}\\n' % ("word " * 40, i) for i in range(200_000))
(folder / "lines").mkdir()
(folder / "lines/a.jsonl").write_text(lines)
rng = np.random.default_rng(0)
rng.integers(0, 1000, 3_000_000, dtype=np.uint16).tofile(folder / "ids.bin")
(folder / "series").mkdir()
for i in range(3000):
    np.save(folder / f"series/{i:04}.npy", np.arange(i % 7 + 8, dtype=np.float32))


def jsonl():
    data = wr.open(folder / "lines/a.jsonl")
    return len(data), data[199_999]["n"]


def documents():
    data = wr.open(folder / "ids.bin", dtype="uint16", document_eos=7)
    return len(data), int(data[1000].sum())


def vocabulary():
    with_threads = wr.open(folder / "ids.bin", dtype="uint16", vocab_size=1000)
    try:
        wr.open(folder / "ids.bin", dtype="uint16", vocab_size=999)
    except wr.errors.CorruptError as e:
        return len(with_threads), str(e)


def series():
    view = wr.open(folder / "series").windows(4, stride=4, scaler="max")
    return len(view), {name: values.tolist() for name, values in view[5].items()}


def tracks():
    data = wr.open(folder / "codes")
    return len(data), [int(data[i].sum()) for i in range(len(data))]


def index():
    return wr.index(folder / "lines", overwrite=True)["records"]


for act in (jsonl, documents, vocabulary, series, tracks, index):
    threads.no_threads_arm(1)
    found = act()
    asked = threads.no_threads_refused()
    threads.no_threads_arm(0)
    shutil.rmtree(os.environ["WINDROW_CACHE"], ignore_errors=True)
    assert found == act(), act
    assert asked > 0, act


def loader():
    return next(iter(wr.open(folder / "ids.bin", dtype="uint16").pack(64).loader(8, num_threads=2)))


def tokenize():
    wr.tokenize(folder / "lines", folder / "tokens", tokenizer="bytes", sample_size=64)


for act in (loader, tokenize):
    threads.no_threads_arm(1)
    try:
        act()
    except OSError as e:
        assert "cannot start a thread" in str(e) and "ulimit -u" in str(e), e
    else:
        raise AssertionError(act)
    threads.no_threads_arm(0)
    act()
print("done")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("library") / "no_threads.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


def test_without_threads(tmp_path: Path, library: Path) -> None:
    (tmp_path / "codes").mkdir()
    for i in range(100):
        torch.save(torch.arange(9 * (i % 5 + 1)).reshape(-1, 9), tmp_path / f"codes/{i:03}.pt")
    environment = os.environ | {"LD_PRELOAD": str(library), "WINDROW_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    assert "panicked" not in done.stderr
    assert done.stdout.splitlines()[-1] == "done"
