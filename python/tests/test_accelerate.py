"""Accelerate and Trainer read ahead, skip and save: no batch is lost by it, and what they cannot know is said."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader

import windrow as wr

N = 96


@pytest.fixture
def rows(tmp_path: Path) -> wr.View:
    """96 samples of 8 tokens; sample i begins with 8 * i."""
    np.arange(N * 8 + 1, dtype=np.uint16).tofile(tmp_path / "rows.bin")
    return wr.open(tmp_path / "rows.bin", dtype="uint16").pack(8)


def ids(batches: Any) -> list[list[int]]:
    return [(batch["input_ids"][:, 0] // 8).tolist() for batch in batches]


def some(batches: Any, n: int) -> list[list[int]]:
    """The first batches of a ``for``, which is left then as a ``break`` leaves it."""
    found = []
    for batch in batches:
        found += ids([batch])
        if len(found) == n:
            break
    return found


def prepared(stream: Any, batch_size: int | None, **config: bool) -> tuple[Any, Any]:
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**config))
    return accelerator, accelerator.prepare(DataLoader(stream, batch_size=batch_size))


# Batches of 8 fill the epoch of 96; of batches of 10, the last has 6.
CONFIGS = [
    {"dispatch_batches": dispatch, "use_stateful_dataloader": stateful} for dispatch in (False, True) for stateful in (False, True)
]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("size", [8, 10])
@pytest.mark.parametrize("is_batched", [False, True])
def test_a_for_continues_after_a_break(rows: wr.View, size: int, is_batched: bool, config: dict[str, bool]) -> None:
    expected = ids(islice(wr.Loader(rows, size, seed=3, drop_last=False).stream(), 36))
    n = -(-N // size)
    for taken in (1, 5, n - 2, n - 1, n):
        stream = wr.torch.Stream(rows, size, drop_last=False, seed=3) if is_batched else wr.torch.Stream(rows, seed=3)
        _, batches = prepared(stream, None if is_batched else size, **config)
        found = some(batches, taken)
        assert found == expected[:taken]
        # The stream's own state knows it too, wherever it continues.
        again = wr.torch.Stream(rows, size, drop_last=False, seed=3)
        again.load_state_dict(stream.state_dict())
        assert ids(islice(again.loader.stream(), 2)) == expected[taken : taken + 2], taken
        for _ in range(2):
            found += ids(batches)
        assert found == expected[: len(found)] and len(found) in (2 * n, 3 * n), taken


@pytest.mark.parametrize("config", CONFIGS)
def test_a_registered_stream_or_loader_continues(rows: wr.View, tmp_path: Path, config: dict[str, bool]) -> None:
    expected = ids(islice(wr.Loader(rows, 8, seed=3).stream(), 36))

    def make() -> tuple[Any, Any, Any]:
        stream, loader = wr.torch.Stream(rows, seed=3), wr.Loader(rows, 8, seed=3, framework="torch")
        accelerator, batches = prepared(stream, 8, **config)
        # What it is not told of, it does not save.
        assert accelerator.prepare(loader) is loader and loader not in accelerator._dataloaders
        accelerator.register_for_checkpointing(stream, loader)
        return accelerator, batches, loader

    accelerator, batches, loader = make()
    assert ids(batches) == ids(loader) == expected[:12]
    for number, batch in enumerate(batches):
        assert ids([batch]) == ids([next(loader)]) == [expected[12 + number]]
        if number == 4:
            accelerator.save_state(tmp_path / "state")
    accelerator, batches, loader = make()
    accelerator.load_state(tmp_path / "state")
    assert ids(batches) == ids(loader) == expected[17:24]
    assert ids(batches) == ids(loader) == expected[24:]


class Model(torch.nn.Module):
    """A loss that depends on every batch before it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(N * 8 + 1, 4)

    def forward(self, input_ids: Any, labels: Any = None) -> dict[str, Any]:
        return {"loss": (self.embedding(input_ids).sum(dim=(1, 2)) - 1).square().mean()}


