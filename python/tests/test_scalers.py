"""Scalers give what GluonTS, Chronos, sktime and scikit-learn give, over a series, a channel or a window, and are undone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from foreign_cases import with_loaders

import windrow as wr

NAMES = ["standard", "minmax", "robust", "mean_abs", "max"]
OTHERS = """
import json, sys
import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sktime.transformations.series.adapt import TabularToSeriesAdaptor
from chronos.chronos import MeanScaleUniformBins
from chronos import ChronosConfig
from gluonts.torch.scaler import MeanScaler, StdScaler

series = np.load(sys.argv[1])
found = {"standard": StandardScaler(), "minmax": MinMaxScaler(), "robust": RobustScaler(), "max": MaxAbsScaler()}
out = {
    name: TabularToSeriesAdaptor(scaler).fit_transform(pd.DataFrame(series)).to_numpy().tolist()
    for name, scaler in found.items()
}
context = torch.tensor(series[:24].T.copy())
config = ChronosConfig("MeanScaleUniformBins", {"low_limit": -15.0, "high_limit": 15.0}, 24, 8, 4096, 2, 0, 1, True, "seq2seq", 1, 1, 1, 1)
bins = MeanScaleUniformBins(-15.0, 15.0, config)
out["chronos"] = bins._input_transform(context)[2].tolist()
weights = torch.ones_like(context)
out["gluonts_mean"] = MeanScaler(dim=1, keepdim=True, minimum_scale=0.0)(context, weights)[2].squeeze(1).tolist()
_, loc, scale = StdScaler(dim=1, keepdim=True, minimum_scale=0.0)(context, weights)
out["gluonts_std"] = [loc.squeeze(1).tolist(), scale.squeeze(1).tolist()]
print(json.dumps(out))
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics are kept here."""
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table() -> np.ndarray:
    """64 values of 3 channels that differ in size, the last one constant."""
    random = np.random.default_rng(5)
    return np.stack([random.normal(5, 3, 64), random.normal(-400, 90, 64), np.full(64, 7.0)], axis=1)


@pytest.fixture
def data(tmp_path: Path, table: np.ndarray) -> wr.Dataset:
    np.save(tmp_path / "table.npy", table)
    return wr.open(tmp_path / "table.npy", axis="time")


def reference(name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What numpy subtracts from and divides `[T, C]` by, over the first axis."""
    or_one = lambda spread: np.where(spread == 0, 1.0, spread)
    zero = np.zeros(x.shape[1:])
    match name:
        case "standard":
            return x.mean(0), or_one(x.std(0))
        case "minmax":
            return x.min(0), or_one(x.max(0) - x.min(0))
        case "robust":
            low, median, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
            return median, or_one(high - low)
        case "mean_abs":
            return zero, or_one(np.abs(x).mean(0))
        case _:
            return zero, or_one(np.abs(x).max(0))


