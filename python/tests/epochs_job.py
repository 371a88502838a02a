"""What trainers do to an epoch: the rows that they give to one process and to two, and to one that resumes.

    python epochs_job.py

In a folder with `rows.bin`, for each line of the table in docs/resuming.md: the batches of two epochs of each rank, and those of a
run that resumed in the second one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forked_ranks
import ignite.handlers
import lightning
import torch
import torch.distributed as dist
import transformers
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration
from ignite.engine import Engine, Events
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import windrow as wr

BATCH, EPOCHS = 4, 2
# The batch after which a run saves, in its second epoch.
SAVED = 18


class Run:
    """One run of a trainer: where it saves, whether it resumes from there, and the batches that it saw."""

    def __init__(self, folder: Path, is_resuming: bool) -> None:
        self.folder, self.is_resuming = folder, is_resuming
        self.batches: list[list[int]] = []

    def see(self, batch: dict[str, Any]) -> bool:
        """Whether it saves after this batch."""
        self.batches.append((batch["input_ids"][:, 0] // 8).tolist())
        return not self.is_resuming and len(self.batches) == SAVED


class Model(torch.nn.Module):
    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run, self.embedding = run, torch.nn.Embedding(1000, 2)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        self.run.see({"input_ids": input_ids})
        return {"loss": self.embedding(input_ids).mean()}


def trainer(data: Any, run: Run, **options: Any) -> None:
    arguments = transformers.TrainingArguments(
        str(run.folder), num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, save_steps=SAVED, use_cpu=True, report_to=[],
        disable_tqdm=True, logging_strategy="no", dataloader_pin_memory=False, **options,
    )  # fmt: skip
    host = transformers.Trainer(Model(run), arguments, train_dataset=data)
    host.train(resume_from_checkpoint=str(run.folder / f"checkpoint-{SAVED}") if run.is_resuming else None)


def accelerate(data: Any, run: Run, stateful: Any = None, **config: Any) -> None:
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**config))
    batches = accelerator.prepare(data)
    if stateful is not None:
        accelerator.register_for_checkpointing(stateful)
    if run.is_resuming:
        accelerator.load_state(run.folder)
    for _ in range(run.is_resuming, EPOCHS):
        is_skipping = run.is_resuming and stateful is None
        for batch in skip_first_batches(batches, SAVED - len(batches)) if is_skipping else batches:
            if run.see(batch):
                accelerator.save_state(run.folder)


def lightning_(data: Any, run: Run) -> None:
    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def training_step(self, batch: Any, _: int) -> Any:
            self.is_saving = run.see(batch)
            return self.weight.sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Save(lightning.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, host: Any, module: Module, *_: Any) -> None:
            if module.is_saving:
                host.save_checkpoint(run.folder / "saved.ckpt")

    host = lightning.Trainer(
        accelerator="cpu", devices=dist.get_world_size(), strategy="ddp" if dist.get_world_size() > 1 else "auto", max_epochs=EPOCHS, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=run.folder, callbacks=[Save()],
    )  # fmt: skip
    host.fit(Module(), data, ckpt_path=run.folder / "saved.ckpt" if run.is_resuming else None)


def ignite_(data: Any, run: Run, stateful: Any = None) -> None:
    engine = Engine(lambda _, batch: None)
    saved = {"engine": engine} | ({"data": stateful} if stateful is not None else {})
    path = run.folder / "saved.pt"

    @engine.on(Events.ITERATION_COMPLETED)
    def completed(engine: Engine) -> None:
        if run.see(engine.state.batch):
            torch.save({name: part.state_dict() for name, part in saved.items()}, path)

    if run.is_resuming:
        ignite.handlers.Checkpoint.load_objects(saved, torch.load(path, weights_only=False))
    engine.run(data, max_epochs=EPOCHS, epoch_length=len(data))


def torchdata(data: Any, run: Run) -> None:
    path = run.folder / "saved.pt"
    if run.is_resuming:
        data.load_state_dict(torch.load(path, weights_only=False))
    for _ in range(run.is_resuming, EPOCHS):
        for batch in data:
            if run.see(batch):
                torch.save(data.state_dict(), path)


def loader(view: wr.View) -> wr.Loader:
    return wr.Loader(view, BATCH, seed=3, framework="torch")


def shared_out(view: wr.View) -> wr.torch.Stream:
    return wr.torch.Stream(view, seed=3, rank=0, world_size=1)


def with_state(host: Callable[..., None], data: Any, run: Run) -> None:
    host(data, run, data)


def of_stream(view: wr.View, run: Run, **config: Any) -> None:
    stream = shared_out(view)
    accelerate(DataLoader(stream, batch_size=BATCH), run, stream, **config)


def batches_of(view: wr.View) -> StatefulDataLoader:
    return StatefulDataLoader(wr.torch.Stream(view, seed=3), batch_size=BATCH)


# Trainer and data as the table names them.
CASES: dict[tuple[str, str], Callable[[wr.View, Run], None]] = {
    ("`Trainer`", "the view"): lambda view, run: trainer(view, run),
    ("`Trainer`", "`Stream(view)`"): lambda view, run: trainer(shared_out(view), run),
    ("`Trainer`", "`Stream(view)`, `ignore_data_skip=True`"): lambda view, run: trainer(shared_out(view), run, ignore_data_skip=True),
    ("Accelerate", "`DataLoader(view, shuffle=True)`"): lambda view, run: accelerate(DataLoader(view, BATCH, shuffle=True), run),
    ("Accelerate", "`DataLoader(Stream(view))`, registered"): of_stream,
    ("Accelerate", "the same, `dispatch_batches=False`"): lambda view, run: of_stream(view, run, dispatch_batches=False),
    ("Accelerate", "`Loader(view)`, registered"): lambda view, run: with_state(accelerate, loader(view), run),
    ("Lightning", "`DataLoader(view, shuffle=True)`"): lambda view, run: lightning_(DataLoader(view, BATCH, shuffle=True), run),
    ("Lightning", "`StatefulDataLoader(Stream(view))`"): lambda view, run: lightning_(batches_of(view), run),
    ("Lightning", "`Loader(view)`"): lambda view, run: lightning_(loader(view), run),
    ("ignite", "`Loader(view)`"): lambda view, run: ignite_(loader(view), run),
    ("ignite", "`Loader(view)`, saved with the engine"): lambda view, run: with_state(ignite_, loader(view), run),
    ("torchdata", "`StatefulDataLoader(Stream(view))`"): lambda view, run: torchdata(batches_of(view), run),
}


def work(rank: int, name: tuple[str, str], folder: Path, kind: str) -> None:
    torch.manual_seed(7)
    run = Run(folder / ("together" if kind == "together" else "alone"), kind == "resumed")
    run.folder.mkdir(parents=True, exist_ok=True)
    CASES[name](wr.open("rows.bin", dtype="uint16").pack(8), run)
    (folder / f"{kind}-{rank}.json").write_text(json.dumps(run.batches))


def main() -> None:
    # Asked for where it is not used: the group is there already.
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for number, name in enumerate(CASES):
        for kind, n in (("unbroken", 1), ("resumed", 1), ("together", 2)):
            assert not any(forked_ranks.run(work, n, name, Path(str(number)), kind)), (name, kind)
    Path("names.json").write_text(json.dumps([*CASES]))


if __name__ == "__main__":
    main()
