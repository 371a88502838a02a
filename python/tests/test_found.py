"""What is found when a path is opened: the nearest name, splits by names, files of other programs, trailing bytes."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest
from numcodecs.zstd import Zstd

import windrow as wr

LINE = '{"text": "one"}\n'


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("corpsu", "corpus"),
        ("corpus/trian.jsonl", "corpus/train.jsonl"),
        ("corpsu/train.jsonl", "corpus/train.jsonl"),
        ("tokens", "tokens.bin"),
        ("nothing-like-it", None),
    ],
)
def test_a_path_that_is_not_there_names_the_nearest(tmp_path: Path, wrong: str, right: str | None) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.jsonl").write_text(LINE)
    np.arange(8, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    hint = right and f"did you mean {tmp_path / right}?"
    of_texts = "texts are given as a generator or iter(list)"
    for open_it, said in (
        (lambda: wr.open(tmp_path / wrong), hint),
        (lambda: wr.tokenize(tmp_path / wrong, tmp_path / "out", tokenizer="bytes"), f"{hint}; {of_texts}" if hint else of_texts),
        (lambda: wr.verify(tmp_path / wrong), hint),
    ):
        with pytest.raises(wr.NotFoundError) as found:
            open_it()
        assert found.value.hint == said
    with pytest.raises(wr.NotFoundError) as found:
        wr.index(tmp_path / "corpsu")
    assert found.value.hint == f"did you mean {tmp_path / 'corpus'}?"


def test_split_picks_files_by_the_words_in_their_names(tmp_path: Path) -> None:
    for name, n in (("train.bin", 300), ("val.bin", 40)):
        np.arange(n, dtype=np.uint16).tofile(tmp_path / name)
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 300}))
    with pytest.raises(wr.ConfigError, match=r"several splits: train \(train.bin\), validation \(val.bin\)"):
        wr.open(tmp_path, dtype="uint16")
    for split in ("val", "validation", "valid"):
        data = wr.open(tmp_path, dtype="uint16", split=split)
        assert len(data) == 1
        assert np.array_equal(data[0], np.arange(40))
    train = wr.open(tmp_path, dtype="uint16", split="train")
    assert train.length(0) == 300
    view = train.pack(10)
    assert len(pickle.loads(pickle.dumps(view))) == len(view) == 29
    loader = wr.Loader(view, 4)
    assert wr.trace(loader.recipe(), 0) == wr.trace(loader, 0)
    with pytest.raises(wr.NotFoundError, match="test"):
        wr.open(tmp_path, dtype="uint16", split="test")
    # A folder of that name comes first.
    (tmp_path / "val").mkdir()
    np.arange(7, dtype=np.uint16).tofile(tmp_path / "val" / "a.bin")
    assert wr.open(tmp_path, dtype="uint16", split="val").length(0) == 7


def test_splits_of_lines_are_kept_apart_and_told_of_where_they_are_joined(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "c4-train.00000-of-00001.json").write_text(LINE * 3)
    (corpus / "c4-validation.00000-of-00001.json").write_text(LINE * 2)
    with pytest.raises(wr.ConfigError, match="several splits"):
        wr.open(corpus)
    assert len(wr.open(corpus, split="train")) == 3
    assert len(wr.open(corpus, split="validation")) == 2
    with pytest.raises(wr.ConfigError, match="several splits"):
        wr.tokenize(corpus, tmp_path / "out", tokenizer="bytes")
    assert wr.tokenize(corpus, tmp_path / "out", tokenizer="bytes", split="all")["documents"] == 5
    with caplog.at_level("WARNING", logger="windrow"):
        assert wr.index(corpus)["records"] == 5
    assert any("several splits become one data set" in r.getMessage() for r in caplog.records)


def test_an_llmc_header_is_never_read_as_tokens(tmp_path: Path) -> None:
    ids = np.arange(5000, dtype=np.uint16)
    header = np.zeros(256, dtype="<i4")
    header[:3] = 20240520, 1, len(ids)
    path = tmp_path / "fineweb_train_000001.bin"
    path.write_bytes(header.tobytes() + ids.tobytes())
    assert np.array_equal(wr.open(path, dtype="uint16")[0], ids)
    with pytest.raises(wr.UnsupportedError, match="llm.c, with a header") as found:
        wr.open(path, dtype="uint16", format="tokens")
    assert "leave format= out" in (found.value.hint or "")
    path.write_bytes(path.read_bytes()[1024:])
    assert np.array_equal(wr.open(path, dtype="uint16")[0], ids)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_trailing_bytes_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    packed = gzip.compress(LINE.encode()) if name.endswith("gz") else bytes(Zstd().encode(LINE.encode()))
    (tmp_path / name).write_bytes(packed + b"trailing")
    with caplog.at_level("WARNING", logger="windrow"):
        assert [r["text"] for r in wr.open(tmp_path)] == ["one"]
    assert ["8 trailing bytes" in r.getMessage() for r in caplog.records] == [True]
    caplog.clear()
    with caplog.at_level("WARNING", logger="windrow"):
        assert wr.tokenize(tmp_path, tmp_path / "out", tokenizer="bytes")["documents"] == 1
    assert any(name in r.getMessage() and "8 trailing bytes" in r.getMessage() for r in caplog.records)


def test_a_dict_in_a_pickle_is_not_told_of_json(tmp_path: Path) -> None:
    (tmp_path / "d.pkl").write_bytes(pickle.dumps({"T1": [1.0, 2.0], "T2": [3.0]}))
    with pytest.raises(wr.CorruptError) as found:
        wr.open(tmp_path / "d.pkl")
    assert "jsonl" not in str(found.value)
    assert "list(d.values())" in (found.value.hint or "")


def test_lines_compressed_in_another_way_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "a.jsonl.bz2").write_bytes(b"BZh9")
    (tmp_path / "b.jsonl.xz").write_bytes(b"\xfd7zXZ\0")
    with caplog.at_level("WARNING", logger="windrow"):
        assert len(wr.open(tmp_path)) == 1
    told = [r.getMessage() for r in caplog.records]
    assert len(told) == 1
    assert str(tmp_path / "b.jsonl.xz") in told[0]


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".json", ".jsonl", ".jsonl.gz", ".bin"])
def test_a_suffix_in_capitals_is_left_out_of_no_folder(tmp_path: Path, suffix: str) -> None:
    first = tmp_path / f"a{suffix}"
    match suffix:
        case ".npy":
            np.save(first, np.arange(12.0).reshape(2, 6))
        case ".csv":
            first.write_text("x\n1\n2\n")
        case ".json":
            first.write_text("[[1.0, 2.0], [3.0]]")
        case ".jsonl":
            first.write_text(LINE * 2)
        case ".jsonl.gz":
            first.write_bytes(gzip.compress((LINE * 2).encode()))
        case _:
            np.arange(40, dtype=np.uint16).tofile(first)
    options = {"dtype": "uint16"} if suffix == ".bin" else {}
    alone = len(wr.open(tmp_path, **options))
    (tmp_path / f"b{suffix.upper()}").write_bytes(first.read_bytes())
    assert len(wr.open(tmp_path, **options)) == 2 * alone


def test_half_a_pair_in_capitals_is_not_read_as_raw_tokens(tmp_path: Path) -> None:
    np.arange(40, dtype=np.uint16).tofile(tmp_path / "x.BIN")
    (tmp_path / "x.IDX").write_bytes(b"MMIDIDX\0\0")
    with pytest.raises(wr.ConfigError, match="index of a pair"):
        wr.open(tmp_path, dtype="uint16")


def test_windrows_own_description_of_a_file_is_not_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wr.write(tmp_path / "x.jsonl", [{"text": "a"}, {"text": "b"}], to="jsonl")
    with caplog.at_level("WARNING", logger="windrow"):
        assert len(wr.open(tmp_path)) == 2
    assert not caplog.records


def test_compat_indexes_only_what_the_original_does(tmp_path: Path) -> None:
    from windrow.compat.data_forager.datasets.jsonl import JsonlDataset
    from windrow.compat.data_forager.indexers.jsonl_indexer import create_default_jsonl_indexer

    for name in ("a.jsonl", "b.json", "c.ndjson"):
        (tmp_path / name).write_text(LINE * 2)
    create_default_jsonl_indexer(tmp_path)()
    assert len(JsonlDataset.create_from_index_on_filesystem(tmp_path)) == 2
