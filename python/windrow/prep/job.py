"""A job and its tasks: planned, run one by one, looked at, merged, joined."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from windrow import Tokenizer, _native
from windrow.errors import ConfigError, MismatchError, WindrowError
from windrow.failure import failure

__all__ = [
    "STORE_OPTIONS", "absolute", "as_texts", "attempt", "clean", "cores", "join", "merge", "plan", "run_task", "status", "worker_environment",
]  # fmt: skip

Job: TypeAlias = "str | os.PathLike[str]"
StoreOptions: TypeAlias = "Mapping[str, Any] | None"

STORE_OPTIONS = "WINDROW_STORE_OPTIONS"
"""The variable by which a process that runs tasks is told them, as a JSON object: no script and no command line holds a key."""


def plan(
    task: Literal["tokenize", "index", "convert", "encode"],
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    task_bytes: int | str = "256MiB",
    store_options: StoreOptions = None,
    **options: Any,
) -> str:
    """Divides a preparation into tasks and writes the job down below its output.

    Nothing is read but names and sizes: a file is divided by arithmetic, and a task owns the lines that begin in its part. ``"convert"``
    divides records by their numbers, ``"encode"`` a folder of sound by its files.

    Args:
        task: ``"tokenize"``, ``"index"``, ``"convert"`` or ``"encode"``.
        inputs: a path or URL, or several, as ``wr.tokenize`` takes them; of ``"index"`` one folder, of ``"convert"`` one path or pattern, as
            ``wr.open`` takes it; of ``"encode"`` one folder of sound, or file, as ``wr.encode`` takes it. Every worker must see them under these names.
        out: the folder of the parts, or its URL; the same holds for it.
        task_bytes: bytes of input of a task, a number or a text such as ``"256MiB"``: some ten seconds to a minute of work.
        store_options: of URLs, as for ``wr.open``. The job does not keep them: ``run`` and the others take them too; without, those of the
            environment are taken.
        options: of ``"index"`` ``index_folder``. Of ``"convert"`` those of ``wr.convert`` that decide what is written: ``to``, ``dtype`` and
            the format's own; and ``opening``, a dict of the options of ``wr.open``: ``format``, ``dtype``, ``vocab_size``, ``document_eos``,
            ``column``, ``columns``, ``mask_column``, ``payload``, ``axis``, ``split``, ``index_folder``. Records are numbers, without arrays beside them. Of
            ``"encode"`` ``weights``, the path of the codec's weights, which every worker sees; ``device``, ``"cpu"``, ``"cuda"`` or
            ``"metal"``, which is part of the job; and those of ``wr.encode`` that decide what is written: ``quality``, ``skip_corrupt``,
            ``dtype``, ``skip_tags``, ``skip_vocals``, and for ``join`` also ``prompts``, ``prompt_from_name`` and ``to``. Of
            ``"tokenize"`` those of ``wr.tokenize`` that decide what is written: ``tokenizer`` (no function),
            ``text_field``, ``eos``, ``append_eos``, ``special_tokens``, ``split``, ``dtype``, ``skip_corrupt``, ``max_skipped``, and for ``join`` also ``to``,
            ``sample_size``, ``remainder``, ``pad_value`` and the format's own. Of all but ``"encode"`` ``allow_empty``: inputs
            without any record are planned too, and give an empty output.

    Returns:
        The path or URL of the job, ``<out>/prep/<hash>.json``: what ``run`` and the other functions take, on any machine.

    Raises:
        ExistsError: another job has the same output.
        ConfigError, NotFoundError: as ``wr.tokenize``; there are no records, and no ``allow_empty``.
        MismatchError: a ``Tokenizer`` whose file holds another one by now.
        UnsupportedError: a device that this windrow was not built for; sound at a URL; a URL with a query or a password.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes", task_bytes=16)
    >>> pathlib.Path(job).parent == folder / "tokens" / "prep"
    True
    """
    read = {"tokenize": _of_tokenize, "convert": _of_convert, "encode": _of_encode}.get(task, dict)
    return _native._prep("plan", {**locals(), "options": json.dumps(read(options))})


def run_task(
    job: Job,
    task: int,
    num_threads: int | None = None,
    *,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: StoreOptions = None,
) -> bool:
    """Makes one part, anywhere, at any time, again if you like: the bytes are the same.

    Args:
        job: what ``plan`` returned.
        task: its number, from 0.
        num_threads: None takes the cores.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
        store_options: of URLs, as for ``wr.open``.

    Returns:
        True: it was made. False: it was there.

    Raises:
        StaleError: an input is not what it was when the job was planned.
        MismatchError: another tokenizer than the job's; of ``"encode"`` other weights, or another kind of device; another run of
            this task gave other bytes.
        CorruptError: as ``wr.tokenize``. What is raised is written beside the parts too, for ``status``.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes", task_bytes=16)
    >>> wr.prep.run_task(job, 1), wr.prep.run_task(job, 1), wr.prep.status(job)["left"]
    (True, False, [0])
    """
    return _native._prep("task", locals())


def status(job: Job, *, store_options: StoreOptions = None) -> dict[str, Any]:
    """What the manifests say: ``tasks``, how many; ``done``, how many of them; ``left``, the others' numbers; ``failed``, the first of
    those whose last run failed, dicts with ``task``, ``kind`` and ``error``; ``records``, ``values`` and ``bytes`` of the parts that are there;
    ``running``, dicts of tasks that run, each with ``host`` and ``pid`` of its worker, ``secs`` that it runs, ``done_bytes`` of ``total_bytes`` and
    ``bytes_per_sec``, as it said ``quiet_secs`` ago (every ten seconds, unless it was killed); ``bytes_per_sec`` of all of them, and
    ``left_secs``, how long the rest takes at this rate.

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
    return _native._prep("status", locals())


