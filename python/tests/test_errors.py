"""Errors: their classes, what they say apart from the message, and that they pass through pickles."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.compat.data_forager.datasets.jsonl import JsonRecordError
from windrow.failure import failure


def test_every_class_is_a_windrow_error_and_what_callers_already_catch() -> None:
    expected = {
        wr.NotFoundError: FileNotFoundError,
        wr.OutOfRangeError: IndexError,
        wr.UnrecognisedError: ValueError,
        wr.CorruptError: ValueError,
        wr.StaleError: ValueError,
        wr.MismatchError: ValueError,
        wr.ConfigError: ValueError,
        wr.UnsupportedError: ValueError,
        wr.ExistsError: FileExistsError,
        wr.IoError: OSError,
        wr.OutOfMemoryError: MemoryError,
    }
    kinds = "not_found out_of_range unrecognised corrupt stale mismatch config unsupported exists io memory".split()
    for (cls, base), kind in zip(expected.items(), kinds, strict=True):
        assert issubclass(cls, wr.WindrowError)
        assert issubclass(cls, base)
        assert cls.kind == cls("made again from its text").kind == failure(cls, "raised from Python").kind == kind
    assert wr.WindrowError("of none").kind is None
    with pytest.raises(wr.ConfigError) as found:
        wr.inverse({})
    assert (found.value.kind, found.value.hint) == ("config", 'cut its windows with fields=["loc", "scale"]')


def test_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as found:
        wr.open(tmp_path / "nope")
    error = found.value
    assert isinstance(error, wr.NotFoundError)
    assert (error.kind, error.path) == ("not_found", str(tmp_path / "nope"))


def test_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "x.xyz").write_bytes(b"\x00\x01 what is this")
    with pytest.raises(wr.UnrecognisedError) as found:
        wr.open(tmp_path / "x.xyz")
    assert found.value.hint


def test_an_odd_size(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"123")
    with pytest.raises(wr.CorruptError) as found:
        wr.open(tmp_path / "x.bin", format="tokens", dtype="uint16")
    assert found.value.path == str(tmp_path / "x.bin")


def test_an_id_beyond_the_vocabulary(tmp_path: Path) -> None:
    np.array([1, 2, 500, 3], dtype=np.uint16).tofile(tmp_path / "x.bin")
    with pytest.raises(wr.CorruptError, match="500"):
        wr.open(tmp_path / "x.bin", format="tokens", dtype="uint16", vocab_size=100)
    assert len(wr.open(tmp_path / "x.bin", format="tokens", dtype="uint16", vocab_size=501)) == 1


def test_an_unknown_format_and_word(tokens: Path) -> None:
    with pytest.raises(wr.ConfigError, match="no such"):
        wr.open(tokens, format="no such")
    with pytest.raises(wr.ConfigError) as found:
        wr.open(tokens, io="magic")  # type: ignore[arg-type]
    assert "pread" in (found.value.hint or "")


def test_data_that_changed_after_indexing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n')
    wr.index(tmp_path)
    path.write_text('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(wr.StaleError) as found:
        wr.open(tmp_path)
    assert found.value.path is not None
    assert "overwrite" in (found.value.hint or "")


def test_the_message_says_what_where_and_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": oops}\n')
    with pytest.raises(wr.CorruptError) as found:
        wr.open(tmp_path / "a.jsonl")[1]
    error = found.value
    what, at, hint = str(error).splitlines()
    assert "expected a value" in what
    assert at == f"  at: {tmp_path / 'a.jsonl'} (record 1, byte 15)"
    assert hint == f"  hint: {error.hint}"
    assert (error.record, error.byte, error.field) == (1, 15, None)


def test_errors_pickle(tmp_path: Path) -> None:
    for make in (lambda: wr.open(tmp_path / "nope"), lambda: wr.open(tmp_path / "nope", io="x")):  # type: ignore[arg-type]
        with pytest.raises(wr.WindrowError) as found:
            make()
        again = pickle.loads(pickle.dumps(found.value))
        assert type(again) is type(found.value)
        assert (str(again), again.kind, again.path, again.hint) == (
            str(found.value),
            found.value.kind,
            found.value.path,
            found.value.hint,
        )


def test_a_workers_error_reaches_the_parent(tmp_path: Path, run_script: Callable[..., str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": oops}\n')
    code = """
        import sys
        import torch
        import windrow as wr

        if __name__ == "__main__":
            batches = torch.utils.data.DataLoader(wr.open(sys.argv[1]), num_workers=1, collate_fn=list, timeout=60)
            try:
                list(batches)
            except wr.CorruptError as e:
                # torch makes it again from its text: the class gives the kind, the text the rest.
                print(type(e).__name__, e.kind, e.path, "record 1, byte 15" in str(e), "hint: " in str(e))
    """
    assert run_script(code, tmp_path / "a.jsonl", limit=120) == "CorruptError corrupt None True True\n"


def test_a_record_that_is_not_json_is_made_again_from_its_text() -> None:
    # As torch does with a worker's error; of one that cannot be made so, it makes a RuntimeError.
    error = JsonRecordError("the record is not JSON\n  at: a.jsonl (record 1)")
    assert (error.kind, str(error)) == ("corrupt", "the record is not JSON\n  at: a.jsonl (record 1)")


def test_memory_that_is_not_there(dataset: wr.Dataset) -> None:
    with pytest.raises(MemoryError, match="no memory for 400 rows") as found:
        dataset.records(1 << 36).batch([0] * 400)
    assert isinstance(found.value, wr.OutOfMemoryError)
    assert (found.value.kind, found.value.hint) == ("memory", "choose a smaller batch size or length")
    with pytest.raises(wr.OutOfMemoryError, match="no memory for 68719476737 tokens"):
        wr.create_dummy_data(10, (1 << 36) + 1)
    assert isinstance(pickle.loads(pickle.dumps(found.value)), wr.OutOfMemoryError)


@pytest.mark.parametrize("num_threads", [0, 2])
def test_a_batch_that_no_memory_holds_does_not_end_the_process(view: wr.View, num_threads: int) -> None:
    options: dict[str, Any] = {"rank": 0, "world_size": 1, "num_threads": num_threads}
    endless = wr.Loader(wr.mix({"a": (view, 1)}, stop="never"), 2**60, **options)
    for loader in (endless, wr.Loader(view, 2**60, last="repeat", **options)):
        with pytest.raises(MemoryError, match="no memory for a batch of 1152921504606846976 rows") as found:
            next(loader)
        assert isinstance(found.value, wr.OutOfMemoryError)
        assert found.value.hint == "choose a smaller batch size"


LITTLE_MEMORY = """
import os, resource, sys
import numpy as np
import windrow as wr

