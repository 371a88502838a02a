"""windrow.compat.data_forager: the recorded cases, the document's examples, and what the original left open."""

from __future__ import annotations

import doctest
import gzip
import importlib
import json
import multiprocessing
import os
import pathlib
import pickle
import pkgutil
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tokenizers
import windrow
from torch.utils.data import ConcatDataset, DataLoader, Subset
from windrow.compat.data_forager.datasets.common import Dataset, SubsampledDataset
from windrow.compat.data_forager.datasets.jsonl import JsonlDataset
from windrow.compat.data_forager.datasets.tokens import TokensDataset
from windrow.compat.data_forager.datasets.tokens_with_aux import TokensWithAuxDataset
from windrow.compat.data_forager.index_stores.common import IndexStoreInterface
from windrow.compat.data_forager.index_stores.fs_based import IndexStore
from windrow.compat.data_forager.indexers.jsonl_indexer import create_default_jsonl_indexer
from windrow.compat.data_forager.indexers.text_lines import FileTextLinesIndexer
from windrow.compat.data_forager.indexers.tokenization_indexer import (
    create_tokenize_and_index_jsonl_text_func,
    create_tokenize_and_index_with_aux_func,
)
from windrow.compat.data_forager.sample_generators import SampleData
from windrow.compat.data_forager.sample_generators.aux import LossMaskGenerator, Part
from windrow.compat.data_forager.sample_generators.packing import exact
from windrow.compat.data_forager.sample_index import SampleIndex, SampleLocation

TESTDATA = pathlib.Path(__file__).parents[2] / "testdata"
GOLDEN = TESTDATA / "golden" / "3_forager"
FOLDERS = sorted(path for path in GOLDEN.iterdir() if path.is_dir())
TINY4K = str(TESTDATA / "tokenizer" / "tiny4k" / "tokenizer.json")

TOKENIZERS = {
    "ord": lambda text: [ord(character) for character in text],
    "words_int": lambda text: [int(word) for word in text.split()],
    "other": lambda text: [1],
}
# What windrow decided to do instead, by the name of the case.
NAMED_BY_FOLDER = "same_stem"
REFUSED_DTYPE = "wrong_read_dtype"


def parse_parts(line):
    return [Part(type=part["type"], text=part["text"]) for part in json.loads(line.decode("utf-8"))["parts"]]


def make_indexer(case, base, **places):
    places = places or {"input_base_path": str(base)}
    if case["call"].startswith("create_default_jsonl_indexer"):
        return create_default_jsonl_indexer(str(base))
    args = dict(case["args"])
    if "token_dtype" in args:
        args["token_dtype"] = np.dtype(args["token_dtype"])
    common = {"tokenizer_func": TOKENIZERS[case["tokenizer"]], "eos_idx": case["eos_idx"], **places, **args}
    if case["call"] == "create_tokenize_and_index_jsonl_text_func":
        return create_tokenize_and_index_jsonl_text_func(**common)
    masked = case["masked_types"] and set(case["masked_types"])
    mask = LossMaskGenerator(masked_types=masked, mask_eos=case["mask_eos"])
    return create_tokenize_and_index_with_aux_func(
        process_parts_func=parse_parts, aux_generators={"loss_mask": mask}, **common
    )


def open_dataset(case, base, **kwargs):
    if case["call"].startswith("create_default_jsonl_indexer"):
        return JsonlDataset.create_from_index_on_filesystem(str(base), **kwargs)
    if case["call"] == "create_tokenize_and_index_jsonl_text_func":
        dtype = np.dtype(case["read_dtype"])
        return TokensDataset.create_from_index_on_filesystem(str(base), token_dtype=dtype, **kwargs)
    return TokensWithAuxDataset.create_from_index_on_filesystem(str(base), **kwargs)


def plain(sample):
    if isinstance(sample, dict):
        return {name: plain(values) for name, values in sample.items()}
    return sample.tolist() if isinstance(sample, np.ndarray) else sample


def visible(base):
    return sorted(str(p.relative_to(base)) for p in base.rglob("*") if not any(q.startswith(".") for q in p.parts))


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def golden(request, tmp_path):
    shutil.copytree(request.param / "input", tmp_path / "base")
    return request.param, json.loads((request.param / "case.json").read_text()), tmp_path / "base"


