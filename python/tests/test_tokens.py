"""Raw tokens: documents written from Python and read back, cut where they end, and Megatron's files by its own reader."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr


def test_documents_are_what_stands_up_to_an_end_id(tmp_path: Path) -> None:
    np.array([1, 2, 0, 0, 3, 0, 4], dtype=np.uint16).tofile(tmp_path / "a.bin")
    ds = wr.open(tmp_path / "a.bin", dtype="uint16", document_eos=0)
    assert [document.tolist() for document in ds] == [[1, 2, 0], [0], [3, 0], [4]]
    assert [ds.length(i) for i in range(len(ds))] == [3, 1, 2, 1]
    assert ds.info()["records"] == 4
    assert ds.info()["eos"] == 0
    assert len(wr.open(tmp_path / "a.bin", dtype="uint16")) == 1


def test_a_guess_that_looks_wrong_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ids = np.arange(1000, 3000)
    for name, dtype, expected in [("nanogpt", "uint16", 'dtype="uint16"'), ("oxidizr", "uint32", "dtype= says otherwise")]:
        ids.astype(dtype).tofile(tmp_path / f"{name}.bin")
        caplog.clear()
        wr.open(tmp_path / f"{name}.bin")
        [said] = [record.getMessage() for record in caplog.records]
        assert "is read as uint32" in said
        assert expected in said
        caplog.clear()
        assert wr.open(tmp_path / f"{name}.bin", dtype=dtype)[0].tolist() == ids.tolist()
        assert not caplog.records


def test_a_stream_may_be_compressed_after_it_was_written(tmp_path: Path) -> None:
    documents = [list(range(1, n % 50 + 2)) + [0] for n in range(2000)]
    wr.write(tmp_path / "a.bin", documents, to="tokens", dtype="uint16", vocab_size=60)
    packed = tmp_path / "a.bin.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.bin").read_bytes()))
    with pytest.raises(wr.ConfigError, match="twice"):
        wr.open(tmp_path)
    (tmp_path / "a.bin").unlink()
    for path in (packed, tmp_path):
        found = wr.open(path, document_eos=0)
        assert found.info()["dtype"] == "uint16" and found.info()["vocab_size"] == 60
        assert [list(record) for record in found] == documents
    # What a stopped run left of it is refused.
    packed.write_bytes(packed.read_bytes()[:-1])
    with pytest.raises(wr.CorruptError, match="cut off"):
        wr.open(packed)


def test_documents_train_and_resume_like_any_records(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    documents = [np.append(rng.integers(1, 500, n), 0) for n in rng.integers(1, 200, 300)]
    np.concatenate(documents).astype(np.uint32).tofile(tmp_path / "a.bin")
    ds = wr.open(tmp_path / "a.bin", document_eos=0)
    assert len(ds) == 300
    assert all(np.array_equal(a, b) for a, b in zip(ds, documents, strict=True))
    loader = ds.bins(256).loader(batch_size=4, seed=3)
    batches = [next(loader) for _ in range(5)]
    again = wr.Loader(ds.bins(256), batch_size=4, seed=3)
    assert all(np.array_equal(a["input_ids"], b["input_ids"]) for a, b in zip(batches, again, strict=False))
    again.load_state_dict(loader.state_dict())
    assert np.array_equal(next(again)["input_ids"], next(loader)["input_ids"])
    assert wr.trace(loader, 2)


def test_an_end_id_is_refused_where_it_can_be_none(tmp_path: Path) -> None:
    np.arange(8, dtype=np.uint16).tofile(tmp_path / "a.bin")
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    for path, options, says in [
        ("a.bin", {"dtype": "uint16", "document_eos": 70_000}, "does not fit uint16"),
        ("a.bin", {"dtype": "uint16", "document_eos": 9, "vocab_size": 8}, "outside the vocabulary"),
        ("a.jsonl", {"document_eos": 1}, "jsonl has records of its own"),
    ]:
        with pytest.raises(wr.ConfigError, match=says):
            wr.open(tmp_path / path, **options)  # type: ignore[arg-type]


def test_tokens_from_anything_that_holds_ids(tmp_path: Path) -> None:
    documents: list[Any] = [
        [5, 6],
        np.arange(3, dtype=np.int16),
        torch.tensor([7]),
        (),
        np.array([1, 2**31], dtype=">u4"),
        np.arange(8, dtype=np.int64)[::4],
    ]
    report = wr.write(tmp_path / "t.bin", iter(documents), to="tokens", eos=9, vocab_size=2**31 + 1)
    assert report["records"] == 6
    stored = np.fromfile(tmp_path / "t.bin", dtype="<u4").tolist()
    assert stored == [5, 6, 9, 0, 1, 2, 9, 7, 9, 9, 1, 2**31, 9, 0, 4, 9]
    ds = wr.open(tmp_path / "t.bin", document_eos=9)
    assert [len(document) for document in ds] == [3, 4, 2, 1, 3, 3]
    assert ds.info()["vocab_size"] == 2**31 + 1
    assert wr.verify(tmp_path / "t.bin")["problems"] == []


def test_rows_of_an_array_are_documents(tmp_path: Path) -> None:
    wr.write(tmp_path / "t.bin", np.arange(6).reshape(2, 3), to="tokens", dtype="uint16", eos=9)
    assert [document.tolist() for document in wr.open(tmp_path / "t.bin", document_eos=9)] == [[0, 1, 2, 9], [3, 4, 5, 9]]


@pytest.mark.parametrize(
    ("documents", "options", "record", "says"),
    [
        ([[1], [2, 70_000]], {"dtype": "uint16"}, 1, "number at value 1 does not fit uint16"),
        ([[1], [3, -1]], {}, 1, "number at value 1 does not fit uint32"),
        ([[1], [2, 3, 100]], {"vocab_size": 100}, 1, "id 100 at value 2 is outside the vocabulary of 100 IDs"),
        ([[1], [0.5]], {}, 1, "a record of float64 values"),
        ([[[1]]], {}, 0, r"a record of shape \(1, 1\)"),
        ([5], {}, 0, "a record of shape"),
        (["text"], {}, 0, "a record of <U4; expected numbers"),
    ],
)
def test_ids_that_do_not_fit_name_document_and_place(
    tmp_path: Path, documents: Any, options: dict[str, Any], record: int, says: str
) -> None:
    with pytest.raises(wr.ConfigError, match=says) as raised:
        wr.write(tmp_path / "t.bin", documents, to="tokens", **options)
    assert raised.value.record == record
    assert list(tmp_path.iterdir()) == []


def test_options_that_cannot_be_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for options in [{"document_eos": -1}, {"dtype": "uint16", "document_eos": 65_536}, {"dtype": "float32"}, {"vocab_size": 0}]:
        with pytest.raises(wr.ConfigError):
            wr.write(tmp_path / "t.bin", [[1]], to="tokens", **options)  # type: ignore[arg-type]
    with pytest.raises(wr.ConfigError, match="empty file"):
        wr.write(tmp_path / "t.bin", [], to="tokens")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_what_was_there(tmp_path: Path) -> None:
    def broken() -> Any:
        yield [1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wr.write(tmp_path / "t.bin", broken(), to="tokens")
    assert list(tmp_path.iterdir()) == []
    wr.write(tmp_path / "t.bin", [[1]], to="tokens")
    with pytest.raises(wr.ExistsError):
        wr.write(tmp_path / "t.bin", [[2]], to="tokens")
    with pytest.raises(KeyboardInterrupt):
        wr.write(tmp_path / "t.bin", broken(), to="tokens", overwrite=True)
    assert wr.open(tmp_path / "t.bin")[0].tolist() == [1]
    wr.write(tmp_path / "t.bin", [[2]], to="tokens", overwrite=True)
    assert wr.open(tmp_path / "t.bin")[0].tolist() == [2]


class Pair:
    """Megatron's own reader and writer of its files."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # It says which of its optional companions are not installed.
            warnings.simplefilter("ignore")
            from megatron.core.datasets import indexed_dataset
        self.read = indexed_dataset.IndexedDataset
        self.write = indexed_dataset.IndexedDatasetBuilder


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_windrow_reads_what_megatron_writes(tmp_path: Path, pair: Pair, dtype: str) -> None:
    sequences = [np.arange(n, dtype=dtype) for n in (3, 0, 100, 1)]
    builder = pair.write(f"{tmp_path}/a.bin", dtype=np.dtype(dtype).type)
    for sequence in sequences:
        builder.add_item(torch.from_numpy(sequence.astype(np.int32) if dtype == "uint16" else sequence))
        builder.end_document()
    builder.finalize(f"{tmp_path}/a.idx")
    for name in ("a", "a.bin", "a.idx", "."):
        ds = wr.open(tmp_path / name)
        assert (ds.format, len(ds), ds[0].dtype) == ("megatron", 4, np.dtype(dtype))
        assert all(np.array_equal(a, b) for a, b in zip(ds, sequences, strict=True))
        assert ds.extras(1) == {}


