"""A shuffle by blocks: every sample once, neighbours together, the same run on any number of ranks, numbers that are kept."""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr

SMALL = wr.Blocks(size=25)


def ids(batch: dict[str, Any]) -> list[int]:
    """Which samples stand in a batch."""
    return (batch["input_ids"][:, 0] // 16).tolist()


def test_an_epoch_has_every_sample_once_and_a_rank_reads_its_own_blocks(view: wr.View) -> None:
    loaders = [wr.Loader(view, global_batch_size=16, shuffle=SMALL, rank=rank, world_size=2) for rank in range(2)]
    epochs = [[sample for batch in loader for sample in ids(batch)] for loader in loaders for _ in range(2)]
    assert epochs[0] != epochs[1]
    for epoch in range(2):
        samples = epochs[epoch] + epochs[2 + epoch]
        assert len(set(samples)) == len(samples) == len(view) // 16 * 16
    blocks = [{sample // 25 for sample in epoch[:400]} for epoch in epochs]
    assert blocks[0] & blocks[1] and not blocks[0] & blocks[2]


def test_ranks_share_blocks_in_the_last_batches_of_an_epoch_alone(tmp_path: Path) -> None:
    # 321 blocks in 32 lanes of one row, the last block of one sample.
    np.arange(2561 * 16 + 1, dtype=np.uint16).tofile(tmp_path / "ids.bin")
    view = wr.open(tmp_path / "ids.bin", dtype="uint16").pack(16)
    lanes, rows, size, n_ranks, read = 32, 1, 8, 4, []
    for seed in range(20):
        epochs = []
        for rank in range(n_ranks):
            loader = wr.Loader(view, global_batch_size=32, shuffle=wr.Blocks(size=size), seed=seed, rank=rank, world_size=n_ranks)
            assert loader.recipe()["shuffle"]["blocks"] | {"pool": 0} == {"size": size, "lanes": lanes, "rows": rows, "pool": 0}
            epochs.append([{sample // size for sample in ids(batch)} for batch in loader])
        last = -(-lanes * (2 * size + rows) // 32)
        before = [set().union(*epoch[:-last]) for epoch in epochs]
        assert all(one.isdisjoint(other) for one, other in combinations(before, 2))
        read.append(sum(len(set().union(*epoch)) for epoch in epochs))
    assert max(read) > 321, "whole epochs share some"


def test_a_run_continues_exactly_on_other_ranks(view: wr.View) -> None:
    loader = wr.Loader(view, global_batch_size=16, shuffle=SMALL, seed=5)
    for _ in range(7):
        next(loader)
    state = json.loads(json.dumps(loader.state_dict()))
    ranks = [wr.Loader(view, global_batch_size=16, shuffle=SMALL, seed=5, rank=rank, world_size=3) for rank in range(3)]
    for rank in ranks:
        rank.load_state_dict(state)
    for _ in range(80):
        assert ids(next(loader)) == [sample for rank in ranks for sample in ids(next(rank))]


def test_another_batch_size_says_what_to_pass(view: wr.View) -> None:
    loader = wr.Loader(view, batch_size=16, shuffle=SMALL)
    next(loader)
    state = loader.state_dict()
    other = wr.Loader(view, batch_size=32, shuffle=SMALL)
    with pytest.raises(wr.MismatchError) as raised:
        other.load_state_dict(state)
    assert raised.value.hint is not None
    line = raised.value.hint.partition("shuffle=")[2]
    assert line == "wr.Blocks(size=25, lanes=4, rows=4, pool=3)"
    numbers = eval(line, {"wr": wr})
    larger = wr.Loader(view, batch_size=32, shuffle=numbers)
    larger.load_state_dict(state)
    assert ids(next(larger)) == ids(next(loader)) + ids(next(loader))


TOLD = """
    import logging, sys
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s")
    import windrow as wr
    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
    for _ in range(2):
        wr.Loader(view, batch_size=8, shuffle=wr.Blocks(size=26), rank=0, world_size=8)
"""


def told(said: str) -> list[str]:
    """What was said but for how well that mixes."""
    return [line for line in said.splitlines() if "mix badly" not in line]


def test_numbers_chosen_are_told_once(tokens: Path, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = "INFO shuffle=wr.Blocks(size=26, lanes=4, rows=16, pool=3)"
    assert told(run_script(TOLD, tokens)) == [numbers]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert told(run_script(TOLD, tokens)) == [
        numbers,
        "WARNING blocks in 4 lanes for 8 nodes: several nodes read the same blocks; lanes= gives more, smaller blocks "
        "(size=) make room for them",
    ]


def test_numbers_chosen_stand_in_the_recipe(view: wr.View) -> None:
    loader = wr.Loader(view, batch_size=8, shuffle=wr.Blocks(size=26))
    recipe = loader.recipe()
    assert recipe["shuffle"] == {"blocks": {"size": 26, "lanes": 4, "rows": 2, "pool": 3}}
    assert "shuffle:block-v1(size=26,lanes=4,rows=2,pool=3)" in loader.plan and "block-v1" in repr(loader)
    row = wr.trace(recipe, step=3, row=2)[0]
    assert row["sample"] == wr.trace(loader, step=3, row=2)[0]["sample"]
    for _ in range(3):
        next(loader)
    assert row["sample"] == ids(next(loader))[2]
    found = wr.find(loader, record=0, epoch=0, most=5)
    assert all(wr.trace(loader, step=at["step"], row=at["row"], epoch=0)[0]["sample"] == at["sample"] for at in found)


def test_blocks_of_bytes_hold_as_many_samples_as_they_are(view: wr.View) -> None:
    # Samples of 16 tokens of 2 bytes.
    for given in ("3200", "3.2kB", 3200):
        recipe = wr.Loader(view, batch_size=8, shuffle=wr.Blocks(bytes=given)).recipe()
        assert recipe["shuffle"]["blocks"]["size"] == 99
    assert wr.Loader(view, batch_size=8, shuffle=wr.Blocks()).recipe()["shuffle"]["blocks"]["size"] == len(view)


def test_blocks_are_values() -> None:
    all_given = wr.Blocks(size=2048, lanes=64, rows=4, pool=16)
    assert repr(all_given) == "Blocks(size=2048, lanes=64, rows=4, pool=16)"
    assert repr(wr.Blocks()) == repr(wr.Blocks(bytes="8MiB")) == "Blocks()"
    assert (all_given.size, all_given.lanes, all_given.rows, all_given.pool, all_given.bytes) == (2048, 64, 4, 16, 8 << 20)
    for blocks in (all_given, wr.Blocks(), wr.Blocks(bytes="1MB")):
        assert pickle.loads(pickle.dumps(blocks)) == blocks and hash(pickle.loads(pickle.dumps(blocks))) == hash(blocks)
    assert wr.Blocks() != all_given
    with pytest.raises(AttributeError):
        all_given.size = 3  # type: ignore[misc]


def test_what_is_no_order_is_refused_with_what_to_pass(view: wr.View) -> None:
    for name in ("size", "lanes", "rows", "pool", "bytes"):
        with pytest.raises(wr.ConfigError, match=f"{name}=0"):
            wr.Blocks(**{name: 0})
    with pytest.raises(wr.ConfigError, match="8MiB"):
        wr.Blocks(bytes="8 apples")
    with pytest.raises(TypeError, match="did you mean 'lanes'"):
        wr.Blocks(lane=3)  # type: ignore[call-arg]
    for wrong in ("blocks", None, wr.Blocks):
        with pytest.raises(TypeError, match=r"wr\.Blocks\(\)"):
            wr.Loader(view, 8, shuffle=wrong)  # type: ignore[arg-type]
    with pytest.raises(wr.ConfigError, match="lanes for"):
        wr.Loader(view, 8, shuffle=wr.Blocks(lanes=5000))
    with pytest.raises(wr.ConfigError, match="a view takes one"):
        wr.Loader(view, 8, shuffle={"web": wr.Blocks()})


def test_bins_and_segments_say_why_not(tmp_path: Path) -> None:
    path = tmp_path / "series.jsonl"
    path.write_text("[1.0, 2.0, 3.0]\n[4.0, 5.0]\n")
    ds = wr.open(path)
    for view in (ds.bins(4), ds.segments(4)):
        with pytest.raises(wr.ConfigError, match="records from everywhere share a row"):
            wr.Loader(view, 1, shuffle=wr.Blocks())


def test_a_mixture_takes_blocks_for_all_or_for_each(tokens: Path) -> None:
    ds = wr.open(tokens, format="tokens", dtype="uint16")
    mix = wr.mix({"web": (ds.pack(16), 0.75), "code": (ds.pack(16), 0.25)}, stop="all")
    loader = wr.Loader(mix, global_batch_size=16, shuffle=SMALL)
    of_web, of_code = loader.recipe()["shuffle"]["blocks"]
    assert of_web == {"size": 25, "lanes": 4, "rows": 3, "pool": 3} and of_code == {"size": 25, "lanes": 4, "rows": 1, "pool": 3}
    same = {"web": wr.Blocks(**of_web), "code": wr.Blocks(**of_code)}
    again = wr.Loader(mix, global_batch_size=32, shuffle=same)
    again.load_state_dict(loader.state_dict())
    assert ids(next(again)) == ids(next(loader)) + ids(next(loader))
    for wrong, message in (({"web": SMALL}, "no Blocks for"), ({**same, "books": SMALL}, "not a part")):
        with pytest.raises(wr.ConfigError, match=message):
            wr.Loader(mix, global_batch_size=16, shuffle=wrong)
    with pytest.raises(TypeError, match="web"):
        wr.Loader(mix, global_batch_size=16, shuffle={**same, "web": True})  # type: ignore[dict-item]


def test_a_stream_of_torch_has_the_same_order(view: wr.View) -> None:
    stream = wr.torch.Stream(view, shuffle=SMALL, seed=3, rank=0, world_size=1)
    batches = iter(torch.utils.data.DataLoader(stream, batch_size=8))
    # Without a batch size, one sample at a time is what decides the numbers.
    loader = wr.Loader(view, 1, shuffle=SMALL, seed=3)
    assert ids({"input_ids": next(batches)["input_ids"].numpy()}) == [ids(next(loader))[0] for _ in range(8)]


SPAWNED = """
    import sys
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import windrow as wr

    def work(rank, tokens, store):
        view = wr.open(tokens, format="tokens", dtype="uint16").pack(16)
        # A trainer starts the group after the loader is made: the batch of all ranks is known with the first batch.
        early = wr.Loader(view, batch_size=8, shuffle=wr.Blocks(size=25))
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
        rows = (next(early)["input_ids"][:, 0] // 16).tolist()
        everything = [None] * 2
        dist.all_gather_object(everything, (rows, early.state_dict(), early.recipe()["shuffle"]))
        if rank == 0:
            print(repr(everything))
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(work, args=(sys.argv[1], sys.argv[2]), nprocs=2)
"""


def test_ranks_that_are_known_late_share_one_order(view: wr.View, tokens: Path, tmp_path: Path, run_script: Callable[..., str]) -> None:
    (first, state, shuffle), (second, other_state, other_shuffle) = eval(run_script(SPAWNED, tokens, tmp_path / "store"))
    assert state == other_state and shuffle == other_shuffle == {"blocks": {"size": 25, "lanes": 4, "rows": 4, "pool": 3}}
    alone = wr.Loader(view, global_batch_size=16, shuffle=SMALL)
    assert first + second == ids(next(alone))
    resumed = wr.Loader(view, global_batch_size=16, shuffle=SMALL)
    resumed.load_state_dict(state)
    assert ids(next(resumed)) == ids(next(alone))


def test_a_forked_child_continues_in_the_same_order(view: wr.View) -> None:
    loader = wr.Loader(view, batch_size=8, shuffle=SMALL)
    next(loader)
    state = loader.state_dict()
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(write_end, json.dumps(ids(next(loader))).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        seen = json.load(pipe)
    again = wr.Loader(view, batch_size=8, shuffle=SMALL)
    again.load_state_dict(state)
    assert ids(next(again)) == seen


def test_mixing_is_told_of_a_view_and_of_each_part(view: wr.View, tokens: Path) -> None:
    by_blocks = wr.Loader(view, global_batch_size=16, shuffle=SMALL).mixing()
    assert (by_blocks["block_size"], by_blocks["blocks"], by_blocks["reach"], by_blocks["rows"]) == (25, 50, 300, 16)
    everywhere = wr.Loader(view, global_batch_size=16).mixing()
    in_order = wr.Loader(view, global_batch_size=16, shuffle=False).mixing()
    assert in_order["neighbours_apart"] < by_blocks["neighbours_apart"] < everywhere["neighbours_apart"]
    mix = wr.mix({"web": (view, 0.75), "code": (wr.open(tokens, format="tokens", dtype="uint16").pack(16), 0.25)}, stop="all")
    parts = wr.Loader(mix, global_batch_size=16, shuffle=SMALL).mixing()
    assert list(parts) == ["web", "code"] and parts["code"]["order"].startswith("shuffle:block-v1(size=25,")


def test_blocks_that_mix_badly_are_told_of_with_what_halves_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.arange(24 * 400 * 16 + 1, dtype=np.uint16).tofile(tmp_path / "ids.bin")
    view = wr.open(tmp_path / "ids.bin", dtype="uint16").pack(16)
    # 24 blocks: batches of one lane, from a few blocks at a time.
    loader = wr.Loader(view, global_batch_size=48, shuffle=wr.Blocks(size=400), rank=0, world_size=1)
    before = loader.mixing()["excess_variance"]
    assert before > 4
    (said,) = [record.getMessage() for record in caplog.records if "mix badly" in record.getMessage()]
    assert f"{before:.1f} times" in said
    name, value = re.search(r"(size|pool)=(\d+) makes that", said).groups()
    better = wr.Loader(view, global_batch_size=48, shuffle=wr.Blocks(**{"size": 400, name: int(value)}), rank=0, world_size=1)
    assert better.mixing()["excess_variance"] - 1 < 0.65 * (before - 1)
    caplog.clear()
    # What mixes well is not warned of.
    wr.Loader(view, global_batch_size=48, shuffle=wr.Blocks(size=10), rank=0, world_size=1)
    assert "mix badly" not in caplog.text
