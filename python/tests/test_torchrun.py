"""Ranks of torchrun that read from S3 through one cache: killed, and started again on fewer, they give the same batches."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_server import S3Server

import windrow as wr

ROWS, STEPS, BATCH = 96, 300, 24

TRAIN = """
    import hashlib, json, os, signal, sys, threading, time
    import torch
    import torch.distributed as dist
    import windrow as wr

    url, cache, out, victim = sys.argv[1:]
    victim = json.loads(victim)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    options = json.loads(os.environ["STORE_OPTIONS"])
    view = wr.open(url, dtype="uint16", cache=cache, store_options=options, timeout=120).pack(96)
    loader = wr.Loader(view, global_batch_size=24, seed=6, epochs=2, shuffle=wr.Blocks(size=200), framework="torch")
    state = f"{out}/state.json"
    if os.path.exists(state):
        with open(state) as file:
            loader.load_state_dict(json.load(file))
    start, step = loader.epoch * 300 + loader.samples // 24, 0

    def kill():
        while step < victim["step"]:
            time.sleep(0.001)
        # Also between two steps, and within a read.
        time.sleep(victim["later"])
        os.kill(os.getpid(), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    if rank == victim["rank"]:
        killer.start()
    with open(f"{out}/{start}-{rank}-{ranks}.jsonl", "w", buffering=1) as lines:
        for step, batch in enumerate(loader.stream(), 1):
            digests = [hashlib.sha1(row.numpy().tobytes()).hexdigest() for row in batch["input_ids"]]
            lines.write(json.dumps(digests) + "\\n")
            # As gradients are.
            dist.all_reduce(batch["input_ids"].sum())
            if step % 10 == 0 and rank == 0:
                with open(state + ".new", "w") as file:
                    json.dump(loader.state_dict(), file)
                os.replace(state + ".new", state)
    if rank == victim["rank"]:
        killer.join()
    # gloo's threads may still hold tensors, and abort a Python that ends meanwhile.
    os._exit(0)
"""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Any:
    server = S3Server()
    monkeypatch.setenv("STORE_OPTIONS", json.dumps(server.options))
    yield server
    server.stop()


def test_a_rank_is_killed_and_fewer_go_on(s3: S3Server, tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    random.integers(0, 60_000, ROWS * STEPS * BATCH + 1, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    url = s3.put(tmp_path / "tokens.bin")
    view = wr.open(tmp_path / "tokens.bin", dtype="uint16").pack(ROWS)
    whole = wr.Loader(view, BATCH, seed=6, epochs=2, shuffle=wr.Blocks(size=200))
    expected = [[digest(row) for row in batch["input_ids"]] for batch in whole.stream()]
    assert len(expected) == 2 * STEPS

    (tmp_path / "out").mkdir()
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAIN))
    for ranks in (4, 3, 2):
        victim = {"rank": int(random.integers(ranks)), "step": int(random.integers(1, 100)), "later": random.uniform(0, 0.02)}
        if ranks == 2:
            victim["rank"] = None
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        arguments = [tmp_path / "train.py", url, tmp_path / "cache", tmp_path / "out", json.dumps(victim)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert (done.returncode == 0) == (ranks == 2), done.stderr[-3000:]
        assert ranks == 2 or "SIGKILL" in done.stderr, done.stderr[-3000:]

    seen = set()
    for part in (tmp_path / "out").glob("*.jsonl"):
        start, rank, ranks = map(int, part.stem.split("-"))
        rows = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
        for step, line in enumerate(part.read_text().splitlines(), start):
            # Whoever was killed may have been writing.
            if line.endswith("]"):
                assert json.loads(line) == expected[step][rows], (part.name, step)
                seen.update((step, row) for row in range(rows.start, rows.stop))
    assert len(seen) == 2 * STEPS * BATCH, "each row of each step was delivered"
    assert s3.compare(tmp_path / "cache") * (64 << 10) >= (tmp_path / "tokens.bin").stat().st_size


def digest(row: Any) -> str:
    return hashlib.sha1(row.tobytes()).hexdigest()
