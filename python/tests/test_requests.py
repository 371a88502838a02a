"""How often a store is asked: once a block and epoch, not at all for what is kept, and in few rounds for the first batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from web_server import Rounds, WebServer

import windrow as wr

# 25 blocks of 8 MiB, of 4 KiB a sample.
BLOCKS, ROWS, BATCH = 25, 1024, 256
DATA = BLOCKS * (8 << 20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    folder = tmp_path_factory.mktemp("web")
    # A label more than whole samples.
    np.arange(DATA // 4 + 1, dtype="<u4").tofile(folder / "tokens.bin")
    server = WebServer(folder)
    yield server
    server.stop()


def loader(server: WebServer, order: wr.Blocks, **options: Any) -> wr.Loader:
    data = wr.open(f"{server.url}/tokens.bin", dtype="uint32", **options)
    loader = wr.Loader(data.pack(ROWS), BATCH, seed=4, shuffle=order, epochs=3)
    # What tells the data from another: its first bytes and its last.
    loader.state_dict()
    server.requests.clear()
    return loader


def right(batch: Any, here: wr.Loader) -> bool:
    return bool((batch["input_ids"] == next(here)["input_ids"]).all())


@pytest.mark.parametrize(("part", "gets"), [(1, (26, 0, 0)), (1 / 2, (26, 13, 13))])
def test_a_block_is_asked_for_once_an_epoch(server: WebServer, tmp_path: Path, part: float, gets: Any) -> None:
    order = wr.Blocks()
    here = wr.Loader(wr.open(server.folder / "tokens.bin", dtype="uint32").pack(ROWS), BATCH, seed=4, shuffle=order).stream()
    # What is not kept on disk is held in memory, or asked for once more.
    far = loader(server, order, cache=tmp_path, cache_limit=int(part * DATA) + (1 << 20))
    found = []
    for _ in range(3):
        assert all(right(batch, here) for batch in far)
        assert {method for method, _, _ in server.requests} <= {"GET"}
        found.append(len(server.requests))
        server.requests.clear()
    assert all(n <= most for n, most in zip(found, gets, strict=True)), found


@pytest.mark.parametrize("order", [wr.Blocks(), wr.Blocks(lanes=4, rows=64, pool=1)])
@pytest.mark.parametrize("step", [0, 77])
def test_the_first_batch_takes_few_round_trips(server: WebServer, order: Any, step: int) -> None:
    here = wr.Loader(wr.open(server.folder / "tokens.bin", dtype="uint32").pack(ROWS), BATCH, seed=4, shuffle=order, epochs=3)
    far = loader(server, order, cache_limit=0)
    state = {**far.state_dict(), "samples": step * BATCH}
    far.load_state_dict(state)
    here.load_state_dict(state)
    server.rounds = Rounds()
    try:
        batch, rounds = next(far), server.rounds.count
        assert right(batch, here)
        assert rounds <= 4
    finally:
        server.rounds.stop()
        server.rounds = None
        far.close()
