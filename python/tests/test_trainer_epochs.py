"""The table of docs/resuming.md: rows of an epoch, those that come twice, and what a resumed run reads, each cell from a real run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SAVED = 18
Batches = list[list[int]]


def table() -> list[list[str]]:
    """The cells of the page."""
    text = (ROOT / "docs" / "resuming.md").read_text(encoding="utf-8")
    lines = text[text.index("| trainer | given |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("epochs")
    # 51 rows; row i begins with 8 * i.
    np.arange(51 * 8 + 1, dtype=np.uint16).tofile(folder / "rows.bin")
    program = Path(__file__).parent / "epochs_job.py"
    done = subprocess.run([sys.executable, program], cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return folder


def rows_of(epoch: list[int]) -> str:
    twice = len(epoch) - len(set(epoch))
    return f"{len(epoch)}, {twice} of them twice" if twice else str(len(epoch))


def resumed(whole: Batches, after: Batches) -> str:
    """Which batches came after the state, as the page says it."""
    half = len(whole) // 2
    if after == whole[SAVED:]:
        return "the rest of the epoch"
    return {str(whole[half : half + 3]): "the epoch again", str(whole[:3]): "the first epoch again"}.get(str(after[:3]), "other batches")


def of(folder: Path, kind: str, rank: int = 0) -> Batches:
    batches: Batches = json.loads((folder / f"{kind}-{rank}.json").read_text())
    return batches


def first_epoch(batches: Batches) -> list[int]:
    return [row for batch in batches[: len(batches) // 2] for row in batch]


def test_the_table_names_what_is_run(runs: Path) -> None:
    assert [cells[:2] for cells in table()] == json.loads((runs / "names.json").read_text())


@pytest.mark.parametrize("number", range(len(table())), ids=[" ".join(cells[:2]) for cells in table()])
def test_a_line_says_what_its_trainer_does(runs: Path, number: int) -> None:
    folder = runs / str(number)
    whole = of(folder, "unbroken")
    together = first_epoch(of(folder, "together", 0)) + first_epoch(of(folder, "together", 1))
    assert table()[number][2:] == [rows_of(first_epoch(whole)), rows_of(together), resumed(whole, of(folder, "resumed"))]
