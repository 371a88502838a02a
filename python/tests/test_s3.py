"""Data that boto3 put into S3 is the data of the local files: records, batches, states, in forks and over https."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import foreign_cases
import numpy as np
import pytest
from foreign_cases import GOLDEN, same
from s3_server import Certificate, S3Server

import windrow as wr


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


# Files of other programs.


def outcome(path: Path | str, **options: Any) -> Any:
    """The format and the records, or the kind of error."""
    try:
        data = wr.open(path, **options)
        return data.format, list(data)
    except (wr.WindrowError, MemoryError) as error:
        return type(error), str(error)


GROUPS = ["arrow", "litdata", "mds", "parquet", "records", "series", "tokens", "webdataset"]


@pytest.mark.parametrize("group", GROUPS)
def test_golden_files_read_alike_good_and_broken(s3: S3Server, tmp_path: Path, group: str) -> None:
    bucket = s3.put(GOLDEN / group)
    for name in foreign_cases.names(group):
        case = json.loads((GOLDEN / group / name / "case.json").read_text())
        url = f"{bucket}/{name}/{case['open']}".removesuffix("/.")
        kind, here = outcome(GOLDEN / group / name / case["open"], **case["options"])
        also, there = outcome(url, store_options=s3.options, cache=tmp_path, timeout=30, **case["options"])
        assert also == kind, f"{url}: {there}"
        assert isinstance(kind, type) or same(there, here), url


# Batches and states.

N = 3000


def tokens(folder: Path) -> None:
    np.random.default_rng(1).integers(0, 60_000, 24 * N, dtype=np.uint16).tofile(folder / "tokens.bin")


def npy(folder: Path) -> None:
    np.save(folder / "series.npy", np.random.default_rng(2).standard_normal((8, 9 * N)).astype("float32"))


def rows(to: str, name: str = "out", **options: Any) -> Any:
    def make(folder: Path) -> None:
        random = np.random.default_rng(3)
        rows = [{"n": i, "text": f"row {i} " * (i % 40), "x": random.standard_normal(20)} for i in range(N)]
        wr.write(folder / name, rows, to=to, **options)

    return make


CASES: dict[str, tuple[Any, str, dict[str, Any], Any]] = {
    "tokens": (tokens, "tokens.bin", {"dtype": "uint16"}, lambda data: data.pack(24)),
    "npy": (npy, "series.npy", {}, lambda data: data.windows(context_length=60, prediction_length=12, stride=24)),
    "mds": (rows("mds", size_limit=200_000), "out", {}, lambda data: data.rows()),
    "mds, compressed": (rows("mds", size_limit=200_000, compression="zstd"), "out", {}, lambda data: data.rows()),
    "litdata": (rows("litdata", chunk_bytes=200_000), "out", {}, lambda data: data.rows()),
    "parquet": (rows("parquet", name="out.parquet"), "out.parquet", {}, lambda data: data.rows()),
    "webdataset": (rows("webdataset", size_limit=200_000), "out", {}, lambda data: data.rows()),
}


# What AWS's own tools read, and what windrow's `store_options` call it.
ENVIRONMENT = {
    "AWS_ENDPOINT_URL": "endpoint_url",
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_REGION": "region",
}


def plain(batch: Any) -> Any:
    """What two batches are compared by."""
    if isinstance(batch, dict):
        return {name: plain(value) for name, value in batch.items()}
    if isinstance(batch, list):
        return [plain(value) for value in batch]
    return (batch.dtype.str, batch.shape, batch.tobytes()) if isinstance(batch, np.ndarray) else batch


def batches(loader: wr.Loader) -> list[Any]:
    return [plain(batch) for batch in loader.stream()]


@pytest.mark.parametrize("name", CASES)
def test_batches_are_those_of_the_local_files(s3: S3Server, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, path, options, view = CASES[name]
    folder = tmp_path / "data"
    folder.mkdir()
    make(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    url = f"{s3.put(folder)}/{path}"
    here = view(wr.open(folder / path, **options))
    given = {"store_options": s3.options}
    for limit, ranks in ((None, 3), (size // 2, 2), (0, 1)):
        cache = tmp_path / f"cache {limit}"
        there = view(wr.open(url, cache=cache, cache_limit=limit, **given, **options))
        for rank in range(ranks):
            common = {"global_batch_size": 150, "seed": 7, "epochs": 3, "rank": rank, "world_size": ranks}
            loaders = [wr.Loader(view, **common) for view in (here, there)]
            assert loaders[0].plan == loaders[1].plan
            expected = batches(loaders[0])
            assert len(expected) == 3 * (len(here) // 150)
            assert batches(loaders[1]) == expected, (limit, rank)
        assert (s3.compare(cache) == 0) == (limit == 0)
        # From here on as AWS's own tools find the store.
        for variable, option in ENVIRONMENT.items():
            monkeypatch.setenv(variable, s3.options[option])
        given = {}


def test_a_run_that_began_locally_continues_from_s3_on_other_ranks(s3: S3Server, tmp_path: Path) -> None:
    tokens(tmp_path)
    views = [
        wr.open(path, dtype="uint16", cache=tmp_path / "cache", **options).pack(24)
        for path, options in [(tmp_path / "tokens.bin", {}), (s3.put(tmp_path / "tokens.bin"), {"store_options": s3.options})]
    ]
    common = {"global_batch_size": 60, "seed": 4, "epochs": 2}
    expected = [batch["input_ids"].tolist() for batch in wr.Loader(views[0], **common).stream()]
    found, state = [], None
    # The third part goes over the border of the epochs.
    for view, ranks, steps in [(views[0], 2, 13), (views[1], 3, 20), (views[1], 1, 40), (views[0], 4, 1), (views[1], 2, None)]:
        loaders = [wr.Loader(view, rank=rank, world_size=ranks, **common) for rank in range(ranks)]
        for loader in loaders if state else []:
            loader.load_state_dict(state)
        streams = [loader.stream() for loader in loaders]
        for batch in itertools.islice(zip(*streams, strict=True), steps):
            found.append([row for part in batch for row in part["input_ids"].tolist()])
        states = [loader.state_dict() for loader in loaders]
        assert all(other == states[0] for other in states)
        state = json.loads(json.dumps(states[0]))
    assert found == expected


# TLS, forks.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def secure(certificate: Certificate) -> Iterator[S3Server]:
    server = S3Server(certificate)
    yield server
    server.stop()


def test_a_certificate_is_trusted_when_that_is_said(
    secure: S3Server, certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens(tmp_path)
    url = secure.put(tmp_path / "tokens.bin")
    here = wr.open(tmp_path / "tokens.bin", dtype="uint16")[0]

    def there(**options: Any) -> Any:
        return wr.open(url, dtype="uint16", cache_limit=0, store_options={**secure.options, **options})[0]

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(wr.IoError, match=r"certificate(.|\n)*SSL_CERT_FILE"):
        there()
    assert np.array_equal(there(allow_invalid_certificates=True), here)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.path))
    assert np.array_equal(there(), here)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_forks_are_safe(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    if scheme == "https":
        monkeypatch.setenv("SSL_CERT_FILE", str(request.getfixturevalue("certificate").path))
    server = request.getfixturevalue("secure" if scheme == "https" else "s3")
    # Each sample says where it stood.
    n = 1 << 22
    np.arange(n, dtype="<u4").tofile(tmp_path / "tokens.bin")
    url = server.put(tmp_path / "tokens.bin")
    options = {"dtype": "uint32", "store_options": server.options, "timeout": 60}
    kept = wr.open(url, cache=tmp_path / "cache", **options).pack(16)
    passing = wr.open(url, cache_limit=0, read_ahead=1 << 20, **options).pack(16)
    random = np.random.default_rng(5)

    def right(view: wr.View, at: int) -> bool:
        return view[at]["input_ids"].tolist() == list(range(16 * at, 16 * at + 16))

    for turn in range(50):
        view = (kept, passing)[turn % 2]
        before, after, of_child = (int(at) for at in random.integers(0, n // 16 - 1, 3))
        assert right(view, before)
        child = os.fork()
        if child == 0:
            os._exit(0 if right(view, of_child) else 1)
        assert right(view, after)
        assert os.waitpid(child, 0)[1] == 0
    assert server.compare(tmp_path / "cache") > 40


# What there is beside the right endpoint, in variables and in files: boto3 says which one goes first.
WRONG = "http://127.0.0.1:1"
ENDPOINTS: dict[str, tuple[dict[str, str], str]] = {
    "of all services": ({"AWS_ENDPOINT_URL": "RIGHT"}, ""),
    "of S3, and of all": ({"AWS_ENDPOINT_URL_S3": "RIGHT", "AWS_ENDPOINT_URL": WRONG}, ""),
    "variables before a profile": ({"AWS_ENDPOINT_URL": "RIGHT"}, f"[default]\nendpoint_url = {WRONG}\nservices = none\n"),
    "of the default profile": ({}, "[default]\nendpoint_url = RIGHT\n"),
    "of a profile": ({"AWS_PROFILE": "work"}, f"[default]\nendpoint_url = {WRONG}\n[profile work]\nendpoint_url = RIGHT\n"),
    "of its services": (
        {"AWS_PROFILE": "work"},
        f"[profile work]\nservices = mine\nendpoint_url = {WRONG}\n"
        f"[services mine]\nsqs =\n  endpoint_url = {WRONG}\ns3 =\n  # here\n  addressing_style = path\n  endpoint_url = RIGHT\n"
        f"[services other]\ns3 =\n  endpoint_url = {WRONG}\n",
    ),
    "of services without S3": (
        {"AWS_PROFILE": "my work"},
        f'[profile "my work"]\n  services = mine\n  endpoint_url = RIGHT\n[services mine]\n  sqs =\n    endpoint_url = {WRONG}\n',
    ),
    "two names of profiles": (
        {"AWS_DEFAULT_PROFILE": "a", "AWS_PROFILE": "b"},
        f"[profile a]\nendpoint_url = RIGHT\n[profile b]\nendpoint_url = {WRONG}\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDPOINTS)
def test_the_endpoint_is_the_one_that_boto3_finds(s3: S3Server, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables, config = ENDPOINTS[name]
    tokens(tmp_path)
    url = s3.put(tmp_path / "tokens.bin")
    keys = {variable: s3.options[ENVIRONMENT[variable]] for variable in ENVIRONMENT if variable != "AWS_ENDPOINT_URL"}
    for variable, value in (keys | variables).items():
        monkeypatch.setenv(variable, value.replace("RIGHT", s3.url))
    (tmp_path / "config").write_text(config.replace("RIGHT", s3.url))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))

    def length(timeout: float = 5, **options: Any) -> int:
        return len(wr.open(url, dtype="uint16", cache_limit=0, timeout=timeout, **options)[0])

    assert boto3.session.Session().client("s3").meta.endpoint_url == s3.url
    assert length() == 24 * N
    # What is given goes before all of it; and one switch leaves all of it out.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", WRONG)
    given = {"store_options": {"endpoint_url": s3.url}}
    for ignored in ("false", "true"):
        monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", ignored)
        assert boto3.session.Session().client("s3", endpoint_url=s3.url).meta.endpoint_url == s3.url
        assert length(**given) == 24 * N
    assert "127.0.0.1" not in boto3.session.Session().client("s3").meta.endpoint_url
    with pytest.raises(wr.IoError) as raised:
        length(timeout=0.5)
    assert "127.0.0.1" not in str(raised.value), raised.value


def test_services_that_a_profile_names_in_vain(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("[default]\nservices = mine\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(wr.ConfigError, match="mine") as raised:
        wr.open("s3://bucket/x.bin", timeout=5)
    assert "[services mine]" in str(raised.value.hint)
