"""Frameworks that train: what they ask a loader and a data set for, with the real packages, on small models."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful
from torch.utils.data import DataLoader, IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import windrow as wr

N = 96


@pytest.fixture
def rows(tmp_path: Path) -> wr.View:
    """96 samples of 8 tokens; sample i begins with 8 * i."""
    np.arange(N * 8 + 1, dtype=np.uint16).tofile(tmp_path / "rows.bin")
    return wr.open(tmp_path / "rows.bin", dtype="uint16").pack(8)


def ids(batches: Any) -> list[list[int]]:
    return [(batch["input_ids"][:, 0] // 8).tolist() for batch in batches]


def one_by_one(samples: Any) -> list[int]:
    return [int(sample["input_ids"][0]) // 8 for sample in samples]


# The stream itself.


def test_torch_is_imported_when_it_is_first_used() -> None:
    code = "import sys, windrow as wr; assert 'torch' not in sys.modules; wr.torch.Stream; assert 'torch' in sys.modules; wr.tokenise"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert "AttributeError" in done.stderr and "tokenise" in done.stderr, done.stderr


def test_samples_and_batches_are_those_of_a_loader(rows: wr.View) -> None:
    expected = [ids(wr.Loader(rows, 8, seed=3)), ids(islice(wr.Loader(rows, 8, seed=3).stream(), 12, 24))]
    stream, batched = wr.torch.Stream(rows, seed=3), wr.torch.Stream(rows, batch_size=8, seed=3)
    assert isinstance(stream, IterableDataset)
    assert (len(stream), len(batched)) == (N, 12)
    for epoch in expected:
        assert ids(DataLoader(batched, batch_size=None)) == epoch
        assert ids(DataLoader(stream, batch_size=8)) == epoch
    assert ids(DataLoader(wr.torch.Stream(rows, global_batch_size=8, seed=3), batch_size=None)) == expected[0]


@pytest.mark.parametrize("n", [0, 5, 96, 100])
def test_a_state_continues_to_the_sample_also_in_a_pickle(rows: wr.View, n: int) -> None:
    stream, resumed = wr.torch.Stream(rows, seed=3), wr.torch.Stream(rows, seed=3)
    flat = one_by_one(stream) + one_by_one(stream) + one_by_one(stream)
    stream.load_state_dict(wr.torch.Stream(rows, seed=3).state_dict())
    for _ in range(n):
        next(iter(stream))
    resumed.load_state_dict(stream.state_dict())
    end = N if n < N else 2 * N
    for again in (pickle.loads(pickle.dumps(stream)), resumed):
        assert one_by_one(again) == flat[n:end]


def test_set_epoch_and_hosts_that_count_again(rows: wr.View) -> None:
    def after(*steps: tuple[str, int]) -> int:
        stream = wr.torch.Stream(rows, seed=3)
        for step, epoch in steps:
            if step == "load":
                stream.load_state_dict({**stream.state_dict(), "epoch": epoch, "samples": 5})
            else:
                stream.set_epoch(epoch)
        return stream.loader.epoch

    # One that knows its epoch, before the state or after it.
    assert after(("set", 2), ("load", 2), ("set", 2), ("set", 3)) == 3
    assert after(("load", 2), ("set", 2)) == 2
    assert after(("load", 2), ("set", 3)) == 3
    # One that begins at 0 in each process.
    assert after(("set", 0), ("load", 2), ("set", 0)) == 2
    assert after(("set", 0), ("load", 2), ("set", 1), ("set", 2)) == 4
    assert after(("load", 2), ("set", 0), ("set", 1)) == 3


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_worker_processes_are_refused_not_given_the_same_samples(rows: wr.View, start: str) -> None:
    with pytest.raises(wr.ConfigError, match="num_workers=0"):
        list(DataLoader(wr.torch.Stream(rows), batch_size=8, num_workers=1, multiprocessing_context=start, timeout=120))


class Within(IterableDataset[Any]):
    """Rows of a Loader, one by one: what a generator of `datasets` does."""

    def __init__(self, view: wr.View, **options: Any) -> None:
        self.view, self.options = view, options

    def __iter__(self) -> Iterator[Any]:
        for batch in wr.Loader(self.view, 1, shuffle=False, epochs=1, framework="torch", **self.options):
            yield {name: values[0] for name, values in batch.items()}


def test_a_loader_within_several_workers_is_refused_unless_it_is_told_its_rank(rows: wr.View) -> None:
    def read(n: int, **options: Any) -> int:
        loader = DataLoader(Within(rows, **options), batch_size=8, num_workers=n, multiprocessing_context="fork", timeout=120)
        return sum(len(batch["input_ids"]) for batch in loader)

    assert read(1) == N
    assert read(2, rank=0, world_size=1) == 2 * N
    with pytest.raises(wr.ConfigError, match="2 worker processes") as caught:
        read(2)
    assert "num_workers=0" in str(caught.value) and "rank=, world_size=" in str(caught.value)


SPLIT = """
    import os, sys
    sys.path.append(sys.argv[2])
    import windrow as wr
    from datasets import IterableDataset
    from datasets.distributed import split_dataset_by_node

    os.environ.update({"RANK": "1", "WORLD_SIZE": "2"})
    view = wr.open(sys.argv[1], dtype="uint16").pack(8)

    def given():
        for batch in wr.Loader(view, 1, shuffle=False, epochs=1, rank=0, world_size=1):
            yield {"first": int(batch["input_ids"][0, 0]) // 8}

    def found():
        for batch in wr.Loader(view, 1, shuffle=False, epochs=1):
            yield {"first": int(batch["input_ids"][0, 0]) // 8}

    def split(generator):
        return split_dataset_by_node(IterableDataset.from_generator(generator), rank=1, world_size=2)

    print([row["first"] for row in split(given)])
    # Nobody shares these out.
    print([row["first"] for row in IterableDataset.from_generator(found)])
    try:
        next(iter(split(found)))
    except wr.ConfigError as error:
        print(error)
"""


def test_a_loader_within_a_split_data_set_is_refused_unless_it_is_told_its_rank(rows: wr.View, tmp_path: Path, run_script: Any) -> None:
    given, found, *said = run_script(SPLIT, tmp_path / "rows.bin", Path(sys.prefix) / "loaders", limit=120).splitlines()
    assert eval(given) == list(range(1, N, 2)) == eval(found)
    assert "datasets.iterable_dataset" in said[0] and "rank=0, world_size=1" in said[1]


def test_a_loader_has_what_hosts_ask_a_loader_for(rows: wr.View) -> None:
    loader = wr.Loader(rows, 8, seed=3, drop_last=False)
    assert (loader.batch_size, loader.batch_sampler, loader.sampler, loader.num_workers) == (8, None, None, 0)
    assert (loader.drop_last, len(loader.dataset)) == (False, N)
    assert wr.Loader(rows, global_batch_size=9, rank=1, world_size=2).batch_size == 4
    loader.set_epoch(epoch=0)
    next(loader)
    assert one_by_one(loader.dataset) == sum(ids(wr.Loader(rows, 8, seed=3)), [])[8:]
    with pytest.raises(wr.ConfigError, match="collate="):
        iter(wr.Loader(rows, 8, collate=list).dataset)


def test_a_loader_as_a_data_set_says_what_to_pass(rows: wr.View, tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(str(tmp_path), max_steps=1, use_cpu=True, report_to=[], disable_tqdm=True)
    with pytest.raises(TypeError, match="in their order, not samples by number") as caught:
        Trainer(Model(), arguments, train_dataset=wr.Loader(rows, 8, framework="torch")).train()
    assert "train_dataset=" in str(caught.value) and "windrow.torch.Stream(view" in str(caught.value)


def test_a_stateful_dataloader_continues(rows: wr.View) -> None:
    def make() -> Any:
        return StatefulDataLoader(wr.torch.Stream(rows, seed=3), batch_size=8)

    expected = ids(islice(wr.Loader(rows, 8, seed=3).stream(), 36))
    loader = make()
    assert ids(loader) == expected[:12]
    iterator = iter(loader)
    assert ids(islice(iterator, 3)) == expected[12:15]
    state = loader.state_dict()
    assert ids(iterator) == expected[15:24]
    resumed = make()
    resumed.load_state_dict(state)
    assert ids(resumed) == expected[15:24]
    assert ids(resumed) == expected[24:]


def test_a_distributed_checkpoint_takes_a_loader_as_a_stateful(rows: wr.View, tmp_path: Path) -> None:
    loader, again = wr.Loader(rows, 8, seed=3), wr.Loader(rows, 8, seed=3)
    assert isinstance(loader, Stateful) and isinstance(wr.torch.Stream(rows), Stateful)
    expected = ids(islice(loader.stream(), 20))[17:]
    loader.load_state_dict({**loader.state_dict(), "epoch": 1, "samples": 40})
    dcp.save({"data": loader}, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    dcp.load({"data": again}, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    assert ids(islice(again.stream(), 3)) == expected


# One process: train, validate, stop in the middle of an epoch, go on.


class Model(torch.nn.Module):
    """A loss that depends on every batch before it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(N * 8 + 1, 4)

    def forward(self, input_ids: Any, labels: Any = None) -> dict[str, Any]:
        return {"loss": (self.embedding(input_ids).sum(dim=(1, 2)) - 1).square().mean()}


def test_transformers_trainer_resumes_to_equal_losses(rows: wr.View, tmp_path: Path) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Stop(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = state.global_step == 17

    def train(folder: str, stops: bool, **resume: Any) -> tuple[list[float], list[float]]:
        arguments = TrainingArguments(
            output_dir=str(tmp_path / folder), num_train_epochs=2, per_device_train_batch_size=8,
            per_device_eval_batch_size=8, eval_strategy="epoch", save_steps=17, logging_steps=1, learning_rate=0.05,
            report_to=[], use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = Trainer(
            Model(), arguments, train_dataset=wr.torch.Stream(rows, seed=3),
            eval_dataset=wr.torch.Stream(rows, shuffle=False, whole=True), callbacks=[Stop()] if stops else [],
        )  # fmt: skip
        trainer.train(**resume)
        history = trainer.state.log_history
        return [h["loss"] for h in history if "loss" in h], [h["eval_loss"] for h in history if "eval_loss" in h]

    losses, validated = train("whole", stops=False)
    assert (len(losses), len(validated)) == (24, 2)
    assert train("stopped", stops=True)[0] == losses[:17]
    again = train("stopped", stops=False, resume_from_checkpoint=True)
    assert again == (losses, validated)


def test_accelerate_saves_a_streams_state_and_skips_batches_of_a_loader(rows: wr.View, tmp_path: Path) -> None:
    from accelerate import Accelerator, skip_first_batches
    from accelerate.utils import DataLoaderConfiguration

    def prepared() -> tuple[Any, Any]:
        config = DataLoaderConfiguration(use_stateful_dataloader=True, dispatch_batches=False)
        accelerator = Accelerator(cpu=True, dataloader_config=config)
        stream = wr.torch.Stream(rows, seed=3, rank=0, world_size=1)
        return accelerator, accelerator.prepare(DataLoader(stream, batch_size=8))

    expected = ids(islice(wr.Loader(rows, 8, seed=3).stream(), 36))
    accelerator, batches = prepared()
    assert ids(batches) == expected[:12]
    found = []
    for batch in batches:
        found += ids([batch])
        if len(found) == 5:
            accelerator.save_state(tmp_path / "state")
            break
    assert found == expected[12:17]
    accelerator, batches = prepared()
    accelerator.load_state(tmp_path / "state")
    assert ids(batches) == expected[17:24]
    assert ids(batches) == expected[24:]

    # A loader as it is: registered, and with its first batches left out.
    loader = wr.Loader(rows, 8, seed=3, framework="torch")
    accelerator.register_for_checkpointing(loader)
    next(loader)
    accelerator.save_state(tmp_path / "loader")
    list(islice(loader.stream(), 20))
    accelerator.load_state(tmp_path / "loader")
    assert ids(skip_first_batches(loader, 4)) == expected[5:12]
    assert ids(loader) == expected[12:24]


def test_lightning_fits_validates_and_resumes(rows: wr.View, tmp_path: Path) -> None:
    import lightning

    class Fit(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()
            self.losses: list[float] = []
            self.validated: list[list[int]] = []

        def training_step(self, batch: Any, _: int) -> Any:
            loss = self.model(**batch)["loss"]
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch: Any, _: int) -> None:
            self.validated += ids([batch])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    class Save(lightning.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step == 17:
                trainer.save_checkpoint(tmp_path / "middle.ckpt")

    def fit(train: Any, **resume: Any) -> Fit:
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=tmp_path, callbacks=[Save()],
        )  # fmt: skip
        module = Fit()
        trainer.fit(module, train, wr.Loader(rows, 8, shuffle=False, whole=True, framework="torch"), **resume)
        return module

    def loader() -> Any:
        return wr.Loader(rows, 8, seed=3, framework="torch")

    def stateful() -> Any:
        return StatefulDataLoader(wr.torch.Stream(rows, seed=3), batch_size=8)

    sanity, epoch = 2, 12
    losses = []
    for make in (loader, stateful):
        whole = fit(make())
        assert len(whole.losses) == 24 and len(whole.validated) == sanity + 2 * epoch
        resumed = fit(make(), ckpt_path=tmp_path / "middle.ckpt")
        assert resumed.losses == whole.losses[17:]
        losses.append(whole.losses)
    assert losses[0] == losses[1]


# Two processes: every sample once an epoch.

TWO = """
    import json, os, sys
    import torch
    import windrow as wr
    from torch.utils.data import DataLoader

    path, out, what = sys.argv[1:]
    rank = int(os.environ["RANK"])
    rows = wr.open(path, dtype="uint16").pack(8)
    seen = []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(800, 4)
        def forward(self, input_ids, labels=None):
            seen.extend((input_ids[:, 0] // 8).tolist())
            return {"loss": self.embedding(input_ids).mean()}

    def accelerate(dispatch):
        from accelerate import Accelerator
        from accelerate.utils import DataLoaderConfiguration

        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch))
        assert accelerator.num_processes == 2
        stream = wr.torch.Stream(rows, seed=3, rank=0, world_size=1)
        model, batches = accelerator.prepare(Model(), DataLoader(stream, batch_size=8))
        for _ in range(2):
            for batch in batches:
                model(**batch)
        try:
            iter(wr.torch.Stream(rows, seed=3))
        except wr.ConfigError as error:
            assert "rank=0, world_size=1" in str(error)
        else:
            raise AssertionError("nobody knows who shares the samples out")

    def trainer():
        from transformers import Trainer, TrainingArguments

        arguments = TrainingArguments(
            output_dir=out, num_train_epochs=2, per_device_train_batch_size=8, save_strategy="no", report_to=[],
            use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
        )
        Trainer(Model(), arguments, train_dataset=wr.torch.Stream(rows, seed=3, rank=0, world_size=1)).train()

    def lightning(make):
        import lightning

        class Fit(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = Model()
            def training_step(self, batch, _):
                return self.model(**batch)["loss"]
            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        lightning.Trainer(
            accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=out,
        ).fit(Fit(), make())

    ways = {
        "dispatch": lambda: accelerate(True),
        "shard": lambda: accelerate(False),
        "trainer": trainer,
        "lightning": lambda: lightning(lambda: DataLoader(wr.torch.Stream(rows, seed=3), batch_size=8)),
        "lightning, a loader": lambda: lightning(lambda: wr.Loader(rows, 8, seed=3, framework="torch")),
    }
    ways[what]()
    with open(f"{out}/{rank}.json", "w") as file:
        json.dump(seen, file)
    # gloo's threads may still hold tensors, and abort a Python that ends meanwhile.
    os._exit(0)
"""


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@pytest.mark.parametrize("what", ["dispatch", "shard", "trainer", "lightning", "lightning, a loader"])
def test_two_processes_see_every_sample_once_an_epoch(rows: wr.View, tmp_path: Path, what: str) -> None:
    script = tmp_path / "two.py"
    script.write_text(textwrap.dedent(TWO))
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / "rows.bin"), str(tmp_path), what],
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
    parts = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert [len(part) for part in parts] == [N, N], "two epochs of one half each"
    for epoch in range(2):
        half = slice(epoch * N // 2, (epoch + 1) * N // 2)
        assert sorted(parts[0][half] + parts[1][half]) == list(range(N))
    assert parts[0][: N // 2] != parts[0][N // 2 :]
