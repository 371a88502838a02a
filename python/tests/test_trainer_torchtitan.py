"""examples/trainers/torchtitan.py in torchtitan's own Trainer: killed at a random step, resumed on another number of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from adapters import adapter
from trainer_jobs import Job, documents, run_job
from tokenizers import Tokenizer
from tokenizers.models import WordLevel


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("titan")
    documents(folder / "tokens")
    documents(folder / "held-out", n=12)
    Tokenizer(WordLevel({"a": 0}, unk_token="a")).save(str(folder / "tokenizer.json"))
    return run_job("titan_job.py", folder)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_a_killed_run_trains_on_the_rows_and_losses_of_one_that_never_stopped(job: Job, before: int, after: int) -> None:
    job.check(f"{before} to {after}", before, after, unbroken=1)


SEAMS: dict[str, dict[str, Any]] = {
    "0.3": {"seq_len": 32, "local_batch_size": 2, "snapshot_every_n_steps": 1, "tokenizer": None},
    "git": {"max_context_length": 32, "num_tokens_per_batch": 64, "tokenizer": None},
}


@pytest.mark.parametrize("seam", SEAMS)
def test_a_batch_is_what_the_seam_asks_for(seam: str, tmp_path: Path) -> None:
    """[B, T] of 0.3, and the same tokens in one row of git's, where a document begins at each position 0."""
    documents(tmp_path / "tokens")
    config = adapter("torchtitan").WindrowDataLoader.Config(dataset_path=str(tmp_path / "tokens"))
    loader = config.build(dp_world_size=2, dp_rank=1, **SEAMS[seam])
    inputs, labels = next(iter(loader))
    tensors = [inputs["input"], inputs["positions"], labels]
    assert list(inputs) == ["input", "positions"]
    assert {(tuple(tensor.shape), tensor.dtype) for tensor in tensors} == {((64,) if seam == "git" else (2, 32), torch.int64)}
    tokens, positions, labels = (tensor.flatten() for tensor in tensors)
    begins = positions == 0
    assert begins[0] and begins[32] and begins.sum() > 2
    # A label is the next token, and -100 where another document begins there, but for the row's end.
    inner = torch.arange(63) != 31
    assert (labels[:-1] == torch.where(begins[1:], -100, tokens[1:]))[inner].all()
    loader.close()


@pytest.mark.parametrize("finite", ["infinite", "repeat"])
def test_a_pass_of_the_validator_ends_after_every_row(finite: str, tmp_path: Path) -> None:
    """0.3 sets `infinite`, its git `repeat`."""
    documents(tmp_path / "tokens")
    config = adapter("torchtitan").WindrowDataLoader.Config(dataset_path=str(tmp_path / "tokens"), **{finite: False})
    loader = config.build(dp_world_size=1, dp_rank=0, **SEAMS["0.3"])
    n = len(loader.loader)
    assert n > 5 and [len([*loader]), len([*loader])] == [n, n]


def test_a_state_within_a_step_of_the_loader_is_refused(tmp_path: Path) -> None:
    """It would be of the step's beginning: rows would be trained on twice."""
    documents(tmp_path / "tokens")
    config = adapter("torchtitan").WindrowDataLoader.Config(dataset_path=str(tmp_path / "tokens"), global_batch_size=8)
    loader = config.build(dp_world_size=1, dp_rank=0, **SEAMS["0.3"])
    batches, begin = iter(loader), loader.state_dict()
    next(batches)
    with pytest.raises(ValueError, match="training.global_batch_size"):
        loader.state_dict()
    for _ in range(3):
        next(batches)
    assert begin["samples"] == 0 and loader.state_dict()["samples"] == 8
