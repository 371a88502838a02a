"""`wr.manifest`, `wr.cache` and `wr.bench` give what their commands print as JSON."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from web_server import WebServer

import windrow as wr


def printed(*line: object) -> dict[str, Any]:
    """What a command prints, without what all of them say."""
    done = subprocess.run([sys.executable, "-m", "windrow", *map(str, line), "--json"], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found.pop("version") == 1 and found.pop("command") == line[0]
    return found


def kinds(found: Any) -> Any:
    """The names of a dict within dicts, and the types of its values."""
    match found:
        case dict():
            return {name: kinds(value) for name, value in found.items()}
        case [first, *_]:
            return [kinds(first)]
        case _:
            return type(found).__name__


def refused(*line: object) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "windrow", *map(str, line), "--json"], capture_output=True, text=True)
    assert done.returncode != 0
    error: dict[str, Any] = json.loads(done.stdout)["error"]
    return error


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    folder = tmp_path / "lines"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    return folder


def test_a_manifest_is_that_of_the_command(lines: Path, tmp_path: Path) -> None:
    listed = wr.manifest(lines)
    by_function = (lines / "windrow.json").read_bytes()
    (lines / "windrow.json").unlink()
    assert listed == printed("manifest", lines) == {"out": str(lines / "windrow.json"), "files": 2, "bytes": 36, "format": "jsonl"}
    assert (lines / "windrow.json").read_bytes() == by_function

    out = tmp_path / "own.json"
    assert wr.manifest(lines, out=out)["out"] == str(out) and out.read_bytes() == by_function
    out.write_text("something else")
    with pytest.raises(wr.ExistsError, match="there already") as error:
        wr.manifest(lines, out=out)
    assert error.value.hint == "overwrite=True replaces it"
    assert refused("manifest", lines, "--out", out)["hint"] == "--overwrite replaces it"
    assert wr.manifest(lines, out=out, overwrite=True) == printed("manifest", lines, "--out", out)
    assert out.read_bytes() == by_function


def test_a_manifest_is_refused_as_by_the_command(lines: Path, tmp_path: Path) -> None:
    wr.write(tmp_path / "shards", [[1, 2]], to="shards", dtype="uint16")
    for path, kind, options in [
        (tmp_path / "none", wr.NotFoundError, {}),
        (tmp_path / "shards", wr.ExistsError, {}),
        (lines / "a.jsonl", wr.ConfigError, {}),
        (lines, wr.ConfigError, {"out": lines / "a.jsonl", "overwrite": True}),
    ]:
        before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
        with pytest.raises(kind) as error:
            wr.manifest(path, **options)  # type: ignore[arg-type]
        typed = [part for name, value in options.items() for part in ([f"--{name}"] if value is True else [f"--{name}", value])]
        said = refused("manifest", path, *typed)
        assert str(error.value).splitlines()[0] == said["message"]
        assert before == {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(wr.ConfigError, match="of a file of its own"):
        wr.manifest(lines, overwrite=True)


def test_the_cache_is_what_the_command_lists_and_clears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WINDROW_CACHE_LIMIT", "1GB")
    assert wr.cache() == printed("cache") == {"folder": str(tmp_path / "cache"), "bytes": 0, "limit_bytes": 10**9, "entries": []}
    (tmp_path / "series.jsonl").write_text('{"sequence": [1.5, 2.5]}\n')
    ds = wr.open(tmp_path / "series.jsonl")
    held = wr.cache()
    assert held == printed("cache") and held["bytes"] > 0
    (entry,) = held["entries"]
    assert (entry["kind"], entry["source"], entry["is_open"]) == ("converted", str(tmp_path / "series.jsonl"), True)
    left = wr.cache(clear=True)
    assert left == printed("cache", "--clear") and left["cleared"]["removed"] == 0
    assert [entry["name"] for entry in left["cleared"]["left"]] == [entry["name"]]
    del ds
    assert wr.cache(clear=True)["cleared"] == {"removed": 1, "removed_bytes": held["bytes"], "left": []}
    assert wr.cache()["entries"] == []


def test_a_loader_is_measured_as_by_the_command(tmp_path: Path) -> None:
    np.arange(5_000, dtype=np.uint32).tofile(tmp_path / "t.bin")
    view = wr.open(tmp_path / "t.bin", format="tokens", dtype="uint32").pack(10)
    loader = view.loader(global_batch_size=4, rank=1, world_size=2, seed=3)
    next(loader)
    found = wr.bench(loader, seconds=0.05, num_threads=1)
    data = [tmp_path / "t.bin", "--format", "tokens", "--dtype", "uint32", "--pack", "10"]
    other = printed("bench", *data, "--global-batch-size", "4", "--seconds", "0.05", "--num-threads", "1")
    assert kinds(found) == kinds(other)
    for name in ("view", "samples", "batch_size"):
        assert found[name] == other[name], name
    assert (found["per_second"]["threads"], found["per_second"]["batch_bytes"]) == (1, other["per_second"]["batch_bytes"])
    assert found["per_second"]["samples"] > 0 and loader.samples == 4
    assert wr.bench(view, seconds=0.01)["batch_size"] == 32
    mixed = wr.mix({"a": (view, 0.5), "b": (view, 0.5)})
    assert wr.bench(mixed, seconds=0.01)["samples"] == len(view)


@pytest.mark.parametrize("options", [{"seconds": 0.0}, {"num_threads": 0}, {"rate": 5.0}, {"nodes": 2}, {"network": "1GB"}])
def test_what_makes_no_sense_is_refused_as_by_the_command(tmp_path: Path, options: dict[str, Any]) -> None:
    np.arange(1_000, dtype=np.uint32).tofile(tmp_path / "t.bin")
    view = wr.open(tmp_path / "t.bin", format="tokens", dtype="uint32").pack(10)
    ((name, value),) = options.items()
    with pytest.raises(wr.ConfigError) as error:
        wr.bench(view, **options)
    flag = f"--{name.replace('_', '-')}"
    said = refused("bench", tmp_path / "t.bin", "--format", "tokens", "--dtype", "uint32", "--pack", "10", flag, value)
    assert str(error.value).splitlines()[0] == said["message"].replace(flag, name)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    (tmp_path / "served").mkdir()
    np.arange(20_000, dtype=np.uint32).tofile(tmp_path / "served" / "t.bin")
    server = WebServer(tmp_path / "served")
    yield server
    server.stop()


def test_a_store_is_measured_as_by_the_command(server: WebServer) -> None:
    url = f"{server.url}/t.bin"
    view = wr.open(url, dtype="uint32", cache_limit=0).pack(10)
    found = wr.bench(view, rate=1.0, node_price=1000.0, nodes=2, network="1GB")
    line = ["bench", url, "--dtype", "uint32", "--cache-limit", "0", "--pack", "10", "--nodes", "2", "--network", "1GB"]
    other = printed(*line, "--rate", "1", "--node-price", "1000")
    assert kinds(found) == kinds(other) and "per_second" not in found
    for name in ("run", "requests_of_epoch", "choice", "type"):
        assert found[name] == other[name], name
    measured = {"latency_secs", "bandwidth", "room_bytes"}
    assert {k: v for k, v in found["known"].items() if k not in measured} == {k: v for k, v in other["known"].items() if k not in measured}
    assert found["choice"] == "each" and found["run"]["nodes"] == 2
    assert "per_second" in wr.bench(view, seconds=0.01)


NAMES = """
import sys
import windrow
first = [name for name in sys.modules if name.startswith("windrow.compat")]
assert not first, first
assert windrow.compat.oxidizr.create_dummy_data(10, 5).shape == (5,)
import windrow.compat.seqax
found = sorted(name for name in sys.modules if name.startswith("windrow.compat."))
assert "windrow.compat.dia" not in found and "windrow.compat.foundation_ts" not in found, found
try:
    windrow.compat.nope
except AttributeError:
    print("done")
"""


def test_names_of_other_packages_are_imported_when_they_are_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
