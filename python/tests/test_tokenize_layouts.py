"""Text tokenised into the layouts of other programs, and what those programs read of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import windrow as wr
from windrow.compat.foundation_ts.dataset import BinarySequenceDataset
from windrow.compat.seqax import FlatTokensParams, ShufflingLoader, TokenBatchParams

LAYOUTS = ["flat-tokens", "megatron", "shards"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.jsonl"
    path.write_text("".join(json.dumps({"text": "wörd " * (i % 7)}) + "\n" for i in range(100)))
    return path


@pytest.fixture
def documents(text: Path) -> list[list[int]]:
    return [[*json.loads(line)["text"].encode()] for line in text.read_text().splitlines()]


def tokenize(text: Path, out: Path, to: str, **options: Any) -> dict[str, Any]:
    return wr.tokenize(text, out, tokenizer="bytes", to=to, **options)


@pytest.mark.parametrize("to", LAYOUTS)
def test_records_are_documents_and_together_the_stream(
    tmp_path: Path, text: Path, documents: list[list[int]], to: str
) -> None:
    report = tokenize(text, tmp_path / "out", to)
    assert (report["documents"], report["records"]) == (100, 100)
    assert report["tokens"] == sum(map(len, documents))
    assert report["files"] > 0 and report["output_bytes"] > 0
    ds = wr.open(tmp_path / "out")
    assert ds.format == to
    assert [ids.tolist() for ids in ds] == documents
    again = tokenize(text, tmp_path / "out", to)
    assert again["unchanged"]
    assert {**again, "unchanged": False, "resumed_bytes": 0} == {**report, "resumed_bytes": 0}
    tokenize(text, tmp_path / "ended", to, append_eos=True)
    tokenize(text, tmp_path / "stream", "tokens")
    ended = np.concatenate(list(wr.open(tmp_path / "ended")))
    assert np.array_equal(ended, wr.open(tmp_path / "stream")[0])
    assert wr.verify(tmp_path / "out")["problems"] == []
    info = ds.info()
    assert (info["tokenizer"], info["eos"], info["vocab_size"]) == ("bytes", 256, 257)
    assert len(wr.open(tmp_path / "out", tokenizer="bytes")) == 100
    with pytest.raises(wr.MismatchError, match="bytes"):
        wr.open(tmp_path / "out", tokenizer="gpt2")


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "windrow", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_program_takes_the_layouts_that_tokenize_takes(tmp_path: Path, text: Path) -> None:
    shared = ["--out", tmp_path / "out", "--tokenizer", "bytes", "--to", "nothing"]
    for command in (["tokenize"], ["prep", "plan", "tokenize"]):
        refused = program(*command, text, *shared)
        assert refused.returncode == 2
        found = re.search(r"[Oo]ne of (.*)", refused.stderr)
        assert found, refused.stderr
        named = set(found[1].split(", "))
        assert named == {"datatrove", "flat-tokens", "forager", "llmc", "megatron", "shards", "tokens"}
    for to in named:
        assert tokenize(text, tmp_path / to, to)["documents"] == 100
    for to in ("codes", "jsonl", "npy", "npz", "parquet"):
        with pytest.raises(wr.ConfigError, match="does not hold the tokens"):
            tokenize(text, tmp_path / "out", to)


def test_shards_of_the_program_and_of_tasks_are_those_of_tokenize(tmp_path: Path, text: Path) -> None:
    tokenize(text, tmp_path / "shards", "shards", max_shard_bytes=300)
    expected = files(tmp_path / "shards")
    assert len(expected) > 5
    given = ["--tokenizer", "bytes", "--to", "shards", "--max-shard-bytes", 300]
    done = program("tokenize", text, "--out", tmp_path / "of-program", *given)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "of-program") == expected
    again = program("tokenize", text, "--out", tmp_path / "of-program", *given, "--json")
    assert json.loads(again.stdout)["report"]["unchanged"]
    planned = program("prep", "plan", "tokenize", text, "--out", tmp_path / "parts", "--task-bytes", 400, *given)
    assert planned.returncode == 0, planned.stderr
    job = planned.stdout.strip()
    for command in (["run", job], ["merge", job], ["join", job, "--out", tmp_path / "joined"]):
        done = program("prep", *command)
        assert done.returncode == 0, done.stderr
    assert files(tmp_path / "joined") == expected


def test_megatron_s_reader_has_a_document_each(tmp_path: Path, text: Path, documents: list[list[int]]) -> None:
    with warnings.catch_warnings():
        # It says which of its optional companions are not installed.
        warnings.simplefilter("ignore")
        from megatron.core.datasets.indexed_dataset import IndexedDataset
    tokenize(text, tmp_path / "out", "megatron")
    theirs = IndexedDataset(str(tmp_path / "out" / "tokens"))
    assert [theirs[i].tolist() for i in range(len(theirs))] == documents
    assert theirs.document_indices.tolist() == list(range(101))
    assert theirs[1].dtype == np.uint16
    tokenize(text, tmp_path / "wide", "megatron", append_eos=True, dtype="int32")
    # Its arrays point into a map that goes with it.
    wide = IndexedDataset(str(tmp_path / "wide" / "tokens"))
    assert wide[0].dtype == np.int32 and wide[0].tolist() == [256]


def test_the_reader_of_shards_has_a_sequence_each(tmp_path: Path, text: Path, documents: list[list[int]]) -> None:
    tokenize(text, tmp_path / "out", "shards", max_shard_bytes=300)
    assert len(list((tmp_path / "out").glob("data-*.bin"))) > 3
    theirs = BinarySequenceDataset(str(tmp_path / "out"))
    assert [theirs[i].tolist() for i in range(len(theirs))] == documents
    meta = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert (meta["dtype"], meta["num_sequences"], meta["windrow"]["tokenizer"]["name"]) == ("uint16", 100, "bytes")
    # Other readers take every .json for data.
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == ["meta.json"]


@pytest.mark.parametrize("kind", [{}, {"zarr_format": 3}, {"zarr_format": 3, "chunks_per_shard": 4}], ids=str)
def test_zarr_and_seqax_read_the_group(
    tmp_path: Path, text: Path, documents: list[list[int]], kind: dict[str, Any]
) -> None:
    options = {"tokens_chunk_size": 64, "seq_starts_chunk_size": 16, "eos": None, **kind}
    for split in ("train", "validation"):
        tokenize(text, tmp_path / "c.zarr" / split, "flat-tokens", **options)
    group = zarr.open_group(tmp_path / "c.zarr", mode="r")["train"]
    assert group["seq_starts"][:].tolist() == [0, *np.cumsum([len(ids) for ids in documents]).tolist()]
    encoded = [2 * token + (i == 0) for ids in documents for i, token in enumerate(ids)]
    assert group["encoded_tokens"][:].tolist() == encoded
    assert group.attrs["max_token_id"] == max(map(max, filter(None, documents)))
    params = FlatTokensParams(
        filespec=str(tmp_path / "c.zarr"), streams=1, read_blocks_per_shuffle_buffer=2, sequences_per_read_block=2,
        seed=0, sequence_packing=True,
    )
    batch = ShufflingLoader("train", params, TokenBatchParams(len=16, batch=2)).load(0)
    assert batch.targets.shape == (2, 16)
    wr.write(tmp_path / "c.zarr" / "train", [[1, 2]], to="flat-tokens", append=True)
    ds = wr.open(tmp_path / "c.zarr", split="train")
    assert len(ds) == 101
    # What made the last one, nobody says.
    assert ds.info()["tokenizer"] is None


@pytest.mark.parametrize("to", LAYOUTS)
def test_documents_are_packed_into_samples_in_every_format(tmp_path: Path, text: Path, to: str) -> None:
    tokenize(text, tmp_path / "packed", to, sample_size=8)
    tokenize(text, tmp_path / "stream", "tokens")
    packed, stream = wr.open(tmp_path / "packed"), wr.open(tmp_path / "stream")[0]
    assert len(packed) == len(stream) // 8 > 1
    assert np.array_equal(np.concatenate(list(packed)), stream[: 8 * len(packed)])


def test_an_eos_is_in_the_vocabulary(tmp_path: Path, text: Path) -> None:
    for eos, says in ((257, "eos 257 is not in the vocabulary: IDs are below 257"), (1 << 40, "not in the vocabulary"), (-1, "eos -1")):
        for options in ({"append_eos": True}, {"to": "tokens"}, {"sample_size": 4, "to": "forager"}):
            with pytest.raises(wr.ConfigError, match=says) as found:
                tokenize(text, tmp_path / "out", **{"to": "shards", "eos": eos, **options})
            assert found.value.field == "eos" and not (tmp_path / "out").exists()
    tokenize(text, tmp_path / "out", "shards", eos=97)
    for data in (wr.open(tmp_path / "out"), wr.open(tmp_path / "out", vocab_size=300)):
        size = data.info()["vocab_size"]
        assert len(data.pack(3, eos=size - 1)) == len(data.pack(3, eos=256))
        with pytest.raises(wr.ConfigError, match=f"eos {size} is outside the vocabulary of {size} IDs"):
            data.pack(3, eos=size)
    # What the IDs go up to is not a vocabulary.
    wr.write(tmp_path / "group.zarr", [[1, 2], [3]], to="flat-tokens")
    assert wr.open(tmp_path / "group.zarr").pack(2, eos=9)[0]["input_ids"].tolist() == [1, 2]


@pytest.mark.parametrize("to", LAYOUTS)
def test_what_cannot_be_stored_is_refused(tmp_path: Path, text: Path, to: str) -> None:
    for options in ({"sample_size": 0}, {"dtype": "float32"}, {"tokens_chunk_size": 0, "to": "flat-tokens"}):
        with pytest.raises(wr.ConfigError):
            tokenize(text, tmp_path / "out", **{"to": to, **options})
        assert not (tmp_path / "out").exists()
    large = {"tokenizer": lambda text: [2**31 - 1 + len(text) % 2], "eos": None, "to": to}
    dtype = "uint32" if to == "flat-tokens" else "int32"
    with pytest.raises(wr.ConfigError):
        wr.tokenize(text, tmp_path / "out", dtype=dtype, text_function=lambda line: "odd", **large)
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(wr.ExistsError):
            tokenize(text, tmp_path / "mine", to, overwrite=overwrite)
    assert (tmp_path / "mine" / "a.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("option", "options", "says"),
    [
        ("postfix", {"to": "tokens", "postfix": "x"}, "is not an option of tokens"),
        ("samples_folder", {"to": "flat-tokens", "samples_folder": "x"}, "is not an option of flat-tokens"),
        ("max_shard_bytes", {"to": "forager", "max_shard_bytes": 1 << 20}, "is not an option of forager"),
        ("zarr_format", {"to": "tokens", "zarr_format": 3}, "is not an option of tokens"),
        ("chunks_per_shard", {"to": "shards", "chunks_per_shard": 4}, "is not an option of shards"),
        ("remainder", {"to": "tokens", "remainder": "pad"}, "is set"),
        ("vocab_size", {"to": "tokens", "vocab_size": 10}, "is set"),
        ("text_field", {"text_field": "body", "text_function": lambda line: "text"}, "is set"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    tmp_path: Path, text: Path, option: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(wr.ConfigError, match=f"{option} {says}") as raised:
        wr.tokenize(text, tmp_path / "out", tokenizer="bytes", **options)
    assert raised.value.field == option
    assert not (tmp_path / "out").exists()


def test_a_function_says_itself_what_is_special(tmp_path: Path, text: Path) -> None:
    with pytest.raises(wr.ConfigError, match="special_tokens is set"):
        wr.tokenize(text, tmp_path / "out", tokenizer=lambda text: [1], eos=None, dtype="uint16", special_tokens=True)
