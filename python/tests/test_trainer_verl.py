"""examples/trainers/verl.py in what verl's SFT trainer does with data: killed, and resumed on another number of ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from adapters import adapter
from trainer_jobs import Job, documents, run_job

import windrow as wr

EVERY, LATE, STEPS = 3, 8, 14


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("verl")
    documents(folder / "tokens", n=25)
    return run_job("verl_job.py", folder)


@pytest.mark.parametrize(("kind", "before", "after"), [("Elastic", 1, 2), ("Elastic", 2, 1), ("Seam", 2, 2)])
def test_a_killed_run_reads_the_rows_of_one_that_never_stopped(job: Job, kind: str, before: int, after: int) -> None:
    killed_at = LATE if before > after else job.killed_at
    whole = job.steps(f"{kind}, unbroken/begun", 1 if kind == "Elastic" else 2)
    name = f"{kind}, {before} to {after}"
    begun, resumed = job.steps(f"{name}/begun", before), job.steps(f"{name}/resumed", after)
    assert [*whole] == [*range(1, STEPS + 1)]
    assert [*begun] == [*range(1, killed_at)] and [*resumed] == [*range((killed_at - 1) // EVERY * EVERY + 1, STEPS + 1)]
    for step, found in [*begun.items(), *resumed.items()]:
        assert found == whole[step], step


def test_an_epoch_has_each_row_once(job: Job) -> None:
    whole = job.steps("Elastic, unbroken/begun", 1)
    for first in (1, 7):
        rows = [row for step in range(first, first + 6) for row in whole[step].rows]
        assert len(rows) == len(set(rows)) == 24


def test_a_row_has_its_mask_and_no_padding(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Name a colour."}, {"role": "assistant", "content": "Red."}]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps({"messages": messages[:n]}) + "\n" for n in (2, 2)))
    wr.tokenize(tmp_path / "chat.jsonl", tmp_path / "tokens", tokenizer="bytes", chat=True, chat_template="chatml")
    dataset = adapter("verl").WindrowDataset(parquet_files=str(tmp_path / "tokens"), config={"max_length": 4096})
    row, record = dataset[1], wr.open(tmp_path / "tokens")[1]
    assert len(dataset) == 2 and [*row] == ["input_ids", "position_ids", "loss_mask"]
    assert torch.equal(row["input_ids"], torch.from_numpy(record["tokens"].astype("int64")))
    assert torch.equal(row["position_ids"], torch.arange(len(record["tokens"])))
    learned = wr.Tokenizer("bytes").decode(row["input_ids"][row["loss_mask"] == 1].numpy())
    assert learned == "Red.<|im_end|>"
    # Another row's end would be what it is learned from.
    documents(tmp_path / "plain", n=3)
    plain = adapter("verl").WindrowDataset(parquet_files=str(tmp_path / "plain"), config={"max_length": 4096})
    assert [row["loss_mask"].sum() - len(row["loss_mask"]) for row in plain] == [-1, -1, -1]