def test_documents_of_several_sequences_and_modes_are_extras(tmp_path: Path, pair: Pair) -> None:
    builder = pair.write(f"{tmp_path}/a.bin", dtype=np.int32, multimodal=True)
    for tensor, mode, ends in [([1, 2], 0, False), ([3], 1, True), ([4], 0, True)]:
        builder.add_item(torch.tensor(tensor), mode)
        if ends:
            builder.end_document()
    builder.finalize(f"{tmp_path}/a.idx")
    ds = wr.open(tmp_path / "a")
    found = [(ds.extras(i)["document"], ds.extras(i)["mode"]) for i in range(3)]
    assert found == [(0, 0), (0, 1), (1, 0)]
    wr.convert(tmp_path / "a", tmp_path / "b", to="megatron")
    for suffix in ("bin", "idx"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_megatron_reads_what_windrow_writes(tmp_path: Path, pair: Pair, dtype: str) -> None:
    sequences = [np.arange(n) for n in (3, 0, 100, 1)]
    lines = "".join(f'{{"sequence": {sequence.tolist()}}}\n' for sequence in sequences)
    (tmp_path / "a.jsonl").write_text(lines)
    report = wr.convert(tmp_path / "a.jsonl", tmp_path / "m", to="megatron", dtype=dtype)
    assert report["output"] == f"{tmp_path}/m.idx"
    for options in ({"mmap": True}, {"mmap": False}):
        found = pair.read(f"{tmp_path}/m", **options)
        assert len(found) == 4
        assert found[0].dtype == np.dtype(dtype)
        assert all(np.array_equal(found[i], sequence) for i, sequence in enumerate(sequences))
        assert found.document_indices.tolist() == [0, 1, 2, 3, 4]


def test_documents_become_megatrons_and_come_back(tmp_path: Path, pair: Pair) -> None:
    rng = np.random.default_rng(0)
    documents = [rng.integers(1, 50_000, n) for n in rng.integers(0, 300, 200)]
    wr.write(tmp_path / "t.bin", documents, to="tokens", dtype="uint32", eos=0, vocab_size=50_257)
    wr.convert(wr.open(tmp_path / "t.bin", document_eos=0), tmp_path / "m", to="megatron")
    found = pair.read(f"{tmp_path}/m")
    assert len(found) == 200
    assert all(np.array_equal(found[i], [*document, 0]) for i, document in enumerate(documents))
    wr.convert(tmp_path / "m", tmp_path / "back.bin", to="tokens", dtype="uint32")
    assert (tmp_path / "back.bin").read_bytes() == (tmp_path / "t.bin").read_bytes()
    wr.convert(tmp_path / "m", tmp_path / "f", to="forager")
    assert all(np.array_equal(a, b) for a, b in zip(wr.open(tmp_path / "f"), wr.open(tmp_path / "m"), strict=True))


def test_data_forager_reads_the_samples_that_convert_writes(tmp_path: Path) -> None:
    from data_forager.datasets.tokens import TokensDataset

    wr.write(tmp_path / "t.bin", [[5, 6], [7], [8, 9, 10]], to="tokens", dtype="uint16", eos=0)
    wr.convert(wr.open(tmp_path / "t.bin", document_eos=0), tmp_path / "f", to="forager")
    theirs = TokensDataset.create_from_index_on_filesystem(str(tmp_path / "f"), token_dtype=np.uint16)
    assert [theirs[i].tolist() for i in range(len(theirs))] == [[5, 6, 0], [7, 0], [8, 9, 10, 0]]
