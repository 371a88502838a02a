"""Data that was tokenised beforehand: what columns beside the tokens say of what is learned reaches every view, in every format."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from foreign_cases import with_loaders

IDS = [[5, 6, 7, 8, 9], [10, 11, 12], [20, 21, 22, 23]]
LEARNED = [[0, 0, 1, 1, 1], [0, 1, 1], [0, 0, 0, 1]]
LABELS = [[i if one else -100 for i, one in zip(ids, mask, strict=True)] for ids, mask in zip(IDS, LEARNED, strict=True)]
FORMATS = ["jsonl", "parquet", "arrow", "arrow-stream", "mds", "litdata", "webdataset", "tfrecord", "array_record", "bagz", "shards"]


# Rows of JSON Lines as pyarrow writes them.
MADE = """
import json, sys
import pyarrow as pa, pyarrow.parquet as pq
table = pa.Table.from_pylist([json.loads(line) for line in open(sys.argv[1])])
if sys.argv[3] == "parquet":
    pq.write_table(table, sys.argv[2])
else:
    new = pa.ipc.new_stream if sys.argv[3] == "arrow-stream" else pa.ipc.new_file
    with new(sys.argv[2], table.schema) as out:
        out.write_table(table)
print("{}")
"""


def rows(**columns: list[Any]) -> list[dict[str, Any]]:
    return [{"input_ids": ids, **{name: column[i] for name, column in columns.items()}} for i, ids in enumerate(IDS)]


def written(folder: Path, to: str, given: list[dict[str, Any]]) -> tuple[Path, str]:
    """The rows in a format, and what their tokens are called there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    if to in ("parquet", "arrow", "arrow-stream"):
        out = folder / ("rows.parquet" if to == "parquet" else "rows.arrow")
        with_loaders(MADE, path, out, to)
        return out, "input_ids"
    if to == "shards":
        wr.convert(wr.open(path, column="input_ids", mask_column=None), folder / "out", to=to, overwrite=True)
        return folder / "out", ""
    if to == "webdataset":
        dotted = [{f"{name}.npy": np.array(value) for name, value in row.items()} for row in given]
        wr.write(folder / "out", dotted, to=to, overwrite=True)
        return folder / "out", "input_ids.npy"
    if to != "jsonl":
        name = {"tfrecord": "out.tfrecord", "array_record": "out.array_record", "bagz": "out.bagz"}.get(to, "out")
        arrays = [{name: np.array(value) for name, value in row.items()} for row in given]
        wr.write(folder / name, arrays, to=to, overwrite=True)
        return folder / name, "input_ids"
    return path, "input_ids"


def opened(folder: Path, to: str, given: list[dict[str, Any]], **options: Any) -> wr.Dataset:
    path, column = written(folder, to, given)
    return wr.open(path, **({"column": column} if column else {}), **options)


def learned(ds: wr.Dataset, length: int = 5) -> list[list[int]]:
    """Of each record the tokens that are learned."""
    view = ds.records(length, labels="same")
    return [[int(label) for label in view[i]["labels"] if label != -100] for i in range(len(view))]


WANTED = [[8, 9], [], [23]]
BOTH = {"labels": LABELS, "completion_mask": [[0, 0, 0, 1, 1], [1, 0, 0], [1, 1, 1, 1]]}


