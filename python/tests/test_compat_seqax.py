"""windrow.compat.seqax: the recorded batches, any step, any rows; rows of sequences as the document means them."""

from __future__ import annotations

import json
import multiprocessing
import pathlib

import numpy as np
import pytest
import windrow as wr
from windrow.compat.seqax import FlatTokensParams, ShufflingLoader, TokenBatchParams, permutation

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden" / "2_flat_tokens"
CASES = {case["name"]: case for case in json.loads((GOLDEN / "loader_cases.json").read_text())}


def loader_of(case, **options):
    params = FlatTokensParams(filespec=str(GOLDEN / case["dataset"]), **case["params"])
    return ShufflingLoader(case["split"], params, TokenBatchParams(case["len"], case["batch"]), **options)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_golden(case):
    expected = case["expected"]
    if "open_error" in expected:
        with pytest.raises(wr.ConfigError):
            loader_of(case)
        return
    loader = loader_of(case)
    for name in ("step_count", "seq_count", "read_block_count", "minipoch_count", "max_token_id"):
        assert getattr(loader, name) == expected[name], name
    assert loader.read_block_ordering == expected["read_block_ordering"]
    seen = 0
    for step in expected["steps"]:
        if "targets" not in step:
            # Out of range there and here; or rows that the original could not lay.
            if step["step"] >= loader.step_count:
                with pytest.raises(wr.OutOfRangeError):
                    loader.load(step["step"])
            continue
        batch = loader.load(step["step"])
        assert batch.targets.dtype == np.uint32 and batch.is_seq_start.dtype == np.bool_
        assert batch.targets.tolist() == step["targets"]
        assert batch.is_seq_start.astype(int).tolist() == step["is_seq_start"]
        seen += 1
    assert seen or "upstream_bug" in case["name"]


def test_a_missing_chunk_is_zeros_only_where_that_is_asked_for(tmp_path):
    wr.write(tmp_path / "train", [[5] * 8] * 4, to="flat-tokens", tokens_chunk_size=8)
    (tmp_path / "train" / "encoded_tokens" / "1").unlink()

    def rows(**options):
        params = FlatTokensParams(tmp_path, 1, 1, 1, seed=0, sequence_packing=True)
        loader = ShufflingLoader("train", params, TokenBatchParams(len=8, batch=1), **options)
        return sorted(loader.load(step).targets[0].tolist() for step in range(loader.step_count))

    with pytest.raises(wr.WindrowError, match="encoded_tokens/1"):
        rows()
    assert rows(fill_missing=True) == [[0] * 8] + [[5] * 8] * 3


def test_permutations_are_the_recorded_ones():
    for case in json.loads((GOLDEN / "permutations.json").read_text()):
        assert permutation(case["seed"], case["n"]) == case["permutation"]


@pytest.mark.parametrize("name", ["packed_two_streams", "packed_four_streams_one_host_mesh8x1"])
def test_a_host_reads_its_rows_of_the_same_batch(name):
    loader, case = loader_of(CASES[name]), CASES[name]
    for step in range(loader.step_count):
        whole, half = loader.load(step), case["batch"] // 2
        for rows in (slice(0, half), slice(half, None)):
            part = loader.load(step, rows)
            assert part.targets.tolist() == whole.targets[rows].tolist()
            assert part.is_seq_start.tolist() == whole.is_seq_start[rows].tolist()


def test_every_sequence_is_a_row_once():
    loader = loader_of(CASES["unpacked_multi_block_upstream_bug"])
    rows = np.concatenate([loader.load(step).targets for step in range(loader.step_count)])
    stored = wr.open(GOLDEN / "uniform_len8.zarr", split="train")
    assert sorted(rows.tolist()) == sorted(ids.tolist() for ids in stored)