def merge(job: Job, *, store_options: StoreOptions = None) -> dict[str, Any]:
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
    return _native._prep("merge", locals())


def join(
    job: Job,
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Callable[[dict[str, int]], object] | bool | None = None,
    store_options: StoreOptions = None,
) -> dict[str, Any]:
    """Writes the files that one run on one machine would have written, out of the parts, without tokenising again. Those of
    ``"convert"`` and ``"encode"`` need the data still: what is beside the values, such as names and prompts, is taken from there.

    Args:
        job: what ``plan`` returned, its tasks done.
        out: the folder or file to write, as for ``wr.tokenize``, ``wr.convert`` or ``wr.encode``, or its URL.
        overwrite: replace an existing output.
        progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
        store_options: of URLs, as for ``wr.open``.

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
    return _native._prep("join", locals())


def clean(job: Job, *, store_options: StoreOptions = None) -> int:
    """Removes what killed workers left; how many files that were. Not while a worker is at work on the job.

    >>> import windrow as wr, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
    >>> job = wr.prep.plan("tokenize", folder / "a.jsonl", folder / "tokens", tokenizer="bytes")
    >>> _ = wr.prep.run(job)
    >>> wr.prep.clean(job)
    0
    """
    return _native._prep("clean", locals())


def attempt(
    job: str,
    task: int,
    threads: int | None,
    store_options: dict[str, str] | None = None,
    progress: Callable[[dict[str, int]], object] | None = None,
) -> None:
    """One task in a worker. What it raises is written beside the parts, and the worker takes the next one."""
    with contextlib.suppress(WindrowError):
        run_task(job, task, threads, progress=progress, store_options=store_options)


def absolute(job: Job) -> str:
    """The job as workers in other folders find it."""
    name = os.fspath(job)
    return name if "://" in name else os.path.abspath(name)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def as_texts(store_options: StoreOptions) -> dict[str, str] | None:
    """Store options as texts, which any process can be given; those of a dict within are called ``headers.NAME``."""
    if store_options is None:
        return None
    found: dict[str, str] = {}
    for name, value in store_options.items():
        within = {f"{name}.{inner}": text for inner, text in value.items()} if isinstance(value, Mapping) else {name: value}
        found |= {name: text if isinstance(text, str) else str(text).lower() for name, text in within.items()}
    return found


def worker_environment(store_options: dict[str, str] | None) -> dict[str, str]:
    """The environment of a process that runs tasks."""
    return dict(os.environ) if store_options is None else os.environ | {STORE_OPTIONS: json.dumps(store_options)}


def _of_convert(options: dict[str, Any]) -> dict[str, Any]:
    """Options of ``wr.convert`` and ``wr.open`` as a job knows them."""
    given = dict(options)
    opening = dict(given.pop("opening", None) or {})
    # The same as a list: absent is "auto", an empty one is no mask.
    mask = opening.pop("mask_column", "auto")
    if mask != "auto":
        opening["mask_column"] = [mask] if isinstance(mask, str) else list(mask or [])
    if given.pop("allow_empty", False):
        opening["allow_empty"] = True
    for of in (given, opening):
        if of.get("dtype") is not None:
            of["dtype"] = _dtype(of["dtype"])
    return given | {"opening": opening}


def _of_encode(options: dict[str, Any]) -> dict[str, Any]:
    """Options of ``wr.encode`` as a job knows them."""
    given = {name: value for name, value in options.items() if value is not None}
    if "weights" in given:
        given["weights"] = os.fspath(given["weights"])
    if "prompts" in given:
        prompts = given["prompts"]
        given["prompts"] = [os.fspath(path) for path in ([prompts] if isinstance(prompts, (str, os.PathLike)) else prompts)]
    if "skip_tags" in given:
        given["skip_tags"] = list(given["skip_tags"])
    if "dtype" in given:
        given["dtype"] = _dtype(given["dtype"])
    return given


def _dtype(given: Any) -> str:
    import numpy as np

    return "bfloat16" if given == "bfloat16" else str(np.dtype(given).name)


def _of_tokenize(options: dict[str, Any]) -> dict[str, Any]:
    """Options as the command line has them, by which a job knows them."""
    given = dict(options)
    tokenizer = given.get("tokenizer")
    if tokenizer is None or not isinstance(tokenizer, (str, os.PathLike, Tokenizer)):
        raise failure(
            ConfigError,
            "tokenizer is missing" if tokenizer is None else "tokenizer is a function, which other machines do not have",
            hint='a name such as tokenizer="gpt2", or the path of a tokenizer.json that every worker sees',
        )
    given["tokenizer"] = _named(tokenizer) if isinstance(tokenizer, Tokenizer) else os.fspath(tokenizer)
    eos = given.pop("eos", "auto")
    if eos == "append":
        eos, given["append_eos"] = "auto", True
    given["eos"] = "none" if eos is None else str(eos)
    if given.get("dtype") is not None:
        given["dtype"] = _dtype(given["dtype"])
    return given


def _named(tokenizer: Tokenizer) -> str:
    """What other processes load it by: its built-in name, or the path of its file, absolute, as it is pickled."""
    (name,) = tokenizer.__reduce__()[1]
    if Tokenizer(name).hash != tokenizer.hash:
        what = "another tokenizer is in the file than was loaded from it"
        raise failure(MismatchError, what, path=name, hint="load it again: wr.Tokenizer(path)")
    return name
