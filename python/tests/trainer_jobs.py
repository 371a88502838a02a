"""What the jobs of trainers write, a line for each step and rank with a hash of each row and the loss, and how it is compared."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import torch

import windrow as wr


def documents(path: Path, n: int = 18) -> None:
    """Documents of 5 to 60 tokens, below 200: 22 rows of 32, so that a job of 8 steps of 4 rows begins another epoch, and two rows are left out."""
    draws = np.random.default_rng(n)
    wr.write(path, [draws.integers(1, 200, draws.integers(5, 60)).astype(np.uint16) for _ in range(n)], to="shards", dtype="uint16")


def digest(*tensors: torch.Tensor) -> str:
    """Of a row: its tensors, one after the other."""
    return hashlib.sha256(b"".join(tensor.contiguous().numpy().tobytes() for tensor in tensors)).hexdigest()


def write_step(path: Path, step: int, rows: list[str], loss: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"step": step, "rows": rows, "loss": loss}) + "\n")


@dataclass
class Step:
    rows: list[str]
    losses: set[float]


@dataclass
class Job:
    """What a job left in its folder, and the step that it was killed in."""

    folder: Path
    killed_at: int

    def steps(self, name: str, n_ranks: int) -> dict[int, Step]:
        """Of a run on that number of ranks: the rows of each step over all ranks, in their order, and what the ranks say the loss was."""
        steps: dict[int, Step] = defaultdict(lambda: Step([], set()))
        for rank in range(n_ranks):
            for line in (self.folder / name / f"{rank}-of-{n_ranks}.jsonl").read_text().splitlines():
                found = json.loads(line)
                steps[found["step"]].rows += found["rows"]
                steps[found["step"]].losses.add(found["loss"])
        return steps

    def check(self, name: str, before: int, after: int, unbroken: int) -> None:
        """A run that was killed and resumed has every step of the unbroken one, those since the last checkpoint twice, on the same rows
        with the same losses, up to the order of sums."""
        whole = self.steps("unbroken", unbroken)
        killed, resumed = self.steps(name, before), self.steps(name, after)
        saved = (self.killed_at - 1) // 3 * 3
        assert list(whole) == list(range(1, max(whole) + 1))
        assert (list(killed), list(resumed)) == (list(range(1, self.killed_at)), list(range(saved + 1, max(whole) + 1)))
        for step, found in [*killed.items(), *resumed.items()]:
            assert found.rows == whole[step].rows, step
            assert np.allclose([*found.losses], [*whole[step].losses], rtol=1e-5), (step, found.losses, whole[step].losses)


def run_job(program: str, folder: Path) -> Job:
    """Runs a program of this folder in another one, where `tokens` are, with a step to be killed in, after the first checkpoint."""
    killed_at = random.Random(program).randrange(4, 9)
    command = [sys.executable, str(Path(__file__).parent / program), str(killed_at)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return Job(folder, killed_at)
