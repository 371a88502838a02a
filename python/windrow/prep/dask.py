"""Tasks in the workers of dask."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from windrow.errors import ConfigError
from windrow.failure import failure

from .job import attempt, cores

__all__ = ["executor"]


def executor(
    workers: int | None, threads: int | None, store_options: dict[str, str] | None
) -> Callable[[str, Sequence[int]], None]:
    """Uses the current ``distributed.Client``, or else starts a cluster on this machine for the time it takes."""
    try:
        import distributed  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise failure(ConfigError, 'executor="dask" needs the package distributed', hint="pip install distributed") from error

    def start(job: str, tasks: Sequence[int]) -> None:
        try:
            client = distributed.default_client()
        except ValueError:
            n = min(workers or 1, len(tasks))
            options = {"n_workers": n, "threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": 0}
            # Not the default: it must not be found again, should it fail to start.
            with distributed.Client(set_as_default=False, **options) as own:
                _run(distributed, own, job, tasks, n, threads or max(1, cores() // n), store_options)
        else:
            # A worker of dask has a thread for each core, and each of them runs a task.
            _run(distributed, client, job, tasks, workers, threads or 1, store_options)

    return start


def _run(
    distributed: Any,
    client: Any,
    job: str,
    tasks: Sequence[int],
    workers: int | None,
    threads: int,
    store_options: dict[str, str] | None,
) -> None:
    waiting = iter(tasks)
    under_way: set[Any] = set()

    def submit(n: int | None) -> list[Any]:
        numbers = list(islice(waiting, n))
        task = partial(_task, job, threads=threads, store_options=store_options)
        futures: list[Any] = client.map(task, numbers, pure=False, retries=3)
        under_way.update(futures)
        return futures

    client.run(_begin, job)
    trouble: Exception | None = None
    try:
        completed = distributed.as_completed(submit(workers), loop=client.loop)
        for future in completed:
            under_way.discard(future)
            trouble = future.exception() or trouble
            if more := submit(1):
                completed.update(more)
    except BaseException:
        # dask does not interrupt what has begun: the tasks themselves look.
        client.cancel(list(under_way), force=True)
        client.run(_stop, job)
        raise
    if trouble is not None:
        raise trouble


# Jobs whose tasks in this worker are to end.
STOPPED: set[str] = set()


def _begin(job: str) -> None:
    STOPPED.discard(job)


def _stop(job: str) -> None:
    STOPPED.add(job)


def _task(job: str, task: int, threads: int, store_options: dict[str, str] | None) -> None:
    def look(now: dict[str, int]) -> None:
        if job in STOPPED:
            raise InterruptedError("the run was stopped")

    with contextlib.suppress(InterruptedError):
        attempt(job, task, threads, store_options, look)