@pytest.mark.parametrize("to", FORMATS)
def test_masks_and_labels_beside_the_tokens_are_joined(tmp_path: Path, to: str) -> None:
    ds = opened(tmp_path / "both", to, rows(**BOTH))
    assert sorted(name.split(".")[0] for name in ds.info()["mask_columns"]) == ["completion_mask", "labels"]
    assert learned(ds) == WANTED
    assert ds[0].tolist() == IDS[0] and {name.split(".")[0] for name in ds.extras(0)} >= set(BOTH)
    packed = ds.pack(4)
    assert [packed[i]["loss_masks"].tolist() for i in range(2)] == [[0, 0, 1, 1], [0, 0, 0, 0]]
    # Without a mask, and with one of the two.
    path, column = written(tmp_path / "both", to, rows(**BOTH))
    chosen: dict[str, Any] = {"column": column} if column else {}
    plain = wr.open(path, mask_column=None, **chosen)
    assert plain.info()["mask_columns"] == [] and learned(plain) == IDS
    name = next(name for name in ds.info()["mask_columns"] if name.startswith("completion_mask"))
    assert learned(wr.open(path, mask_column=name, **chosen)) == [[8, 9], [10], IDS[2]]
    with pytest.raises(wr.ConfigError, match="no column beside the tokens is called 'wrong'|called \"wrong\""):
        wr.open(path, mask_column=["wrong"], **chosen)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize(
    ("columns", "record", "says"),
    [
        ({"labels": [*LABELS[:1], [-100, 99, 12], LABELS[2]]}, 1, "holds 99 at value 1, where the token is 11"),
        ({"labels": [*LABELS[:2], [-100, 20, 21, 22]]}, 2, "holds 20 at value 1, where the token is 21"),
        ({"labels": [[1], [0], [1]]}, 0, "holds 1 values beside 5 tokens"),
        ({"loss_mask": [*LEARNED[:2], [0, 1, 7, 1]]}, 2, "holds 0 at value 0, where the token is 20"),
        ({"attention_mask": [[1] * 5, [1, 1, 0], [1] * 4]}, 1, "holds 0 at value 2: padding"),
    ],
)
def test_what_is_no_mask_of_the_tokens_is_an_error_of_its_record(
    tmp_path: Path, to: str, columns: dict[str, Any], record: int, says: str
) -> None:
    ds = opened(tmp_path / "wrong", to, rows(**columns))
    name = next(iter(columns))
    with pytest.raises(wr.ConfigError, match=says) as error:
        learned(ds)
    assert error.value.record == record and f'"{name}' in str(error.value) and "mask_column" in (error.value.hint or "")
    path, column = written(tmp_path / "wrong", to, rows(**columns))
    chosen: dict[str, Any] = {"column": column} if column else {}
    assert learned(wr.open(path, mask_column=None, **chosen)) == IDS


@pytest.mark.parametrize("to", FORMATS)
def test_padding_may_be_named(tmp_path: Path, to: str) -> None:
    given = rows(attention_mask=[[1] * 5, [1, 1, 0], [1] * 4])
    path, column = written(tmp_path / "padded", to, given)
    chosen: dict[str, Any] = {"column": column} if column else {}
    name = "attention_mask.npy" if to == "webdataset" else "attention_mask"
    ds = wr.open(path, mask_column=name, **chosen)
    assert ds.info()["mask_columns"] == [name] and learned(ds) == [IDS[0], [10, 11], IDS[2]]


@pytest.mark.parametrize("name", ["loss_mask", "loss", "assistant_masks", "completion_mask"])
@pytest.mark.parametrize("of", [int, bool, float])
def test_the_usual_names_of_masks_and_kinds_of_their_numbers(tmp_path: Path, name: str, of: type) -> None:
    mask = [[of(one) for one in one_mask] for one_mask in LEARNED]
    for to in ("jsonl", "parquet"):
        ds = opened(tmp_path / to, to, rows(**{name: mask}))
        assert ds.info()["mask_columns"] == [name]
        assert learned(ds) == [[7, 8, 9], [11, 12], [23]]


def test_numbers_of_the_whole_record_are_no_masks_but_labels_are_not_overlooked(tmp_path: Path) -> None:
    ds = opened(tmp_path / "loss", "parquet", rows(loss=[0.5, 1.5, 2.5]))
    assert ds.info()["mask_columns"] == [] and learned(ds) == IDS
    with pytest.raises(wr.ConfigError, match='"labels" holds 1, expected a whole number for each token') as error:
        learned(opened(tmp_path / "classes", "jsonl", rows(labels=[1, 0, 1])))
    assert "rows()" in (error.value.hint or "")


def test_a_mask_that_the_first_record_lacks_is_not_overlooked(tmp_path: Path) -> None:
    given = rows(labels=LABELS)
    del given[0]["labels"]
    for to in ("jsonl", "tfrecord"):
        with pytest.raises(wr.ConfigError, match='"labels" is beside this record, but not beside the first') as error:
            learned(opened(tmp_path / to, to, given))
        assert error.value.record == 1
    given = rows(labels=LABELS)
    del given[2]["labels"]
    with pytest.raises(wr.ConfigError, match='"labels" holds null') as error:
        learned(opened(tmp_path / "last", "jsonl", given))
    assert error.value.record == 2


