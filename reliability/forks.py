"""Forks, spawned workers and threads: whatever was running when, each process gives the same samples, or a clear error, and ends.

    python reliability/torture.py --budget 60 forks

The cases themselves are in fork_cases.py, and run in a process that is watched.
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np
from tally import Part
from worker import Died, Hung, Worker, own_panic

LIMIT_SECS = 60
ROWS = {
    "forked": "fork while threads read",
    "threads": "16 threads at once",
    "ranks": "a rank killed, resumed",
    "workers": "torch's workers",
    "killed": "a worker of torch killed",
}


def torture(part: Part) -> None:
    tokens = part.folder / "tokens.bin"
    np.arange(30_000, dtype="<u2").tofile(tokens)
    # Documents of many lengths, each ended by 0.
    np.random.default_rng(0).integers(0, 300, 30_000).astype("<u2").tofile(part.folder / "documents.bin")
    lines = part.folder / "lines.jsonl"
    lines.write_text("".join(f'{{"n": {n}, "text": "line {n}"}}\n' for n in range(1500)))
    worker = Worker("fork_cases", "case", part.folder, LIMIT_SECS)
    kinds = ["forked"] * 6 + ["threads"] * 3 + ["ranks"] * 2 + (["workers", "killed"] if has_torch() else [])
    try:
        for _ in part.rounds():
            kind, seed = part.random.choice(kinds), part.random.randrange(1 << 60)
            said = f"fork_cases.case({kind!r}, {seed}, TOKENS, LINES)"
            part.tried(ROWS[kind])
            began = time.monotonic()
            try:
                wrong = worker.ask(kind=kind, seed=seed, tokens=str(tokens), lines=str(lines))
            except Hung as error:
                part.found(ROWS[kind], "hung", f"{said}: {error}")
            except (Died, RuntimeError) as error:
                part.found(ROWS[kind], "wrong", f"{said}: {error}")
            else:
                part.took(ROWS[kind], time.monotonic() - began)
                if wrong:
                    part.found(ROWS[kind], "wrong", f"{said}: {wrong}")
            if own_panic(text := worker.said()):
                part.found(ROWS[kind], "wrong", f"{said}: {text[-500:]}")
    finally:
        worker.stop()


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None
