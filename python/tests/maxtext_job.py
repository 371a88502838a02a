"""windrow's iterator for MaxText, read by processes as MaxText does it: `python maxtext_job.py KILLED_AT`.

MaxText does not install for this Python. What it does with an iterator is written here: it calls `iter` and `next`, and of an ElasticIterator
process 0 writes `get_state()` as JSON to a file of the step's folder, which every process gives to `set_state`.
"""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import forked_ranks
import torch
import torch.distributed as dist
from adapters import adapter
from grain.experimental import ElasticIterator
from trainer_jobs import digest, write_step

windrow_maxtext = adapter("maxtext")
ROWS, LENGTH, STEPS = 4, 32, 8


class MultiHostDataLoadIterator:
    """As MaxText's: it asks for `local_iterator` when it saves."""

    def __init__(self, dataloader: Any, mesh: Any) -> None:
        self.local_iterator = iter(dataloader)


def read(rank: int, out: Path, killed_at: int | None = None) -> None:
    world_size = int(os.environ["WORLD_SIZE"])
    iterator = iterator_of(rank, world_size).local_iterator
    assert isinstance(iterator, ElasticIterator)
    done = max((int(file.parent.parent.name) for file in out.glob("*/iter/process_0.json")), default=0)
    if done:
        iterator.set_state(json.loads((out / str(done) / "iter" / "process_0.json").read_text()))
    for step in range(done + 1, STEPS + 1):
        if step == killed_at:
            forked_ranks.die()
        batch = next(iterator)
        rows = zip(*(torch.from_numpy(batch[name]) for name in sorted(batch)), strict=True)
        write_step(out / f"{rank}-of-{world_size}.jsonl", step, [digest(*row) for row in rows], 0.0)
        if step % 3 == 0 and rank == 0:
            save(out / str(step) / "iter", iterator.get_state())
        dist.barrier()


def iterator_of(rank: int, world_size: int) -> Any:
    module = types.ModuleType("maxtext.input_pipeline.multihost_dataloading")
    module.MultiHostDataLoadIterator = MultiHostDataLoadIterator  # type: ignore[attr-defined]
    for name in ("maxtext", "maxtext.input_pipeline", module.__name__):
        sys.modules[name] = module
    windrow_maxtext.jax = types.SimpleNamespace(process_index=lambda: 10 + rank)
    config = types.SimpleNamespace(grain_train_files="tokens", max_target_length=LENGTH, global_batch_size_to_load=ROWS, data_shuffle_seed=5)
    return windrow_maxtext.make_train_iterator(config, None, [10 + n for n in range(world_size)])


def save(folder: Path, state: Any) -> None:
    """Complete or not at all, as Orbax does it with the folder of a step."""
    folder.mkdir(parents=True)
    (folder / "new").write_text(json.dumps(state, indent=4))
    (folder / "new").rename(folder / "process_0.json")


def main(killed_at: str) -> None:
    assert forked_ranks.run(read, 1, Path.cwd() / "unbroken") == [0]
    forked_ranks.kill_and_resume(read, (2, 1, int(killed_at)), (1, 4, int(killed_at)))


if __name__ == "__main__":
    main(*sys.argv[1:])
