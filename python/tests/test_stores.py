"""The table of stores: what each does with requests, and what comes of it, compared with the local file.

The server is this project's own (reliability/store_server.py), over HTTP and as S3; what a bucket may hold and be called is tried with
moto's. Elsewhere: keys that expire (test_credentials.py), what is not there or may not be read (test_remote_errors.py,
test_not_absent.py), processes that start together and caches that are damaged (crates/windrow-remote/src/held/tests), bytes received for
each byte read (test_amplification.py), thousands of objects (test_many_files.py).
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_server import S3Server
from store_server import Answer, Request, Script, Store

import windrow as wr

N = 2_000_000
KEYS = {"access_key_id": "A", "secret_access_key": "S", "region": "us-east-1"}
Told = Callable[[Request, int], "str | Answer | None"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("store")
    (folder / "b").mkdir()
    np.arange(N, dtype="<u4").tofile(folder / "b" / "x.bin")
    server = Store(folder)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def healthy(store: Store) -> None:
    store.begin(Script())


@pytest.fixture(scope="module")
def expected(store: Store) -> list[Any]:
    return batches(wr.open(store.folder / "b" / "x.bin", dtype="uint32"))


def batches(ds: wr.Dataset) -> list[Any]:
    return [batch["input_ids"].tolist() for batch in wr.Loader(ds.pack(1000), 100, epochs=1, seed=3)]


def opened(store: Store, scheme: str, name: str = "x.bin", **options: Any) -> wr.Dataset:
    given: dict[str, Any] = {"dtype": "uint32", "cache_limit": 0, "timeout": 60, **options}
    if scheme == "s3":
        given["store_options"] = {"endpoint_url": store.url, **KEYS, **given.get("store_options", {})}
    return wr.open(f"s3://b/{name}" if scheme == "s3" else f"{store.url}/b/{name}", **given)


# What passes, and what does not matter.


def half(fault: str | Answer) -> Script:
    return Script(told=lambda request, number: fault if number % 2 == 0 else None)


def half_of_bodies(fault: str) -> Script:
    return Script(told=lambda request, number: fault if number % 2 == 0 and request.method == "GET" else None)


def once(fault: str) -> Script:
    """One that comes late, when it is known how long the others take."""
    return Script(told=lambda request, number: fault if number == 12 else None)


def heads(status: int) -> Script:
    return Script(told=lambda request, number: (status, b"", {}) if request.method == "HEAD" else None)


def redirected(status: int) -> Script:
    def told(request: Request, number: int) -> Answer | None:
        is_moved = "moved" in request.query
        return None if is_moved else (status, b"", {"Location": f"/{request.path}?moved=1"})

    return Script(told=told)


def busy(after: str) -> Answer:
    return 503, b"<Error><Code>SlowDown</Code></Error>", {"Retry-After": after}


PASSES = {
    **{fault: half(fault) for fault in "503; 429; 500; 408; closed; reset; cut; other range; no range; whole".split("; ")},
    "longer": half_of_bodies("longer"),
    "shorter": half_of_bodies("shorter"),
    "Retry-After": half(busy("1")),
    "Retry-After with a date": half(busy(formatdate(time.time() + 1, usegmt=True))),
    "a stall": once("stall"),
    "a body that drips": once("drip"),
    "no ranges": Script(told=lambda request, number: "whole"),
    "no Content-Range": Script(told=lambda request, number: "no range"),
    "HEAD 403": heads(403),
    "HEAD 405": heads(405),
    "HEAD 501": heads(501),
    "307": redirected(307),
    "302": redirected(302),
    "GetObject alone": Script(lists=False),
    "no versions": Script(versions=False),
    "checksums": Script(checksums=True),
}


@pytest.mark.parametrize("scheme", ["s3", "http"])
@pytest.mark.parametrize("row", PASSES)
def test_what_passes_is_not_seen(store: Store, expected: list[Any], row: str, scheme: str) -> None:
    store.begin(PASSES[row])
    assert batches(opened(store, scheme)) == expected


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_a_store_that_is_down_for_a_while(tmp_path: Path, expected: list[Any], scheme: str) -> None:
    (tmp_path / "b").mkdir()
    np.arange(N, dtype="<u4").tofile(tmp_path / "b" / "x.bin")
    server = Store(tmp_path)
    port = server.server_address[1]
    ds = opened(server, scheme)
    server.begin(Script(told=lambda request, number: "closed"))
    server.shutdown()
    server.server_close()
    with pytest.raises(wr.IoError, match=r"gave up after \d+ attempts"):
        batches(opened(server, scheme, timeout=1))

    def come_back() -> None:
        time.sleep(3)
        servers.append(Store(tmp_path, port))

    servers: list[Store] = []
    thread = threading.Thread(target=come_back)
    thread.start()
    try:
        assert batches(ds) == expected
    finally:
        thread.join()
        servers[0].shutdown()
        servers[0].server_close()


# What lasts.


def said(status: int, code: str, more: str = "") -> Answer:
    return status, f"<Error><Code>{code}</Code>{more}</Error>".encode(), {}


# What is answered, the error, what it says or hints at, and of which schemes.
LASTS: dict[str, tuple[str | Answer, type[wr.WindrowError], str, str]] = {
    "replaced": ("replaced", wr.StaleError, "replaced", "s3 http"),
    "shorter": ("truncated", wr.StaleError, "replaced", "s3 http"),
    "deleted": ("404", wr.NotFoundError, "x.bin", "s3 http"),
    "403": (said(403, "AccessDenied"), wr.IoError, "AWS_ACCESS_KEY_ID", "s3"),
    "401 of a web server": ((401, b"", {}), wr.IoError, "headers", "http"),
    "expired keys, 400": (said(400, "ExpiredToken"), wr.IoError, "expired", "s3"),
    "expired keys, 403": (said(403, "ExpiredToken"), wr.IoError, "expired", "s3"),
    "a clock that is wrong": (said(403, "RequestTimeTooSkewed"), wr.IoError, "clock", "s3"),
    "another region, 400": (said(400, "AuthorizationHeaderMalformed", "<Region>eu-west-9</Region>"), wr.IoError, "eu-west-9", "s3"),
    "another region, 301": (said(301, "PermanentRedirect"), wr.IoError, "another region", "s3"),
    "asks to wait for an hour": (busy("3600"), wr.IoError, r"gave up after 1 attempt.*\(Retry-After\)", "s3 http"),
    "redirects in a circle": ("redirects", wr.IoError, "redirect", "s3 http"),
    "drips": ("drip", wr.IoError, "timeout", "s3 http"),
    "closes": ("closed", wr.IoError, "timeout", "s3 http"),
    "503": ("503", wr.IoError, "timeout", "s3 http"),
    "cuts": ("cut", wr.IoError, "timeout", "s3 http"),
    "no HTTP": ("garbage", wr.IoError, "timeout", "s3 http"),
}
CASES = [(row, scheme) for row, (_, _, _, schemes) in LASTS.items() for scheme in schemes.split()]


@pytest.mark.parametrize(("row", "scheme"), CASES)
def test_what_lasts_is_an_error_that_says_what_to_do(store: Store, row: str, scheme: str) -> None:
    answer, kind, words, _ = LASTS[row]
    # Redirects are followed ten times before that is an error.
    view = opened(store, scheme, timeout=20 if row == "redirects in a circle" else 2).pack(1000)
    assert view[0]["input_ids"][0] == 0
    store.begin(Script(told=lambda request, number: answer))
    with pytest.raises(kind, match="x.bin") as raised:
        view[1900]
    text = f"{raised.value}\n{raised.value.hint}"
    assert re.search(words, text), text


def test_a_signature_that_has_expired(store: Store) -> None:
    view = opened(store, "http", "x.bin?X-Amz-Signature=0a", timeout=2).pack(1000)
    store.begin(Script(told=lambda request, number: said(403, "AccessDenied", "<Message>Request has expired</Message>")))
    with pytest.raises(wr.IoError) as raised:
        view[1900]
    assert "sign it again" in str(raised.value.hint) and "0a" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_without_ranges_and_without_room_it_is_an_error_at_once(store: Store, scheme: str) -> None:
    store.begin(Script(told=lambda request, number: "whole"))
    with pytest.raises(wr.UnsupportedError, match="no ranges"):
        opened(store, scheme, read_ahead=1 << 20)
    assert sum("range" in request.headers for request in store.asked) <= 2


def test_of_a_server_without_versions_another_length_is_seen(store: Store, tmp_path: Path) -> None:
    store.begin(Script(versions=False))
    view = opened(store, "http", cache=tmp_path, cache_limit=None).pack(1000)
    assert view[0]["input_ids"][0] == 0
    # Nobody could say whether it is still that file.
    assert not list(tmp_path.rglob("data"))
    store.begin(Script(versions=False, lasting="truncated"))
    with pytest.raises(wr.StaleError, match="x.bin"):
        view[1900]


def test_bytes_that_change_on_the_way(store: Store) -> None:
    lines = "".join(json.dumps({"n": i}) + "\n" for i in range(100))
    (store.folder / "b" / "rows.jsonl").write_text(lines)
    store.begin(Script(checksums=True, flips=0.4))
    for _ in range(10):
        assert [row["n"] for row in opened(store, "s3", "rows.jsonl", dtype=None)] == list(range(100))
    assert "flip" in store.met
    store.begin(Script(checksums=True, flips=1.0))
    with pytest.raises(wr.CorruptError, match=r"checksum: expected Crc32 (.|\n)*s3://b/rows.jsonl"):
        list(opened(store, "s3", "rows.jsonl", dtype=None))
    # Who does not ask for checksums gets what came.
    store.begin(Script(checksums=True, flips=1.0))
    off = {"response_checksum_validation": "when_required"}
    assert len(opened(store, "s3", "rows.jsonl", dtype=None, store_options=off)) == 100


def test_lines_that_are_a_gzip_stream(store: Store, tmp_path: Path) -> None:
    packed = gzip.compress(b'{"n": 7}\n' * 9)
    (store.folder / "b" / "packed.jsonl").write_bytes(packed)
    for scheme in ("s3", "http"):
        ds = opened(store, scheme, "packed.jsonl", dtype=None, cache=tmp_path, cache_limit=None)
        assert [row["n"] for row in ds] == [7] * 9


def test_what_is_not_there_is_named(store: Store) -> None:
    options = {"cache_limit": 0, "timeout": 5, "store_options": {"endpoint_url": store.url, **KEYS}}
    for url, words in [("s3://nobody/x.bin", "NoSuchBucket|nobody"), ("s3://b/y.bin", "y.bin"), ("s3://b/folder", "folder")]:
        with pytest.raises(wr.NotFoundError, match=words):
            wr.open(url, dtype="uint32", **options)


# What a bucket holds, as moto's S3 lists it.


class Faulty(S3Server):
    """May refuse to list."""

    def __init__(self) -> None:
        self.lists = True
        super().__init__(hook=self.refuse)

    def refuse(self, environ: dict[str, Any]) -> tuple[int, bytes] | None:
        is_refused = not self.lists and "list-type" in environ["QUERY_STRING"]
        return (403, b"<Error><Code>AccessDenied</Code></Error>") if is_refused else None


@pytest.fixture(scope="module")
def s3() -> Iterator[Faulty]:
    server = Faulty()
    yield server
    server.stop()


def of_moto(s3: Faulty, url: str, **options: Any) -> wr.Dataset:
    return wr.open(url, **{"dtype": "uint32", "cache_limit": 0, "timeout": 60, "store_options": s3.options, **options})


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
    here, there = wr.open(folder), of_moto(s3, url, dtype=None)
    assert list(there) == list(here) and len(there) == 1101


def test_an_empty_file_of_tokens(s3: Faulty, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "b.bin").write_bytes(b"")
    with pytest.raises(wr.WindrowError, match="b.bin"):
        of_moto(s3, f"{s3.put(folder)}/b.bin", format="tokens")
    np.arange(9, dtype="<u4").tofile(folder / "a.bin")
    assert [record.tolist() for record in of_moto(s3, s3.put(folder), format="tokens")] == [list(range(9))]


ODD = [" ", "+", "#", "&", "=", "'", '"', "~", "ünï", "日本", ":", "[", "{}", "?", "*", "%2B", "a%20b", "a b"]


@pytest.mark.parametrize("lists", [True, False])
def test_names_are_what_they_are(s3: Faulty, lists: bool) -> None:
    bucket = s3.bucket()
    for i, odd in enumerate(ODD):
        s3.client.put_object(Bucket=bucket, Key=f"d/x{odd}y.bin", Body=np.full(9, i, "<u4").tobytes())
    s3.lists = lists
    try:
        for i, odd in enumerate(ODD):
            assert of_moto(s3, f"s3://{bucket}/d/x{odd}y.bin")[0].tolist() == [i] * 9, odd
    finally:
        s3.lists = True


def test_files_that_are_in_folders_below_are_named(s3: Faulty, tmp_path: Path) -> None:
    for place in (tmp_path, None):
        folder = tmp_path / "d"
        (folder / "train").mkdir(parents=True, exist_ok=True)
        np.arange(9, dtype="<u4").tofile(folder / "train" / "x.bin")
        with pytest.raises(wr.NotFoundError, match=r"d/train(.|\n)*open that folder"):
            wr.open(folder, format="tokens") if place else of_moto(s3, s3.put(folder), format="tokens")
