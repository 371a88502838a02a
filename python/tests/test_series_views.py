"""Views of series: scalers, NaN, what is learned, packed rows; the same in a loader, in a worker and after a pickle."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from torch.utils.data import DataLoader

import windrow as wr

Series = npt.NDArray[np.float32]
LEVELS = [[5, 1, 4, 4, 9, 2, 6, 6], [3, 3, 3], [1], [7, 0, 7, 1, 250]]


def halved(series: Series) -> Series:
    """A scaler that a worker can import."""
    return series / 2


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Statistics are kept here."""
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def series(tmp_path: Path) -> wr.Dataset:
    """Four series of small numbers."""
    folder = tmp_path / "series"
    folder.mkdir()
    for number, levels in enumerate(LEVELS):
        np.array(levels, np.uint16).tofile(folder / f"{number}.bin")
    return wr.open(folder, format="tokens", dtype="uint16")


def expected(scale: Callable[[Series], Series], width: int, stride: int) -> list[Series]:
    """The inputs of every window, by the definition."""
    rows = []
    for levels in LEVELS:
        if len(levels) < 2:
            continue
        scaled = scale(np.array(levels, np.float32))
        for k in range(1 + max(0, (len(levels) - (width + 1)) // stride)):
            row = np.zeros(width, np.float32)
            part = scaled[k * stride : k * stride + width + 1][:width]
            row[: len(part)] = part
            rows.append(row)
    return rows


def by_max(series: Series) -> Series:
    """`max` by its definition."""
    return series / np.abs(series).max()


def by_zero(series: Series) -> Series:
    """`zero` by its definition."""
    return (series - series.mean()) / (series.std() or np.float32(1))


@pytest.mark.parametrize(
    ("scaler", "definition"),
    [("max", by_max), ("MAX", by_max), ("Zero", by_zero), (halved, halved), (lambda s: s.tolist(), lambda s: s)],
)
def test_windows_are_scaled_by_the_whole_record(
    series: wr.Dataset, scaler: object, definition: Callable[[Series], Series]
) -> None:
    view = series.windows(3, stride=2, scaler=scaler)  # type: ignore[arg-type]
    rows = expected(definition, 3, 2)
    assert len(view) == len(rows) == 3 + 1 + 1
    for sample, row in zip(view, rows, strict=True):
        assert sample["input_ids"].dtype == sample["labels"].dtype == np.float32
        np.testing.assert_allclose(sample["input_ids"], row, rtol=1e-6, atol=1e-6)


def test_digits_beyond_float32_are_scaled(tmp_path: Path) -> None:
    """Whichever format keeps them."""
    values = 1e9 + np.arange(20)
    np.save(tmp_path / "float64.npy", values)
    np.save(tmp_path / "int64.npy", values.astype(np.int64))
    np.savez(tmp_path / "arrays.npz", values)
    (tmp_path / "series.json").write_text(json.dumps([values.tolist()]))
    (tmp_path / "lines.jsonl").write_text(json.dumps({"sequence": values.tolist(), "id": 0.5}) + "\n")
    (tmp_path / "lists.pkl").write_bytes(pickle.dumps([values.tolist()]))
    (tmp_path / "arrays.pkl").write_bytes(pickle.dumps([values]))
    wr.write(tmp_path / "shards", [values], to="shards", dtype="float64")
    wr.write(tmp_path / "normal", [values], to="shards", normalize=True)
    right = by_zero(np.arange(20, dtype=np.float64))
    for path in tmp_path.iterdir():
        if path.name == "cache":
            continue
        ds = wr.open(path)
        for dtype in (None, "float64"):
            row = ds.windows(20, scaler="zero", dtype=dtype)[0]["input_ids"]
            assert row.dtype == (dtype or "float32")
            np.testing.assert_allclose(row, right, rtol=1e-6, err_msg=path.name)
    found = []
    view = wr.open(tmp_path / "float64.npy").windows(20, scaler=lambda s: [found.append(s.dtype), s - s[0]][1])
    assert view[0]["input_ids"].tolist() == list(range(20)) and found == [np.float64]
    single = wr.open(tmp_path / "float64.npy").windows(20, scaler="zero-float32")
    assert not single[0]["input_ids"].any()


def test_float64_has_all_digits_of_text(tmp_path: Path) -> None:
    """Whichever format keeps them, where it is asked for; records are float32 otherwise."""
    values = [1e9 + 0.25 * i for i in range(20)] + [float(2**53 - 1)]
    whole = [2**53 - 2, 16_777_217]
    digits = json.dumps(values)
    row = {"start": "2024-01-01", "target": values}
    texts = {
        "a.csv": "date,x\n" + "".join(f"{2000 + i}-01-01,{x!r}\n" for i, x in enumerate(values)),
        "a.tsf": "@attribute name string\n@data\na:" + digits[1:-1].replace(" ", "") + "\n",
        "a.json": f"[{digits}, {whole}]",
        "a.jsonl": f'{{"sequence": {digits}}}\n{{"sequence": {whole}}}\n',
        "a.yaml": f"- {digits}\n- {whole}\n",
        "data.json": json.dumps(row) + "\n" + json.dumps({**row, "target": whole}) + "\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "lists.pkl").write_bytes(pickle.dumps([values, whole]))
    (tmp_path / "arrays.pkl").write_bytes(pickle.dumps([np.array(values), np.array(whole)]))
    for path in tmp_path.glob("*.*"):
        for wide in (wr.open(path), wr.open(path, dtype="float64")):
            options = {"labels": None, "dtype": "float64"}
            for row_of in (wide.windows(21, **options)[0]["input_ids"], wide.segments(21, **options)[0]["input_ids"], wide.crop(21, dtype="float64")[0]["values"]):
                assert row_of.reshape(-1).tolist() == values, path.name
            by_function = wide.windows(21, scaler=lambda series: series * 2, **options)[0]["input_ids"]
            assert by_function.reshape(-1).tolist() == [2 * x for x in values], path.name
            if len(wide) == 2:
                assert wide.windows(2, **options)[-1]["input_ids"].tolist() == whole, path.name
        told = wr.open(path, dtype="float64")
        assert told[0].dtype == np.float64 and told[0].reshape(-1).tolist() == values and told.info()["dtype"] == "float64"
        assert wr.open(path)[0].dtype == np.float32


def test_whole_numbers_that_floats_do_not_have(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """numpy's cast, and a warning for each view."""
    large = [16_777_217 + i for i in range(12)]
    (tmp_path / "a.jsonl").write_text(json.dumps({"sequence": [*range(12)]}) + "\n" + json.dumps({"sequence": large}) + "\n")
    np.save(tmp_path / "a.npy", np.array([[*range(12)], large]))
    for path in (tmp_path / "a.jsonl", tmp_path / "a.npy"):
        ds = wr.open(path)
        for dtype in ("float32", "float16", "bfloat16"):
            cast = np.array(large).astype("float32" if dtype == "bfloat16" else dtype)
            for view in (ds.windows(4, dtype=dtype), ds.records(12, dtype=dtype), ds.crop(12, mode="start", dtype=dtype), ds.segments(8, dtype=dtype)):
                caplog.clear()
                rows = [np.asarray(next(iter(row.values()))).ravel() for _ in range(2) for row in view]
                assert rows and (dtype == "bfloat16" or set(np.concatenate(rows).tolist()) & set(cast.tolist())), dtype
                said = [record.getMessage() for record in caplog.records if "does not fit" in record.getMessage()]
                assert len(said) == 1 and "record 1" in said[0] and "16777217" in said[0] and dtype in said[0], said
                assert "dtype" in said[0].split("hint")[-1]
        caplog.clear()
        assert sum(len(batch["input_ids"]) for batch in wr.Loader(ds.windows(4, dtype="float32"), batch_size=2, epochs=1, drop_last=False)) == 4
        assert sum("does not fit" in record.getMessage() for record in caplog.records) == 1
        kept = ds.windows(4, dtype="float64")
        caplog.clear()
        assert kept[2]["input_ids"].tolist() == large[:4] and not caplog.records
    with pytest.raises(wr.ConfigError, match="does not fit"):
        wr.write(tmp_path / "out", [np.array(large)], to="shards", dtype="float32")


def test_a_part_without_a_value_to_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"sequence": [1, 2, 3, 4, 5, 6, 7, 8.5]}\n{"sequence": [498210.8]}\n')
    ds = wr.open(tmp_path / "a.jsonl")
    for labels in ("next", "same", None):
        for view in (lambda: ds.windows(2, scaler="standard", labels=labels, fit=(0.0, 0.6)), lambda: ds.segments(2, scaler="max", labels=labels, fit=range(1, 4))):
            with pytest.raises(wr.ConfigError, match="holds no value of a record of 1 value") as error:
                view()
            assert error.value.record == 1 and "fit" in str(error.value.hint)
        for part in ds.split_by_time(0.6, 0.4):
            with pytest.raises(wr.ConfigError, match="holds no value of a record of 1 value"):
                part.windows(2, scaler="standard", labels=labels)
    assert ds.windows(2, scaler="standard", labels=None, fit=(0.0, 1.0))[4]["input_ids"].tolist() == [0, 0]


def test_what_is_not_finite_is_never_learned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "s.jsonl").write_text('{"sequence": [1.0, 2.0, Infinity, 4.0, 5.0, 6.0]}\n')
    (tmp_path / "o.jsonl").write_text("[1.0, 2.0, 1e39, 4.0, 5.0, 6.0]\n[1.0, 2.0, -1e400, 4.0, 5.0, 6.0]\n")
    (tmp_path / "o.yaml").write_text("- [1.0, 2.0, 1e39, 4.0]\n- [1.0, -1e400, 3.0, .inf, 5.0]\n")
    np.save(tmp_path / "n.npy", np.array([1, 2, np.nan, 4, -np.inf, 6]))
    for path in sorted(tmp_path.glob("*.*")):
        for scaler in (None, "max", "zero", halved):
            for view in (wr.open(path).windows(2, stride=2, scaler=scaler, nan="mask"), wr.open(path).segments(7, scaler=scaler, nan="mask")):
                for sample in view:
                    assert np.isfinite(sample["input_ids"]).all() and np.isfinite(sample["labels"]).all()
    told = [record.getMessage() for record in caplog.records if "beyond float32" in record.getMessage()]
    assert [text.rsplit("/", 1)[1] for text in told] == [
        f"{name}: 2 numbers are beyond float32 and became infinite" for name in ("o.jsonl", "o.yaml")
    ]
    large = wr.open(tmp_path / "o.jsonl").windows(5, scaler="max", nan="mask")
    assert large[0]["input_ids"][2] == 1 and large[0]["loss_masks"].tolist() == [1] * 5
    np.testing.assert_allclose(large[1]["input_ids"], np.array([1, 2, 0, 4, 5]) / 6, rtol=1e-6)
    assert large[1]["loss_masks"].tolist() == [1, 0, 1, 1, 1]
    np.save(tmp_path / "large.npy", np.array([1, 2, 3, 1e39, 5, 6]))
    with pytest.raises(wr.CorruptError, match="does not fit float32"):
        wr.open(tmp_path / "large.npy").windows(5)[0]


def test_statistics_come_from_a_part(series: wr.Dataset, cache: Path, tmp_path: Path) -> None:
    # Of one value no part before the last holds any.
    (tmp_path / "series" / "2.bin").unlink()
    series = wr.open(tmp_path / "series", format="tokens", dtype="uint16")
    for fit in ((0.0, 0.7), (0, 0.7), range(0, 5)):
        row = series.windows(7, scaler="max", fit=fit)[0]["input_ids"]
        np.testing.assert_allclose(row, np.array(LEVELS[0][:7]) / 9, rtol=1e-6)
    assert series.windows(7, scaler="max", fit=range(1, 4))[0]["input_ids"].tolist() == [1.25, 0.25, 1, 1, 2.25, 0.5, 1.5]
    assert len(list(cache.iterdir())) == 3
    view = series.segments(7, scaler="zero", fit=(0.0, 0.5))
    loader = wr.Loader(view, batch_size=1)
    assert "scaler=zero/float64,nan=spread,fit=(0.0, 0.5)" in loader.plan
    assert loader.recipe()["parts"][0]["view"]["segments"]["fit"] == {"fraction": [0.0, 0.5]}
    again = pickle.loads(pickle.dumps(view))
    assert again[0]["input_ids"].tolist() == view[0]["input_ids"].tolist()
    with pytest.raises(wr.MismatchError):
        loader.load_state_dict(wr.Loader(series.segments(7, scaler="zero"), batch_size=1).state_dict())
    for wrong in ((0.7, 0.2), (0.0, 1.5), range(3, 3), range(0, 9, 2), range(-3, 2)):
        with pytest.raises(wr.ConfigError, match="fit"):
            series.windows(3, scaler="max", fit=wrong)
    for wrong in ("0.7", 0.7, [1, 2, 3]):
        with pytest.raises(TypeError, match="fit"):
            series.windows(3, scaler="max", fit=wrong)  # type: ignore[arg-type]
    for scaler in (None, halved):
        with pytest.raises(wr.ConfigError, match="without a scaler that has statistics"):
            series.windows(3, scaler=scaler, fit=(0.0, 0.7))
    with pytest.raises(wr.ConfigError, match="holds no value of a record of 3 values") as error:
        series.windows(3, scaler="max", fit=range(4, 9))
    assert error.value.record == 1


def test_statistics_are_kept(series: wr.Dataset, cache: Path) -> None:
    first = series.windows(3, scaler="zero")[0]
    kept = {path.name: path.stat().st_ino for path in cache.iterdir()}
    assert len(kept) == 1
    again = series.windows(5, scaler="zero")[0]
    assert {path.name: path.stat().st_ino for path in cache.iterdir()} == kept
    assert np.array_equal(first["input_ids"], again["input_ids"][:3])


def test_without_a_scaler_whole_numbers_stay_so(series: wr.Dataset) -> None:
    assert series.windows(3)[0]["input_ids"].dtype == np.int64
    assert series.windows(3, dtype="float32")[0]["input_ids"].tolist() == [5, 1, 4]


def test_only_the_prediction_is_learned(series: wr.Dataset) -> None:
    view = series.windows(4, prediction_length=2, loss_on="prediction")
    assert [sample["loss_masks"].tolist() for sample in view] == [[0, 0, 0, 0, 1, 1], [0] * 6, [0] * 6]
    with pytest.raises(wr.ConfigError, match="prediction_length"):
        series.windows(4, loss_on="prediction")


def test_missing_values_are_masked(series: wr.Dataset) -> None:
    def with_gap(values: Series) -> Series:
        values[1] = math.nan
        return values

    spread = series.windows(7, scaler=with_gap)[0]
    assert math.isnan(spread["input_ids"][1]) and spread["loss_masks"].tolist() == [1] * 7
    masked = series.windows(7, scaler=with_gap, nan="mask")[0]
    assert masked["input_ids"].tolist() == [5, 0, 4, 4, 9, 2, 6]
    assert masked["labels"].tolist() == [0, 4, 4, 9, 2, 6, 6]
    assert masked["loss_masks"].tolist() == [0, 1, 1, 1, 1, 1, 1]


def test_a_loader_and_its_recipe(series: wr.Dataset) -> None:
    for scaler in ("max", halved):
        view = series.windows(3, stride=2, scaler=scaler)
        loader = wr.Loader(view, batch_size=5, shuffle=False, num_threads=2, epochs=1)
        batch = next(loader)
        assert np.array_equal(batch["input_ids"], np.stack([s["input_ids"] for s in view]))
        half = next(wr.Loader(view, batch_size=5, shuffle=False, dtype="float16", num_threads=0))
        np.testing.assert_allclose(half["input_ids"], batch["input_ids"], rtol=1e-3)
    assert ":scaler=custom:" in loader.plan and ".halved#" in loader.plan
    with pytest.raises(wr.ConfigError, match=r"halved.*no plan can hold"):
        loader.recipe()
    kept = wr.Loader(series.windows(3, scaler="zero", nan="mask"), batch_size=1)
    assert "scaler=zero/float64,nan=mask" in kept.plan
    assert kept.recipe()["parts"][0]["view"]["windows"]["scaler"] == "zero"
    assert wr.trace(kept, step=0)
    with pytest.raises(wr.MismatchError, match="source"):
        kept.load_state_dict(wr.Loader(series.windows(3, scaler="max", nan="mask"), batch_size=1).state_dict())


def test_functions_of_one_name_are_told_apart(series: wr.Dataset) -> None:
    def plan(scaler: Callable[[Series], Series]) -> str:
        return wr.Loader(series.windows(3, scaler=scaler), batch_size=1).plan

    def divided(by: float) -> Callable[[Series], Series]:
        return lambda s: s / by

    def added(by: float) -> Callable[[Series], Series]:
        return lambda s, by=by: s + by

    def nested(sign: Callable[[float], float]) -> Callable[[Series], Series]:
        return lambda s: sign(1.0) * s

    told = [lambda s: s / 2, lambda s: s / 3, divided(2), divided(3), added(2), added(3)]
    told += [lambda s: np.vectorize(lambda x: x + 1)(s), lambda s: np.vectorize(lambda x: x + 2)(s)]
    assert len({plan(scaler) for scaler in told}) == len(told)
    assert plan(divided(2)) == plan(divided(2))
    assert plan(nested(lambda x: x)) == plan(nested(lambda x: x))
    first, second = (wr.Loader(series.windows(3, scaler=s), batch_size=1) for s in told[:2])
    with pytest.raises(wr.MismatchError, match="source"):
        second.load_state_dict(first.state_dict())


IN_A_SET = """
import sys
import windrow as wr

series = wr.open(sys.argv[1], dtype="uint16")
scaler = lambda s: s if len(s) in {11, 12} or "a" in {"a", "b", "c", "d"} else -s
print(wr.Loader(series.windows(3, scaler=scaler), batch_size=1).plan)
"""


def test_a_function_is_itself_in_another_process(series: wr.Dataset, run_script: Callable[..., str]) -> None:
    assert len({run_script(IN_A_SET, series.path) for _ in range(3)}) == 1


def test_views_pickle_with_their_function(series: wr.Dataset) -> None:
    for scaler in ("zero", halved):
        view = series.windows(3, scaler=scaler)
        again = pickle.loads(pickle.dumps(view))
        assert np.array_equal(again[2]["input_ids"], view[2]["input_ids"])
    mixed = wr.mix({"a": (view, 0.5), "b": (series.windows(3, scaler="max"), 0.5)})
    again = pickle.loads(pickle.dumps(mixed))
    assert np.array_equal(again[0]["input_ids"], mixed[0]["input_ids"])
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(series.windows(3, scaler=lambda s: s))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_scale_too(series: wr.Dataset, start: str) -> None:
    view = series.windows(3, stride=2, scaler=halved)
    loader = DataLoader(view, batch_size=2, num_workers=2, multiprocessing_context=start)  # type: ignore[arg-type]
    found = np.concatenate([batch["input_ids"].numpy() for batch in loader])
    assert np.array_equal(found, np.stack([s["input_ids"] for s in view]))


def test_a_function_that_fails_says_so(series: wr.Dataset) -> None:
    def raises(values: Series) -> Series:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        series.windows(3, scaler=raises)[0]
    with pytest.raises(wr.ConfigError, match=r"shape \(9,\) for one of shape \(8,\)") as found:
        series.windows(3, scaler=lambda s: [*s, 0])[0]
    assert found.value.record == 0 and found.value.hint
    with pytest.raises(ZeroDivisionError):
        next(wr.Loader(series.windows(3, scaler=raises), batch_size=2))


def test_wrong_options_name_the_right_ones(series: wr.Dataset) -> None:
    for options, says in (
        ({"scaler": "mean"}, "minmax, robust, mean_abs"),
            ({"per": "record"}, "series, channel, window"),
            ({"starts": "first"}, "strided, random, last"),
        ({"nan": "drop"}, "propagate, mask"),
        ({"loss_on": "labels"}, "all, prediction"),
        ({"scaler": "max", "dtype": "int64"}, "fractions"),
    ):
        with pytest.raises(wr.ConfigError, match=says):
            series.windows(3, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="scaler"):
        series.windows(3, scaler=3)  # type: ignore[arg-type]


def test_segments_fill_rows(series: wr.Dataset) -> None:
    view = series.segments(4)
    assert [s["input_ids"].tolist() for s in view] == [[5, 1, 4, 4], [9, 2, 6, 3], [3, 7, 0, 7], [1, 0, 0, 0]]
    assert [s["labels"].tolist() for s in view] == [[1, 4, 4, 9], [2, 6, 6, 3], [3, 0, 7, 1], [250, 0, 0, 0]]
    assert [s["segment_ids"].tolist() for s in view] == [[0] * 4, [0, 0, 0, 1], [0, 1, 1, 1], [0, -1, -1, -1]]
    assert [s["loss_masks"].tolist() for s in view] == [[1] * 4] * 3 + [[1, 0, 0, 0]]
    assert view.coverage() == {"used": 16, "repeated": 3, "padded": 3, "unseen": 1, "skipped_records": 1}
    bucketed = series.segments(8, [2, 4], scaler="max", dtype="float64")
    assert [len(s["labels"]) for s in bucketed] == [4, 4, 2, 4]
    assert [int(s["pack_bucket"]) for s in bucketed] == [4, 4, 2, 4]
    batch = next(wr.Loader(bucketed, batch_size=4, shuffle=False))
    assert batch["input_ids"].shape == (4, 4) and batch["pack_bucket"].tolist() == [4, 4, 2, 4]
    with pytest.raises(wr.ConfigError, match="bucket"):
        series.segments(4, [8])


def test_length_reads_no_values(series: wr.Dataset) -> None:
    assert [series.length(i) for i in range(-4, 4)] == [8, 3, 1, 5, 8, 3, 1, 5]
    with pytest.raises(IndexError):
        series.length(4)


@pytest.mark.parametrize(("n", "fraction", "expected"), [(100, 0.1, 10), (100, 0.001, 1), (3, 0.9, 2), (2, 0.5, 1)])
def test_a_split_shares_no_record(tmp_path: Path, n: int, fraction: float, expected: int) -> None:
    wr.write(tmp_path / "s", ([float(i)] * (i % 7 + 2) for i in range(n)), to="shards")
    ds = wr.open(tmp_path / "s")
    train, validation = ds.split(fraction, seed=3)
    values = [[float(record[0]) for record in part] for part in (train, validation)]
    assert len(validation) == expected
    assert sorted(values[0] + values[1]) == [float(i) for i in range(n)]
    assert all(part == sorted(part) for part in values)
    again = ds.split(fraction, seed=3)[1]
    assert [float(record[0]) for record in again] == values[1]
    copy = pickle.loads(pickle.dumps(validation))
    assert [float(record[0]) for record in copy] == values[1]
    if n == 100 and expected == 10:
        assert [float(record[0]) for record in ds.split(fraction, seed=4)[1]] != values[1]


def test_parts_of_a_split_are_plans_of_their_own(tmp_path: Path) -> None:
    wr.write(tmp_path / "s", ([float(i)] * 9 for i in range(20)), to="shards")
    train, validation = wr.open(tmp_path / "s").split(0.25)
    loaders = [wr.Loader(part.windows(4, scaler="zero"), 2) for part in (train, validation)]
    assert loaders[0].plan != loaders[1].plan
    with pytest.raises(wr.MismatchError):
        loaders[0].load_state_dict(loaders[1].state_dict())
    rebuilt = pickle.loads(pickle.dumps(validation.windows(4)))
    assert np.array_equal(rebuilt[3]["input_ids"], validation.windows(4)[3]["input_ids"])
    for wrong in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(wr.ConfigError):
            train.split(wrong)
    with pytest.raises(wr.ConfigError):
        train.split(0.5)
