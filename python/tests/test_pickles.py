"""Pickled data sets and views: the same data in another process, or an error."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr


def ids(path: Path, first: int = 0, count: int = 1000) -> wr.Dataset:
    aside = path.with_suffix(".aside")
    np.arange(first, first + count, dtype=np.uint32).tofile(aside)
    aside.rename(path)
    return wr.open(path, dtype="uint32")


KINDS: dict[str, Callable[[wr.Dataset], object]] = {
    "data set": lambda data: data,
    "view": lambda data: data.pack(10),
    "scaled view": lambda data: data.windows(10, scaler="zero"),
    "mixture": lambda data: wr.mix({"a": (data.pack(10), 1.0), "b": (data.pack(10, eos=3), 1.0)}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_other_data_in_the_place_of_pickled_data_is_stale(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ids.bin"
    pickled = pickle.dumps(KINDS[kind](ids(path)))
    pickle.loads(pickled)
    # The same bytes, written again, are the same data.
    ids(path)
    pickle.loads(pickled)
    for first, count in ((7, 1000), (0, 1001), (0, 999)):
        ids(path, first, count)
        with pytest.raises(wr.StaleError, match="not what it was when it was pickled") as caught:
            pickle.loads(pickled)
        assert caught.value.path == str(path)
        assert "open it again" in (caught.value.hint or "")
    path.unlink()
    with pytest.raises(wr.NotFoundError):
        pickle.loads(pickled)


def test_what_was_cut_short_does_not_pickle(tmp_path: Path) -> None:
    path = tmp_path / "ids.bin"
    view = ids(path, count=20_000).pack(10)
    os.truncate(path, 4096)
    with pytest.raises(wr.StaleError, match="became shorter"):
        pickle.dumps(view)


def test_records_of_json_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n')
    pickled = pickle.dumps(wr.open(path))
    assert pickle.loads(pickled)[1] == {"n": 2}
    path.write_text('{"n": 1}\n{"n": 3}\n')
    with pytest.raises(wr.StaleError):
        pickle.loads(pickled)
