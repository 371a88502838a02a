"""Channels apart: each channel of a record is a series of its own, scaled, traced, found and mixed as one."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

LENGTHS = (30, 9, 44)
CHANNELS = 3


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics are kept here."""
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def series() -> list[np.ndarray]:
    random = np.random.default_rng(5)
    made = [random.normal(range(CHANNELS), 2 + number, (n, CHANNELS)).astype(np.float32) for number, n in enumerate(LENGTHS)]
    made[2][4, 1] = np.nan
    return made


@pytest.fixture
def data(tmp_path: Path, series: list[np.ndarray]) -> wr.Dataset:
    wr.write(tmp_path / "wide", series, to="shards", dtype="float32")
    return wr.open(tmp_path / "wide")


@pytest.fixture
def univariate(tmp_path: Path, series: list[np.ndarray]) -> wr.Dataset:
    """The channels as records of their own."""
    wr.write(tmp_path / "one", [np.ascontiguousarray(one[:, c]) for one in series for c in range(CHANNELS)], to="shards", dtype="float32")
    return wr.open(tmp_path / "one")


OPTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 3, "tail": "pad", "labels": "same"},
    {"scaler": "standard", "nan": "mask", "fields": ["start", "loc", "scale"]},
    {"scaler": "robust", "nan": "mask", "per": "channel", "fields": ["loc", "scale"]},
    {"scaler": "minmax", "nan": "mask", "per": "window", "stride": 2, "fields": ["loc", "scale"]},
    {"scaler": "max", "fit": (0.0, 0.5), "starts": "last"},
    {"scaler": lambda series: series - np.nanmean(series)},
    {"starts": "random", "stride": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "plain")
def test_channels_are_series_as_if_they_were_stored_so(data: wr.Dataset, univariate: wr.Dataset, options: dict[str, Any]) -> None:
    apart, expected = data.windows(6, channels="apart", **options), univariate.windows(6, **options)
    assert len(apart) == len(expected) > 0
    for found, sample in zip(apart, expected, strict=True):
        assert set(found) == set(sample)
        for name in sample:
            assert found[name].shape == sample[name].shape
            np.testing.assert_array_equal(found[name], sample[name], name)


