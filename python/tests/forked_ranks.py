"""Jobs of several ranks, forked from a process that has imported what they run: an import of a trainer takes longer than its steps."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist


def run(work: Callable[..., None], world_size: int, *arguments: Any, limit: float = 900) -> list[int]:
    """Calls `work(rank, *arguments)` in a process for each rank; gives their exit codes. When one ends badly, the others are killed, as a
    launcher does."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        everything = (f"{folder}/store", world_size, work, arguments)
        ranks = [context.Process(target=one, args=(rank, *everything)) for rank in range(world_size)]
        for rank in ranks:
            rank.start()
        try:
            wait(ranks, limit)
        finally:
            for rank in ranks:
                rank.kill()
                rank.join()
    return [rank.exitcode or 0 for rank in ranks]


def kill_and_resume(work: Callable[..., None], *jobs: tuple[int, int, int], each: int = 1) -> None:
    """Of each job the data-parallel ranks before and after, and the step in which it is killed; `each` is the processes of one. Its
    folder is called as "2 to 1"."""
    for before, after, step in jobs:
        job = Path.cwd() / f"{before} to {after}"
        assert -signal.SIGKILL in run(work, each * before, job, step)
        assert not any(run(work, each * after, job))


def wait(ranks: list[Any], limit: float) -> None:
    """Until all have ended well, or one has not."""
    left = list(ranks)
    while left and not any(rank.exitcode for rank in ranks):
        ended = multiprocessing.connection.wait([rank.sentinel for rank in left], limit)
        assert ended, f"ranks still run after {limit} seconds"
        left = [rank for rank in left if rank.sentinel not in ended]
        for rank in ranks:
            rank.join(0)


def one(rank: int, store: str, world_size: int, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size), "LOCAL_WORLD_SIZE": str(world_size)}
    dist.init_process_group("gloo", store=dist.FileStore(store, world_size), rank=rank, world_size=world_size)
    code = 0
    try:
        work(rank, *arguments)
    except BaseException:
        traceback.print_exc()
        code = 1
    # Without the end of the interpreter, in which gloo's threads may still hold tensors.
    os._exit(code)


def die() -> None:
    """On every rank, once all have come here: as machines that are taken away, they write and close nothing more."""
    dist.barrier()
    os.kill(os.getpid(), signal.SIGKILL)
