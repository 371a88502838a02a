"""A job and its tasks: planned, run one by one, looked at, merged, joined."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

from windrow import Tokenizer, _native
from windrow.errors import ConfigError, WindrowError
from windrow.failure import failure

__all__ = ["absolute", "attempt", "clean", "cores", "join", "merge", "plan", "run_task", "status"]

Job: TypeAlias = "str | os.PathLike[str]"



def plan(
    task: Literal["tokenize", "index"],
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    task_bytes: int | str = "256MiB",
    **options: Any,
) -> str:
    """Divides a preparation into tasks and writes the job down below its output.

    Nothing is read but names and sizes: a file is divided by arithmetic, and a task owns the lines that begin in its part. Of URLs,
    credentials and endpoint are those of the environment, which every worker has.

    Args:
        task: ``"tokenize"`` or ``"index"``.
        inputs: a path or URL, or several, as ``wr.tokenize`` takes them; of ``"index"`` one folder. Every worker must see them under these
            names.
        out: the folder of the parts, or its URL; the same holds for it.
        task_bytes: bytes of input of a task, a number or a text such as ``"256MiB"``: some ten seconds to a minute of work.
        options: of ``"index"`` ``index_folder``; else those of ``wr.tokenize`` that decide what is written: ``tokenizer`` (no function),
            ``text_field``, ``eos``, ``append_eos``, ``special_tokens``, ``split``, ``dtype``, and for ``join`` also ``to``,
            ``sample_size``, ``remainder`` and the format's own.

    Returns:
        The path or URL of the job, ``<out>/prep/<hash>.json``: what ``run`` and the other functions take, on any machine.

    Raises:
        ExistsError: another job has the same output.
        ConfigError, NotFoundError: as ``wr.tokenize``.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes", task_bytes=16)
    >>> pathlib.Path(job).parent == folder / "tokens" / "prep"
    True
    """
    return _native._prep_plan(task, inputs, out, json.dumps(options if task == "index" else _as_json(options)), task_bytes=task_bytes)


def run_task(
    job: Job, task: int, threads: int | None = None, *, progress: Callable[[dict[str, int]], object] | bool | None = None
) -> bool:
    """Makes one part, anywhere, at any time, again if you like: the bytes are the same.

    Args:
        job: what ``plan`` returned.
        task: its number, from 0.
        threads: None takes the cores.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.

    Returns:
        True: it was made. False: it was there.

    Raises:
        StaleError: an input is not what it was when the job was planned.
        MismatchError: another tokenizer than the job's.
        ExistsError: another run of this task gave other bytes.
        CorruptError: as ``wr.tokenize``. What is raised is written beside the parts too, for ``status``.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes", task_bytes=16)
    >>> wr.prep.run_task(job, 1), wr.prep.run_task(job, 1), wr.prep.status(job)["left"]
    (True, False, [0])
    """
    return _native._prep_task(job, task, threads=threads, progress=progress)


def status(job: Job) -> dict[str, Any]:
    """What the manifests say: ``tasks``, how many; ``done``, how many of them; ``left``, the others' numbers; ``failed``, the first of
    those whose last run failed, dicts with ``task`` and ``error``; ``records``, ``values`` and ``bytes`` of the parts that are there.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": 2}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes", task_bytes=16)
    >>> wr.prep.run_task(job, 0)
    True
    >>> now = wr.prep.status(job)
    >>> now["tasks"], now["done"], now["left"], now["failed"]
    (2, 1, [1], [])
    """
    return _native._prep_status(job)


def merge(job: Job) -> dict[str, Any]:
    """Makes a data set of the parts, from their manifests alone: ``wr.open(out)`` opens it from then on. Again, it writes the same bytes.

    Raises:
        WindrowError: tasks are left; the message says how many.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes", task_bytes=16)
    >>> wr.prep.run_task(job, 1), wr.prep.run_task(job, 0)
    (True, True)
    >>> wr.prep.merge(job)["records"]
    2
    """
    return _native._prep_merge(job)


def join(
    job: Job,
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
) -> dict[str, Any]:
    """Writes the files that one run on one machine would have written, out of the parts, without tokenising again.

    Args:
        job: what ``plan`` returned, its tasks done.
        out: the folder to write, or its URL.
        overwrite: replace an existing output.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.

    Raises:
        WindrowError: tasks are left.
        ExistsError: another output is there, and no ``overwrite``.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "parts", tokenizer="bytes", to="tokens", task_bytes=16)
    >>> _ = wr.prep.run(job)
    >>> _ = wr.prep.join(job, folder / "joined")
    >>> _ = wr.tokenize(folder / "a.jsonl", folder / "at_once", tokenizer="bytes", to="tokens")
    >>> (folder / "joined" / "tokens.bin").read_bytes() == (folder / "at_once" / "tokens.bin").read_bytes()
    True
    """
    return _native._prep_join(job, out, overwrite=overwrite, progress=progress)


def clean(job: Job) -> int:
    """Removes what killed workers left; how many files that were. Not while a worker is at work on the job.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes")
    >>> _ = wr.prep.run(job)
    >>> wr.prep.clean(job)
    0
    """
    return _native._prep_clean(job)


def attempt(job: str, task: int, threads: int | None, progress: Callable[[dict[str, int]], object] | None = None) -> None:
    """One task in a worker. What it raises is written beside the parts, and the worker takes the next one."""
    with contextlib.suppress(WindrowError):
        run_task(job, task, threads, progress=progress)


def absolute(job: Job) -> str:
    """The job as workers in other folders find it."""
    name = os.fspath(job)
    return name if "://" in name else os.path.abspath(name)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _as_json(options: dict[str, Any]) -> dict[str, Any]:
    """Options as the command line has them, by which a job knows them."""
    given = dict(options)
    tokenizer = given.get("tokenizer")
    if tokenizer is None or not isinstance(tokenizer, (str, os.PathLike, Tokenizer)):
        raise failure(
            ConfigError,
            "tokenizer is missing" if tokenizer is None else "tokenizer is a function, which other machines do not have",
            hint='a name such as tokenizer="gpt2", or the path of a tokenizer.json that every worker sees',
        )
    given["tokenizer"] = tokenizer.name if isinstance(tokenizer, Tokenizer) else os.fspath(tokenizer)
    eos = given.pop("eos", "auto")
    if eos == "append":
        eos, given["append_eos"] = "auto", True
    given["eos"] = "none" if eos is None else str(eos)
    if given.get("dtype") is not None:
        import numpy as np

        given["dtype"] = np.dtype(given["dtype"]).name
    return given
