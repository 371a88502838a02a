"""examples/trainers/trl.py in TRL's own SFTTrainer: killed, and resumed with another number of processes.
"""

from __future__ import annotations

import pytest
from trainer_jobs import Job, documents, run_job

LATE = 11


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("trl")
    documents(folder / "tokens", n=25)
    return run_job("trl_job.py", folder)


def test_a_run_that_was_killed_in_the_first_epoch_is_one_that_never_stopped(job: Job) -> None:
    job.check("1 to 2", 1, 2, unbroken=1)


def test_a_run_that_was_killed_in_the_second_epoch_is_one_that_never_stopped(job: Job) -> None:
    Job(job.folder, LATE).check("2 to 1", 2, 1, unbroken=1)
