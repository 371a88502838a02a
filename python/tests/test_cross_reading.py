"""data-forager reads what windrow writes, windrow reads what data-forager writes, and both write the same bytes."""

from __future__ import annotations

import functools
import json
import pathlib
import shutil

import numpy as np
import pytest
import tokenizers
import windrow
from data_forager.datasets.jsonl import JsonlDataset as TheirJsonlDataset
from data_forager.datasets.tokens import TokensDataset as TheirTokensDataset
from data_forager.datasets.tokens_with_aux import TokensWithAuxDataset as TheirTokensWithAuxDataset
from data_forager.indexers import jsonl_indexer as their_jsonl_indexer
from data_forager.indexers import tokenization_indexer as their_tokenization_indexer
from data_forager.sample_generators import aux as their_aux
from windrow.compat.data_forager.datasets.jsonl import JsonlDataset
from windrow.compat.data_forager.datasets.tokens import TokensDataset
from windrow.compat.data_forager.datasets.tokens_with_aux import TokensWithAuxDataset
from windrow.compat.data_forager.indexers import jsonl_indexer, tokenization_indexer
from windrow.compat.data_forager.sample_generators import aux

TESTDATA = pathlib.Path(__file__).parents[2] / "testdata"
CORPUS = TESTDATA / "text" / "corpus.jsonl"
TINY4K = tokenizers.Tokenizer.from_file(str(TESTDATA / "tokenizer" / "tiny4k" / "tokenizer.json"))
INDEX_FILES = ["file_location.txt", "sample_locations.bin"]


@functools.cache
def encode(text):
    return TINY4K.encode(text).ids


@pytest.fixture
def folders(tmp_path):
    """The corpus in five files of natural order, twice: for windrow and for data-forager."""
    lines = CORPUS.read_bytes().splitlines(keepends=True)
    ours = tmp_path / "ours"
    (ours / "Sub").mkdir(parents=True)
    names = ["part2.jsonl", "part10.jsonl", "Part1.jsonl", "Sub/a.b.jsonl", "zz.JSONL"]
    for number, name in enumerate(names):
        (ours / name).write_bytes(b"".join(lines[number :: len(names)]))
    (ours / "empty.jsonl").write_bytes(b"")
    shutil.copytree(ours, tmp_path / "theirs", copy_function=shutil.copy2)
    return ours, tmp_path / "theirs"


def assert_same_files(ours, theirs, names):
    for name in names:
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


def test_the_index_of_the_corpus(folders):
    ours, theirs = folders
    jsonl_indexer.create_default_jsonl_indexer(str(ours))()
    their_jsonl_indexer.create_default_jsonl_indexer(str(theirs))()
    assert_same_files(ours / "index", theirs / "index", INDEX_FILES)

    expected = [
        json.loads(line)
        for name in (ours / "index/file_location.txt").read_text().split()
        for line in (ours / name).open("rb")
    ]
    assert len(expected) == 344
    for base in folders:
        for dataset in (
            JsonlDataset.create_from_index_on_filesystem(str(base)),
            TheirJsonlDataset.create_from_index_on_filesystem(str(base)),
            windrow.open(base),
        ):
            assert [dataset[i] for i in range(len(dataset))] == expected


@pytest.mark.parametrize("sample_size", [1024, 7, None])
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_token_samples_of_the_corpus(folders, sample_size, dtype):
    ours, theirs = folders
    for base, module in ((ours, tokenization_indexer), (theirs, their_tokenization_indexer)):
        module.create_tokenize_and_index_jsonl_text_func(
            input_base_path=str(base), tokenizer_func=encode, eos_idx=0, sample_size=sample_size, token_dtype=dtype
        )()
    assert_same_files(ours / "index", theirs / "index", INDEX_FILES)
    names = sorted(path.name for path in (theirs / "tokenized-samples").iterdir())
    assert names == sorted(path.name for path in (ours / "tokenized-samples").iterdir())
    assert_same_files(ours / "tokenized-samples", theirs / "tokenized-samples", names)

    read = [
        reader(base)
        for base in folders
        for reader in (
            lambda base: TokensDataset.create_from_index_on_filesystem(str(base), token_dtype=dtype),
            lambda base: TheirTokensDataset.create_from_index_on_filesystem(str(base), token_dtype=dtype),
            lambda base: windrow.open(base, dtype=dtype),
        )
    ]
    assert len({len(dataset) for dataset in read}) == 1
    for i in range(0, len(read[0]), 1 + len(read[0]) // 500):
        samples = [dataset[i] for dataset in read]
        assert all(sample.dtype == dtype and np.array_equal(sample, samples[0]) for sample in samples)


def test_windrows_own_tokenizer_writes_what_the_callable_does(folders):
    ours, theirs = folders
    windrow.tokenize(
        [ours],
        ours,
        tokenizer=str(TESTDATA / "tokenizer" / "tiny4k" / "tokenizer.json"),
        sample_size=512,
        eos=0,
        dtype="uint16",
    )
    their_tokenization_indexer.create_tokenize_and_index_jsonl_text_func(
        input_base_path=str(theirs), tokenizer_func=encode, eos_idx=0, sample_size=512
    )()
    assert_same_files(ours / "index", theirs / "index", INDEX_FILES)
    assert_same_files(
        ours / "tokenized-samples",
        theirs / "tokenized-samples",
        sorted(path.name for path in (theirs / "tokenized-samples").iterdir()),
    )


def test_samples_with_a_loss_mask(folders):
    ours, theirs = folders

    def parts_with(part):
        def parts(line):
            record = json.loads(line)
            half = len(record["text"]) // 2
            return [part("prompt", record["text"][:half]), part("response", record["text"][half:])]

        return parts

    for base, module, generators in (
        (ours, tokenization_indexer, aux),
        (theirs, their_tokenization_indexer, their_aux),
    ):
        module.create_tokenize_and_index_with_aux_func(
            parts_with(generators.Part),
            encode,
            0,
            {"loss_mask": generators.LossMaskGenerator(mask_eos=True)},
            input_base_path=str(base),
            sample_size=256,
        )()
    assert_same_files(ours / "index", theirs / "index", [*INDEX_FILES, "sample_schema.json"])
    names = sorted(path.name for path in (theirs / "tokenized-samples").iterdir())
    assert_same_files(ours / "tokenized-samples", theirs / "tokenized-samples", names)
    read = [
        opened
        for base in folders
        for opened in (
            TokensWithAuxDataset.create_from_index_on_filesystem(str(base)),
            TheirTokensWithAuxDataset.create_from_index_on_filesystem(str(base)),
            windrow.open(base),
        )
    ]
    assert len({len(dataset) for dataset in read}) == 1
    for i in range(len(read[0])):
        for dataset in read:
            assert set(dataset[i]) == {"tokens", "loss_mask"}
            assert all(np.array_equal(values, read[0][i][name]) for name, values in dataset[i].items())
