"""Files that another program cuts short while they are mapped: an error, never the end of the process, never other data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

VALUES = 400_000


def raw(path: Path) -> wr.Dataset:
    np.arange(VALUES, dtype=np.uint32).tofile(path)
    return wr.open(path, dtype="uint32")


def npy(path: Path) -> wr.Dataset:
    np.save(path, np.arange(VALUES).reshape(-1, 1000))
    return wr.open(path)


def npz(path: Path) -> wr.Dataset:
    np.savez(path, a=np.arange(VALUES // 2), b=np.arange(VALUES // 2, VALUES))
    return wr.open(path)


FILES: dict[str, Callable[[Path], wr.Dataset]] = {"ids.bin": raw, "rows.npy": npy, "two.npz": npz}


def cut(path: Path) -> None:
    os.truncate(path, 5000)


def fails(path: Path, act: Callable[[], Any]) -> None:
    with pytest.raises(wr.StaleError, match="became shorter while it was read") as caught:
        act()
    assert caught.value.path == str(path)
    assert caught.value.byte is not None
    assert "by rename" in (caught.value.hint or "")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("threads", [0, 3])
def test_a_loader_says_it(tmp_path: Path, name: str, threads: int) -> None:
    view = FILES[name](tmp_path / name).windows(100)
    loader = view.loader(4, seed=1, num_threads=threads, epochs=1)
    first = next(loader)
    values = first["input_ids"].copy()
    cut(tmp_path / name)
    fails(tmp_path / name, lambda: list(loader))
    assert np.array_equal(first["input_ids"], values)


@pytest.mark.parametrize("name", FILES)
def test_samples_and_records_say_it(tmp_path: Path, name: str) -> None:
    data = FILES[name](tmp_path / name)
    view, last = data.windows(100), len(data) - 1
    assert view[0]["input_ids"][5] == data[0][5] == 5
    cut(tmp_path / name)
    # The end of the file lies in this one: in its page, zeros follow.
    fails(tmp_path / name, lambda: view[12])
    fails(tmp_path / name, lambda: view[len(view) - 1])
    for act in (data.bytes, data.__getitem__, lambda i: data.windows(100, scaler="zero")[0]):
        fails(tmp_path / name, lambda act=act: act(last))
    # What is still there is not given either: nobody knows what it is by now.
    fails(tmp_path / name, lambda: data[0])


def test_other_data_is_not_concerned(tmp_path: Path) -> None:
    torn, whole = raw(tmp_path / "torn.bin").pack(100), raw(tmp_path / "whole.bin").pack(100)
    mixed = wr.mix({"torn": (torn, 0.5), "whole": (whole, 0.5)}, stop="never")
    loader = whole.loader(4, shuffle=False)
    next(loader)
    cut(tmp_path / "torn.bin")
    fails(tmp_path / "torn.bin", lambda: [next(mixed.loader(8)) for _ in range(5)])
    assert next(loader)["input_ids"][0, 0] == 400
    assert whole[30]["input_ids"][0] == 3000


WORKERS = """
    import os, sys
    import numpy as np
    import torch
    import windrow as wr

    def main():
        np.arange(400_000, dtype=np.uint32).tofile(sys.argv[1])
        view = wr.open(sys.argv[1], dtype="uint32").pack(100)
        batches = iter(torch.utils.data.DataLoader(
            view, batch_size=8, num_workers=2, shuffle=True, multiprocessing_context=sys.argv[2], timeout=60
        ))
        # One from each worker.
        next(batches), next(batches)
        os.truncate(sys.argv[1], 5000)
        try:
            list(batches)
        except wr.StaleError as e:
            print("became shorter" in str(e), sys.argv[1] in str(e))

    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_workers_of_a_dataloader_say_it(tmp_path: Path, run_script: Callable[..., str], start: str) -> None:
    # Torch takes the signal for itself in each worker.
    assert run_script(WORKERS, tmp_path / "ids.bin", start, limit=240) == "True True\n"


SIGNALS = """
    import faulthandler, mmap, os, signal, subprocess, sys
    import numpy as np
    import windrow as wr

    path = sys.argv[1]

    def torn_map():
        np.arange(10_000, dtype=np.uint32).tofile(path)
        return wr.open(path, dtype="uint32").pack(10)

    def own_map():
        np.arange(10_000, dtype=np.uint32).tofile(path + ".own")
        with open(path + ".own", "r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    view = torn_map()
    match sys.argv[2]:
        case "faulthandler":
            faulthandler.enable()
        case "own":
            signal.signal(signal.SIGBUS, lambda *_: print("mine"))
    for i in range(64):
        view[i]
    os.truncate(path, 0)
    try:
        view[900]
    except wr.StaleError:
        print("stale")
    os.kill(os.getpid(), signal.SIGBUS) if sys.argv[2] == "own" else None
    view = torn_map()
    view[0]
    if sys.argv[2] != "own":
        sys.stdout.flush()
        own = own_map()
        os.truncate(path + ".own", 0)
        own[20_000]
"""


def test_a_signal_of_others_stays_theirs(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys
    import textwrap

    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SIGNALS))

    def run(how: str) -> tuple[int, str, str]:
        command = [sys.executable, str(script), str(tmp_path / "ids.bin"), how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("own") == (0, "stale\nmine\n", "")
    assert run("none") == (-signal.SIGBUS, "stale\n", "")
    code, said, told = run("faulthandler")
    assert (code, said) == (-signal.SIGBUS, "stale\n")
    assert told.startswith("Fatal Python error: Bus error") and told.count("Fatal Python error") == 1
