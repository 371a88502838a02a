"""What is random of a sample, read by number: another draw each epoch, the one of `set_epoch` where it is called."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset
from torchdata.stateful_dataloader import StatefulDataLoader

import windrow as wr

N, LENGTH = 60, 500


@pytest.fixture
def crops(tmp_path: Path) -> wr.View:
    """Sample i is 4 of the values 500 * i … 500 * i + 499."""
    np.save(tmp_path / "a.npy", np.arange(N * LENGTH, dtype=np.float32).reshape(N, LENGTH))
    return wr.open(tmp_path / "a.npy").crop(4)


@pytest.fixture
def tracks(tmp_path: Path) -> Path:
    """Six tracks of codes with prompts of three tags."""
    folder = tmp_path / "tracks" / "encoded_audio"
    folder.mkdir(parents=True)
    for i in range(6):
        torch.save(torch.arange((9 + i) * 18).reshape(-1, 18) % 1000, folder / f"{i}.pt")
    (folder.parent / "metadata.json").write_text(json.dumps({f"{i}.pt": {"text": "a, b, c"} for i in range(6)}))
    return folder.parent


def starts(batches: Iterable[Any]) -> dict[int, int]:
    """Where the crop of each sample began."""
    firsts = [int(n) for batch in batches for n in np.asarray(batch["values"]).reshape(-1, 4)[:, 0]]
    return {n // LENGTH: n % LENGTH for n in firsts}


def n_alike(one: dict[int, int], other: dict[int, int]) -> int:
    assert one.keys() == other.keys()
    return sum(one[sample] == other[sample] for sample in one)


WAYS: dict[str, Callable[[wr.View], Any]] = {
    "no workers": lambda view: DataLoader(view, batch_size=4),
    "workers": lambda view: DataLoader(view, batch_size=4, shuffle=True, num_workers=2),
    "workers that live on": lambda view: DataLoader(
        view, batch_size=4, shuffle=True, num_workers=2, persistent_workers=True
    ),
    "one by one": lambda view: DataLoader(view, batch_size=None),
    "joined": lambda view: DataLoader(ConcatDataset([Subset(view, range(30)), Subset(view, range(30, N))])),
    "mixture": lambda view: DataLoader(wr.mix({"all": (view, 1.0)}), batch_size=4),
    "stateful": lambda view: StatefulDataLoader(view, batch_size=4, num_workers=1),
    "by hand": lambda view: (view.batch(range(at, at + 4)) for _ in range(4) for at in range(0, N, 4)),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_epoch_has_draws_of_its_own(crops: wr.View, way: str) -> None:
    loader = WAYS[way](crops)
    if way == "by hand":
        epochs = [starts(next(loader) for _ in range(N // 4)) for _ in range(3)]
    else:
        epochs = [starts(loader) for _ in range(3)]
    assert all(len(epoch) == N for epoch in epochs)
    # Of a worker that lives on, the first few samples of an epoch may not show that it is another one.
    most = 12 if way == "workers that live on" else 3
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert n_alike(epochs[a], epochs[b]) <= most


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("by hand", "mixture")])
def test_set_epoch_draws_what_a_loader_draws_in_that_epoch(crops: wr.View, way: str) -> None:
    loader = WAYS[way](crops)
    reference = wr.Loader(crops, 4)
    for epoch in range(2):
        crops.set_epoch(epoch)
        assert starts(loader) == starts(reference)


def test_spawned_workers_that_live_on_follow_set_epoch(crops: wr.View) -> None:
    loader = DataLoader(
        crops, batch_size=10, num_workers=1, persistent_workers=True, multiprocessing_context="spawn", timeout=120
    )
    first = starts(loader)
    crops.set_epoch(7)
    expected = starts([crops.batch(range(N))])
    assert starts(loader) == expected
    assert n_alike(first, expected) <= 3


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_workers_that_live_on_follow_an_epoch_first_said_after_they_began(crops: wr.View, start_method: str) -> None:
    mix = wr.mix({"all": (crops, 1.0)})
    data = ConcatDataset([crops, mix])
    loader = DataLoader(
        data, batch_size=10, num_workers=2, persistent_workers=True, multiprocessing_context=start_method, timeout=120
    )
    next(iter(loader))
    for epoch in range(3):
        crops.set_epoch(epoch)
        mix.set_epoch(epoch)
        assert [batch["values"].tolist() for batch in loader] == [
            [data[i]["values"].tolist() for i in range(at, at + 10)] for at in range(0, 2 * N, 10)
        ]


RANKS = """
    import sys
    import torch
    import windrow as wr
    from torch.utils.data import DataLoader

    def values(batches):
        return [batch["values"].tolist() for batch in batches]

    def rank(number, crops, barrier):
        loaders = [
            DataLoader(crops, batch_size=10, num_workers=1, persistent_workers=True, multiprocessing_context=start, timeout=120)
            for start in ("fork", "spawn")
        ]
        for loader in loaders:
            values(loader)
        barrier.wait()
        # The epoch of who started it, until it says one itself.
        again = wr.open(sys.argv[1]).crop(4)
        again.set_epoch(5)
        assert torch.equal(torch.as_tensor(crops[9]["values"]), torch.as_tensor(again[9]["values"]))
        barrier.wait()
        for epoch in (10 + number, 20 + number):
            crops.set_epoch(epoch)
            again.set_epoch(epoch)
            barrier.wait()
            expected = values(DataLoader(again, batch_size=10))
            for loader in [DataLoader(crops, batch_size=10), *loaders]:
                assert values(loader) == expected, (number, epoch)
            barrier.wait()

    if __name__ == "__main__":
        crops = wr.open(sys.argv[1]).crop(4)
        again = wr.open(sys.argv[1]).crop(4)
        barrier = torch.multiprocessing.get_context(sys.argv[2]).Barrier(3)
        context = torch.multiprocessing.start_processes(
            rank, args=(crops, barrier), nprocs=2, start_method=sys.argv[2], join=False
        )
        # The ranks and their workers have begun.
        crops.set_epoch(5)
        again.set_epoch(5)
        barrier.wait(120)
        for _ in range(5):
            barrier.wait(120)
        while not context.join():
            pass
        assert crops[9]["values"].tolist() == again[9]["values"].tolist(), "what a rank said is seen where it was started"
        print("right")
