"""Documents that are filled up to a multiple: rows of `pack` and `bins`, compared with what they are defined to be."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import windrow as wr

REFERENCE = Path(__file__).parents[2] / "testdata" / "golden" / "orders" / "composition.py"
_spec = importlib.util.spec_from_file_location("composition", REFERENCE)
assert _spec is not None and _spec.loader is not None
reference: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

LENGTH = 24
N = 90


def documents(seed: int, most: int = 40) -> list[list[int]]:
    """Documents of 0 to 40 tokens, no token twice."""
    lengths = np.random.default_rng(seed).integers(0, most + 1, N)
    starts = 1 + np.cumsum([0, *lengths])
    return [list(range(a, a + m)) for a, m in zip(starts.tolist(), lengths.tolist(), strict=False)]


def written(folder: Path, docs: list[list[int]]) -> wr.Dataset:
    wr.write(folder, [np.array(doc, np.uint32) for doc in docs], to="shards", dtype="uint32", fsync=False)
    return wr.open(folder)


def all_rows(view: wr.View) -> dict[str, npt.NDArray[Any]]:
    return view.batch(range(len(view)))


@pytest.mark.parametrize("eos", [None, 0])
@pytest.mark.parametrize("multiple", [2, 8, 24])
@pytest.mark.parametrize("reshuffle", [False, True])
def test_a_pack_is_the_reference(tmp_path: Path, eos: int | None, multiple: int, reshuffle: bool) -> None:
    docs = documents(multiple)
    view = written(tmp_path / "docs", docs).pack(
        LENGTH, eos=eos, documents=True, multiple=multiple, pad_value=7, reshuffle=reshuffle
    )
    for epoch in range(3 if reshuffle else 1):
        view.set_epoch(epoch)
        order = reference.docs_order(len(docs), 0, epoch) if reshuffle else range(len(docs))
        expected = reference.padded_pack(docs, order, LENGTH, multiple, eos, 7)
        assert len(view) == len(expected) > 0
        found = all_rows(view)
        for i, row in enumerate(expected):
            cu = row.pop("cu_seqlens")
            starts = found["cu_seqlens"][i]
            assert starts[: len(cu)].tolist() == cu.tolist() and set(starts[len(cu) :].tolist()) <= {LENGTH}
            assert found["max_seqlen"][i] == np.diff(cu).max() and not (cu % multiple).any()
            for name, values in row.items():
                assert found[name][i].tolist() == values.tolist(), (name, i)
        stream = reference.stream(docs, order, eos, multiple)[3]
        coverage = view.coverage()
        assert coverage["padded"] == (~stream[: len(view) * LENGTH]).sum()
        assert coverage["used"] + coverage["unseen"] == sum(map(len, docs))


def test_a_pack_of_one_is_the_pack(tmp_path: Path) -> None:
    ds = written(tmp_path / "docs", documents(1))
    plain, one = ds.pack(LENGTH, eos=0, documents=True), ds.pack(LENGTH, eos=0, documents=True, multiple=1)
    assert plain.loader(batch_size=1).plan == one.loader(batch_size=1).plan
    filled = ds.pack(LENGTH, eos=0, documents=True, multiple=8).loader(batch_size=1).plan
    assert "view=pack(length=24,eos=0,multiple=8);" in filled
    reshuffled = ds.pack(LENGTH, eos=0, documents=True, multiple=8, reshuffle=True).loader(batch_size=1).plan
    assert "view=pack(length=24,eos=0,reshuffle=docs-v1,multiple=8);" in reshuffled
    assert "view=bins(length=24,strategy=best_fit,multiple=8);" in ds.bins(LENGTH, multiple=8).loader(batch_size=1).plan


def test_labels_masks_and_positions_of_a_pack(tmp_path: Path) -> None:
    docs = documents(3)
    lengths = [len(doc) for doc in docs]
    learned = np.random.default_rng(5).integers(0, 2, sum(lengths)).astype(bool)
    rows = np.split(learned, np.cumsum(lengths)[:-1])
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"input_ids": d, "loss_mask": m.astype(int).tolist()}) + "\n" for d, m in zip(docs, rows, strict=True)))
    ds = wr.open(path, column="input_ids", mask_column="loss_mask")
    by_token = dict(zip(sum(docs, []), learned.tolist(), strict=True))
    ids, owner, place, real = reference.stream(docs, range(len(docs)), None, 8, 0)
    for labels in ("next", "same", None):
        view = ds.pack(LENGTH, documents=True, multiple=8, labels=labels, positions="document")
        found = all_rows(view)
        n = len(view) * LENGTH
        assert found["position_ids"].ravel().tolist() == place[:n].tolist()
        assert found["input_ids"].ravel().tolist() == ids[:n].tolist()
        kept = np.array([bool(by_token.get(token)) for token in ids.tolist()]) & real
        if labels == "next":
            told = np.append(kept[1:] & (owner[1:] == owner[:-1]), [False])
            expected = np.where(told, np.append(ids[1:], [0]), -100)
        else:
            first = (place == 0) | (np.arange(len(ids)) % LENGTH == 0)
            told = kept & ~first if labels == "same" else kept
            expected = np.where(told, ids, -100)
        assert found["loss_masks"].ravel().tolist() == told[:n].astype(int).tolist(), labels
        if labels is not None:
            assert found["labels"].ravel().tolist() == expected[:n].tolist(), labels


@pytest.mark.parametrize("reshuffle", [False, True])
@pytest.mark.parametrize("overlong", ["cut", "split", "drop"])
@pytest.mark.parametrize("labels", ["next", "same", None])
def test_bins_fill_each_document(tmp_path: Path, reshuffle: bool, overlong: Any, labels: Any) -> None:
    docs = documents(9)
    document = {token: doc for doc in docs for token in doc}
    view = written(tmp_path / "docs", docs).bins(LENGTH, overlong=overlong, multiple=8, pad_value=7, reshuffle=reshuffle, labels=labels)
    seen: list[int] = []
    padded = 0
    for row in view:
        cu = row["cu_seqlens"]
        ends = cu[: int(np.argmax(cu)) + 1].tolist()
        assert not (cu % 8).any() and row["input_ids"][ends[-1] :].tolist() == [7] * (LENGTH - ends[-1])
        padded += LENGTH - ends[-1]
        for number, (a, b) in enumerate(zip(ends, ends[1:], strict=False)):
            doc = document[int(row["input_ids"][a])]
            first = doc.index(int(row["input_ids"][a]))
            part = doc[first : first + LENGTH]
            n = len(part)
            fill = b - a - n
            assert 0 <= fill < 8 and row["input_ids"][a:b].tolist() == part + [7] * fill
            assert row["position_ids"][a:b].tolist() == list(range(b - a)) and set(row["segment_ids"][a:b].tolist()) == {number}
            following = doc[first + 1 : first + 1 + n]
            # A piece of a document whose next token is in another row has a label there, except of one that is cut or dropped.
            has_last = len(following) == n and (labels == "next")
            masks = {"next": [1] * (n - 1) + [int(has_last)], "same": [0] + [1] * (n - 1), None: [1] * n}[labels]
            assert row["loss_masks"][a:b].tolist() == masks + [0] * fill
            if labels == "next":
                assert row["labels"][a:b].tolist() == (following if has_last else doc[first + 1 : first + n] + [7]) + [-100] * fill
            elif labels == "same":
                assert row["labels"][a:b].tolist() == [-100, *part[1:]] + [-100] * fill
            seen += part
            padded += fill
    coverage = view.coverage()
    assert coverage["padded"] == padded and sorted(seen) == sorted(set(seen))
    if overlong == "split":
        assert sorted(seen) == sorted(sum(docs, []))


def test_fractions_are_filled_with_the_padding(tmp_path: Path) -> None:
    path = tmp_path / "series.json"
    path.write_text("[[1.5, 2.5, 3.5]]")
    row = wr.open(path).bins(8, multiple=4, pad_value=9)[0]
    assert row["labels"].tolist() == [2.5, 3.5, 9, 9, 9, 9, 9, 9] and row["loss_masks"].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert row["segment_ids"].tolist() == [0] * 4 + [-1] * 4


def test_a_run_of_filled_documents_is_traced_found_and_continued(tmp_path: Path) -> None:
    docs = documents(4)
    ds = written(tmp_path / "docs", docs)
    for view in (ds.pack(LENGTH, eos=0, documents=True, multiple=8, reshuffle=True), ds.bins(LENGTH, multiple=4)):
        loader = wr.Loader(view, batch_size=2, seed=3)
        batches = list(loader)
        for step, batch in enumerate(batches):
            rows = wr.trace(loader, step)
            for row, ids in zip(rows, batch["input_ids"], strict=True):
                read = [docs[r["record"]][r["start"] + k] for r in row["reads"] for k in range(r["len"])]
                of_documents = [token for token in ids.tolist() if token]
                assert [token for token in read if token in set(of_documents)] == of_documents
                assert len(set(read) - set(of_documents)) <= 1, "the label after the last input"
                for r in row["reads"]:
                    found = wr.find(loader, r["record"])
                    assert any(f["step"] == step and f["row"] == row["row"] for f in found) or r["len"] == 0
        again = wr.Loader(view, batch_size=2, seed=3)
        middle = len(batches) // 2
        for _ in range(middle):
            next(again)
        resumed = wr.Loader(view, batch_size=2, seed=3, num_threads=0)
        resumed.load_state_dict(again.state_dict())
        for batch, expected in zip(resumed, batches[middle:], strict=True):
            assert all((batch[name] == values).all() for name, values in expected.items())
        # The EOS token of the pack is one of its values.
        if "bins" in loader.plan:
            assert loader.stats()["values"] == sum(int((batch["input_ids"] > 0).sum()) for batch in batches)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    ds = written(tmp_path / "docs", documents(4))
    for make, said in [
        (lambda: ds.pack(LENGTH, multiple=8), "multiple=8 of a pack without documents"),
        (lambda: ds.pack(LENGTH, documents=True, multiple=7), "multiple=7 does not divide a length of 24"),
        (lambda: ds.bins(LENGTH, multiple=5), "multiple=5 does not divide a length of 24"),
        (lambda: ds.bins(LENGTH, multiple=0), "multiple is 0"),
        (lambda: ds.pack(LENGTH, documents=True, multiple=0), "multiple is 0"),
        (lambda: ds.pack(LENGTH, documents=True, pad_value=3), "pad_value=3 of a pack whose documents are not filled"),
        (lambda: ds.bins(LENGTH, multiple=8, dtype="uint32"), "cannot hold the label -100"),
    ]:
        with pytest.raises(wr.ConfigError, match=said):
            make()


def test_the_command_has_the_same(tmp_path: Path) -> None:
    docs = documents(4)
    ds = written(tmp_path / "docs", docs)

    def program(*arguments: object) -> str:
        line = [sys.executable, "-m", "windrow", *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    order = ["--batch-size", 2, "--seed", 3]
    plan = tmp_path / "plan.json"
    program("plan", tmp_path / "docs", "--pack", LENGTH, "--eos", 0, "--documents", "--multiple", 8, *order, "-o", plan)
    view = ds.pack(LENGTH, eos=0, documents=True, multiple=8)
    loader = wr.Loader(view, batch_size=2, seed=3)
    assert json.loads(plan.read_text())["plan"] == loader.plan
    program("extract", plan, "--step", 1, "-o", tmp_path / "batch.npz")
    next(loader)
    batch, extracted = next(loader), np.load(tmp_path / "batch.npz")
    assert all((extracted[name] == values).all() for name, values in batch.items())
    other = tmp_path / "other.json"
    bins = tmp_path / "bins.json"
    program("plan", tmp_path / "docs", "--bins", LENGTH, "--multiple", 8, *order, "-o", bins)
    assert json.loads(bins.read_text())["plan"] == wr.Loader(ds.bins(LENGTH, multiple=8), batch_size=2, seed=3).plan
    program("plan", tmp_path / "docs", "--pack", LENGTH, "--eos", 0, "--documents", "--multiple", 4, *order, "-o", other)
    assert not wr.diff(plan, other)["same"] and wr.diff(plan, plan)["same"]
