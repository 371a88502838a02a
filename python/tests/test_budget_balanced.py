"""Batches within a budget of tokens whose rows are dealt to ranks by cost: each step has the rows of one rank, also where ranks change."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

OPTIONS: dict[str, Any] = {"max_tokens": 4096, "multiple": 8, "seed": 5, "epochs": 2, "balance": "attention"}

RUN = """
import json, sys
import windrow as wr

path, world, state, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])
view = wr.open(path).records(512, pad="longest", labels=None)
ranks = [wr.Loader(view, rank=rank, world_size=world, **options) for rank in range(world)]
for rank in ranks:
    if state:
        rank.load_state_dict(state)
for batches in zip(*(rank.stream() for rank in ranks), strict=True):
    rows = [batch["input_ids"][:, 0].tolist() for batch in batches]
    assert len({json.dumps(rank.state_dict()) for rank in ranks}) == 1
    print(json.dumps([rows, ranks[0].state_dict()]), flush=True)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of 5 to 500 tokens that begin with their number."""
    path = tmp_path_factory.mktemp("budget") / "records"
    lengths = np.random.default_rng(1).integers(5, 500, 1500)
    wr.write(path, (np.full(n, number, np.int32) for number, n in enumerate(lengths)), to="shards")
    return path


def steps_of(path: Path, **options: Any) -> list[list[int]]:
    """The rows of each step, as one rank gets them."""
    view = wr.open(path).records(512, pad="longest", labels=None)
    loader = wr.Loader(view, rank=0, world_size=1, **options)
    return [batch["input_ids"][:, 0].tolist() for batch in loader.stream()]


def test_killed_and_resumed_on_other_ranks_each_step_has_the_rows_of_one(path: Path) -> None:
    expected = steps_of(path, **OPTIONS)
    found: list[list[list[int]]] = []
    state: dict[str, Any] = {}
    for world, n_steps in ((8, 7), (4, 23), (2, 40), (8, 10_000)):
        command = [sys.executable, "-c", RUN, str(path), str(world), json.dumps(state), json.dumps(OPTIONS)]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        for _, line in zip(range(n_steps), run.stdout, strict=False):
            rows, state = json.loads(line)
            assert len(rows) == world and len({len(of_rank) for of_rank in rows}) == 1
            found.append(rows)
        if n_steps < 10_000:
            os.kill(run.pid, signal.SIGKILL)
        run.stdout.close()
        assert run.wait(timeout=60) == (-signal.SIGKILL if n_steps < 10_000 else 0)
    assert [sorted(sum(rows, [])) for rows in found] == [sorted(rows) for rows in expected]
    # Ranks have other rows than in order.
    assert any(sum(rows, []) != of_one for rows, of_one in zip(found, expected, strict=True))


def test_lengths_that_are_given_are_what_rows_cost(tmp_path: Path) -> None:
    lines = [{"n": number, "long": 1 + number * 7 % 50} for number in range(400)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    view = wr.open(tmp_path / "rows.jsonl", format="jsonl").rows(["n", "long"], stack=True)
    options = {"max_tokens": 400, "multiple": 4, "lengths": "long", "seed": 1, "epochs": 1}
    alone = [batch["n"].tolist() for batch in wr.Loader(view, rank=0, world_size=1, **options)]
    ranks = [wr.Loader(view, rank=rank, world_size=4, balance="tokens", **options) for rank in range(4)]
    for step, batches in enumerate(zip(*ranks, strict=True)):
        assert sorted(sum((batch["n"].tolist() for batch in batches), [])) == sorted(alone[step])
        costs = [int(batch["long"].sum()) for batch in batches]
        assert max(costs) - min(costs) <= 50
    assert step + 1 == len(alone)


@pytest.mark.parametrize("drop_last", [True, False])
def test_the_rest_of_an_epoch_is_dealt_too_or_refused(path: Path, drop_last: bool) -> None:
    options = {**OPTIONS, "drop_last": drop_last, "epochs": 1}
    alone = steps_of(path, **options)
    view = wr.open(path).records(512, pad="longest", labels=None)
    try:
        ranks = [wr.Loader(view, rank=rank, world_size=4, **options) for rank in range(4)]
    except wr.ConfigError as error:
        assert not drop_last and "4 ranks" in str(error)
        return
    steps = [[batch["input_ids"][:, 0].tolist() for batch in batches] for batches in zip(*ranks, strict=True)]
    assert [sorted(sum(rows, [])) for rows in steps] == [sorted(rows) for rows in alone]


def test_what_decides_the_rows_too_is_refused(path: Path) -> None:
    view = wr.open(path).records(512, pad="longest", labels=None)
    with pytest.raises(wr.ConfigError, match=r"max_tokens= beside accumulate="):
        wr.Loader(view, max_tokens=4096, accumulate=2)
    mixed = wr.mix({"a": (view, 0.5), "b": (view, 0.5)}, batches="part")
    with pytest.raises(wr.ConfigError, match=r"max_tokens= beside batches of one part"):
        wr.Loader(mixed, max_tokens=4096)
