"""Data behind URLs: the batches of the local file, in every kind of worker, across faults, breaks and changes of rank."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hub_server import Hub
from web_server import WebServer

import windrow as wr

N = 200_001


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    folder = tmp_path / "web"
    folder.mkdir()
    np.arange(N, dtype=np.uint32).astype("<u4").tofile(folder / "tokens.bin")
    server = WebServer(folder)
    yield server
    server.stop()


def far(server: WebServer, **options: Any) -> wr.View:
    return wr.open(f"{server.url}/tokens.bin", dtype="uint32", **options).pack(50)


def near(server: WebServer) -> wr.View:
    return wr.open(server.folder / "tokens.bin", dtype="uint32").pack(50)


def ids(batches: Any) -> list[list[int]]:
    return [np.asarray(batch["input_ids"])[:, 0].tolist() for batch in batches]


@pytest.fixture(params=["disk", "memory"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return {"cache": tmp_path / "kept"} if request.param == "disk" else {"cache_limit": 0}


@pytest.mark.parametrize("shuffle", [True, False, wr.Blocks(size=100)])
def test_batches_are_those_of_the_local_file(server: WebServer, options: dict[str, Any], shuffle: Any) -> None:
    server.fails = set(range(3, 40, 7))
    for world_size in (1, 3):
        for rank in range(world_size):
            common = {"global_batch_size": 60, "seed": 5, "shuffle": shuffle, "rank": rank, "world_size": world_size, "epochs": 2}
            expected = ids(wr.Loader(near(server), **common))
            assert ids(wr.Loader(far(server, **options), **common)) == expected


def test_a_state_of_one_continues_with_the_other(server: WebServer, options: dict[str, Any]) -> None:
    common = {"global_batch_size": 60, "seed": 5}
    expected = ids(wr.Loader(near(server), epochs=1, **common))
    loader = wr.Loader(near(server), epochs=1, **common)
    first = ids([next(loader) for _ in range(7)])
    rest = []
    for rank in range(2):
        other = wr.Loader(far(server, **options), epochs=1, rank=rank, world_size=2, **common)
        other.load_state_dict(loader.state_dict())
        rest.append(ids(other))
    assert first + [a + b for a, b in zip(*rest, strict=True)] == expected


def test_what_was_kept_is_not_fetched_again(server: WebServer, tmp_path: Path) -> None:
    options = {"cache": tmp_path / "kept"}
    expected = ids(wr.Loader(near(server), 60, epochs=1))
    assert ids(wr.Loader(far(server, **options), 60, epochs=1)) == expected
    server.requests.clear()
    assert ids(wr.Loader(far(server, **options), 60, epochs=1)) == expected
    of_data = [method for method, path, _ in server.requests if path == "/tokens.bin"]
    assert of_data == ["HEAD"]
    # Damage is fetched again, never served.
    (data,) = (tmp_path / "kept").rglob("data")
    with data.open("r+b") as file:
        file.seek(100_000)
        file.write(b"\xff" * 50_000)
    assert ids(wr.Loader(far(server, **options), 60, epochs=1)) == expected
    assert ("GET", "/tokens.bin") in [request[:2] for request in server.requests]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_read_for_themselves(server: WebServer, options: dict[str, Any], start: str) -> None:
    view = far(server, **options)
    # The parent has threads and connections by then.
    assert int(view[0]["input_ids"][0]) == 0
    loader = torch.utils.data.DataLoader(view, batch_size=100, num_workers=2, multiprocessing_context=start, timeout=120)
    for _ in range(2):
        assert [int(first) for batch in loader for first in batch["input_ids"][:, 0]] == list(range(0, N - 50, 50))


def test_the_child_of_a_fork_and_its_parent_read_on(server: WebServer, options: dict[str, Any]) -> None:
    view = far(server, **options)
    for turn in range(20):
        assert int(view[turn]["input_ids"][0]) == 50 * turn
        child = os.fork()
        if child == 0:
            right = all(int(view[3000 + 10 * turn + i]["input_ids"][0]) == 50 * (3000 + 10 * turn + i) for i in range(3))
            os._exit(0 if right else 1)
        assert int(view[2000 + turn]["input_ids"][0]) == 50 * (2000 + turn)
        assert os.waitpid(child, 0)[1] == 0


def test_a_replaced_object_is_stale(server: WebServer) -> None:
    np.arange(2_000_000, dtype="<u4").tofile(server.folder / "tokens.bin")
    view = far(server, cache_limit=0)
    assert int(view[0]["input_ids"][0]) == 0
    np.ones(2_000_000, dtype="<u4").tofile(server.folder / "tokens.bin")
    with pytest.raises(wr.StaleError, match="replaced"):
        view[30_000]


def test_pickles_keep_the_options_and_recipes_do_not(server: WebServer) -> None:
    options = {"headers": {"Authorization": "Bearer secret-of-mine"}}
    view = far(server, cache_limit=0, store_options=options)
    again = pickle.loads(pickle.dumps(view))
    assert int(again[7]["input_ids"][0]) == 350
    assert b"secret-of-mine" in pickle.dumps(view)
    assert "secret-of-mine" not in str(wr.Loader(view, 10).recipe())


def test_what_is_wrong_is_said(server: WebServer) -> None:
    with pytest.raises(wr.NotFoundError, match="nothing.bin"):
        wr.open(f"{server.url}/nothing.bin")
    with pytest.raises(wr.NotFoundError, match=r"folder(.|\n)*lists no folders"):
        wr.open(f"{server.url}/folder")
    with pytest.raises(wr.ConfigError, match="no option"):
        far(server, store_options={"endpoint_ulr": "x"})
    with pytest.raises(wr.ConfigError, match="seconds"):
        far(server, timeout=0)
    with pytest.raises(wr.UnsupportedError, match="ftp"):
        wr.open("ftp://host/x")
    server.fails = set(range(10_000))
    with pytest.raises(OSError, match="gave up"):
        far(server, timeout=1)


@pytest.mark.parametrize("query", ["download=true", "X-Amz-Credential=key/20260101/region&X-Amz-Signature=0a"])
def test_a_query_does_not_hide_what_a_file_is_called(server: WebServer, query: str) -> None:
    (server.folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    assert len(wr.open(f"{server.url}/a.jsonl?{query}")) == 2
    view = wr.open(f"{server.url}/tokens.bin?{query}", dtype="uint32").pack(50)
    assert (view[1]["input_ids"] == near(server)[1]["input_ids"]).all()


@pytest.mark.parametrize("secret", ["password", "query"])
def test_what_a_url_keeps_secret_is_shown_nowhere(
    server: WebServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, secret: str
) -> None:
    def url(name: str) -> str:
        plain = f"{server.url}/{name}"
        return plain.replace("//", "//me:SECRET@", 1) if secret == "password" else f"{plain}?sig=SECRET"

    # Without dtype= a warning names the file.
    ds = wr.open(url("tokens.bin"), cache=tmp_path / "kept")
    view = ds.pack(50)
    loader = wr.Loader(view, 10)
    next(loader)
    with pytest.raises(wr.NotFoundError) as missing:
        wr.open(url("nothing.bin"))
    with pytest.raises(wr.UnsupportedError, match="not written into a job") as refused:
        wr.prep.plan("tokenize", url("a.jsonl"), tmp_path / "parts", tokenizer="bytes")
    assert missing.value.path == f"{server.url}/nothing.bin"
    assert f"{server.url}/tokens.bin" in caplog.text and not (tmp_path / "parts").exists()
    shown = [repr(ds), ds._repr_html_(), repr(view), view._repr_html_(), repr(loader), str(loader.state_dict()), caplog.text]
    shown += [str(wr.trace(loader, 0)), str(wr.coverage(loader, (0, 1)))]
    shown += [str(missing.value), str(refused.value), str(refused.value.path)]
    assert not [text for text in shown if "SECRET" in text]
    kept = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if b"SECRET" in path.read_bytes()]
    # These open the data again.
    assert "SECRET" in str(loader.recipe()) and (pickle.loads(pickle.dumps(view))[7]["input_ids"] == view[7]["input_ids"]).all()


def test_what_a_web_server_cannot_list_is_said(server: WebServer) -> None:
    wr.write(server.folder / "flat", [np.arange(50, dtype="uint32")], to="flat-tokens")
    for url, said in [("flat", "does not list the files"), ("nothing", None)]:
        with pytest.raises(wr.WindrowError, match=said) as raised:
            wr.open(f"{server.url}/{url}")
        assert not isinstance(raised.value, wr.CorruptError)
    command = [sys.executable, "-m", "windrow", "manifest", f"{server.url}/flat"]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 1 and "a web server does not list what it has" in told.stderr


def test_archives_are_verified_where_they_are(server: WebServer) -> None:
    np.savez_compressed(server.folder / "good.npz", a=np.arange(1000.0))
    found = wr.verify(f"{server.url}/good.npz")
    assert (found["problems"], found["checked_records"]) == ([], 1)
    damaged = server.folder / "damaged.npz"
    np.savez(damaged, a=np.arange(1000.0))
    written = bytearray(damaged.read_bytes())
    written[4000] ^= 1
    damaged.write_bytes(written)
    (problem,) = wr.verify(f"{server.url}/damaged.npz")["problems"]
    assert problem["file"] == f"{server.url}/damaged.npz#a.npy" and "CRC-32" in problem["expected"]


def test_what_takes_nothing_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.arange(100, dtype="<u4").tofile("tokens.bin")
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    ds = wr.open("tokens.bin", dtype="uint32")
    for url, hint in [
        ("https://host/out", "a path of this machine"),
        ("hf://datasets/owner/name/out", "huggingface-cli upload"),
    ]:
        with pytest.raises(wr.UnsupportedError, match="nothing is written to") as raised:
            wr.convert(ds, url, to="mds")
        assert url in str(raised.value) and hint in str(raised.value)
        with pytest.raises(wr.UnsupportedError, match="nothing is written to"):
            wr.write(url, iter([[1, 2]]), to="shards")
        with pytest.raises(wr.UnsupportedError, match="nothing is written to"):
            wr.tokenize("a.jsonl", url, tokenizer="bytes")
    with pytest.raises(wr.UnsupportedError, match="flat-tokens are written to local disks only"):
        wr.convert(ds, "s3://bucket/out", to="flat-tokens")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "tokens.bin"]


STORE_KEYS = {"requests", "received_bytes", "read_bytes", "amplification", "cache_hits", "cache_misses", "store_waited_secs", "retries", "hedged"}


def test_stats_tell_a_slow_store(server: WebServer, tmp_path: Path) -> None:
    loader = wr.Loader(near(server), 100, epochs=1)
    n_batches = sum(1 for _ in loader)
    local = loader.stats()
    assert local.keys() >= STORE_KEYS and not any(local[key] for key in STORE_KEYS)

    server.fails = {5}
    view = far(server, cache=tmp_path / "kept")
    loader = wr.Loader(view, 100, epochs=1)
    assert sum(1 for _ in loader) == n_batches
    stats = loader.stats()
    assert stats.keys() == local.keys()
    assert stats["samples"] == 100 * n_batches == local["samples"]
    # One of them was answered with 503 and sent again.
    assert stats["retries"] == (1 if len(server.requests) > 5 else 0)
    assert stats["requests"] == len(server.requests)
    assert N * 4 <= stats["received_bytes"] < N * 4 + (1 << 20)
    assert stats["cache_misses"] > 0 and stats["store_waited_secs"] > 0 and stats["cache_hits"] > 0
    # Of the opened data, not of the loader: another one of the same view counts on.
    assert wr.Loader(view, 100).stats()["requests"] == stats["requests"]

    # All of it is kept: it is looked for, and nothing of it is fetched.
    loader = wr.Loader(far(server, cache=tmp_path / "kept"), 100, epochs=1)
    assert sum(1 for _ in loader) == n_batches
    stats = loader.stats()
    assert (stats["received_bytes"], stats["cache_misses"]) == (0, 0) and stats["cache_hits"] > 0


def test_the_child_of_a_fork_counts_from_0(server: WebServer) -> None:
    view = far(server, cache_limit=0)
    loader = wr.Loader(view, 100)
    next(loader)
    loader.close()
    before = loader.stats()
    assert before["requests"] == len(server.requests) > 0
    child = os.fork()
    if child == 0:
        next(loader)
        stats = loader.stats()
        os._exit(stats["requests"] if stats["batches"] == 1 else 0)
    of_child = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert of_child == len(server.requests) - before["requests"] > 0
    assert loader.stats() == before
    assert pickle.loads(pickle.dumps(view)).loader(100).stats()["batches"] == 0


def bench(*options: str) -> Any:
    done = subprocess.run([sys.executable, "-m", "windrow", "bench", *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in options else done.stdout


def test_bench_measures_the_store_and_says_what_to_type(server: WebServer, tmp_path: Path) -> None:
    url = f"{server.url}/tokens.bin"
    kept = ["--dtype", "uint32", "--cache-limit", "0"]
    # A slow model and dear nodes: a request for each sample.
    found = bench(url, *kept, "--pack", "10", "--rate", "1", "--node-price", "1000", "--json")
    assert found["choice"] == "each" and all(limit["holds"] for limit in found["limits"]["each"])
    assert found["measured"]["latency_secs"] > 0 and found["measured"]["range_bytes"] == 4 * N
    assert found["gap_bytes"] == pytest.approx(found["measured"]["latency_secs"] * found["measured"]["bandwidth"])
    assert found["known"]["samples"] == 20_000 and found["requests_of_epoch"]["each"] == 20_000
    assert 'cache_limit=0' in found["type"][0] and "shuffle" not in found["type"][1]
    assert "per_second" not in found
    # Twice: what was fetched is not what is measured.
    ranges = [asked for _, _, asked in server.requests if asked]
    assert len(ranges) >= 25

    # A fast one on a cheap node.
    said = bench(url, *kept, "--pack", "10", "--rate", "1e6", "--node-price", "2.5")
    assert "FAILS" in said and "order  blocks: limits" in said and "shuffle=wr.Blocks()" in said and "--shuffle blocks" in said
    assert "cache  two pools of blocks take" in said and "`read_ahead` of a rank is" in said
    # The view has no blocks.
    said = bench(url, *kept, "--bins", "300000", "--rate", "1e6", "--node-price", "2.5")
    assert "order  none" in said and "bins" in said
    # It is kept where it is read again; the loader is measured where that is asked for.
    more = ["--dtype", "uint32", "--pack", "10", "--epochs", "2", "--rate", "1e6", "--seconds", "0.05", "--json"]
    found = bench(url, *more)
    assert found["choice"] == "kept" and found["per_second"]["samples"] > 0

    # None of this is for files of this machine.
    refused = subprocess.run([sys.executable, "-m", "windrow", "bench", str(server.folder / "tokens.bin"), "--rate", "5"], capture_output=True)
    assert refused.returncode == 2 and b"--rate is for data behind a URL" in refused.stderr


def test_a_manifest_lists_what_a_web_server_does_not(server: WebServer) -> None:
    rows = [{"n": i, "text": f"number {i}"} for i in range(100)]
    folder = server.folder / "shards"
    wr.write(folder, rows, to="mds")
    for name in ("windrow.json", "windrow.sums"):
        (folder / name).unlink()
    plan = wr.open(folder).rows().loader(4).plan
    with pytest.raises(wr.NotFoundError, match="windrow.json lists the files"):
        wr.open(f"{server.url}/shards", cache_limit=0)
    done = subprocess.run([sys.executable, "-m", "windrow", "manifest", str(folder)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "2 files" in done.stdout, done.stderr
    there = wr.open(f"{server.url}/shards", cache_limit=0)
    assert [there[i] for i in range(100)] == rows
    assert there.rows().loader(4).plan == wr.open(folder).rows().loader(4).plan == plan
    # What it says is compared with what comes.
    (shard,) = folder.glob("shard*")
    shard.write_bytes(shard.read_bytes() + b"\0")
    with pytest.raises(wr.StaleError, match="shard"):
        wr.open(f"{server.url}/shards", cache_limit=0)[3]
    with pytest.raises(wr.StaleError, match="windrow manifest"):
        wr.open(folder)


def test_a_name_of_the_hub_is_the_one_that_is_listed(tmp_path: Path) -> None:
    files = {f"data/{name}.bin": np.full(9, i, "<u2").tobytes() for i, name in enumerate(["a b", "a%20b", "at 00%3A00"])}
    hub = Hub({**files, "data/large%.bin": np.full(2000, 7, "<u2").tobytes()})
    options = {"store_options": {"endpoint_url": hub.endpoint}, "cache": tmp_path, "dtype": "uint16"}
    try:
        for i, name in enumerate(files):
            ds = wr.open(f"hf://datasets/owner/name/{name}", **options)
            assert np.asarray(ds[0]).tolist() == [i] * 9, name
        # The slashes of a revision may be escaped, as in the Hub's own paths.
        for revision in ("refs%2Fconvert%2Fparquet", "refs/convert/parquet", "~parquet", "refs/pr/3"):
            assert len(wr.open(f"hf://datasets/owner/name@{revision}/data", **options)) == 4, revision
            assert len(wr.open(f"hf://datasets/owner/name@{revision}/data/a*.bin", **options)) == 3, revision
        ds = wr.open("hf://datasets/owner/name/data", **options)
        assert [np.asarray(ds[i])[0] for i in range(len(ds))] == [0, 1, 2, 7]
    finally:
        hub.stop()
