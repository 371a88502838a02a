"""Tasks in a job array of Slurm. Its elements divide the tasks by arithmetic, and then take over those of lost ones."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from windrow.errors import ConfigError, WindrowError
from windrow.failure import failure

from .job import worker_environment

__all__ = ["executor"]

SCRIPT = """#!/bin/sh
exec {python} -m windrow -q prep run {job} --rank "$SLURM_ARRAY_TASK_ID" --of {n} --steal --num-threads {threads}
"""


def executor(
    workers: int | None, threads: int | None, store_options: dict[str, str] | None
) -> Callable[[str, Sequence[int]], None]:
    """Submits an array of jobs with a number of cores each, and waits for it."""
    if shutil.which("sbatch") is None:
        raise failure(ConfigError, 'executor="slurm" needs sbatch', hint="run it on a machine that submits jobs to Slurm")

    def start(job: str, tasks: Sequence[int]) -> None:
        n = min(workers or len(tasks), len(tasks), _most_elements())
        options = [f"--array=0-{n - 1}", "--requeue", "--job-name=windrow-prep", "--output=windrow-prep-%A.log", "--open-mode=append"]
        if threads:
            options.append(f"--cpus-per-task={threads}")
        # Without a number of ours, the cores that the site gives an element.
        words = {"python": shlex.quote(sys.executable), "job": shlex.quote(job), "threads": threads or '"$SLURM_CPUS_ON_NODE"'}
        script = SCRIPT.format(n=n, **words)
        _submit(options, script, store_options)

    return start


def _submit(options: list[str], script: str, store_options: dict[str, str] | None) -> None:
    command = ["sbatch", "--parsable", "--wait", *options]
    # The elements get this environment, unless the site says otherwise; keys are in no script.
    environment = worker_environment(store_options)
    # Ctrl-C is for this process alone, which then ends the array.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=environment,
    ) as sbatch:
        assert sbatch.stdin is not None and sbatch.stdout is not None and sbatch.stderr is not None
        number = ""
        try:
            sbatch.stdin.write(script)
            sbatch.stdin.close()
            # `12` or `12;cluster`, as soon as it is accepted.
            number = sbatch.stdout.readline().strip().split(";")[0]
            said = sbatch.stderr.read()
            code = sbatch.wait()
        except BaseException:
            sbatch.kill()
            if number:
                subprocess.run(["scancel", number], check=False)
            raise
    if not number:
        raise failure(WindrowError, f"sbatch does not take the job array: {said.strip()}")
    log = f"windrow-prep-{number}.log"
    if code == 0:
        with contextlib.suppress(FileNotFoundError):
            os.remove(log)
    else:
        raise failure(WindrowError, f"an element of job array {number} ended with exit code {code}", path=log)


def _most_elements() -> int:
    shown = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", shown, re.MULTILINE)
    # What Slurm has unless it is configured.
    return max(1, int(found[1])) if found else 1001
