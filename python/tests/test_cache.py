"""The cache is bounded, shared and never wrong: killed at every change, and edited under its entries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import windrow as wr

SOURCE = Path(__file__).with_name("kill_at.c")

# Run by a process that has the killer loaded: adds an entry to a cache that has space for one only, killed before each change.
PROGRAM = '''
import ctypes, os, pathlib, signal, sys
import windrow as wr

killer = ctypes.CDLL(None)
killer.kill_at_made.restype = ctypes.c_long
folder = pathlib.Path(sys.argv[1])
cache = pathlib.Path(os.environ["WINDROW_CACHE"])
FIRST = [[i, 1] for i in range(20_000)]
SECOND = [[i, 2] for i in range(20_000)]
for name, rows in (("first", FIRST), ("second", SECOND)):
    (folder / f"{name}.json").write_text(str(rows))


def check(name, rows):
    found = wr.open(folder / f"{name}.json")
    assert len(found) == len(rows) and found[7].tolist() == rows[7] and found[-1].tolist() == rows[-1]


def run(n):
    """Opens the second in a process of its own, killed before its n-th change; how many it made, or None where killed."""
    back, forth = os.pipe()
    child = os.fork()
    if child == 0:
        killer.kill_at_arm(n)
        wr.open(folder / "second.json")
        made = killer.kill_at_made()
        killer.kill_at_arm(-1)
        os.write(forth, b"%d" % made)
        os._exit(0)
    os.close(forth)
    made = os.read(back, 100)
    os.close(back)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert status == 0, status
    return int(made)


def begin():
    for path in cache.iterdir() if cache.exists() else ():
        path.unlink()
    check("first", FIRST)


begin()
made = run(0)
for n in range(1, made + 1):
    begin()
    assert run(n) is None, f"change {n} of {made}"
    # What is there is whole, and what was left is removed by the next that needs space.
    check("first", FIRST)
    check("second", SECOND)
    check("first", FIRST)
    left = sorted(path.name for path in cache.iterdir())
    assert len(left) == 1 and left[0].endswith(".windrow"), (n, left)
print(made)
'''


@pytest.fixture(scope="module")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("killer") / "kill_at.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


def test_killed_at_every_change(tmp_path: Path, killer: Path) -> None:
    # Space for one entry, not for two.
    limit = {"WINDROW_CACHE": str(tmp_path / "cache"), "WINDROW_CACHE_LIMIT": "1500kB"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    environment = os.environ | limit | {"LD_PRELOAD": str(killer)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    # The file, its bytes, the old entry, the syncs.
    assert int(done.stdout) > 10


def swap_digits(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"[1,", b"[2,", 1))


def change_the_middle(path: Path) -> None:
    text = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(text.index(b" 7,", len(text) // 2))
        file.write(b" 8,")


def replace_by_a_copy(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes().replace(b"[1,", b"[3,", 1))
    other.replace(path)


def follow_another_link(path: Path) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(path.read_bytes().replace(b"[1,", b"[4,", 1))
    path.unlink()
    path.symlink_to(other)


@pytest.mark.parametrize("edit", [swap_digits, change_the_middle, replace_by_a_copy, follow_another_link])
def test_an_edit_of_the_same_size_and_time_is_never_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[[Path], None]
) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    for turn in range(25):
        path = tmp_path / f"{turn}.json"
        path.write_text(f"[[1, {', '.join(['7'] * 4000)}]]")
        times = os.stat(path)
        wr.open(path)
        edit(path)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert path.stat().st_size == times.st_size
        np.testing.assert_array_equal(wr.open(path)[0], json.loads(path.read_text())[0])


def test_no_space_is_an_error_of_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WINDROW_CACHE_LIMIT", "10kB")
    (tmp_path / "a.json").write_text(str([[*range(9000)]]))
    with pytest.raises(wr.ConfigError, match=r"more than the limit of 10000 bytes") as error:
        wr.open(tmp_path / "a.json")
    assert error.value.field == "WINDROW_CACHE_LIMIT" and "WINDROW_CACHE_LIMIT" in (error.value.hint or "")
    monkeypatch.setenv("WINDROW_CACHE_LIMIT", "1MiB")
    assert wr.open(tmp_path / "a.json")[0][8999] == 8999