def test_golden(golden):
    folder, case, base = golden
    expected = case["expected"]
    before = visible(base)
    if "error" in expected["run"] and NAMED_BY_FOLDER not in folder.name:
        with pytest.raises((ValueError, KeyError)):
            make_indexer(case, base)()
        assert visible(base) == before, "an error leaves nothing behind"
        return
    make_indexer(case, base)()
    make_indexer(case, base)()  # again: nothing to do
    if NAMED_BY_FOLDER not in folder.name:
        for file in (folder / "expected_index").iterdir():
            assert (base / "index" / file.name).read_bytes() == file.read_bytes(), file.name
        for file in (folder / "expected_samples").glob("*"):
            assert (base / "tokenized-samples" / file.name).read_bytes() == file.read_bytes(), file.name
        check_reading(folder, case, base)
    else:
        names = sorted(path.name for path in (base / "tokenized-samples").iterdir())
        assert len(names) == len(set(names)) == len([p for p in before if p.lower().endswith(".jsonl")])
        assert len(open_dataset(case, base)) > 0


def check_reading(folder, case, base):
    read = case["expected"]["read"]
    if "error" in read or REFUSED_DTYPE in folder.name:
        with pytest.raises(ValueError):
            list(open_dataset(case, base))
        return
    dataset = open_dataset(case, base)
    samples = read["ok"]["samples"]
    assert len(dataset) == read["ok"]["len"] == len(samples)
    for number, sample in enumerate(samples):
        for i in (number, number - len(samples), np.int64(number)):
            if isinstance(sample, dict) and set(sample) == {"error"}:
                with pytest.raises(ValueError) as caught:
                    dataset[i]
                assert caught.value.path and caught.value.record == number and caught.value.byte is not None
                assert sample["error"]["type"] != "JSONDecodeError" or isinstance(caught.value, json.JSONDecodeError)
            else:
                value = sample["ok"] if isinstance(sample, dict) and set(sample) == {"ok"} else sample
                assert plain(dataset[i]) == value
    for beyond in (len(samples), -len(samples) - 1):
        with pytest.raises(IndexError):
            dataset[beyond]
    if "read_with_plain_TokensDataset_len" in case["expected"]:
        plain_dataset = TokensDataset.create_from_index_on_filesystem(str(base), token_dtype=np.uint16)
        assert len(plain_dataset) == case["expected"]["read_with_plain_TokensDataset_len"]["ok"]
        with pytest.raises(ValueError, match="TokensWithAuxDataset"):
            plain_dataset[0]


def test_the_line_indexer_writes_the_same_bytes_as_the_core(golden, tmp_path):
    """A store of one's own goes by way of the line indexer in Python."""

    class OwnStore(IndexStore):
        pass

    folder, case, base = golden
    if case["call"].startswith("create_default_jsonl_indexer") or NAMED_BY_FOLDER in folder.name:
        paths = sorted(str(path) for path in base.rglob("*.jsonl"))
        FileTextLinesIndexer(paths, OwnStore(base_path=base))()
        assert len(OwnStore(base_path=base).load()) == sum(
            pathlib.Path(p).read_bytes().count(b"\n") for p in paths
        ) + len([p for p in paths if pathlib.Path(p).read_bytes()[-1:] not in (b"", b"\n")])
        return
    before = visible(base)
    indexer = make_indexer(case, base, input_base_path=str(base), index_store=OwnStore(base_path=str(base)))
    if "error" in case["expected"]["run"]:
        with pytest.raises((ValueError, KeyError), match=r"a\.jsonl|tokens"):
            indexer()
        assert visible(base) == before
        return
    indexer()
    for file in (folder / "expected_index").iterdir():
        assert (base / "index" / file.name).read_bytes() == file.read_bytes(), file.name
    for file in (folder / "expected_samples").iterdir():
        assert (base / "tokenized-samples" / file.name).read_bytes() == file.read_bytes(), file.name
    again = {"input_base_path": str(base), "index_store": OwnStore(base_path=str(base))}
    make_indexer(case, base, **again)()  # nothing to do
    with pytest.raises((ValueError, FileExistsError)):
        make_indexer({**case, "eos_idx": case["eos_idx"] + 1, "tokenizer": "other"}, base, **again)()
    os.utime(next(base.glob("*.jsonl")), ns=(1, 1))
    with pytest.raises((ValueError, FileExistsError)):
        make_indexer(case, base, **again)()


def write_lines(path, texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text, "source": "made"}) + "\n" for text in texts))


class QwenLike:
    """A tokenizer with the two names that the document uses."""

    def __init__(self):
        self._tokenizer = tokenizers.Tokenizer.from_file(TINY4K)
        self.eos_token_id = 0

    def encode(self, text):
        return self._tokenizer.encode(text).ids


class OneMore(QwenLike):
    """Another tokenizer whose function has the same name."""

    def encode(self, text):
        return [id + 1 for id in super().encode(text)]

    encode.__qualname__ = QwenLike.encode.__qualname__


