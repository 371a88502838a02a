"""OLMo-core's own Trainer with windrow's adapter, on this machine's CPU: jobs that write the rows and the loss of each step.

    python olmo_core_job.py TOKENS OUT KILLED_AT

One run never stops; two are killed, one at step KILLED_AT and one at LATE, and resumed on another number of ranks.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked
import torch
from adapters import adapter
from olmo_core.distributed.parallel import DataParallelType
from olmo_core.distributed.utils import get_rank, get_world_size
from olmo_core.nn.transformer import TransformerConfig
from olmo_core.optim import AdamWConfig
from olmo_core.train import Duration, TrainerConfig, prepare_training_environment
from olmo_core.train.callbacks import Callback, CheckpointerCallback
from olmo_core.train.train_module import TransformerDataParallelConfig, TransformerTrainModuleConfig

import windrow as wr

windrow_olmo_core = adapter("olmo_core")
# An epoch has 6 steps: what is killed in step LATE resumes from the end of one.
ROWS, LENGTH, STEPS, EVERY, LATE = 4, 32, 14, 3, 8


@dataclass
class Record(Callback):
    """Writes a line a step, and ends the process when step `killed_at` asks for rows."""

    path: Path
    killed_at: int | None
    rows: dict[int, list[str]] = field(default_factory=dict)

    def pre_load_batch(self) -> None:
        if self.step + 1 == self.killed_at:
            forked.die()

    def pre_step(self, batch: dict[str, Any]) -> None:
        self.rows[self.step] = [digest(*row) for row in zip(batch["input_ids"], batch["labels"], strict=True)]

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        if "train/CE loss" in metrics:
            with self.path.open("a") as file:
                file.write(json.dumps({"step": step, "rows": self.rows.pop(step), "loss": metrics["train/CE loss"]}) + "\n")


def digest(*tensors: torch.Tensor) -> str:
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in tensors)).hexdigest()


def train(rank: int, tokens: str, out: Path, killed_at: int | None = None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    prepare_training_environment(seed=1, backend="gloo", shared_filesystem=True)
    model = TransformerConfig.llama_like(d_model=16, vocab_size=200, n_layers=1, n_heads=2).build(init_device="cpu")
    module = TransformerTrainModuleConfig(
        rank_microbatch_size=LENGTH,
        max_sequence_length=LENGTH,
        optim=AdamWConfig(lr=1e-2),
        dp_config=TransformerDataParallelConfig(name=DataParallelType.fsdp),
    ).build(model)
    group = module.dp_process_group
    loader = windrow_olmo_core.WindrowDataLoader(
        wr.open(tokens).pack(LENGTH, eos=0),
        sequence_length=LENGTH,
        seed=5,
        work_dir=out,
        global_batch_size=ROWS * LENGTH,
        dp_world_size=get_world_size(group),
        dp_rank=get_rank(group),
    )
    recorded = Record(path=out / f"{rank}-of-{os.environ['WORLD_SIZE']}.jsonl", killed_at=killed_at)
    TrainerConfig(
        save_folder=str(out / "checkpoints"),
        max_duration=Duration.steps(STEPS),
        metrics_collect_interval=1,
        async_bookkeeping=False,
        callbacks={"checkpointer": CheckpointerCallback(save_interval=EVERY, save_async=False), "record": recorded},
    ).build(module, loader).fit()


def main(tokens: str, out: str, killed_at: str) -> None:
    folder = Path(out)
    assert forked.run(train, 1, tokens, folder / "unbroken") == [0]
    for before, after, step in ((1, 2, int(killed_at)), (2, 1, LATE)):
        job = folder / f"{before} to {after}"
        assert -9 in forked.run(train, before, tokens, job, step)
        assert not any(forked.run(train, after, tokens, job))


if __name__ == "__main__":
    main(*sys.argv[1:])
