"""LitData: golden cases of the package, damage, and what a pickle may be."""

import shutil

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import same

GOLDEN = foreign_cases.GOLDEN / "litdata"
CASES = foreign_cases.names("litdata")


def test_there_are_cases():
    assert len(CASES) >= 33


@pytest.mark.parametrize("name", CASES)
def test_golden(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    foreign_cases.holds(GOLDEN / name, "litdata")
    # What a pickle would have made.
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("broken", "pickle", "encrypted"))])
def test_good_ones_verify_and_damage_is_found(name, tmp_path):
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    assert wr.verify(tmp_path / "copy")["problems"] == []
    chunk = max((tmp_path / "copy").glob("chunk-*"), key=lambda path: path.stat().st_size)
    chunk.write_bytes(chunk.read_bytes()[:-1])
    assert wr.verify(tmp_path / "copy")["problems"]


def test_a_column_of_frames(tmp_path):
    rows = wr.open(GOLDEN / "temporal")
    ds = wr.open(GOLDEN / "temporal", column="features")
    assert all((a == b["features"]).all() for a, b in zip(ds, rows)) and ds[0].shape[1] == 2
    assert same(ds.extras(0), {"score": rows[0]["score"], "valid": rows[0]["valid"]})
    assert wr.open(GOLDEN / "temporal", column="valid")[1].dtype == "bool"


@pytest.mark.parametrize("name", ["tokens_int32", "tokens_int64", "tokens_zstd"])
def test_tokens_are_joined_over_chunks(name):
    ds = wr.open(GOLDEN / name)
    blocks = ds.pack(16)
    joined = np.concatenate(list(ds))
    found = np.concatenate([blocks[i]["input_ids"] for i in range(len(blocks))])
    assert found.tolist() == joined[: len(found)].tolist()
    loader = wr.Loader(blocks, batch_size=2, seed=1)
    next(loader)
    other = wr.Loader(blocks, batch_size=2, seed=1)
    other.load_state_dict(loader.state_dict())
    assert (next(loader)["input_ids"] == next(other)["input_ids"]).all()


@pytest.mark.parametrize("name", ["zstd_batch", "zstd_sample", "zstd_chunk"])
def test_compressed_numbers_are_those_of_the_rows(name):
    ds = wr.open(GOLDEN / name, column="x")
    assert all((a == b["x"]).all() for a, b in zip(ds, wr.open(GOLDEN / name)))
    assert len(wr.Loader(ds.pack(4), batch_size=2, seed=0).__next__()["input_ids"]) == 2


@pytest.mark.parametrize("name", ["rows_arrow", "rows_arrow_zstd"])
def test_a_column_of_rows_of_plain_json_is_numbers(name):
    ds = wr.open(GOLDEN / name, column="ids")
    rows = wr.open(GOLDEN / name)
    assert all(a.tolist() == list(b["ids"]) for a, b in zip(ds, rows))
    assert ds.extras(2)["msgs"] == rows[2]["msgs"]
