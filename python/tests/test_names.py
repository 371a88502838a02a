"""Bytes decide, not names: files are read by their content, whatever they are called and however they are compressed."""

import bz2
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr

ROWS = [{"label": i, "text": f"text {i}"} for i in range(6)]


def labels(path: Path, **options: str) -> list[int]:
    # Features of tf.train.Example are lists.
    return [int(np.ravel(row["label"])[0]) for row in wr.open(path, **options)[:]]


@pytest.mark.parametrize("name", ["train-00000-of-00001", "a.tfrec", "a.record", "a.tf_record", "a"])
@pytest.mark.parametrize("packed", [bytes, gzip.compress, zlib.compress])
def test_tfrecord_of_any_name(tmp_path: Path, name: str, packed: Callable[[bytes], bytes]) -> None:
    wr.write(tmp_path / "made.tfrecord", ROWS, to="tfrecord")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).write_bytes(packed((tmp_path / "made.tfrecord").read_bytes()))
    for path in (folder, folder / name):
        assert labels(path) == labels(path, format="tfrecord") == list(range(6))
    assert wr.open(folder).format == "tfrecord"


@pytest.mark.parametrize("name", ["a.parq", "df.parquet.gzip", "part.0.parquet.snappy", "part-00000", "000000_0"])
def test_parquet_of_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    wr.write(tmp_path / "made.parquet", ROWS, to="parquet")
    (tmp_path / "made.parquet").rename(folder / name)
    for path in (folder, folder / name):
        assert labels(path) == labels(path, format="parquet") == list(range(6))


@pytest.mark.parametrize("to", ["tfrecord", "parquet"])
def test_a_damaged_file_among_those_without_a_name_is_not_left_out(tmp_path: Path, to: str) -> None:
    wr.write(tmp_path / f"made.{to}", ROWS, to=to)  # type: ignore[arg-type]
    whole = (tmp_path / f"made.{to}").read_bytes()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "part-00000").write_bytes(whole)
    (folder / "part-00001").write_bytes(b"\xff" * 16 + whole[16:])
    with pytest.raises(wr.CorruptError, match="part-00001"):
        wr.open(folder)[:]


def test_a_folder_of_something_else_stays_unrecognised(tmp_path: Path) -> None:
    (tmp_path / "part-00000").write_bytes(b"PAR2 and more")
    with pytest.raises(wr.UnrecognisedError):
        wr.open(tmp_path)


def mds(folder: Path, packed: bytes | None = None, n_bytes: int | None = None) -> Path:
    """A folder of MDS whose shard is compressed with bzip2."""
    wr.write(folder, ROWS, to="mds")
    index = json.loads((folder / "index.json").read_text())
    [shard] = index["shards"]
    raw = folder / shard["raw_data"]["basename"]
    small = bz2.compress(raw.read_bytes()) if packed is None else packed
    raw.with_name(raw.name + ".bz2").write_bytes(small)
    raw.unlink()
    shard["raw_data"]["bytes"] = n_bytes or shard["raw_data"]["bytes"]
    shard |= {"compression": "bz2", "zip_data": {"basename": raw.name + ".bz2", "bytes": len(small), "hashes": {}}}
    (folder / "index.json").write_text(json.dumps(index))
    for name in ("windrow.json", "windrow.sums"):
        (folder / name).unlink(missing_ok=True)
    return folder


def test_shards_of_mds_in_bzip2(tmp_path: Path) -> None:
    assert labels(mds(tmp_path / "whole")) == list(range(6))
    with pytest.raises(wr.CorruptError, match="the compressed shard is damaged"):
        labels(mds(tmp_path / "damaged", packed=b"BZh9 and nothing that is"))
    with pytest.raises(wr.CorruptError, match="expanded; the index says 400"):
        labels(mds(tmp_path / "longer", n_bytes=400))
