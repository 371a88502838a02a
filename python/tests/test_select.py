"""Chosen records are a data set: the same batches however they are chosen, original numbers everywhere, and a column that chooses them."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xxhash
from foreign_cases import printed_by_loaders
from s3_server import S3Server
from web_server import WebServer

import windrow as wr

N = 300
RANDOM = np.random.default_rng(8)
SEQUENCES = [RANDOM.integers(0, 50_000, 5 + i % 23, dtype=np.uint16) for i in range(N)]
ROWS = [
    {"text": f"row {i} " * (i % 9), "score": float(s) if i % 11 else None, "n": 2**53 + i % 3, "lang": ["en", "de", "fr"][i % 3]}
    for i, s in enumerate(RANDOM.random(N).round(3))
]


def written(to: str, records: Any, name: str, **options: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        wr.write(folder / name, records, to=to, **options)
        return folder / name

    return make


def lines(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def parts(folder: Path) -> Path:
    texts = folder / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": "x" * (1 + i % 40)}) + "\n" for i in range(N)))
    job = wr.prep.plan("tokenize", texts, folder / "tokens", tokenizer="bytes", task_bytes=1000)
    wr.prep.run(job)
    assert wr.open(folder / "tokens").format == "parts"
    return folder / "tokens"


TOKENS: dict[str, Callable[[Path], Path]] = {
    "shards": written("shards", SEQUENCES, "shards"),
    "forager": written("forager", SEQUENCES, "forager"),
    "megatron": written("megatron", SEQUENCES, "tokens"),
    "parts": parts,
}
TABLES: dict[str, Callable[[Path], Path]] = {
    "parquet": written("parquet", ROWS, "rows.parquet"),
    "arrow": written("arrow", ROWS, "rows.arrow"),
    "jsonl": lines,
    "webdataset": written("webdataset", ROWS, "rows.tar"),
    "mds": written("mds", [{**row, "score": row["score"] or 0.0} for row in ROWS], "mds"),
}
CHOICES: dict[str, Any] = {
    "ascending": np.sort(RANDOM.permutation(N)[:70]),
    "curriculum": RANDOM.permutation(N),
    "mask": RANDOM.random(N) < 0.3,
    "slice": slice(250, 20, -7),
    "none": [],
}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return a == b if not isinstance(a, dict) else a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)


def word(data: wr.Dataset) -> str:
    view = data.rows() if isinstance(data[0], dict) else data.records(8)
    plan = wr.Loader(view, batch_size=1).plan
    return plan.split(";")[0].removeprefix("source=")


def expected_word(data: wr.Dataset, numbers: Any) -> str:
    hashed = xxhash.xxh3_64_hexdigest(np.asarray(numbers, "<u8").tobytes())
    return f"{word(data)}:select(n={len(numbers)},{hashed})"


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", [*TOKENS, *TABLES])
def test_chosen_records_are_those_of_their_numbers(name: str, choice: str, tmp_path: Path) -> None:
    ds = wr.open({**TOKENS, **TABLES}[name](tmp_path))
    which = CHOICES[choice]
    expected = np.arange(len(ds))[which if choice != "none" else slice(0, 0)]
    sel = ds.select(which)
    assert len(sel) == len(expected) and sel.numbers.dtype == np.uint32 and sel.numbers.tolist() == expected.tolist()
    assert all(same(sel[i], ds[number]) for i, number in enumerate(expected.tolist()))
    assert all(same(sel.extras(i), ds.extras(number)) for i, number in enumerate(expected.tolist()))
    again = pickle.loads(pickle.dumps(sel))
    assert again.numbers.tolist() == expected.tolist()
    if len(expected):
        assert word(sel) == expected_word(ds, expected)
        assert word(again) == word(sel)


def test_a_mask_a_list_and_a_slice_of_the_same_numbers_are_one_plan(tmp_path: Path) -> None:
    ds = wr.open(lines(tmp_path))
    mask = np.arange(N) % 3 == 1
    alike = [mask, mask.tolist(), np.flatnonzero(mask), np.flatnonzero(mask).tolist(), range(1, N, 3), slice(1, None, 3)]
    alike += [np.flatnonzero(mask).astype(np.uint8) if N < 256 else np.flatnonzero(mask).astype(np.uint16), np.flatnonzero(mask).astype("u8")]
    assert {word(ds.select(which)) for which in alike} == {expected_word(ds, range(1, N, 3))}
    assert {str(wr.Loader(ds.select(which).rows(), batch_size=2).recipe()) for which in alike} == {
        str(wr.Loader(ds.select(mask).rows(), batch_size=2).recipe())
    }
    for everything in (np.ones(N, bool), range(N), slice(None), range(-N, 0)):
        assert word(ds.select(everything)) == word(ds)
        assert ds.select(everything).numbers == range(N)
    assert word(ds.select(range(N)[::-1])) == expected_word(ds, range(N)[::-1])


@pytest.mark.parametrize(
    ("which", "error", "message"),
    [
        ([0, N], IndexError, f"record {N} is out of range: there are {N}"),
        ([-N - 1], IndexError, f"record -{N + 1} is out of range"),
        (range(N + 1), IndexError, f"record {N} is out of range"),
        ([2**70], IndexError, "out of range"),
        (np.array([2**63], "u8"), IndexError, "out of range"),
        ([5, 3, -N + 5, 3], wr.ConfigError, "record 5 is chosen twice, at places 0 and 2"),
        (np.array([7, 7]), wr.ConfigError, "record 7 is chosen twice, at places 0 and 1"),
        (np.ones(N - 1, bool), wr.ConfigError, f"a mask of {N - 1} values, of a data set of {N} records"),
        ([1, 0.5], wr.ConfigError, "0.5, at place 1, is not the number of a record"),
        (np.array([1.0]), wr.ConfigError, "1.0, at place 0"),
        ("abc", TypeError, "not str"),
        (None, TypeError, "not NoneType"),
        (3, TypeError, "not int"),
        (np.zeros((2, 2), int), TypeError, "not ndarray"),
        ([None], TypeError, "whole number"),
    ],
)
def test_a_wrong_choice_is_named(which: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    ds = wr.open(lines(tmp_path))
    with pytest.raises(error, match=message) as raised:
        ds.select(which)
    assert isinstance(raised.value, ValueError) == (error is wr.ConfigError)


@pytest.mark.parametrize("name", ["shards", "forager", "parts"])
def test_original_numbers_are_said_through_several_choices(name: str, tmp_path: Path) -> None:
    ds = wr.open(TOKENS[name](tmp_path))
    first = ds.select(RANDOM.permutation(N)[:120])
    second = first.select(slice(None, None, -2))
    third = second.select([10, 3, 4, -1])
    expected = np.asarray(first.numbers)[::-2][[10, 3, 4, -1]]
    assert third.numbers.tolist() == expected.tolist() and word(third) == expected_word(ds, expected)
    loader = wr.Loader(third.records(8), batch_size=4, shuffle=False, epochs=1)
    traced = wr.trace(loader, 0)
    assert [row["reads"][0]["record"] for row in traced] == expected.tolist()
    plain = wr.Loader(ds.records(8), batch_size=N, shuffle=False)
    places = {row["reads"][0]["record"]: row["reads"][0]["locations"] for row in wr.trace(plain, 0)}
    assert [row["reads"][0]["locations"] for row in traced] == [places[number] for number in expected.tolist()]
    covered = wr.coverage(loader, (0, 1), list_records=True)["parts"][0]
    numbers = [number for start, end in covered["record_ranges"] for number in range(start, end)]
    assert (numbers, covered["records_of"]) == (sorted(expected.tolist()), N)
    for i, number in enumerate(expected.tolist()):
        assert [found["row"] for found in wr.find(loader, number)] == [i]
    assert wr.find(loader, (set(range(N)) - set(expected.tolist())).pop()) == []
    with pytest.raises(IndexError):
        wr.find(loader, N)
    left = wr.Loader(third.records(8), batch_size=3, shuffle=False, epochs=1, exclude=[expected[1], *(set(range(9)) - {*expected})])
    assert [row["reads"][0]["record"] for row in wr.trace(left, 0)] == expected[[0, 2, 3]].tolist()
    assert wr.extract(loader, 0)["input_ids"].tolist() == next(loader)["input_ids"].tolist()


def test_the_field_item_and_scalers_are_of_the_records_that_were_chosen(tmp_path: Path) -> None:
    series = [np.cumsum(RANDOM.standard_normal(40)).astype("f4") for _ in range(20)]
    wr.write(tmp_path / "series", series, to="shards")
    ds = wr.open(tmp_path / "series")
    order = [7, 3, 19, 0]
    options: Any = {"context_length": 20, "stride": 20, "labels": None, "scaler": "standard", "fields": ["item", "loc"]}
    whole, some = ds.windows(**options), ds.select(order).windows(**options)
    each = len(whole) // 20
    for i, sample in enumerate(some):
        expected = whole[order[i // each] * each + i % each]
        assert sample["item"] == order[i // each] and all(same(sample[name], expected[name]) for name in expected)
    parts = ds.select(order).split_by_time(0.5, 0.5)
    assert parts[1].numbers.tolist() == order and same(parts[1][2], ds.split_by_time(0.5, 0.5)[1][19])


def test_an_error_names_the_original_number(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(f'{{"n": {i}}}\n' if i != 7 else '{"n": 7,}\n' for i in range(10)))
    sel = wr.open(path).select([9, 8, 7]).select([0, 2])
    with pytest.raises(wr.CorruptError) as read:
        sel[1]
    assert read.value.record == 7
    with pytest.raises(wr.CorruptError) as batch:
        next(wr.Loader(sel.rows(), batch_size=2, shuffle=False))
    assert batch.value.record == 7
    with pytest.raises(wr.WindrowError) as compared:
        sel.where("n", ">", 3)
    assert compared.value.record == 7
    assert len(wr.open(path).select([9, 8]).where("n", ">", 8)) == 1


def test_split_and_select_compose(tmp_path: Path) -> None:
    ds = wr.open(lines(tmp_path))
    sel = ds.select(slice(0, None, 2))
    train, validation = sel.split(0.2, seed=3)
    assert sorted([*train.numbers, *validation.numbers]) == list(range(0, N, 2))
    assert all(same(validation[i], ds[int(number)]) for i, number in enumerate(validation.numbers))
    assert word(validation) == expected_word(ds, validation.numbers)
    part = ds.split(0.2, seed=3)[1]
    few = part.select([3, 0, 5])
    assert few.numbers.tolist() == [3, 0, 5] and [*few] == [part[3], part[0], part[5]]
    assert word(few) == expected_word(part, [3, 0, 5])
    for data in (train, validation, few, validation.select([1, 0])):
        again = pickle.loads(pickle.dumps(data))
        assert [*again] == [*data] and word(again) == word(data)
        plan = wr.Loader(data.rows(), batch_size=2).recipe()
        assert wr.extract(plan, 0) == next(wr.Loader(data.rows(), batch_size=2))
    with pytest.raises(wr.ConfigError, match="split again"):
        few.split(0.5)


def test_views_and_mixtures_see_only_what_was_chosen(tmp_path: Path) -> None:
    ds = wr.open(TOKENS["forager"](tmp_path))
    order = RANDOM.permutation(N)[:90]
    sel = ds.select(order)
    stream = np.concatenate([ds[int(i)] for i in order])
    packed = sel.pack(16)
    assert len(packed) == (len(stream) - 1) // 16
    assert np.concatenate([sample["input_ids"] for sample in packed]).tolist() == stream[: 16 * len(packed)].tolist()
    binned = np.concatenate([sample["input_ids"] for sample in sel.bins(32, labels=None)])
    assert sorted(binned[binned > 0]) == sorted(stream[stream > 0])
    mixed = wr.mix({"a": (sel.records(8), 1.0), "b": (ds.select(slice(0, 50)).records(8), 1.0)})
    loader = wr.Loader(mixed, batch_size=16, exclude={"a": [int(order[0])], "b": [49]})
    numbers: dict[str, set[int]] = {"a": set(), "b": set()}
    for step in range(12):
        for row in wr.trace(loader, step):
            numbers[row["part_name"]].add(row["reads"][0]["record"])
    assert numbers["a"] <= {*order[1:].tolist()} and numbers["b"] <= {*range(49)} and all(len(of) > 30 for of in numbers.values())
    state = loader.state_dict()
    with pytest.raises(wr.MismatchError, match=r"select\(n=89,.*select\(n=90,|another plan"):
        wr.Loader(mixed, batch_size=16).load_state_dict(state)


def test_a_state_of_another_choice_is_refused_with_both_words_and_diff_names_the_record(tmp_path: Path) -> None:
    ds = wr.open(lines(tmp_path))
    a, b = np.arange(0, N, 2), np.arange(0, N, 2)
    b = b[b != 40]
    loaders = [wr.Loader(ds.select(which).rows(), batch_size=4, shuffle=False) for which in (a, b)]
    with pytest.raises(wr.MismatchError) as refused:
        loaders[1].load_state_dict(loaders[0].state_dict())
    assert all(expected_word(ds, which) in str(refused.value) for which in (a, b))
    found = wr.diff(*loaders)
    difference = found["differences"][0]
    assert not found["same"] and found["first"]["step"] == 5
    assert (difference["what"], difference["option"]) == ("data", "parts[0].options.select, the record at place 20")
    assert (difference["a"], difference["b"]) == (40, 42)
    assert wr.diff(loaders[0], wr.Loader(ds.rows(), batch_size=4, shuffle=False))["differences"][0]["b"] == 1
    assert wr.diff(loaders[0], wr.Loader(ds.select(a.tolist()).rows(), batch_size=4, shuffle=False))["same"]


def test_a_run_of_chosen_records_resumes(tmp_path: Path) -> None:
    ds = wr.open(TOKENS["shards"](tmp_path))
    view = ds.select(CHOICES["curriculum"][:100]).records(8)
    whole = [batch["input_ids"].tolist() for batch in wr.Loader(view, batch_size=6, epochs=2).stream()]
    first = wr.Loader(view, batch_size=6, epochs=2)
    begun = [next(first)["input_ids"].tolist() for _ in range(7)]
    again = wr.Loader(pickle.loads(pickle.dumps(view)), batch_size=6, epochs=2)
    again.load_state_dict(first.state_dict())
    assert begun + [batch["input_ids"].tolist() for batch in again.stream()] == whole


# Long lists.

MANY = 6000


@pytest.fixture
def many(tmp_path: Path) -> wr.Dataset:
    np.save(tmp_path / "many.npy", np.arange(MANY * 4, dtype=np.int32).reshape(MANY, 4))
    return wr.open(tmp_path / "many.npy")


def read_in_worker(view: wr.View, to: Any) -> None:
    to.put(([sample["input_ids"].tolist() for sample in view[:5]], len(view)))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_long_choices_reach_other_processes(many: wr.Dataset, start: str) -> None:
    order = RANDOM.permutation(MANY)[:5000]
    view = many.select(order).records(3)
    context = multiprocessing.get_context(start)
    answers = context.SimpleQueue()
    process = context.Process(target=read_in_worker, args=(view, answers))
    process.start()
    found = answers.get()
    process.join()
    assert found == ([[4 * int(i), 4 * int(i) + 1, 4 * int(i) + 2] for i in order[:5]], 5000)
    mixed = pickle.loads(pickle.dumps(wr.mix({"a": (view, 1.0), "b": (many.records(3), 1.0)})))
    assert len(mixed[0]["input_ids"]) == 3
    assert np.array_equal(pickle.loads(pickle.dumps(many.select(order))).numbers, order)


def test_a_plan_holds_up_to_4096_numbers_and_of_more_their_hash(many: wr.Dataset, tmp_path: Path) -> None:
    order = RANDOM.permutation(MANY)
    short = wr.Loader(many.select(order[:4096]).records(3), batch_size=8).recipe()
    assert short["parts"][0]["options"]["select"] == [{"numbers": order[:4096].tolist()}]
    sel = many.select(order[:4097])
    loader = wr.Loader(sel.records(3), batch_size=8)
    plan = loader.recipe()
    assert plan["parts"][0]["options"]["select"] == [
        {"hashed": {"n": 4097, "xxh3": xxhash.xxh3_64_hexdigest(order[:4097].astype("<u8").tobytes())}}
    ]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(wr.MismatchError, match="4097 chosen records, of which it holds only the hash") as refused:
        wr.trace(tmp_path / "plan.json", 2)
    assert "select=numbers" in (refused.value.hint or "")
    assert wr.trace(tmp_path / "plan.json", 2, select=sel.numbers) == wr.trace(loader, 2)
    with pytest.raises(wr.MismatchError, match="no part of the plan is of these 4097 record numbers"):
        wr.trace(plan, 2, select=sel.numbers[::-1])
    record = int(order[7])
    assert wr.find(plan, record, select=sel.numbers) == wr.find(loader, record) != []
    assert wr.coverage(plan, (1, 3), select=sel.numbers) == wr.coverage(loader, (1, 3))
    assert (wr.extract(plan, 3, select=sel.numbers)["input_ids"] == wr.extract(loader, 3)["input_ids"]).all()
    other = wr.Loader(many.select(order[-5000:]).records(3), batch_size=8)
    both = wr.diff(plan, other.recipe(), select=[sel.numbers, order[-5000:]])
    assert both == wr.diff(loader, other) and not both["same"]
    assert wr.diff(plan, loader, select=sel.numbers)["same"]
    with pytest.raises(wr.MismatchError, match="no part of the plan is of these 5000 record numbers"):
        wr.diff(plan, loader, select=order[-5000:])
    np.save(tmp_path / "numbers.npy", sel.numbers)
    told = run("trace", tmp_path / "plan.json", "--step", 2, "--select", tmp_path / "numbers.npy", "--json")
    assert [row["reads"][0]["record"] for row in json.loads(told.stdout)["rows"]] == [
        row["reads"][0]["record"] for row in wr.trace(loader, 2)
    ]
    refused_there = run("trace", tmp_path / "plan.json", "--step", 2, code=4)
    assert "--select numbers.npy" in refused_there.stderr
    (tmp_path / "other.json").write_text(json.dumps(wr.Loader(many.records(3), batch_size=8).recipe()))
    told = run("diff", tmp_path / "plan.json", tmp_path / "other.json", "--select", tmp_path / "numbers.npy", code=4)
    assert "the record at place" in told.stdout
    assert json.loads(run("coverage", tmp_path / "plan.json", "--steps", "0..3", "--select", tmp_path / "numbers.npy", "--json").stdout)[
        "parts"
    ][0]["records_of"] == MANY


# A column that chooses.


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    told = subprocess.run([sys.executable, "-m", "windrow", *map(str, arguments)], capture_output=True, text=True)
    assert told.returncode == code, told.stderr
    return told


OPS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", TABLES)
def test_where_chooses_as_python_compares(name: str, tmp_path: Path) -> None:
    ds = wr.open(TABLES[name](tmp_path))
    rows = [*ds]
    # WebDataset has a file for each value.
    files = {"score": "score.json", "n": "n.cls", "lang": "lang.txt"} if name == "webdataset" else {}
    for key, value in (("score", 0.5), ("n", 2**53 + 1), ("n", float(2**53)), ("lang", "en"), ("lang", "dz")):
        column = files.get(key, key)
        for op, holds in OPS.items():
            expected = [i for i, row in enumerate(rows) if row.get(column) is not None and holds(row[column], value)]
            found = ds.where(column, op, value)
            assert found.numbers.tolist() == expected, (column, op, value)
            if expected:
                hashed = xxhash.xxh3_64_hexdigest(np.asarray(expected, "<u8").tobytes())
                said = json.dumps(value) if value != float(2**53) else str(2**53)
                assert word(found) == f"{word(ds)}:where({column}{op}{said},n={len(expected)},{hashed})"


def test_where_counts_in_what_was_chosen_and_both_are_in_the_plan(tmp_path: Path) -> None:
    ds = wr.open(lines(tmp_path))
    order = CHOICES["curriculum"]
    good = ds.select(order).where("lang", "==", "en")
    assert good.numbers.tolist() == [int(i) for i in order if i % 3 == 0]
    twice = ds.where("lang", "==", "en").where("score", ">=", 0.5)
    assert twice.numbers.tolist() == [i for i in range(0, N, 3) if (ROWS[i]["score"] or 0) >= 0.5]
    assert word(twice).count(":where(") == 2
    few = twice.select([2, 0])
    assert few.numbers.tolist() == twice.numbers[[2, 0]].tolist() and ":select(n=2," in word(few) and word(few).count(":where(") == 2
    for data in (good, twice, few, twice.select(slice(3)).select([1])):
        again = pickle.loads(pickle.dumps(data))
        assert again.numbers.tolist() == data.numbers.tolist() and word(again) == word(data)
    plan = wr.Loader(few.rows(), batch_size=2, shuffle=False).recipe()
    assert plan["parts"][0]["options"]["select"][:2] == [
        {"where": {"column": "lang", "op": "==", "value": "en"}},
        {"where": {"column": "score", "op": ">=", "value": 0.5}},
    ]
    assert wr.extract(plan, 0) == [few[0], few[1]]


def test_where_reads_what_is_beside_numbers(tmp_path: Path) -> None:
    records = [{"sequence": [1, 2, 3 + i], "id": i, "lang": "en" if i % 2 else "de"} for i in range(30)]
    wr.write(tmp_path / "a.jsonl", records, to="jsonl")
    ds = wr.open(tmp_path / "a.jsonl")
    assert ds.where("id", ">=", 28).numbers.tolist() == [28, 29]
    assert ds.where("lang", "<", "dz").numbers.tolist() == list(range(0, 30, 2))
    with pytest.raises(wr.ConfigError, match="no column or key is called 'lnag'".replace("'", '"')) as wrong:
        ds.where("lnag", "==", "en")
    assert "id" in (wrong.value.hint or "") and "lang" in (wrong.value.hint or "")
    wr.write(tmp_path / "ids.parquet", [{"input_ids": np.arange(4), "score": i / 10} for i in range(10)], to="parquet")
    ids = wr.open(tmp_path / "ids.parquet", column="input_ids")
    assert ids.where("score", ">", 0.75).numbers.tolist() == [8, 9]


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("arguments", "message", "record"),
    [
        (("nope", "==", 1), 'no column or key is called "nope"', None),
        (("lang", ">", 1), '"lang" is a text here', 0),
        (("n", "==", "x"), '"n" is a number here', 0),
        (("score", "=", 1), '"=" is not a comparison', None),
        (("score", "==", None), "None is compared with nothing", None),
        (("n", "==", 2**70), "beyond 64 bits", None),
    ],
)
def test_a_wrong_condition_is_named(name: str, arguments: Any, message: str, record: int | None, tmp_path: Path) -> None:
    ds = wr.open(TABLES[name](tmp_path))
    with pytest.raises(wr.ConfigError, match=message) as wrong:
        ds.where(*arguments)
    assert wrong.value.record == record


# By pyarrow: missing values, NaN, and a column of a type that is not decoded as it is.
MISSING = """
import sys, pyarrow as pa, pyarrow.parquet as pq
table = {"x": pa.array([1.0, None, float("nan"), 3.0]), "t": pa.array(["a", None, "b", ""]), "b": pa.array([True, None, False, True])}
table |= {"i": pa.array([1, None, 3, -4], pa.int8()), "d": pa.array(["p", "q", None, "p"]).dictionary_encode()}
table |= {"u": pa.array([1, None, 2**64 - 1, 0], pa.uint64()), "v": pa.array(["a", None, "b", ""], pa.string_view())}
table |= {"h": pa.array([0.5, None, 1.5, 2.0], pa.float32()).cast(pa.float16())}
pq.write_table(pa.table(table), sys.argv[1], row_group_size=3)
"""


def test_missing_values_and_nan_match_as_the_page_says(tmp_path: Path) -> None:
    printed_by_loaders(MISSING, tmp_path / "t.parquet")
    ds = wr.open(tmp_path / "t.parquet")
    assert ds.where("x", "!=", 1).numbers.tolist() == [2, 3]
    assert ds.where("x", "<=", 3).numbers.tolist() == [0, 3]
    assert ds.where("x", "!=", float("nan")).numbers.tolist() == [0, 2, 3]
    assert ds.where("x", "<", float("inf")).numbers.tolist() == [0, 3]
    assert ds.where("t", "<", "b").numbers.tolist() == [0, 3]
    assert ds.where("b", "==", True).numbers.tolist() == [0, 3]
    assert ds.where("i", "<", 2.5).numbers.tolist() == [0, 3]
    assert ds.where("d", "==", "p").numbers.tolist() == [0, 3]
    assert ds.where("v", "<", "b").numbers.tolist() == [0, 3]
    assert ds.where("u", ">", 2**63).numbers.tolist() == [2]
    assert ds.where("h", ">=", 1.5).numbers.tolist() == [2, 3]
    assert len(ds.where("t", ">", "zzz")) == 0


WIDE = """
import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq
for part in range(2):
    random = np.random.default_rng(part)
    table = pa.table({"score": random.random(100_000).astype("f4"), "noise": random.integers(0, 2**62, 100_000)})
    pq.write_table(table, f"{sys.argv[1]}/{part}.parquet", row_group_size=30_000, compression="none", use_dictionary=False)
