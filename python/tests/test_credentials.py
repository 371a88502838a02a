"""Keys that expire in mid run: they are read again where they come from, and the run continues."""

from __future__ import annotations

import json
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from s3_server import Certificate, S3Server
from web_server import WebServer

import windrow as wr

EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
N = 2_000_000


class Rotating(S3Server):
    """Takes one key at a time; others have expired."""

    def __init__(self, certificate: Certificate | None = None) -> None:
        self.key = "KEY0"
        super().__init__(certificate, hook=self.refuse)

    def refuse(self, environ: dict[str, Any]) -> tuple[int, bytes] | None:
        signed = re.search("Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        # boto3 puts the data there.
        if signed is None or signed[1] in ("AKEY", self.key):
            return None
        return 400, EXPIRED


class Exchanging(Rotating):
    """A token service, too: the key that it gives has the number of the token."""

    def __init__(self, certificate: Certificate) -> None:
        self.tokens: list[str] = []
        super().__init__(certificate)

    def refuse(self, environ: dict[str, Any]) -> tuple[int, bytes] | None:
        asked = parse_qs(environ["QUERY_STRING"])
        if asked.get("Action") != ["AssumeRoleWithWebIdentity"]:
            return super().refuse(environ)
        (token,), in_an_hour = asked["WebIdentityToken"], time.gmtime(time.time() + 3600)
        self.tokens.append(token)
        of = {
            "AccessKeyId": f"KEY{token.removeprefix('token')}",
            "SecretAccessKey": "ASECRET",
            "SessionToken": token,
            "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", in_an_hour),
        }
        keys = "".join(f"<{name}>{value}</{name}>" for name, value in of.items())
        result = f"<AssumeRoleWithWebIdentityResult><Credentials>{keys}</Credentials></AssumeRoleWithWebIdentityResult>"
        return 200, f"<AssumeRoleWithWebIdentityResponse>{result}</AssumeRoleWithWebIdentityResponse>".encode()


@pytest.fixture(scope="module")
def s3() -> Iterator[Rotating]:
    server = Rotating()
    yield server
    server.stop()


@pytest.fixture
def url(s3: Rotating, tmp_path: Path) -> str:
    s3.key = "KEY0"
    np.arange(N, dtype="<u4").tofile(tmp_path / "x.bin")
    return s3.put(tmp_path / "x.bin")


def keys(number: int) -> dict[str, str]:
    return {"access_key_id": f"KEY{number}", "secret_access_key": "ASECRET"}


def of_profile(folder: Path) -> tuple[Callable[[int], None], dict[str, Any]]:
    def write(number: int) -> None:
        lines = [f"aws_{name} = {value}" for name, value in keys(number).items()]
        (folder / "credentials").write_text("\n".join(["[default]", *lines]))

    return write, {}


def of_process(folder: Path) -> tuple[Callable[[int], None], dict[str, Any]]:
    said = folder / "said.json"
    (folder / "config").write_text(f"[default]\ncredential_process = cat '{said}'\n")

    def write(number: int) -> None:
        said.write_text(json.dumps({"Version": 1, "AccessKeyId": f"KEY{number}", "SecretAccessKey": "ASECRET"}))

    return write, {"credential_process": True}


NUMBER = [0]


def from_here() -> dict[str, str]:
    return keys(NUMBER[0])


def of_function(folder: Path) -> tuple[Callable[[int], None], dict[str, Any]]:
    return lambda number: NUMBER.__setitem__(0, number), {"credentials": from_here}


def of_closure(folder: Path) -> tuple[Callable[[int], None], dict[str, Any]]:
    own = [0]
    return lambda number: own.__setitem__(0, number), {"credentials": lambda: keys(own[0])}


