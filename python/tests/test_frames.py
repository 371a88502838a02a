"""Series of pandas and polars frames: their values where they are, checked times, states that know the values."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from foreign_cases import printed_by_loaders
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


def series_at(*times: Any) -> pd.DataFrame:
    """A series for each of the given times, in a long frame."""
    parts = [pd.DataFrame({"unique_id": str(n), "ds": one, "y": np.arange(len(one))}) for n, one in enumerate(times)]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    "names", ["W-MON W-TUE W-SUN", "2W-FRI 2W-SAT", "QS-JAN QS-FEB QS-MAR", "QE-OCT QE-DEC", "YS-JAN YS-JUL", "3YE-MAR 3YE-NOV"]
)
def test_each_series_has_the_frequency_of_its_own_times(names: str, of: Callable[[pd.DataFrame], Any]) -> None:
    times = [pd.date_range("2021-01-05", periods=4, freq=name) for name in names.split()]
    # A series of one time is named as the others are.
    for n in (4, 1):
        ds = wr.from_frame(of(series_at(*times[:-1], times[-1][:n])))
        assert [ds.extras(i)["freq"] for i in range(len(ds))] == names.split()
    said = names.split()[0].partition("-")[0]
    ds = wr.from_frame(of(series_at(*times)), freq=said)
    assert {ds.extras(i)["freq"] for i in range(len(ds))} == {said}


@pytest.mark.parametrize("names", ["MS ME", "QS-JAN QE-DEC", "YS-JAN YE-DEC", "2MS 2ME"])
def test_a_frequency_of_starts_is_not_that_of_ends(names: str) -> None:
    start, end = names.split()
    for found, said in ((start, end), (end, start)):
        frame = series_at(pd.date_range("2024-01-01", periods=4, freq=found))
        with pytest.raises(wr.ConfigError, match=f"freq='{said}', found times of the frequency '{found}'"):
            wr.from_frame(frame, freq=said)
    # The older names say neither.
    name = start.replace("S", "").partition("-")[0]
    assert wr.from_frame(frame, freq=name).extras(0)["freq"] == name


UTC, EAST = timezone.utc, timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("zones", "says"), [((UTC, UTC), "UTC"), ((EAST, EAST), "UTC\\+02:00"), ((EAST, UTC), "UTC\\+02:00"), ((None, UTC), "UTC")]
)
def test_datetimes_with_a_zone_are_refused(zones: tuple[Any, Any], says: str) -> None:
    for kind in (datetime, pd.Timestamp):
        times = pd.Series([kind(2024, 1, 1 + n, tzinfo=zone) for n, zone in enumerate(zones)], dtype=object)
        with pytest.raises(wr.ConfigError, match=f"the column 'ds' has times of the zone {says}"):
            wr.from_frame(pd.DataFrame({"unique_id": "a", "ds": times, "y": [1, 2]}))
    plain = times.map(lambda time: time.replace(tzinfo=None))
    assert wr.from_frame(pd.DataFrame({"unique_id": "a", "ds": plain, "y": [1, 2]})).extras(0)["freq"] == "D"


# pandas needs pyarrow for it.
ARROW = """
import pandas as pd, pyarrow as pa, windrow as wr
days = pd.Series(pd.date_range("2024-01-01", periods=3))
for zone in (None, "UTC", "Europe/Amsterdam"):
    times = days.astype(pd.ArrowDtype(pa.timestamp("ns", tz=zone)))
    for frame, layout in (
        (pd.DataFrame({"unique_id": "a", "ds": times, "y": [1, 2, 3]}), "long"),
        (pd.DataFrame({"ds": times, "a": [1, 2, 3]}), "wide"),
        (pd.DataFrame({"a": [1, 2, 3]}, index=pd.Index(times)), "wide"),
    ):
        try:
            print(wr.from_frame(frame, layout=layout).extras(0)["start"])
        except wr.ConfigError as error:
            print(str(error).splitlines()[0])
