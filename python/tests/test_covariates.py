"""Covariates beside windows have the values of GluonTS's own package, in a loader, a worker, a part in time and after a resume."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from foreign_cases import with_loaders
from torch.utils.data import DataLoader

import windrow as wr

STARTS = ["1999-12-31 22:58:57", "2024-02-27 10:00:00", "2021-01-02 00:00:00", "2016-06-30 23:59:59"]
FREQUENCIES = "s min 15min h 2h D B W W-WED 2W-SUN MS ME 3MS QE-DEC QE-NOV QS".split()
# The names that pandas has for periods differ from those for times.
OTHERS = """
import json, sys, warnings
import numpy as np
import pandas as pd
from gluonts.time_feature import time_features_from_frequency_str
warnings.filterwarnings("ignore")
out = {}
for freq in sys.argv[2].split(","):
    features = time_features_from_frequency_str(freq)
    period = {"MS": "M", "ME": "M", "3MS": "3M", "QE-DEC": "Q-DEC", "QE-NOV": "Q-NOV", "QS": "Q-DEC"}.get(freq, freq)
    for start in sys.argv[1].split(","):
        index = pd.period_range(pd.Period(start, period), periods=800)
        out[f"{freq} {start}"] = np.stack([np.asarray(feature(index), float) for feature in features], 1).tolist()