def test_the_document_use_case_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "data" / "a.jsonl", [f"text {i}" for i in range(100)])
    indexer = create_default_jsonl_indexer("./data")
    indexer()
    assert (tmp_path / "data/index/file_location.txt").exists()
    assert (tmp_path / "data/index/sample_locations.bin").exists()

    dataset = JsonlDataset.create_from_index_on_filesystem("./data")
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    seen = []
    for batch in loader:
        texts = [sample["text"] for sample in batch]
        assert isinstance(batch, list) and batch["text"] == texts  # the column, as torch's own collate gives it
        seen += texts
    assert sorted(seen) == sorted(f"text {i}" for i in range(100))
    assert dataset[0] == {"text": "text 0", "source": "made"} and type(dataset[0]) is dict


def test_the_document_use_case_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "corpus" / "a.jsonl", ["The quick brown fox. " * 100] * 50)
    tokenizer = QwenLike()
    indexer = create_tokenize_and_index_jsonl_text_func(
        input_base_path="./corpus",
        tokenizer_func=tokenizer.encode,
        eos_idx=tokenizer.eos_token_id,
        sample_size=1024,  # Fixed context length
    )
    indexer()
    assert list((tmp_path / "corpus/tokenized-samples").glob("*.bin"))
    dataset = TokensDataset.create_from_index_on_filesystem("./corpus", token_dtype=np.uint16)
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    shapes = []
    for batch in loader:
        input_ids, labels = batch[:, :-1], batch[:, 1:]
        assert input_ids.shape == labels.shape == (len(batch), 1023)
        shapes.append(tuple(batch.shape))
    assert shapes[0] == (8, 1024) and sum(n for n, _ in shapes) == len(dataset)
    sample = dataset[0]
    assert sample.dtype == np.uint16 and not sample.flags.writeable

    again = create_tokenize_and_index_jsonl_text_func(
        input_base_path="./corpus",
        tokenizer_func=tokenizer.encode,
        eos_idx=tokenizer.eos_token_id,
        sample_size=1024,
        token_dtype=np.uint16,
    )
    again()  # the default dtype, spelled out: nothing to do
    for other in ({"sample_size": 512}, {"tokenizer_func": TOKENIZERS["ord"]}, {"tokenizer_func": OneMore().encode}):
        args = {"tokenizer_func": tokenizer.encode, "eos_idx": tokenizer.eos_token_id, "sample_size": 1024, **other}
        with pytest.raises(FileExistsError):
            create_tokenize_and_index_jsonl_text_func(input_base_path="./corpus", **args)()


@pytest.mark.parametrize("text_function", [None, lambda line: json.loads(line)["text"]])
def test_a_function_that_differs_behind_the_first_line_is_another_task(tmp_path, text_function):
    write_lines(tmp_path / "a.jsonl", ["lower", "Upper"])
    options = {"sample_size": 2, "process_text_line_func": text_function}
    first, second = (lambda text: [ord(c) for c in text]), (lambda text: [ord(c) for c in text.lower()])
    create_tokenize_and_index_jsonl_text_func(first, 0, str(tmp_path), **options)()
    create_tokenize_and_index_jsonl_text_func(first, 0, str(tmp_path), **options)()
    with pytest.raises(FileExistsError):
        create_tokenize_and_index_jsonl_text_func(second, 0, str(tmp_path), **options)()


def test_the_document_other_names(tmp_path):
    store = IndexStore(base_path=str(tmp_path), index_data_folder="index")
    assert not store.exists()
    write_lines(tmp_path / "a.jsonl", ["x"])
    create_default_jsonl_indexer(str(tmp_path))()
    assert store.exists()
    index = store.load()
    assert isinstance(index, SampleIndex) and len(index) == 1
    assert index[0] == SampleLocation(str(tmp_path / "a.jsonl"), 0, (tmp_path / "a.jsonl").stat().st_size)
    assert issubclass(JsonlDataset, Dataset) and hasattr(IndexStoreInterface, "add_sample")
    dataset = JsonlDataset(index)
    assert not dataset.is_initialized
    dataset.initialize()
    assert dataset.is_initialized and dataset[0]["text"] == "x"
    store.clear()
    assert not store.exists() and not (tmp_path / "index").exists()


def indexed(base):
    """The files of an index just made, in their order."""
    create_default_jsonl_indexer(base)()
    # The second time there is nothing to do.
    create_default_jsonl_indexer(base)()
    texts = [sample["text"] for sample in JsonlDataset.create_from_index_on_filesystem(base)]
    files = (base / "index" / "file_location.txt").read_text().splitlines()
    assert texts == [f"in {pathlib.Path(name).name}" for name in files]
    return files


