"""TRL's own SFTTrainer with windrow's example, on this machine's CPU: jobs that write the rows and the loss of each step.

    python trl_job.py KILLED_AT

One run never stops; two are killed, one at step KILLED_AT and one at LATE, and resumed with another number of processes. The folder
has `tokens`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import forked_ranks
import torch
from adapters import adapter, on_page
from trainer_jobs import digest, write_step
from transformers import TrainerCallback

adapter("trl")
page = on_page("train_trl.py")
# An epoch has 25 rows: a batch has the end of one and the beginning of the next.
ROWS, LENGTH, STEPS, EVERY, LATE = 4, 32, 14, 3, 11


class Record(TrainerCallback):  # type: ignore[misc]
    """Writes a line a step, and ends the process when step `killed_at` begins."""

    def __init__(self, path: Path, killed_at: int | None) -> None:
        self.path, self.killed_at = path, killed_at
        self.rows: list[str] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        model.register_forward_pre_hook(self.see, with_kwargs=True)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step + 1 == self.killed_at:
            forked_ranks.die()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any, **_: Any) -> None:
        if "loss" in logs:
            write_step(self.path, state.global_step, self.rows, logs["loss"])
            self.rows.clear()

    def see(self, module: Any, _: Any, inputs: dict[str, Any]) -> None:
        """The rows of a batch, which are one after the other."""
        columns = [inputs[name][0].split(LENGTH) for name in ("input_ids", "labels", "position_ids")]
        self.rows += [digest(*row) for row in zip(*columns, strict=True)]


def train(rank: int, out: Path, killed_at: int | None = None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    record = Record(out / f"{rank}-of-{os.environ['WORLD_SIZE']}.jsonl", killed_at)
    page["train"](
        str(out / "checkpoints"),
        length=LENGTH,
        global_batch_size=ROWS,
        callbacks=[record],
        max_steps=STEPS,
        save_steps=EVERY,
        logging_steps=1,
        learning_rate=1e-2,
        use_cpu=True,
        bf16=False,
        report_to="none",
        disable_tqdm=True,
    )


def main(killed_at: str) -> None:
    assert forked_ranks.run(train, 1, Path("unbroken")) == [0]
    forked_ranks.kill_and_resume(train, (1, 2, int(killed_at)), (2, 1, LATE))


if __name__ == "__main__":
    main(*sys.argv[1:])
