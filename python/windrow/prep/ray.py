"""Tasks in the workers of Ray. They get the job's path and a number: nothing goes through Ray's object store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windrow.errors import ConfigError
from windrow.failure import failure

from .job import attempt

__all__ = ["executor"]

# Waiting in Ray beside those that run, so that no worker waits for this process.
AHEAD = 4


def executor(
    workers: int | None, threads: int | None, store_options: dict[str, str] | None
) -> Callable[[str, Sequence[int]], None]:
    """Uses the cluster that this process is connected to, or else starts one on this machine for the time it takes."""
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise failure(ConfigError, 'executor="ray" needs the package ray', hint="pip install ray") from error

    def start(job: str, tasks: Sequence[int]) -> None:
        is_own = not ray.is_initialized()
        if is_own:
            # Connects to a cluster that RAY_ADDRESS names.
            ray.init(include_dashboard=False, log_to_driver=False)
        try:
            _run(ray, job, tasks, workers, threads, store_options)
        finally:
            if is_own:
                ray.shutdown()

    return start


def _run(
    ray: Any, job: str, tasks: Sequence[int], workers: int | None, threads: int | None, store_options: dict[str, str] | None
) -> None:
    machines = [int(node["Resources"]["CPU"]) for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not machines:
        raise failure(ConfigError, "no machine of the Ray cluster has a CPU", hint="ray.init(num_cpus=…)")
    # A task uses a machine's cores, of which several workers on one machine have a part each.
    threads = threads or max(1, min(machines) // -(-(workers or 1) // len(machines)))
    most = max(1, AHEAD * sum(machines) // threads)
    remote = ray.remote(num_cpus=threads, max_retries=3)(attempt)
    under_way: list[Any] = []
    trouble: Exception | None = None
    try:
        for task in tasks:
            if len(under_way) >= min(workers or most, most):
                done, under_way = ray.wait(under_way)
                trouble = _failure(ray, done) or trouble
            under_way.append(remote.remote(job, task, threads, store_options))
        while under_way:
            done, under_way = ray.wait(under_way)
            trouble = _failure(ray, done) or trouble
    finally:
        for one in under_way:
            ray.cancel(one, force=True)
    if trouble is not None:
        raise trouble


def _failure(ray: Any, done: list[Any]) -> Exception | None:
    try:
        ray.get(done)
    except Exception as error:
        return error
    return None
