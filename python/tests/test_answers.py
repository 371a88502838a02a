"""What a run read and gave: trace, find, diff, coverage and extract agree with the batches, also where a part of the run is skipped."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

RANKS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Series that name themselves: value t of record r of part p is 100,000 p + 100 r + t."""
    folder = tmp_path_factory.mktemp("answers")
    for part, n in (("web", 60), ("code", 25)):
        base = 0 if part == "web" else 100_000
        lines = [json.dumps({"sequence": [base + 100 * r + t for t in range(9 + r % 4)]}) for r in range(n)]
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def mixed(folder: Path, weights: tuple[float, float] = (0.7, 0.3), length: int = 8) -> wr.Mix:
    views = {name: wr.open(folder / f"{name}.jsonl", format="series-jsonl").records(length) for name in ("web", "code")}
    return wr.mix({name: (view, weight) for (name, view), weight in zip(views.items(), weights, strict=True)}, stop="all")


def loader(folder: Path, **options: Any) -> wr.Loader:
    given = {"global_batch_size": 12, "seed": 3, "rank": 0, "world_size": 1, "num_threads": 0, **options}
    return wr.Loader(mixed(folder), **given)


def records(batch: dict[str, Any]) -> list[tuple[int, int]]:
    return [(int(first) // 100_000, int(first) % 100_000 // 100) for first in batch["input_ids"][:, 0]]


def plan(path: Path, of: wr.Loader, **changed: Any) -> Path:
    path.write_text(json.dumps({**of.recipe(), **changed}))
    return path


def said(*arguments: str | Path, code: int = 0) -> str:
    command = [sys.executable, "-m", "windrow", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == code, (ran.stdout, ran.stderr)
    return ran.stdout if code in (0, 4) else ran.stderr


def shown(*arguments: str | Path, code: int = 0) -> Any:
    return json.loads(said(*arguments, "--json", code=code))


@pytest.mark.parametrize("skip", [None, [(24, 60), (100, 260)]])
def test_all_answers_are_those_of_the_batches_of_three_ranks(folder: Path, tmp_path: Path, skip: Any) -> None:
    n_steps = 17
    runs = [loader(folder, rank=rank, world_size=RANKS, skip=skip) for rank in range(RANKS)]
    batches, epochs = [], []
    for _ in range(n_steps):
        batches.append([next(run) for run in runs])
        epochs.append(runs[0].epoch)
    file = plan(tmp_path / "plan.json", runs[0])
    read: dict[int, list[int]] = {0: [], 1: []}
    for step, of_ranks in enumerate(batches):
        rows = [row for batch in of_ranks for row in records(batch)]
        traced = wr.trace(file, step)
        assert [(row["part"], row["reads"][0]["record"]) for row in traced] == rows
        if step in (0, 9):
            printed = shown("trace", file, "--step", str(step))
            assert (printed["epoch"], printed["rows"]) == (epochs[step], traced)
        epoch = epochs[step]
        for row, (part, record) in enumerate(rows):
            found = wr.find(file, record, part=part, epoch=epoch)
            assert any((f["position"], f["row"]) == (traced[row]["position"], row) for f in found)
            again = [f for f in found if (f["position"], f["row"]) == (traced[row]["position"], row)]
            assert wr.trace(file, again[0]["step"], epoch=epoch)[row]["position"] == traced[row]["position"]
            read[part].append(record)
        for rank, batch in enumerate(of_ranks):
            extracted = wr.extract(file, step, rank=rank, world_size=RANKS)
            assert all((extracted[name] == array).all() for name, array in batch.items())
    covered = wr.coverage(file, (0, n_steps), list_records=True)
    by_rank = [wr.coverage(file, (0, n_steps), rank=rank, world_size=RANKS) for rank in range(RANKS)]
    assert covered["steps"] == n_steps
    for part, (name, lengths) in enumerate([("web", 60), ("code", 25)]):
        counted = covered["parts"][part]
        assert (counted["name"], counted["records_of"], counted["samples"]) == (name, lengths, len(read[part]))
        numbers = [n for start, end in counted["record_ranges"] for n in range(start, end)]
        assert numbers == sorted(set(read[part])) and counted["records"] == len(numbers)
        # records(8) reads up to 9 values of each, and all of these have 9 or more.
        assert counted["values"] == 9 * len(read[part])
        [of_file] = counted["files"]
        assert of_file["file"].endswith(f"{name}.jsonl") and of_file["values"] == counted["values"]
        assert sum(of_rank["parts"][part]["samples"] for of_rank in by_rank) == counted["samples"]
    with pytest.raises(wr.ConfigError, match="steps 5 to 2: they end before they begin"):
        wr.coverage(file, (5, 2))
    assert wr.coverage(file, (2, 2))["steps"] == 0
    printed = shown("coverage", file, "--steps", f"0..{n_steps}", "--list-records")
    assert printed["parts"] == covered["parts"]
    assert f"web: {len(read[0])} samples" in said("coverage", file, "--steps", f"0..{n_steps}")


def test_skips_leave_out_positions_and_nothing_else(folder: Path) -> None:
    every = {}
    run = loader(folder, global_batch_size=1, epochs=3)
    for position, batch in enumerate(run.stream()):
        every[position] = records(batch)[0]
    epoch = len(every) // 3
    skips = [(24, 30), (epoch - 5, epoch + 7), (epoch + 40, 2 * epoch + 3)]
    for batch_size, last in [(1, {}), (6, {}), (7, {"drop_last": False})]:
        skipping = loader(folder, global_batch_size=batch_size, epochs=3, skip=skips, **last)
        given, positions = [], []
        for batch in skipping.stream():
            given.append(records(batch))
            end = skipping.epoch * epoch + skipping.samples
            positions.append(range(end - len(given[-1]), end))
        for rows, at in zip(given, positions, strict=True):
            assert rows == [every[p] for p in at]
            assert not any(start <= p < end for p in at for start, end in skips)
        begun = {at.start for at in positions}
        assert {end for _, end in skips} <= begun
        delivered = {p for at in positions for p in at}
        left_out = set(every) - delivered - {p for start, end in skips for p in range(start, end)}
        assert not left_out or (batch_size == 6 and len(left_out) < 6 * (len(skips) + 3))
        assert [len(loader(folder, global_batch_size=batch_size, skip=skips, **last))] == [
            sum(at.start < epoch for at in positions)
        ]


def test_the_last_batch_before_a_skip_is_filled_like_an_epochs(folder: Path) -> None:
    run = loader(folder, skip=[(30, 48)], last="repeat")
    batches = [next(run) for _ in range(4)]
    first = records(batches[0])
    assert records(batches[2]) == records(next(loader(folder, skip=[(0, 24)])))[:6] + first[:6]
    assert (run.epoch, run.samples, run.stats()["repeated"]) == (0, 60, 6)
    assert records(wr.extract(run, 2)) == records(batches[2])


def test_a_state_before_a_skip_continues_with_it_on_any_number_of_ranks(folder: Path) -> None:
    plain = loader(folder)
    batches = [next(plain) for _ in range(2)]
    state = plain.state_dict()
    assert len(batches) == 2 and state["samples"] == 24
    with_skip = loader(folder, skip=[(24, 48)])
    with_skip.load_state_dict(state)
    after = records(next(with_skip))
    assert after == records(wr.extract(loader(folder), 4))
    later = with_skip.state_dict()
    assert later["samples"] == 60 and later["plan"].endswith(";skip=24..48")
    expected = [records(next(with_skip)) for _ in range(3)]
    ranks = [loader(folder, skip=[(24, 48)], rank=rank, world_size=RANKS) for rank in range(RANKS)]
    for rank in ranks:
        rank.load_state_dict(later)
    for rows in expected:
        assert [row for rank in ranks for row in records(next(rank))] == rows
    # A second skip that is not reached yet, and none of those that are.
    more = loader(folder, skip=[(24, 48), (200, 212)])
    more.load_state_dict(later)
    assert [records(next(more)) for _ in range(3)] == expected
    with pytest.raises(wr.MismatchError, match="skip=24..48"):
        plain.load_state_dict(later)
    with pytest.raises(wr.MismatchError, match="skip"):
        loader(folder, skip=[(12, 48)]).load_state_dict(state)
    with pytest.raises(wr.ConfigError, match="skips nothing"):
        loader(folder, skip=[(5, 5)])


def test_records_that_are_left_out_never_come_and_the_others_keep_their_numbers(folder: Path, tmp_path: Path) -> None:
    out = {"web": [59, 3, 4, 17], "code": range(5, 9)}
    left_out = {(0, n) for n in out["web"]} | {(1, n) for n in out["code"]}
    run = loader(folder, exclude=out, epochs=2, drop_last=False)
    batches = [records(batch) for batch in run.stream()]
    assert {row for rows in batches for row in rows} == {(p, r) for p, n in ((0, 60), (1, 25)) for r in range(n)} - left_out
    file = plan(tmp_path / "plan.json", loader(folder, exclude=out, drop_last=False))
    for step in (0, 1, len(batches) // 2 - 1):
        assert [(row["part"], row["reads"][0]["record"]) for row in wr.trace(file, step)] == batches[step]
    for part, name in enumerate(("web", "code")):
        for record in (0, 5, 24):
            found = wr.find(file, record, part=name)
            assert bool(found) == ((part, record) not in left_out)
            assert all(batches[f["step"]][f["row"]] == (part, record) for f in found)
    covered = wr.coverage(file, (0, len(batches) // 2), list_records=True)["parts"]
    for part, n in enumerate((60, 25)):
        numbers = {r for start, end in covered[part]["record_ranges"] for r in range(start, end)}
        assert covered[part]["records_of"] == n and numbers == {r for rows in batches for p, r in rows if p == part}
    # Other ranks are the same run; one with the records is not.
    state = loader(folder, exclude=out).state_dict()
    ranks = [loader(folder, exclude=out, rank=rank, world_size=RANKS) for rank in range(RANKS)]
    assert [row for rank in ranks for row in records(next(rank))] == batches[0]
    with pytest.raises(wr.MismatchError, match="source="):
        loader(folder).load_state_dict(state)
    with pytest.raises(wr.OutOfRangeError, match="60"):
        loader(folder, exclude={"web": [60]})
    with pytest.raises(wr.OutOfRangeError, match="no part is named"):
        loader(folder, exclude={"books": [1]})
    with pytest.raises(TypeError, match="dict"):
        loader(folder, exclude=[1])
    with pytest.raises(wr.OutOfRangeError):
        wr.find(file, 60, part="web")


def test_views_of_every_kind_leave_out_records(folder: Path) -> None:
    ds = wr.open(folder / "web.jsonl", format="series-jsonl")
    train, validation = ds.split(0.25, seed=1)
    views = [
        ds.records(8), ds.pack(10), ds.pack(10, documents=True), ds.pack(10, eos=7), ds.windows(4, stride=2), ds.bins(16), ds.segments(20),
        ds.crop(5, mode="start"), train.records(8), validation.pack(6), ds.windows(4, scaler="standard", fields=["item"]),
    ]  # fmt: skip
    for view in views:
        options = {"batch_size": 1, "shuffle": False, "epochs": 1, "rank": 0, "world_size": 1, "num_threads": 0}
        whole, without = wr.Loader(view, **options), wr.Loader(view, exclude=[2, 9, 10], **options)
        for step, batch in enumerate(without):
            reads = [read for row in wr.trace(without, step) for read in row["reads"]]
            assert not {read["record"] for read in reads} & {2, 9, 10}
            located = {(read["record"], read["locations"][0]["file"]) for read in reads if read["locations"]}
            for record, _ in located:
                assert any(found["step"] == step for found in wr.find(without, record)), (view, record)
            if "item" in batch:
                assert list(batch["item"]) == [row["reads"][0]["record"] for row in wr.trace(without, step)]
        assert not wr.find(without, 9) and wr.find(whole, 9)
    with pytest.raises(wr.ConfigError, match="exclude"):
        wr.Loader(ds.windows(4, scaler=lambda x: x / 2), batch_size=1, exclude=[1])


def test_what_is_skipped_fills_no_batch(folder: Path) -> None:
    view = wr.open(folder / "web.jsonl", format="series-jsonl").records(8)
    options: dict[str, Any] = {"global_batch_size": 32, "shuffle": False, "epochs": 1, "last": "repeat", "num_threads": 0}
    for skip, fills in (((0, 20), [*range(20, 44)]), ((10, 30), [0, 1]), ((40, 60), [*range(24)])):
        one = wr.Loader(view, rank=0, world_size=1, skip=[skip], **options)
        batches = [records(batch) for batch in one]
        assert [record for _, record in batches[-1]][-len(fills) :] == fills
        assert not {record for rows in batches for _, record in rows} & set(range(*skip))
        ranks = [wr.Loader(view, rank=rank, world_size=2, skip=[skip], **options) for rank in range(2)]
        assert [row for rank in ranks for row in records([*rank][-1])] == batches[-1]
        for step, rows in enumerate(batches):
            assert [row["reads"][0]["record"] for row in wr.trace(one, step)] == [record for _, record in rows]
        for record in range(60):
            places = {(step, row) for step, rows in enumerate(batches) for row, read in enumerate(rows) if read[1] == record}
            assert {(found["step"], found["row"]) for found in wr.find(one, record)} == places


def test_find_looks_behind_what_is_skipped(tmp_path: Path) -> None:
    np.arange(5001, dtype="uint16").tofile(tmp_path / "tokens.bin")
    view = wr.open(tmp_path / "tokens.bin", dtype="uint16").pack(1)
    loader = wr.Loader(view, batch_size=4, shuffle=False, skip=[(0, 3000)], rank=0, world_size=1)
    found = wr.find(loader, 0)
    assert len(found) == 1000 and found[0] == {"step": 0, "row": 0, "position": 3000, "sample": 3000}
    assert len(wr.find(loader, 0, most=5000)) == 2000


def test_an_error_names_the_record_as_exclude_counts(tmp_path: Path) -> None:
    bad = {2, 5, 6}
    rows = json.dumps([[1000 if record in bad else record] * 4 for record in range(12)])
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(rows)
    ds = wr.open(tmp_path / "a.json")
    parts = [ds, *ds.split(0.5, seed=3)]
    options: dict[str, Any] = {"shuffle": False, "epochs": 1, "rank": 0, "world_size": 1}
    for view in (*(part.records(4, dtype="int8") for part in parts), *(part.pack(3, dtype="int8") for part in parts)):
        left_out: list[int] = []
        while len(left_out) <= len(bad):
            try:
                assert sum(1 for _ in wr.Loader(view, batch_size=2, exclude=left_out, **options)) > 1
                break
            except wr.CorruptError as error:
                assert error.path == str(tmp_path / "a.json")
                assert error.record is not None and error.record not in left_out
                left_out.append(error.record)
        assert len(left_out) <= len(bad), view
    mixed = wr.mix({name: (wr.open(tmp_path / f"{name}.json").records(4, dtype="int8"), 0.5) for name in ("a", "b")})
    with pytest.raises(wr.CorruptError, match="b.json .record 6"):
        list(wr.Loader(mixed, batch_size=1, exclude={"a": bad, "b": {2, 5}}, **options))


def test_rows_that_differ_are_named_as_exclude_counts(tmp_path: Path) -> None:
    lines = (json.dumps({"x": [0] * (2 if record == 4 else 3)}) for record in range(6))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    view = wr.open(tmp_path / "rows.jsonl").rows(stack=True)
    loader = wr.Loader(view, batch_size=4, shuffle=False, exclude=[0, 2], rank=0, world_size=1)
    with pytest.raises(wr.MismatchError, match="in record 1") as raised:
        next(loader)
    assert raised.value.record == 4


def test_the_command_line_counts_records_as_exclude_does(tmp_path: Path) -> None:
    (tmp_path / "tokens.jsonl").write_text("\n".join(json.dumps([65 + record] * 4) for record in range(6)) + "\n")
    view = wr.open(tmp_path / "tokens.jsonl", format="series-jsonl").records(4)
    file = plan(tmp_path / "plan.json", wr.Loader(view, batch_size=1, shuffle=False, exclude=[0, 2], rank=0, world_size=1))
    assert "record 3" in (said_of := said("trace", file, "--step", 1, "--tokenizer", "bytes")) and "| DDDD" in said_of
    assert [read["step"] for read in shown("find", file, "--record", 3)["read_by"]] == [1]
    assert shown("find", file, "--record", 2)["read_by"] == []
    assert "leaves out some" in said("find", file, "--record", 1, "--file", "tokens.jsonl", code=2)


def test_rows_of_about_the_same_length_come_together(tmp_path: Path) -> None:
    lengths = np.random.default_rng(5).integers(1, 400, 2000)
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps({"sequence": [i] * int(n)}) for i, n in enumerate(lengths)) + "\n")
    ds = wr.open(tmp_path / "rows.jsonl", format="series-jsonl")
    options: dict[str, Any] = {"global_batch_size": 16, "seed": 2, "rank": 0, "world_size": 1, "epochs": 2}
    padding, orders = {}, {}
    for group in (None, 16):
        view = ds.records(512, pad="longest", labels=None, group=group)
        run = wr.Loader(view, **options)
        ids = [batch["input_ids"] for batch in run.stream()]
        real = sum(int(lengths[row[0]]) for rows in ids for row in rows)
        padding[group] = 1 - real / sum(rows.size for rows in ids)
        orders[group] = [int(row[0]) for rows in ids for row in rows]
    assert padding[None] > 0.4 and padding[16] < 0.03
    assert sorted(orders[16][:2000]) == sorted(orders[16][2000:]) == list(range(2000))
    assert orders[16][:2000] != orders[16][2000:]
    # Resumed on other ranks, it is the same order, and the answers hold.
    view = ds.records(512, pad="longest", labels=None, group=16)
    run = wr.Loader(view, **options)
    for _ in range(7):
        next(run)
    state = run.state_dict()
    assert "+grouped(rows=16)" in state["plan"]
    given = []
    ranks = [wr.Loader(view, **{**options, "rank": rank, "world_size": 4}) for rank in range(4)]
    for rank in ranks:
        rank.load_state_dict(state)
    for _ in range(20):
        given += [int(row[0]) for rank in ranks for row in next(rank)["input_ids"]]
    assert given == orders[16][7 * 16 : 27 * 16]
    for position in (0, 500, 1999):
        [found] = wr.find(run, orders[16][position])
        assert found["position"] == position
    with pytest.raises(wr.MismatchError):
        wr.Loader(ds.records(512, pad="longest", labels=None), **options).load_state_dict(state)
    with pytest.raises(wr.ConfigError, match="shuffle=False"):
        wr.Loader(view, batch_size=1, shuffle=False)
    with pytest.raises(wr.ConfigError, match="group"):
        wr.mix({"a": (view, 1), "b": (view, 1)})
    with pytest.raises(wr.ConfigError, match="groups of 0 rows"):
        ds.records(8, group=0)


def test_diff_says_the_first_step_and_why(folder: Path, tmp_path: Path) -> None:
    a = plan(tmp_path / "a.json", loader(folder))
    recipe = json.loads(a.read_text())

    def against(**changed: Any) -> Any:
        changed = {**recipe, **changed}
        changed.pop("plan")
        b = tmp_path / "b.json"
        b.write_text(json.dumps(changed))
        found = shown("diff", a, b, code=0 if wr.diff(a, b)["same"] else 4)
        assert {name: found[name] for name in ("same", "first", "compared", "differences")} == wr.diff(a, b)
        return found

    assert said("diff", a, a) == "the same batches\n"
    same = against(weights=[7, 3], names=["x", "y"])
    assert same["same"] and same["first"] is None and same["differences"] == []
    moved = recipe["parts"][0]
    copied = tmp_path / "moved.jsonl"
    copied.write_bytes(Path(moved["path"]).read_bytes())

    for what, changed in [
        ("seed", {"seed": 4}),
        ("batch size", {"global_batch_size": 6}),
        ("order", {"shuffle": False}),
        ("mixture", {"weights": [0.5, 0.5]}),
        ("view", {"parts": [{**part, "view": {"records": {"length": 7, "pad_value": 0}}} for part in recipe["parts"]]}),
    ]:
        found = against(**changed)
        assert (found["same"], found["first"]["step"]) == (False, 0), what
        assert {difference["what"] for difference in found["differences"]} == {what}
    # An epoch's end is found without the steps before it, and a skip where it begins.
    length = len(mixed(folder))
    found = against(drop_last=False)
    assert found["same"] == (length % 12 == 0)
    if not found["same"]:
        assert (found["first"]["step"], found["differences"][0]["what"]) == (length // 12, "last batch")
    found = against(skip=[[36, 48]])
    assert (found["first"]["step"], found["differences"][0]["what"]) == (3, "skip")
    assert against(skip=[[120_000, 120_001]])["compared"] == 1000
    # A value that differs in one record: the first step that reads it.
    lines = copied.read_text().splitlines()
    lines[7] = lines[7].replace("701", "7010")
    copied.write_text("\n".join(lines) + "\n")
    found = against(parts=[{**moved, "path": str(copied)}, recipe["parts"][1]])
    steps = [step for step in range(20) for row in wr.trace(a, step) if (row["part"], row["reads"][0]["record"]) == (0, 7)]
    assert found["first"]["step"] == steps[0] and found["first"]["what"].startswith("row ")
    assert {difference["what"] for difference in found["differences"]} == {"data"}
    assert said("diff", a, tmp_path / "b.json", code=4).startswith(f"first difference  step {steps[0]}")


def test_extract_writes_arrays_for_numpy_and_text(folder: Path, tmp_path: Path) -> None:
    run = loader(folder, rank=1, world_size=RANKS)
    batches = [next(run) for _ in range(3)]
    file = plan(tmp_path / "plan.json", run)
    of_rank = ("--rank", "1", "--world-size", str(RANKS))
    said("extract", file, "--step", "2", "-o", tmp_path / "batch.npz", *of_rank)
    with np.load(tmp_path / "batch.npz") as arrays:
        assert set(arrays) == set(batches[2])
        for name, array in batches[2].items():
            assert arrays[name].dtype == array.dtype and (arrays[name] == array).all()
    text = said("extract", file, "--step", "2", *of_rank)
    first = batches[2]["input_ids"][0].tolist()
    head, row = text.splitlines()[:2]
    assert head == "row 0" and row.startswith("input_ids: ")
    assert [float(number) for number in row.split()[1:]] == first
    said("extract", file, "--step", "2", "-o", tmp_path / "batch.txt", *of_rank)
    assert (tmp_path / "batch.txt").read_text() == text
    assert "neither .npz nor .txt" in said("extract", file, "--step", "2", "-o", "batch.csv", code=2)


def test_extract_decodes_tokens_and_writes_records_as_json(tmp_path: Path) -> None:
    np.frombuffer(b"the quick brown fox jumps over the lazy dog", dtype=np.uint8).astype(np.uint16).tofile(tmp_path / "t.bin")
    cut = ("--dtype", "uint16", "--pack", "9", "--batch-size", "2", "--no-shuffle")
    said_text = said("extract", tmp_path / "t.bin", *cut, "--step", "1", "--tokenizer", "bytes")
    assert said_text == "row 0\nx jumps o\nrow 1\nver the l\n"
    bfloat = wr.open(tmp_path / "t.bin", dtype="uint16").pack(4, dtype="bfloat16").loader(batch_size=1, shuffle=False)
    (tmp_path / "half.json").write_text(json.dumps(bfloat.recipe()))
    said("extract", tmp_path / "half.json", "--step", "0", "-o", tmp_path / "half.npz")
    assert np.load(tmp_path / "half.npz")["input_ids"].tolist() == [[116.0, 104.0, 101.0, 32.0]]
    (tmp_path / "r.jsonl").write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
    rows = ("extract", tmp_path / "r.jsonl", "--rows", "--batch-size", "2", "--no-shuffle", "--step", "0")
    assert said(*rows) == 'row 0\n{"a":1,"b":"x"}\nrow 1\n{"a":2,"b":"y"}\n'
    assert "records, which are not arrays" in said(*rows, "-o", tmp_path / "r.npz", code=2)


def test_metrics_count_values_and_padding(folder: Path) -> None:
    view = wr.open(folder / "web.jsonl", format="series-jsonl").records(15)
    run = wr.Loader(view, 20, shuffle=False, rank=0, world_size=1)
    lengths = [min(9 + r % 4, 15) for r in range(40)]
    batches = [next(run) for _ in range(2)]
    assert sum(len(batch["labels"]) for batch in batches) == 40
    stats = run.stats()
    assert (stats["samples"], stats["values"], stats["positions"]) == (40, sum(lengths), 40 * 15)
    assert stats["padding_share"] == pytest.approx(1 - sum(lengths) / 600)
    metrics = run.metrics()
    assert all(type(number) is float for number in metrics.values())
    expected = {"data/samples": 40, "data/values": sum(lengths), "data/epoch": 0, "data/epoch_samples": 40, "data/batches": 2}
    assert {name: metrics[name] for name in expected} == expected
    assert metrics["data/padding_share"] == stats["padding_share"]
    assert metrics["data/waited_seconds"] == stats["waited_secs"]


def test_prometheus_reads_the_text(folder: Path) -> None:
    from prometheus_client.parser import text_fd_to_metric_families

    run = loader(folder, rank=1, world_size=RANKS)
    assert len(next(run)["input_ids"]) == 4
    families = {family.name: family for family in text_fd_to_metric_families(io.StringIO(run.prometheus()))}
    assert len(families) == len(run.metrics())
    [sample] = families["windrow_samples"].samples
    assert (families["windrow_samples"].type, sample.name, sample.labels, sample.value) == (
        "counter",
        "windrow_samples_total",
        {"rank": "1"},
        4.0,
    )
    assert families["windrow_padding_share"].type == "gauge"
