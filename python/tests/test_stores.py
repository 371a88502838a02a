"""Stores as they are: what fails for a while, what is refused, odd names and many objects, each compared with the local files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_server import S3Server

import windrow as wr

N = 2_000_000
Hook = Callable[[dict[str, Any]], "tuple[int, bytes] | None"]


class Faulty(S3Server):
    """Refuses what a test says."""

    def __init__(self) -> None:
        self.refuse: Hook = allow
        super().__init__(hook=lambda environ: self.refuse(environ))


def allow(environ: dict[str, Any]) -> None:
    return None


@pytest.fixture(scope="module")
def s3() -> Iterator[Faulty]:
    server = Faulty()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def healthy(s3: Faulty) -> Iterator[None]:
    yield
    s3.refuse = allow


def tokens(folder: Path) -> Path:
    path = folder / "x.bin"
    np.arange(N, dtype="<u4").tofile(path)
    return path


def opened(s3: Faulty, url: str, **options: Any) -> wr.Dataset:
    return wr.open(url, **{"dtype": "uint32", "cache_limit": 0, "timeout": 60, "store_options": s3.options, **options})


def batches(ds: wr.Dataset) -> list[Any]:
    return [batch["input_ids"].tolist() for batch in wr.Loader(ds.pack(1000), 100, epochs=1, seed=3)]


def of_object(environ: dict[str, Any]) -> bool:
    return environ["REQUEST_METHOD"] in ("GET", "HEAD") and "list-type" not in environ["QUERY_STRING"]


def now_and_then(status: int, code: str) -> Hook:
    """Half of what is asked of objects fails."""
    turns = itertools.cycle([True, False])
    body = f"<Error><Code>{code}</Code></Error>".encode()
    return lambda environ: (status, body) if of_object(environ) and next(turns) else None


def heads(status: int) -> Hook:
    return lambda environ: (status, b"") if environ["REQUEST_METHOD"] == "HEAD" else None


def listings(status: int) -> Hook:
    return lambda environ: (status, b"<Error><Code>AccessDenied</Code></Error>") if "list-type" in environ["QUERY_STRING"] else None


@pytest.mark.parametrize(
    "hook",
    [
        now_and_then(503, "SlowDown"), now_and_then(429, "TooManyRequests"), now_and_then(500, "InternalError"),
        heads(403), listings(403),
    ],
    ids=["503", "429", "500", "HEAD 403", "LIST 403"],
)  # fmt: skip
def test_batches_are_those_of_the_local_file(s3: Faulty, tmp_path: Path, hook: Hook) -> None:
    path = tokens(tmp_path)
    expected = batches(wr.open(path, dtype="uint32"))
    url = s3.put(path)
    s3.refuse = hook
    assert batches(opened(s3, url)) == expected


def test_an_object_that_goes_or_is_replaced_in_mid_run(s3: Faulty, tmp_path: Path) -> None:
    url = s3.put(tokens(tmp_path))
    bucket = url.split("/")[2]
    for change, kind in [
        (lambda: s3.client.put_object(Bucket=bucket, Key="x.bin", Body=bytes(4 * N)), wr.StaleError),
        (lambda: s3.client.delete_object(Bucket=bucket, Key="x.bin"), wr.NotFoundError),
    ]:
        view = opened(s3, url).pack(1000)
        view[0]
        change()
        with pytest.raises(kind, match="x.bin"):
            view[1900]


def test_what_a_bucket_holds_beside_data(s3: Faulty, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    (folder / "sub").mkdir(parents=True)
    for i in range(1100):
        (folder / f"{i:04}.jsonl").write_text(f'{{"n": {i}}}\n')
    (folder / "sub" / "last.jsonl").write_text('{"n": 1100}\n')
    (folder / "empty.jsonl").write_text("")
    (folder / "_SUCCESS").write_text("")
    url = s3.put(folder)
    for marker in ("t/", "t/sub/", "t_$folder$"):
        s3.client.put_object(Bucket=url.split("/")[2], Key=marker, Body=b"")
    here, there = wr.open(folder), opened(s3, url, dtype=None)
    assert list(there) == list(here) and len(there) == 1101


ODD = [" ", "+", "#", "&", "=", "'", '"', "~", "ünï", "日本", ":", "[", "{}", "?", "*", "%2B", "a%20b", "a b"]


def test_names_are_what_they_are(s3: Faulty, tmp_path: Path) -> None:
    bucket = s3.bucket()
    for i, odd in enumerate(ODD):
        s3.client.put_object(Bucket=bucket, Key=f"d/x{odd}y.bin", Body=np.full(9, i, "<u4").tobytes())
    for refuse in (allow, listings(403)):
        s3.refuse = refuse
        for i, odd in enumerate(ODD):
            assert opened(s3, f"s3://{bucket}/d/x{odd}y.bin")[0].tolist() == [i] * 9, odd


def test_files_that_are_in_folders_below_are_named(s3: Faulty, tmp_path: Path) -> None:
    for place in (tmp_path, None):
        folder = tmp_path / "d"
        (folder / "train").mkdir(parents=True, exist_ok=True)
        np.arange(9, dtype="<u4").tofile(folder / "train" / "x.bin")
        with pytest.raises(wr.NotFoundError, match=r"d/train(.|\n)*open that folder"):
            wr.open(folder, format="tokens") if place else opened(s3, s3.put(folder), format="tokens")