"""


def test_of_parquet_only_the_column_is_read_and_the_matches_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    printed_by_loaders(WIDE, folder)
    score = np.concatenate([np.random.default_rng(part).random(100_000).astype("f4") for part in range(2)])
    server = WebServer(folder)
    try:
        urls = [f"{server.url}/{part}.parquet" for part in range(2)]
        ds = wr.open(urls, cache=tmp_path / "cache")
        good = ds.where("score", ">=", 0.9)
        assert good.numbers.tolist() == np.flatnonzero(score >= 0.9).tolist()
        asked = [span for _, _, span in server.requests if span]
        read = sum(int(end) - int(start) + 1 for start, end in (span.removeprefix("bytes=").split("-") for span in asked if span.count("-") == 1))
        assert read < 0.7 * sum(file.stat().st_size for file in folder.iterdir())
        before = len(server.requests)
        assert wr.open(urls, cache=tmp_path / "cache").where("score", ">=", 0.9).numbers.tolist() == good.numbers.tolist()
        spans = {span for _, _, span in server.requests[before:] if span}
        assert len(spans) <= len(asked)
    finally:
        server.stop()


def test_an_edit_is_not_answered_from_the_cache(tmp_path: Path) -> None:
    path = lines(tmp_path)
    assert wr.open(path).where("lang", "==", "en").numbers.tolist() == list(range(0, N, 3))
    path.write_text(path.read_text().replace('"lang": "de"', '"lang": "en"', 1))
    assert wr.open(path).where("lang", "==", "en").numbers.tolist() == sorted([1, *range(0, N, 3)])


# Stores.


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


@pytest.mark.parametrize("name", ["shards", "jsonl", "parquet"])
def test_chosen_records_of_a_store_are_those_of_the_local_files(name: str, s3: S3Server, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = {**TOKENS, **TABLES}[name](tmp_path / "data")
    here = wr.open(path).select(CHOICES["curriculum"][:60])
    data = s3.put(path)
    there = wr.open(data, cache=tmp_path / "cache", store_options=s3.options).select(CHOICES["curriculum"][:60])
    assert all(same(there[i], here[i]) for i in range(60)) and word(there) == word(here)
    view: Any = (lambda data: data.rows()) if name in TABLES else (lambda data: data.pack(8))
    loaders = [wr.Loader(view(data), batch_size=4, epochs=1) for data in (here, there)]
    assert loaders[0].plan == loaders[1].plan
    for one, other in zip(loaders[0], loaders[1], strict=True):
        assert all(same(a, b) for a, b in zip(one, other)) if isinstance(one, list) else same(one, other)
    if name in TABLES:
        where = [data.where("lang", "==", "en") for data in (wr.open(path), wr.open(data, cache=tmp_path / "c", store_options=s3.options))]
        assert where[0].numbers.tolist() == where[1].numbers.tolist() == list(range(0, N, 3)) and word(where[0]) == word(where[1])


def test_nothing_is_fetched_but_what_chosen_records_need(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    n, width = 64, 1 << 17
    np.save(folder / "a.npy", np.arange(n * width, dtype=np.int32).reshape(n, width))
    server = WebServer(folder)
    try:
        sel = wr.open(f"{server.url}/a.npy", cache=tmp_path / "cache").select([50, 3])
        before = len(server.requests)
        for batch in wr.Loader(sel.crop(width, mode="start"), batch_size=1, shuffle=False, epochs=1):
            assert batch["values"].shape == (1, width)
        spans = [span for _, _, span in server.requests[before:] if span]
        places = [tuple(map(int, span.removeprefix("bytes=").split("-"))) for span in spans]
        size = 4 * width
        # What tells the file from another one is at both of its ends.
        wanted = [(0, 1 << 16), (128 + (n * size) - (1 << 16), 128 + n * size)]
        wanted += [(128 + record * size, 128 + (record + 1) * size) for record in (50, 3)]
        for start, end in places:
            assert any(start < to + (1 << 16) and end >= of - (1 << 16) for of, to in wanted), (start, end)
        assert sum(end - start + 1 for start, end in places) < 4 * 2 * size + (1 << 18)
    finally:
        server.stop()


# The command.


def test_the_command_chooses_as_python_does(tmp_path: Path) -> None:
    path = lines(tmp_path)
    ds = wr.open(path)
    mask = np.arange(N) % 5 == 2
    np.save(tmp_path / "mask.npy", mask)
    np.save(tmp_path / "numbers.npy", np.array([7, -1, 3]))
    for given, sel in (
        (["--select", "10:100:7"], ds.select(slice(10, 100, 7))),
        (["--select", tmp_path / "mask.npy"], ds.select(mask)),
        (["--select", tmp_path / "numbers.npy"], ds.select([7, -1, 3])),
        (["--select", "::2", "--where", "lang==en", "--where", "score >= 0.5"], ds.select(slice(0, None, 2)).where("lang", "==", "en").where("score", ">=", 0.5)),
    ):
        plan = json.loads(run("plan", path, "--rows", "--batch-size", 2, *given).stdout)
        assert plan == wr.Loader(sel.rows(), batch_size=2, rank=0, world_size=1).recipe()
        told = json.loads(run("trace", path, "--rows", "--batch-size", 2, "--no-shuffle", "--step", 0, *given, "--json").stdout)
        assert [row["reads"][0]["record"] for row in told["rows"]] == sel.numbers[:2].tolist()
        assert json.loads(run("inspect", path, *given, "--json").stdout)["info"]["records"] == len(sel)
        assert f"record {sel.numbers[0]} " in run("peek", path, "-n", 1, *given).stdout
    run("convert", path, tmp_path / "few.parquet", "--to", "parquet", "--where", "lang==fr", "--select", ":30")
    assert [row["text"] for row in wr.open(tmp_path / "few.parquet")] == [row["text"] for row in ROWS[2:30:3]]
    assert "is not a condition" in run("peek", path, "--where", "lang", code=2).stderr
    assert f"record {N} is out of range" in run("peek", path, "--select", save(tmp_path, [N]), code=1).stderr
    assert "a plan says itself" in run("trace", save_plan(tmp_path, ds), "--step", 0, "--where", "n>1", code=2).stderr


def save(folder: Path, numbers: list[int]) -> Path:
    np.save(folder / "wrong.npy", numbers)
    return folder / "wrong.npy"


def save_plan(folder: Path, ds: wr.Dataset) -> Path:
    (folder / "a.json").write_text(json.dumps(wr.Loader(ds.rows(), batch_size=2).recipe()))
    return folder / "a.json"


def test_convert_and_write_take_chosen_records_in_their_order(tmp_path: Path) -> None:
    ds = wr.open(TOKENS["shards"](tmp_path))
    order = CHOICES["curriculum"][:40]
    wr.convert(ds.select(order), tmp_path / "out", to="forager")
    out = wr.open(tmp_path / "out")
    assert all(out[i].tolist() == ds[int(number)].tolist() for i, number in enumerate(order))


def test_a_data_loader_reads_chosen_records_in_workers(tmp_path: Path) -> None:
    ds = wr.open(TOKENS["forager"](tmp_path))
    view = ds.select(CHOICES["curriculum"]).records(8)
    expected = [sample["input_ids"].tolist() for sample in view]
    loader = torch.utils.data.DataLoader(view, batch_size=10, num_workers=2)
    assert [row for batch in loader for row in batch["input_ids"].tolist()] == expected
