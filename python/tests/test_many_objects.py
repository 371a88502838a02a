"""Folders of many objects in a store: how many requests it takes until they are open, with a manifest and without."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_server import S3Server

import windrow as wr

OBJECTS = 200
# Larger than what is fetched whole in any case.
VALUES = 40_000


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


def ids(path: Path, i: int) -> None:
    (np.arange(VALUES) * 7 + i).astype("<u2").tofile(path.with_suffix(".bin"))


def series(path: Path, i: int) -> None:
    np.save(path.with_suffix(".npy"), np.arange(VALUES // 2 + i % 3, dtype=np.float32) + i)


Kind = tuple[Callable[[Path, int], None], dict[str, Any]]
KINDS: dict[str, Kind] = {"ids": (ids, {"dtype": "uint16"}), "series": (series, {})}


@pytest.fixture(params=list(KINDS))
def data(request: pytest.FixtureRequest, s3: S3Server, tmp_path: Path) -> tuple[Path, str, dict[str, Any]]:
    """A folder here, the same in a bucket, and how it is opened."""
    make, options = KINDS[request.param]
    here = tmp_path / "many"
    here.mkdir()
    for i in range(OBJECTS):
        make(here / f"part-{i}", i)
    return here, s3.put(here), options


def far(s3: S3Server, options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "store_options": s3.options, "cache_limit": 0}


def loader(opened: wr.Dataset) -> wr.Loader:
    return wr.Loader(opened.records(64), 1, seed=3, rank=0, world_size=1, num_threads=0)


def alike(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all((a[name] == array).all() for name, array in b.items())


def manifest(s3: S3Server, url: str) -> None:
    assert wr.manifest(url, store_options=s3.options)["files"] == OBJECTS


def rewrite(s3: S3Server, url: str, change: Callable[[dict[str, Any]], None]) -> None:
    bucket, key = f"{url}/windrow.json".removeprefix("s3://").split("/", 1)
    text = json.loads(s3.client.get_object(Bucket=bucket, Key=key)["Body"].read())
    change(text)
    s3.client.put_object(Bucket=bucket, Key=key, Body=json.dumps(text).encode())


def test_without_a_manifest_each_object_is_asked_for_once(s3: S3Server, data: tuple[Path, str, dict[str, Any]]) -> None:
    here, url, options = data
    s3.requests.clear()
    opened = wr.open(url, **far(s3, options))
    # The listing, and what looks for a manifest.
    assert len(s3.requests) <= 1.02 * OBJECTS + 2
    assert len(opened) == len(wr.open(here, **options)) == OBJECTS


def test_with_one_the_first_batch_takes_four_requests(s3: S3Server, data: tuple[Path, str, dict[str, Any]]) -> None:
    here, url, options = data
    before = loader(wr.open(url, **far(s3, options))).state_dict()
    manifest(s3, url)
    s3.requests.clear()
    opened = wr.open(url, **far(s3, options))
    assert len(s3.requests) <= 2
    there, local = loader(opened), loader(wr.open(here, **options))
    assert alike(next(there), next(local))
    assert len(s3.requests) <= 4, s3.requests
    assert there.state_dict() == local.state_dict()
    assert before["plan"] == there.state_dict()["plan"]
    for _ in range(OBJECTS - 1):
        assert alike(next(there), next(local))
    assert [opened[i].tolist()[:3] for i in (0, 7, OBJECTS - 1)] == [wr.open(here, **options)[i].tolist()[:3] for i in (0, 7, OBJECTS - 1)]


def test_an_object_that_was_replaced_is_an_error_when_it_is_read(s3: S3Server, data: tuple[Path, str, dict[str, Any]]) -> None:
    here, url, options = data
    manifest(s3, url)
    [name] = [path.name for path in here.iterdir() if path.stem == "part-7"]
    bucket, key = f"{url}/{name}".removeprefix("s3://").split("/", 1)
    whole = (here / name).read_bytes()
    # Of the same size, and of another.
    for content in (whole[:-4] + b"\1\2\3\4", whole + whole[-4:]):
        s3.client.put_object(Bucket=bucket, Key=key, Body=content)
        opened = wr.open(url, **far(s3, options))
        assert opened[8].tolist() == wr.open(here, **options)[8].tolist()
        with pytest.raises(wr.StaleError, match=name):
            opened[7]


def test_a_manifest_that_only_lists_is_read_as_before(s3: S3Server, data: tuple[Path, str, dict[str, Any]]) -> None:
    here, url, options = data
    manifest(s3, url)
    rewrite(s3, url, lambda text: text["listing"].pop("declared"))
    opened = wr.open(url, **far(s3, options))
    assert loader(opened).state_dict() == loader(wr.open(here, **options)).state_dict()
    assert alike(next(loader(opened)), next(loader(wr.open(here, **options))))


RANK = """
import json, sys
import windrow as wr

