"""examples/trainers/maxtext.py: read as MaxText reads it, killed at a random step, resumed by another number of processes."""

from __future__ import annotations

import numpy as np
import pytest
from trainer_jobs import Job, documents, run_job
from maxtext_job import LENGTH, ROWS, iterator_of


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("maxtext")
    documents(folder / "tokens")
    return run_job("maxtext_job.py", folder)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 4)])
def test_a_killed_run_resumes_on_the_rows_of_one_that_never_stopped(job: Job, before: int, after: int) -> None:
    job.check(f"{before} to {after}", before, after, unbroken=1)


def test_a_batch_has_the_names_dtypes_and_masks_of_maxtext(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job.folder)
    batch = next(iterator_of(0, 1).local_iterator)
    names = [side + part for side in ("inputs", "targets") for part in ("", "_position", "_segmentation")]
    assert sorted(batch) == sorted(names)
    assert {(values.shape, values.dtype.name) for values in batch.values()} == {((ROWS, LENGTH), "int32")}
    ends = np.diff(batch["inputs_segmentation"], axis=1) == 1
    assert ends.any() and batch["inputs_segmentation"].min() == 1
    # The last token of each document has no target within it.
    assert not batch["targets_segmentation"][:, :-1][ends].any()
    learned = batch["targets_segmentation"] > 0
    assert (batch["targets"][~learned] == 0).all() and (batch["targets_segmentation"] == batch["inputs_segmentation"])[learned].all()
    assert (batch["targets"][:, :-1] == batch["inputs"][:, 1:])[learned[:, :-1]].all()
