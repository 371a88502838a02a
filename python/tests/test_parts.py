"""Mixtures of which each batch is of one part: shapes, shares, resumes, ranks, readers by number, plans as text, errors."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr

BATCH = 8


def windrow(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run([sys.executable, "-m", "windrow", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    return ran


LENGTHS = {"short": 4, "long": 9}


@pytest.fixture
def views(tmp_path: Path) -> dict[str, wr.View]:
    """Sample i of "short" is full of i, of "long" of 10,000 + i."""
    views = {}
    for name, n, first in (("short", 300, 0), ("long", 70, 10_000)):
        length = LENGTHS[name]
        np.save(tmp_path / f"{name}.npy", np.repeat(np.arange(first, first + n, dtype=np.int32)[:, None], length, axis=1))
        views[name] = wr.open(tmp_path / f"{name}.npy").records(length)
    return views


def mixed(views: dict[str, wr.View], **options: Any) -> wr.Mix:
    options = {"stop": "never", "batches": "part"} | options
    return wr.mix({"short": (views["short"], 0.75), "long": (views["long"], 0.25)}, **options)


def firsts(batch: Any) -> list[int]:
    return [int(n) for n in batch["input_ids"][:, 0]]


def take(loader: wr.Loader, n: int) -> list[list[int]]:
    return [firsts(next(loader)) for _ in range(n)]


@pytest.mark.parametrize("shuffle", [True, False, wr.Blocks(size=5, lanes=1, rows=2, pool=2)])
def test_a_batch_is_of_one_part_and_as_long_as_that(views: dict[str, wr.View], shuffle: Any) -> None:
    loader = wr.Loader(mixed(views, part_ids=True), batch_size=BATCH, seed=3, shuffle=shuffle)
    seen: dict[str, list[int]] = {"short": [], "long": []}
    for step in range(120):
        batch = next(loader)
        name = loader.parts[int(batch["part"][0])]
        assert batch["part"].tolist() == [batch["part"][0]] * BATCH
        assert {field.shape for field in (batch["input_ids"], batch["labels"])} == {(BATCH, LENGTHS[name])}
        assert all((n >= 10_000) == (name == "long") for n in firsts(batch))
        seen[name] += firsts(batch)
        assert abs(len(seen["long"]) / BATCH - 0.25 * (step + 1)) < 1
        assert {name: part["samples"] for name, part in loader.stats()["parts"].items()} == {n: len(s) for n, s in seen.items()}
    # Pass after pass: a batch may hold the end of one and the beginning of the next.
    for name, n in (("short", 300), ("long", 70)):
        passes = [seen[name][start : start + n] for start in range(0, len(seen[name]), n)]
        assert len(passes) > 2 and all(len(set(one)) == len(one) for one in passes)
    mixing = loader.mixing()
    assert mixing["long"]["rows"] == mixing["short"]["rows"] == BATCH


@pytest.mark.parametrize("stop", ["first", "all"])
def test_epochs_are_whole_batches_whatever_becomes_of_the_last(views: dict[str, wr.View], stop: Any) -> None:
    runs = []
    for last in ({}, {"drop_last": False}, {"last": "repeat"}):
        loader = wr.Loader(mixed(views, stop=stop), batch_size=BATCH, seed=1, **last)
        epochs = [[firsts(batch) for batch in loader] for _ in range(2)]
        assert all(len(batch) == BATCH for epoch in epochs for batch in epoch)
        assert len(loader) == len(epochs[0]) == len(epochs[1])
        assert loader.stats()["repeated"] == 0
        runs.append(epochs)
    assert runs[0] == runs[1] == runs[2]
    all_samples = [n for batch in runs[0][0] for n in batch]
    if stop == "first":
        assert len(set(all_samples)) == len(all_samples)
    else:
        assert set(all_samples) == {*range(300), *range(10_000, 10_070)}


def test_ranks_share_out_a_batch_of_one_part(views: dict[str, wr.View]) -> None:
    phases = [(16 * BATCH, {"short": 1, "long": 1})]

    def loader(rank: int, world_size: int) -> wr.Loader:
        mix = mixed(views, phases=phases)
        return wr.Loader(mix, global_batch_size=BATCH, seed=3, rank=rank, world_size=world_size)

    expected = take(loader(0, 1), 40)
    found: list[list[int]] = []
    state = None
    for world_size, n in ((4, 13), (2, 11), (1, 3), (4, 13)):
        ranks = [loader(rank, world_size) for rank in range(world_size)]
        for rank in ranks:
            if state is not None:
                rank.load_state_dict(state)
        found += [sum(batches, []) for batches in zip(*(take(rank, n) for rank in ranks), strict=True)]
        states = [rank.state_dict() for rank in ranks]
        assert all(one == states[0] for one in states) and len(json.dumps(states[0])) < 1024
        state = states[0]
    assert found == expected


def test_a_run_continues_with_phases_that_begin_later(views: dict[str, wr.View]) -> None:
    def loader(**options: Any) -> wr.Loader:
        return wr.Loader(mixed(views, **options), batch_size=BATCH, seed=3)

    plain = loader()
    take(plain, 10)
    state = plain.state_dict()
    phases = [(12, {"long": 1}), (30, {"short": 1, "long": 3})]
    longer = loader(phases=phases, steps_of=BATCH)
    longer.load_state_dict(state)
    rest = take(longer, 30)
    assert rest == take(loader(phases=[(start * BATCH, weights) for start, weights in phases]), 40)[10:]
    assert all(n >= 10_000 for batch in rest[2:20] for n in batch)
    with pytest.raises(wr.MismatchError, match="differ from sample 72 on"):
        loader(phases=[(72, {"long": 1})]).load_state_dict(state)
    with pytest.raises(wr.ConfigError, match="begins at sample 90, inside a batch.*") as refused:
        loader(phases=[(90, {"long": 1})])
    assert "88 or 96" in str(refused.value) and "steps_of=8" in str(refused.value)


def test_another_batch_size_is_refused_and_named(views: dict[str, wr.View]) -> None:
    loader = wr.Loader(mixed(views), batch_size=BATCH, seed=3)
    take(loader, 3)
    state = loader.state_dict()
    assert "batches=part(rows=8)" in state["plan"]
    for rows in (4, 16):
        other = wr.Loader(mixed(views), batch_size=rows, seed=3)
        with pytest.raises(wr.MismatchError, match=f"batches of 8 rows .* of {rows} rows") as refused:
            other.load_state_dict(state)
        assert "global_batch_size=8" in str(refused.value) and other.samples == 0
        with pytest.raises(wr.MismatchError, match="of 8 rows"):
            wr.Loader(mixed(views, rows=BATCH), batch_size=rows)
    # Ranks that together have the batch of the run continue it.
    half = wr.Loader(mixed(views), batch_size=BATCH // 2, seed=3, rank=1, world_size=2)
    half.load_state_dict(state)
    assert take(half, 1)[0] == take(loader, 1)[0][BATCH // 2 :]
    # Rows of all parts are another order, whose batches may have any size.
    same_length = wr.mix({"short": (views["short"], 1)}, stop="never", batches="part")
    state = wr.Loader(same_length, batch_size=BATCH).state_dict()
    with pytest.raises(wr.MismatchError, match="order"):
        wr.Loader(wr.mix({"short": (views["short"], 1)}, stop="never"), batch_size=BATCH).load_state_dict(state)


def test_skips_are_of_whole_batches(views: dict[str, wr.View]) -> None:
    whole = take(wr.Loader(mixed(views), batch_size=BATCH, seed=3), 10)
    loader = wr.Loader(mixed(views), batch_size=BATCH, seed=3, skip=[(16, 40)], drop_last=False)
    assert take(loader, 7) == whole[:2] + whole[5:]
    with pytest.raises(wr.ConfigError, match="a skip begins or ends at sample 20, inside a batch"):
        wr.Loader(mixed(views), batch_size=BATCH, skip=[(16, 20)])


def test_samples_by_number_need_the_rows_of_a_batch(views: dict[str, wr.View]) -> None:
    unsaid = mixed(views, stop="all")
    for read in (len, lambda mix: mix[0], lambda mix: mix[0:2], iter, lambda mix: mix.__getitems__([0])):
        with pytest.raises(TypeError, match="wr.torch.Stream"):
            read(unsaid)
    assert unsaid and "short" in repr(unsaid) and "long" in unsaid._repr_html_()
    assert "from sample 80: short 0.00000, long 1.00000" in repr(mixed(views, phases=[(80, {"long": 1})]))
    said = mixed(views, stop="all", rows=BATCH)
    assert len(said) == BATCH * len(wr.Loader(said, batch_size=BATCH))
    again = pickle.loads(pickle.dumps(said))
    rows = [row["input_ids"].tolist() for row in again]
    assert rows == [said[i]["input_ids"].tolist() for i in range(len(said))]
    for start in range(0, len(rows), BATCH):
        assert len({len(row) for row in rows[start : start + BATCH]}) == 1
    batches = list(torch.utils.data.DataLoader(said, batch_size=BATCH, num_workers=2))
    assert [batch["input_ids"].tolist() for batch in batches] == [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]
    with pytest.raises(wr.MismatchError, match="different tensors"):
        list(torch.utils.data.DataLoader(said, batch_size=BATCH + 1))
    stream = wr.torch.Stream(unsaid, batch_size=BATCH, seed=3, num_threads=1)
    expected = wr.Loader(unsaid, batch_size=BATCH, seed=3)
    for batch, other in zip(torch.utils.data.DataLoader(stream, batch_size=None), expected, strict=True):
        assert batch["input_ids"].tolist() == other["input_ids"].tolist()


def test_parts_need_the_same_tensors_of_any_length(views: dict[str, wr.View], tmp_path: Path) -> None:
    np.arange(5000, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    tokens = wr.open(tmp_path / "tokens.bin", dtype="uint16")
    with pytest.raises(wr.MismatchError, match="different tensors"):
        wr.mix({"a": (tokens.pack(8), 1), "b": (tokens.pack(16), 1)})
    packs = wr.mix({"a": (tokens.pack(8), 1), "b": (tokens.pack(16), 1)}, batches="part")
    assert {batch["labels"].shape for batch in wr.Loader(packs, 4, framework="torch")} == {(4, 8), (4, 16)}
    with pytest.raises(wr.MismatchError, match='only "b" has segment_ids|only "b" has'):
        wr.mix({"a": (tokens.pack(8), 1), "b": (tokens.pack(8, eos=9, documents=True), 1)}, batches="part")
    series = tmp_path / "series.npy"
    np.save(series, np.zeros((50, 9), np.float32))
    with pytest.raises(wr.MismatchError, match="is float32"):
        wr.mix({"a": (wr.open(series).records(8), 1), "b": (views["short"], 1)}, batches="part")
    documents = {n: tokens.pack(n, eos=9, documents=True) for n in (8, 32)}
    mix = wr.mix({str(n): (view, 1) for n, view in documents.items()}, batches="part")
    assert {batch["cu_seqlens"].shape for batch in wr.Loader(mix, 2)} == {(2, 9), (2, 33)}


def test_errors_of_what_does_not_go_together(views: dict[str, wr.View]) -> None:
    inner = mixed(views, stop="all")
    with pytest.raises(wr.ConfigError, match='"in" has batches="part"'):
        wr.mix({"in": (inner, 1), "short": (views["short"], 1)})
    with pytest.raises(wr.ConfigError, match="rows=8 of a mixture"):
        wr.mix({"short": (views["short"], 1)}, rows=BATCH)
    with pytest.raises(wr.ConfigError, match="batches='parts'|batches=\"parts\"") as refused:
        mixed(views, batches="parts")
    assert "one of part" in str(refused.value)
    with pytest.raises(wr.ConfigError, match="a batch size of 0"):
        mixed(views, rows=0)
    with pytest.raises(wr.ConfigError, match="an epoch has no batch"):
        wr.Loader(mixed(views, stop="first"), batch_size=1000)
    with pytest.raises(wr.ConfigError, match="it would never have one"):
        wr.Loader(mixed(views, max_epochs={"long": 1}), batch_size=71)
    eight, four = mixed(views, stop="all", rows=8), mixed(views, stop="all", rows=4)
    with pytest.raises(wr.ConfigError, match="batches of 4 rows"):
        wr.mix({"a": (eight, 1), "b": (four, 1)}, batches="part")


def test_a_mixture_is_one_part_or_each_of_its_parts_is(views: dict[str, wr.View]) -> None:
    halves = {"a": (views["short"], 1), "b": (views["short"], 1)}
    for inner, is_apart in ((wr.mix(halves, stop="all"), False), (wr.mix(halves, stop="all", batches="part"), True)):
        outer = wr.mix({"in": (inner, 1), "long": (views["long"], 1)}, stop="never", batches="part", part_ids=True)
        loader = wr.Loader(outer, batch_size=BATCH, seed=2)
        assert loader.parts == ["in/a", "in/b", "long"]
        kinds = [tuple(np.unique(next(loader)["part"])) for _ in range(40)]
        assert set(kinds) == ({(0,), (1,), (2,)} if is_apart else {(0, 1), (2,)})
        counts = [part["samples"] for part in loader.stats()["parts"].values()]
        assert counts[2] == 160 and counts[0] + counts[1] == 160 and abs(counts[0] - counts[1]) <= BATCH


def test_trace_find_coverage_and_extract_say_the_same(views: dict[str, wr.View], tmp_path: Path) -> None:
    loader = wr.Loader(mixed(views, stop="all", part_ids=True), batch_size=BATCH, seed=3)
    recipe = json.loads(json.dumps(loader.recipe()))
    assert recipe["mixture"]["batches"] == "part" and "rows" not in recipe["mixture"] and recipe["global_batch_size"] == BATCH
    steps = [next(loader) for _ in range(12)]
    for step, batch in enumerate(steps):
        for plan in (loader, recipe):
            rows = wr.trace(plan, step=step)
            assert [row["sample"] + 10_000 * row["part"] for row in rows] == firsts(batch)
            assert len({row["part"] for row in rows}) == 1
    row = wr.trace(loader, step=5, row=3)[0]
    found = wr.find(loader, row["reads"][0]["record"], part=row["part_name"])
    assert any((one["step"], one["row"]) == (5, 3) for one in found)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(recipe))
    covered = json.loads(windrow("coverage", str(plan), "--steps", "0..12", "--json").stdout)
    assert [part["samples"] for part in covered["parts"]] == [sum(b["part"][0] == n for b in steps) * BATCH for n in (0, 1)]
    assert wr.diff(recipe, loader)["same"]


def test_the_command_writes_the_plan(views: dict[str, wr.View], tmp_path: Path) -> None:
    np.arange(5000, dtype=np.uint16).tofile(tmp_path / "a.bin")
    parts = [f"--mix=a={tmp_path / 'a.bin'}:0.75", f"--mix=b={tmp_path / 'a.bin'}:0.25"]
    common = ["--dtype", "uint16", "--format", "tokens", "--pack", "16", "--batch-size", "8", "--stop", "all"]
    by_part = json.loads(windrow("plan", *parts, *common, "--batches", "part").stdout)
    assert by_part["mixture"]["batches"] == "part" and "batches=part(rows=8)" in by_part["plan"]
    view = wr.open(tmp_path / "a.bin", format="tokens", dtype="uint16").pack(16)
    mix = wr.mix({"a": (view, 0.75), "b": (view, 0.25)}, stop="all", batches="part")
    assert wr.Loader(mix, batch_size=8).recipe()["plan"] == by_part["plan"]
    # A mixture without it is written as it always was.
    plain = json.loads(windrow("plan", *parts, *common).stdout)
    assert plain["weights"] == [0.75, 0.25] and plain["stop"] == "all" and "mixture" not in plain
    assert "batches" not in plain["plan"]
    refused = windrow("plan", str(tmp_path / "a.bin"), *common[:-2], "--batches", "part", code=2)
    assert "--batches is an option of --mix" in refused.stderr


def test_a_forked_child_and_map_get_the_same_batches(views: dict[str, wr.View]) -> None:
    doubled = wr.Loader(mixed(views), batch_size=BATCH, seed=3, map=lambda row, rng: {"twice": 2 * row["input_ids"]})
    plain = wr.Loader(mixed(views), batch_size=BATCH, seed=3)
    for _ in range(10):
        assert (next(doubled)["twice"] == 2 * next(plain)["input_ids"]).all()
    expected = take(wr.Loader(mixed(views), batch_size=BATCH, seed=3), 20)[10:]
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writes, json.dumps(take(plain, 10)).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        assert json.loads(pipe.read()) == expected
    os.waitpid(child, 0)
    assert take(plain, 10) == expected


def test_records_of_one_part_a_batch(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"from": name, "n": n}) + "\n" for n in range(30)))
    views = {name: (wr.open(tmp_path / f"{name}.jsonl").rows(["from", "n"]), 1) for name in ("a", "b")}
    for batch in wr.Loader(wr.mix(views, batches="part"), batch_size=5):
        assert len(batch) == 5 and len({row["from"] for row in batch}) == 1
