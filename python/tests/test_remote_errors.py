"""What can be wrong with a bucket, as moto's S3 says it, and with the disk of the cache: each says what to do."""

from __future__ import annotations

import gzip
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_server import S3Server
from web_server import WebServer

import windrow as wr


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


def opened(s3: S3Server, url: str, **options: Any) -> wr.Dataset:
    return wr.open(url, dtype="uint32", cache_limit=0, timeout=20, store_options={**s3.options, **options})


def test_a_bucket_that_is_not_there_or_holds_nothing(s3: S3Server, tmp_path: Path) -> None:
    with pytest.raises(wr.NotFoundError, match="s3://nobody-made-it/x.bin"):
        opened(s3, "s3://nobody-made-it/x.bin")
    bucket = s3.bucket()
    for url in (f"s3://{bucket}", f"s3://{bucket}/folder", f"s3://{bucket}/x.bin"):
        with pytest.raises(wr.NotFoundError, match=url):
            opened(s3, url)
    (tmp_path / "page.html").write_text("<!doctype html><html><body>Sign in</body></html>")
    with pytest.raises(wr.UnrecognisedError, match="page.html"):
        wr.open(s3.put(tmp_path / "page.html"), cache_limit=0, store_options=s3.options)


def test_keys_that_are_unknown_or_not_given(s3: S3Server, tmp_path: Path) -> None:
    np.arange(1000, dtype="<u4").tofile(tmp_path / "x.bin")
    url = s3.put(tmp_path / "x.bin")
    assert len(opened(s3, url)[0]) == 1000

    def ask_for_keys(after: bytes) -> None:
        request = urllib.request.Request(f"{s3.url}/moto-api/reset-auth", after, {"Content-Type": "text/plain"})
        urllib.request.urlopen(request, timeout=20).read()

    ask_for_keys(b"0")
    try:
        for options in ({}, {"anon": True}):
            with pytest.raises(wr.IoError, match=r"s3://bucket(.|\n)*AWS_ACCESS_KEY_ID") as raised:
                opened(s3, url, **options)
            assert "ASECRET" not in str(raised.value)
    finally:
        ask_for_keys(b"inf")


def test_an_object_that_is_replaced_by_a_shorter_one(s3: S3Server, tmp_path: Path) -> None:
    np.arange(2_000_000, dtype="<u4").tofile(tmp_path / "x.bin")
    url = s3.put(tmp_path / "x.bin")
    view = opened(s3, url).pack(10)
    assert view[0]["input_ids"].tolist() == list(range(10))
    bucket = url.removeprefix("s3://").partition("/")[0]
    s3.client.put_object(Bucket=bucket, Key="x.bin", Body=bytes(1000))
    with pytest.raises(wr.StaleError, match=rf"replaced(.|\n)*{url}"):
        view[150_000]


def test_a_disk_that_takes_no_more_ends_the_keeping_not_the_run(tmp_path: Path, run_script: Callable[..., str]) -> None:
    (tmp_path / "web").mkdir()
    np.arange(3_000_001, dtype="<u4").tofile(tmp_path / "web" / "x.bin")
    server = WebServer(tmp_path / "web")
    # A file of the cache may not grow beyond what this process may write: the same error that a full disk gives.
    code = """
        import logging, resource, sys
        import windrow as wr

        logging.basicConfig(stream=sys.stdout, level="WARNING")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        view = wr.open(sys.argv[1], dtype="uint32", cache=sys.argv[2]).pack(1000)
        tokens = sorted(int(row[0]) for batch in wr.Loader(view, 100, epochs=1) for row in batch["input_ids"])
        assert tokens == list(range(0, 3_000_000, 1000))
    """
    said = run_script(code, f"{server.url}/x.bin", tmp_path / "cache")
    server.stop()
    assert "kept in memory only" in said and "WINDROW_CACHE" in said and said.count("WARNING") == 1, said


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    (tmp_path / "web").mkdir()
    server = WebServer(tmp_path / "web")
    yield server
    server.stop()


