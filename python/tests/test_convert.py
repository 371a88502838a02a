"""Numbers into files: shards that the original's layout describes, arrays that numpy loads, nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr


def test_shards_from_anything_that_is_a_sequence(tmp_path: Path) -> None:
    sequences: list[Any] = [
        [1.0, 2.0],
        np.arange(3, dtype=np.int16),
        torch.tensor([0.5]),
        {"sequence": np.array([7.0, 8.0]), "id": "x", "meta": {"freq": 60}},
        (),
    ]
    report = wr.write(tmp_path / "out", iter(sequences), to="shards", max_shard_bytes=16)
    assert report["records"] == 5
    meta = json.loads((tmp_path / "out/meta.json").read_text())
    assert meta["num_sequences"] == 5
    assert meta["dtype"] == "float32"
    assert meta["files"] == {"data-1-of-2.bin": 4, "data-2-of-2.bin": 4}
    stored = np.concatenate([np.fromfile(tmp_path / "out" / name, dtype="<f4") for name in meta["files"]])
    assert stored.tolist() == [1, 2, 0, 1, 2, 0.5, 7, 8]
    assert [scale["length"] for scale in meta["scales"]] == [2, 3, 1, 2, 0]
    assert meta["scales"][3] == {"offset": 6, "length": 2, "id": "x", "meta": {"freq": 60}}


def test_an_error_or_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Any:
        yield [1.0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wr.write(tmp_path / "out", broken(), to="shards")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(wr.ConfigError, match="record 1") as raised:
        wr.write(tmp_path / "out", [[1.0], [[1.0, 2.0]]], to="shards")
    assert raised.value.record == 1
    with pytest.raises(wr.ConfigError):
        wr.write(tmp_path / "out", [{"values": [1.0]}], to="shards")
    assert list(tmp_path.iterdir()) == []
    wr.write(tmp_path / "out", [[1.0]], to="shards")
    with pytest.raises(wr.ExistsError):
        wr.write(tmp_path / "out", [[2.0]], to="shards")
    wr.write(tmp_path / "out", [[2.0]], to="shards", overwrite=True)
    assert np.fromfile(tmp_path / "out/data-1-of-1.bin", dtype="<f4").tolist() == [2.0]


def test_shards_of_no_numbers_are_known_as_shards(tmp_path: Path) -> None:
    for name, sequences, records in (("none", [], 0), ("empty", [[], []], 2)):
        wr.write(tmp_path / name, sequences, to="shards")
        ds = wr.open(tmp_path / name)
        assert (ds.format, len(ds), ds.info()["values"]) == ("shards", records, 0)
        assert wr.verify(tmp_path / name)["problems"] == []


@pytest.mark.parametrize("dtype", [None, "int64", "float32", "float64", "uint8"])
def test_numpy_loads_what_convert_writes(tmp_path: Path, dtype: str | None) -> None:
    np.arange(200, dtype=np.uint16).tofile(tmp_path / "t.bin")
    report = wr.convert(wr.open(tmp_path / "t.bin", format="tokens", dtype="uint16"), tmp_path / "t.npy", to="npy", dtype=dtype)
    assert report["records"] == 1
    array = np.load(tmp_path / "t.npy", allow_pickle=False)
    assert array.dtype == np.dtype(dtype or "uint16")
    assert array.tolist() == [list(range(200))]


def test_a_number_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    np.array([1, 300], dtype=np.uint16).tofile(tmp_path / "t.bin")
    with pytest.raises(wr.ConfigError, match="number at value 1 does not fit uint8"):
        wr.convert(wr.open(tmp_path / "t.bin", format="tokens", dtype="uint16"), tmp_path / "t.npy", to="npy", dtype="uint8")
    assert not (tmp_path / "t.npy").exists()


def test_text_is_not_converted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(wr.ConfigError, match="tokenize"):
        wr.convert(tmp_path / "a.jsonl", tmp_path / "out", to="shards")


def test_an_archive_holds_an_array_per_record(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n).astype(np.float32) for n in (3, 0, 500)]
    wr.write(tmp_path / "s", series, to="shards")
    for name in ("a.npz", "b.npz"):
        assert wr.convert(tmp_path / "s", tmp_path / name, to="npz")["records"] == 3
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert archive.files == ["arr_0", "arr_1", "arr_2"]
        assert all(np.array_equal(archive[name], x) for name, x in zip(archive.files, series, strict=True))
    ds = wr.open(tmp_path / "a.npz")
    assert all(np.array_equal(a, b) for a, b in zip(ds, series, strict=True))


def test_every_layout_reads_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(size=(4, 9)).astype(np.float32)
    np.save(tmp_path / "in.npy", series)
    for to, name in [("shards", "out"), ("npy", "out.npy"), ("npz", "out.npz"), ("jsonl", "out.jsonl")]:
        wr.convert(tmp_path / "in.npy", tmp_path / name, to=to)
        ds = wr.open(tmp_path / name)
        assert np.array_equal(np.stack(list(ds)), series), to
    channels = rng.normal(size=(3, 5, 2))
    np.save(tmp_path / "in3.npy", channels)
    for to, name in [("npy", "out3.npy"), ("npz", "out3.npz"), ("jsonl", "out3.jsonl")]:
        wr.convert(tmp_path / "in3.npy", tmp_path / name, to=to)
        found = np.stack(list(wr.open(tmp_path / name)))
        assert np.allclose(found, channels, rtol=1e-6), to


@pytest.mark.parametrize("to", ["tokens", "forager", "megatron", "shards", "flat-tokens"])
def test_what_locks_the_tokenizer_comes_along(tmp_path: Path, to: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "hello"}\n{"text": "world!!"}\n')
    wr.tokenize(tmp_path / "a.jsonl", tmp_path / "tokens", tokenizer="bytes", append_eos=True)
    out = tmp_path / ("out.bin" if to == "tokens" else "out")
    wr.convert(tmp_path / "tokens", out, to=to)
    found = out.with_suffix(".idx") if to == "megatron" else out
    info = wr.open(found, tokenizer="bytes").info()
    assert (info["tokenizer"], info["eos"], info["vocab_size"]) == ("bytes", 256, 257)
    with pytest.raises(wr.errors.MismatchError, match="made by bytes"):
        wr.open(found, tokenizer="gpt2")
    assert wr.verify(found)["problems"] == []


def test_flat_tokens_are_chunked_as_asked(tmp_path: Path) -> None:
    wr.write(tmp_path / "tokens.bin", [range(10), range(20)], to="tokens", dtype="uint16")
    chunks: dict[str, Any] = {"zarr_format": 3, "tokens_chunk_size": 8, "seq_starts_chunk_size": 4, "chunks_per_shard": 2}
    wr.convert(tmp_path / "tokens.bin", tmp_path / "out" / "train", to="flat-tokens", **chunks)
    about = json.loads((tmp_path / "out/train/encoded_tokens/zarr.json").read_text())
    assert about["chunk_grid"]["configuration"]["chunk_shape"] == [16]
    assert wr.open(tmp_path / "out", split="train")[0].tolist() == [*range(10), *range(20)]


@pytest.mark.parametrize(
    ("option", "options", "says"),
    [
        ("normalize", {"to": "jsonl", "normalize": True}, "is not an option of series-jsonl"),
        ("max_shard_bytes", {"to": "npy", "max_shard_bytes": 1 << 20}, "is not an option of npy"),
        ("zarr_format", {"to": "npz", "zarr_format": 3}, "is not an option of npz"),
        ("dtype", {"to": "flat-tokens", "dtype": "uint16"}, "flat-tokens store uint32, not uint16"),
        ("normalize", {"to": "flat-tokens", "normalize": True}, "is not an option of flat-tokens"),
    ],
)
def test_an_option_of_another_format_is_refused(tmp_path: Path, option: str, options: dict[str, Any], says: str) -> None:
    wr.write(tmp_path / "tokens.bin", [range(10)], to="tokens", dtype="uint16")
    with pytest.raises(wr.ConfigError, match=says) as raised:
        wr.convert(tmp_path / "tokens.bin", tmp_path / "out", **options)
    assert raised.value.field == option
    assert not (tmp_path / "out").exists()


def test_no_output_takes_the_place_of_its_input(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"id": 1, "x": 2}\n{"id": 3, "x": 4}\n')
    before = lines.read_bytes()
    rows = wr.open(lines, columns=["id"])
    (tmp_path / "link.jsonl").symlink_to(lines)
    for out in (lines, tmp_path / "link.jsonl"):
        for overwrite in (False, True):
            with pytest.raises(wr.ConfigError, match="replace what it is made from"):
                wr.convert(rows, out, to="jsonl", overwrite=overwrite)
    assert lines.read_bytes() == before
    program = [sys.executable, "-m", "windrow", "convert", "a.jsonl", "a.jsonl", "--to", "jsonl", "--columns", "id", "--overwrite"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, lines.read_bytes()) == (2, before), done.stderr
    assert "write elsewhere" in done.stderr
    assert wr.convert(rows, tmp_path / "b.jsonl", to="jsonl")["records"] == 2
    assert wr.convert(rows, tmp_path / "b.jsonl", to="jsonl", overwrite=True)["records"] == 2


def test_flat_tokens_hold_ids_and_say_what_they_leave_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, -1]]))
    with pytest.raises(wr.ConfigError, match="number at value 1 does not fit uint32") as caught:
        wr.convert(tmp_path / "a.npy", tmp_path / "out", to="flat-tokens")
    assert caught.value.record == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "b.jsonl").write_text('{"sequence": [1, 2]}\n{"sequence": [3], "name": "x"}\n')
    wr.convert(tmp_path / "b.jsonl", tmp_path / "out", to="flat-tokens")
    assert [r.message for r in caplog.records if "left out" in r.message] == [
        "flat-tokens hold token IDs only: the metadata of records is left out"
    ]


def test_json_lines_hold_no_number_that_cannot_be_read_back(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[2**63 - 1, 1], [2**63, 1]], np.uint64))
    with pytest.raises(wr.ConfigError, match="9223372036854775808 is beyond int64") as caught:
        wr.convert(tmp_path / "a.npy", tmp_path / "a.jsonl", to="jsonl")
    assert caught.value.record == 1
    assert not (tmp_path / "a.jsonl").exists()
    np.save(tmp_path / "b.npy", np.array([[2**63 - 1, 1]], np.uint64))
    wr.convert(tmp_path / "b.npy", tmp_path / "b.jsonl", to="jsonl")
    assert wr.open(tmp_path / "b.jsonl")[0].tolist() == [2**63 - 1, 1]