def test_parts_in_time_are_scaled_by_their_own_channel(tmp_path: Path, series: list[np.ndarray]) -> None:
    rows = [{"start": f"2020-01-{1 + 5 * number:02}", "target": np.nan_to_num(one).T.tolist()} for number, one in enumerate(series)]
    (tmp_path / "panel.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    panel = wr.open(tmp_path / "panel.jsonl", format="gluonts")
    for parts in (panel.split_by_time(0.5, 0.5, context=2), panel.split_by_time(at="2020-01-16", freq="D"), panel.split_by_time(last=3)):
        for part in parts:
            fields: list[Any] = ["item", "channel", "start", "loc", "scale", "time_features"]
            options: dict[str, Any] = {"stride": 1, "channels": "apart", "scaler": "standard", "fields": fields, "freq": "D"}
            if any(len(record) == 0 for record in parts[0]):
                with pytest.raises(wr.ConfigError, match="holds no value of a record of 44 values") as error:
                    part.windows(2, **options)
                assert error.value.record == 2
                continue
            for sample in part.windows(2, **options):
                item, channel, start = (int(sample[name]) for name in ("item", "channel", "start"))
                known = parts[0][item][:, channel].astype(np.float64)
                np.testing.assert_allclose([sample["loc"], sample["scale"]], [known.mean(), known.std()], rtol=1e-6)
                values = part[item][start : start + 2, channel]
                np.testing.assert_allclose(sample["input_ids"] * sample["scale"] + sample["loc"], values, rtol=1e-4, atol=1e-5)


def test_covariates_are_those_of_the_record(tmp_path: Path) -> None:
    rows = [
        {"start": "2020-01-01", "target": [[0.5 + t for t in range(n)], [100.5 + t for t in range(n)]], "feat_dynamic_real": [list(range(n))], "feat_static_cat": [n]}
        for n in (8, 12)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields: list[Any] = ["item", "channel", "start", "feat_dynamic_real", "feat_static_cat"]
    view = wr.open(tmp_path / "a.jsonl", format="gluonts").windows(4, stride=1, channels="apart", labels="same", fields=fields)
    order = [(int(sample["item"]), int(sample["channel"])) for sample in view]
    assert order == sorted(order) and set(order) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    for sample in view:
        start = int(sample["start"])
        assert sample["feat_dynamic_real"][:, 0].tolist() == list(range(start, start + 4))
        assert sample["feat_static_cat"].tolist() == [(8, 12)[int(sample["item"])]]
        assert sample["input_ids"].tolist() == [100 * int(sample["channel"]) + 0.5 + t for t in range(start, start + 4)]


def test_trace_and_find_name_record_and_channel(data: wr.Dataset, series: list[np.ndarray]) -> None:
    view = data.windows(6, channels="apart", fields=["item", "channel", "start"])
    loader = wr.Loader(view, batch_size=4, seed=2, exclude=[1])
    places: dict[int, set[tuple[int, int]]] = {0: set(), 2: set()}
    for step in range(len(loader)):
        batch = next(loader)
        for row, traced in enumerate(wr.trace(loader, step)):
            (read,) = traced["reads"]
            item, channel, start = (int(batch[name][row]) for name in ("item", "channel", "start"))
            assert (read["record"], read["channel"], read["start"]) == (item, channel, start)
            np.testing.assert_array_equal(batch["input_ids"][row], series[item][start : start + 6, channel])
            places[item].add((step, row))
    for item, expected in places.items():
        assert {(found["step"], found["row"]) for found in wr.find(loader, item)} == expected
    assert wr.find(loader, 1) == []
    covered = wr.coverage(loader, (0, len(loader)), list_records=True)
    assert covered["parts"][0]["records_of"] == 3 and covered["parts"][0]["record_ranges"] == [[0, 1], [2, 3]]
    with pytest.raises(wr.OutOfRangeError):
        wr.find(loader, 3)


def test_a_plan_says_it_only_where_it_is_given(data: wr.Dataset, univariate: wr.Dataset) -> None:
    plain, apart = data.windows(6), data.windows(6, channels="apart")
    assert data.windows(6, channels="together")[0]["input_ids"].shape == (6, CHANNELS)
    recipes = [json.dumps(wr.Loader(view, batch_size=2).recipe()["parts"][0]["view"]) for view in (plain, apart)]
    assert '"channels": "apart"' in recipes[1] and "channels" not in recipes[0]
    states = [wr.Loader(view, batch_size=2).state_dict() for view in (plain, apart)]
    assert "channels=apart" in states[1]["plan"] and "channels" not in states[0]["plan"]
    assert wr.Loader(data.windows(6, channels="together"), batch_size=2).state_dict() == states[0]
    with pytest.raises(wr.MismatchError):
        wr.Loader(apart, batch_size=2).load_state_dict(states[0])
    loader = wr.Loader(pickle.loads(pickle.dumps(apart)), batch_size=2)
    loader.load_state_dict(states[1])
    assert next(loader)["input_ids"].shape == (2, 6)
    with pytest.raises(wr.ConfigError, match="the field channel of windows that hold all channels"):
        data.windows(6, fields=["channel"])
    # Series of one channel stay as they are.
    assert wr.Loader(univariate.windows(6, channels="apart"), batch_size=2).state_dict() == wr.Loader(univariate.windows(6), batch_size=2).state_dict()


def test_channels_mix_with_series_of_one(data: wr.Dataset, univariate: wr.Dataset) -> None:
    one = univariate.windows(6)
    with pytest.raises(wr.MismatchError):
        wr.Loader(wr.mix({"wide": (data.windows(6), 0.5), "one": (one, 0.5)}), batch_size=4)
    mixed = wr.Loader(wr.mix({"wide": (data.windows(6, channels="apart"), 0.5), "one": (one, 0.5)}), batch_size=4)
    assert next(mixed)["input_ids"].shape == (4, 6)


def test_the_command_and_the_report_have_channels_apart(data: wr.Dataset, tmp_path: Path) -> None:
    def windrow(*args: str) -> str:
        return subprocess.run([sys.executable, "-m", "windrow", *args], capture_output=True, text=True, check=True).stdout

    options = ["--windows", "6", "--window-channels", "apart", "--batch-size", "2", "--no-shuffle"]
    printed = windrow("trace", str(tmp_path / "wide"), *options, "--step", "3")
    # The first record has four windows a channel: samples 6 and 7 are of its second one.
    assert "record 0, channel 1" in printed
    windrow("report", str(tmp_path / "wide"), "--windows", "6", "--window-channels", "apart", "-o", str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text().count("; 4 samples</figcaption>") == CHANNELS
