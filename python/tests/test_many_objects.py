"""Folders of many objects in a store: how many requests it takes until they are open, with a manifest and without."""

from __future__ import annotations

import json
import subprocess
import sys
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
