"""Runs the tasks of a job by an executor until all are done: the executor starts them, the manifests say which are done."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from windrow import progress as bars
from windrow.errors import ConfigError, WindrowError
from windrow.failure import failure

from .job import absolute, as_texts, merge, status

__all__ = ["run"]

Executor = Callable[[str, Sequence[int]], object]
Engine = Callable[[int | None, int | None, dict[str, str] | None], Executor]
ENGINES = ("local", "ray", "slurm", "dask")
# Errors of failed tasks that an error describes, and runs of numbers that it names.
MOST_NAMED = 3
MOST_RUNS = 20
# `status` names as many.
MOST_FAILED = 100
# Errors of the data, the job or its tokenizer: another try gives the same.
LASTING = {"config", "corrupt", "exists", "mismatch", "not_found", "out_of_range", "stale", "unrecognised", "unsupported"}
BETWEEN_LOOKS_SECS = 0.5


def run(
    job: str | os.PathLike[str],
    executor: Literal["local", "ray", "slurm", "dask"] | Executor = "local",
    *,
    workers: int | None = None,
    num_threads: int | None = None,
    retries: int = 3,
    progress: Callable[[dict[str, Any]], object] | bool | None = None,
    store_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Runs all tasks that are not done, by any executor, and merges their parts into a data set.

    The executor decides nothing: the bytes are the same however many workers there are, in whatever order they run, killed or run
    twice. Two runs of one job at once are allowed. Which tasks are done is read from the manifests that they leave, before,
    meanwhile and afterwards; what is left then is started again, up to ``retries`` times. Ctrl-C ends the workers at once, and the
    next run continues.

    Args:
        job: what ``plan`` returned: the path or URL of the job.
        executor: ``"local"``: processes on this machine. ``"ray"``: the cluster that ``ray.init()`` connected to, or a new one on this
            machine. ``"dask"``: that of the current ``distributed.Client``, or a new one on this machine. ``"slurm"``: a job
            array by ``sbatch``. A function ``fn(job, tasks)``: it has to see to it that ``wr.prep.run_task(job, i)`` is called for each of
            ``tasks``, anywhere, in any order, any number of times, and returns when that is over.
        workers: tasks at a time. None: one on this machine; as many as fit into the cluster; as many as there are tasks in a job array.
        num_threads: threads of a task. None: the cores of the machine, divided by the workers on it; on a dask cluster of yours 1; on Slurm those
            that it gives an element.
        retries: how often what is left is started again: tasks whose worker was lost, or that failed by what passes. One that failed by its data,
            its job or its tokenizer is not.
        progress: ``True`` draws a bar, and so does ``None`` on a terminal or in a notebook; a function is called now and then with the dict that
            ``status`` returns.
        store_options: of URLs, as for ``wr.open``: for this process and the workers, which Ray and dask are told as arguments of their tasks and
            the processes of this machine and of Slurm in their environment. No job, script or command line holds them. A function of
            yours passes them to ``run_task`` itself.

    Returns:
        What ``merge`` returns.

    Raises:
        WindrowError: tasks are left after all attempts; the message has their errors.
        ConfigError: an executor that is not there, or not installed.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", [folder / "a.jsonl"], folder / "tokens", tokenizer="bytes", task_bytes=16)
    >>> def one_by_one(job, tasks):
    ...     for task in tasks:
    ...         wr.prep.run_task(job, task)
    >>> wr.prep.run(job, executor=one_by_one)["records"]
    2
    """
    for name, number in (("workers", workers), ("num_threads", num_threads)):
        if number is not None and number < 1:
            raise failure(ConfigError, f"{name} is {number}, expected 1 or more")
    job = absolute(job)
    stores = as_texts(store_options)
    start = executor if callable(executor) else _engine(executor)(workers, num_threads, stores)
    trouble: Exception | None = None
    look = partial(status, job, store_options=stores)
    with _shown(look, progress):
        # What failed in a run before may be mended by now.
        left = look()["left"]
        for _ in range(max(retries, 0) + 1):
            if not left:
                break
            try:
                start(job, left)
            except Exception as error:
                # A worker that was lost, perhaps: what is done decides, below.
                trouble = error
            left = _to_try_again(look())
        if not look()["left"]:
            return merge(job, store_options=stores)
    raise _unfinished(job, look(), trouble) from trouble


def _to_try_again(now: dict[str, Any]) -> list[int]:
    """Tasks that are left but for those whose error another try would give again."""
    lasting = {one["task"] for one in now["failed"] if one["kind"] in LASTING}
    # The others that failed are not named: most likely it is all of them.
    return [] if len(lasting) >= MOST_FAILED else [task for task in now["left"] if task not in lasting]


def _named(tasks: list[int]) -> str:
    """Numbers of tasks as one types them."""
    runs: list[list[int]] = []
    for task in tasks:
        if runs and runs[-1][1] + 1 == task:
            runs[-1][1] = task
        else:
            runs.append([task, task])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:MOST_RUNS]]
    more = ",…" if len(runs) > MOST_RUNS else ""
    return f"task{'s' if len(tasks) > 1 else ''} {','.join(shown)}{more}"


def _engine(name: str) -> Engine:
    if name not in ENGINES:
        known = ", ".join(ENGINES)
        raise failure(ConfigError, f"executor is {name!r}", hint=f"expected one of {known}, or a function of (job, tasks)")
    # The engine's package is imported now, and by nobody who does not ask for it.
    made: Engine = importlib.import_module(f"windrow.prep.{name}").executor
    return made


def _unfinished(job: str, now: dict[str, Any], trouble: Exception | None) -> WindrowError:
    left, failed = now["left"], now["failed"]
    by_error: dict[str, list[int]] = {}
    for one in failed:
        by_error.setdefault(one["error"], []).append(one["task"])
    groups = list(by_error.items())
    errors = [f"{_named(tasks)}: {error}" for error, tasks in groups[:MOST_NAMED]]
    if more := sum(len(tasks) for _, tasks in groups[MOST_NAMED:]):
        errors.append(f"{more:,} more failed")
    if not errors and trouble is not None:
        errors.append(str(trouble))
    text = f"{len(left):,} of {now['tasks']:,} tasks are not done"
    hint = "run it again: what is done is kept" if not failed else "mend what they name and run it again: what is done is kept"
    return failure(WindrowError, "; ".join([text, *errors]), path=job, hint=hint)


@contextmanager
def _shown(
    status: Callable[[], dict[str, Any]], progress: Callable[[dict[str, Any]], object] | bool | None
) -> Iterator[None]:
    """Looks at the manifests now and then, until the block ends."""
    if progress is None:
        progress = bars.is_watched()
    if progress is False:
        yield
        return
    bar = bars.bar_of_tasks() if progress is True else None
    call: Any = bar or progress
    ended = threading.Event()

    def look() -> None:
        wait = BETWEEN_LOOKS_SECS
        while not ended.wait(wait):
            began = time.monotonic()
            call(status())
            # A look at 100,000 tasks in a store takes seconds: it may take a tenth of the time.
            wait = max(BETWEEN_LOOKS_SECS, 10 * (time.monotonic() - began))

    looking = threading.Thread(target=look, name="windrow-prep-progress", daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
        call(status())
        if bar is not None:
            bar.close()
