"""What a `for` over a loader goes through: what is left of an epoch, then the next one, never nothing, never without end."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr
from test_loader import ids

N_EPOCHS = 3


def by_epoch(view: wr.View, **options: Any) -> list[list[list[int]]]:
    """The batches of the first epochs, each asked for by its number."""
    found = []
    for epoch in range(N_EPOCHS):
        loader = wr.Loader(view, **options)
        loader.set_epoch(epoch)
        found.append(ids(islice(loader.stream(), len(loader))))
    return found


@pytest.mark.parametrize("num_threads", [0, 2])
@pytest.mark.parametrize("options", [{}, {"drop_last": False}, {"last": "repeat"}, {"shuffle": False}])
def test_each_for_is_the_next_epoch_as_of_a_dataloader(
    view: wr.View, options: dict[str, Any], num_threads: int
) -> None:
    options = {"batch_size": 100, "seed": 5, "num_threads": num_threads, **options}
    loader = wr.Loader(view, **options)
    found = [ids(loader) for _ in range(N_EPOCHS)]
    assert found == by_epoch(view, **options)
    assert [len(epoch) for epoch in found] == [len(loader)] * N_EPOCHS


def test_a_for_that_was_left_is_gone_on_with(view: wr.View) -> None:
    first, second, _ = by_epoch(view, batch_size=100, seed=5)
    loader = wr.Loader(view, 100, seed=5)
    for _ in loader:
        break
    assert ids(loader) == first[1:]
    assert ids(loader) == second


def test_a_for_is_never_empty_however_the_epoch_ended(view: wr.View) -> None:
    first, second, third = by_epoch(view, batch_size=100, seed=5)
    loader = wr.Loader(view, 100, seed=5)
    assert ids(islice(loader, len(loader))) == first, "the last batch was taken, the end was not seen"
    assert ids(loader) == second
    again = wr.Loader(view, 100, seed=5)
    again.load_state_dict(loader.state_dict())
    assert (again.epoch, again.samples) == (1, len(loader) * 100)
    assert ids(again) == third


@pytest.mark.parametrize("drop_last", [True, False])
def test_the_length_is_that_of_the_epoch_of_the_next_for(view: wr.View, drop_last: bool) -> None:
    n = len(view)
    for skip in ([(3, n - 8)], [(0, n)], [(0, 2 * n)], [(n - 2, n + 9)], [(1, 2), (n, 2 * n - 7)]):
        loader = wr.Loader(view, 4, seed=1, rank=0, world_size=1, skip=skip, drop_last=drop_last)
        for _ in range(3):
            assert bool(loader)
            expected = len(loader)
            assert expected == sum(1 for _ in loader), skip
    loader = wr.Loader(view, 4, rank=0, world_size=1, epochs=1)
    expected = len(loader)
    next(loader)
    assert len(loader) == expected, "those that were delivered count"
    assert sum(1 for _ in loader) == expected - 1
    assert len(loader) == expected, "the run is over"


def test_an_iterator_ends_with_its_epoch_wherever_the_loader_went(view: wr.View) -> None:
    first, second, _ = by_epoch(view, batch_size=100, seed=5)
    loader = wr.Loader(view, 100, seed=5)
    one, other = iter(loader), iter(loader)
    assert ids([next(one), next(other), next(one)]) == first[:3]
    assert ids(other) == first[3:]
    assert list(one) == []
    assert ids(islice(loader, 2)) == second[:2]
    assert list(one) == list(other) == []


def test_next_and_stream_go_on_over_epochs(view: wr.View) -> None:
    flat = sum(by_epoch(view, batch_size=100, seed=5), [])
    loader = wr.Loader(view, 100, seed=5)
    assert ids(next(loader) for _ in range(len(flat) - 5)) == flat[:-5]
    assert ids(islice(loader.stream(), 5)) == flat[-5:]


def test_epochs_bound_the_total_and_only_a_new_for_is_an_error(view: wr.View) -> None:
    loader = wr.Loader(view, 100, seed=5, epochs=2)
    assert [len(list(loader)), len(list(loader))] == [len(loader)] * 2
    with pytest.raises(StopIteration):
        next(loader)
    assert list(loader.stream()) == []
    with pytest.raises(wr.ConfigError, match="epochs=2") as caught:
        iter(loader)
    assert "stream()" in (caught.value.hint or "")
    # A state brings it back.
    loader.load_state_dict(wr.Loader(view, 100, seed=5).state_dict())
    assert len(list(loader.stream())) == 2 * len(loader)


@pytest.mark.parametrize("stop", [1, 60, 125, 130])
def test_resuming_gives_the_rest_of_the_epoch_first(view: wr.View, stop: int) -> None:
    flat = sum(by_epoch(view, batch_size=10, seed=5), [])
    loader = wr.Loader(view, 10, seed=5)
    list(islice(loader.stream(), stop))
    again = wr.Loader(view, 10, seed=5)
    again.load_state_dict(loader.state_dict())
    found = ids(again)
    assert found == flat[stop : stop + len(found)]
    assert (stop + len(found)) % len(loader) == 0


def test_whole_begins_each_for_at_the_first_batch(view: wr.View) -> None:
    first, second, third = by_epoch(view, batch_size=100, seed=5)
    loader = wr.Loader(view, 100, seed=5, whole=True)
    # Two batches to see whether it works, then part of it, then all of it: as trainers validate.
    for n in (2, 2, 5):
        assert ids(islice(loader, n)) == first[:n]
    assert ids(loader) == first
    assert ids(islice(loader, 3)) == second[:3]
    assert ids(loader) == second
    again = wr.Loader(view, 100, seed=5, whole=True)
    next(loader)
    again.load_state_dict(loader.state_dict())
    assert ids(again) == third


def test_set_epoch_keeps_the_place_in_the_epoch_that_continues(view: wr.View) -> None:
    first, second, third = by_epoch(view, batch_size=100, seed=5)
    loader = wr.Loader(view, 100, seed=5)
    next(loader)
    loader.set_epoch(loader.epoch)
    assert ids(loader) == first[1:]
    for epoch, expected in ((1, second), (2, third)):
        loader.set_epoch(epoch)
        assert ids(loader) == expected
    # As a program does that resumes in the middle of its third epoch.
    loader.set_epoch(2)
    next(loader)
    resumed = wr.Loader(view, 100, seed=5)
    resumed.load_state_dict(loader.state_dict())
    resumed.set_epoch(resumed.epoch)
    assert ids(resumed) == ids(loader)
    with pytest.raises(wr.ConfigError):
        loader.set_epoch(-1)


def test_a_mixture_without_an_end_has_one_epoch_for_ever(view: wr.View) -> None:
    loader = wr.Loader(wr.mix({"a": (view, 1.0)}, stop="never"), 100)
    assert len(ids(islice(loader, 3 * (len(view) // 100)))) == 3 * (len(view) // 100)
    assert loader.epoch == 0


def test_a_last_batch_without_a_row_for_each_rank_names_what_to_do(view: wr.View) -> None:
    rows = len(view) - 3  # the last batch has 3
    with pytest.raises(wr.ConfigError, match="3 of 1246 rows, for 4 ranks") as caught:
        wr.Loader(view, global_batch_size=rows, drop_last=False, rank=0, world_size=4)
    assert 'last="repeat"' in (caught.value.hint or "")
    assert len(wr.Loader(view, global_batch_size=rows, drop_last=False, rank=0, world_size=3)) == 2


def test_a_last_batch_is_not_kept_as_it_is_and_filled(view: wr.View) -> None:
    with pytest.raises(wr.ConfigError, match='drop_last=False and last="repeat" were given'):
        wr.Loader(view, 4, drop_last=False, last="repeat", rank=0, world_size=1)
    with pytest.raises(wr.ConfigError, match='last="fill"') as error:
        wr.Loader(view, 4, last="fill", rank=0, world_size=1)  # type: ignore[arg-type]
    assert error.value.hint == 'last="repeat", or leave it out'


def test_a_repeated_last_batch_is_full_and_counted(view: wr.View) -> None:
    rows = 100
    loaders = [
        wr.Loader(view, global_batch_size=rows, last="repeat", seed=5, rank=rank, world_size=8) for rank in range(8)
    ]
    parts = [ids(loader) for loader in loaders]
    flat = [i for step in zip(*parts, strict=True) for part in step for i in part]
    assert len(flat) == len(loaders[0]) * rows == 1300
    assert sorted(flat[: len(view)]) == list(range(len(view)))
    assert flat[len(view) :] == flat[: 1300 - len(view)]
    assert sum(loader.stats()["repeated"] for loader in loaders) == 1300 - len(view)
    # What was read can be asked for, both ways.
    (row,) = wr.trace(loaders[0], len(loaders[0]) - 1, row=rows - 1)
    assert row["sample"] == flat[-1]
    found = wr.find(loaders[0], 0, most=10_000)
    places = sorted((f["step"], f["row"], f["sample"]) for f in found)
    assert places == [(at // rows, at % rows, sample) for at, sample in enumerate(flat)]
    assert wr.find(loaders[0].recipe(), 0, most=10_000) == found


def test_what_last_may_be(view: wr.View) -> None:
    with pytest.raises(wr.ConfigError, match="last="):
        wr.Loader(view, 4, last="keep")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [torch.tensor, np.int64, np.array])
def test_a_state_may_hold_tensors_for_numbers(view: wr.View, number: Any) -> None:
    loader = wr.Loader(view, 10, seed=5)
    next(loader)
    state = {k: number(v) if isinstance(v, int) else v for k, v in loader.state_dict().items()}
    again = wr.Loader(view, 10, seed=5)
    again.load_state_dict(state)
    assert ids([next(again)]) == ids([next(loader)])
    with pytest.raises((wr.WindrowError, ValueError, RuntimeError, TypeError)):
        again.load_state_dict({**state, "samples": torch.tensor([1, 2])})
