"""Parts of series in time, windows at drawn places and at the end: nothing of the future, the same on any ranks, resumed exactly."""

from __future__ import annotations

import datetime
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import windrow as wr


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics are kept here."""
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def series() -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.normal(number, 1 + number, n).astype(np.float32) for number, n in enumerate((100, 7, 41, 3, 260))]


@pytest.fixture
def data(tmp_path: Path, series: list[np.ndarray]) -> wr.Dataset:
    wr.write(tmp_path / "series", series, to="shards", dtype="float32")
    return wr.open(tmp_path / "series")


def test_parts_follow_one_another_and_hold_every_value_once(data: wr.Dataset, series: list[np.ndarray]) -> None:
    parts = data.split_by_time(0.7, 0.1, 0.2)
    for number, whole in enumerate(series):
        borders = [0, int(0.7 * len(whole)), int(0.8 * len(whole)), len(whole)]
        for part, start, end in zip(parts, borders, borders[1:], strict=False):
            np.testing.assert_array_equal(part[number], whole[start:end])
    with_context = data.split_by_time(0.7, 0.1, 0.2, context=24)
    for number, whole in enumerate(series):
        start = int(0.8 * len(whole))
        np.testing.assert_array_equal(with_context[2][number], whole[max(0, start - 24) :])
        np.testing.assert_array_equal(with_context[0][number], parts[0][number])


def test_every_part_is_scaled_by_the_first(data: wr.Dataset, series: list[np.ndarray]) -> None:
    for part in data.split_by_time(0.6, 0.4, context=3):
        for sample in part.windows(2, prediction_length=1, scaler="standard", fields=["item", "loc", "scale"]):
            known = series[int(sample["item"])].astype(np.float64)
            known = known[: int(0.6 * len(known))]
            np.testing.assert_allclose(sample["loc"], known.mean(), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(sample["scale"], known.std() or 1.0, rtol=1e-9)


def test_a_part_is_pickled_traced_and_another_plan(data: wr.Dataset) -> None:
    _, test = data.split_by_time(0.8, 0.2, context=8)
    view = test.windows(8, prediction_length=2, starts="last", scaler="robust")
    again = pickle.loads(pickle.dumps(view))
    for a, b in zip(view, again, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in a)
    loader = wr.Loader(view, batch_size=2)
    next(loader)
    state = loader.state_dict()
    _, other = data.split_by_time(0.7, 0.3, context=8)
    with pytest.raises(wr.MismatchError):
        wr.Loader(other.windows(8, prediction_length=2, starts="last", scaler="robust"), batch_size=2).load_state_dict(state)
    wr.Loader(again, batch_size=2).load_state_dict(state)


def test_evaluation_windows_end_with_their_series(data: wr.Dataset, series: list[np.ndarray]) -> None:
    view = data.windows(24, prediction_length=6, starts="last", loss_on="prediction", fields=["item"])
    long = [number for number, one in enumerate(series) if len(one) >= 2]
    assert [int(sample["item"]) for sample in view] == long
    for sample in view:
        whole = series[int(sample["item"])]
        n = min(len(whole) - 1, 30)
        np.testing.assert_array_equal(sample["labels"][:n], whole[-n:])
        learned = sample["labels"][sample["loss_masks"] == 1]
        np.testing.assert_array_equal(learned, whole[-6:] if n == 30 else whole[25:])
    assert view.coverage()["skipped_records"] == 0


def test_random_windows_are_drawn_again_and_resumed_on_other_ranks(data: wr.Dataset) -> None:
    view = data.windows(16, prediction_length=4, stride=10, starts="random", fields=["item", "start"])
    assert len(view) == len(data.windows(16, prediction_length=4, stride=10))

    def starts(loaders: list[wr.Loader], steps: int) -> list[tuple[int, int]]:
        drawn = []
        for _ in range(steps):
            for batch in [next(loader) for loader in loaders]:
                drawn += zip(batch["item"].tolist(), batch["start"].tolist(), strict=True)
        return drawn

    def loaders(world: int, state: dict | None = None) -> list[wr.Loader]:
        made = [wr.Loader(view, global_batch_size=6, seed=3, rank=rank, world_size=world, epochs=None) for rank in range(world)]
        for loader in made:
            if state is not None:
                loader.load_state_dict(state)
        return made

    whole = starts(loaders(1), 14)
    first = loaders(2)
    begun = starts(first, 5)
    assert begun == whole[:30]
    assert starts(loaders(3, first[0].state_dict()), 9) == whole[30:]
    epoch = len(view) // 6 * 6
    assert sorted(whole[:epoch]) != sorted(whole[epoch : 2 * epoch])
    drawn = {at for item, at in starts(loaders(1), 600) if item == 2}
    assert drawn == set(range(41 - 21 + 1))


def test_wrong_parts_are_refused(data: wr.Dataset, tmp_path: Path) -> None:
    for fractions in [(), (0.0, 1.0), (0.7, 0.4), (-0.2, 0.5), (float("nan"),)]:
        with pytest.raises(wr.ConfigError, match="split by time"):
            data.split_by_time(*fractions)
    first, _ = data.split_by_time(0.5, 0.5)
    with pytest.raises(wr.ConfigError, match="split again"):
        first.split_by_time(0.5, 0.5)
    with pytest.raises(wr.ConfigError, match="split again"):
        first.split(0.5)
    train, validation = data.split(0.4)
    halves = validation.split_by_time(0.5, 0.5)
    assert len(train) + len(halves[0]) == len(data)
    assert [len(halves[0][i]) + len(halves[1][i]) for i in range(len(validation))] == [len(v) for v in validation]
    (tmp_path / "text.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(wr.ConfigError):
        wr.open(tmp_path / "text.jsonl").split_by_time(0.5, 0.5)


# What each panel's series start at, and how far each value is from the next.
PANELS = [
    ("D", ["2020-01-01", "2019-11-20", "2020-06-01", "2018-01-01"]),
    ("h", ["2020-02-28 05:00", "2020-03-01", "2020-02-25 23:00"]),
    ("15min", ["2020-02-29 20:45", "2020-03-01 00:15"]),
    ("7D", ["2020-01-05", "2020-01-06"]),
    ("MS", ["2019-01-01", "2020-03-01", "2010-05-01"]),
    ("ME", ["2019-01-31", "2020-02-29", "2019-11-30"]),
    ("QS", ["2018-01-01", "2019-10-01"]),
    ("YS", ["2000-01-01", "2020-01-01"]),
    ("B", ["2020-02-20", "2020-02-28", "2020-03-02"]),
    ("500ms", ["2020-02-29 23:59:50", "2020-03-01"]),
]
DATES = ["2020-03-01", "2020-03-02 12:30"]


@pytest.mark.parametrize(("freq", "starts"), PANELS, ids=[freq for freq, _ in PANELS])
def test_dates_split_frames_where_pandas_does(freq: str, starts: list[str]) -> None:
    times = [pd.date_range(start, periods=50, freq=freq) for start in starts]
    frame = pd.concat(
        pd.DataFrame({"unique_id": str(number), "ds": of_series, "y": np.arange(50.0) + 100 * number}) for number, of_series in enumerate(times)
    )
    data = wr.from_frame(frame, freq="B" if freq == "B" else None)
    parts = data.split_by_time(at=DATES)
    first, second = (pd.Timestamp(date) for date in DATES)
    before, after = frame.ds < first, frame.ds >= second
    for part, rows in zip(parts, (frame[before], frame[~before & ~after], frame[after]), strict=True):
        assert len(part) == len(starts)
        for number in range(len(starts)):
            np.testing.assert_array_equal(part[number], rows[rows.unique_id == str(number)].y)


def test_a_date_is_of_any_library() -> None:
    days = pd.date_range("2020-01-01", periods=10)
    data = wr.from_frame(pd.DataFrame({"unique_id": "a", "ds": days, "y": range(10)}))
    ways: list[Any] = [
        "2020-01-05",
        pd.Timestamp("2020-01-05"),
        pd.Period("2020-01-05"),
        datetime.date(2020, 1, 5),
        datetime.datetime(2020, 1, 5),
        np.datetime64("2020-01-05"),
        days[4:5],
        np.array(["2020-01-05"], "datetime64[ns]"),
        [datetime.date(2020, 1, 5)],
    ]
    for at in ways:
        assert [part[0].tolist() for part in data.split_by_time(at=at, context=2)] == [[0, 1, 2, 3], [2, 3, 4, 5, 6, 7, 8, 9]], at
    for at, error in [(4, TypeError), (2.5, TypeError), ([4], TypeError), ("now", wr.ConfigError), ([], wr.ConfigError)]:
        with pytest.raises(error):
            data.split_by_time(at=at)
    for given in ({"at": ["2020-01-05", "2020-01-05"]}, {"at": "2020-01-05T00:00Z"}, {"last": 0}, {"last": []}, {"last": 2, "freq": "D"}):
        with pytest.raises(wr.ConfigError):
            data.split_by_time(**given)
    with pytest.raises(TypeError, match="one of them, found fractions and at"):
        data.split_by_time(0.5, 0.5, at="2020-01-05")
    with pytest.raises(TypeError, match="last: expected a number of values"):
        data.split_by_time(last="2")


def test_last_values_are_the_last_parts(data: wr.Dataset, series: list[np.ndarray]) -> None:
    parts = data.split_by_time(last=24)
    for number, whole in enumerate(series):
        np.testing.assert_array_equal(parts[0][number], whole[:-24])
        np.testing.assert_array_equal(parts[1][number], whole[-24:])
    parts = data.split_by_time(last=[5, 24], context=3)
    for number, whole in enumerate(series):
        borders = [max(len(whole) - 29, 0), max(len(whole) - 24, 0)]
        np.testing.assert_array_equal(parts[0][number], whole[: borders[0]])
        np.testing.assert_array_equal(parts[1][number], whole[max(borders[0] - 3, 0) : borders[1]])
        np.testing.assert_array_equal(parts[2][number], whole[max(borders[1] - 3, 0) :])


def panel(path: Path) -> wr.Dataset:
    rows = [{"start": f"2020-01-{10 * number + 1:02}", "target": [float(t) for t in range(40)], "item_id": number} for number in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return wr.open(path, format="gluonts")


def test_parts_by_date_are_scaled_by_what_was_known(tmp_path: Path) -> None:
    data = panel(tmp_path / "panel.jsonl")
    parts = data.split_by_time(at=["2020-02-01", "2020-02-10"], freq="D", context=4)
    for part in (*parts, *data.split_by_time(last=[6, 12], context=4)):
        fields: list[Any] = ["item", "loc", "scale", "time_features"]
        first = parts[0] if part in parts else data.split_by_time(last=18)[0]
        for sample in part.windows(4, prediction_length=2, stride=1, scaler="standard", fields=fields, freq="D"):
            item = int(sample["item"])
            known = first[item].astype(np.float64)
            np.testing.assert_allclose([sample["loc"], sample["scale"]], [known.mean(), known.std()], rtol=1e-9)
            # A target is its own number in the series.
            value = round(float(sample["input_ids"][0] * sample["scale"] + sample["loc"]))
            day = pd.Timestamp(f"2020-01-{10 * item + 1:02}") + pd.Timedelta(days=value)
            assert sample["time_features"][0, 0] == np.float32(day.day_of_week / 6 - 0.5)


def test_parts_by_date_and_by_last_values_are_pickled_and_other_plans(tmp_path: Path) -> None:
    data = panel(tmp_path / "panel.jsonl")
    made = {
        "fraction": data.split_by_time(0.7, 0.3),
        "last": data.split_by_time(last=12),
        "at": data.split_by_time(at="2020-02-08", freq="D"),
        "other": data.split_by_time(at="2020-02-09", freq="D"),
    }
    states = {}
    for name, (_, test) in made.items():
        view = test.windows(3, prediction_length=1, stride=1, scaler="standard")
        loader = wr.Loader(view, batch_size=2, seed=3)
        next(loader)
        states[name] = loader.state_dict()
        expected = next(loader)["input_ids"]
        again = wr.Loader(pickle.loads(pickle.dumps(view)), batch_size=2, seed=3)
        again.load_state_dict(states[name])
        np.testing.assert_array_equal(next(again)["input_ids"], expected)
        assert wr.trace(loader, 0) == wr.trace(loader.recipe(), 0)
        for other, state in states.items():
            if other != name:
                with pytest.raises(wr.MismatchError):
                    wr.Loader(view, batch_size=2, seed=3).load_state_dict(state)
    assert "fit=(0.0, 0.7)" in wr.Loader(made["fraction"][0].windows(3, scaler="max"), batch_size=1).plan
    assert "until=2020-02-08T00:00:00" in wr.Loader(made["at"][0].windows(3, scaler="max"), batch_size=1).plan
    assert "until=last 12" in wr.Loader(made["last"][0].windows(3, scaler="max"), batch_size=1).plan


def test_a_series_on_one_side_of_a_date_has_no_values_on_the_other(tmp_path: Path) -> None:
    data = panel(tmp_path / "panel.jsonl")
    train, test = data.split_by_time(at="2020-01-15", freq="D")
    assert [len(series) for series in train] == [14, 4, 0] and [len(series) for series in test] == [26, 36, 40]
    assert {int(sample["item"]) for sample in train.windows(2, fields=["item"])} == {0, 1}
    with pytest.raises(wr.ConfigError, match="holds no value of a record of 40 values") as error:
        train.windows(2, scaler="standard")
    assert error.value.record == 2
    assert [len(series) for series in data.split_by_time(at="2030", freq="D")[1]] == [0, 0, 0]


def test_a_record_without_times_is_named(tmp_path: Path) -> None:
    data = panel(tmp_path / "panel.jsonl")
    with pytest.raises(wr.ConfigError, match="a record without a frequency") as error:
        data.split_by_time(at="2020-02-01")
    assert error.value.record == 0 and "freq=" in str(error.value)
    np.save(tmp_path / "plain.npy", np.ones((2, 9)))
    with pytest.raises(wr.ConfigError, match="a record without a start in time") as error:
        wr.open(tmp_path / "plain.npy").split_by_time(at="2020-02-01", freq="D")
    assert error.value.record == 0 and "from_frame" in str(error.value)
    with pytest.raises(wr.ConfigError, match="times cannot be counted"):
        data.split_by_time(at="2020-02-01", freq="fortnight")