@pytest.mark.parametrize("to", ["jsonl", "parquet", "arrow", "arrow-stream"])
@pytest.mark.parametrize("beside", [{}, {"completion_mask": [[1] * len(ids) for ids in IDS]}])
@pytest.mark.parametrize(("name", "later"), [("loss_mask", LEARNED), ("labels", LABELS)])
def test_a_mask_that_is_null_in_the_first_record_is_not_overlooked(
    tmp_path: Path, to: str, beside: dict[str, Any], name: str, later: list[list[int]]
) -> None:
    ds = opened(tmp_path / "first", to, rows(**{name: [None, *later[1:]]}, **beside))
    assert ds.info()["mask_columns"] == list(beside)
    assert [label for label in ds.records(5, labels="same")[0]["labels"] if label != -100] == IDS[0]
    with pytest.raises(wr.ConfigError, match=f'"{name}" is beside this record, but not beside the first') as error:
        learned(ds)
    assert error.value.record == 1 and "mask_column=None" in (error.value.hint or "")
    # Null everywhere is no column.
    nothing = opened(tmp_path / "none", to, rows(**{name: [None] * 3}, **beside))
    assert nothing.info()["mask_columns"] == list(beside) and learned(nothing) == IDS


def test_a_mask_of_another_shape_in_the_first_record_is_not_overlooked(tmp_path: Path) -> None:
    for first in (0.5, "none", {"a": 1}):
        with pytest.raises(wr.ConfigError, match='"loss" is beside this record, but not beside the first') as error:
            learned(opened(tmp_path / "first", "jsonl", rows(loss=[first, *LEARNED[1:]])))
        assert error.value.record == 1


def test_a_part_whose_masks_are_null_before_parts_with_masks_is_not_overlooked(tmp_path: Path) -> None:
    parts = [written(tmp_path / "of" / str(i), "parquet", rows(loss_mask=mask))[0] for i, mask in enumerate([[None, None, [1] * 4], LEARNED])]
    (tmp_path / "all").mkdir()
    for i, part in enumerate(parts):
        part.rename(tmp_path / "all" / f"p{i}.parquet")
    for path in (tmp_path / "all", tmp_path / "all" / "*.parquet"):
        with pytest.raises(wr.ConfigError, match='"loss_mask" is beside this record, but not beside the first') as error:
            learned(wr.open(path, column="input_ids"))
        assert error.value.record == 2


EMPTY = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
schema = pa.schema([("input_ids", pa.list_(getattr(pa, sys.argv[3])())), ("other", pa.string())])
if sys.argv[2] == "parquet":
    pq.write_table(schema.empty_table(), sys.argv[1])
else:
    pa.ipc.new_file(sys.argv[1], schema).close()
