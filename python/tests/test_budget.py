"""``Loader(max_tokens=)``: batches within a budget of tokens, the same for any number of ranks, resumed and traced as any others."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr
import windrow.torch

ORDERS = Path(__file__).parents[2] / "testdata" / "golden" / "orders"
spec = importlib.util.spec_from_file_location("composition", ORDERS / "composition.py")
assert spec is not None and spec.loader is not None
composition: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(composition)

N = 331


def drawn(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.minimum(np.random.default_rng(seed).lognormal(2.5, 1.0, n).astype(np.int64) + 1, 100)


LENGTHS = drawn(N)


@pytest.fixture
def ds(tmp_path: Path) -> wr.Dataset:
    """Record r is r, r, …: the first value of a row says which record it is."""
    wr.write(tmp_path / "data", [np.full(n + 1, r, np.uint32) for r, n in enumerate(LENGTHS)], to="forager", fsync=False)
    return wr.open(tmp_path / "data")


def records(batch: Any) -> list[int]:
    column = batch["input_ids"] if "input_ids" in batch else batch["values"]
    return column[:, 0].tolist()  # type: ignore[no-any-return]


def rows_of(ds: wr.Dataset, **options: Any) -> wr.View:
    return ds.records(100, pad="longest", **options)


def test_batches_are_those_of_the_rule(ds: wr.Dataset) -> None:
    for multiple, pool, epoch in [(1, None, 0), (4, None, 1), (8, 96, 2)]:
        tokens = 100 * multiple + 150
        loader = wr.Loader(rows_of(ds), max_tokens=tokens, multiple=multiple, pool=pool, shuffle=False, seed=5, drop_last=False)
        loader.set_epoch(epoch)
        order = np.arange(N)
        expected = composition.budget_batches(LENGTHS, order, tokens, multiple, 5, epoch, pool=pool)
        found = list(loader)
        assert [records(batch) for batch in found] == [batch.tolist() for batch in expected]
        for batch in found:
            rows, longest = batch["input_ids"].shape
            assert rows * longest <= tokens
            assert longest == LENGTHS[records(batch)].max()
    assert f"+budget-v1(tokens={tokens},multiple=8,pool=96)" in loader.plan


def test_a_shuffled_epoch_is_sorted_pool_by_pool(ds: wr.Dataset) -> None:
    plain = [records(batch)[0] for batch in islice(wr.Loader(rows_of(ds), 1, seed=3), N)]
    loader = wr.Loader(rows_of(ds), max_tokens=400, multiple=2, seed=3, drop_last=False)
    expected = composition.budget_batches(LENGTHS, np.array(plain), 400, 2, 3, 0)
    assert len(loader) == len(expected)
    assert [records(batch) for batch in loader] == [batch.tolist() for batch in expected]


def test_ranks_get_equally_many_rows_of_one_batch(ds: wr.Dataset) -> None:
    def batches(ranks: int) -> list[list[list[int]]]:
        loaders = [wr.Loader(rows_of(ds), max_tokens=900, multiple=8, seed=1, rank=rank, world_size=ranks) for rank in range(ranks)]
        return [[records(batch) for batch in step] for step in zip(*loaders, strict=True)]

    alone = [step[0] for step in batches(1)]
    assert sum(map(len, alone)) == N // 8 * 8
    for ranks in (2, 4, 8):
        steps = batches(ranks)
        assert all(len(set(map(len, step))) == 1 for step in steps)
        assert [sum(step, []) for step in steps] == alone
    with pytest.raises(wr.ConfigError, match=r"over 3 ranks.*") as refused:
        next(wr.Loader(rows_of(ds), max_tokens=900, multiple=8, rank=0, world_size=3))
    assert "multiple=3" in str(refused.value)


def test_a_run_resumes_in_the_middle_of_a_pool_on_other_ranks(ds: wr.Dataset) -> None:
    def loader(rank: int = 0, ranks: int = 1) -> wr.Loader:
        return wr.Loader(rows_of(ds), max_tokens=800, multiple=8, seed=9, epochs=3, rank=rank, world_size=ranks)

    whole = [records(batch) for batch in loader().stream()]
    state, done = None, 0
    for ranks, steps in [(8, 7), (4, 9), (2, 6), (8, 1_000)]:
        runs = [loader(rank, ranks) for rank in range(ranks)]
        for run in runs:
            if state is not None:
                run.load_state_dict(state)
        streams = [run.stream() for run in runs]
        for step in islice(zip(*streams, strict=True), steps):
            assert sum(map(records, step), []) == whole[done]
            done += 1
        state = runs[0].state_dict()
        assert all(run.state_dict() == state for run in runs)
    assert done == len(whole)


def test_a_state_is_at_the_end_of_a_batch_and_of_this_budget(ds: wr.Dataset) -> None:
    loader = wr.Loader(rows_of(ds), max_tokens=400, seed=1)
    next(loader)
    state: dict[str, Any] = dict(loader.state_dict())
    with pytest.raises(wr.ConfigError, match="within a batch: the nearest ends of batches are"):
        loader.load_state_dict({**state, "samples": state["samples"] + 1})
    for options in ({"max_tokens": 401}, {"max_tokens": 400, "multiple": 2}, {"max_tokens": 400, "pool": 77}, {"batch_size": 1}):
        with pytest.raises(wr.MismatchError, match=r"budget-v1\(tokens=400,multiple=1"):
            wr.Loader(rows_of(ds), seed=1, **options).load_state_dict(state)  # type: ignore[arg-type]


def test_skips_are_whole_batches(ds: wr.Dataset) -> None:
    options: dict[str, Any] = {"max_tokens": 400, "seed": 2, "epochs": 2}
    batches = [records(batch) for batch in wr.Loader(rows_of(ds), **options).stream()]
    ends = np.cumsum([0, *map(len, batches)]).tolist()
    skipped = wr.Loader(rows_of(ds), skip=[(ends[3], ends[5])], **options)
    assert [records(batch) for batch in skipped.stream()] == batches[:3] + batches[5:]
    with pytest.raises(wr.ConfigError) as refused:
        wr.Loader(rows_of(ds), skip=[(ends[3], ends[5] + 1)], **options)
    assert f"a skip ends at sample {ends[5] + 1}" in str(refused.value) and f"are {ends[5]} and {ends[6]}" in str(refused.value)


def test_len_is_that_of_the_epoch_that_comes(ds: wr.Dataset) -> None:
    loader = wr.Loader(rows_of(ds), max_tokens=300, pool=24, seed=4)
    lens = []
    for epoch in range(6):
        assert loader.epoch in (epoch, max(0, epoch - 1))
        lens.append(len(loader))
        assert len(list(loader)) == lens[-1]
    assert len(set(lens)) > 1


def test_trace_and_find_agree(ds: wr.Dataset) -> None:
    loader = wr.Loader(rows_of(ds), max_tokens=500, multiple=2, seed=6, epochs=2)
    for step, batch in zip(range(40), loader.stream(), strict=False):
        if step % 7:
            continue
        traced = wr.trace(loader, step=step)
        assert [row["reads"][0]["record"] for row in traced] == records(batch)
        row = len(traced) // 2
        found = wr.find(loader, traced[row]["reads"][0]["record"], epoch=0)
        assert step >= len(loader) or (step, row) in [(one["step"], one["row"]) for one in found]
    recipe = loader.recipe()
    assert (recipe["max_tokens"], recipe["multiple"]) == (500, 2) and "pool" not in recipe and "lengths" not in recipe
    assert wr.trace(recipe, step=11) == wr.trace(loader, step=11)
    other = wr.Loader(rows_of(ds), max_tokens=501, multiple=2, seed=6)
    assert wr.diff(loader, other)["differences"][0]["what"] == "batch size"
    covered = wr.coverage(loader, steps=(0, len(loader)))
    assert covered["parts"][0]["samples"] == N // 2 * 2


def test_crops_and_codes_are_as_long_as_their_longest(ds: wr.Dataset, tmp_path: Path) -> None:
    values = LENGTHS + 1
    for batch in wr.Loader(ds.crop(60, "start"), max_tokens=300, seed=1):
        rows, longest = batch["values"].shape
        assert rows * longest <= 300
        assert longest == np.minimum(values[records(batch)], 60).max() == batch["lengths"].max()
        for row, record, length in zip(batch["values"], records(batch), batch["lengths"], strict=True):
            assert (row[:length] == record).all() and not row[length:].any()
    assert next(wr.Loader(ds.crop(60), 4))["values"].shape == (4, 60)
    tracks = [{"sequence": [[1, 2]] * (1 + i % 9), "text": "a"} for i in range(50)]
    (tmp_path / "tracks.jsonl").write_text("".join(json.dumps(track) + "\n" for track in tracks))
    codes = wr.open(tmp_path / "tracks.jsonl", format="series-jsonl").codes(20, text_length=4)
    shapes = [batch["tgt_tokens"].shape for batch in wr.Loader(codes, max_tokens=44)]
    assert sum(shape[0] for shape in shapes) == 50
    assert all(rows * longest <= 44 for rows, longest, _ in shapes) and len({longest for _, longest, _ in shapes}) > 4


def test_rows_have_lengths_of_a_column_or_an_array(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lengths = drawn(80, 3)
    path.write_text("".join(json.dumps({"n": int(n), "i": i, "t": "x"}) + "\n" for i, n in enumerate(lengths)))
    view = wr.open(path).rows(["i"])
    expected = composition.budget_batches(lengths, np.arange(80), 250, 2, 0, 0)
    loaders = [wr.Loader(view, max_tokens=250, multiple=2, lengths=given, shuffle=False) for given in ("n", lengths, lengths.tolist())]
    for loader in loaders:
        assert [[row["i"] for row in batch] for batch in loader] == [batch.tolist() for batch in expected]
        assert loader.plan == loaders[0].plan
        assert wr.trace(loader.recipe(), step=1) == wr.trace(loader, step=1)
    assert ",lengths=" in loaders[0].plan
    with pytest.raises(wr.ConfigError, match="whose rows are all equally long.*") as refused:
        wr.Loader(view, max_tokens=250)
    assert "lengths=" in str(refused.value)
    for given, message in [
        ("t", "expected whole numbers in"),
        ("no", 'in "no", found null'),
        ([1, 2], "2 lengths= for 80"),
        ([-1] * 80, "-1 at place 0"),
    ]:
        with pytest.raises(wr.ConfigError, match=message):
            wr.Loader(view, max_tokens=250, lengths=given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name of a column"):
        wr.Loader(view, max_tokens=250, lengths=[0.5] * 80)


def test_mixtures_have_budgets(ds: wr.Dataset, tmp_path: Path) -> None:
    wr.write(tmp_path / "other", [np.full(n + 1, 1_000 + r, np.uint32) for r, n in enumerate(drawn(50, 8))], to="forager", fsync=False)
    parts = {"a": (rows_of(ds), 0.75), "b": (rows_of(wr.open(tmp_path / "other")), 0.25)}
    loader = wr.Loader(wr.mix(parts, stop="never"), max_tokens=600, multiple=4, pool=40, rank=0, world_size=2)
    n_samples = [0, 0]
    for batch in islice(wr.Loader(wr.mix(parts, stop="never"), max_tokens=600, multiple=4, pool=40), 60):
        rows, longest = batch["input_ids"].shape
        assert rows * longest <= 600 and rows % 4 == 0
        n_samples[1] += sum(record >= 1_000 for record in records(batch))
        n_samples[0] += rows
    state = wr.Loader(wr.mix(parts, stop="never"), max_tokens=600, multiple=4, pool=40)
    for _ in range(60):
        next(state)
    told = state.stats()["parts"]
    assert (told["b"]["samples"], told["a"]["samples"] + told["b"]["samples"]) == (n_samples[1], n_samples[0])
    with pytest.raises(TypeError, match="no length"):
        len(loader)
    assert len(wr.Loader(wr.mix(parts, stop="all"), max_tokens=600, multiple=4)) > 10
    # A later pool may be of other shares.
    continued = wr.mix(parts, stop="never", phases=[(40 * (state.samples // 40 + 2), {"b": 1.0})])
    other = wr.Loader(continued, max_tokens=600, multiple=4, pool=40)
    other.load_state_dict(state.state_dict())
    assert records(next(other)) == records(next(state))


def test_what_does_not_go_together_is_refused(ds: wr.Dataset) -> None:
    longest = int(LENGTHS.max())
    record = int(LENGTHS.argmax())
    with pytest.raises(wr.ConfigError) as refused:
        wr.Loader(rows_of(ds), max_tokens=4 * longest - 1, multiple=4)
    assert refused.value.record == record and f"length {longest}" in str(refused.value)
    assert f"max_tokens={4 * longest}" in str(refused.value)
    wr.Loader(rows_of(ds), max_tokens=4 * longest, multiple=4)
    for view, options, message in [
        (ds.pack(16), {"max_tokens": 400}, "rows are all equally long"),
        (ds.records(16), {"max_tokens": 400}, "rows are all equally long"),
        (rows_of(ds, group=4), {"max_tokens": 400}, "group"),
        (rows_of(ds), {"max_tokens": 400, "last": "repeat"}, "repeat"),
        (rows_of(ds), {"max_tokens": 400, "multiple": 4, "pool": 6}, "pool of 6"),
        (rows_of(ds), {"max_tokens": 400, "multiple": 0}, "multiple=0"),
        (rows_of(ds), {"max_tokens": 0}, "max_tokens=0"),
        (rows_of(ds), {"max_tokens": 400, "batch_size": 3}, "both are given"),
        (rows_of(ds), {"batch_size": 3, "multiple": 2}, "multiple= without max_tokens="),
        (rows_of(ds), {"batch_size": 3, "pool": 20}, "pool= without max_tokens="),
        (rows_of(ds), {"max_tokens": 400, "lengths": [1] * N}, "not rows"),
    ]:
        with pytest.raises(wr.ConfigError, match=message):
            wr.Loader(view, **options)  # type: ignore[arg-type]
    with pytest.raises(wr.ConfigError, match="global_batch_size=25 is the same"):
        wr.Loader(ds.pack(16), max_tokens=400)


def test_a_forked_child_and_a_stream_have_the_same_batches(ds: wr.Dataset) -> None:
    loader = wr.Loader(rows_of(ds), max_tokens=400, seed=7)
    first = [records(next(loader)) for _ in range(4)]
    expected = [records(batch) for batch in islice(wr.Loader(rows_of(ds), max_tokens=400, seed=7), 9)]
    assert first == expected[:4]
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, json.dumps([records(next(loader)) for _ in range(5)]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(os.read(read, 1 << 16)) == expected[4:]
    assert [records(next(loader)) for _ in range(5)] == expected[4:]
    stream = wr.torch.Stream(rows_of(ds), max_tokens=400, seed=7)
    batches = islice(iter(torch.utils.data.DataLoader(stream, batch_size=None)), 9)
    assert [records(batch) for batch in batches] == expected
    assert loader.batch_size is None


def test_rows_are_padded_to_buckets_of_the_whole_batch(ds: wr.Dataset) -> None:
    buckets = [10, 25, 100]
    view = ds.records(100, pad=buckets)
    assert view[0]["input_ids"].shape == (next(bucket for bucket in buckets if bucket >= LENGTHS[0]),)
    tokens = 400
    expected = composition.budget_batches(LENGTHS, np.arange(N), tokens, 4, 3, 0, buckets)
    ranks = [wr.Loader(view, max_tokens=tokens, multiple=4, seed=3, shuffle=False, rank=rank, world_size=4) for rank in range(4)]
    shapes = set()
    for step, batch in zip(zip(*ranks, strict=True), expected, strict=False):
        assert sum(map(records, step), []) == batch.tolist()
        (width,) = {part["input_ids"].shape[1] for part in step}
        assert width == min(bucket for bucket in buckets if bucket >= LENGTHS[batch].max())
        assert width * len(batch) <= tokens
        for part in step:
            for row, mask, record in zip(part["input_ids"], part["loss_masks"], records(part), strict=True):
                assert mask.sum() == LENGTHS[record] and not row[LENGTHS[record] + 1 :].any() and (row[: mask.sum()] == record).all()
        shapes.add((len(batch), width))
    assert len({width for _, width in shapes}) == 3
    assert ",pad=10/25/100)" in ranks[0].plan and ",to=10/25/100" in ranks[0].plan
    # Also without a budget ranks agree.
    pairs = [wr.Loader(view, 2, seed=3, rank=rank, world_size=2) for rank in range(2)]
    for one, other in zip(*pairs, strict=True):
        assert one["input_ids"].shape == other["input_ids"].shape
    for wrong in ([], [0, 100], [50, 20, 100], [10, 10, 100], [10, 99]):
        with pytest.raises(wr.ConfigError, match="pad="):
            ds.records(100, pad=wrong)
    with pytest.raises(wr.ConfigError, match="pad"):
        ds.records(100, pad="shortest")  # type: ignore[arg-type]
    assert ds.records(100, pad=buckets).loader(1).recipe()["parts"][0]["view"]["records"]["pad"] == buckets


def command(*arguments: object) -> str:
    told = subprocess.run([sys.executable, "-m", "windrow", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_the_command_takes_a_budget(ds: wr.Dataset, tmp_path: Path) -> None:
    data, plan = tmp_path / "data", tmp_path / "plan.json"
    options = ["--records", 100, "--pad", "longest", "--max-tokens", 400, "--batch-multiple", 2, "--pool", 60, "--seed", 3]
    command("plan", data, *options, "-o", plan)
    loader = wr.Loader(rows_of(ds), max_tokens=400, multiple=2, pool=60, seed=3)
    written = json.loads(plan.read_text())
    assert {**written, "parts": []} == {**loader.recipe(), "parts": []}
    shown = json.loads(command("trace", plan, "--step", 7, "--json"))
    batch = list(islice(loader, 8))[7]
    assert [row["reads"][0]["record"] for row in shown["rows"]] == records(batch)
    found = json.loads(command("find", data, *options, "--record", records(batch)[1], "--json"))
    assert (7, 1) in [(one["step"], one["row"]) for one in found["read_by"]]
    with_buckets = json.loads(command("trace", data, "--records", 100, "--pad", "10,100", "--max-tokens", 400, "--step", 0, "--json"))
    assert len(with_buckets["rows"]) in (4, 40)
    wrong: list[Any] = [sys.executable, "-m", "windrow", "trace", data, *map(str, options[:6]), "--batch-multiple", "8", "--step", "0"]
    told = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert told.returncode != 0 and "--max-tokens 800" in told.stderr


def test_mixing_says_how_much_is_padding(ds: wr.Dataset) -> None:
    loader = wr.Loader(rows_of(ds), max_tokens=800, multiple=2)
    mixing = loader.mixing()
    masks = [batch["loss_masks"] for batch in loader]
    share = 1 - sum(mask.sum() for mask in masks) / sum(mask.size for mask in masks)
    assert mixing["padding_share"] == pytest.approx(share, abs=0.01)
    assert mixing["padding_share"] < 0.2 < 0.4 < mixing["padding_share_at_random"]
    assert "padding_share" not in wr.Loader(rows_of(ds), 8).mixing()
