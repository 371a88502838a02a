"""What verl's SFT trainer does with its data, with windrow's example: jobs that write the rows of each step.

    python verl_job.py KILLED_AT

One run never stops; two are killed, one at step KILLED_AT and one at LATE, and resumed on another number of ranks. A fourth has
verl's own loader, and resumes on its number of ranks. verl 0.9 does not install beside transformers 5.24: `Seam` is in its place. The folder
has `tokens`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forked_ranks
import torch
import torch.distributed as dist
from adapters import adapter
from trainer_jobs import digest, write_step
from torch.utils.data import DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader

windrow_verl = adapter("verl")
# An epoch has 6 steps.
ROWS, LENGTH, STEPS, EVERY, LATE = 4, 32, 14, 3, 8


def collate(rows: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """A nested tensor of each field, as with `data.pad_mode=no_padding`."""
    return {name: torch.nested.as_nested_tensor([row[name] for row in rows], layout=torch.jagged) for name in rows[0]}


class Seam:
    """The data, the epochs and the checkpoints of verl 0.9's SFTTrainer, without a model."""

    def __init__(self, out: Path, killed_at: int | None) -> None:
        self.out, self.killed_at = out, killed_at
        self.config = types.SimpleNamespace(data={"max_length": LENGTH, "seed": 5})
        self.engine = types.SimpleNamespace(get_data_parallel_rank=dist.get_rank, get_data_parallel_size=dist.get_world_size)
        self.train_dataset = windrow_verl.WindrowDataset(parquet_files="tokens", config=self.config.data, max_samples=-1)
        self._build_dataloader()
        self.resume_global_step = self.load_checkpoint()

    def _build_dataloader(self) -> None:
        rank, size = self.engine.get_data_parallel_rank(), self.engine.get_data_parallel_size()
        self.global_batch_size, self.collate_fn = ROWS, collate
        self.train_sampler: Any = DistributedSampler(self.train_dataset, shuffle=True, num_replicas=size, rank=rank, drop_last=True)
        self.train_dataloader: Any = StatefulDataLoader(
            self.train_dataset, batch_size=ROWS // size, sampler=self.train_sampler, collate_fn=collate, num_workers=1, drop_last=True
        )

    def fit(self) -> None:
        step = self.resume_global_step
        for epoch in range(step // len(self.train_dataloader), STEPS):
            self.train_sampler.set_epoch(epoch=epoch)
            for batch in self.until_killed(step):
                step += 1
                self.record(step, batch)
                if step % EVERY == 0:
                    self.save_checkpoint(step)
                if step == STEPS:
                    return

    def until_killed(self, step: int) -> Iterator[dict[str, torch.Tensor]]:
        batches = iter(self.train_dataloader)
        for number, batch in enumerate(batches, step + 1):
            if number == self.killed_at:
                forked_ranks.die()
            yield batch

    def record(self, step: int, batch: dict[str, torch.Tensor]) -> None:
        fields = [batch[name].unbind() for name in ("input_ids", "position_ids", "loss_mask")]
        rows = [digest(*row) for row in zip(*fields, strict=True)]
        # Nothing is trained: there is no loss.
        folder = self.out / ("resumed" if self.resume_global_step else "begun")
        write_step(folder / f"{dist.get_rank()}-of-{dist.get_world_size()}.jsonl", step, rows, 0.0)

    def save_checkpoint(self, step: int) -> None:
        torch.save(self.train_dataloader.state_dict(), self.state_of(step))
        dist.barrier()
        (self.out / "latest").write_text(str(step))

    def load_checkpoint(self) -> int:
        if not (self.out / "latest").exists():
            return 0
        step = int((self.out / "latest").read_text())
        if self.state_of(step).exists():
            self.train_dataloader.load_state_dict(torch.load(self.state_of(step), weights_only=False))
        return step

    def state_of(self, step: int) -> Path:
        return self.out / f"step-{step}-data_{self.engine.get_data_parallel_rank()}.pt"


class Elastic(windrow_verl.Elastic, Seam):  # type: ignore[misc,name-defined]
    """As the page makes it of verl's trainer."""


def train(_: int, kind: type[Seam], out: Path, killed_at: int | None = None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    kind(out, killed_at).fit()
    dist.barrier()


def main(killed_at: str) -> None:
    for kind, n in ((Elastic, 1), (Seam, 2)):
        assert not any(forked_ranks.run(train, n, kind, Path(f"{kind.__name__}, unbroken")))
    for kind, before, after, step in ((Elastic, 1, 2, int(killed_at)), (Elastic, 2, 1, LATE), (Seam, 2, 2, int(killed_at))):
        job = Path(f"{kind.__name__}, {before} to {after}")
        assert -9 in forked_ranks.run(train, before, kind, job, step)
        assert not any(forked_ranks.run(train, after, kind, job))


if __name__ == "__main__":
    main(*sys.argv[1:])