def test_a_server_that_does_not_say_how_large_a_file_is(web: WebServer) -> None:
    np.arange(1000, dtype="<u4").tofile(web.folder / "a.bin")
    (web.folder / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 9))
    (web.folder / "packed.bin").write_bytes(gzip.compress((web.folder / "a.bin").read_bytes()))
    web.encodings = {"packed.bin": "gzip", "a.jsonl.gz": "gzip"}
    web.is_chunked = True
    for name in ("a.bin", "packed.bin"):
        del web.requests[:]
        ds = wr.open(f"{web.url}/{name}", dtype="uint32", timeout=5, cache_limit=0)
        assert ds[0].tolist() == list(range(1000)), name
        assert sum(method == "GET" and asked is None and name in path for method, path, asked in web.requests) == 1
    # Whose name tells what it is packed with is that file.
    assert len(wr.open(f"{web.url}/a.jsonl.gz", timeout=5)) == 9
    for name in ("a.bin", "packed.bin"):
        with pytest.raises(wr.UnsupportedError, match=r"no Content-Length.*3999 bytes") as raised:
            wr.open(f"{web.url}/{name}", dtype="uint32", timeout=5, read_ahead=3999)
        assert "download it" in str(raised.value.hint) and "read_ahead" in str(raised.value.hint)
    with pytest.raises(wr.UnsupportedError, match="Content-Encoding: br"):
        web.encodings = {"a.bin": "br"}
        wr.open(f"{web.url}/a.bin", dtype="uint32", timeout=5)


def test_bytes_that_a_server_packs(web: WebServer, s3: S3Server) -> None:
    plain = web.folder / "plain"
    wr.write(plain / "x.bagz", [{"text": "a"}] * 9, to="bagz")
    np.arange(1000, dtype="<u4").tofile(plain / "x.bin")
    (plain / "x.jsonl").write_text('{"text": "a"}\n' * 9)
    bucket = s3.bucket()
    for name in ("x.bagz", "x.bin", "x.jsonl"):
        packed = gzip.compress((plain / name).read_bytes())
        (web.folder / name).write_bytes(packed)
        web.encodings[name] = "gzip"
        s3.client.put_object(Bucket=bucket, Key=name, Body=packed, ContentEncoding="gzip")
    places: list[tuple[str, dict[str, Any]]] = [(web.url, {}), (f"s3://{bucket}", {"store_options": s3.options})]
    for place, options in places:
        options |= {"timeout": 5, "cache_limit": 0}
        # What is known by its first bytes is read.
        assert len(wr.open(f"{place}/x.jsonl", timeout=5, **{k: v for k, v in options.items() if k == "store_options"})) == 9
        for name in ("x.bagz", "x.bin"):
            with pytest.raises(wr.WindrowError) as raised:
                wr.open(f"{place}/{name}", **options)
            assert "Content-Encoding: gzip" in str(raised.value.hint) and "fetch it again" not in str(raised.value), place
    # What nothing here unpacks is never read as it is.
    web.encodings["x.bin"] = "br"
    with pytest.raises(wr.UnsupportedError, match="Content-Encoding: br") as raised:
        wr.open(f"{web.url}/x.bin", dtype="uint32", timeout=5, cache_limit=0)
    assert "curl" in str(raised.value.hint)


def test_a_server_that_packs_on_the_way(web: WebServer) -> None:
    np.arange(1000, dtype="<u4").tofile(web.folder / "x.bin")
    web.packs = True
    with pytest.raises(wr.UnsupportedError, match="Content-Encoding: gzip"):
        wr.open(f"{web.url}/x.bin", dtype="uint32", timeout=5, cache_limit=0)


@pytest.mark.parametrize("to", ["parquet", "arrow"])
def test_a_file_that_its_store_keeps_compressed(tmp_path: Path, to: str) -> None:
    wr.write(tmp_path / f"plain.{to}", [{"text": "a"}] * 9, to=to)
    (tmp_path / f"a.{to}").write_bytes(gzip.compress((tmp_path / f"plain.{to}").read_bytes()))
    server = WebServer(tmp_path)
    try:
        for path in (tmp_path, server.url):
            with pytest.raises(wr.UnsupportedError, match="a gzip stream") as raised:
                wr.open(f"{path}/a.{to}")
            assert "Content-Encoding" in str(raised.value.hint)
    finally:
        server.stop()
