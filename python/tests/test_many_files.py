"""Folders of more files than a process may map or hold open are read like any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

OPEN_FILES = """
import os, pathlib, resource, sys
import numpy as np
import windrow as wr

folder, kind = pathlib.Path(sys.argv[1]) / "data", sys.argv[2]
folder.mkdir()
for i in range(600):
    if kind == "npy":
        np.save(folder / f"{i:03}.npy", np.arange(i, i + 20, dtype=np.float32))
    else:
        np.arange(i, i + 20, dtype=np.uint16).tofile(folder / f"{i:03}.bin")
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

# A name that does not begin at the root stays good where the program goes elsewhere.
os.chdir(folder.parent)
data = wr.open("data", io="pread", dtype="uint16" if kind == "bin" else None)
os.chdir("/")
for i in [*range(600), *range(599, -1, -1)]:
    assert list(data[i]) == list(range(i, i + 20)), i
rows = [row for batch in data.records(19).loader(8, epochs=1, num_threads=3) for row in batch["input_ids"].tolist()]
assert sorted(rows) == [list(range(i, i + 19)) for i in range(600)]

(folder / f"599.{kind}").write_bytes(bytes(400))
try:
    data[599]
except wr.StaleError as e:
    assert e.path.endswith(f"data/599.{kind}") and "open the data again" in e.hint, e
else:
    raise AssertionError

taken = []
try:
    while True:
        taken.append(open(os.devnull))
except OSError:
    pass
try:
    data[598]
except wr.IoError as e:
    assert "Too many open files" in str(e) and "ulimit -n" in e.hint, e
else:
    raise AssertionError
taken.clear()
assert data[598][0] == 598
"""

# Links, which take no room on the disk.
MAPS = """
import pathlib, resource, sys
import numpy as np
import windrow as wr

folder = pathlib.Path(sys.argv[1]) / "data"
folder.mkdir()
for i in range(10):
    np.full(4, i, dtype=np.uint16).tofile(folder.parent / f"{i}.bin")
for i in range(70_000):
    (folder / f"{i:05}.bin").symlink_to(f"../{i % 10}.bin")
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

data = wr.open(folder, dtype="uint16")
assert len(data) == 70_000
for i in range(70_000):
    assert data[i].tolist() == [i % 10] * 4, i
assert sum(len(batch["input_ids"]) for batch in data.records(3).loader(1000, epochs=1, num_threads=2)) == 70_000
"""


@pytest.mark.parametrize("kind", ["npy", "bin"])
def test_more_files_than_may_be_open(run_script: Callable[..., str], tmp_path: Path, kind: str) -> None:
    run_script(OPEN_FILES, tmp_path, kind)


def test_more_files_than_may_be_mapped(run_script: Callable[..., str], tmp_path: Path) -> None:
    run_script(MAPS, tmp_path)
