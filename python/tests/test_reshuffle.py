"""Documents in another order each epoch, compared with what the order is defined to be, in NumPy."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import windrow as wr

REFERENCE = Path(__file__).parents[2] / "testdata" / "golden" / "orders" / "composition.py"
_spec = importlib.util.spec_from_file_location("composition", REFERENCE)
assert _spec is not None and _spec.loader is not None
reference: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

LENGTH = 16
N = 150


def documents(n: int = N, base: int = 1) -> list[list[int]]:
    """Documents of 0 to 40 tokens, no token twice."""
    lengths = np.random.default_rng(n).integers(0, 41, n)
    starts = base + np.cumsum([0, *lengths])
    return [list(range(a, a + m)) for a, m in zip(starts.tolist(), lengths.tolist(), strict=False)]


def written(folder: Path, docs: list[list[int]]) -> wr.Dataset:
    wr.write(folder, [np.array(doc, np.uint32) for doc in docs], to="shards", dtype="uint32", fsync=False)
    return wr.open(folder)


@pytest.fixture
def docs() -> list[list[int]]:
    return documents()


@pytest.fixture
def ds(tmp_path: Path, docs: list[list[int]]) -> wr.Dataset:
    return written(tmp_path / "docs", docs)


def blocks(docs: list[list[int]], seed: int, epoch: int, *, scope: int | None = None, **more: Any) -> tuple[Any, Any]:
    order = reference.docs_order(len(docs), seed, epoch, scope=scope)
    return reference.pack_blocks(docs, order, LENGTH, **more)  # type: ignore[no-any-return]


@pytest.mark.parametrize("eos", [None, 0])
@pytest.mark.parametrize("labels", ["next", "same"])
@pytest.mark.parametrize("scope", [None, 16, 1000])
def test_a_view_is_of_the_epoch_that_it_is_told(ds: wr.Dataset, docs: Any, eos: Any, labels: Any, scope: Any) -> None:
    view = ds.pack(LENGTH, eos, labels=labels, reshuffle=True, scope=scope)
    assert len(view) == len(ds.pack(LENGTH, eos, labels=labels))
    for epoch in (None, 0, 3, 1):
        if epoch is not None:
            view.set_epoch(epoch)
        inputs, targets = blocks(docs, 0, epoch or 0, scope=scope, eos=eos, labels=labels)
        batch = view.batch(range(len(view)))
        assert np.array_equal(batch["input_ids"], inputs) and np.array_equal(batch["labels"], targets)
        assert np.array_equal(view[5]["input_ids"], inputs[5])


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_loader_goes_through_an_order_of_its_seed_and_each_epoch(ds: wr.Dataset, docs: Any, shuffle: bool) -> None:
    view = ds.pack(LENGTH, 0, reshuffle=True)
    loader = wr.Loader(view, 4, seed=7, shuffle=shuffle, drop_last=False, epochs=3)
    for epoch in range(3):
        rows = [tuple(row) for batch in loader for row in batch["input_ids"].tolist()]
        expected = [tuple(row) for row in blocks(docs, 7, epoch, eos=0)[0].tolist()]
        assert rows == expected if not shuffle else (Counter(rows) == Counter(expected) and rows != expected)


def test_rows_say_where_their_documents_are(ds: wr.Dataset, docs: Any) -> None:
    view = ds.pack(LENGTH, 0, documents=True, reshuffle=True)
    view.set_epoch(2)
    expected = reference.padded_pack(docs, reference.docs_order(N, 0, 2), LENGTH, 1, eos=0)
    assert len(view) == len(expected)
    for row, whole in zip(view, expected, strict=True):
        for name in ("input_ids", "segment_ids", "position_ids"):
            assert row[name].tolist() == whole[name].tolist()
        starts = whole["cu_seqlens"].tolist()
        assert row["cu_seqlens"].tolist() == starts + [LENGTH] * (LENGTH + 1 - len(starts))
        # The first token of a document is the label of none; with an EOS token the reference counts documents as records.
        learned = row["labels"] != -100
        assert (row["labels"][learned] == whole["labels"][learned]).all()
        assert learned.sum() >= (whole["labels"] != -100).sum()


def test_shifted_rows_are_of_the_same_stream(ds: wr.Dataset, docs: Any) -> None:
    view = ds.pack(LENGTH, shifted=True, reshuffle=True)
    assert np.array_equal(view.batch(range(len(view)))["targets"], blocks(docs, 0, 0, labels="same")[0])


def test_every_document_is_found_where_it_is_read_and_traced(ds: wr.Dataset, docs: Any) -> None:
    loader = wr.Loader(ds.pack(LENGTH, 0, reshuffle=True), 8, seed=3, drop_last=False)
    for epoch in (0, 4):
        order = reference.docs_order(N, 3, epoch)
        for record in range(0, N, 7):
            found = wr.find(loader, record, epoch=epoch)
            assert sorted(at["sample"] for at in found) == reference.pack_find(docs, order, LENGTH, record, eos=0)
            for at in found[:2]:
                (row,) = wr.trace(loader, step=at["step"], row=at["row"], epoch=epoch)
                assert record in [read["record"] for read in row["reads"]] and row["sample"] == at["sample"]
    steps = len(loader)
    covered = [wr.coverage(loader, (epoch * steps, epoch * steps + steps), list_records=True)["parts"][0] for epoch in range(2)]
    for epoch, part in enumerate(covered):
        order = reference.docs_order(N, 3, epoch)
        read = [record for record in range(N) if reference.pack_find(docs, order, LENGTH, record, eos=0)]
        assert [record for first, end in part["record_ranges"] for record in range(first, end)] == read


def test_coverage_is_of_the_epoch_that_the_view_is_told(ds: wr.Dataset, docs: Any) -> None:
    for eos in (None, 0):
        view = ds.pack(LENGTH, eos, reshuffle=True)
        found = []
        for epoch in range(12):
            view.set_epoch(epoch)
            order = reference.docs_order(N, 0, epoch)
            covered = view.coverage()
            skipped = [r for r in range(N) if not reference.pack_find(docs, order, LENGTH, r, eos=eos)]
            assert covered["skipped_records"] == len(skipped)
            assert covered["used"] + covered["unseen"] == sum(map(len, docs))
            found.append((covered["used"], covered["repeated"], covered["unseen"]))
        assert eos is not None or len(set(found)) == 1


def test_a_run_is_resumed_on_other_ranks_and_in_a_fork(ds: wr.Dataset) -> None:
    view = ds.pack(LENGTH, 0, reshuffle=True)

    def loaders(world: int, **more: Any) -> list[wr.Loader]:
        options = {"global_batch_size": 12, "seed": 1, "epochs": 3, **more}
        return [wr.Loader(view, rank=rank, world_size=world, **options) for rank in range(world)]

    whole = [batch["input_ids"].tolist() for batch in loaders(1)[0].stream()]
    at, state, got = 0, None, []
    for world, until, threads in [(2, 5, 2), (4, 11, 0), (1, 17, 3), (3, len(whole), 1)]:
        ranks = loaders(world, num_threads=threads)
        for loader in ranks:
            if state is not None:
                loader.load_state_dict(json.loads(state))
        for _ in range(at, until):
            got.append([row for loader in ranks for row in next(loader)["input_ids"].tolist()])
        (state,) = {json.dumps(loader.state_dict()) for loader in ranks}
        at = until
    assert got == whole

    loader = loaders(1)[0]
    for _ in range(7):
        next(loader)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        rest = [batch["input_ids"].tolist() for batch in loader.stream()]
        os.write(writer, b"right" if rest == whole[7:] else b"wrong")
        os._exit(0)
    os.close(writer)
    assert os.read(reader, 5) == b"right" and os.waitpid(child, 0)[1] == 0
    assert [batch["input_ids"].tolist() for batch in loader.stream()] == whole[7:]


def test_parts_of_a_mixture_have_orders_of_their_passes(tmp_path: Path, ds: wr.Dataset, docs: Any) -> None:
    few = documents(20, base=100_000)
    parts = [docs, few]
    views = {"many": ds.pack(LENGTH, reshuffle=True), "few": written(tmp_path / "few", few).pack(LENGTH, reshuffle=True)}
    mixed = wr.mix({name: (view, 0.5) for name, view in views.items()}, stop="all")
    loader = wr.Loader(mixed, 10, seed=5, drop_last=False)
    seen = set()
    for step, batch in zip(range(len(loader) + 5), loader.stream(), strict=False):
        for row, traced in zip(batch["input_ids"].tolist(), wr.trace(loader, step), strict=True):
            number, pass_, epoch = traced["part"], traced["pass"], step // len(loader)
            order = reference.docs_order(len(parts[number]), 5, epoch, pass_, view=number)
            assert row == reference.pack_blocks(parts[number], order, LENGTH)[0][traced["sample"]].tolist()
            seen.add((number, pass_, epoch))
    assert {(0, 0, 0), (1, 0, 0), (1, 3, 0), (0, 0, 1), (1, 0, 1)} <= seen
    for record in range(0, 20, 5):
        places = {(at["step"], at["row"]) for at in wr.find(loader, record, part="few")}
        expected = {
            (step, row["row"])
            for step in range(len(loader))
            for row in wr.trace(loader, step)
            if row["part"] == 1 and record in [read["record"] for read in row["reads"]]
        }
        assert places == expected


def test_a_mixture_by_number_goes_through_each_pass_of_a_part_once(tmp_path: Path) -> None:
    docs = documents(40)
    view = written(tmp_path / "d", docs).pack(LENGTH, labels=None, reshuffle=True)
    mixed = wr.mix({"a": (view, 0.75), "b": (view, 0.25)})
    rows: list[list[int]] = []
    for epoch in range(8):
        mixed.set_epoch(epoch)
        rows += [mixed[i]["input_ids"].tolist() for i in range(len(mixed))]
    # Parts go on where they were: the first one has an order in each pass of its own.
    of_first = [row for i, row in enumerate(rows) if wr_part(mixed, i % len(mixed)) == 0]
    n = len(view)
    for pass_ in range(3):
        expected = reference.pack_blocks(docs, reference.docs_order(40, 0, 0, pass_), LENGTH, labels="same")[0]
        assert of_first[pass_ * n : pass_ * n + n] == expected.tolist()


def wr_part(mixed: wr.Mix, position: int) -> int:
    loader = wr.Loader(mixed, 1, shuffle=False, drop_last=False)
    part: int = wr.trace(loader, position)[0]["part"]
    return part


def tokens_of(loader: Any) -> list[int]:
    return [int(token) for batch in loader for token in np.asarray(batch["input_ids"]).reshape(-1)]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader_read_one_order_each_epoch(ds: wr.Dataset, docs: Any, start: str) -> None:
    view = ds.pack(LENGTH, labels=None, reshuffle=True)
    loader: DataLoader[Any] = DataLoader(view, batch_size=5, num_workers=2, multiprocessing_context=start, timeout=120)  # type: ignore[arg-type]
    epochs = [tokens_of(loader) for _ in range(2)]
    for tokens in epochs:
        assert len(set(tokens)) == len(tokens) == len(view) * LENGTH, "no token comes twice"
    assert epochs[0] != epochs[1]
    for epoch in (4, 5):
        view.set_epoch(epoch)
        assert tokens_of(loader) == blocks(docs, 0, epoch, labels="same")[0].reshape(-1).tolist()
    again = pickle.loads(pickle.dumps(view))
    assert again[3]["input_ids"].tolist() == view[3]["input_ids"].tolist()


@pytest.mark.parametrize("scope", ["all", 64])
def test_rows_of_bins_keep_their_shape_and_their_documents_trade_places(tmp_path: Path, scope: Any) -> None:
    docs = [doc for doc in documents(400) if doc]
    ds = written(tmp_path / "d", docs)
    view = ds.bins(64, reshuffle=True, scope=scope)
    of_token = {token: number for number, doc in enumerate(docs) for token in doc}
    each = 64 if scope == 64 else len(docs)
    # Scopes have classes of their own, numbered through.
    rows, classes, n_before = [], [], 0
    for first in range(0, len(docs), each):
        of, slots = reference.length_classes([len(doc) for doc in docs[first : first + each]])
        rows += [[c + n_before for c in row] for row in reference.bin_rows(of, slots, 64)]
        classes += [first + np.flatnonzero(of == c) for c in range(len(slots))]
        n_before += len(slots)
    assert len(view) == len(rows)
    shapes = set()
    for epoch in range(3):
        view.set_epoch(epoch)
        key = reference.epoch_key(0, epoch)

        def in_order(c: int, members: Any, key: int = key) -> Any:
            order = reference.Permutation(reference.keyed_hash(key, c, 0, 1), len(members))
            return iter(members[order.apply(np.arange(len(members))).astype(int)])

        holders = [in_order(c, members) for c, members in enumerate(classes)]
        for row, slots in zip(view, rows, strict=True):
            expected = [int(next(holders[c])) for c in slots]
            starts = row["input_ids"][(row["position_ids"] == 0) & (row["segment_ids"] >= 0)]
            assert [of_token[int(token)] for token in starts] == expected
            ids = [token for doc in expected for token in docs[doc]]
            assert row["input_ids"].tolist() == ids + [0] * (64 - len(ids))
        shapes.add(tuple(view.batch(range(len(view)))["cu_seqlens"].shape))
        covered = view.coverage()
        assert (covered["used"], covered["unseen"]) == (sum(map(len, docs)), 0)
    assert len(shapes) == 1


def test_pieces_of_long_documents_come_first_and_stay(tmp_path: Path) -> None:
    docs = documents(60)
    view = written(tmp_path / "d", docs).bins(LENGTH, overlong="split", reshuffle=True, labels=None)
    full = [doc[at : at + LENGTH] for doc in docs for at in range(0, len(doc) - LENGTH, LENGTH)]
    everything = Counter(token for doc in docs for token in doc)
    loader = wr.Loader(view, 1, seed=0, shuffle=False)
    for epoch in range(2):
        view.set_epoch(epoch)
        rows = [row["input_ids"].tolist() for row in view]
        assert rows[: len(full)] == full
        assert Counter(token for row in rows for token in row if token) == everything
        for record in range(0, 60, 9):
            own = {i for i, row in enumerate(rows) if set(row) & set(docs[record])}
            assert {at["sample"] for at in wr.find(loader, record, epoch=epoch)} == own


def test_plans_name_the_order_and_others_stay_as_they_were(ds: wr.Dataset) -> None:
    def words(view: wr.View) -> str:
        plan = str(wr.Loader(view, 4).state_dict()["plan"])
        return plan.split(";")[1]

    assert words(ds.pack(LENGTH, 0)) == f"view=pack(length={LENGTH},eos=0)"
    assert words(ds.pack(LENGTH, 0, scope="all")) == f"view=pack(length={LENGTH},eos=0)"
    assert words(ds.pack(LENGTH, 0, reshuffle=True)) == f"view=pack(length={LENGTH},eos=0,reshuffle=docs-v1)"
    assert words(ds.pack(LENGTH, 0, reshuffle=True, scope="all")) == words(ds.pack(LENGTH, 0, reshuffle=True))
    assert words(ds.pack(LENGTH, reshuffle=True, scope=64)) == f"view=pack(length={LENGTH},eos=none,reshuffle=docs-v1(scope=64))"
    # 2 MiB hold all of them.
    assert words(ds.pack(LENGTH, reshuffle=True, scope="block")) == f"view=pack(length={LENGTH},eos=none,reshuffle=docs-v1(scope={N}))"
    assert words(ds.bins(LENGTH)) == f"view=bins(length={LENGTH},strategy=best_fit)"
    assert words(ds.bins(LENGTH, reshuffle=True, scope=None)) == f"view=bins(length={LENGTH},strategy=best_fit,reshuffle=docs-v1)"
    recipe = wr.Loader(ds.pack(LENGTH), 4).recipe()
    assert recipe["parts"][0]["view"] == {"pack": {"length": LENGTH}}
    state = wr.Loader(ds.pack(LENGTH), 4).state_dict()
    with pytest.raises(wr.MismatchError, match="reshuffle=docs-v1"):
        wr.Loader(ds.pack(LENGTH, reshuffle=True), 4).load_state_dict(state)


def test_what_cannot_be_reshuffled_is_refused_with_what_to_do(tmp_path: Path, ds: wr.Dataset) -> None:
    with pytest.raises(wr.ConfigError) as refused:
        ds.pack(LENGTH, scope=16)
    assert "reshuffle=True" in str(refused.value)
    np.arange(1, 300, dtype=np.uint16).tofile(tmp_path / "one.bin")
    one = wr.open(tmp_path / "one.bin", dtype="uint16")
    for make in (one.pack, one.bins):
        with pytest.raises(wr.ConfigError) as refused:
            make(LENGTH, reshuffle=True)
        assert "wr.open(path, document_eos=ID)" in str(refused.value)
    assert len(wr.open(tmp_path / "one.bin", dtype="uint16", document_eos=50).pack(LENGTH, reshuffle=True)) > 0
    with pytest.raises(wr.ConfigError) as refused:
        next(wr.Loader(ds.pack(LENGTH, reshuffle=True), 4, shuffle=wr.Blocks(size=4)))
    assert 'scope="block"' in str(refused.value)
    by_blocks = wr.Loader(ds.pack(LENGTH, labels=None, reshuffle=True, scope=32), 4, shuffle=wr.Blocks(size=4))
    rows = [row for batch in by_blocks for row in batch["input_ids"]]
    assert len({int(token) for row in rows for token in row}) == len(rows) * LENGTH
    others: list[Any] = [0, "blocks"]
    for wrong in others:
        with pytest.raises(wr.ConfigError):
            ds.pack(LENGTH, reshuffle=True, scope=wrong)


def test_the_command_reads_reshuffled_plans(tmp_path: Path, ds: wr.Dataset, docs: Any) -> None:
    def program(*arguments: object) -> Any:
        command = [sys.executable, "-m", "windrow", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 4), done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    options = ["--pack", LENGTH, "--eos", 0, "--batch-size", 4, "--no-shuffle", "--seed", 2]
    plans = [tmp_path / name for name in ("plain.json", "moved.json")]
    program("plan", tmp_path / "docs", *options, "-o", plans[0])
    program("plan", tmp_path / "docs", *options, "--reshuffle", "--scope", 16, "-o", plans[1])
    program("extract", plans[1], "--step", 3, "-o", tmp_path / "batch.npz")
    batch = np.load(tmp_path / "batch.npz")
    assert np.array_equal(batch["input_ids"], blocks(docs, 2, 0, scope=16, eos=0)[0][12:16])
    traced = program("trace", plans[1], "--step", 3, "--json")
    scopes = {read["record"] // 16 for row in traced["rows"] for read in row["reads"]}
    assert scopes and max(scopes) - min(scopes) <= 1, "four rows in a row are of neighbours"
    assert program("diff", *plans, "--json")["first"]["step"] == 0
    assert wr.diff(plans[1], plans[1])["same"]
    covered = program("coverage", plans[1], "--steps", "0..5", "--json")
    assert covered["parts"][0]["samples"] == 20