@pytest.mark.parametrize("make", [of_profile, of_process, of_function, of_closure])
def test_keys_are_read_again_where_they_come_from(
    s3: Rotating, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    write, given = make(tmp_path)
    write(0)
    options = {"endpoint_url": s3.url, "region": "us-east-1", **given}
    ds = wr.open(url, dtype="uint32", cache_limit=0, timeout=30, store_options=options)
    view = ds.pack(1000)
    assert view[0]["input_ids"][0] == 0
    # Reading continues with other keys, by number and in a loader.
    for number in (1, 2):
        s3.key = f"KEY{number}"
        write(number)
        at = number * 600
        assert view[at]["input_ids"][0] == at * 1000
    s3.key = "KEY3"
    write(3)
    batches = list(wr.Loader(view, 100, epochs=1, shuffle=False))
    assert [int(row[0]) for batch in batches for row in batch["input_ids"]] == [1000 * i for i in range(100 * len(batches))]
    assert len(batches) == len(view) // 100
    # Where the same keys stand there, nothing else can be done.
    s3.key = "KEY4"
    with pytest.raises(wr.IoError, match=r"ExpiredToken(.|\n)*renew them"):
        wr.open(url, dtype="uint32", cache_limit=0, store_options=options)


def test_the_token_of_a_web_identity_is_exchanged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Certificate(tmp_path)
    s3 = Exchanging(certificate)
    try:
        np.arange(N, dtype="<u4").tofile(tmp_path / "x.bin")
        url = s3.put(tmp_path / "x.bin")
        file = tmp_path / "token"
        file.write_text("token0")
        for name, value in [
            ("SSL_CERT_FILE", certificate.path), ("AWS_WEB_IDENTITY_TOKEN_FILE", file), ("AWS_ENDPOINT_URL_STS", s3.url),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader"), ("AWS_SHARED_CREDENTIALS_FILE", tmp_path / "none"),
        ]:  # fmt: skip
            monkeypatch.setenv(name, str(value))
        options = {"endpoint_url": s3.url, "region": "us-east-1"}
        view = wr.open(url, dtype="uint32", cache_limit=0, timeout=30, store_options=options).pack(1000)
        assert view[0]["input_ids"][0] == 0
        # Before its hour is over the store takes the key no more, and another token is there.
        s3.key = "KEY1"
        file.write_text("token1")
        assert view[600]["input_ids"][0] == 600_000
        s3.key = "KEY2"
        file.write_text("token2")
        batches = list(wr.Loader(view, 100, epochs=1, shuffle=False))
        assert [int(row[0]) for batch in batches for row in batch["input_ids"]] == list(range(0, 100_000 * len(batches), 1000))
        assert s3.tokens == ["token0", "token1", "token2"]
        # The same token gives the same key.
        s3.key = "KEY3"
        with pytest.raises(wr.IoError, match=r"ExpiredToken(.|\n)*renew them"):
            wr.open(url, dtype="uint32", cache_limit=0, store_options=options)
    finally:
        s3.stop()


def in_another_process(url: str, options: dict[str, Any], answers: Any) -> None:
    try:
        answers.put(len(wr.open(url, dtype="uint32", cache_limit=0, store_options=options)[0]))
    except wr.WindrowError as error:
        answers.put(str(error))


def test_a_process_is_run_only_where_that_is_allowed(
    s3: Rotating, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    (tmp_path / "config").write_text(f"[default]\ncredential_process = touch '{tmp_path}/ran'\n")
    with pytest.raises(wr.UnsupportedError, match="credential_process") as raised:
        wr.open(url, store_options={"endpoint_url": s3.url})
    assert "credential_process" in str(raised.value.hint) and not (tmp_path / "ran").exists()


def test_a_function_of_a_module_is_found_by_other_processes(s3: Rotating, url: str) -> None:
    NUMBER[0] = 0
    options = {"endpoint_url": s3.url, "region": "us-east-1", "credentials": from_here}
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    worker = context.Process(target=in_another_process, args=(url, options, answers))
    worker.start()
    assert answers.get(timeout=120) == N
    worker.join()

    def fails() -> dict[str, str]:
        raise ValueError("no vault")

    with pytest.raises(wr.ConfigError, match="no vault"):
        wr.open(url, store_options={**options, "credentials": fails})


def test_what_was_fetched_by_one_signature_is_there_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    np.arange(300_000, dtype="<u4").tofile(tmp_path / "web" / "x.bin")
    server = WebServer(tmp_path / "web")
    try:
        for signature in ("0a", "0b"):
            server.requests.clear()
            url = f"{server.url}/x.bin?X-Amz-Date={signature}&X-Amz-Signature={signature}"
            ds = wr.open(url, dtype="uint32", cache=tmp_path / "kept")
            assert ds[0].tolist() == list(range(300_000))
        assert [method for method, path, _ in server.requests if path.startswith("/x.bin?")] == ["HEAD"]
    finally:
        server.stop()
