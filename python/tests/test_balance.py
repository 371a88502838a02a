"""Rows that ranks get by what they cost, compared with what the rule is defined to be, in plain Python."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

REFERENCE = Path(__file__).parents[2] / "testdata" / "golden" / "orders" / "composition.py"
_spec = importlib.util.spec_from_file_location("composition", REFERENCE)
assert _spec is not None and _spec.loader is not None
reference: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

LENGTH = 64
ROWS = 16


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> wr.Dataset:
    """Documents of 1 to 150 tokens, most of them short, no token twice."""
    folder = tmp_path_factory.mktemp("balance")
    lengths = np.minimum(np.random.default_rng(1).lognormal(3, 1, 300).astype(int) + 1, 150)
    ends = np.cumsum(lengths)
    docs = [np.arange(end - n, end, dtype=np.uint32) + 1 for n, end in zip(lengths, ends, strict=True)]
    wr.write(folder / "docs", docs, to="shards", dtype="uint32", fsync=False)
    return wr.open(folder / "docs")


def packed(ds: wr.Dataset) -> wr.View:
    return ds.pack(LENGTH, documents=True, eos=0)


def of_borders(batch: dict[str, Any]) -> list[list[int]]:
    """The lengths of documents in each row, where `cu_seqlens` tells them."""
    return [[int(n) for n in np.diff(row) if n] for row in batch["cu_seqlens"]]


def of_segments(batch: dict[str, Any]) -> list[list[int]]:
    """Where a row has padding, which is no document."""
    rows = zip(batch["input_ids"], batch["segment_ids"], strict=True)
    return [[int(n) for n in np.unique(segments[ids > 0], return_counts=True)[1]] for ids, segments in rows]


def of_inputs(batch: dict[str, Any]) -> list[list[int]]:
    return [[int(n)] if n else [] for n in (batch["labels"] > 0).sum(1)]


def of_lengths(batch: dict[str, Any]) -> list[list[int]]:
    return [[int(n)] for n in batch["lengths"]]


VIEWS: dict[str, tuple[Callable[[wr.Dataset], Any], Callable[[dict[str, Any]], list[list[int]]]]] = {
    "pack": (packed, of_borders),
    "pack, reshuffled": (lambda ds: ds.pack(LENGTH, documents=True, eos=0, reshuffle=True), of_borders),
    "pack, no labels": (lambda ds: ds.pack(LENGTH, documents=True, labels=None), of_borders),
    "bins": (lambda ds: ds.bins(LENGTH), of_segments),
    "bins, split": (lambda ds: ds.bins(LENGTH, overlong="split"), of_segments),
    "segments": (lambda ds: ds.segments(LENGTH), of_segments),
    "records": (lambda ds: ds.records(LENGTH, pad="longest"), of_inputs),
    "records, grouped": (lambda ds: ds.records(LENGTH, pad="longest", group=ROWS), of_inputs),
    "crop": (lambda ds: ds.crop(LENGTH), of_lengths),
    "mix": (lambda ds: wr.mix({"a": (packed(ds), 0.3), "b": (ds.pack(LENGTH, documents=True), 0.7)}), of_borders),
}
COSTS: dict[str, tuple[Any, Callable[[list[int]], int]]] = {
    "attention": ("attention", reference.attention()),
    "a number": (7, reference.attention(7)),
    "a function": (lambda lengths: int((lengths**3).sum()), lambda lengths: sum(n**3 for n in lengths)),
    "tokens": ("tokens", sum),
}


def rows(batch: dict[str, Any]) -> list[int]:
    """The first token of each row that is not an EOS, which no other row has: padding is another one in another batch."""
    ids = batch["input_ids" if "input_ids" in batch else "values"]
    return [int(row[row > 0][0]) for row in ids]


def loaders(view: Any, world: int, **options: Any) -> list[wr.Loader]:
    return [wr.Loader(view, rank=rank, world_size=world, **{"global_batch_size": ROWS, "seed": 3} | options) for rank in range(world)]


@pytest.mark.parametrize("of", VIEWS)
@pytest.mark.parametrize("by", COSTS)
def test_ranks_get_the_rows_that_the_reference_deals_them(ds: wr.Dataset, of: str, by: str) -> None:
    (make, lengths), (balance, cost) = VIEWS[of], COSTS[by]
    view = make(ds)
    if of.startswith(("pack", "mix")) and by == "tokens":
        with pytest.raises(wr.ConfigError, match="same number of tokens"):
            wr.Loader(view, 8, balance=balance)
        return
    (one,) = loaders(view, 1, balance=balance)
    for world in (2, 4, 8):
        ranks = loaders(view, world, balance=balance, num_threads=world % 3)
        one.set_epoch(1)
        one.set_epoch(0)
        moved = 0
        for step, batch in zip(range(4), one, strict=False):
            expected = reference.balance([cost(one) for one in lengths(batch)], world)
            whole = rows(batch)
            found = [rows(next(rank)) for rank in ranks]
            assert found == [[whole[row] for row in dealt] for dealt in expected], f"step {step} on {world} ranks"
            moved += sum(found, []) != whole
        assert moved, "some batch is dealt otherwise than in order"


def test_micro_batches_are_those_of_the_reference(ds: wr.Dataset) -> None:
    view = packed(ds)
    (one,) = loaders(view, 1)
    for world, accumulate in ((1, 4), (2, 4), (4, 2)):
        ranks = loaders(view, world, balance="attention", accumulate=accumulate)
        assert all(len(rank) == accumulate * len(one) and rank.batch_size == ROWS // world // accumulate for rank in ranks)
        one.set_epoch(1)
        one.set_epoch(0)
        for batch in one:
            costs = [reference.attention()(row) for row in of_borders(batch)]
            whole = rows(batch)
            for rank, batches in zip(ranks, reference.micro_batches(costs, world, accumulate), strict=True):
                for dealt in batches:
                    assert rows(next(rank)) == [whole[row] for row in dealt]
    per_rank = wr.Loader(view, 2, rank=1, world_size=2, accumulate=3, seed=3)
    assert per_rank.recipe()["global_batch_size"] == 12 and per_rank.recipe()["accumulate"] == 3
    assert len(next(per_rank)["input_ids"]) == 2


@pytest.mark.parametrize("threads", [0, 2])
def test_a_state_within_a_step_is_that_of_its_beginning(ds: wr.Dataset, threads: int) -> None:
    options = {"accumulate": 2, "balance": "attention", "num_threads": threads}
    (loader, other), (again, _) = loaders(packed(ds), 2, **options), loaders(packed(ds), 2, **options)
    first, second, third = (rows(next(loader)) for _ in range(3))
    state = loader.state_dict()
    assert state["samples"] == loader.samples == ROWS
    again.load_state_dict(state)
    assert rows(next(again)) == third
    assert rows(next(other)) + rows(next(other)) and other.state_dict() == state
    assert [first, second] != [third, rows(next(loader))]


def test_a_batch_that_collate_refuses_comes_again_within_its_step(ds: wr.Dataset) -> None:
    fails = [False, True, False, False]

    def collate(batch: Any) -> Any:
        if fails.pop(0):
            raise ValueError("not now")
        return rows(batch)

    (plain, _), (failing, _) = loaders(packed(ds), 2, accumulate=4), loaders(packed(ds), 2, accumulate=4, collate=collate)
    expected = [rows(next(plain)) for _ in range(3)]
    assert next(failing) == expected[0]
    with pytest.raises(ValueError, match="not now"):
        next(failing)
    assert [next(failing), next(failing)] == expected[1:]


def test_a_run_resumes_on_other_ranks_and_without_balance(ds: wr.Dataset) -> None:
    view = VIEWS["mix"][0](ds)
    (one,) = loaders(view, 1)
    state = one.state_dict()
    for world, balance in ((8, "attention"), (4, "attention"), (2, None), (8, 5), (4, "attention")):
        ranks = loaders(view, world, balance=balance)
        for rank in ranks:
            rank.load_state_dict(state)
        for _ in range(3):
            assert sorted(sum((rows(next(rank)) for rank in ranks), [])) == sorted(rows(next(one)))
        states = [rank.state_dict() for rank in ranks]
        assert all(state == one.state_dict() for state in states)
        state = states[0]


def test_trace_says_the_rank_of_each_row(ds: wr.Dataset) -> None:
    loader = loaders(packed(ds), 4, balance="attention")[2]
    batch = next(loader)
    traced = wr.trace(loader, 0)
    assert [row["row"] for row in traced] == list(range(ROWS)) and sorted(row["rank"] for row in traced) == sorted(list(range(4)) * 4)
    own = [row for row in traced if row["rank"] == 2]
    assert wr.trace(loader, 0, rank=2, world_size=4) == own == [wr.trace(loader, 0, row=n, rank=2, world_size=4)[0] for n in range(4)]
    starts = [row["reads"][0]["start"] for row in own if row["reads"][0]["len"]]
    assert len(starts) >= 3
    whole = wr.extract(loader, 0)
    assert [rows(whole)[row["row"]] for row in own] == rows(batch) == rows(wr.extract(loader, 0, rank=2, world_size=4))
    assert wr.find(loader, 5) == wr.find(loaders(packed(ds), 1)[0], 5)
    plain = loaders(packed(ds), 1)[0]
    assert all("rank" not in row for row in wr.trace(plain, 0))
    assert [row["rank"] for row in wr.trace(plain, 0, rank=1, world_size=4)] == [1] * 4


def test_a_plan_as_text_knows_the_rows_of_a_rank_unless_a_function_dealt_them(ds: wr.Dataset) -> None:
    loader = loaders(packed(ds), 4, balance=24576, accumulate=2)[1]
    recipe = loader.recipe()
    assert (recipe["balance"], recipe["accumulate"], loader.balance, loader.accumulate) == ("attention", 2, "attention", 2)
    assert wr.trace(recipe, 3, rank=1, world_size=4) == wr.trace(loader, 3, rank=1, world_size=4)
    plain = loaders(packed(ds), 1)[0]
    assert plain.plan == loader.plan and "balance" not in plain.recipe() and "accumulate" not in plain.recipe()
    assert wr.diff(plain, loader) == {"same": True, "first": None, "compared": 0, "differences": []}
    of_function = loaders(packed(ds), 4, balance=lambda lengths: len(lengths))[1]
    assert of_function.recipe()["balance"] == "function" and of_function.balance is not None and "lambda" in of_function.balance
    assert wr.trace(of_function.recipe(), 0) == wr.trace(plain, 0)
    with pytest.raises(wr.ConfigError, match="a plan as text does not hold it"):
        wr.trace(of_function.recipe(), 0, rank=1, world_size=4)


class Squares:
    """What a row costs, but for one call, which gives or raises something else."""

    def __init__(self, wrong: Any = None) -> None:
        self.wrong, self.calls = wrong, 0

    def __call__(self, lengths: np.ndarray[Any, Any]) -> Any:
        assert lengths.dtype == np.int64 and lengths.ndim == 1 and lengths.sum() == LENGTH
        self.calls += 1
        if self.calls != 20:
            return np.int64((lengths * lengths).sum())
        if isinstance(self.wrong, Exception):
            raise self.wrong
        return self.wrong


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (1.5, wr.ConfigError, "gave 1.5 for a row"),
        (-1, wr.ConfigError, "gave -1 for a row"),
        (None, wr.ConfigError, "gave None for a row"),
        ("7", wr.ConfigError, "gave '7' for a row"),
        (1 << 128, wr.ConfigError, "for a row"),
        (KeyError("no such"), KeyError, "no such"),
    ],
)
def test_what_a_function_raises_or_gives_is_an_error_of_its_batch(ds: wr.Dataset, wrong: Any, kind: Any, said: str, threads: int) -> None:
    loader = loaders(packed(ds), 2, balance=Squares(wrong), num_threads=threads)[0]
    found: list[Any] = []
    errors: list[Exception] = []
    # Threads come to the steps in any order: which of them has call 20 is known without them alone.
    while not errors or len(found) < 3:
        try:
            found.append(rows(next(loader)))
        except (wr.ConfigError, KeyError) as error:
            assert isinstance(error, kind) and said in str(error)
            assert threads or len(found) == 1
            errors.append(error)
    # It is asked again, of all rows of the step.
    plain = loaders(packed(ds), 2, balance=lambda lengths: int((lengths * lengths).sum()))[0]
    assert found == [rows(next(plain)) for _ in found] and len(errors) == 1


def test_a_function_is_called_once_a_row(ds: wr.Dataset) -> None:
    squares = Squares(7)
    loader = loaders(packed(ds), 4, balance=squares, accumulate=2, epochs=1)[3]
    steps = len(list(loader)) // 2
    assert squares.calls == steps * ROWS and steps == len(loader) // 2


def test_a_forked_child_continues_within_the_step(ds: wr.Dataset, tmp_path: Path) -> None:
    loader, plain = (loaders(packed(ds), 2, balance="attention", accumulate=4, num_threads=2)[0] for _ in range(2))
    expected = [rows(next(plain)) for _ in range(4)]
    assert [rows(next(loader)), rows(next(loader))] == expected[:2]
    child = os.fork()
    if child == 0:
        try:
            (tmp_path / "rows").write_text(repr([rows(next(loader)), rows(next(loader))]))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert eval((tmp_path / "rows").read_text()) == expected[2:]
    assert rows(next(loader)) == expected[2]


def test_what_cannot_be_balanced_is_refused(ds: wr.Dataset, tmp_path: Path) -> None:
    np.arange(5000, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    raw = wr.open(tmp_path / "tokens.bin", dtype="uint16")
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    for view, balance, said, hint in (
        (ds.pack(8), "attention", "without documents all of its rows cost the same", "documents=True"),
        (packed(ds), "tokens", "same number of tokens", 'balance="attention"'),
        (ds.windows(8), "attention", "all of its rows cost the same", "leave balance= out"),
        (wr.open(tmp_path / "rows.jsonl").rows(), "tokens", "is not known", "give lengths="),
        (raw.pack(8, documents=True, eos=7), "attention", "this is one record", "document_eos=ID"),
        (wr.mix({"a": (ds.pack(8), 1), "b": (ds.pack(8), 1)}), 5, "without documents", "documents=True"),
        (ds.bins(8), "words", 'balance="words"', "tokens, attention"),
        (ds.bins(8), -1, "-1 where a number", None),
    ):
        with pytest.raises(wr.ConfigError, match=said) as raised:
            wr.Loader(view, 2, balance=balance)  # type: ignore[arg-type]
        assert hint is None or hint in (raised.value.hint or ""), raised.value.hint
        assert said.startswith("-1") or "balance" in str(raised.value)
    with pytest.raises(TypeError, match="not float"):
        wr.Loader(ds.bins(8), 2, balance=0.5)  # type: ignore[arg-type]
    for options, said in (
        ({"balance": "attention", "global_batch_size": 18}, "balance= with a batch of 18 rows over 4 ranks"),
        ({"accumulate": 3, "global_batch_size": 16}, "accumulate=3 with a batch of 16 rows over 4 ranks"),
        ({"accumulate": 0}, "accumulate=0"),
    ):
        with pytest.raises(wr.ConfigError, match=said):
            loaders(packed(ds), 4, **options)
    n = len(wr.Loader(packed(ds), 1))
    world, batch = next((w, k * w) for w in (3, 5, 7) for k in range(2, 9) if n % w and n % (k * w) > w)
    loaders(packed(ds), world, global_batch_size=batch, drop_last=False)
    with pytest.raises(wr.ConfigError, match=f"balance= with the last batch of an epoch of {n % batch} rows over {world} ranks") as raised:
        loaders(packed(ds), world, global_batch_size=batch, drop_last=False, balance="attention")
    assert 'last="repeat"' in (raised.value.hint or "")


def test_blocks_are_read_by_all_ranks_with_a_warning(ds: wr.Dataset, caplog: pytest.LogCaptureFixture) -> None:
    view = ds.pack(LENGTH, documents=True, eos=0)
    options = {"shuffle": wr.Blocks(size=4, lanes=2), "balance": "attention"}
    ranks = loaders(view, 2, **options)
    assert any("each rank reads the blocks of all" in record.getMessage() for record in caplog.records)
    (one,) = loaders(view, 1, **options)
    for _ in range(3):
        assert sorted(rows(next(ranks[0])) + rows(next(ranks[1]))) == sorted(rows(next(one)))


def test_a_function_for_each_row_knows_where_it_is(ds: wr.Dataset) -> None:
    seen: dict[int, int] = {}

    def note(row: Any, rng: np.random.Generator) -> Any:
        if len(seen) == 0:
            seen[0] = int(row["input_ids"][0])
            raise ValueError("look")
        return row["input_ids"]

    loader = loaders(packed(ds), 4, balance="attention", map=note, num_threads=0)[1]
    own = wr.trace(loader, 0, rank=1, world_size=4)
    with pytest.raises(ValueError, match="look") as raised:
        next(loader)
    place = raised.value.windrow  # type: ignore[attr-defined]
    assert (place["step"], place["row"], place["sample"], place["record"]) == (0, 0, own[0]["sample"], own[0]["reads"][0]["record"])
