"""Mixtures whose shares change: phases, most passes, mixes in a mix, and the part of each row."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

LARGE, SMALL = 500, 60
PHASES = [(100, {"large": 0.5, "small": 0.5}), (250, {"small": 1})]


@pytest.fixture
def views(tmp_path: Path) -> dict[str, wr.View]:
    """Sample i begins with i, and of "small" with 10,000 + i."""
    views = {}
    for name, n, first in (("large", LARGE, 0), ("small", SMALL, 10_000)):
        np.save(tmp_path / f"{name}.npy", np.repeat(np.arange(first, first + n, dtype=np.int32)[:, None], 9, axis=1))
        views[name] = wr.open(tmp_path / f"{name}.npy").records(8)
    return views


def mixed(views: dict[str, wr.View], **options: Any) -> wr.Mix:
    options = {"stop": "never", "phases": PHASES} | options
    return wr.mix({"large": (views["large"], 0.9), "small": (views["small"], 0.1)}, **options)


def firsts(batch: dict[str, Any]) -> list[int]:
    return [int(n) for n in batch["input_ids"][:, 0]]


def take(loader: wr.Loader, n: int) -> list[list[int]]:
    return [firsts(next(loader)) for _ in range(n)]


@pytest.mark.parametrize("shuffle", [True, wr.Blocks(size=7, lanes=1, rows=1, pool=3)])
def test_three_ranks_go_on_where_two_stopped_across_a_phase(views: dict[str, wr.View], shuffle: Any) -> None:
    def loader(rank: int, world_size: int) -> wr.Loader:
        return wr.Loader(
            mixed(views), global_batch_size=12, seed=3, shuffle=shuffle, rank=rank, world_size=world_size
        )

    expected = take(loader(0, 1), 30)
    two = [loader(rank, 2) for rank in range(2)]
    found = [sum(batches, []) for batches in zip(*(take(one, 7) for one in two), strict=True)]
    states = [one.state_dict() for one in two]
    assert states[0] == states[1] and states[0]["samples"] == 84 and len(json.dumps(states[0])) < 1024
    three = [loader(rank, 3) for rank in range(3)]
    for one in three:
        one.load_state_dict(states[0])
    found += [sum(batches, []) for batches in zip(*(take(one, 23) for one in three), strict=True)]
    assert found == expected
    # No sample of a part comes again before all of them have come.
    small = [n for batch in found for n in batch if n >= 10_000]
    assert len(small) == 10 + 75 + 110
    for start in range(0, len(small), SMALL):
        of_pass = small[start : start + SMALL]
        assert len(set(of_pass)) == len(of_pass)


def test_a_run_continues_under_a_plan_that_agrees_so_far(views: dict[str, wr.View]) -> None:
    def loader(**options: Any) -> wr.Loader:
        return wr.Loader(mixed(views, **options), batch_size=10, seed=3)

    plain = loader(phases=None)
    take(plain, 8)
    begun = plain.state_dict()
    # Phases that begin later, and other ones than were planned, are taken.
    longer = loader()
    longer.load_state_dict(begun)
    rest = take(longer, 10)
    assert rest == take(loader(), 18)[8:]
    state = longer.state_dict()
    assert state["samples"] == 180
    for phases in (PHASES[:1], [PHASES[0], (180, {"large": 1})], [*PHASES, (9000, {"large": 1, "small": 3})]):
        resumed = loader(phases=phases)
        resumed.load_state_dict(state)
        assert take(resumed, 1) == take(loader(phases=phases), 19)[18:]
    for phases, first in (
        (None, 100),
        ([(99, PHASES[0][1]), PHASES[1]], 99),
        ([(100, {"large": 0.6, "small": 0.4})], 100),
        ([PHASES[0], (179, {"large": 1})], 179),
        ([(0, {"large": 0.8, "small": 0.2}), *PHASES], 0),
    ):
        refused = loader(phases=phases)
        with pytest.raises(wr.MismatchError, match=f"differ from sample {first} on"):
            refused.load_state_dict(state)
        assert refused.samples == 0
    # 50 of its samples have come.
    capped = loader(phases=PHASES[:1], max_epochs={"small": 1})
    capped.load_state_dict(state)
    assert sum(n >= 10_000 for batch in take(capped, 20) for n in batch) == SMALL - 50
    with pytest.raises(wr.MismatchError, match="seed"):
        wr.Loader(mixed(views), batch_size=10, seed=4).load_state_dict(state)


def test_batches_name_the_part_of_each_row(views: dict[str, wr.View]) -> None:
    inner = mixed(views, stop="all", phases=None)
    outer = wr.mix({"all": (inner, 3), "more": (views["small"], 1)}, stop="never", part_ids=True)
    loader = wr.Loader(outer, batch_size=16, seed=1)
    assert loader.parts == ["all/large", "all/small", "more"]
    counts = np.zeros(3, np.int64)
    for step in range(20):
        batch = next(loader)
        assert batch["part"].dtype == np.int32 and batch["part"].shape == (16,)
        assert [n >= 10_000 for n in firsts(batch)] == [part > 0 for part in batch["part"]]
        counts += np.bincount(batch["part"], minlength=3)
        stats = loader.stats()["parts"]
        assert [stats[name]["samples"] for name in loader.parts] == counts.tolist()
        rows = wr.trace(loader, step=step)
        assert [row["part"] for row in rows] == batch["part"].tolist()
        assert [row["part_name"] for row in rows] == [loader.parts[part] for part in batch["part"]]
    assert counts.tolist() == [216, 24, 80]
    assert stats["more"]["epochs"] == 80 / SMALL
    record = wr.trace(loader, step=3, row=0)[0]
    found = wr.find(loader, record["reads"][0]["record"], part=record["part_name"], most=3)
    assert {"step": 3, "row": 0, "position": 48, "sample": record["sample"], "part_name": record["part_name"]} in found
    # By number too, after a pickle too, and from the plan as text.
    again = pickle.loads(pickle.dumps(outer))
    assert [int(again[i]["part"]) for i in range(40)] == [int(outer[i]["part"]) for i in range(40)]
    assert next(wr.Loader(again, batch_size=16, seed=1))["part"].tolist() == [
        row["part"] for row in wr.trace(json.loads(json.dumps(loader.recipe())), step=0)
    ]
    with pytest.raises(wr.MismatchError, match="layout"):
        plain = wr.mix({"all": (inner, 3), "more": (views["small"], 1)}, stop="never")
        wr.Loader(plain, batch_size=16, seed=1).load_state_dict(loader.state_dict())
    assert next(wr.Loader(outer, 4, dtype="int32"))["part"].dtype == np.int32


def test_a_part_gives_its_share_away_after_its_epochs(views: dict[str, wr.View]) -> None:
    mix = mixed(views, phases=None, max_epochs={"small": 1, "large": 2})
    loader = wr.Loader(mix, batch_size=20)
    assert len(mix) == 2 * LARGE + SMALL
    seen = [n for batch in loader for n in firsts(batch)]
    assert sorted(seen) == sorted([*range(LARGE), *range(LARGE), *range(10_000, 10_000 + SMALL)])
    # The small part is through after about 600 samples; the large one has all from there on.
    assert min(seen[610:]) >= 0 and max(seen[610:]) < 10_000
    assert list(loader.stream()) == []
    with pytest.raises(wr.ConfigError, match="the run is over"):
        iter(loader)
    shown = repr(mix)
    assert "from sample 0: large 0.90000, small 0.10000" in shown and "large 1.00000, small 0.00000" in shown


def test_phases_count_steps_where_they_are_told_of_how_many(views: dict[str, wr.View]) -> None:
    steps = wr.Loader(mixed(views, phases=[(5, {"small": 1})], steps_of=12), batch_size=12, seed=1)
    samples = wr.Loader(mixed(views, phases=[(60, {"small": 1})]), batch_size=12, seed=1)
    assert steps.plan == samples.plan
    assert [min(batch) >= 10_000 for batch in take(steps, 8)] == [False] * 5 + [True] * 3


def test_what_cannot_be_mixed_is_refused_by_name(views: dict[str, wr.View]) -> None:
    for options, said in (
        ({"stop": "all"}, "phases of a mixture with stop=\"all\""),
        ({"phases": [(5, {"lerge": 1})]}, 'phases names "lerge"'),
        ({"phases": [(5, {"large": -1})]}, 'the weight of "large" is -1'),
        ({"phases": [(5, {"large": 0})]}, "weight 0"),
        ({"phases": [(5, {"large": 1}), (5, {"small": 1})]}, "must begin later"),
        ({"max_epochs": {"smell": 1}}, 'max_epochs names "smell"'),
        ({"max_epochs": {"small": 0}}, "max_epochs of 0"),
        ({"stop": "first", "phases": None, "max_epochs": {"small": 1}}, "max_epochs counts"),
        ({"max_epochs": {"small": 1, "large": 1}, "phases": [(900, {"small": 1})]}, "no part is left at sample 560"),
        ({"steps_of": 0}, "steps of 0 samples"),
    ):
        with pytest.raises(wr.ConfigError) as refused:
            mixed(views, **options)  # type: ignore[arg-type]
        assert said in str(refused.value)
    endless = mixed(views)
    with pytest.raises(wr.ConfigError, match="never ends"):
        wr.mix({"a": (endless, 1), "b": (views["small"], 1)}, stop="all")
    rows = wr.open(views["small"].loader(1).recipe()["parts"][0]["path"])
    with pytest.raises(wr.WindrowError):
        wr.mix({"a": (rows.rows(), 1)}, part_ids=True)


def test_shares_by_size(views: dict[str, wr.View]) -> None:
    assert wr.temperature(views, 1) == pytest.approx({"large": LARGE / 560, "small": SMALL / 560})
    assert wr.temperature([1, 10, 100], 0) == pytest.approx([1 / 3] * 3)
    powers = np.array([8.0, 27.0]) ** 0.7
    assert wr.temperature([8, 27], 0.7) == pytest.approx((powers / powers.sum()).tolist())
    for sizes, exponent in (([], 1.0), ([1, 0], 1.0), ([1], float("nan"))):
        with pytest.raises(wr.ConfigError):
            wr.temperature(sizes, exponent)


def test_a_state_that_holds_hashes_names_the_options_that_differ(tmp_path: Path) -> None:
    # The texts of twenty parts are too long for a state.
    for n in range(20):
        np.save(tmp_path / f"{n}.npy", np.full((n + 3, 9), n, np.int32))
    parts = {f"{n}": (wr.open(tmp_path / f"{n}.npy").records(8), 1) for n in range(20)}

    def loader(parts: dict[str, tuple[wr.View, float]], **options: Any) -> wr.Loader:
        return wr.Loader(wr.mix(parts), batch_size=4, **options)

    state = loader(parts).state_dict()
    lists = r"wr\.diff\(loader, recipe\), with the recipe\(\) of the loader of that run, lists what differs"
    heavier = loader(parts | {"7": (parts["7"][0], 2)})
    with pytest.raises(wr.MismatchError, match=r"the order differs \(shuffle; the parts and weights.*order=#") as raised:
        heavier.load_state_dict(state)
    assert "source" not in str(raised.value)
    assert re.search(lists, raised.value.hint)
    assert [d["option"] for d in wr.diff(heavier, loader(parts).recipe())["differences"]] == ["weights"]
    for other in (parts | {"7": parts["8"]}, {name: parts[name] for name in list(parts)[1:]}, {"9": parts["9"]}):
        with pytest.raises(wr.MismatchError, match="the data differs, or its mask_column, exclude.*source=#") as raised:
            loader(other).load_state_dict(state)
        assert re.search(lists, raised.value.hint)
    # What is short is told in full, without it.
    plain = wr.Loader(parts["9"][0], batch_size=4).state_dict()
    with pytest.raises(wr.MismatchError, match="the state has source=npy:12:.* this plan has source=npy:10:") as raised:
        wr.Loader(parts["9"][0], batch_size=4, exclude=[0, 1]).load_state_dict(plain)
    assert "with the same mask_column, exclude" in raised.value.hint and "wr.diff" not in raised.value.hint