"""


@pytest.mark.parametrize("start_method", ["spawn", "fork"])
def test_ranks_that_one_process_started_have_epochs_of_their_own(
    crops: wr.View, tmp_path: Path, run_script: Callable[..., str], start_method: str
) -> None:
    assert run_script(RANKS, tmp_path / "a.npy", start_method, limit=240) == "right\n"


def test_epochs_keep_no_file_open(crops: wr.View, tmp_path: Path, run_script: Callable[..., str]) -> None:
    code = """
        import os, sys
        import windrow as wr

        def n_open():
            return len(os.listdir("/proc/self/fd"))

        ds = wr.open(sys.argv[1])
        before = n_open()
        views = [ds.crop(4) for _ in range(2000)]
        assert n_open() == before
        for view in views[::2]:
            view.set_epoch(1)
        child = os.fork()
        if child == 0:
            views[0].set_epoch(2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert before < n_open() <= before + 8, "2,000 views, 512 in one file"
        del views, view
        assert n_open() == before
        print("right")
    """
    assert run_script(code, tmp_path / "a.npy") == "right\n"


def test_torchs_seed_repeats_the_draws_for_any_number_of_workers(crops: wr.View) -> None:
    def epochs(num_workers: int) -> list[dict[int, int]]:
        torch.manual_seed(5)
        loader = DataLoader(crops, batch_size=4, num_workers=num_workers)
        return [starts(loader) for _ in range(2)]

    assert epochs(1) == epochs(2)
    # What this process saw before makes no difference to its workers.
    crops[3], crops[3]
    assert epochs(2) == epochs(1)


def test_a_pickle_keeps_the_epoch(crops: wr.View) -> None:
    crops.set_epoch(3)
    again = pickle.loads(pickle.dumps(crops))
    assert starts([again.batch(range(N))]) == starts([crops.batch(range(N))])
    with pytest.raises(wr.ConfigError):
        crops.set_epoch(-1)
    with pytest.raises(wr.ConfigError, match="epoch="):
        crops.set_epoch(2**63)


def test_what_is_not_random_stays_as_it_is(view: wr.View, tracks: Path) -> None:
    for one in (view, wr.open(tracks).codes(5, mode="start")):
        first = one[1]
        one.set_epoch(1)
        assert all(np.array_equal(first[name], one[1][name]) for name in first)


def test_prompts_and_tags_are_drawn_again(tracks: Path) -> None:
    data = wr.open(tracks)
    for options in ({"unconditional": 0.5}, {"tag_shuffle": True}, {"tag_dropout": 0.5}):
        view = data.codes(5, mode="start", **options)
        seen = {tuple(view.batch(range(6))["src_tokens"].reshape(-1).tolist()) for _ in range(20)}
        assert len(seen) > 1, options


def test_one_sample_twice_in_a_batch_is_drawn_twice(crops: wr.View) -> None:
    batch = crops.batch([5] * 20)["values"][:, 0]
    assert len(set(batch.tolist())) > 10
