"""Errors: their classes, what they say apart from the message, and that they pass through pickles."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr


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
    for cls, base in expected.items():
        assert issubclass(cls, wr.WindrowError)
        assert issubclass(cls, base)


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
                print("record 1, byte 15" in str(e))
    """
    assert run_script(code, tmp_path / "a.jsonl", limit=120) == "True\n"


def test_memory_that_is_not_there(dataset: wr.Dataset) -> None:
    with pytest.raises(MemoryError, match="no memory for 400 rows") as found:
        dataset.records(1 << 36).batch([0] * 400)
    assert isinstance(found.value, wr.OutOfMemoryError)
    assert (found.value.kind, found.value.hint) == ("memory", "choose a smaller batch size or length")
    with pytest.raises(wr.OutOfMemoryError, match="no memory for 68719476737 tokens"):
        wr.create_dummy_data(10, (1 << 36) + 1)
    assert isinstance(pickle.loads(pickle.dumps(found.value)), wr.OutOfMemoryError)


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
        "no memory for 8589934592 values of 1 bytes",
        "no memory for 2147483648 values of 4 bytes",
        "no memory for 1 rows of 8589934592 bytes of values",
    ]
