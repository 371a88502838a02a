"""The torture counts what goes wrong, and its page has the sums of its runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sums
import torture
from tally import Part

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "reliability"


def tortured(*arguments: str | Path, folder: Path = HERE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "torture.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


# The fuzz targets are built by `make torture` alone.
@pytest.mark.parametrize("part", [part for part in torture.SHARES if part != "fuzzing"])
def test_each_part_tries_cases_and_finds_nothing(tmp_path: Path, part: str) -> None:
    ran = tortured("--budget", "4", "--seed", "7", "--report", tmp_path, part)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (run,) = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert run["seed"] == 7
    assert run["findings"] == []
    assert sum(row["tried"] for row in run["rows"].values()) > 0


BROKEN = """
import time

def torture(part):
    for number in part.rounds():
        part.tried("case")
        part.took("case", 0.001 * (number + 1))
        part.found("case", "lost", f"round {number} of seed {part.seed}")
        if number == 99:
            break
    CRASH
"""


@pytest.mark.parametrize("crash", ["", "raise ValueError('no more')", "import os; os.abort()"])
def test_what_goes_wrong_ends_it_with_an_error(tmp_path: Path, crash: str) -> None:
    for name in ("torture.py", "tally.py"):
        (tmp_path / name).write_text((HERE / name).read_text())
    (tmp_path / "kills.py").write_text(BROKEN.replace("CRASH", crash))
    ran = tortured("--budget", "60", "--seed", "3", "--report", tmp_path / "kept", "kills", folder=tmp_path)
    assert ran.returncode == 1, ran.stderr
    (run,) = json.loads(next((tmp_path / "kept").glob("*.json")).read_text())
    if "abort" in crash:
        assert "the part itself ended with -6" in run["findings"][0]
        return
    row = run["rows"]["kills: case"]
    assert (row["tried"], row["lost"], row["timed"], row["p99_ms"], row["max_ms"]) == (100, 100, 100, 99.0, 100.0)
    assert "lost: case: round 0 of seed 3" in ran.stdout
    assert any("no more" in line for line in run["findings"]) == bool(crash)


def test_the_same_seed_draws_the_same_cases(tmp_path: Path) -> None:
    draws = [Part(tmp_path, 1, 5).random.random() for _ in range(2)]
    assert draws[0] == draws[1]


def test_a_finding_is_of_a_known_kind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'odd' is not one of lost, wrong, silent, hung, executed"):
        Part(tmp_path, 1, 5).found("case", "odd", "")


def test_the_page_has_the_sums() -> None:
    found = sums.BETWEEN.search(sums.PAGE.read_text(encoding="utf-8"))
    assert found
    assert found[0] == sums.table(sums.read()), "run `python reliability/sums.py`"


def test_sums_add_runs_and_keep_the_worst_time() -> None:
    def run(tried: int, p99: float | None) -> dict[str, Any]:
        times = {} if p99 is None else {"p99_ms": p99}
        counts = {"tried": tried, "lost": 0, "wrong": 1, "silent": 0, "hung": 0, "executed": 0, **times}
        return {"date": "2026-01-02T00:00:00", "budget_s": 1800, "cores": 2, "rows": {"kills: x": counts}}

    table = sums.table([run(1000, 5.0), run(500, 7.0), run(1, None)])
    assert "| kills: x | 1,501 | 0 | 3 | 0 | 0 | 0 | 7 ms |" in table
    assert "3 runs, 2026-01-02 to 2026-01-02, 3.0 hours of one core in all." in table


def test_kept_runs_found_nothing() -> None:
    runs = sums.read()
    assert runs
    for run in runs:
        assert run["findings"] == []
        assert all(row[what] == 0 for row in run["rows"].values() for what in ("lost", "wrong", "silent", "hung", "executed"))