print("{}")
"""


@pytest.mark.parametrize("to", ["parquet", "arrow"])
@pytest.mark.parametrize(("at", "dtype"), [(0, "int64"), (1, "int64"), (2, "int64"), (0, "int32"), (1, "int32")])
def test_an_empty_part_among_parts_with_masks_is_no_records(tmp_path: Path, to: str, at: int, dtype: str) -> None:
    (tmp_path / "all").mkdir()
    parts = [tmp_path / "all" / f"p{i}.{to}" for i in range(3)]
    for part in parts:
        written(tmp_path / "one", to, rows(labels=LABELS))[0].rename(part)
    with_loaders(EMPTY, parts[at], to, dtype)
    for mask in ("auto", "labels"):
        for paths in (tmp_path / "all" / f"*.{to}", parts):
            ds = wr.open(paths, column="input_ids", mask_column=mask)
            assert ds.info()["mask_columns"] == ["labels"] and ds.info()["dtype"] == "int64"
            assert learned(ds) == [[7, 8, 9], [11, 12], [23]] * 2


@pytest.mark.parametrize("to", ["jsonl", "parquet", "arrow"])
def test_padding_is_a_0_whatever_else_an_attention_mask_holds(tmp_path: Path, to: str) -> None:
    for fine in ([None, None, None], [[1] * 5, None, [1] * 4], [[1], [1] * 7, []], [[[1] * 5], [[1] * 3], [[1] * 4]], [1, 1, None]):
        ds = opened(tmp_path / "fine", to, rows(attention_mask=fine, loss_mask=LEARNED))
        assert learned(ds) == [[7, 8, 9], [11, 12], [23]], fine
    for padded in ([None, [1, 1, 0], None], [[1], [0], [1]], [[[1] * 5], [[1, 1, 0]], [[1] * 4]], [1, 0, None]):
        with pytest.raises(wr.ConfigError, match='"attention_mask" holds 0') as error:
            learned(opened(tmp_path / "padded", to, rows(attention_mask=padded)))
        assert error.value.record == 1, padded


def test_data_without_such_columns_is_as_it_was(tmp_path: Path) -> None:
    for to in FORMATS:
        ds = opened(tmp_path / to, to, rows(weight=[1.0, 2.0, 3.0], attention_mask=[[1] * len(ids) for ids in IDS]))
        assert ds.info()["mask_columns"] == [] and learned(ds) == IDS, to
        assert set(ds.pack(4)[0]) == {"input_ids", "labels"}, to


def test_masks_that_a_format_stores_may_be_left_out(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "jsonl", rows(loss_mask=LEARNED))
    wr.tokenize(path, tmp_path / "out", tokenizer="bytes", text_field="input_ids", mask_field="loss_mask")
    ds = wr.open(tmp_path / "out")
    assert ds.info()["mask_columns"] == ["loss_mask"] and learned(ds) == [[7, 8, 9], [11, 12], [23]]
    plain = wr.open(tmp_path / "out", mask_column=None)
    assert plain.info()["mask_columns"] == [] and plain[0].tolist() == IDS[0] and learned(plain) == IDS
    with pytest.raises(wr.ConfigError, match="wrong"):
        wr.open(tmp_path / "out", mask_column="wrong")


def test_a_state_without_the_mask_is_refused_with_the_difference(tmp_path: Path) -> None:
    path, column = written(tmp_path, "parquet", rows(labels=LABELS))

    def loader(**options: Any) -> wr.Loader:
        return wr.Loader(wr.open(path, column=column, **options).records(4), batch_size=1)

    before = loader(mask_column=None)
    next(before)
    with pytest.raises(wr.MismatchError, match="mask=labels") as error:
        loader().load_state_dict(before.state_dict())
    assert "mask_column" in (error.value.hint or "") + str(error.value)
    again = loader(mask_column=None)
    again.load_state_dict(before.state_dict())
    assert again.samples == 1


def test_the_command_has_the_option(tmp_path: Path) -> None:
    path, column = written(tmp_path, "parquet", rows(**BOTH))

    def asked(*options: str) -> Any:
        command = [sys.executable, "-m", "windrow", "inspect", str(path), "--column", column, "--json", *options]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        return json.loads(ran.stdout)["info"]["mask_columns"] if ran.returncode == 0 else ran.stderr

    assert sorted(asked()) == sorted(BOTH) == sorted(asked("--mask-column", "auto"))
    assert asked("--mask-column", "none") == [] and asked("--mask-column", "labels") == ["labels"]
    assert asked("--mask-column", "labels,completion_mask") == ["labels", "completion_mask"]
    assert "no column beside the tokens" in asked("--mask-column", "wrong")


def test_labels_in_a_field_of_a_mask(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "jsonl", rows(labels=LABELS))
    options: dict[str, Any] = {"tokenizer": "bytes", "text_field": "input_ids", "mask_field": "labels"}
    wr.tokenize(path, tmp_path / "out", **options)
    assert learned(wr.open(tmp_path / "out")) == [[7, 8, 9], [11, 12], [23]]
    path.write_text(json.dumps({"input_ids": [5, 6], "labels": [-100, 5]}) + "\n")
    with pytest.raises(wr.CorruptError, match="value 1 of .labels. is 5, where the token is 6"):
        wr.tokenize(path, tmp_path / "shifted", **options)


# Formats that are written, by what becomes of a mask: kept beside the tokens, or left out with a warning.
KEPT = ["shards", "jsonl", "arrow", "parquet", "mds", "webdataset", "tfrecord", "litdata", "forager", "datatrove"]
LEFT_OUT = ["tokens", "npy", "npz", "megatron", "olmo", "llmc", "flat-tokens", "array_record", "bagz"]
ENDINGS = {"tokens": ".bin", "tfrecord": ".tfrecord", "llmc": ".bin", **{n: f".{n}" for n in ("jsonl", "arrow", "parquet", "npy", "npz", "array_record", "bagz")}}
OWN: dict[str, dict[str, Any]] = {"litdata": {"to_column": "tokens"}, "llmc": {"dtype": "uint16"}, "datatrove": {"dtype": "uint16"}}


def masked_sources(folder: Path, ids: list[list[int]] = IDS) -> dict[str, wr.Dataset]:
    """Token IDs with a mask: in a column, and in an array of its own."""
    path = folder / "masked.jsonl"
    of = [{"input_ids": i, "labels": [-100, *i[1:]]} for i in ids]
    path.write_text("".join(json.dumps(row) + "\n" for row in of))
    wr.tokenize(path, folder / "stored", tokenizer="bytes", text_field="input_ids", mask_field="labels")
    wr.convert(wr.open(path, column="input_ids"), folder / "masked.parquet", to="parquet")
    parquet = wr.open(folder / "masked.parquet", column="tokens")
    return {"column": wr.open(path, column="input_ids"), "array": wr.open(folder / "stored"), "parquet": parquet}


def reopened(out: Path) -> wr.Dataset:
    # A list beside the tokens makes rows of them, unless something says which column holds the numbers.
    rows = wr.open(out)
    return wr.open(out, column="tokens") if rows.info().get("columns") else rows


@pytest.mark.parametrize("to", KEPT)
def test_what_is_converted_keeps_its_mask_where_the_format_can(tmp_path: Path, to: str, caplog: pytest.LogCaptureFixture) -> None:
    for of, source in masked_sources(tmp_path).items():
        out = tmp_path / f"{of}-out{ENDINGS.get(to, '')}"
        wr.convert(source, out, to=to, **OWN.get(to, {}))
        again = reopened(out)
        assert again.info()["mask_columns"] and learned(again) == [i[1:] for i in IDS], of
        assert "loss mask" not in caplog.text
        assert wr.verify(out)["problems"] == []
        # A mask that is not meant is not written.
        path = tmp_path / "masked.jsonl"
        if of == "column" and to in ("forager", "datatrove"):
            wr.convert(wr.open(path, column="input_ids", mask_column=None), out, to=to, overwrite=True, **OWN.get(to, {}))
            assert wr.open(out).info()["mask_columns"] == []


@pytest.mark.parametrize("to", LEFT_OUT)
def test_a_mask_that_a_format_does_not_hold_is_named(tmp_path: Path, to: str, caplog: pytest.LogCaptureFixture) -> None:
    # The npy format holds records of one length.
    ids = [i[:3] for i in IDS]
    for of, source in masked_sources(tmp_path, ids).items():
        caplog.clear()
        wr.convert(source, tmp_path / f"{of}-out{ENDINGS.get(to, '')}", to=to, **OWN.get(to, {}))
        name = "loss_mask" if of == "array" else "labels"
        said = [r.getMessage() for r in caplog.records if "loss mask" in r.getMessage()]
        assert len(said) == 1 and said[0].startswith(f"{to} holds no loss mask: {name} beside"), (of, caplog.text)
        assert "hint: forager and datatrove store" in said[0] and "parquet" in said[0]
    caplog.clear()
    plain = wr.open(tmp_path / "masked.jsonl", column="input_ids", mask_column=None)
    wr.convert(plain, tmp_path / f"plain{ENDINGS.get(to, '')}", to=to, **OWN.get(to, {}))
    assert "loss mask" not in caplog.text


@pytest.mark.parametrize("to", [*KEPT, *LEFT_OUT])
def test_write_treats_masks_of_records_as_convert_does(tmp_path: Path, to: str, caplog: pytest.LogCaptureFixture) -> None:
    ids = [i[:3] for i in IDS]
    given = [{"sequence": np.array(i, "uint16"), "loss_mask": [0, 1, 1]} for i in ids]
    out = tmp_path / f"out{ENDINGS.get(to, '')}"
    wr.write(out, given, to=to, **OWN.get(to, {}))
    if to in LEFT_OUT:
        said = [r.getMessage() for r in caplog.records if "loss mask" in r.getMessage()]
        assert len(said) == 1 and f"{to} holds no loss mask: loss_mask beside" in said[0]
        return
    assert learned(reopened(out)) == [i[1:] for i in ids] and "loss mask" not in caplog.text
    if to in ("forager", "datatrove"):
        with pytest.raises(wr.ConfigError, match="loss_mask.* is beside this record, but not beside the first") as error:
            wr.write(out, [given[0]["sequence"], given[1]], to=to, overwrite=True, **OWN.get(to, {}))
        assert error.value.record == 1
        with pytest.raises(wr.ConfigError, match="holds 2 values beside 3 tokens") as error:
            wr.write(out, [given[0], {**given[1], "loss_mask": [0, 1]}], to=to, overwrite=True, **OWN.get(to, {}))
        assert error.value.record == 1


def frame(**columns: list[Any]) -> Any:
    import pandas as pd

    at = [(s, t) for s, ids in enumerate(IDS) for t in range(len(ids))]
    flat = {name: [value for record in values for value in record] for name, values in columns.items()}
    return pd.DataFrame({"unique_id": [s for s, _ in at], "ds": [t for _, t in at], "y": [i for ids in IDS for i in ids], **flat})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_token_ids_of_a_frame_have_their_masks(library: str) -> None:
    import polars as pl

    of = (lambda df: df) if library == "pandas" else (lambda df: pl.DataFrame({c: df[c].to_numpy() for c in df}))
    for name, mask in (("loss_mask", LEARNED), ("labels", LABELS), ("completion_mask", [[bool(m) for m in one] for one in LEARNED])):
        ds = wr.from_frame(of(frame(**{name: mask})))
        assert ds.info()["mask_columns"] == [name] and learned(ds) == [[7, 8, 9], [11, 12], [23]]
        assert pickle.loads(pickle.dumps(ds)).info()["mask_columns"] == [name]
        plain = wr.from_frame(of(frame(**{name: mask})), mask_column=None)
        assert plain.info()["mask_columns"] == [] and learned(plain) == IDS
        assert learned(pickle.loads(pickle.dumps(plain))) == IDS
    both = of(frame(own=LEARNED, labels=[[-100, *ids[1:]] for ids in IDS]))
    assert learned(wr.from_frame(both)) == [ids[1:] for ids in IDS]
    assert learned(wr.from_frame(both, mask_column="own")) == [[7, 8, 9], [11, 12], [23]]
    assert learned(wr.from_frame(both, mask_column=["own", "labels"])) == [[7, 8, 9], [11, 12], [23]]
    with pytest.raises(wr.ConfigError, match="mask_column='other': no column"):
        wr.from_frame(both, mask_column="other")
    with pytest.raises(wr.ConfigError, match='"loss_mask" holds 7 at value 2, where the token is 7|holds 0 at value 0') as error:
        learned(wr.from_frame(of(frame(loss_mask=[[0, 0, 7, 1, 1], *LEARNED[1:]]))))
    assert error.value.record == 0
    with pytest.raises(wr.ConfigError, match='"attention_mask" holds 0 at value 2') as error:
        learned(wr.from_frame(of(frame(attention_mask=[[1] * 5, [1, 1, 0], [1] * 4]))))
    assert error.value.record == 1
    # A column of text, and the values of series, say nothing of tokens.
    assert wr.from_frame(of(frame(labels=[["a"] * len(ids) for ids in IDS]))).info()["mask_columns"] == []
    wide = frame()[["ds", "y"]].iloc[:5].rename(columns={"y": "loss"})
    assert len(wr.from_frame(of(wide), layout="wide")) == 1
    with pytest.raises(wr.ConfigError, match="mask_column='loss' of a frame whose columns are series"):
        wr.from_frame(of(wide), layout="wide", mask_column="loss")


BYTES = """
import sys, json
import pyarrow as pa, pyarrow.parquet as pq
rows = json.loads(sys.argv[2])
table = {"input_ids": pa.array([r[0] for r in rows], pa.list_(pa.int64())), sys.argv[3]: pa.array([None if r[1] is None else bytes(r[1]) for r in rows], pa.binary())}
pq.write_table(pa.table(table), sys.argv[1])
print("{}")
"""


@pytest.mark.parametrize("name", ["loss_mask", "completion_mask"])
def test_a_mask_of_bytes_has_one_for_each_token(tmp_path: Path, name: str) -> None:
    def made(masks: list[Any]) -> wr.Dataset:
        with_loaders(BYTES, tmp_path / "a.parquet", json.dumps([[i, m] for i, m in zip(IDS, masks, strict=True)]), name)
        return wr.open(tmp_path / "a.parquet", column="input_ids")

    ds = made(LEARNED)
    assert ds.info()["mask_columns"] == [name] and learned(ds) == [[7, 8, 9], [11, 12], [23]]
    for masks, record, says in (
        ([*LEARNED[:1], [0, 1], LEARNED[2]], 1, "holds 2 values beside 3 tokens"),
        ([*LEARNED[:2], [0, 1, 9, 1]], 2, "holds 0 at value 0, where the token is 20"),
        ([None, *LEARNED[1:]], 1, "is beside this record, but not beside the first"),
    ):
        with pytest.raises(wr.ConfigError, match=f'"{name}" {says}') as error:
            learned(made(masks))
        assert error.value.record == record
    wr.write(tmp_path / "mds", [{"input_ids": np.array(i), name: bytes(m)} for i, m in zip(IDS, LEARNED, strict=True)], to="mds")
    assert learned(wr.open(tmp_path / "mds", column="input_ids")) == [[7, 8, 9], [11, 12], [23]]
