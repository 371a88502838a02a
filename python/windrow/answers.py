"""What steps read: of which bytes a batch is, which steps a record is in, what a range of steps covered, the batch of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow import _native
from windrow._options import checked

if TYPE_CHECKING:
    from typing import Any, SupportsIndex

    from windrow._native import Loader, _Chosen, _Path

__all__ = ["coverage", "extract", "find", "trace"]


@checked
def trace(
    plan: Loader | dict[str, Any] | _Path,
    step: SupportsIndex,
    *,
    row: SupportsIndex | None = None,
    select: _Chosen | None = None,
    epoch: SupportsIndex | None = None,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
) -> list[dict[str, Any]]:
    """Which bytes a step read, row by row.

    Args:
        plan: a ``Loader``, the dict that ``loader.recipe()`` gives, or the path of a file that holds it.
        step: the step, from 0; counted in ``epoch`` where that is given, else from the start of the run.
        row: only this row of the batch.
        select: the ``numbers`` of the records that were chosen, of a plan as text that holds only a hash of them, as it does of more
            than 4,096 that are not a slice; a list of arrays where it has several such choices.
        epoch: the epoch, from 0.
        rank, world_size: only the rows of this rank; ``row`` then counts within them.

    Returns:
        A list of dicts: row, where ranks share the batch the rank that gets it, position, part, of a mix part_name, view, sample, pass, and reads: a list of dicts of record, start, len, and
        locations, a list of dicts of file, start and size in bytes.

    Raises:
        OutOfRangeError: no such step or row.
        NotFoundError, CorruptError: no file at the path, or no plan.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(10, dtype=np.uint16).tofile(path)
    >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=2, shuffle=False)
    >>> row = wr.trace(loader, step=0, row=1)[0]
    >>> read = row["reads"][0]
    >>> row["sample"], read["record"], read["start"], read["len"], read["locations"][0]["start"]
    (1, 0, 3, 4, 6)
    """
    return _native._trace(locals())


@checked
def find(
    plan: Loader | dict[str, Any] | _Path,
    record: SupportsIndex,
    *,
    part: SupportsIndex | str = 0,
    epoch: SupportsIndex = 0,
    most: SupportsIndex = 1000,
    select: _Chosen | None = None,
) -> list[dict[str, int]]:
    """Which steps of an epoch read a record: the inverse of ``trace``.

    Args:
        plan: as for ``trace``.
        record: the record's number in its data set.
        part: the view of a mixture: its name, or its number from 0.
        epoch: the epoch, from 0.
        most: the largest number of positions that are found.
        select: as for ``trace``.

    Returns:
        A list of dicts: step and row in the epoch, position, sample, and of a mix part_name. Steps that ``drop_last`` leaves out are not in it.

    Raises:
        OutOfRangeError: no such record or part, or no such epoch in this run.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(10, dtype=np.uint16).tofile(path)
    >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, shuffle=False)
    >>> [found["step"] for found in wr.find(loader, record=0)]
    [0, 1, 2]
    """
    return _native._find(locals())


@checked
def coverage(
    plan: Loader | dict[str, Any] | _Path,
    steps: tuple[SupportsIndex, SupportsIndex],
    *,
    list_records: bool = False,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
    select: _Chosen | None = None,
) -> dict[str, Any]:
    """Which parts, files and records a range of steps read.

    Args:
        plan: as for ``trace``.
        steps: the first step and the one after the last, counted from the start of the run.
        list_records: also which records, as ``record_ranges``.
        rank, world_size: only the rows of this rank.
        select: as for ``trace``.

    Returns:
        A dict: ``steps``, how many there are, fewer than asked for where the run ends; ``parts``, a list of a dict for each view:
        part, name (None without a mixture), samples, values and records (how many of them are distinct), records_of (how many it
        has), files (a list of dicts of file, bytes and values), and with ``list_records`` record_ranges, a list of [from, to]. Bytes and
        values are counted as often as they were read.

    Raises:
        OutOfRangeError: the first step is past the end of the run.
        ConfigError: the range ends before it begins.
        NotFoundError, CorruptError: no file at the path, or no plan.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(10, dtype=np.uint16).tofile(path)
    >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=2, shuffle=False)
    >>> part = wr.coverage(loader, (0, 1))["parts"][0]
    >>> part["samples"], part["values"], part["records"], part["files"][0]["bytes"]
    (2, 8, 1, 16)
    """
    return _native._coverage(locals())


@checked
def extract(
    plan: Loader | dict[str, Any] | _Path,
    step: SupportsIndex,
    *,
    epoch: SupportsIndex | None = None,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
    select: _Chosen | None = None,
) -> Any:
    """The batch of a step, as a loader of the plan gives it with ``framework="numpy"``.

    Args:
        plan: as for ``trace``.
        step: the step, from 0; counted in ``epoch`` where that is given, else from the start of the run.
        epoch: the epoch, from 0.
        rank, world_size: only the rows of this rank; without them the rows of all.
        select: as for ``trace``.

    Returns:
        A dict of name → numpy array ``[B, …]``; of a view of rows the list of its records.

    Raises:
        OutOfRangeError: no such step.
        NotFoundError, CorruptError: no file at the path, or no plan.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(100, dtype=np.uint16).tofile(path)
    >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=2)
    >>> batches = next(loader), next(loader)
    >>> bool((wr.extract(loader, step=1)["labels"] == batches[1]["labels"]).all())
    True
    """
    return _native._extract(locals())
