"""The frequency of times: found, or compared with the one that is given."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import ConfigError
from windrow.failure import failure

_DAY = 86_400 * 10**9
# What pandas calls a step, with its nanoseconds, the longest first.
_FIXED = [("D", _DAY), ("h", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)]
_WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
# Units in others: a frequency in the smallest one compares with any other of the same length.
_IN_OTHERS = {"W": (7, "D"), "D": (24, "h"), "h": (60, "min"), "min": (60, "s"), "Y": (12, "M"), "Q": (3, "M")}
_NAMES = {"H": "h", "T": "min", "S": "s", "L": "ms", "U": "us", "N": "ns", "A": "Y", "AS": "Y"}
_NAMES |= {f"{unit}{end}": unit for unit in "YQM" for end in "SE"}


def frequency(
    times: npt.NDArray[Any], starts: npt.NDArray[np.intp], said: str | None, *, column: str, sort: str
) -> list[str | None]:
    """What pandas calls the step of each series, which begin at the rows ``starts``. All go on by one step; weeks are named by the
    day and quarters and years by the month of each series, or as ``said``. ``None`` where no series has two times, and where times
    are whole numbers.

    Raises:
        ConfigError: times that do not go on by one step, naming the first row, or by another one than ``said``.
    """
    said_unit = None if said is None else _unit(said)
    follows = np.ones(len(times), bool)
    follows[starts] = False
    rows = np.flatnonzero(follows)
    if not len(rows):
        return [said] * len(starts)
    is_date = times.dtype.kind == "M"
    is_wrong = times[rows] <= times[rows - 1]
    if is_wrong.any():
        row = int(rows[is_wrong.argmax()])
        raise failure(
            ConfigError,
            f"row {row}: {column} {times[row]} comes after {times[row - 1]}, expected a later time",
            hint=f"sort the frame: {sort}; of rows with the same time keep one",
        )
    # In the unit of the times: other units hold years that nanoseconds do not. Unsigned, as 2**63 nanoseconds are but 292 years.
    numbers = times.astype(np.int64).view(np.uint64)
    steps = numbers[rows] - numbers[rows - 1]
    found = _found(times, rows, steps) if is_date else "" if steps.min() == steps.max() else None
    if said_unit == (1, "B") and is_date and _is_business(times, rows):
        return [said] * len(starts)
    if found is None:
        row, expected = _gap(times, rows, steps)
        raise failure(
            ConfigError,
            f"row {row}: {column} {times[row]} comes after {times[row - 1]}, expected {expected}, as in most rows",
            hint="fill the gaps with rows of NaN: asfreq() in pandas, upsample() in polars, fill_gaps() in utilsforecast",
        )
    if said is not None and is_date and not _is_same(said, found):
        raise failure(
            ConfigError,
            f"freq={said!r}, found times of the frequency {_anchored(found, times[rows[:1]])[0]!r}",
            hint="leave freq out, or bring the times to that frequency with resample() or group_by_dynamic()",
        )
    return [said] * len(starts) if said or not found else [*_anchored(found, times[starts])]


# Without the day of weeks or the month of quarters and years.
def _found(times: npt.NDArray[Any], rows: npt.NDArray[np.intp], steps: npt.NDArray[np.uint64]) -> str | None:
    shortest = int(steps.min()) * dict(_FIXED)[_unit_of(times)]
    if shortest >= 28 * _DAY:
        found = _in_months(times, rows)
        if found is not None:
            return found
    if steps.min() == steps.max():
        return _fixed(shortest)
    return "B" if _is_business(times, rows) else None


# The first row that most rows do not say, and the time that they do: days of months and business days are those of a calendar.
def _gap(times: npt.NDArray[Any], rows: npt.NDArray[np.intp], steps: npt.NDArray[np.uint64]) -> tuple[int, Any]:
    is_date = times.dtype.kind == "M"
    side = _side(times, rows) if is_date and int(steps.min()) * dict(_FIXED)[_unit_of(times)] >= 28 * _DAY else None
    if side is not None:
        months = times.astype("datetime64[M]")
        jumps = (months[rows] - months[rows - 1]).astype(np.int64)
        most = _most(jumps)
        row = int(rows[np.flatnonzero(jumps != most)[0]])
        after = months[row - 1] + most
        return row, after.astype("datetime64[D]") if side == "S" else (after + 1).astype("datetime64[D]") - 1
    most = _most(steps)
    is_wrong = steps != most
    if is_date and _are_business_days(times, rows):
        days = times.astype("datetime64[D]")
        is_next = np.busday_count(days[rows - 1], days[rows]) == 1
        if is_next.sum() > (~is_wrong).sum():
            row = int(rows[np.flatnonzero(~is_next)[0]])
            return row, np.busday_offset(days[row - 1], 1)
    row = int(rows[np.flatnonzero(is_wrong)[0]])
    return row, _after(times[row - 1], int(most))


def _most(steps: npt.NDArray[Any]) -> Any:
    kinds, counts = np.unique(steps, return_counts=True)
    return kinds[counts.argmax()]


# "s", "ms", "us" or "ns", and "D" in polars.
def _unit_of(times: Any) -> Any:
    return np.datetime_data(times.dtype)[0]


def _after(time: Any, step: int) -> Any:
    if time.dtype.kind != "M":
        return int(time) + step
    after = int(time.astype(np.int64)) + step
    # Nanoseconds end in 2262.
    return np.datetime64(after, _unit_of(time)) if after < 2**63 else np.datetime64(after // 1000, "us")


# Months, quarters and years are not of one length.
def _in_months(times: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> str | None:
    months = times.astype("datetime64[M]").view(np.int64)
    steps, end = months[rows] - months[rows - 1], _side(times, rows)
    if steps.min() != steps.max() or end is None:
        return None
    n = int(steps[0])
    return f"{_many(n // 12)}Y{end}" if n % 12 == 0 else f"Q{end}" if n == 3 else f"{_many(n)}M{end}"


# Whether all times are first days of months, "S", or last days, "E".
def _side(times: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> str | None:
    used = times[np.union1d(rows, rows - 1)]
    days, months = used.astype("datetime64[D]"), used.astype("datetime64[M]")
    if (days != used).any():
        return None
    is_last = bool((days + 1 == (months + 1).astype("datetime64[D]")).all())
    return "S" if (days == months).all() else "E" if is_last else None


# The frequency of each series by its first time.
def _anchored(found: str, firsts: npt.NDArray[Any]) -> list[str]:
    if found.endswith("W"):
        # 1970 began with a Thursday.
        days = (firsts.astype("datetime64[D]").view(np.int64) + 3) % 7
        return [f"{found}-{_WEEKDAYS[day]}" for day in days]
    months = firsts.astype("datetime64[M]").view(np.int64) % 12
    if found in ("QS", "QE"):
        # Quarters are named by the month in which a year of them begins, or ends.
        return [f"{found}-{_MONTHS[month % 3 + (0 if found == 'QS' else 9)]}" for month in months]
    return [f"{found}-{_MONTHS[month]}" for month in months] if "Y" in found else [found] * len(firsts)


def _is_business(times: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> bool:
    days = times.astype("datetime64[D]")
    return _are_business_days(times, rows) and bool((np.busday_count(days[rows - 1], days[rows]) == 1).all())


def _are_business_days(times: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> bool:
    used = times[np.union1d(rows, rows - 1)]
    days = used.astype("datetime64[D]")
    return bool((days == used).all() and np.is_busday(days).all())


def _many(n: int) -> str:
    return "" if n == 1 else str(n)


def _fixed(step: int) -> str:
    if step % (7 * _DAY) == 0:
        return f"{_many(step // (7 * _DAY))}W"
    name, size = next((name, size) for name, size in _FIXED if step % size == 0)
    return f"{_many(step // size)}{name}"


# Of the same length; months, quarters and years on the same side, where it is given.
def _is_same(said: str, found: str) -> bool:
    side, found_side = (re.match(r"\d*[AMQY]([SE])", freq) for freq in (said, found))
    return _unit(said) == _unit(found) and (side is None or found_side is None or side[1] == found_side[1])


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
