"""Where a run ends or fails: nothing is lost, nothing continues behind it."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr

SCRIPT = """
    import sys, time
    import numpy as np
    import windrow as wr

    def scaler(values):
        time.sleep(0.002)
        return values * 2

    np.save(sys.argv[1], np.ones((5, 4000), np.float32))
    loader = wr.Loader(wr.open(sys.argv[1]).windows(4, scaler=scaler), batch_size=1, num_threads=4)
    next(loader), next(loader)
    print("done")
"""


def test_a_program_ends_well_while_threads_call_its_functions(tmp_path: Path, run_script: Callable[..., str]) -> None:
    # Ended in the middle of a call, a thread took the program with it: most of the times it was run.
    for i in range(6):
        assert run_script(SCRIPT, tmp_path / f"{i}.npy") == "done\n"


def test_a_batch_whose_collate_failed_comes_again(view: wr.View) -> None:
    wanted = [batch["input_ids"].tolist() for batch, _ in zip(wr.Loader(view, 4, seed=3), range(4), strict=False)]
    fails = [1, 2]

    def collate(batch: dict[str, np.ndarray]) -> list[list[int]]:
        if batch["input_ids"].tolist() == wanted[1] and fails:
            fails.pop()
            raise RuntimeError("no")
        return batch["input_ids"].tolist()

    loader = wr.Loader(view, 4, seed=3, collate=collate)
    found = [next(loader)]
    state = loader.state_dict()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            next(loader)
        assert loader.state_dict() == state
    found += [next(loader) for _ in range(3)]
    assert found == wanted


def test_parts_of_a_mixture_keep_their_seeds(dataset: wr.Dataset) -> None:
    parts = [dataset.crop(5, seed=1), dataset.crop(5, seed=2)]
    mix = wr.mix({"a": (parts[0], 1.0), "b": (parts[1], 1.0)})
    for one in (mix, *parts):
        one.set_epoch(0)
    expected = [part[0]["values"].tolist() for part in parts]
    for again in (mix, __import__("pickle").loads(__import__("pickle").dumps(mix))):
        assert sorted(again[i]["values"].tolist() for i in range(2)) == sorted(expected)


def test_parts_of_other_shapes_are_no_mixture(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((5, 12), np.float32))
    np.save(tmp_path / "b.npy", np.zeros((5, 12, 3), np.float32))
    flat, wide = wr.open(tmp_path / "a.npy"), wr.open(tmp_path / "b.npy")
    for cut in (lambda data: data.records(4), lambda data: data.windows(4), lambda data: data.crop(4)):
        with pytest.raises(wr.errors.MismatchError, match=r"\[4\].*\[4, 3\]|\[4, 3\].*\[4\]"):
            wr.Loader(wr.mix({"a": (cut(flat), 1.0), "b": (cut(wide), 1.0)}), batch_size=2)


def test_impossible_numbers_are_errors_at_once(view: wr.View, dataset: wr.Dataset) -> None:
    for options in ({"prefetch": 2**64 - 1}, {"global_batch_size": 2, "rank": 3, "world_size": 4}):
        given = options if "global_batch_size" in options else {"batch_size": 4, **options}
        with pytest.raises(wr.errors.ConfigError):
            wr.Loader(view, **given)
    with pytest.raises(wr.errors.WindrowError, match="no memory for 1 rows"):
        dataset.records(2**35)[0]
    mix = wr.mix({"a": (view, 1.0), "b": (view, 2.0)})
    loader = wr.Loader(mix, batch_size=4)
    assert wr.trace(loader, 10**14)[0]["row"] == 0
    assert wr.find(loader, 0, most=0) == []
    with pytest.raises(wr.OutOfRangeError, match="epoch"):
        wr.find(wr.Loader(mix, batch_size=4, epochs=2), 0, epoch=2)


def test_a_mapping_of_any_kind_is_mixed(view: wr.View) -> None:
    mix = wr.mix(types.MappingProxyType({"a": (view, 1.0), "b": (view, 2.0)}))
    # The second part, with two thirds of the samples, ends the epoch.
    assert len(view) * 3 // 2 <= len(mix) <= len(view) * 3 // 2 + 2