def test_trainer_resumes_a_loader_that_is_told_the_epoch(rows: wr.View, tmp_path: Path) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Stop(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = state.global_step == 17

    class Tell(TrainerCallback):  # type: ignore[misc]
        def on_epoch_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any, **_: Any) -> None:
            train_dataloader.set_epoch(int(state.epoch))

    class WithLoader(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return wr.Loader(rows, 8, seed=3, framework="torch")

    def train(*callbacks: Any, **resume: Any) -> list[float]:
        arguments = TrainingArguments(
            output_dir=str(tmp_path), num_train_epochs=2, save_steps=17, logging_steps=1, learning_rate=0.05,
            report_to=[], use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = WithLoader(Model(), arguments, train_dataset=rows, callbacks=list(callbacks))
        trainer.train(**resume)
        return [h["loss"] for h in trainer.state.log_history if "loss" in h]

    losses = train()
    assert train(Stop()) == losses[:17]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="batches of a Loader")
        assert train(Tell(), resume_from_checkpoint=str(tmp_path / "checkpoint-17")) == losses
    with pytest.warns(UserWarning, match=r"order of epoch 0(.|\n)*windrow\.torch\.Stream"):
        assert train(resume_from_checkpoint=str(tmp_path / "checkpoint-17")) != losses


# Two processes.

TWO = """
    import json, os, sys
    import windrow as wr
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration
    from torch.utils.data import DataLoader, IterableDataset

    path, out, dispatch, split = sys.argv[1], sys.argv[2], sys.argv[3] == "dispatch", sys.argv[4] == "split"
    rows = wr.open(path, dtype="uint16").pack(8)

    def make(**config):
        config = DataLoaderConfiguration(dispatch_batches=dispatch, split_batches=split, **config)
        accelerator = Accelerator(cpu=True, dataloader_config=config)
        stream = wr.torch.Stream(rows, seed=3, rank=0, world_size=1)
        batches = accelerator.prepare(DataLoader(stream, batch_size=8 if split else 4))
        accelerator.register_for_checkpointing(stream)
        return accelerator, batches

    seen = []

    def see(batches, n=None):
        for number, batch in enumerate(batches, 1):
            seen.append((batch["input_ids"][:, 0] // 8).tolist())
            if number == n:
                break

    accelerator, batches = make()
    see(batches, 5)
    see(batches)
    see(batches, 5)
    accelerator.wait_for_everyone()
    accelerator.save_state(out + "/state")
    accelerator.wait_for_everyone()
    accelerator, batches = make()
    accelerator.load_state(out + "/state")
    see(batches)
    see(batches, 1)

    # A Loader that finds its rank reads its part, of which Accelerate would take a part again.
    class Within(IterableDataset):
        def __init__(self, **options):
            self.options = options

        def __iter__(self):
            for batch in wr.Loader(rows, 1, shuffle=False, epochs=1, framework="torch", **self.options):
                yield {name: values[0] for name, values in batch.items()}

    def prepared(data, batch_size):
        config = DataLoaderConfiguration(dispatch_batches=dispatch, split_batches=split)
        return Accelerator(cpu=True, dataloader_config=config).prepare(DataLoader(data, batch_size=batch_size))

    within = prepared(Within(rank=0, world_size=1), 8 if split else 4)
    known = sum(((batch["input_ids"][:, 0] // 8).tolist() for batch in within), [])
    refused = []
    try:
        # Where one process reads for all, the others wait for it.
        if not dispatch or accelerator.is_main_process:
            next(iter(prepared(Within(), 8 if split else 4)))
    except wr.ConfigError as error:
        refused.append(str(error))
    try:
        if not dispatch and not split:
            next(iter(prepared(wr.torch.Stream(rows, 4, rank=0, world_size=1), None)))
    except wr.ConfigError as error:
        refused.append(str(error))
    # What each process reads for itself, beside a loader that shares out, finds its rank.
    beside = next(wr.Loader(rows, global_batch_size=8, shuffle=False, framework="torch"))["input_ids"][:, 0] // 8

    _, batches = make(use_stateful_dataloader=True)
    said = ""
    try:
        next(iter(batches))
    except wr.ConfigError as error:
        said = str(error)
    with open(f"{out}/{accelerator.process_index}.json", "w") as file:
        json.dump([seen, said, known, refused, beside.tolist()], file)
    # gloo's threads may still hold tensors, and abort a Python that ends meanwhile.
    os._exit(0)
"""


@pytest.mark.parametrize(("dispatch", "split"), [("dispatch", ""), ("shard", ""), ("dispatch", "split"), ("shard", "split")])
def test_two_processes_go_on_after_a_break_and_a_state(rows: wr.View, tmp_path: Path, dispatch: str, split: str) -> None:
    script = tmp_path / "two.py"
    script.write_text(textwrap.dedent(TWO))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / "rows.bin"), str(tmp_path), dispatch, split],
            env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        ends = [process.communicate(timeout=300)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(ends)[-6000:]
    (first, said, *one), (second, said_too, *other) = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    expected = ids(islice(wr.Loader(rows, 8, seed=3).stream(), 25))
    assert [a + b for a, b in zip(first, second, strict=True)] == expected
    assert "register_for_checkpointing(stream)" in said and said_too == said, "no process waits for another that has failed"
    assert sorted(one[0] + other[0]) == list(range(N)) and one[2] + other[2] == list(range(8))
    for rank, refused in enumerate((one[1], other[1])):
        if dispatch == "shard" or rank == 0:
            assert "divides samples among processes" in refused[0] and "rank=0, world_size=1" in refused[0]
        if (dispatch, split) == ("shard", ""):
            assert "dispatch_batches=True" in refused[1]
