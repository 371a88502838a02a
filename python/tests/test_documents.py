"""Documents in packs: what keeps them apart is what attention needs, in a model as in the arrays; exact on any ranks."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import windrow as wr

VOCAB, LENGTH, EOS = 50, 48, 0


@pytest.fixture
def documents() -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.integers(1, VOCAB, int(n)).astype(np.uint16) for n in random.integers(0, 40, 60)]


@pytest.fixture
def records(tmp_path: Path, documents: list[np.ndarray]) -> wr.Dataset:
    """Each document a record."""
    wr.write(tmp_path / "records", documents, to="shards", dtype="uint16")
    return wr.open(tmp_path / "records")


@pytest.fixture
def stream(tmp_path: Path, documents: list[np.ndarray]) -> wr.Dataset:
    """One stream, in which an EOS token ends each document; the last one is left out, as pack puts it there."""
    joined = np.concatenate([np.append(one, EOS) for one in documents]).astype(np.uint16)[:-1]
    joined.tofile(tmp_path / "stream.bin")
    return wr.open(tmp_path / "stream.bin", dtype="uint16")


class TinyGPT(nn.Module):
    """Two layers of causal attention; learned positions; with or without a mask of documents."""

    def __init__(self, *, masked: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.masked, width = masked, 32
        self.tokens, self.positions = nn.Embedding(VOCAB, width), nn.Embedding(LENGTH, width)
        self.queries = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.mixes = nn.ModuleList(nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width)) for _ in range(2))
        self.head = nn.Linear(width, VOCAB)
        self.double()

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        x = self.tokens(batch["input_ids"]) + self.positions(batch["position_ids"])
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        if self.masked:
            mask = mask & (batch["segment_ids"][:, :, None] == batch["segment_ids"][:, None, :])
        mask = mask.expand(x.shape[0], length, length)[:, None]
        for queries, mix in zip(self.queries, self.mixes, strict=True):
            q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in queries(x).chunk(3, dim=-1))
            x = x + functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
            x = x + mix(x)
        return self.head(x)


def losses(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    logits = model(batch)
    return functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=-100, reduction="none").view(
        batch["labels"].shape
    )


def test_the_loss_of_a_document_is_that_of_the_document_alone(records: wr.Dataset) -> None:
    view = records.pack(LENGTH, eos=EOS, documents=True)
    model = TinyGPT(masked=True).eval()
    n = 0
    for batch in wr.Loader(view, batch_size=4, framework="torch", epochs=1):
        found = losses(model, batch)
        for row in range(4):
            cuts = batch["cu_seqlens"][row].unique().tolist()
            for start, end in zip(cuts, cuts[1:], strict=False):
                alone = {
                    "input_ids": batch["input_ids"][row, start:end][None],
                    "labels": batch["labels"][row, start:end][None],
                    "position_ids": torch.arange(end - start)[None],
                    "segment_ids": torch.zeros(1, end - start, dtype=torch.int32),
                }
                torch.testing.assert_close(found[row, start:end], losses(model, alone)[0], atol=1e-5, rtol=0)
                n += 1
    assert n > 60


def test_the_leak_test_passes_with_the_mask_and_fails_without(records: wr.Dataset) -> None:
    for view in (
        records.pack(LENGTH, eos=EOS, documents=True),
        records.pack(LENGTH, documents=True, labels="same"),
        records.bins(LENGTH),
    ):
        batch = view.batch([0, 1, 2])
        wr.testing.check_no_leak(TinyGPT(masked=True).eval(), batch)
        with pytest.raises(AssertionError, match=r"row \d+: changing document \d+ moved the logits of document \d+"):
            wr.testing.check_no_leak(TinyGPT(masked=False).eval(), batch)
    with pytest.raises(AssertionError, match="does not read"):
        wr.testing.check_no_leak(lambda batch: torch.zeros(*batch["input_ids"].shape, 3), batch)
    with pytest.raises(wr.ConfigError, match="segment_ids"):
        wr.testing.check_no_leak(TinyGPT(masked=True), records.pack(LENGTH).batch([0]))


def test_a_stream_with_eos_tokens_is_records_with_eos_between(records: wr.Dataset, stream: wr.Dataset) -> None:
    for positions in ("block", "document"):
        for labels in ("next", "same", None):
            options = {"eos": EOS, "documents": True, "positions": positions, "labels": labels}
            ours, theirs = records.pack(LENGTH, **options), stream.pack(LENGTH, **options)
            assert len(ours) == len(theirs)
            for a, b in zip(ours, theirs, strict=True):
                assert a.keys() == b.keys()
                for name in a:
                    np.testing.assert_array_equal(a[name], b[name], err_msg=f"{positions} {labels} {name}")


def test_documents_opened_by_their_eos_are_the_same(stream: wr.Dataset, tmp_path: Path) -> None:
    split = wr.open(tmp_path / "stream.bin", dtype="uint16", document_eos=EOS)
    assert len(split) > 1
    by_record = split.pack(LENGTH, documents=True, positions="document")
    by_token = stream.pack(LENGTH, eos=EOS, documents=True, positions="document")
    for a, b in zip(by_record, by_token, strict=False):
        assert all(np.array_equal(a[name], b[name]) for name in a)


def test_fields_are_those_that_are_asked_for(records: wr.Dataset) -> None:
    view = records.pack(LENGTH, documents=True)
    every = ["input_ids", "labels", "position_ids", "segment_ids", "cu_seqlens", "max_seqlen"]
    assert list(view[0]) == every
    shapes = {name: (array.shape, str(array.dtype)) for name, array in view.batch([0, 1]).items()}
    assert shapes == {
        "input_ids": ((2, LENGTH), "int64"),
        "labels": ((2, LENGTH), "int64"),
        "position_ids": ((2, LENGTH), "int32"),
        "segment_ids": ((2, LENGTH), "int32"),
        "cu_seqlens": ((2, LENGTH + 1), "int32"),
        "max_seqlen": ((2,), "int32"),
    }
    for names in (["input_ids", "attention_mask"], ["segment_ids"], ["labels", "input_ids"]):
        few = records.pack(LENGTH, documents=True, fields=names)[1]
        assert list(few) == names
        assert all(np.array_equal(few[name], view[1][name]) for name in names if name != "attention_mask")
    assert few["labels"].dtype == np.int64
    assert records.pack(LENGTH, documents=True, fields=["attention_mask"])[0]["attention_mask"].tolist() == [1] * LENGTH
    with pytest.raises(wr.ConfigError, match="cu_seqlens"):
        records.pack(LENGTH, documents=True, fields=["lengths"])


def test_masked_tokens_and_borders_are_ignored(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    view = records_with_mask(tmp_path, random).pack(16, documents=True, ignore_index=-1)
    for sample in view:
        assert ((sample["labels"] == -1) == (sample["loss_masks"] == 0)).all()
        starts = sample["cu_seqlens"][1:]
        ends = starts[(starts > 0) & (starts < 16)]
        assert (sample["labels"][ends - 1] == -1).all()


def records_with_mask(folder: Path, random: np.random.Generator) -> wr.Dataset:
    """Records of 7 tokens, some of them excluded by a mask beside them."""
    (folder / "index").mkdir()
    row = lambda: random.integers(1, 9, 7).astype("<u4").tobytes() + random.integers(0, 2, 7).astype("u1").tobytes()
    (folder / "samples.bin").write_bytes(b"".join(row() for _ in range(20)))
    (folder / "index" / "file_location.txt").write_text("samples.bin\n")
    np.array([[0, 35 * r, 35] for r in range(20)], "<u8").tofile(folder / "index" / "sample_locations.bin")
    arrays = [{"name": "tokens", "dtype": "uint32", "offset": 0}, {"name": "loss_mask", "dtype": "uint8", "offset": 28}]
    schema = {"sample_size": 7, "arrays": arrays, "total_bytes_per_sample": 35}
    (folder / "index" / "sample_schema.json").write_text(json.dumps(schema))
    return wr.open(folder)


def test_batches_are_the_same_on_any_ranks_and_resumed(records: wr.Dataset) -> None:
    view = records.pack(LENGTH, eos=EOS, documents=True, positions="document")

    def run(world: int, state: dict | None, steps: int) -> tuple[list[np.ndarray], dict]:
        loaders = [wr.Loader(view, global_batch_size=6, seed=1, rank=rank, world_size=world) for rank in range(world)]
        for loader in loaders:
            if state:
                loader.load_state_dict(state)
        rows = []
        for _ in range(steps):
            parts = [next(loader) for loader in loaders]
            rows.append(np.concatenate([np.concatenate([part[name] for name in part if part[name].ndim == 2], 1) for part in parts]))
        return rows, loaders[0].state_dict()

    whole, _ = run(1, None, 8)
    first, state = run(2, None, 3)
    rest, _ = run(3, json.loads(json.dumps(state)), 5)
    for a, b in zip(whole, first + rest, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(wr.MismatchError):
        wr.Loader(records.pack(LENGTH, eos=EOS, documents=True), global_batch_size=6, seed=1).load_state_dict(state)
    again = pickle.loads(pickle.dumps(view))
    assert all(np.array_equal(again[2][name], view[2][name]) for name in view[2])


def test_rows_become_one_row_for_flash_attention(records: wr.Dataset) -> None:
    for view in (records.pack(LENGTH, documents=True), records.bins(LENGTH)):
        batch = next(wr.Loader(view, batch_size=3, framework="torch"))
        row = wr.torch.varlen(batch)
        cuts = row["cu_seqlens"].tolist()
        assert row["cu_seqlens"].dtype == torch.int32
        assert cuts == sorted(set(cuts))
        assert cuts[-1] == len(row["input_ids"]) == len(row["position_ids"])
        assert row["max_seqlen"] == int(np.diff(cuts).max())
        pieces = []
        for tokens, segments in zip(batch["input_ids"], batch["segment_ids"], strict=True):
            pieces += [tokens[segments == number] for number in range(int(segments.max()) + 1)]
        for piece, start, end in zip(pieces, cuts, cuts[1:], strict=False):
            assert torch.equal(row["input_ids"][start:end], piece)
            assert row["position_ids"][start:end].tolist() == list(range(end - start))
    with pytest.raises(wr.ConfigError, match="cu_seqlens"):
        wr.torch.varlen(records.pack(LENGTH).batch([0]))
    with pytest.raises(wr.ConfigError, match="batch"):
        wr.torch.varlen(view[0])


def test_views_with_other_borders_are_mixed(records: wr.Dataset, stream: wr.Dataset) -> None:
    by_record, by_token = records.pack(LENGTH, documents=True), stream.pack(LENGTH, eos=EOS, documents=True)
    loader = wr.Loader(wr.mix({"a": (by_record, 0.5), "b": (by_token, 0.5)}, stop="first"), batch_size=8, shuffle=False, epochs=1)
    rows = [sample["segment_ids"].tolist() for view in (by_record, by_token) for sample in view]
    assert all(row.tolist() in rows for batch in loader for row in batch["segment_ids"])


def test_a_row_that_begins_with_an_eos_reads_nothing_of_the_record_before(tmp_path: Path) -> None:
    wr.write(tmp_path / "d", [[1, 2, 3], [4, 5, 6, 7], [], [8, 9]], to="shards", dtype="uint16")
    view = wr.open(tmp_path / "d").pack(3, eos=EOS, labels=None, documents=True)
    loader = wr.Loader(view, 1, shuffle=False, rank=0, world_size=1)
    assert [row["input_ids"].tolist() for row in view] == [[1, 2, 3], [0, 4, 5], [6, 7, 0], [0, 8, 9]]
    read = [[(r["record"], r["start"], r["len"]) for r in wr.trace(loader, step)[0]["reads"]] for step in range(4)]
    assert read == [[(0, 0, 3)], [(1, 0, 2)], [(1, 2, 2)], [(3, 0, 2)]]
    assert [[at["step"] for at in wr.find(loader, record)] for record in range(4)] == [[0], [1, 2], [], [3]]
    covered = wr.coverage(loader, (1, 4), list_records=True)["parts"][0]
    assert (covered["records"], covered["values"], covered["record_ranges"]) == (2, 6, [[1, 2], [3, 4]])


def test_what_makes_no_sense_is_said(stream: wr.Dataset, records: wr.Dataset, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        stream.pack(LENGTH, documents=True)
    assert "say with eos=" in caplog.text
    for options, said in [
        ({"positions": "document"}, "without documents"),
        ({"ignore_index": 0}, "without documents"),
        ({"documents": True, "shifted": True}, "already"),
        ({"documents": True, "dtype": "uint16"}, "ignore_index"),
        ({"documents": True, "positions": "row"}, "block, document"),
        ({"fields": ["input_ids"]}, "documents"),
    ]:
        with pytest.raises(wr.ConfigError, match=said):
            records.pack(LENGTH, **options)
