"""`wr.write` and `wr.convert`: what is written in a format is what is read from it, and nothing is written halfway."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr

NAMES = {"npz": "out.npz", "jsonl": "out.jsonl", "tokens": "out.bin", "npy": "out.npy", "flat-tokens": "out/train"}
INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
FLOATS = ["float16", "float32", "float64"]
DTYPES = {
    "shards": [*INTEGERS, *FLOATS],
    "npy": [*INTEGERS, *FLOATS],
    "npz": [*INTEGERS, *FLOATS],
    "jsonl": [*INTEGERS, *FLOATS],
    "tokens": ["uint8", "uint16", "uint32", "int32", "int64"],
    "forager": INTEGERS,
    "megatron": ["uint8", "int8", "int16", "int32", "int64", "uint16", "float32", "float64"],
    "codes": ["uint8", "int8", "int16", "int32", "int64"],
    "flat-tokens": ["uint32"],
}
EVERY = list(DTYPES)
IDS = ["tokens", "forager", "megatron", "flat-tokens"]


def place(folder: Path, to: str) -> Path:
    return folder / NAMES.get(to, "out")


def written(folder: Path, records: Any, to: str, **options: Any) -> wr.Dataset:
    out = place(folder, to)
    wr.write(out, records, to=to, **options)  # type: ignore[arg-type]
    return wr.open(out.with_suffix(".idx") if to == "megatron" else out)


@pytest.mark.parametrize(("to", "dtype"), [(to, dtype) for to in EVERY for dtype in DTYPES[to]])
def test_what_is_written_is_what_is_read(tmp_path: Path, to: str, dtype: str) -> None:
    lengths = [4, 4, 4] if to == "npy" else [3, 1, 7]
    records = [np.arange(n, dtype=dtype) + np.dtype(dtype).type(i) for i, n in enumerate(lengths)]
    if to == "codes":
        records = [np.stack([record, record], 1) for record in records]
    for given in (records, [record.astype(record.dtype.newbyteorder(">")) for record in records]):
        found = written(tmp_path, given, to, dtype=dtype, overwrite=True)
        expected = [np.concatenate(records)] if to == "tokens" else records
        assert len(found) == len(expected)
        for read, record in zip(found, expected, strict=True):
            # JSON has whole numbers and fractions, and keeps no dtype.
            assert read.dtype == record.dtype or to == "jsonl"
            assert np.array_equal(read, record)
        assert wr.verify(found.path)["problems"] == []


@pytest.mark.parametrize("to", ["shards", "npy", "npz", "jsonl", "codes"])
def test_records_of_channels(tmp_path: Path, to: str) -> None:
    records = [np.arange(6).reshape(3, 2) + i for i in range(4)]
    found = written(tmp_path, records, to)
    assert all(np.array_equal(a, b) for a, b in zip(found, records, strict=True))


def test_records_are_anything_that_is_numbers(tmp_path: Path) -> None:
    class View:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([9], dtype)

    records = [[1, 2], (3,), range(4, 6), np.arange(6, 12)[::3], torch.tensor([7]), View(), (), {"sequence": [8]}]
    expected = [[1, 2], [3], [4, 5], [6, 9], [7], [9], [], [8]]
    for to in ("shards", "npz", "jsonl", "forager", "megatron", "flat-tokens"):
        (tmp_path / to).mkdir()
        assert [record.tolist() for record in written(tmp_path / to, iter(records), to)] == expected, to
    rows = np.arange(12, dtype=np.uint16).reshape(3, 4)
    for number, given in enumerate((rows, torch.tensor(rows.tolist()), rows.tolist())):
        (tmp_path / str(number)).mkdir()
        assert np.array_equal(list(written(tmp_path / str(number), given, "npy")), rows)


@pytest.mark.parametrize("to", ["shards", "jsonl", "codes"])
def test_metadata_comes_back(tmp_path: Path, to: str) -> None:
    records = [{"sequence": [[i, i]], "text": f"n{i}", "nested": {"a": [1, None]}} for i in range(3)]
    found = written(tmp_path, records, to)
    for i in range(3):
        assert {"text": f"n{i}", "nested": {"a": [1, None]}}.items() <= found.extras(i).items()
    with pytest.raises(wr.ConfigError, match='a dict without "sequence"') as caught:
        wr.write(tmp_path / "no", [{"values": [1]}], to="shards")
    assert (caught.value.record, caught.value.field) == (0, "sequence")


@pytest.mark.parametrize(
    ("first", "to", "dtype"),
    [
        (np.array([1, 2], np.int16), "shards", "int16"),
        (np.array([1, 2], ">f8"), "npy", "float64"),
        (np.array([True, False]), "npy", "uint8"),
        (torch.tensor([0.5]), "shards", "float32"),
        ([0.5], "shards", "float32"),
        ([0.5], "megatron", "float32"),
        ([1, 2], "shards", "int64"),
        ([1, 2], "npy", "int64"),
        ([2**63], "npy", "uint64"),
        ([1, 2], "tokens", "uint32"),
        ([1, 2], "forager", "uint32"),
        ([1, 2], "megatron", "int32"),
        (np.array([1, 2]), "tokens", "int64"),
        (np.array([1, 2], np.uint8), "tokens", "uint8"),
        (np.array([1, 2]), "flat-tokens", "uint32"),
        ([1, 2], "codes", "int16"),
        (np.array([1, 2]), "codes", "int16"),
    ],
)
def test_the_first_record_says_the_dtype(tmp_path: Path, first: Any, to: str, dtype: str) -> None:
    found = written(tmp_path, [first, first], to)
    assert found[0].dtype == np.dtype(dtype)


def test_a_list_of_no_numbers_says_no_dtype(tmp_path: Path) -> None:
    found = written(tmp_path, [[], {"sequence": [], "id": "x"}, [2**40], []], "shards")
    assert [record.tolist() for record in found] == [[], [], [2**40], []]
    assert found[0].dtype == np.int64 and found.extras(1) == {"id": "x"}
    for number, (to, dtype) in enumerate([("shards", "float32"), ("npz", "float32"), ("forager", "uint32")]):
        (tmp_path / str(number)).mkdir()
        found = written(tmp_path / str(number), [[], []], to)
        assert [record.dtype for record in found] == [np.dtype(dtype)] * 2
    with pytest.raises(wr.ConfigError, match="among records"):
        wr.write(tmp_path / "mixed", [[], [[1, 2]]], to="shards")


@pytest.mark.parametrize(
    ("records", "options", "says"),
    [
        ([np.array([1], np.uint16), [70_000]], {}, "number at value 0 does not fit uint16"),
        ([[1], [2, -1]], {"dtype": "uint32"}, "number at value 1 does not fit uint32"),
        ([[1], [2, 0.5]], {}, "the number 0.5 at value 1 does not fit int64"),
        ([[1], [2.0, float("nan")]], {"dtype": "uint64"}, "the number NaN at value 1 does not fit uint64"),
        ([[1], [[1, 2]]], {}, r"a record \[T, 2\] among records \[T\]"),
        ([[[1, 2]], [[1]]], {}, r"a record \[T, 1\] among records \[T, 2\]"),
        ([[1], [[[1]]]], {}, r"a record of shape \[1, 1, 1\]"),
        ([[0.5], [1e300]], {}, "number at value 0 does not fit float32"),
        ([[0.5], [2**24 + 1]], {}, "number at value 0 does not fit float32"),
        ([[1], [1 + 2j]], {}, "a record of complex128; expected numbers"),
        ([[1], ["1"]], {}, "expected numbers"),
        ([[1], [None]], {}, "expected numbers"),
        ([[1], np.ma.array([1, 2], mask=[False, True])], {}, "masked"),
        ([[1], np.zeros((3, 0))], {}, r"a record of shape \[3, 0\]"),
        ([[1], 5], {}, r"a record of shape \[\]"),
        ([[1], np.zeros(2, [("a", "i4")])], {}, "expected numbers"),
    ],
)
@pytest.mark.parametrize("to", ["shards", "npz", "jsonl"])
def test_a_later_record_that_does_not_fit_is_named(tmp_path: Path, to: str, records: Any, options: Any, says: str) -> None:
    with pytest.raises(wr.ConfigError, match=says) as caught:
        wr.write(place(tmp_path, to), records, to=to, **options)  # type: ignore[arg-type]
    assert caught.value.record == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", IDS)
@pytest.mark.parametrize(
    ("wrong", "options", "says"),
    [
        ([0.5], {}, "a record of float64 values; .* holds token IDs"),
        ([2.0], {}, "a record of float64 values; .* holds token IDs"),
        ([True], {}, "a record of bool values; .* holds token IDs"),
        ([[1]], {}, "among records"),
        ([-(2**40)], {}, "does not fit"),
        ([100], {"vocab_size": 100}, "id 100 at value 0 is outside the vocabulary of 100 IDs"),
    ],
)
def test_what_is_no_token_id_is_named(tmp_path: Path, to: str, wrong: Any, options: Any, says: str) -> None:
    with pytest.raises(wr.ConfigError, match=says) as caught:
        wr.write(place(tmp_path, to), [[1], wrong], to=to, **options)  # type: ignore[arg-type]
    assert caught.value.record == 1
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("to", IDS)
def test_an_eos_token_ends_every_record(tmp_path: Path, to: str) -> None:
    found = written(tmp_path, [[5, 6], [], [7, 0]], to, eos=0, vocab_size=8)
    whole = [5, 6, 0, 0, 7, 0, 0]
    assert [id for record in found for id in record.tolist()] == whole
    assert (found.info()["vocab_size"], found.info()["eos"]) == (8, 0)
    with pytest.raises(wr.ConfigError):
        wr.write(tmp_path / "negative", [[1]], to=to, eos=-(2**40))  # type: ignore[arg-type]


def test_options_of_a_format(tmp_path: Path) -> None:
    series = [np.arange(5.0), np.arange(3.0)]
    wr.write(tmp_path / "s", series, to="shards", max_shard_bytes=np.int64(16), normalize=np.bool_(True))  # type: ignore[arg-type]
    meta = json.loads((tmp_path / "s" / "meta.json").read_text())
    assert len(meta["files"]) == 2 and "mean" in meta["scales"][0] and meta["dtype"] == "float32"
    np.testing.assert_allclose(wr.open(tmp_path / "s")[0], series[0], atol=1e-6)
    chunks: dict[str, Any] = {"zarr_format": 3, "tokens_chunk_size": 8, "seq_starts_chunk_size": 4, "chunks_per_shard": 2}
    wr.write(tmp_path / "z" / "train", [range(10)], to="flat-tokens", **chunks)
    about = json.loads((tmp_path / "z" / "train" / "encoded_tokens" / "zarr.json").read_text())
    assert about["chunk_grid"]["configuration"]["chunk_shape"] == [16]
    # None is what is not given.
    wr.write(tmp_path / "n.npy", [[1]], to="npy", normalize=None)


@pytest.mark.parametrize(
    ("to", "options", "says"),
    [
        ("npy", {"max_shard_bytes": 1 << 20}, "max_shard_bytes is not an option of npy"),
        ("tokens", {"normalize": True}, "normalize is not an option of tokens"),
        ("shards", {"zarr_format": 3}, "zarr_format is not an option of shards"),
        ("npz", {"append": True}, "append is not an option of npz"),
        ("shards", {"xyzzy": 1}, "xyzzy is not an option of shards"),
        ("shards", {"max_shard_bytes": -1}, "max_shard_bytes is -1, expected a number of bytes"),
        ("shards", {"max_shard_bytes": 1.5}, "max_shard_bytes is 1.5, expected a number of bytes"),
        ("shards", {"max_shard_bytes": True}, "max_shard_bytes is true, expected a number of bytes"),
        ("shards", {"normalize": 1}, "normalize is 1, expected true or false"),
        ("orc", {}, '"orc" is not a format'),
        ("gluonts", {}, '"gluonts" is only read'),
        ("parquet", {"compression": "lzma"}, 'compression is "lzma", expected zstd'),
        ("yaml", {}, '"yaml" is only read'),
    ],
)
def test_an_option_that_a_format_does_not_have(tmp_path: Path, to: str, options: dict[str, Any], says: str) -> None:
    out = place(tmp_path, to)
    ds = tokens(tmp_path / "in")
    for act, given in ((wr.write, (out, [[1]])), (wr.convert, (ds, out))):
        with pytest.raises((wr.ConfigError, TypeError), match=says) as caught:
            act(*given, to=to, **options)  # type: ignore[arg-type]
        # `convert` has no append.
        assert getattr(caught.value, "field", "append") == next(iter(options), "to")
        assert not out.exists()
    with pytest.raises(wr.ConfigError) as caught:
        wr.write(out, [[1]], to="shards", xyzzy=1)
    assert caught.value.hint == "options of shards: max_shard_bytes, normalize"


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("overwite", "did you mean 'overwrite'?"),
        ("normalise", "did you mean 'normalize'?"),
        ("max_shard_byte", "did you mean 'max_shard_bytes'?"),
        ("eos_token_id", "use eos="),
    ],
)
def test_a_name_that_is_nearly_one_is_told(tmp_path: Path, option: str, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        wr.write(tmp_path / "s", [[1]], to="shards", **{option: 1})  # type: ignore[arg-type]
    assert str(caught.value) == f"write() got an unexpected keyword argument '{option}'; {told}"
    with pytest.raises(TypeError, match=r"convert\(\) got .*'overwite'; did you mean 'overwrite'\?"):
        wr.convert(tokens(tmp_path / "in"), tmp_path / "s", to="shards", overwite=True)
    with pytest.raises(TypeError, match="normalize is a number, a text, True or False, not list"):
        wr.write(tmp_path / "s", [[1]], to="shards", normalize=[])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="to"):
        wr.write(tmp_path / "s", [[1]])  # type: ignore[call-arg]


@pytest.mark.parametrize("to", EVERY)
def test_only_flat_tokens_are_appended_to(tmp_path: Path, to: str) -> None:
    if to != "flat-tokens":
        with pytest.raises(wr.ConfigError, match="append is not an option of"):
            written(tmp_path, [[1]], to, append=True)
        return
    found = [written(tmp_path, records, to, append=True) for records in ([[1], [2, 3]], np.array([[4, 5]]))][-1]
    found = written(tmp_path, tokens(tmp_path / "in"), to, append=True)
    assert [record.tolist() for record in found] == [[1], [2, 3], [4, 5], list(range(20))]
    with pytest.raises(wr.ConfigError, match="append and overwrite are both set"):
        written(tmp_path, [[1]], to, append=True, overwrite=True)


@pytest.mark.parametrize("to", EVERY)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing_or_what_was_there(tmp_path: Path, to: str, error: type[BaseException]) -> None:
    def broken() -> Iterator[list[int]]:
        yield [1]
        yield [2]
        raise error("stop")

    folder = tmp_path / "x"
    folder.mkdir()
    with pytest.raises(error, match="stop"):
        written(folder, broken(), to)
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    written(folder, [[1], [3]], to)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(wr.ExistsError):
        written(folder, [[2]], to)
    with pytest.raises(error, match="stop"):
        written(folder, broken(), to, overwrite=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert written(folder, [[2], [4]], to, overwrite=True)[0][0] == 2


FOREVER = """
import sys
import windrow as wr