os.truncate(os.open(sys.argv[1] + "/ids.bin", os.O_CREAT | os.O_RDWR), 8 << 30)
data = wr.open(sys.argv[1] + "/ids.bin", dtype="uint32", io="pread")
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for act in (lambda: data[0], lambda: wr.create_dummy_data(10, 2 << 30), lambda: data.crop(2 << 30)[0]):
    try:
        act()
    except wr.OutOfMemoryError as e:
        print(str(e).splitlines()[0])
"""


def test_memory_that_is_refused_does_not_end_the_process(
    run_script: Callable[..., str], tmp_path: Path
) -> None:
    assert run_script(LITTLE_MEMORY, tmp_path).splitlines() == [
        "no memory for 8589934592 bytes",
        "no memory for 2147483648 values of 4 bytes",
        "no memory for 1 rows of 8589934592 bytes of values",
    ]


def test_numbers_beyond_64_bits_name_their_argument(dataset: wr.Dataset, tmp_path: Path) -> None:
    path, out = dataset.path, tmp_path / "out"
    for number in (1 << 63, -(1 << 63) - 1, 1 << 200):
        for name, act in (
            ("pad_value", lambda value: dataset.records(4, pad_value=value)),
            ("pad_value", lambda value: dataset.bins(4, pad_value=value)),
            ("eos", lambda value: dataset.pack(4, eos=value)),
            ("document_eos", lambda value: wr.open(path, dtype="uint16", document_eos=value)),
            ("eos", lambda value: wr.write(out, [[1]], to="tokens", eos=value)),
            ("eos", lambda value: wr.tokenize(path, out, tokenizer="bytes", eos=value)),
            ("bos", lambda value: wr.delay([[1]], [0], bos=value)),
            ("eos", lambda value: wr.delay([[1]], [0], eos=value)),
        ):
            with pytest.raises(wr.ConfigError, match=f"{name}={number}: expected a number") as found:
                act(number)
            assert found.value.field == name
    for act in (lambda: dataset.records(1 << 200), lambda: dataset.crop(4, seed=-(1 << 200))):
        with pytest.raises(wr.ConfigError, match=r"\d{60} where a number from 0 to 2\^64 - 1 is needed"):
            act()
    with pytest.raises(wr.ConfigError, match="zarr_format 300, expected 2 or 3"):
        wr.write(out, [[1]], to="flat-tokens", zarr_format=300)
    with pytest.raises(wr.ConfigError, match="sample_rate=4294967296"):
        wr.write_audio(out, [0.0], 1 << 32)
    for rate in (0, 10**9):
        with pytest.raises(wr.ConfigError, match=f"a sample rate of {rate} Hz"):
            wr.write_audio(out, [0.0], rate)
    with pytest.raises(wr.ConfigError, match="sample 1 of channel 0 is NaN"):
        wr.write_audio(out, [0.0, float("nan")], 8000)


@pytest.mark.parametrize("value", [True, False, np.bool_(True)])
def test_a_bool_is_no_id(dataset: wr.Dataset, tmp_path: Path, value: Any) -> None:
    path, out = dataset.path, tmp_path / "out"
    for act in (
        lambda: dataset.records(4, pad_value=value),
        lambda: dataset.pack(4, eos=value),
        lambda: wr.open(path, dtype="uint16", document_eos=value),
        lambda: wr.write(out, [[1]], to="tokens", eos=value),
        lambda: wr.tokenize(path, out, tokenizer="bytes", eos=value),
        lambda: wr.delay([[1]], [0], bos=value),
    ):
        with pytest.raises(TypeError, match="expected a token ID, a whole number, found the bool"):
            act()
    assert dataset.pack(4, eos=np.int64(3))


def test_one_name_is_no_list_of_names(dataset: wr.Dataset, tmp_path: Path) -> None:
    (tmp_path / "pages.jsonl").write_text('{"text": "one"}\n')
    name: Any = "text"
    for act in (
        lambda: wr.open(tmp_path / "pages.jsonl", columns=name),
        lambda: wr.open(tmp_path / "pages.jsonl").rows(name),
        lambda: dataset.windows(4, fields=name),
        lambda: dataset.pack(4, fields=name),
    ):
        with pytest.raises(TypeError, match=r'expected a list of names, found the str "text": write \["text"\]'):
            act()


def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    np.arange(100, dtype=np.uint16).tofile(folder / "a.bin")
    data = wr.open(folder / "a.bin", dtype="uint16")
    assert data.path == str(folder / "a.bin")
    view = data.pack(8)
    mixed = wr.mix({"a": (view, 1.0)})
    for thing in (data, view, mixed):
        assert len(pickle.loads(pickle.dumps(thing))) == len(thing)
    loader = wr.Loader(view, 2)
    assert wr.trace(loader.recipe(), 0) == wr.trace(loader, 0)
    unnamed = tmp_path / os.fsdecode(b"\xff.bin")
    with pytest.raises(wr.NotFoundError):
        wr.open(unnamed)
    (folder / "a.bin").rename(unnamed)
    with pytest.raises(wr.UnsupportedError, match="not UTF-8") as found:
        wr.open(unnamed, dtype="uint16")
    assert found.value.hint == "rename the file"


def test_a_path_that_is_no_plan_is_windrows_error(tmp_path: Path) -> None:
    with pytest.raises(wr.NotFoundError, match="cannot read the plan"):
        wr.trace(tmp_path / "plan.json", 0)
    with pytest.raises(wr.IoError, match=r"loader\.recipe\(\)"):
        wr.find(tmp_path, 0)
    # Nobody writes into it.
    os.mkfifo(tmp_path / "pipe")
    for read in (wr.trace, wr.find):
        with pytest.raises(wr.UnsupportedError, match="found a pipe"):
            read(tmp_path / "pipe", 0)
    (tmp_path / "plan.json").write_text('{"version": 1, "plan": "", "seed": 0, "epoch": 0, "samples": 0}')
    with pytest.raises(wr.CorruptError, match="this is not a plan") as caught:
        wr.trace(tmp_path / "plan.json", 0)
    assert caught.value.path == str(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("sequence", "dtype"),
    [([1.5], "int32"), (np.array([70_000]), "uint16"), (np.array([-1]), "uint8"), ([float("nan")], "int64"),
     (np.array([1e300]), "float32"), (np.array([70_000]), "float16"), ([2**24 + 1], "float32")],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_shards_hold_no_other_number_than_was_given(tmp_path: Path, sequence: object, dtype: str) -> None:
    with pytest.raises(wr.ConfigError, match=f"does not fit {dtype}") as caught:
        wr.write(tmp_path / "s", [[1], sequence], to="shards", dtype=dtype)
    assert caught.value.record == 1
    assert not (tmp_path / "s").exists()


def test_what_fits_is_written_as_shards(tmp_path: Path) -> None:
    wr.write(tmp_path / "f", [[0.1, float("inf"), float("-inf"), float("nan")], [2**24]], to="shards")
    expected = np.array([0.1, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(wr.open(tmp_path / "f")[0], expected)
    assert wr.open(tmp_path / "f")[1].tolist() == [2**24]
    wr.write(tmp_path / "i", [[1.0, 2.0], [True]], to="shards", dtype="int16")
    assert wr.open(tmp_path / "i")[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    "sequence",
    [np.array([1 + 2j]), np.array(["2020-01-01"], "M8[D]"), np.array([3], "m8[s]"), ["1", "2"], "12", [1.0, None],
     np.ma.array([1.0, 2.0], mask=[False, True])],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_what_is_no_number_is_not_written(tmp_path: Path, sequence: object, dtype: str) -> None:
    with pytest.raises(wr.ConfigError, match="expected numbers|are masked") as caught:
        wr.write(tmp_path / "s", [[1], sequence], to="shards", dtype=dtype)
    assert caught.value.record == 1
    assert not (tmp_path / "s").exists()
    wr.write(tmp_path / "s", [np.ma.array([1, 2])], to="shards", dtype=dtype)
    assert wr.open(tmp_path / "s")[0].tolist() == [1, 2]


def test_a_batch_makes_no_finite_number_infinite_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.array([1, 70_000, 5], np.uint32).tofile(tmp_path / "ids.bin")
    view = wr.open(tmp_path / "ids.bin", dtype="uint32").pack(2)
    assert np.isinf(next(wr.Loader(view, 1, dtype="float16"))["input_ids"]).any()
    assert "fit float16 and is inf in the batch" in caplog.text
    np.save(tmp_path / "large.npy", np.array([1e300, 1.0, 2.0]))
    large = wr.open(tmp_path / "large.npy")
    with pytest.raises(wr.CorruptError, match="does not fit float32"):
        large.windows(2)[0]
    assert large.windows(2, dtype="float64")[0]["input_ids"].tolist() == [1e300, 1.0]


def test_a_negative_end_is_no_id(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(wr.ConfigError, match="eos -1 is not a token ID"):
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "tok", tokenizer="bytes", eos=-1)


def test_a_damaged_account_in_the_description_of_shards_is_told(tmp_path: Path) -> None:
    wr.write(tmp_path / "s", [[1.0, 2.0], [3.0]], to="shards")
    meta = (tmp_path / "s" / "meta.json").read_text()
    assert wr.verify(tmp_path / "s")["problems"] == []
    for whole, damaged, what in (
        ('"windrow": {"version":1', '"windrow": {"version":"1"', ["manifest"]),
        ('"windrow": {"version":1', '"windrow": {"version":7', ["manifest"]),
        ('"windrow": {', '"windrow": [', ["manifest"]),
        ('"records":2', '"records":3', ["block checksums", "records"]),
    ):
        assert whole in meta
        (tmp_path / "s" / "meta.json").write_text(meta.replace(whole, damaged))
        assert [problem["what"] for problem in wr.verify(tmp_path / "s")["problems"]] == what
        if what == ["manifest"]:
            with pytest.raises((wr.CorruptError, wr.UnsupportedError)):
                wr.open(tmp_path / "s")


def test_verify_counts_the_records_that_a_side_file_promises(tmp_path: Path) -> None:
    wr.write(tmp_path / "s", [[1, 2], [3]], to="shards", dtype="int32")
    for to in ("flat-tokens", "codes"):
        path = tmp_path / to
        wr.convert(tmp_path / "s", path, to=to)
        side = path / "windrow.json"
        text = side.read_text()
        said = json.loads(text)
        assert said["records"] == 2 and wr.verify(path)["problems"] == []
        side.write_text(json.dumps(said | {"records": 4}))
        assert {"xxh3", "records"} == {problem["what"] for problem in wr.verify(path)["problems"]}
        # Without its hash it is what somebody wrote by hand.
        del said["xxh3"]
        side.write_text(json.dumps(said | {"records": 4}))
        (problem,) = wr.verify(path)["problems"]
        assert (problem["what"], problem["expected"], problem["found"]) == ("records", "4", "2")


@pytest.mark.parametrize(("to", "file"), [("litdata", "chunk-0-0.bin"), ("mds", "shard.00000.mds")])
def test_a_chunk_without_its_index_is_told_where_it_is_read(tmp_path: Path, to: str, file: str) -> None:
    wr.write(tmp_path / "all", [{"a": i} for i in range(9)], to=to)
    (tmp_path / "all" / file).rename(tmp_path / file)
    with pytest.raises(wr.WindrowError) as found:
        wr.open(tmp_path / file)
    assert "the folder with its index.json" in (found.value.hint or "")
