"""How many bytes a store sends for each byte that a run reads, where not all of the data is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from web_server import WebServer

import windrow as wr

MOST = 1.3
BATCH = 32
# Bytes of a sample, and of all: a request takes a server of Python a millisecond.
SIZES = {2048: 6 << 20, 16384: 16 << 20, 65536: 32 << 20}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    folder = tmp_path / "web"
    folder.mkdir()
    server = WebServer(folder)
    yield server
    server.stop()


def sent(server: WebServer) -> int:
    """Bytes of data that were sent since the last time this was asked."""
    ranges = [asked.removeprefix("bytes=").split("-") for _, _, asked in server.requests if asked]
    server.requests.clear()
    return sum(int(last) + 1 - int(start) for start, last in ranges)


def views(server: WebServer, sample: int, **options: Any) -> tuple[wr.View, wr.View]:
    """Samples of ``sample`` bytes behind a URL and in a file: each begins a token before the one before ends."""
    path = server.folder / "tokens.bin"
    np.arange(SIZES[sample] // 4, dtype="<u4").tofile(path)
    tokens = sample // 4 - 1
    far = wr.open(f"{server.url}/{path.name}", dtype="uint32", **options)
    return far.pack(tokens), wr.open(path, dtype="uint32").pack(tokens)


@pytest.mark.parametrize("kept", [0, 0.05, 0.25, 0.5])
@pytest.mark.parametrize("sample", SIZES)
def test_samples_in_a_global_order_come_without_what_is_between(
    server: WebServer, tmp_path: Path, sample: int, kept: float
) -> None:
    size = SIZES[sample]
    ahead = size // 16
    far, near = views(server, sample, cache=tmp_path / "cache", cache_limit=int(kept * size), read_ahead=ahead)
    common = {"batch_size": BATCH, "seed": 3, "epochs": 2}
    server.requests.clear()
    there = wr.Loader(far, **common)
    here = wr.Loader(near, **common).stream()
    received = delivered = 0
    for _ in range(2):
        for step, batch in enumerate(there):
            assert (batch["input_ids"] == next(here)["input_ids"]).all()
            delivered += BATCH * sample
            # From the beginning on, and not only when all was read.
            if step % 16 == 15:
                received += sent(server)
                assert received <= MOST * (delivered + ahead), step
    assert delivered > 1.8 * size
    received += sent(server)
    assert received <= MOST * delivered
    stats = there.stats()
    assert received / delivered / 1.1 < stats["amplification"] <= MOST
    assert abs(stats["received_bytes"] - received) < 1 << 17


@pytest.mark.parametrize("kept", [0, 0.05, 0.5])
def test_blocks_whose_pools_fit_into_memory_come_once(server: WebServer, tmp_path: Path, kept: float) -> None:
    size = SIZES[16384]
    # Eight blocks at a time, in a sixteenth of the data; what the cache holds is not among them for long.
    order = wr.Blocks(bytes=size // 128, lanes=4, rows=BATCH // 4, pool=1)
    far, near = views(server, 16384, cache=tmp_path / "cache", cache_limit=int(kept * size), read_ahead=size // 12)
    common: dict[str, Any] = {"batch_size": BATCH, "seed": 3, "epochs": 2, "shuffle": order}
    server.requests.clear()
    here = wr.Loader(near, **common).stream()
    for batch in wr.Loader(far, **common).stream():
        assert (batch["input_ids"] == next(here)["input_ids"]).all()
    assert sent(server) <= MOST * 2 * size


def test_pools_need_memory_unless_the_cache_takes_all_of_the_data(server: WebServer, tmp_path: Path) -> None:
    size = SIZES[16384]
    order = wr.Blocks(bytes=size // 64, lanes=4, rows=BATCH // 4, pool=1)

    def loader(kept: float) -> wr.Loader:
        far, _ = views(server, 16384, cache=tmp_path / "cache", cache_limit=int(kept * size), read_ahead=size // 12)
        return wr.Loader(far, BATCH, shuffle=order)

    for kept in (0, 0.5):
        with pytest.raises(wr.ConfigError, match="2 pools of its blocks take 2MiB") as raised:
            loader(kept)
        assert "read_ahead=" in str(raised.value.hint) and "cache_limit" not in str(raised.value.hint)
    assert loader(1.1).batch_size == BATCH


@pytest.mark.parametrize("batches", [0, 9])
def test_the_first_batch_of_an_order_by_blocks_waits_for_its_rows_alone(server: WebServer, batches: int) -> None:
    far, near = views(server, 65536, cache_limit=0)
    # Four blocks of 8 MiB, of which all have rows in the first batch.
    order = wr.Blocks(size=128, lanes=4, rows=8, pool=1)
    there, here = (wr.Loader(view, batch_size=BATCH, seed=3, epochs=1, shuffle=order) for view in (far, near))
    for loader in (there, here):
        loader.load_state_dict({**loader.state_dict(), "samples": BATCH * batches})
    server.requests.clear()
    server.holds_back = (1 << 20, threading.Event())
    try:
        batch = next(there)
    finally:
        server.holds_back[1].set()
    assert (batch["input_ids"] == next(here)["input_ids"]).all()
    for batch, expected in zip(there, here, strict=True):
        assert (batch["input_ids"] == expected["input_ids"]).all()
    assert sent(server) <= MOST * SIZES[65536]


def test_documents_in_a_new_order_come_with_their_blocks(server: WebServer, tmp_path: Path) -> None:
    """With ``scope="block"`` an epoch in blocks of 8 MiB asks for little more than one whose documents keep their order."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(500, 1524, 24_000)
    wr.write(server.folder / "m", (rng.integers(2, 50_000, n, dtype=np.uint16) for n in lengths), to="megatron")
    received = {}
    for reshuffle in (False, True):
        data = wr.open(f"{server.url}/m.bin", cache=tmp_path / str(reshuffle), cache_limit=32 << 20, read_ahead=16 << 20)
        options = {"reshuffle": True, "scope": "block"} if reshuffle else {}
        view = data.pack(2048, **options)
        loader = wr.Loader(view, BATCH, shuffle=wr.Blocks(bytes=8 << 20, lanes=2, pool=1), seed=3, epochs=2)
        server.requests.clear()
        rows = sum(len(batch["input_ids"]) for batch in loader.stream())
        assert rows > 1.9 * len(view)
        received[reshuffle] = sent(server)
    assert received[False] > 2 * lengths.sum()
    assert received[True] <= 1.35 * received[False]