print(json.dumps(out))
"""


def gluonts(path: Path, rows: list[dict[str, Any]]) -> wr.Dataset:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return wr.open(path, format="gluonts")


def test_time_features_are_those_of_gluonts(tmp_path: Path) -> None:
    expected = with_loaders(OTHERS, ",".join(STARTS), ",".join(FREQUENCIES))
    data = gluonts(tmp_path / "a.jsonl", [{"start": start, "target": [0.0] * 800} for start in STARTS])
    for freq in FREQUENCIES:
        view = data.windows(800, labels=None, fields=["time_features"], freq=freq)
        for number, start in enumerate(STARTS):
            found = view[number]["time_features"]
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, np.array(expected[f"{freq} {start}"]).astype(np.float32), f"{freq} {start}")


def features(n: int, shift: float = 0) -> dict[str, Any]:
    return {
        "feat_static_cat": [3, n],
        "feat_static_real": [n / 2],
        "feat_dynamic_real": (np.arange(2 * n).reshape(2, n) + shift).tolist(),
        "feat_dynamic_cat": [list(range(n))],
    }


FIELDS: list[Any] = ["item", "start", "time_features", *features(0)]


def test_features_are_at_the_places_of_their_values(tmp_path: Path) -> None:
    lengths = [30, 6, 44]
    rows = [{"start": "2024-01-01", "freq": "D", "target": [float(t) for t in range(n)], **features(n, 0.5)} for n in lengths]
    data = gluonts(tmp_path / "a.jsonl", rows)
    for part in (data, *data.split_by_time(0.5, 0.5, context=3), *data.split(0.4)):
        view = part.windows(8, prediction_length=2, stride=3, tail="pad", fields=FIELDS)
        for sample in view:
            n = int(sample["feat_static_cat"][1])
            row = rows[lengths.index(n)]
            real = max(int(sample["loss_masks"].sum()) + 1, 1)
            # A target is its own number in the series.
            first = int(sample["input_ids"][0])
            times = slice(first, first + min(real, 10))
            assert sample["feat_static_real"].tolist() == [n / 2] and sample["feat_static_cat"].tolist() == [3, n]
            dynamic = np.array(row["feat_dynamic_real"], np.float32).T[first : first + 10]
            np.testing.assert_array_equal(sample["feat_dynamic_real"], np.pad(dynamic, ((0, 10 - len(dynamic)), (0, 0))))
            assert sample["feat_dynamic_cat"][: times.stop - first, 0].tolist() == list(range(n))[times]
            day = pd.Timestamp("2024-01-01") + pd.Timedelta(days=first)
            assert sample["time_features"][0, 0] == np.float32(day.dayofweek / 6 - 0.5)


def test_frames_have_times_and_what_is_resumed_is_the_same() -> None:
    hours = pd.date_range("2024-02-27", periods=60, freq="h")
    frame = pd.DataFrame({"unique_id": ["a"] * 60 + ["b"] * 40, "ds": [*hours, *hours[:40]], "y": np.arange(100.0)})
    view = wr.from_frame(frame).windows(12, stride=1, fields=["time_features", "item"])

    def loader() -> wr.Loader:
        return wr.Loader(view, batch_size=4, seed=1, framework="torch")

    first = loader()
    batches = [next(first) for _ in range(6)]
    assert batches[0]["time_features"].shape == (4, 12, 4)
    for batch in batches:
        hour = (batch["input_ids"] - 60 * batch["item"][:, None]).numpy() % 24
        np.testing.assert_allclose(batch["time_features"][:, :, 0], hour / 23 - 0.5, rtol=1e-6)
    again = loader()
    again.load_state_dict({**first.state_dict(), "samples": 8})
    assert all((next(again)["time_features"] == batch["time_features"]).all() for batch in batches[2:])
    spawned = DataLoader(pickle.loads(pickle.dumps(view)), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    for found, expected in zip(spawned, DataLoader(view, batch_size=4), strict=True):
        assert (found["time_features"] == expected["time_features"]).all()
    plan = wr.Loader(view, batch_size=4, seed=1).state_dict()
    other = wr.from_frame(frame).windows(12, stride=1, fields=["time_features", "item"], freq="60min")
    with pytest.raises(wr.MismatchError, match="the state belongs to another plan"):
        wr.Loader(other, batch_size=4, seed=1).load_state_dict(plan)


def test_series_of_other_days_of_the_week_have_times_of_their_own() -> None:
    series = {name: pd.date_range(first, periods=8, freq="7D") for name, first in (("a", "2024-01-01"), ("b", "2024-01-02"))}
    frames = {name: pd.DataFrame({"unique_id": name, "ds": times, "y": range(8)}) for name, times in series.items()}

    def features(*names: str) -> Any:
        return wr.from_frame(pd.concat([frames[name] for name in names])).windows(8, fields=["time_features"]).batch([*range(len(names))])

    both = features("a", "b")["time_features"]
    assert (both == np.concatenate([features(name)["time_features"] for name in "ab"])).all()
    assert (both[0] != both[1]).any()


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ({}, {"fields": ["time_features"]}, "time_features of a record without a frequency"),
        ({"freq": "YS"}, {"fields": ["time_features"]}, "the frequency 'YS' has no time features"),
        ({"freq": "D", "start": "now"}, {"fields": ["time_features"]}, "the start 'now' is not a time"),
        ({}, {"freq": "D"}, "freq='D' without a field that has times"),
        ({}, {"fields": ["feat_static_cat"]}, "a record without feat_static_cat"),
        ({"feat_static_cat": ["x"]}, {"fields": ["feat_static_cat"]}, "feat_static_cat is not numbers [features]"),
        ({"feat_static_cat": [1.5]}, {"fields": ["feat_static_cat"]}, "feat_static_cat holds 1.5, expected whole numbers"),
        ({"feat_static_cat": [None]}, {"fields": ["feat_static_cat"]}, "feat_static_cat holds NaN, expected whole numbers"),
        ({"feat_dynamic_real": [[1, 2], [3]]}, {"fields": ["feat_dynamic_real"]}, "is not numbers [features, T]"),
        ({"feat_dynamic_real": [[1, 2]]}, {"fields": ["feat_dynamic_real"]}, "feat_dynamic_real has 2 times, its series 3 values"),
        ({}, {"fields": ["times"]}, "start, loc, scale, time_features, feat_static_cat"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, row: dict[str, Any], options: dict[str, Any], says: str) -> None:
    data = gluonts(tmp_path / "a.jsonl", [{"start": "2021-01-01", "target": [1.5, 2.5, 3.5], **row}])
    with pytest.raises(wr.ConfigError) as error:
        data.windows(2, **options)
    assert says in str(error.value).replace('"', "'") and "hint: " in str(error.value)
    np.save(tmp_path / "plain.npy", np.ones((2, 9)))
    with pytest.raises(wr.ConfigError, match="a record without a start in time"):
        wr.open(tmp_path / "plain.npy").windows(2, fields=["time_features"], freq="D")


def test_series_of_several_frequencies_or_shapes_are_refused(tmp_path: Path) -> None:
    def rows(**second: Any) -> list[dict[str, Any]]:
        row = {"start": "2021-01-01", "freq": "D", "target": [1.5, 2.5, 3.5], "feat_static_cat": [1]}
        return [row, {**row, **second}]

    fields: list[Any] = ["time_features", "feat_static_cat"]
    for second, says in [({"freq": "h"}, "of several frequencies"), ({"feat_static_cat": [1, 2]}, "2 features, the first record has 1")]:
        with pytest.raises(wr.ConfigError, match=says) as error:
            gluonts(tmp_path / "a.jsonl", rows(**second)).windows(2, fields=fields)
        assert error.value.record == 1