def test_a_sequence_longer_than_a_row(tmp_path):
    wr.write(tmp_path / "train", [[1, 2, 3, 4, 5], [], [6]], to="flat-tokens")
    params = FlatTokensParams(tmp_path, 1, 1, 1, seed=0, sequence_packing=False)

    def rows(**options):
        loader = ShufflingLoader("train", params, TokenBatchParams(len=2, batch=1), **options)
        batches = [loader.load(step) for step in range(loader.step_count)]
        return sorted(
            (b.targets[0].tolist(), b.is_seq_start[0].tolist(), b.loss_mask[0].tolist()) for b in batches
        )

    empty = ([0, 0], [True, True], [False, False])
    six = ([6, 0], [True, True], [True, False])
    assert rows() == [empty, ([1, 2], [True, False], [True, True]), six]
    assert rows(overlong="split") == [
        empty,
        ([1, 2], [True, False], [True, True]),
        ([3, 4], [False, False], [True, True]),
        ([5, 0], [False, True], [True, False]),
        six,
    ]
    with pytest.raises(wr.ConfigError, match="5 tokens"):
        rows(overlong="error")


def test_the_native_view_gives_the_training_inputs():
    for case in json.loads((GOLDEN / "shifted_inputs.json").read_text()):
        source = CASES[case["case"]]
        view = wr.open(GOLDEN / source["dataset"], split=source["split"]).pack(source["len"], shifted=True)
        by_targets = {tuple(sample["targets"].tolist()): sample for sample in view}
        for targets, inputs, segments in zip(case["targets"], case["inputs"], case["segment_ids"], strict=True):
            sample = by_targets[tuple(targets)]
            assert sample["inputs"].tolist() == inputs
            assert sample["segment_ids"].tolist() == segments
            assert sample["position_ids"][0] == 0


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("targets", "is_seq_start", "loss_mask"))


def test_steps_assembled_ahead_are_the_steps(tmp_path):
    documents = [[i] * (i % 7) for i in range(1, 2_000)]
    wr.write(tmp_path / "train", documents, to="flat-tokens", tokens_chunk_size=500)
    params = FlatTokensParams(tmp_path, 2, 3, 4, seed=5, sequence_packing=True)

    def new():
        return ShufflingLoader("train", params, TokenBatchParams(len=16, batch=8))

    # Each step by a loader that has seen no other.
    alone = [new().load(step) for step in range(new().step_count)]
    loader = new()
    n = loader.step_count
    for steps in (range(n), [3, 4, 5, 5, 6, 2, 3, 4, n - 1, 0, 1, 2], range(n - 3, n), reversed(range(n))):
        for step in steps:
            assert same(loader.load(step), alone[step]), step
    # As devices ask: each for its rows of every step.
    for step in range(n):
        for rows in (slice(0, 2), slice(2, 8)):
            assert np.array_equal(loader.load(step, rows).targets, alone[step].targets[rows])
    for start in range(8):
        for end in range(start + 1, 9):
            for step in (1, 2, 3):
                assert np.array_equal(loader.load(step, slice(start, end)).targets, alone[step].targets[start:end])
    with pytest.raises(wr.OutOfRangeError):
        loader.load(n)


# What a forked process has from its parent.
LOADERS = []


def sums_from(start):
    return [int(LOADERS[0].load(step).targets.sum()) for step in range(start, start + 10)]


def test_a_forked_process_assembles_ahead_by_its_own_threads(tmp_path):
    wr.write(tmp_path / "train", [list(range(1, 500))] * 20, to="flat-tokens", tokens_chunk_size=500)
    params = FlatTokensParams(tmp_path, 1, 3, 4, seed=5, sequence_packing=True)
    loader = ShufflingLoader("train", params, TokenBatchParams(len=16, batch=8))
    sums = [int(loader.load(step).targets.sum()) for step in range(20)]
    with multiprocessing.get_context("fork").Pool(2, initializer=LOADERS.append, initargs=(loader,)) as pool:
        parts = [pool.apply_async(sums_from, (start,)) for start in (0, 10)]
        assert [n for part in parts for n in part.get(timeout=60)] == sums
