"""The frequency of times: found, or compared with what is said of it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import ConfigError
from windrow.failure import failure

_DAY = 86_400 * 10**9
# What pandas calls a step of so many nanoseconds, the longest first.
_FIXED = [("D", _DAY), ("h", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)]
_WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
# Units in others: a frequency in the smallest one compares with any other of the same length.
_IN_OTHERS = {"W": (7, "D"), "D": (24, "h"), "h": (60, "min"), "min": (60, "s"), "Y": (12, "M"), "Q": (3, "M")}
_NAMES = {"H": "h", "T": "min", "S": "s", "L": "ms", "U": "us", "N": "ns", "A": "Y", "AS": "Y"}
_NAMES |= {f"{unit}{end}": unit for unit in "YQM" for end in "SE"}


def frequency(times: npt.NDArray[Any], starts: npt.NDArray[np.intp], said: str | None, *, column: str, sort: str) -> str | None:
    """What pandas calls the step of all series, which begin at the rows ``starts``; ``None`` where no series has two times, and
    where times are whole numbers.

    Raises:
        ConfigError: times that do not go on by one step, naming the first row, or by another one than ``said``.
    """
    said_unit = None if said is None else _unit(said)
    follows = np.ones(len(times), bool)
    follows[starts] = False
    rows = np.flatnonzero(follows)
    if not len(rows):
        return said
    is_date = times.dtype.kind == "M"
    numbers = times.astype("datetime64[ns]").view(np.int64) if is_date else times.astype(np.int64)
    steps = numbers[rows] - numbers[rows - 1]
    if steps.min() <= 0:
        row = int(rows[np.flatnonzero(steps <= 0)[0]])
        raise failure(
            ConfigError,
            f"row {row}: {column} {times[row]} comes after {times[row - 1]}, expected a later time",
            hint=f"sort the frame: {sort}; of rows with the same time keep one",
        )
    found = _found(times, rows, steps) if is_date else "" if steps.min() == steps.max() else None
    if said_unit == (1, "B") and is_date and _is_business(times, rows):
        return said
    if found is None:
        kinds, counts = np.unique(steps, return_counts=True)
        most = kinds[counts.argmax()]
        row = int(rows[np.flatnonzero(steps != most)[0]])
        expected = times[row - 1] + (np.timedelta64(most, "ns") if is_date else most)
        raise failure(
            ConfigError,
            f"row {row}: {column} {times[row]} comes after {times[row - 1]}, expected {expected}, as in most rows",
            hint="fill the gaps with rows of NaN: asfreq() in pandas, upsample() in polars, fill_gaps() in utilsforecast",
        )
    if said is not None and is_date and said_unit != _unit(found):
        raise failure(
            ConfigError,
            f"freq={said!r}, found times of the frequency {found!r}",
            hint="leave freq out, or bring the times to that frequency with resample() or group_by_dynamic()",
        )
    return said or found or None


def _found(times: npt.NDArray[Any], rows: npt.NDArray[np.intp], steps: npt.NDArray[np.int64]) -> str | None:
    if steps.min() >= 28 * _DAY:
        found = _in_months(times, rows)
        if found is not None:
            return found
    if steps.min() == steps.max():
        return _fixed(int(steps[0]), times[rows[0]])
    return "B" if _is_business(times, rows) else None


# Months, quarters and years are not of one length.
def _in_months(times: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> str | None:
    used = times[np.union1d(rows, rows - 1)]
    days, months = used.astype("datetime64[D]"), times.astype("datetime64[M]").view(np.int64)
    steps = months[rows] - months[rows - 1]
    is_first = bool((days == used.astype("datetime64[M]")).all())
    is_last = bool(((days + 1) == (used.astype("datetime64[M]") + 1)).all())
    if steps.min() != steps.max() or not (is_first or is_last) or (days != used).any():
        return None
    n, end = int(steps[0]), "S" if is_first else "E"
    if n % 12 == 0:
        return f"{_many(n // 12)}Y{end}-{_MONTHS[int(months[rows[0]]) % 12]}"
    return f"Q{end}-{_quarter(int(months[rows[0]]) % 12, is_first)}" if n == 3 else f"{_many(n)}M{end}"


# Quarters are named by the month in which a year of them begins, or ends.
def _quarter(month: int, is_first: bool) -> str:
    return _MONTHS[month % 3] if is_first else _MONTHS[month % 3 + 9]


def _is_business(times: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> bool:
    days = times.astype("datetime64[D]")
    used = np.union1d(rows, rows - 1)
    is_whole = (days[used] == times[used]).all() and np.is_busday(days[used]).all()
    return bool(is_whole and (np.busday_count(days[rows - 1], days[rows]) == 1).all())


def _many(n: int) -> str:
    return "" if n == 1 else str(n)


def _fixed(step: int, first: Any) -> str:
    if step % (7 * _DAY) == 0:
        # 1970 began with a Thursday.
        weekday = (int(first.astype("datetime64[D]").astype(np.int64)) + 3) % 7
        return f"{_many(step // (7 * _DAY))}W-{_WEEKDAYS[weekday]}"
    name, size = next((name, size) for name, size in _FIXED if step % size == 0)
    return f"{_many(step // size)}{name}"


# The number of units and the smallest unit; what a year or a week begins with is left aside.
def _unit(freq: str) -> tuple[int, str]:
    match = re.fullmatch(r"(\d*)([A-Za-z]+)(-[A-Z]{3})?", freq)
    unit = None if match is None else _NAMES.get(match[2], match[2])
    if match is None or unit not in {*_IN_OTHERS, "M", "B", "s", "ms", "us", "ns"}:
        raise failure(ConfigError, f"freq={freq!r}", hint='give a frequency of pandas, such as "h", "15min", "D", "B", "W-SUN", "MS"')
    n = int(match[1] or 1)
    while unit in _IN_OTHERS:
        more, unit = _IN_OTHERS[unit]
        n *= more
    return n, str(unit)