def told(now):
    print("go", flush=True)

def forever():
    while True:
        yield from [[1, 2, 3]] * 1000

wr.write(sys.argv[1], forever(), to="shards", progress=told)
"""


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", FOREVER, str(tmp_path / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"go\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and b"KeyboardInterrupt" in errors
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[dict[str, int]] = []
    wr.write(tmp_path / "s", ([i] for i in range(10)), to="shards", progress=calls.append)
    assert calls[0]["records"] == 1 and calls[0]["total_bytes"] == 0
    assert calls[-1] == {"done_bytes": 80, "total_bytes": 80, "records": 10}
    wr.write(tmp_path / "s", [[1]], to="shards", progress=True, overwrite=True)
    assert "100%" in capsys.readouterr().err

    def failing(now: dict[str, int]) -> None:
        raise ArithmeticError("no more")

    with pytest.raises(ArithmeticError, match="no more"):
        wr.write(tmp_path / "t", [[1]], to="shards", progress=failing)
    assert not (tmp_path / "t").exists()


def tokens(folder: Path) -> wr.Dataset:
    folder.mkdir(exist_ok=True)
    np.arange(20, dtype=np.uint16).tofile(folder / "t.bin")
    return wr.open(folder / "t.bin", dtype="uint16")


@pytest.mark.parametrize("act", [wr.write, lambda out, ds, **options: wr.convert(ds, out, **options)])
@pytest.mark.parametrize("to", EVERY)
def test_a_data_set_is_written_as_it_was_opened(tmp_path: Path, act: Callable[..., Any], to: str) -> None:
    ds = tokens(tmp_path / "in")
    whole = list(range(20))
    cases = {"whole": (ds, [whole]), "documents": (wr.open(ds.path, dtype="uint16", document_eos=9), [whole[:10], whole[10:]])}
    cases["part"] = (cases["documents"][0].split(0.5, seed=0)[0], None)  # type: ignore[assignment]
    for name, (data, expected) in cases.items():
        (tmp_path / name).mkdir()
        out = place(tmp_path / name, to)
        report = act(out, data, to=to)
        found = wr.open(out.with_suffix(".idx") if to == "megatron" else out)
        assert report["records"] == len(data)
        expected = expected or [record.tolist() for record in data]
        assert [id for record in found for id in record.ravel().tolist()] == [id for record in expected for id in record]
        assert len(found) == (1 if to == "tokens" else len(data))


def test_what_is_beside_the_records_of_a_data_set_comes_along(tmp_path: Path) -> None:
    wr.write(tmp_path / "a.jsonl", [{"sequence": [0.5, 1.5], "id": 7}], to="jsonl")
    ds = wr.open(tmp_path / "a.jsonl")
    wr.write(tmp_path / "s", ds, to="shards")
    wr.convert(tmp_path / "a.jsonl", tmp_path / "t", to="shards")
    for name in ("s", "t"):
        found = wr.open(tmp_path / name)
        assert found[0].tolist() == [0.5, 1.5] and found.extras(0) == {"id": 7} and found[0].dtype == ds[0].dtype


def test_what_is_no_data_is_told_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(wr.ConfigError, match="the records are a path") as caught:
        wr.write(tmp_path / "s", str(tmp_path), to="shards")
    assert "wr.convert" in str(caught.value.hint)
    with pytest.raises(TypeError, match=r"expected a Dataset or a path, found list; wr.write"):
        wr.convert([[1]], tmp_path / "s", to="shards")  # type: ignore[arg-type]
    with pytest.raises(wr.NotFoundError):
        wr.convert(tmp_path / "nothing", tmp_path / "s", to="shards")
    with pytest.raises(TypeError):
        wr.write(tmp_path / "s", 5, to="shards")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
