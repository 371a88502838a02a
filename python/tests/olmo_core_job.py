"""OLMo-core's own Trainer with windrow's adapter, on this machine's CPU: jobs that write the rows and the loss of each step.

    python olmo_core_job.py KILLED_AT

One run never stops; two are killed, one at step KILLED_AT and one at LATE, and resumed on another number of ranks. The folder has `tokens`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked_ranks
import torch
from adapters import adapter, on_page
from trainer_jobs import digest, write_step
from olmo_core.train import Duration, prepare_training_environment
from olmo_core.train.callbacks import Callback, CheckpointerCallback

adapter("olmo_core")
page = on_page("train_olmo.py")
# An epoch has 6 steps: what is killed in step LATE resumes from the end of one.
ROWS, LENGTH, STEPS, EVERY, LATE = 4, 32, 14, 3, 8
page |= {"ROWS": ROWS, "LENGTH": LENGTH}


@dataclass
class Record(Callback):
    """Writes a line a step, and ends the process when step `killed_at` asks for rows."""

    path: Path
    killed_at: int | None
    rows: dict[int, list[str]] = field(default_factory=dict)

    def pre_load_batch(self) -> None:
        if self.step + 1 == self.killed_at:
            forked_ranks.die()

    def pre_step(self, batch: dict[str, Any]) -> None:
        self.rows[self.step] = [digest(*row) for row in zip(batch["input_ids"], batch["labels"], strict=True)]

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        if "train/CE loss" in metrics:
            write_step(self.path, step, self.rows.pop(step), metrics["train/CE loss"])


def train(rank: int, out: Path, killed_at: int | None = None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    prepare_training_environment(seed=1, backend="gloo", shared_filesystem=True)
    recorded = Record(path=out / f"{rank}-of-{os.environ['WORLD_SIZE']}.jsonl", killed_at=killed_at)
    trainer = page["build"](
        str(out / "checkpoints"),
        max_duration=Duration.steps(STEPS),
        metrics_collect_interval=1,
        async_bookkeeping=False,
        callbacks={"checkpointer": CheckpointerCallback(save_interval=EVERY, save_async=False), "record": recorded},
    )
    trainer.fit()


def main(killed_at: str) -> None:
    assert forked_ranks.run(train, 1, Path("unbroken")) == [0]
    forked_ranks.kill_and_resume(train, (1, 2, int(killed_at)), (2, 1, LATE))


if __name__ == "__main__":
    main(*sys.argv[1:])