def test_they_are_those_of_other_packages(data: wr.Dataset, tmp_path: Path) -> None:
    others = with_loaders(OTHERS, tmp_path / "table.npy")
    for name in ("standard", "minmax", "robust", "max"):
        view = data.windows(64, scaler=name, per="channel", labels=None, dtype="float64")
        np.testing.assert_allclose(view[0]["input_ids"], others[name], rtol=1e-12, atol=1e-12, err_msg=name)
    fields = ["loc", "scale"]
    mean = data.windows(24, prediction_length=8, scaler="mean_abs", per="window", fields=fields)[0]
    np.testing.assert_allclose(mean["scale"], others["chronos"], rtol=1e-6)
    np.testing.assert_allclose(mean["scale"], others["gluonts_mean"], rtol=1e-12)
    deviation = data.windows(24, prediction_length=8, scaler="standard", per="window", fields=fields)[0]
    np.testing.assert_allclose(deviation["loc"], others["gluonts_std"][0], rtol=1e-12)
    # GluonTS divides a constant by its least scale, here 0; windrow by 1.
    np.testing.assert_allclose(deviation["scale"], [*others["gluonts_std"][1][:2], 1.0], rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("per", ["series", "channel", "window"])
def test_each_scaler_over_each_part(data: wr.Dataset, table: np.ndarray, name: str, per: str) -> None:
    fit = {} if per == "window" else {"fit": (0.0, 0.7)}
    names = ["item", "start", "loc", "scale"]
    view = data.windows(12, prediction_length=4, stride=7, scaler=name, per=per, fields=names, dtype="float64", **fit)
    for sample in view:
        at = int(sample["start"])
        window = table[at : at + 17]
        measured = {"series": table[:44].reshape(-1, 1), "channel": table[:44], "window": window[:12]}[per]
        loc, scale = reference(name, measured)
        np.testing.assert_allclose(sample["loc"], loc if per != "series" else loc[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(sample["scale"], scale if per != "series" else scale[0], rtol=1e-12)
        np.testing.assert_allclose(sample["input_ids"], (window[:-1] - loc) / scale, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(sample["labels"], (window[1:] - loc) / scale, rtol=1e-11, atol=1e-11)
        undone = wr.inverse(sample)
        np.testing.assert_allclose(undone["input_ids"], window[:-1], rtol=1e-9)
        np.testing.assert_allclose(undone["labels"], window[1:], rtol=1e-9)


def test_a_batch_is_undone_as_arrays_and_as_tensors(data: wr.Dataset, table: np.ndarray) -> None:
    for per in ("series", "channel", "window"):
        view = data.windows(12, prediction_length=4, scaler="robust", per=per, fields=["start", "loc", "scale"])
        for framework in ("numpy", "torch"):
            for batch in wr.Loader(view, batch_size=3, drop_last=False, framework=framework):
                windows = np.stack([table[at + 1 : at + 17] for at in np.asarray(batch["start"])])
                np.testing.assert_allclose(np.asarray(wr.inverse(batch)["labels"]), windows, rtol=1e-5)
                forecast = wr.inverse(batch, batch["labels"][:, -4:])
                np.testing.assert_allclose(np.asarray(forecast), windows[:, -4:], rtol=1e-5)
                assert isinstance(forecast, torch.Tensor if framework == "torch" else np.ndarray)
                with pytest.raises(wr.ConfigError, match="rows"):
                    wr.inverse(batch, batch["labels"][:1])
                if per != "series":
                    with pytest.raises(wr.ConfigError, match="channels"):
                        wr.inverse(batch, batch["labels"][..., :2])
    with pytest.raises(wr.ConfigError, match="no loc and no scale"):
        wr.inverse(data.windows(4)[0])
    renamed = data.windows(4, scaler="standard", fields=["loc", "scale"])
    with pytest.raises(wr.ConfigError, match="no input_ids") as raised:
        wr.inverse(next(wr.Loader(renamed, 2, names={"input_ids": "context"})))
    assert "names=" in str(raised.value)


def test_missing_values_are_left_out_of_each_channel(tmp_path: Path, table: np.ndarray) -> None:
    holes = table.copy()
    holes[::5, 0] = np.nan
    holes[:, 2] = np.nan
    np.save(tmp_path / "holes.npy", holes)
    data = wr.open(tmp_path / "holes.npy", axis="time")
    for name in NAMES:
        for per in ("channel", "window"):
            view = data.windows(12, prediction_length=4, scaler=name, per=per, nan="mask", fields=["loc", "scale"])
            sample = view[0]
            seen = holes[:12] if per == "window" else holes
            for channel in (0, 1):
                kept = seen[:, channel][~np.isnan(seen[:, channel])]
                loc, scale = reference(name, kept)
                np.testing.assert_allclose([sample["loc"][channel], sample["scale"][channel]], [loc, scale], rtol=1e-12)
            assert (sample["loc"][2], sample["scale"][2]) == (0, 1)
            assert (sample["input_ids"][:, 2] == 0).all()
            assert not sample["loss_masks"].any()
        spread = data.windows(12, scaler=name, per="channel")[0]["input_ids"]
        assert np.isnan(spread[:, 0]).all()
        assert not np.isnan(spread[:, 1]).any()


def test_what_does_not_fit_is_refused_with_what_would(data: wr.Dataset) -> None:
    for options, said in [
        ({"per": "channel"}, "without a scaler"),
        ({"per": "channel", "scaler": "zero-float32"}, "without a scaler"),
        ({"per": "window", "scaler": abs}, "without a scaler"),
        ({"per": "window", "scaler": "robust", "fit": (0.0, 0.5)}, "fit"),
        ({"scaler": "deviation"}, "deviation"),
        ({"fields": ["loc"]}, "without a scaler"),
        ({"fields": ["item", "item"]}, "twice"),
        ({"fields": ["time"]}, "time"),
        ({"starts": "last", "tail": "pad"}, "tail"),
        ({"starts": "last", "stride": 2}, "a stride of 2"),
    ]:
        with pytest.raises(wr.ConfigError, match=said) as caught:
            data.windows(8, **options)
        assert caught.value.hint or "twice" in said
    with pytest.raises(wr.ConfigError):
        data.segments(8, scaler="robust", per="window")
    rows = data.segments(64, scaler="robust", per="channel", labels=None, dtype="float64")[0]["input_ids"]
    np.testing.assert_array_equal(rows, data.windows(64, scaler="robust", per="channel", labels=None, dtype="float64")[0]["input_ids"])
    assert json.dumps(data.windows(8, scaler="standard").coverage())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_all_missing_is_scaled_by_nothing(tmp_path: Path, name: str) -> None:
    """`loc` and `scale` are 0 and 1, so that what is computed with them is finite; nothing of it is learned."""
    # All of a series, all of a part that is fitted, all of a context.
    (tmp_path / "a.jsonl").write_text('{"sequence": [NaN, NaN, NaN, NaN, 900, 901]}\n{"sequence": [1.5, 2, 3, 4, 5, 6]}\n{"sequence": [NaN, NaN, NaN, NaN, NaN]}\n')
    ds = wr.open(tmp_path / "a.jsonl")
    np.save(tmp_path / "table.npy", np.array([[np.nan, 1.0]] * 3 + [[900.0, 2.0]] * 3))
    table = wr.open(tmp_path / "table.npy", axis="time")
    for per in ("series", "channel", "window"):
        fit = {} if per == "window" else {"fit": (0.0, 0.5)}
        rows = [ds.windows(3, prediction_length=2, scaler=name, per=per, nan="mask", fields=["loc", "scale"], **fit)[i] for i in (0, 2)]
        if per != "series":
            rows.append(table.windows(3, prediction_length=2, scaler=name, per=per, nan="mask", fields=["loc", "scale"], **fit)[0])
        for row in rows:
            assert np.isfinite(row["loc"]).all() and np.isfinite(row["scale"]).all()
            assert (row["loc"].flat[0], row["scale"].flat[0]) == (0, 1)
            assert np.isfinite(wr.inverse(row, row["input_ids"])).all()
            # Numbers that nothing is known to scale by are not learned as they are.
            assert np.abs(row["input_ids"]).max() < 100 and not row["loss_masks"].any()
        # As in arithmetic the values are NaN; one NaN among numbers makes NaN of the statistics, too.
        spread = [ds.windows(3, prediction_length=2, scaler=name, per=per, fields=["loc", "scale"])[i] for i in (0, 2)]
        assert (spread[1]["loc"].flat[0], spread[1]["scale"].flat[0]) == (0, 1)
        assert np.isnan(spread[1]["input_ids"]).all() and np.isnan(spread[0]["input_ids"]).all()
        if per != "window":
            assert np.isnan(spread[0]["loc"]).all() or np.isnan(spread[0]["scale"]).all()