@pytest.mark.parametrize(
    "names",
    [
        # As natsort's IGNORECASE has them: letters before their marks, any script's digits as numbers.
        ["b1", "B2", "b10"],
        ["e", "É", "f", "z"],
        ["2", "\u0663", "10", "a\u00b9", "a2", "a10"],
        ["stra\u00dfe2", "STRASSE10", "Strassf"],
    ],
)
def test_files_come_in_natural_order_in_any_script(tmp_path, names):
    for name in sorted(names, reverse=True):
        write_lines(tmp_path / f"{name}.jsonl", [f"in {name}.jsonl"])
    assert indexed(tmp_path) == [f"{name}.jsonl" for name in names]


def test_links_to_folders_are_followed_but_not_in_circles(tmp_path):
    base, elsewhere = tmp_path / "base", tmp_path / "elsewhere"
    write_lines(base / "a" / "m.jsonl", ["in m.jsonl"])
    write_lines(elsewhere / "deep" / "n.jsonl", ["in n.jsonl"])
    write_lines(elsewhere / "file.txt", ["in z.jsonl"])
    (base / "linked").symlink_to(elsewhere)
    (base / "z.jsonl").symlink_to(elsewhere / "file.txt")
    for name in ("up", "round"):
        (base / "a" / name).symlink_to(base)
        (elsewhere / name).symlink_to(elsewhere)
    assert indexed(base) == ["a/m.jsonl", "linked/deep/n.jsonl", "z.jsonl"]
    (base / "gone.jsonl").symlink_to(base / "nowhere")
    with pytest.raises(FileNotFoundError, match="gone.jsonl"):
        create_default_jsonl_indexer(base)()


def test_slices_lists_and_numpy_integers(tmp_path):
    write_lines(tmp_path / "a.jsonl", [str(i) for i in range(10)])
    create_default_jsonl_indexer(tmp_path)()
    dataset = JsonlDataset.create_from_index_on_filesystem(tmp_path)

    def texts(index):
        return [int(sample["text"]) for sample in dataset[index]]

    assert texts(slice(0, 3)) == [0, 1, 2]
    assert texts(slice(7, 99)) == [7, 8, 9]
    assert texts(slice(2, 0, -1)) == [2, 1]
    assert texts(slice(None, None, 4)) == [0, 4, 8]
    assert texts([5, 1, 1, -1]) == texts(np.array([5, 1, 1, -1])) == [5, 1, 1, 9]
    assert dataset[np.int32(3)]["text"] == dataset[np.uint64(3)]["text"] == "3"
    for wrong in ("1", 1.0, None, [1.5]):
        with pytest.raises(ValueError):
            dataset[wrong]
    with pytest.raises(IndexError):
        dataset[[10]]


def test_a_subsample(tmp_path):
    write_lines(tmp_path / "a.jsonl", [str(i) for i in range(100)])
    create_default_jsonl_indexer(tmp_path)()
    dataset = JsonlDataset.create_from_index_on_filesystem(tmp_path)
    part = SubsampledDataset(dataset, 0.257, seed=3)
    drawn = [int(part[i]["text"]) for i in range(len(part))]
    assert drawn == sorted(np.random.default_rng(3).choice(100, size=25, replace=False).tolist())
    shuffled = SubsampledDataset(dataset, 0.257, seed=3, random_order=True)
    assert [int(s["text"]) for s in shuffled] == np.random.default_rng(3).choice(100, size=25, replace=False).tolist()
    assert part[np.int64(2)] == part[2] and part[:3] == [part[0], part[1], part[2]]
    for factor in (0, -1, 1.01, float("nan")):
        with pytest.raises(ValueError):
            SubsampledDataset(dataset, factor)
    assert len(next(iter(DataLoader(part, batch_size=4)))) == 4
    assert isinstance(next(iter(DataLoader(Subset(dataset, [1, 2]), batch_size=2))), list)
    assert len(ConcatDataset([dataset, part])) == 125


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_workers_read_the_right_samples_after_the_parent_read(tmp_path, start):
    texts = [f"text {i} " + "x" * (i % 97) for i in range(500)]
    write_lines(tmp_path / "a.jsonl", texts[:300])
    write_lines(tmp_path / "b" / "b.jsonl", texts[300:])
    create_default_jsonl_indexer(tmp_path)()
    dataset = JsonlDataset.create_from_index_on_filesystem(tmp_path)
    assert [sample["text"] for sample in dataset] == texts
    loader = DataLoader(
        dataset, batch_size=16, num_workers=2, timeout=120, multiprocessing_context=multiprocessing.get_context(start)
    )
    assert [sample["text"] for batch in loader for sample in batch] == texts