"""


def test_periods_are_refused_with_a_way_that_works() -> None:
    periods = pd.period_range("2020-01", periods=3, freq="M")
    frame = pd.DataFrame({"unique_id": "a", "ds": periods, "y": [1.0, 2.0, 3.0]})
    with pytest.raises(wr.ConfigError, match="period") as caught:
        wr.from_frame(frame)
    assert ".dt.to_timestamp()" in str(caught.value)
    assert len(wr.from_frame(frame.assign(ds=frame["ds"].dt.to_timestamp()))) == 1


def test_times_of_arrow_with_a_zone_are_refused() -> None:
    refused = [[f"{column} has times of the zone {zone}" for column in ["the column 'ds'"] * 2 + ["the index"]]
               for zone in ("UTC", "Europe/Amsterdam")]
    assert printed_by_loaders(ARROW) == ["2024-01-01T00:00:00"] * 3 + refused[0] + refused[1]


def test_an_index_with_a_zone_is_mended_as_the_hint_says() -> None:
    df = pd.DataFrame({"a": [1, 2, 3]}, index=pd.date_range("2024-01-01", periods=3, tz="Asia/Tokyo"))
    with pytest.raises(wr.ConfigError, match="the index has times of the zone Asia/Tokyo") as error:
        wr.from_frame(df, layout="wide")
    assert "pd.DatetimeIndex(df.index).tz_localize(None)" in str(error.value)
    df.index = pd.DatetimeIndex(df.index).tz_localize(None)
    assert wr.from_frame(df, layout="wide").extras(0)["start"] == "2024-01-01T00:00:00"


def test_timestamps_among_objects_keep_their_nanoseconds() -> None:
    times = pd.Series(pd.date_range("2024-01-01", periods=4, freq="500ns"), dtype=object)
    frame = pd.DataFrame({"unique_id": "a", "ds": times, "y": range(4)})
    assert wr.from_frame(frame).extras(0) == {"item_id": "a", "start": "2024-01-01T00:00:00", "freq": "500ns"}
    assert wr.from_frame(frame[1:]).extras(0)["start"] == "2024-01-01T00:00:00.000000500"
    with pytest.raises(wr.ConfigError, match="row 2: the column 'ds' has no time"):
        wr.from_frame(frame.assign(ds=times.where(times.index != 2, pd.NaT)))
    with pytest.raises(wr.ConfigError, match="row 3: the column 'ds' has the time 2500-01-01 00:00:00 and others with nanoseconds"):
        wr.from_frame(frame.assign(ds=times.where(times.index != 3, datetime(2500, 1, 1))))


def test_years_that_nanoseconds_do_not_hold() -> None:
    half = np.datetime64("2500-01-01T00:00:00.500000") + np.arange(3) * np.timedelta64(1, "s")
    assert wr.from_frame(series_at(half)).extras(0) == {"item_id": "0", "start": "2500-01-01T00:00:00.500000", "freq": "s"}
    for start in ("0007-01-01", "1600-01-01", "2500-01-01", "9000-01-01"):
        for unit in ("s", "ms", "us"):
            for step, freq in (("D", "D"), ("h", "h"), ("M", "MS"), ("Y", "YS-JAN")):
                times = np.arange(4) + np.datetime64(start, step)
                found = wr.from_frame(series_at(times.astype(f"datetime64[{unit}]"))).extras(0)
                assert found == {"item_id": "0", "start": f"{start}T00:00:00", "freq": freq}
    dates = pl.DataFrame({"unique_id": ["a"] * 3, "ds": [datetime(year, 1, 1) for year in (1000, 1400, 1800)], "y": [1, 2, 3]})
    for frame in (dates, dates.with_columns(pl.col("ds").cast(pl.Date))):
        assert wr.from_frame(frame).extras(0) == {"item_id": "a", "start": "1000-01-01T00:00:00", "freq": "400YS-JAN"}


def test_steps_longer_than_signed_nanoseconds() -> None:
    times = pd.to_datetime(["1700-01-01", "2100-01-01"]).as_unit("ns")
    assert wr.from_frame(series_at(times)).extras(0)["freq"] == "400YS-JAN"
    with pytest.raises(wr.ConfigError, match="row 1: 'ds' 1700-01-01"):
        wr.from_frame(series_at(times[::-1]))
    centuries = np.datetime64("1900-01-01", "ns") + np.arange(4) * np.timedelta64(36525, "D")
    gap = np.append(centuries, centuries[-1] + np.timedelta64(1, "D"))
    with pytest.raises(wr.ConfigError, match="row 4: 'ds' 2200-01-04T00:00:00.0+ comes after .*, expected 2300-01-04"):
        wr.from_frame(series_at(gap))


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


FEATURES: dict[str, Any] = {
    "feat_dynamic_real": ["price", "temperature"],
    "feat_dynamic_cat": "holiday",
    "past_feat_dynamic_real": ["sold"],
    "feat_static_real": ["area"],
    "feat_static_cat": ["shop", "kind"],
}


def with_features() -> pd.DataFrame:
    df = long_frame("float32")
    n = np.arange(len(df))
    of_series = df["unique_id"].map({"b": 0, "a": 1, "c": 2})
    return df.assign(
        price=n / 4, temperature=-n.astype("float32"), holiday=n % 3 == 0, sold=n * 2, area=of_series + 0.5, shop=of_series, kind=of_series % 2
    )


def test_columns_are_covariates_as_gluonts_has_them(of: Callable[[pd.DataFrame], Any], tmp_path: Any) -> None:
    df = with_features()
    ds = wr.from_frame(of(df), **FEATURES)
    wr.write(tmp_path / "kept", ds, to="shards")
    view: Any = None
    for number, (name, rows) in enumerate(df.groupby("unique_id", sort=False)):
        assert ds.extras(number)["item_id"] == name
        for data in (ds, wr.open(tmp_path / "kept")):
            view = data.windows(10, stride=7, labels=None, fields=["item", "start", *FEATURES])
            for sample in view:
                if sample["item"] != number:
                    continue
                part = rows.iloc[int(sample["start"]) :][:10]
                np.testing.assert_array_equal(sample["input_ids"], part["y"])
                np.testing.assert_array_equal(sample["feat_dynamic_real"], part[["price", "temperature"]].to_numpy("float32"))
                np.testing.assert_array_equal(sample["feat_dynamic_cat"], part[["holiday"]].to_numpy("int64"))
                np.testing.assert_array_equal(sample["past_feat_dynamic_real"], part[["sold"]].to_numpy("float32"))
                np.testing.assert_array_equal(sample["feat_static_real"], part[["area"]].to_numpy("float32")[0])
                np.testing.assert_array_equal(sample["feat_static_cat"], part[["shop", "kind"]].to_numpy()[0])
    assert {int(sample["item"]) for sample in view} == {0, 1, 2}


def test_covariates_that_do_not_fit_are_refused_with_the_row(of: Callable[[pd.DataFrame], Any]) -> None:
    df = with_features()
    for given, says in [
        ({"feat_static_cat": ["shop", "sold"]}, "row 1: 'sold' is 2, and 0 in the first row of its series"),
        ({"feat_dynamic_cat": "price"}, "row 1: 'price' holds 0.25, feat_dynamic_cat takes whole numbers"),
        ({"feat_dynamic_real": []}, "feat_dynamic_real=[]"),
        ({"feat_dynamic_real": ["prices"]}, "feat_dynamic_real='prices': no column is called so"),
    ]:
        with pytest.raises(wr.ConfigError) as error:
            wr.from_frame(of(df), **given)  # type: ignore[arg-type]
        assert says in str(error.value) and "hint: " in str(error.value)
    with pytest.raises(wr.ConfigError, match="of a frame whose columns are series"):
        wr.from_frame(of(df.drop(columns="unique_id")), layout="wide", feat_dynamic_real="price")
