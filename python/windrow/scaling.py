"""Undoes what a scaler did to windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windrow.errors import ConfigError
from windrow.failure import failure


def inverse(batch: Mapping[str, Any], values: Any = None) -> Any:
    """Values as they were before a scaler: ``values * scale + loc``, row by row.

    ``batch`` comes of windows with ``fields=["loc", "scale"]``, from a loader or by number. ``values`` are what a model made
    for its rows, in scaled units: ``[B, …]``, or of one sample ``[…]``, with the channels last where the batch has some. Without
    them ``input_ids`` and ``labels`` of the batch are given back as a dict. Arrays and tensors of any kind; float64, as ``loc``
    and ``scale`` are.

    Raises:
        ConfigError: a batch without ``loc`` and ``scale``, or values of another number of rows or channels.

    >>> import windrow as wr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    >>> _ = path.write_text("[[10, 20, 30, 40, 50, 60]]")
    >>> view = wr.open(path).windows(4, prediction_length=1, scaler="standard", fields=["loc", "scale"])
    >>> sample = view[0]
    >>> wr.inverse(sample)["input_ids"].round(4).tolist()
    [10.0, 20.0, 30.0, 40.0, 50.0]
    >>> wr.inverse(sample, sample["input_ids"] + 1).round(2).tolist()
    [27.08, 37.08, 47.08, 57.08, 67.08]
    """
    missing = [name for name in ("loc", "scale") if name not in batch]
    if missing:
        what = f"the batch has no {' and no '.join(missing)}"
        raise failure(ConfigError, what, hint='cut its windows with fields=["loc", "scale"]')
    # The mask says how many axes a batch has.
    missing = [name for name in ("input_ids", "loss_masks") if name not in batch]
    if missing:
        what = f"the batch has no {' and no '.join(missing)}"
        raise failure(ConfigError, what, hint="give it by the view's own names, not by those of names=")
    if values is None:
        return {name: inverse(batch, batch[name]) for name in ("input_ids", "labels") if name in batch}
    loc, scale = batch["loc"], batch["scale"]
    rows = tuple(loc.shape) if _is_batch(batch) else (None, *loc.shape)
    of_channels = len(rows) == 2
    shape = tuple(values.shape)
    if _is_batch(batch) and shape[:1] != rows[:1]:
        raise failure(ConfigError, f"values of shape {list(shape)} for a batch of {rows[0]} rows")
    if of_channels and shape[-1:] != rows[1:]:
        raise failure(ConfigError, f"values of shape {list(shape)}: the last axis is expected to be the {rows[1]} channels")
    # One number, or one of each channel, for all values of a row.
    between = len(shape) - len(loc.shape)
    wide = (*rows[:1], *(1,) * between, *rows[1:]) if _is_batch(batch) else (*(1,) * between, *rows[1:])
    return values * scale.reshape(wide) + loc.reshape(wide)


def _is_batch(batch: Mapping[str, Any]) -> bool:
    # A mask is `[length]` of a sample and `[B, length]` of a batch.
    return len(batch["loss_masks"].shape) == 2
