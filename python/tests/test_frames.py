"""Series of pandas and polars frames: their values where they are, checked times, states that know the values."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from torch.utils.data import DataLoader

import windrow as wr

LENGTHS = {"b": 40, "a": 25, "c": 31}


def long_frame(dtype: str = "float64") -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range("2024-02-27", periods=n, freq="h"),
                "y": np.arange(n, dtype=dtype) + 100 * number,
            }
        )
        for number, (name, n) in enumerate(LENGTHS.items())
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(params=["pandas", "polars"])
def of(request: pytest.FixtureRequest) -> Callable[[pd.DataFrame], Any]:
    """A frame of either library."""
    return (lambda df: df) if request.param == "pandas" else (lambda df: pl.DataFrame({c: df[c].to_numpy() for c in df}))


def test_a_long_frame_is_its_series(of: Callable[[pd.DataFrame], Any]) -> None:
    for dtype in ("float64", "float32", "int32", "uint8", "int64"):
        ds = wr.from_frame(of(long_frame(dtype)))
        assert ds.format == "frame" and ds.path == []
        assert [ds[i].shape for i in range(3)] == [(n,) for n in LENGTHS.values()]
        assert {series.dtype for series in ds} == {np.dtype(dtype)}
        assert ds[1].tolist() == list(range(100, 125))
        assert ds.extras(1) == {"item_id": "a", "start": "2024-02-27T00:00:00", "freq": "h"}
    renamed = of(long_frame().rename(columns={"unique_id": "shop", "ds": "day", "y": "sold"}))
    assert len(wr.from_frame(renamed, id_col="shop", time_col="day", target_col="sold")) == 3


def test_a_wide_frame_is_a_series_a_column_or_one_of_channels(of: Callable[[pd.DataFrame], Any]) -> None:
    wide = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=9, freq="MS"), "a": range(9), "b": np.arange(9) / 2})
    ds = wr.from_frame(of(wide), layout="wide")
    assert [series.tolist() for series in ds] == [list(range(9)), [n / 2 for n in range(9)]]
    assert ds.extras(1) == {"item_id": "b", "start": "2024-01-01T00:00:00", "freq": "MS"}
    one = wr.from_frame(of(wide), layout="channels")
    assert len(one) == 1 and one[0].tolist() == [[n, n / 2] for n in range(9)]
    assert one.extras(0)["channels"] == ["a", "b"]
    indexed = wide.set_index("ds")
    assert [series.tolist() for series in wr.from_frame(indexed, layout="wide")] == [series.tolist() for series in ds]


def test_values_are_read_where_they_are() -> None:
    values = np.arange(96.0)
    named = {"unique_id": long_frame()["unique_id"].tolist(), "ds": long_frame()["ds"].to_numpy()}
    ours = pl.DataFrame(named).with_columns(y=pl.from_numpy(values.reshape(-1, 1)).to_series())
    frames: list[Any] = [long_frame().assign(y=pd.Series(values, copy=False)), ours]
    for frame in frames:
        arrays, _ = wr.from_frame(frame).__reduce__()[1][:2]
        assert all(np.shares_memory(array, frame["y"].to_numpy()) for array in arrays)


def test_missing_values_are_nan() -> None:
    days = pd.date_range("2024-01-01", periods=3)
    frames = [
        pd.DataFrame({"unique_id": 7, "ds": days, "y": [1.0, np.nan, 3.0]}),
        pd.DataFrame({"unique_id": 7, "ds": days, "y": pd.array([1, None, 3], dtype="Int32")}),
        pd.DataFrame({"unique_id": 7, "ds": days, "y": pd.array([1, None, 3], dtype="Float64")}),
        pl.DataFrame({"unique_id": [7] * 3, "ds": days.to_numpy(), "y": [1, None, 3]}),
        pl.DataFrame({"unique_id": [7] * 3, "ds": days.to_numpy(), "y": [1.0, None, 3.0]}),
    ]
    for frame in frames:
        ds = wr.from_frame(frame)
        np.testing.assert_array_equal(ds[0], [1, np.nan, 3])
        assert ds.extras(0)["item_id"] == 7
    ds = wr.from_frame(frames[0])
    assert ds.windows(2, nan="mask")[0]["loss_masks"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda df: df.iloc[[1, 0, *range(2, 96)]], "row 1: 'ds' 2024-02-27T00:00:00"),
        (lambda df: df.iloc[[0, 0, *range(1, 96)]], "row 1: 'ds' 2024-02-27T00:00:00"),
        (lambda df: df.drop(index=60), "row 60: 'ds' 2024-02-27T21:00:00"),
        (lambda df: df.sort_values("ds", kind="stable"), "row 3: the series 'b' continues"),
        (lambda df: df.assign(ds=df["ds"].where(df.index != 5)), "row 5: the column 'ds' has no time"),
        (lambda df: df.assign(unique_id=df["unique_id"].where(df.index != 5)), "row 5 is of no series"),
        (lambda df: df.assign(ds=df["ds"].astype(str)), "expected times or whole numbers"),
        (lambda df: df.assign(ds=df["ds"].dt.tz_localize("UTC")), "times of the zone UTC"),
        (lambda df: df.assign(y=df["y"].astype(str)), "'y' holds str, expected numbers"),
        (lambda df: df.assign(y=df["y"].astype(complex)), "expected numbers"),
        (lambda df: df.drop(columns="y"), "target_col='y': no column is called so"),
        (lambda df: df.iloc[:0], "a frame without rows"),
        (lambda df: pd.concat([df, df["y"]], axis=1), "two columns are called 'y'"),
        (lambda df: df["y"], "a pandas.Series; expected a DataFrame"),
        (lambda df: pl.from_dict(df.drop(columns="ds").to_dict("list")).lazy(), "hint: give df.collect()"),
    ],
)
def test_what_is_no_frame_of_series_is_refused(change: Callable[[pd.DataFrame], Any], says: str) -> None:
    with pytest.raises(wr.ConfigError) as error:
        wr.from_frame(change(long_frame()))
    assert says in str(error.value) and "hint: " in str(error.value) or says == "a frame without rows"


def test_frequencies_are_those_of_pandas() -> None:
    names = "s 30s 15min h 2h D 2D B W-WED 2W-SUN MS ME 2MS QS-FEB QE-NOV YS-JAN YE-DEC 2YS-MAR ms"
    for name in names.split():
        times = pd.date_range("2021-03-05", periods=20, freq=name)
        frame = pd.DataFrame({"unique_id": "a", "ds": times, "y": np.arange(20)})
        found = wr.from_frame(frame).extras(0)
        assert found["freq"] == wr.from_frame(frame, freq=name).extras(0)["freq"] == name
        assert pd.Timestamp(found["start"]) == times[0]
        with pytest.raises(wr.ConfigError, match=f"freq='37D', found times of the frequency '{name}'"):
            wr.from_frame(frame, freq="37D")
    numbered = wr.from_frame(pd.DataFrame({"unique_id": "a", "ds": [5, 7, 9], "y": [1, 2, 3]}))
    assert numbered.extras(0) == {"item_id": "a", "start": 5}
    with pytest.raises(wr.ConfigError, match="row 2: 'ds' 10 comes after 7, expected 9, as in most rows"):
        wr.from_frame(pd.DataFrame({"unique_id": "a", "ds": [5, 7, 10, 12], "y": [1, 2, 3, 4]}))


def test_a_state_is_resumed_by_the_same_values_and_refused_by_others() -> None:
    def loader(frame: pd.DataFrame) -> wr.Loader:
        return wr.Loader(wr.from_frame(frame).windows(8, stride=1), batch_size=4, seed=3)

    first = loader(long_frame())
    for _ in range(3):
        next(first)
    state, rest = first.state_dict(), [next(first)["input_ids"] for _ in range(9)]
    again = loader(long_frame())
    again.load_state_dict(state)
    np.testing.assert_array_equal([next(again)["input_ids"] for _ in range(9)], rest)
    for changed in (long_frame().assign(y=lambda df: df["y"].replace(7.0, 7.5)), long_frame("float32")):
        with pytest.raises(wr.MismatchError, match="the state belongs to another plan"):
            loader(changed).load_state_dict(state)
    assert wr.trace(first, 2)
    with pytest.raises(wr.ConfigError, match="the records are in memory"):
        first.recipe()


def test_views_of_frames_go_to_workers(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path))
    ds = wr.from_frame(long_frame())
    train, validation = ds.split_by_time(0.8, 0.2)
    copies = [pickle.loads(pickle.dumps(each)) for each in (ds, train, validation)]
    for copied, each in zip(copies, (ds, train, validation), strict=True):
        assert [series.tolist() for series in copied] == [series.tolist() for series in each]
    view = validation.windows(3, scaler="standard", fields=["item", "loc", "scale"])
    mixed = wr.mix({"a": (view, 0.5), "b": (pickle.loads(pickle.dumps(view)), 0.5)})
    for each in (view, mixed):
        batches = [DataLoader(each, batch_size=2, num_workers=n, multiprocessing_context=c) for n, c in ((0, None), (1, "spawn"))]
        plain, spawned = ([batch["input_ids"].tolist() for batch in loader] for loader in batches)
        assert plain == spawned and plain