url, options, rank = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
print(len(wr.open(url, **options)))
"""


def test_ranks_that_start_together_ask_for_little_more_than_one(
    s3: S3Server, data: tuple[Path, str, dict[str, Any]], tmp_path: Path
) -> None:
    _, url, options = data
    asked = []
    for n_ranks in (1, 4):
        given = json.dumps({**options, "store_options": s3.options, "cache": str(tmp_path / f"cache-{n_ranks}"), "cache_limit": 1 << 30})
        ranks = [
            subprocess.Popen([sys.executable, "-c", RANK, url, given, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for rank in range(n_ranks)
        ]
        for rank in ranks:
            assert rank.stdout and rank.stdout.readline() == "ready\n"
        s3.requests.clear()
        for rank in ranks:
            assert rank.stdin
            rank.stdin.write("\n")
            rank.stdin.flush()
        for rank in ranks:
            assert int(rank.communicate(timeout=120)[0]) == OBJECTS
        asked.append(len(s3.requests))
    assert asked[1] <= 1.1 * asked[0], asked


@pytest.mark.parametrize("wrong", ["records", "length", "dtype"])
def test_what_a_manifest_declares_is_compared_with_the_object(s3: S3Server, tmp_path: Path, wrong: str) -> None:
    here = tmp_path / "many"
    here.mkdir()
    for i in range(3):
        series(here / f"part-{i}", i)
    url = s3.put(here)
    wr.manifest(url, store_options=s3.options)

    def change(text: dict[str, Any]) -> None:
        declared = text["listing"]["declared"]
        row = declared["parts"][1].split(" ")
        if wrong == "dtype":
            declared["kinds"][0]["dtype"] = "int32"
        else:
            at = {"records": 2, "length": 3}[wrong]
            row[at] = str(int(row[at]) + 1)
        declared["parts"][1] = " ".join(row)
        # Changed on purpose.
        text.pop("xxh3")

    rewrite(s3, url, change)
    opened = wr.open(url, **far(s3, {}))
    with pytest.raises(wr.StaleError, match=r"part-1\.npy") as found:
        opened[1]
    assert "windrow manifest" in str(found.value.hint)


def lines(path: Path, i: int) -> None:
    rows = [{"n": 2000 * i + j, "text": "x" * 60} for j in range(1000 + i % 3)]
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_lines_that_were_counted_are_looked_through_when_they_are_read(s3: S3Server, tmp_path: Path) -> None:
    here = tmp_path / "many"
    here.mkdir()
    for i in range(OBJECTS):
        lines(here / f"part-{i}", i)
    url, local = s3.put(here), wr.open(here)
    before = wr.open(url, **far(s3, {})).rows().loader(8, seed=3).state_dict()
    manifest(s3, url)
    s3.requests.clear()
    opened = wr.open(url, **far(s3, {}))
    assert len(s3.requests) <= 2 and len(opened) == len(local)
    assert opened[1500] == local[1500]
    assert len(s3.requests) <= 3, s3.requests
    there, ours = (ds.rows().loader(8, seed=3) for ds in (opened, local))
    for _ in range(20):
        assert next(there) == next(ours)
    assert there.state_dict() == ours.state_dict() and before["plan"] == there.state_dict()["plan"]
    # Of the keys of records, too, of which some are looked at.
    assert wr.open(url, columns=["n"], **far(s3, {}))[1500] == wr.open(here, columns=["n"])[1500]

    # Another number of lines than was counted.
    def change(text: dict[str, Any]) -> None:
        row = text["listing"]["declared"]["parts"][1].split(" ")
        row[2] = str(int(row[2]) - 1)
        text["listing"]["declared"]["parts"][1] = " ".join(row)
        text.pop("xxh3")

    rewrite(s3, url, change)
    changed = wr.open(url, **far(s3, {}))
    assert changed[0] == local[0]
    with pytest.raises(wr.StaleError, match=r"lines[\s\S]*part-1\.jsonl"):
        changed[1500]


def test_whoever_watches_hears_how_many_objects_were_looked_at(s3: S3Server, data: tuple[Path, str, dict[str, Any]]) -> None:
    _, url, options = data
    heard: list[dict[str, int]] = []
    wr.open(url, progress=heard.append, **far(s3, options))
    done = [now["done_objects"] for now in heard]
    assert done == sorted(done) and {now["total_objects"] for now in heard} <= {0, OBJECTS}
    heard.clear()
    wr.open(f"{url}/part-1*", progress=heard.append, **far(s3, options))
    assert heard[-1] == {"done_objects": 111, "total_objects": 111}
    with pytest.raises(TypeError, match="progress is a function"):
        wr.open(url, progress=1, **far(s3, options))  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        wr.open(url, progress=lambda now: now["done_objects"] // 0, **far(s3, options))


STOPPED = """
import json, pathlib, sys, time
import windrow as wr

def is_opening():
    for thread in pathlib.Path("/proc/self/task").iterdir():
        try:
            if (thread / "comm").read_text() == "windrow-wait\\n":
                return True
        except OSError:
            pass  # It has just ended.
    return False

def heard(now):
    if now["done_objects"] >= 10:
        print("looking", flush=True)

try:
    wr.open(sys.argv[1], progress=heard, **json.loads(sys.argv[2]))
except KeyboardInterrupt:
    print("stopped", flush=True)
until = time.monotonic() + 60
while is_opening() and time.monotonic() < until:
    time.sleep(0.02)
print("continues" if is_opening() else "ended")
"""


def test_ctrl_c_ends_the_opening_of_objects_that_do_not_come(tmp_path: Path) -> None:
    released = threading.Event()

    def hook(environ: dict[str, Any]) -> None:
        number = re.search(r"part-(\d+)\.bin$", environ["PATH_INFO"])
        if environ["REQUEST_METHOD"] == "GET" and number and int(number[1]) >= 20:
            released.wait(120)

    s3 = S3Server(hook=hook)
    try:
        here = tmp_path / "many"
        here.mkdir()
        for i in range(OBJECTS):
            ids(here / f"part-{i}", i)
        given = json.dumps({"dtype": "uint16", "store_options": s3.options, "cache_limit": 0})
        command = [sys.executable, "-c", STOPPED, s3.put(here), given]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout and process.stdout.readline() == "looking\n"
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[0].splitlines()
        assert said[-2:] == ["stopped", "ended"] and set(said[:-2]) <= {"looking"}
    finally:
        released.set()
        s3.stop()