def test_workers_read_token_samples(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["abcdefghij" * 20] * 10)
    create_tokenize_and_index_jsonl_text_func(TOKENIZERS["ord"], 0, str(tmp_path), sample_size=16)()
    dataset = TokensDataset.create_from_index_on_filesystem(tmp_path, token_dtype=np.uint16)
    first = dataset[0]
    loader = DataLoader(dataset, batch_size=4, num_workers=2, timeout=120)
    rows = [row.numpy().tolist() for batch in loader for row in batch]
    assert rows == [sample.tolist() for sample in dataset] and rows[0] == first.tolist()


def test_datasets_and_errors_pickle(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\nnot json\n')
    create_default_jsonl_indexer(tmp_path)()
    dataset = JsonlDataset.create_from_index_on_filesystem(tmp_path)
    assert dataset[0] == pickle.loads(pickle.dumps(dataset))[0]
    assert len(pickle.loads(pickle.dumps(SubsampledDataset(dataset, 0.5, seed=0)))) == 1
    with pytest.raises(json.JSONDecodeError) as caught:
        dataset[1]
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is type(caught.value) and str(copied) == str(caught.value) and copied.record == 1
    assert isinstance(copied, windrow.CorruptError) and "a.jsonl (record 1, byte 14)" in str(copied)


def test_more_files_than_are_kept_open(tmp_path):
    for i in range(300):
        write_lines(tmp_path / f"{i}.jsonl", [str(i), "second"])
    create_default_jsonl_indexer(tmp_path)()
    dataset = JsonlDataset.create_from_index_on_filesystem(tmp_path)
    assert [dataset[2 * i]["text"] for i in range(300)] == [str(i) for i in range(300)]


def test_bad_bytes_are_errors_with_their_place(tmp_path):
    lines = [b'{"text": "ok"}', b'{"text": "\xff"}', b"[" * 200_000, b'{"text": NaN}']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    create_default_jsonl_indexer(tmp_path)()
    dataset = JsonlDataset.create_from_index_on_filesystem(tmp_path)
    for record in (1, 2):
        with pytest.raises(ValueError, match="a.jsonl") as caught:
            dataset[record]
        assert caught.value.record == record
    with pytest.raises(ValueError) as caught:
        dataset[1]
    assert caught.value.byte == 15 + 10
    assert np.isnan(dataset[3]["text"])


def test_data_that_changed_after_it_was_indexed_is_refused(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["one", "two"])
    create_default_jsonl_indexer(tmp_path)()
    write_lines(tmp_path / "a.jsonl", ["another", "two"])
    with pytest.raises(windrow.StaleError, match="a.jsonl"):
        JsonlDataset.create_from_index_on_filesystem(tmp_path)
    with pytest.raises(FileExistsError):
        create_default_jsonl_indexer(tmp_path)()


def test_an_index_that_cannot_be_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        JsonlDataset.create_from_index_on_filesystem(tmp_path)
    with pytest.raises(FileNotFoundError):
        create_default_jsonl_indexer(tmp_path / "nope")()
    write_lines(tmp_path / "a.jsonl", ["one"])
    index = tmp_path / "index"
    index.mkdir()
    (index / "file_location.txt").write_text("a.jsonl\n")
    rows = {"odd": b"\0" * 25, "file": np.array([1, 0, 5], "<u8").tobytes()}
    for content in rows.values():
        (index / "sample_locations.bin").write_bytes(content)
        with pytest.raises(windrow.CorruptError, match="sample_locations.bin"):
            JsonlDataset.create_from_index_on_filesystem(tmp_path)
    for row in ([0, 0, 5000], [0, 1 << 63, 1], [0, 0, (1 << 64) - 1], [0, 5000, 4]):
        (index / "sample_locations.bin").write_bytes(np.array(row, "<u8").tobytes())
        dataset = JsonlDataset.create_from_index_on_filesystem(tmp_path)
        with pytest.raises(windrow.WindrowError, match="a.jsonl"):
            dataset[0]
    (index / "file_location.txt").write_text("gone.jsonl\n")
    with pytest.raises(FileNotFoundError, match="gone.jsonl"):
        JsonlDataset.create_from_index_on_filesystem(tmp_path)[0]
    os.mkfifo(tmp_path / "gone.jsonl")
    with pytest.raises(OSError, match="not a regular file"):
        JsonlDataset.create_from_index_on_filesystem(tmp_path)[0]


def test_absolute_paths_of_older_indexes_load(tmp_path):
    write_lines(tmp_path / "elsewhere" / "a.jsonl", ["one"])
    size = (tmp_path / "elsewhere" / "a.jsonl").stat().st_size
    (tmp_path / "base" / "index").mkdir(parents=True)
    (tmp_path / "base/index/file_location.txt").write_text(f"{tmp_path}/elsewhere/a.jsonl\n")
    (tmp_path / "base/index/sample_locations.bin").write_bytes(np.array([0, 0, size], "<u8").tobytes())
    assert JsonlDataset.create_from_index_on_filesystem(tmp_path / "base")[0]["text"] == "one"


def test_compressed_files_are_passed_over_and_unzip_files_expands_them(tmp_path):
    folder = tmp_path / "in"
    write_lines(folder / "b.jsonl", ["plain"])
    line = b'{"text": "zipped"}\n'
    with gzip.open(folder / "a.jsonl.gz", "wb") as file:
        file.write(line)
    module = "windrow.compat.data_forager.unzip_files"
    subprocess.run([sys.executable, "-m", module, "--input-files-path", str(folder)], check=True, timeout=120)
    assert (folder / "unzipped" / "a.jsonl").read_bytes() == line
    create_default_jsonl_indexer(folder)()
    dataset = JsonlDataset.create_from_index_on_filesystem(folder)
    assert [sample["text"] for sample in dataset] == ["plain", "zipped"]
    (folder / "a.jsonl.gz").write_bytes((folder / "a.jsonl.gz").read_bytes()[:-5])
    out = tmp_path / "out"
    broken = subprocess.run(
        [sys.executable, "-m", module, "--input-files-path", str(folder), "--output-path", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert broken.returncode != 0 and "a.jsonl.gz" in broken.stderr and not list(out.iterdir())


def test_a_generator_and_a_store_of_ones_own(tmp_path):
    class EveryOther:
        def prepare(self, text_file_path):
            self.path, self.number = text_file_path + ".even", 0
            self.file = open(self.path, "wb")

        def create_samples(self, text_line):
            self.number += 1
            if self.number % 2 == 0:
                return []
            self.file.write(text_line)
            return [SampleData(text_line, self.path)]

        def finish(self, is_last_file):
            self.file.close()

        def get_sample_schema(self):
            return None

    class ListStore:
        rows = None

        def init_store(self):
            self.rows = []

        def add_sample(self, file_location, byte_offset, num_bytes):
            self.rows.append((file_location, byte_offset, num_bytes))

        def close(self):
            self.closed = True

    write_lines(tmp_path / "a.jsonl", ["0", "1", "2"])
    path, store = str(tmp_path / "a.jsonl"), ListStore()
    FileTextLinesIndexer([path], store, EveryOther())()
    size = len('{"text": "0", "source": "made"}\n')
    assert store.closed and store.rows == [(path + ".even", 0, size), (path + ".even", size, size)]
    fs_store = IndexStore(tmp_path)
    FileTextLinesIndexer([path], fs_store, EveryOther())()
    assert [s["text"] for s in JsonlDataset(fs_store.load())] == ["0", "2"]
    with pytest.raises(ValueError):
        FileTextLinesIndexer([path], IndexStore(tmp_path), EveryOther())()


def test_a_file_that_is_given_twice_is_refused_where_samples_stand_in_it(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["one", "two"])
    write_lines(tmp_path / "b.jsonl", ["three"])
    a, b = tmp_path / "a.jsonl", str(tmp_path / "b.jsonl")
    for paths in ([str(a), b, str(a)], [str(a), a]):
        with pytest.raises(windrow.ConfigError, match=rf"input_file_paths\[{len(paths) - 1}\] is given before") as caught:
            FileTextLinesIndexer(paths, IndexStore(tmp_path))()
        assert caught.value.path == str(a) and "dict.fromkeys" in caught.value.hint
        assert visible(tmp_path) == ["a.jsonl", "b.jsonl"]

    class Appended:
        """Its samples stand in one file, whatever the inputs: as in the original, one may come again."""

        def prepare(self, text_file_path):
            self.file = open(tmp_path / "lines.bin", "ab")

        def create_samples(self, text_line):
            self.file.write(text_line)
            return [SampleData(text_line, str(tmp_path / "lines.bin"))]

        def finish(self, is_last_file):
            self.file.close()

        def get_sample_schema(self):
            return None

    store = IndexStore(tmp_path)
    FileTextLinesIndexer([str(a), b, str(a)], store, Appended())()
    assert [sample["text"] for sample in JsonlDataset(store.load())] == ["one", "two", "three", "one", "two"]


def test_an_index_is_visible_only_when_it_is_complete(tmp_path):
    store = IndexStore(tmp_path)
    store.init_store()
    store.add_sample(str(tmp_path / "a.jsonl"), 0, 3)
    assert not store.exists() and not (tmp_path / "index").exists()
    store.close()
    assert store.exists() and sorted(os.listdir(tmp_path)) == ["index"]
    dropped = IndexStore(tmp_path, index_data_folder="other")
    dropped.init_store()
    del dropped
    assert sorted(os.listdir(tmp_path)) == ["index"]


def test_errors_of_the_functions_come_with_their_place(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["fine", "wrong"])
    before = visible(tmp_path)

    def tokenize(text):
        if text == "wrong":
            raise ValueError("this text is wrong")
        return [1, 2]

    for text_func in (None, lambda line: json.loads(line)["text"]):
        for store in (None, type("OwnStore", (IndexStore,), {})(tmp_path)):
            indexer = create_tokenize_and_index_jsonl_text_func(
                tokenize, 0, str(tmp_path), sample_size=2, process_text_line_func=text_func, index_store=store
            )
            with pytest.raises(ValueError, match="this text is wrong") as caught:
                indexer()
            assert caught.value.path.endswith("a.jsonl") and caught.value.record == 1
            assert visible(tmp_path) == before


def test_another_place_for_the_samples(tmp_path):
    write_lines(tmp_path / "in" / "a.jsonl", ["abcdef"])
    write_lines(tmp_path / "in" / "b.jsonl", ["ghijkl"])
    paths = [str(tmp_path / "in" / name) for name in ("a.jsonl", "b.jsonl")]
    create_tokenize_and_index_jsonl_text_func(
        TOKENIZERS["ord"],
        0,
        input_file_paths=paths,
        output_base_path=str(tmp_path / "out"),
        base_output_path=str(tmp_path / "far" / "away"),
        sample_size=7,
    )()
    assert sorted(os.listdir(tmp_path / "far" / "away")) == ["a-tokenized-samples.bin", "b-tokenized-samples.bin"]
    dataset = TokensDataset.create_from_index_on_filesystem(tmp_path / "out", token_dtype=np.uint16)
    assert ["".join(map(chr, sample[:-1])) for sample in dataset] == ["abcdef", "ghijkl"]
    for missing in ({}, {"input_file_paths": paths}):
        with pytest.raises(ValueError):
            create_tokenize_and_index_jsonl_text_func(TOKENIZERS["ord"], 0, **missing)
    with pytest.raises(TypeError):
        create_tokenize_and_index_jsonl_text_func(TOKENIZERS["ord"], 0, str(tmp_path / "in"), no_such_option=1)
    with pytest.raises(ValueError):
        create_tokenize_and_index_with_aux_func(parse_parts, TOKENIZERS["ord"], 0, {}, str(tmp_path / "in"))


def test_aux_arrays_of_another_dtype(tmp_path):
    class Weights:
        dtype = np.dtype(np.float32)

        def generate(self, part_type, num_tokens, *, part_tokens=None):
            assert part_tokens is not None and len(part_tokens) == num_tokens
            return [0.5] * num_tokens

        def generate_for_eos(self):
            return 2.0

    (tmp_path / "a.jsonl").write_text(json.dumps({"parts": [{"type": "text", "text": "abc"}]}) + "\n")
    aux = {"weights": Weights(), "a_mask": LossMaskGenerator()}
    create_tokenize_and_index_with_aux_func(
        parse_parts, TOKENIZERS["ord"], 9, aux, input_base_path=str(tmp_path), sample_size=4
    )()
    dataset = TokensWithAuxDataset.create_from_index_on_filesystem(str(tmp_path))
    assert plain(dataset[0]) == {"tokens": [97, 98, 99, 9], "a_mask": [0] * 4, "weights": [0.5, 0.5, 0.5, 2.0]}
    assert list(dataset[0]) == ["tokens", "a_mask", "weights"]
    batch = next(iter(DataLoader(dataset, batch_size=1)))
    assert batch["tokens"].shape == batch["weights"].shape == (1, 4)


@pytest.mark.parametrize(
    ("values", "dtype", "says"),
    [
        ([1e10, 16777217], "float16", r"found 10000000000.0 in w, which would become inf; expected numbers that float16 holds"),
        ([1e10, 16777217], "float32", r"found 16777217 in w, which would become 16777216.0"),
        ((16777217, 0.5), ">f4", r"found 16777217 in w"),
        ([-2049], "float16", r"found -2049 in w, which would become -2048.0"),
        ([70000], "float16", r"found 70000 in w, which would become inf"),
        (np.array([16777217]), "float32", r"(?s)found 16777217 in w.*the dtype np.float64"),
        (np.array([2**64 - 1], "uint64"), "float64", r"(?s)found 18446744073709551615 in w.*the dtype np.uint64"),
        ([2**53 + 1, 0.5], "float64", r"(?s)found 9007199254740993 in w.*the dtype np.int64"),
        (np.array([1e39]), "float32", r"found 1e\+39 in w, which would become inf"),
    ],
)
def test_numbers_that_a_floating_point_dtype_would_change_are_refused(values, dtype, says):
    with pytest.raises(windrow.ConfigError, match=says):
        exact("w", values, np.dtype(dtype))


def test_numbers_that_a_floating_point_dtype_holds_are_kept():
    for values, dtype in (
        ([-16777216, 16777216, 16777218], "float32"),
        ([2**63, -1, True], "float64"),
        ([0.1, 1e30, float("inf"), -float("inf")], "float32"),
        (np.array([65504, -2048]), "float16"),
        ([], "float16"),
    ):
        np.testing.assert_array_equal(exact("w", values, np.dtype(dtype)), np.array(values, dtype))


def test_a_weight_that_its_dtype_does_not_hold_is_named_with_its_line(tmp_path):
    class Weights:
        dtype = np.dtype(np.float16)

        def generate(self, part_type, num_tokens, *, part_tokens=None):
            return [70000.0 if 98 in part_tokens else 0.1] * num_tokens

        def generate_for_eos(self):
            return 1

    lines = [json.dumps({"parts": [{"type": "text", "text": text}]}) + "\n" for text in ("a", "b")]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    indexer = create_tokenize_and_index_with_aux_func(
        parse_parts, TOKENIZERS["ord"], 9, {"weights": Weights()}, input_base_path=str(tmp_path), sample_size=2
    )
    with pytest.raises(ValueError, match="found 70000.0 in weights, which would become inf") as caught:
        indexer()
    assert caught.value.record == 1 and visible(tmp_path) == ["a.jsonl"]


def test_ids_are_written_in_the_byte_order_of_their_dtype(tmp_path):
    write_lines(tmp_path / "in" / "a.jsonl", ["ab", "cde"])
    dtype = np.dtype(">u2")
    for size, expected in ((2, [[97, 98], [7, 99], [100, 101]]), (None, [[97, 98], [99, 100, 101]])):
        out = tmp_path / f"out-{size}"
        create_tokenize_and_index_jsonl_text_func(
            TOKENIZERS["ord"], 7, tmp_path / "in", output_base_path=out, sample_size=size, token_dtype=dtype
        )()
        (samples,) = (out / "tokenized-samples").iterdir()
        assert samples.read_bytes() == b"".join(np.array(ids, dtype).tobytes() for ids in expected)
        dataset = TokensDataset.create_from_index_on_filesystem(out, token_dtype=dtype)
        assert [sample.tolist() for sample in dataset] == expected
        assert [batch[0].tolist() for batch in DataLoader(dataset)] == expected

    class Where(LossMaskGenerator):
        dtype = np.dtype(">i4")

    create_tokenize_and_index_with_aux_func(
        lambda line: [Part("prompt", json.loads(line)["text"])], TOKENIZERS["ord"], 7, {"mask": Where()},
        tmp_path / "in", output_base_path=tmp_path / "aux", sample_size=3, token_dtype=dtype,
    )()
    dataset = TokensWithAuxDataset.create_from_index_on_filesystem(tmp_path / "aux")
    assert [(s["tokens"].tolist(), s["mask"].tolist()) for s in dataset] == [
        ([97, 98, 7], [1, 1, 0]), ([99, 100, 101], [1, 1, 1])
    ]
    assert next(iter(DataLoader(dataset)))["mask"].tolist() == [[1, 1, 0]]


def test_the_examples_in_the_docstrings_run():
    package = importlib.import_module("windrow.compat")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, "windrow.compat.")]
    ran = sum(doctest.testmod(importlib.import_module(name), raise_on_error=True).attempted for name in names)
    assert ran > 20


@pytest.mark.parametrize("sample_size", [None, 0, 2.5])
def test_arrays_beside_tokens_need_samples_of_one_size(tmp_path: Path, sample_size: object) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(windrow.ConfigError, match="sample_size is .*, expected a whole number"):
        create_tokenize_and_index_with_aux_func(
            process_parts_func=lambda line: [],
            tokenizer_func=lambda text: [],
            eos_idx=0,
            aux_generators={"mask": LossMaskGenerator({})},
            input_base_path=str(tmp_path),
            output_base_path=str(tmp_path / "out"),
            sample_size=sample_size,
        )
