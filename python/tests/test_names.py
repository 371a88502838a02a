"""Bytes decide, not names: files are read by their content, whatever they are called and however they are compressed."""

import bz2
import contextlib
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()
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


def table() -> list[tuple[str, str, str]]:
    """The cells of the table of names in docs/formats.md: (name, format, word)."""
    lines = PAGE[PAGE.index("| a file |") :].split("\n\n")[0].splitlines()
    names, *rows = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in [lines[0], *lines[2:]])
    return [(row[0].replace("`", ""), name, word) for row in rows for name, word in zip(names[1:], row[1:], strict=True)]


USUAL = {
    "tfrecord": "a.tfrecord",
    "parquet": "a.parquet",
    "arrow": "a.arrow",
    "jsonl": "a.jsonl",
    "json-array": "a.json",
    "webdataset": "a.tar",
}


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Rows in a file of each format."""
    folder = tmp_path_factory.mktemp("made")
    for to in ("tfrecord", "parquet", "arrow", "jsonl"):
        wr.write(folder / USUAL[to], ROWS, to=to)  # type: ignore[arg-type]
    wr.write(folder / "tars", ROWS, to="webdataset")
    (folder / USUAL["json-array"]).write_text(json.dumps(ROWS))
    (tar,) = (folder / "tars").glob("*.tar")
    tar.rename(folder / USUAL["webdataset"])
    return {format: (folder / name).read_bytes() for format, name in USUAL.items()}


@pytest.mark.parametrize(("called", "format", "word"), table())
def test_a_cell_of_the_table_of_names(tmp_path: Path, contents: dict[str, bytes], called: str, format: str, word: str) -> None:
    usual = USUAL[format]
    name = {
        "of its usual name": usual,
        "A.SUFFIX, in capitals": usual.upper(),
        "gzip inside, .gz": f"{usual}.gz",
        "gzip inside, of its usual name": usual,
    }.get(called, called)
    data = contents[format]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_bytes(gzip.compress(data) if called.startswith("gzip") else data)
    for path in (tmp_path / "data" / name, tmp_path / "data"):
        if word == "read":
            ds = wr.open(path)
            assert (ds.format, len(ds)) == (format, 6)
            # A sample of a tar has its row in a file of JSON.
            assert format == "webdataset" or labels(path) == list(range(6))
            continue
        with pytest.raises((wr.UnrecognisedError, wr.UnsupportedError)):
            wr.open(path)
    if word != "read":
        with pytest.raises(wr.WindrowError) if word == "error" else contextlib.nullcontext():
            assert labels(tmp_path / "data" / name, format=format) == list(range(6))
