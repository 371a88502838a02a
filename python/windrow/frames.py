"""Series from data frames of pandas and polars, without a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from windrow._native import Dataset, _in_memory
from windrow.errors import ConfigError
from windrow.failure import failure
from windrow.frequencies import frequency


def from_frame(
    df: Any,
    *,
    layout: Literal["long", "wide", "channels"] = "long",
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    freq: str | None = None,
    mask_column: str | Sequence[str] | None = "auto",
    feat_dynamic_real: str | Sequence[str] | None = None,
    feat_dynamic_cat: str | Sequence[str] | None = None,
    past_feat_dynamic_real: str | Sequence[str] | None = None,
    feat_static_real: str | Sequence[str] | None = None,
    feat_static_cat: str | Sequence[str] | None = None,
) -> Dataset:
    """The series of a pandas or polars frame as a data set, as if a file held them.

    Values keep their dtype and are read where the frame has them, where a series is one run of memory there: a frame that
    is in use must not be changed. Missing values are NaN. Each record has ``item_id``, ``start`` and ``freq`` beside it
    (``ds.extras(i)``), as GluonTS's series do. A plan knows the values by their hash: a state is refused after a change, as it
    is of a changed file. A pickle holds the values.

    Args:
        df: a ``pandas.DataFrame`` or ``polars.DataFrame``.
        layout: ``"long"`` has a row for each value of each series, those of a series one after the other in time, as
            StatsForecast and NeuralForecast take it; ``"wide"`` a column for each series ``[T]``; ``"channels"`` is a wide frame that
            is one series ``[T, C]``.
        id_col: of a long frame, the column that says of which series a row is.
        time_col: the column of times: dates, or whole numbers; of a wide frame that has none, pandas's index of dates is taken.
            Other columns of a long frame are left out, unless an argument names them.
        target_col: of a long frame, the column of values.
        freq: the frequency in pandas's words, such as ``"h"``, ``"15min"``, ``"MS"``. If not given it is found from the times, and
            weeks, quarters and years are named for each series by its own, such as ``"W-MON"`` and ``"W-TUE"``.
        mask_column: of a long frame of whole numbers, such as token IDs, the columns that say which of them are learned, as
            ``wr.open`` has it: ``"auto"`` finds ``loss_mask``, ``labels`` and the others by their names, None takes no mask.
        feat_dynamic_real: of a long frame, the columns with a number for each time, such as prices; they are beside each record as
            GluonTS has them, ``[features, T]``, and ``fields=["feat_dynamic_real"]`` of ``windows`` reads them.
        feat_dynamic_cat: the same of whole numbers, such as holidays by number.
        past_feat_dynamic_real: the same of what is not known ahead.
        feat_static_real: of a long frame, the columns with one number for each series, the same in all its rows: ``[features]``.
        feat_static_cat: the same of whole numbers, such as shops by number.

    Raises:
        ConfigError: anything but such a frame; a column that is not there or holds no numbers; times that have a zone, are missing,
            not in order or not regular, with the row; times of another frequency than ``freq``; a static feature that changes within a
            series, with the row; categories that are not whole numbers.

    >>> import windrow as wr, pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> df = pd.DataFrame({"unique_id": ["a"] * 4 + ["b"] * 2, "ds": [*days, *days[:2]], "y": [1.0, 2, 3, 4, 5, 6]})
    >>> ds = wr.from_frame(df)
    >>> [series.tolist() for series in ds], ds.extras(1)
    ([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0]], {'item_id': 'b', 'start': '2024-01-01T00:00:00', 'freq': 'D'})
    >>> wide = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}, index=days[:3])
    >>> wr.from_frame(wide, layout="wide")[1].tolist(), wr.from_frame(wide, layout="channels")[0].shape
    ([4, 5, 6], (3, 2))
    """
    if layout not in ("long", "wide", "channels"):
        raise failure(ConfigError, f"layout={layout!r}", hint='one of "long", "wide" and "channels"')
    frame = _Frame(df)
    given = {
        "feat_dynamic_real": feat_dynamic_real,
        "feat_dynamic_cat": feat_dynamic_cat,
        "past_feat_dynamic_real": past_feat_dynamic_real,
        "feat_static_real": feat_static_real,
        "feat_static_cat": feat_static_cat,
    }
    features = {name: [columns] if isinstance(columns, str) else list(columns) for name, columns in given.items() if columns is not None}
    if layout == "long":
        return _long(frame, id_col, time_col, target_col, freq, mask_column, features)
    for name in features:
        raise failure(ConfigError, f"{name}= of a frame whose columns are series", hint='layout="long" has features')
    if mask_column not in ("auto", None):
        raise failure(ConfigError, f"mask_column={mask_column!r} of a frame whose columns are series", hint='layout="long" has masks')
    return _wide(frame, time_col, freq, layout == "channels")


class _Frame:
    # What both libraries' frames have in common.
    def __init__(self, df: Any) -> None:
        kind = type(df)
        self.library = kind.__module__.partition(".")[0]
        if self.library not in ("pandas", "polars") or kind.__name__ != "DataFrame":
            lazy = kind.__name__ == "LazyFrame"
            raise failure(
                ConfigError,
                f"a {self.library}.{kind.__name__}; expected a DataFrame of pandas or polars",
                hint="give df.collect()" if lazy else "make one of it, or write it with wr.write and open that",
            )
        self.df = df
        self.names = list(df.columns)
        for name in self.names:
            if self.names.count(name) > 1:
                raise failure(ConfigError, f"two columns are called {name!r}", hint="rename one of them")

    def need(self, name: str, argument: str) -> None:
        if name not in self.names:
            raise failure(
                ConfigError,
                f"{argument}={name!r}: no column is called so",
                hint=f'columns: {", ".join(map(str, self.names))}; name another with {argument}=, or say layout="wide"',
            )

    def holds_numbers(self, name: str) -> bool:
        dtype = self.df[name].dtype
        kind = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", np.dtype(object))
        is_of_polars = self.library == "polars" and (dtype.is_numeric() or str(dtype) == "Boolean")
        return is_of_polars or (isinstance(kind, np.dtype) and kind.kind in "fiub")

    def numbers(self, name: str, of_mask: bool = False) -> npt.NDArray[Any]:
        # One run of memory: the frame's own where it is one. Masks may be true and false.
        column = self.df[name]
        if of_mask and str(column.dtype).lower() in ("bool", "boolean", "bool[pyarrow]"):
            column = column.cast(int) if self.library == "polars" else column.astype("Int8")
        if self.library == "polars":
            is_number = column.dtype.is_numeric() and not column.dtype.is_decimal()
            array = column.to_numpy() if is_number else np.empty(0, object)
        elif isinstance(column.dtype, np.dtype):
            array = column.to_numpy()
        else:
            # Missing numbers have no place in numpy's whole numbers.
            kind = getattr(column.dtype, "numpy_dtype", np.dtype(object))
            is_whole = kind.kind in "iu" and not column.isna().any()
            dtype = kind if kind.kind == "f" or is_whole else np.dtype("float64")
            array = column.to_numpy(dtype=dtype, na_value=np.nan) if kind.kind in "fiu" else np.empty(0, object)
        if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
            raise failure(
                ConfigError,
                f"the column {name!r} holds {column.dtype}, expected numbers",
                hint=f"convert it: df[{name!r}].astype(float), in polars .cast(pl.Float64)",
            )
        return np.ascontiguousarray(array, array.dtype.newbyteorder("="))

    def times(self, name: str | None) -> npt.NDArray[Any]:
        # Dates or whole numbers; `None`: pandas's index.
        column = self.df.index if name is None else self.df[name]
        shown = "the index" if name is None else f"the column {name!r}"
        # Arrow's types in pandas are within one of pandas.
        dtype = getattr(column.dtype, "pyarrow_dtype", column.dtype)
        zone = getattr(dtype, "tz" if self.library == "pandas" else "time_zone", None)
        if zone is not None:
            of_pandas = "pd.DatetimeIndex(df.index).tz_localize(None)" if name is None else ".dt.tz_localize(None)"
            raise _zoned(shown, zone, of_pandas if self.library == "pandas" else ".dt.replace_time_zone(None)")
        array = np.asarray(column.to_numpy())
        # Dates of Python's and of Arrow in pandas; NaT is a date too, and not equal to itself.
        if array.dtype == object and len(array) and all(isinstance(time, date) and time == time for time in array):
            array = _from_objects(array, shown)
        if array.dtype.kind not in "Miu":
            missing = column.is_null() if self.library == "polars" else column.isna()
            rows = np.flatnonzero(np.asarray(missing))
            if len(rows):
                raise _no_time(shown, int(rows[0]))
            raise failure(
                ConfigError,
                f"{shown} holds {column.dtype}, expected times or whole numbers",
                hint="convert it with .dt.to_timestamp()"
                if str(column.dtype).startswith("period")
                else "convert it with pd.to_datetime, in polars .str.to_datetime()",
            )
        if array.dtype.kind == "M" and np.isnat(array).any():
            raise _no_time(shown, int(np.flatnonzero(np.isnat(array))[0]))
        return array


def _from_objects(times: npt.NDArray[Any], shown: str) -> npt.NDArray[Any]:
    zone = next((time.tzinfo for time in times if getattr(time, "tzinfo", None) is not None), None)
    if zone is not None:
        raise _zoned(shown, zone, ".replace(tzinfo=None) of each time")
    array = times.astype("datetime64[us]")
    # NumPy takes pandas's Timestamp as Python's datetime, without its nanoseconds.
    nanoseconds = np.array([getattr(time, "nanosecond", 0) for time in times])
    if not nanoseconds.any():
        return array
    exact = array.astype("datetime64[ns]")
    rows = np.flatnonzero(exact.astype("datetime64[us]") != array)
    if len(rows):
        raise failure(
            ConfigError,
            f"row {rows[0]}: {shown} has the time {times[rows[0]]} and others with nanoseconds, expected years from 1678 to 2261",
            hint="leave out the nanoseconds, with .floor('us') of each pandas.Timestamp",
        )
    exact += nanoseconds.astype("timedelta64[ns]")
    return exact


def _zoned(shown: str, zone: Any, mended: str) -> Exception:
    return failure(
        ConfigError,
        f"{shown} has times of the zone {zone}",
        hint=f"take times without a zone: those of the clock with {mended}, or those of UTC after converting",
    )


def _no_time(shown: str, row: int) -> Exception:
    return failure(ConfigError, f"row {row}: {shown} has no time", hint="drop rows without a time, or fill it")


# What says which tokens are learned, and what says that some are padding, which is refused.
_MASKS = ("loss_mask", "loss", "assistant_masks", "completion_mask", "labels", "attention_mask")


def _masks(frame: _Frame, of: npt.NDArray[Any], taken: tuple[str, ...], asked: str | Sequence[str] | None) -> dict[str, npt.NDArray[Any]]:
    # The columns that are read beside the values; those that are found by name hold numbers.
    if asked == "auto":
        names = [name for name in _MASKS if of.dtype.kind in "iu" and name in frame.names and name not in taken and frame.holds_numbers(name)]
    else:
        names = [asked] if isinstance(asked, str) else list(asked or ())
        for name in names:
            frame.need(name, "mask_column")
    return {name: frame.numbers(name, of_mask=True) for name in names}


def _long(
    frame: _Frame,
    id_col: str,
    time_col: str,
    target_col: str,
    freq: str | None,
    mask_column: str | Sequence[str] | None,
    features: dict[str, list[str]],
) -> Dataset:
    for name, argument in ((id_col, "id_col"), (time_col, "time_col"), (target_col, "target_col")):
        frame.need(name, argument)
    values, times = frame.numbers(target_col), frame.times(time_col)
    if not len(values):
        raise failure(ConfigError, "a frame without rows")
    ids = frame.df[id_col]
    codes = _codes(frame, ids)
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    sort = f"df.sort_values([{id_col!r}, {time_col!r}])" if frame.library == "pandas" else f"df.sort({id_col!r}, {time_col!r})"
    firsts, found = np.unique(codes[starts], return_index=True)
    if len(firsts) < len(starts):
        again = int(starts[np.setdiff1d(np.arange(len(starts)), found)[0]])
        raise failure(
            ConfigError,
            f"row {again}: the series {_plain(ids, again)!r} continues after rows of another one",
            hint=f"sort the frame: {sort}",
        )
    freqs = frequency(times, starts, freq, column=repr(time_col), sort=sort)
    ends = np.r_[starts[1:], len(values)]
    arrays = [values[start:end] for start, end in zip(starts, ends)]
    beside = [_beside(_plain(ids, int(start)), times[start], of_series) for start, of_series in zip(starts, freqs)]
    taken = (id_col, time_col, target_col, *(column for columns in features.values() for column in columns))
    for name, columns in features.items():
        for of_series, feature in zip(beside, _features(frame, name, columns, starts, ends)):
            of_series[name] = feature
    for name, mask in _masks(frame, values, taken, mask_column).items():
        for of_series, start, end in zip(beside, starts, ends):
            of_series[name] = mask[start:end]
    if mask_column == "auto":
        return _in_memory(arrays, beside)
    named = [mask_column] if isinstance(mask_column, str) else list(mask_column or ())
    return _in_memory(arrays, beside, json.dumps({"mask_column": named}))


def _features(
    frame: _Frame, name: str, columns: list[str], starts: npt.NDArray[Any], ends: npt.NDArray[Any]
) -> Iterator[list[Any]]:
    # Of each series, as GluonTS has them: [features, T], or [features] of what does not change in it.
    if not columns:
        raise failure(ConfigError, f"{name}=[]", hint="name one column at least, or leave it out")
    for column in columns:
        frame.need(column, name)
    is_static, is_category = "_static_" in name, name.endswith("_cat")
    dtype = np.int64 if is_category else np.float64
    found = []
    for column in columns:
        numbers = frame.numbers(column, of_mask=True)
        if is_category:
            wrong = np.flatnonzero(~np.isfinite(numbers) | (numbers != np.floor(numbers)))
            if len(wrong):
                row = int(wrong[0])
                raise failure(
                    ConfigError,
                    f"row {row}: {column!r} holds {numbers[row]}, {name} takes whole numbers",
                    hint="number the categories, from 0 on; what is missing has a number too",
                )
        if is_static:
            _unchanging(numbers, column, starts, ends)
        found.append(numbers.astype(dtype))
    all_of_them = np.stack(found)
    for start, end in zip(starts, ends):
        # Lists: every format that wr.write makes has a place for them.
        yield (all_of_them[:, start] if is_static else all_of_them[:, start:end]).tolist()


def _unchanging(numbers: npt.NDArray[Any], column: str, starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> None:
    firsts = np.repeat(numbers[starts], ends - starts)
    rows = np.flatnonzero((numbers != firsts) & ~(np.isnan(numbers) & np.isnan(firsts)))
    if len(rows):
        row = int(rows[0])
        raise failure(
            ConfigError,
            f"row {row}: {column!r} is {numbers[row]}, and {firsts[row]} in the first row of its series",
            hint="name columns that change in time with feat_dynamic_real or feat_dynamic_cat",
        )


def _codes(frame: _Frame, ids: Any) -> npt.NDArray[Any]:
    # A number for each series, the same wherever it comes.
    missing = ids.is_null() if frame.library == "polars" else ids.isna()
    rows = np.flatnonzero(np.asarray(missing))
    if len(rows):
        raise failure(
            ConfigError, f"row {rows[0]} is of no series", hint="drop rows without an ID, or fill it"
        )
    if frame.library == "polars":
        return np.asarray(ids.rank("dense").to_numpy()) if ids.dtype.is_numeric() else np.asarray(ids.cast(str).rank("dense"))
    import pandas as pd

    return np.asarray(pd.factorize(ids)[0])


def _plain(ids: Any, row: int) -> Any:
    # A text or a number of Python's.
    value = ids.iloc[row] if hasattr(ids, "iloc") else ids[row]
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, float)) else str(value)


def _wide(frame: _Frame, time_col: str, freq: str | None, is_one: bool) -> Dataset:
    is_indexed = time_col not in frame.names
    if is_indexed and (frame.library == "polars" or frame.df.index.dtype.kind != "M"):
        frame.need(time_col, "time_col")
    times = frame.times(None if is_indexed else time_col)
    names = [name for name in frame.names if name != time_col]
    if not names or not len(times):
        raise failure(ConfigError, "a frame without values")
    name = "the index" if is_indexed else repr(time_col)
    sort = "df.sort_index()" if is_indexed else f"df.sort_values({time_col!r})"
    if frame.library == "polars":
        sort = f"df.sort({time_col!r})"
    (freq,) = frequency(times, np.array([0]), freq, column=name, sort=sort)
    columns = [frame.numbers(name) for name in names]
    # All series of a data set are of one dtype.
    dtype = np.result_type(*columns)
    columns = [column.astype(dtype, copy=False) for column in columns]
    if is_one:
        whole = np.ascontiguousarray(np.stack(columns, axis=1))
        return _in_memory([whole], [{**_beside(None, times[0], freq), "channels": list(map(str, names))}])
    return _in_memory(columns, [_beside(name, times[0], freq) for name in names])


def _beside(item: Any, start: Any, freq: str | None) -> dict[str, Any]:
    of_item = {} if item is None else {"item_id": item if isinstance(item, (int, float)) else str(item)}
    if start.dtype.kind != "M":
        return {**of_item, "start": int(start)}
    second = start.astype("datetime64[s]")
    text = str(second if second == start else start)
    return {**of_item, "start": text, **({} if freq is None else {"freq": freq})}
