"""A mixture read by number, as torch's DataLoader reads it: the shares of its weights, epoch after epoch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader, RandomSampler

import windrow as wr

LARGE, SMALL = 500, 300


@pytest.fixture
def mixed(tmp_path: Path) -> Callable[..., wr.Mix]:
    """Nine samples of "large" for one of "small": sample i begins with i, and of "small" with 10,000 + i."""
    views = {}
    for name, n, first in (("large", LARGE, 0), ("small", SMALL, 10_000)):
        np.save(tmp_path / f"{name}.npy", np.repeat(np.arange(first, first + n, dtype=np.int32)[:, None], 9, axis=1))
        views[name] = wr.open(tmp_path / f"{name}.npy").records(8)
    return lambda **options: wr.mix({"large": (views["large"], 0.9), "small": (views["small"], 0.1)}, **options)


def samples(batches: Any) -> tuple[list[int], list[int]]:
    """The samples of each part."""
    firsts = [int(n) for batch in batches for n in batch["input_ids"][:, 0]]
    return [n for n in firsts if n < 10_000], [n - 10_000 for n in firsts if n >= 10_000]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_dataloader_gets_the_shares(mixed: Callable[..., wr.Mix], shuffle: bool, num_workers: int) -> None:
    mix = mixed()
    large, small = samples(DataLoader(mix, batch_size=16, shuffle=shuffle, num_workers=num_workers))
    assert len(large) + len(small) == len(mix) == len(wr.Loader(mix, 1))
    assert sorted(large) == list(range(LARGE))
    assert abs(len(small) - LARGE / 9) <= 1
    assert len(set(small)) == len(small)


@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_continues_where_the_one_before_ended(mixed: Callable[..., wr.Mix], persistent: bool) -> None:
    mix = mixed(stop="first")
    loader = DataLoader(mix, batch_size=16, shuffle=True, num_workers=2, persistent_workers=persistent)
    seen: list[int] = []
    for epoch in range(5):
        mix.set_epoch(epoch)
        large, small = samples(loader)
        assert sorted(large) == list(range(LARGE))
        seen += sorted(small)
    assert seen == list(range(len(seen))), "all of them, one after the other"


def test_all_continues_too_and_pickles_keep_the_epoch(mixed: Callable[..., wr.Mix]) -> None:
    mix = mixed(stop="all")
    epochs = []
    for epoch in range(2):
        mix.set_epoch(epoch)
        whole = pickle.loads(pickle.dumps(mix)).__getitems__(range(len(mix)))
        epochs.append(samples([{"input_ids": np.stack([row["input_ids"] for row in whole])}]))
    assert [sorted(small) for _, small in epochs] == [list(range(SMALL))] * 2
    large = epochs[0][0] + epochs[1][0]
    assert large == [i % LARGE for i in range(len(large))]


def test_a_mixture_that_never_stops_has_no_length(mixed: Callable[..., wr.Mix]) -> None:
    mix = mixed(stop="never")
    assert mix
    for ask in (len, lambda mix: list(DataLoader(mix)), lambda mix: DataLoader(mix, shuffle=True)):
        with pytest.raises(TypeError, match="no length"):
            ask(mix)
    large, small = samples(DataLoader(mix, batch_size=100, sampler=range(30_000)))
    assert abs(len(large) - 27_000) <= 1
    assert small[:SMALL] == small[SMALL : 2 * SMALL] == list(range(SMALL))
    assert mix[10**12]["labels"].shape == (8,)
    assert len(mix[5:9]) == 4
    for key in (-1, [3, -1]):
        with pytest.raises(IndexError, match="count from 0"):
            mix[key]
    for key in (slice(3, None), slice(-3, 9), slice(9, 3, -1)):
        with pytest.raises(TypeError, match="stop"):
            mix[key]
    assert len(list(DataLoader(mix, batch_size=10, sampler=RandomSampler(range(1000), num_samples=40)))) == 4


def test_random_crops_of_a_mixture_are_others_each_pass_and_epoch(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(40 * 1000, dtype=np.float32).reshape(40, 1000))
    view = wr.open(tmp_path / "a.npy").crop(3)
    mix = wr.mix({"all": (view, 0.5), "again": (view, 0.5)}, stop="never")

    def crops() -> list[float]:
        batches = DataLoader(mix, batch_size=8, sampler=range(160))
        return [float(row[0]) for batch in batches for row in batch["values"]]

    # Two parts of one seed, each gone through twice: the parts draw alike, the passes do not.
    first, second = crops(), crops()
    assert len(set(first)) >= 75 and len(set(first) & set(second)) <= 5
    mix.set_epoch(0)
    assert crops() == first == crops()
