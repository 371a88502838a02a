"""examples/trainers/megatron.py under a GPT of megatron-core, tp 2 · dp 2 and cp 2: killed at a random step, resumed on another data-parallel size."""

from __future__ import annotations

import pytest
from trainer_jobs import Job, documents, run_job


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("megatron")
    documents(folder / "tokens")
    return run_job("megatron_job.py", folder)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_killed_run_trains_on_the_rows_and_losses_of_one_that_never_stopped(job: Job, before: int, after: int) -> None:
    job.check(f"{before} to {after}", before, after, unbroken=1)


def test_context_parallel_ranks_have_the_same_rows_or_their_slices_of_them(job: Job) -> None:
    assert len([*job.folder.glob("slices-*-of-4")]) == 4
