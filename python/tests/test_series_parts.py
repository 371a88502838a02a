"""Parts of series in time, windows at drawn places and at the end: nothing of the future, the same on any ranks, resumed exactly."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
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


def test_random_windows_are_drawn_anew_and_resumed_on_other_ranks(data: wr.Dataset) -> None:
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
