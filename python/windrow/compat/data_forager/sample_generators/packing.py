"""Cuts a stream of documents into samples of one size, with the arrays beside the tokens."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

import windrow

from ....failure import failure


class Packer:
    """Tokens of all documents in a row; every `sample_size` of them are a sample, the rest waits for the next document.

    `dtypes`: name → dtype of each array, in the order in which they are in a sample; the tokens come first.
    """

    def __init__(self, sample_size: int, dtypes: Mapping[str, npt.DTypeLike]) -> None:
        if not isinstance(sample_size, SupportsIndex) or operator.index(sample_size) < 1:
            raise failure(
                windrow.ConfigError,
                f"sample_size is {sample_size!r}, expected a whole number, 1 or more",
                hint="arrays beside the tokens need samples of one size",
            )
        self._sample_size = sample_size
        self._dtypes = {name: np.dtype(dtype) for name, dtype in dtypes.items()}
        self._rest = {name: np.zeros(0, dtype) for name, dtype in self._dtypes.items()}

    def add(self, document: Mapping[str, Sequence[int] | npt.NDArray[Any]]) -> list[bytes]:
        """The samples that this document completes: the bytes of all arrays behind each other.

        Raises `windrow.ConfigError` (a ValueError) for a value that its dtype cannot hold.
        """
        joined = {
            # numpy joins in the machine's byte order.
            name: np.concatenate([self._rest[name], exact(name, document[name], dtype)]).astype(dtype, copy=False)
            for name, dtype in self._dtypes.items()
        }
        sizes = {name: len(values) for name, values in joined.items()}
        if len(set(sizes.values())) > 1:
            raise failure(windrow.ConfigError, f"found arrays of different lengths in one document: {sizes}")
        size = self._sample_size
        full = next(iter(sizes.values())) // size * size
        self._rest = {name: values[full:] for name, values in joined.items()}
        return [
            b"".join(values[first : first + size].tobytes() for values in joined.values())
            for first in range(0, full, size)
        ]


def exact(name: str, values: Sequence[int] | npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values as `dtype`; `windrow.ConfigError` for one that does not fit, never another number in its place.

    Floating-point values are rounded to a floating-point `dtype`; whole numbers are not.
    """
    found = np.asarray(values)
    allowed = "iubf" if dtype.kind == "f" else "iub"
    if found.ndim != 1 or (found.size and found.dtype.kind not in allowed):
        kind = f"shape {found.shape} and dtype {found.dtype}"
        raise failure(windrow.ConfigError, f"found {name} of {kind}, expected a list of numbers for {dtype}")
    if found.size and dtype.kind in "iu":
        low, high, limits = int(found.min()), int(found.max()), np.iinfo(dtype)
        if low < limits.min or high > limits.max:
            bad = low if low < limits.min else high
            raise failure(
                windrow.ConfigError,
                f"found {bad} in {name}, expected {limits.min}..{limits.max} ({dtype})",
                hint=f"token_dtype=np.{_fitting(low, high)}" if name == "tokens" else None,
            )
    with np.errstate(over="ignore"):
        made = found.astype(dtype)
        if dtype.kind == "f":
            _refuse_others(name, values, found, made)
    return made


def _refuse_others(
    name: str, values: Sequence[int] | npt.NDArray[Any], found: npt.NDArray[Any], made: npt.NDArray[Any]
) -> None:
    # Smaller whole numbers are exact, and smaller values do not become infinite.
    for at in np.flatnonzero(np.abs(found.astype(np.float64)) > 2.0 ** np.finfo(made.dtype).nmant):
        # NumPy has rounded the whole numbers of a list that has others beside them.
        given = values[at] if isinstance(values, (list, tuple)) else found[at]
        if isinstance(given, (int, np.integer)):
            # Python compares these two exactly.
            given = int(given)
            is_other = float(made[at]) != given
        else:
            is_other = np.isinf(made[at]) and not np.isinf(given)
        if is_other:
            wider = "float64" if float(given) == given else _fitting(given, given)
            raise failure(
                windrow.ConfigError,
                f"found {given} in {name}, which would become {made[at]}; expected numbers that {made.dtype} holds",
                hint=f"token_dtype=np.{wider}" if name == "tokens" else f"give its generator the dtype np.{wider}",
            )


def stored_in_core(dtype: np.dtype[Any]) -> bool:
    """Whether the core writes token ids of this dtype."""
    return dtype.isnative and dtype.name in ("uint8", "uint16", "uint32", "int32", "int64")


def _fitting(low: int, high: int) -> str:
    for candidate in ("uint16", "uint32", "int32", "int64"):
        if np.iinfo(candidate).min <= low and high <= np.iinfo(candidate).max:
            return candidate
    return "uint64"
