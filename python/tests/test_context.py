"""`Loader(context=(rank, size))`: each rank of a context group gets its chunks of the rows that one loader gets whole."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import ROOT
from web_server import WebServer

import windrow as wr

VECTORS = json.loads((ROOT / "testdata" / "golden" / "orders" / "composition.json").read_text())["context"]
SIZES = [2, 4, 8, 16]
# Of whole rows.
WHOLE = {"cu_seqlens", "max_seqlen", "part"}


def by_token(length: int, rank: int, size: int, cu_seqlens: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """For each token of a rank its position in the row, as kernels for packed rows find it: token t of a sequence, in the first half of
    what the rank has of it, is in chunk r, else in chunk 2 * size - 1 - r."""
    ends = np.unique(np.append(cu_seqlens, length)).astype(np.int64)
    local_ends = ends // size
    found = []
    for token in range(length // size):
        s = int(np.searchsorted(local_ends, token, "right")) - 1
        half = int(local_ends[s + 1] - local_ends[s]) // 2
        t = token - int(local_ends[s])
        chunk, within = (rank, t) if t < half else (2 * size - 1 - rank, t - half)
        found.append(int(ends[s]) + chunk * half + within)
    return np.array(found, np.int64)


def sliced(row: dict[str, Any], rank: int, size: int, is_apart: bool) -> dict[str, Any]:
    """The part of a whole row."""
    length = len(row["input_ids"])
    at = by_token(length, rank, size, row["cu_seqlens"] if is_apart else np.array([0]))
    return {name: values if name in WHOLE else values[at] for name, values in row.items()}


def same(batch: dict[str, Any], whole: dict[str, Any], rank: int, size: int, is_apart: bool) -> None:
    assert list(batch) == list(whole)
    for i in range(len(whole["input_ids"])):
        row = sliced({name: values[i] for name, values in whole.items()}, rank, size, is_apart)
        for name, values in row.items():
            assert batch[name].dtype == whole[name].dtype
            assert np.array_equal(batch[name][i], values), (name, i, rank, size)


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> wr.Dataset:
    """Documents of 0 to 300 tokens, no token twice and none of them 0."""
    folder = tmp_path_factory.mktemp("documents")
    lengths = np.random.default_rng(0).integers(0, 301, 60)
    starts = 1 + np.cumsum([0, *lengths])
    docs = [np.arange(a, a + n, dtype=np.uint32) for a, n in zip(starts.tolist(), lengths.tolist(), strict=False)]
    wr.write(folder / "docs", docs, to="shards", dtype="uint32", fsync=False)
    return wr.open(folder / "docs")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> wr.Dataset:
    path = tmp_path_factory.mktemp("masked") / "docs.jsonl"
    draws = np.random.default_rng(1)
    with path.open("w") as out:
        for n in draws.integers(1, 200, 40).tolist():
            out.write(json.dumps({"ids": draws.integers(1, 99, n).tolist(), "mask": draws.integers(0, 2, n).tolist()}) + "\n")
    return wr.open(path, column="ids", mask_column="mask")


VIEWS: dict[str, tuple[Callable[[wr.Dataset], wr.View], bool]] = {
    "pack": (lambda ds: ds.pack(64), False),
    "pack with eos": (lambda ds: ds.pack(64, eos=0), False),
    "pack, reshuffled": (lambda ds: ds.pack(64, eos=0, reshuffle=True), False),
    "pack, same labels": (lambda ds: ds.pack(64, labels="same"), False),
    "pack, no labels": (lambda ds: ds.pack(64, labels=None), False),
    "records": (lambda ds: ds.records(160), False),
    "records, same labels": (lambda ds: ds.records(160, pad_value=7, labels="same"), False),
    "documents": (lambda ds: ds.pack(128, eos=0, documents=True, multiple=32), True),
    "documents, reshuffled": (lambda ds: ds.pack(128, documents=True, multiple=64, reshuffle=True, positions="document"), True),
    "documents, same labels": (lambda ds: ds.pack(128, eos=0, documents=True, multiple=32, labels="same", positions="document"), True),
    "documents, no labels": (lambda ds: ds.pack(128, documents=True, multiple=32, labels=None), True),
    "documents, some fields": (
        lambda ds: ds.pack(128, documents=True, multiple=32, fields=["attention_mask", "labels", "input_ids", "cu_seqlens"]),
        True,
    ),
    "bins": (lambda ds: ds.bins(320, multiple=32, pad_value=7), True),
    "bins, reshuffled": (lambda ds: ds.bins(320, multiple=32, reshuffle=True), True),
    "bins, split": (lambda ds: ds.bins(64, multiple=32, overlong="split", labels="same"), True),
    "bins, cut": (lambda ds: ds.bins(64, "first_fit", multiple=64), True),
    "bins, some fields": (
        lambda ds: ds.bins(320, multiple=32, fields=["attention_mask", "input_ids", "max_seqlen", "cu_seqlens", "loss_masks"]),
        True,
    ),
}


@pytest.mark.parametrize("case", VECTORS)
def test_a_rank_holds_the_positions_of_the_reference(tmp_path: Path, case: dict[str, Any]) -> None:
    length, size, ends = case["length"], case["size"], case["cu_seqlens"]
    docs = [np.arange(a, b, dtype=np.uint32) for a, b in zip(ends, ends[1:], strict=False)]
    wr.write(tmp_path / "docs", docs, to="shards", dtype="uint32", fsync=False)
    bins = wr.open(tmp_path / "docs").bins(length, "first_fit", multiple=2 * size, pad_value=999_999)
    assert len(bins) == 1
    np.arange(length, dtype=np.uint32).tofile(tmp_path / "row.bin")
    row = wr.open(tmp_path / "row.bin", dtype="uint32").pack(length, labels=None)
    for rank in range(size):
        batch = next(wr.Loader(bins, batch_size=1, context=(rank, size)))
        expected = [at if at < ends[-1] else 999_999 for at in case["positions"][rank]]
        assert batch["input_ids"][0].tolist() == expected
        batch = next(wr.Loader(row, batch_size=1, context=(rank, size)))
        assert batch["input_ids"][0].tolist() == case["without_documents"][rank]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("size", SIZES)
def test_the_slices_of_all_ranks_are_the_row(ds: wr.Dataset, masked: wr.Dataset, view: str, size: int) -> None:
    make, is_apart = VIEWS[view]
    for data in (ds, masked):
        cut = make(data)
        options: dict[str, Any] = {"batch_size": 4, "seed": 5, "drop_last": False, "epochs": 1}
        whole = list(wr.Loader(cut, **options))
        if "fields" in view and "attention_mask" in whole[0]:
            assert is_apart
        for rank in range(size):
            loader = wr.Loader(cut, **options, context=(rank, size), num_threads=rank % 3)
            batches = list(loader)
            assert len(batches) == len(whole) > 0
            for batch, row in zip(batches, whole, strict=True):
                assert batch["input_ids"].shape == (len(row["input_ids"]), row["input_ids"].shape[1] // size)
                same(batch, row, rank, size, is_apart)


def test_records_of_channels_and_other_dtypes_are_divided(tmp_path: Path) -> None:
    arrays = [np.arange(n * 3, dtype=np.int32).reshape(n, 3) + 1000 * n for n in (5, 40, 17, 33)]
    wr.write(tmp_path / "series", arrays, to="shards", fsync=False)
    view = wr.open(tmp_path / "series").records(32, pad_value=-1)
    for dtype in ("int64", "float32"):
        whole = next(wr.Loader(view, batch_size=4, dtype=dtype))
        for rank in range(4):
            batch = next(wr.Loader(view, batch_size=4, dtype=dtype, context=(rank, 4)))
            assert batch["input_ids"].shape == (4, 8, 3)
            same(batch, whole, rank, 4, is_apart=False)


@pytest.mark.parametrize("view", ["pack", "documents", "bins"])
def test_only_the_bytes_of_the_slice_are_read(ds: wr.Dataset, view: str) -> None:
    cut, _ = VIEWS[view][0](ds), VIEWS[view][1]
    loader = wr.Loader(cut, batch_size=2, seed=1)
    steps = (0, len(loader))

    def read(loader: wr.Loader) -> tuple[int, int]:
        (part,) = wr.coverage(loader, steps=steps)["parts"]
        return sum(file["bytes"] for file in part["files"]), part["samples"]

    for size in (2, 4, 8):
        of_ranks = []
        for rank in range(size):
            of_rank = wr.Loader(cut, batch_size=2, seed=1, context=(rank, size))
            of_ranks.append(read(of_rank))
            # What a step reads is what trace says of it: two spans a document, and one where they are neighbours.
            for row in wr.trace(of_rank, 1):
                spans = row["reads"]
                assert len(spans) <= 2 * len({span["record"] for span in spans})
        whole, rows = read(loader)
        assert sum(bytes for bytes, _ in of_ranks) >= 0.95 * whole and {n for _, n in of_ranks} == {rows}
        if view == "pack":
            for bytes, _ in of_ranks:
                assert bytes <= (1 / size + 2 * size / 64) * whole
                # Exactly: a label after each chunk that is not the last of the row.
                assert bytes <= rows * 4 * (64 // size + 2)


def test_a_run_continues_with_another_size(ds: wr.Dataset) -> None:
    for view in ("pack, reshuffled", "documents", "bins"):
        make, is_apart = VIEWS[view]
        cut = make(ds)
        whole = [batch for batch, _ in zip(wr.Loader(cut, batch_size=2, seed=2).stream(), range(12), strict=False)]
        states = []
        for number, context in enumerate([(1, 2), (3, 4), None, (0, 8), (0, 1), (15, 16)]):
            loader = wr.Loader(cut, batch_size=2, seed=2, context=context)
            if states:
                loader.load_state_dict(states[-1])
            for step in (2 * number, 2 * number + 1):
                batch = next(loader)
                rank, size = context or (0, 1)
                if size == 1:
                    assert all(np.array_equal(batch[name], values) for name, values in whole[step].items())
                else:
                    same(batch, whole[step], rank, size, is_apart)
            states.append(loader.state_dict())
            assert loader.plan == wr.Loader(cut, batch_size=2, seed=2).plan and loader.recipe() == wr.Loader(cut, batch_size=2, seed=2).recipe()


def test_data_ranks_and_context_ranks_are_independent(ds: wr.Dataset) -> None:
    cut = ds.pack(128, eos=0, documents=True, multiple=32)
    whole = next(wr.Loader(cut, global_batch_size=4, seed=3))
    for rank in range(2):
        rows = {name: values[2 * rank : 2 * rank + 2] for name, values in whole.items()}
        for part in range(4):
            loader = wr.Loader(cut, global_batch_size=4, seed=3, rank=rank, world_size=2, context=(part, 4))
            same(next(loader), rows, part, 4, is_apart=True)
            assert f"rank {part} of 4 of each row" in repr(loader) and loader.stats()["rank"]["world_size"] == 2


def test_mixtures_are_divided_as_their_views(ds: wr.Dataset, masked: wr.Dataset) -> None:
    views = {"a": (ds.bins(320, multiple=32, fields=["input_ids", "labels", "position_ids"]), 0.5)}
    views["b"] = (masked.bins(320, multiple=16, fields=["input_ids", "labels", "position_ids"]), 0.5)
    mixed = wr.mix(views, part_ids=True)
    whole = next(wr.Loader(mixed, batch_size=6, seed=1))
    batch = next(wr.Loader(mixed, batch_size=6, seed=1, context=(1, 8)))
    assert list(batch) == list(whole) and np.array_equal(batch["part"], whole["part"])
    with pytest.raises(wr.ConfigError, match=r"context=\(1, 16\) of documents that are filled up to a multiple of 16"):
        wr.Loader(mixed, batch_size=6, context=(1, 16))
    plain = wr.mix({"a": (ds.pack(64), 0.5), "b": (ds.pack(64, eos=0), 0.5)})
    whole = next(wr.Loader(plain, batch_size=6, seed=1))
    for rank in range(4):
        same(next(wr.Loader(plain, batch_size=6, seed=1, context=(rank, 4))), whole, rank, 4, is_apart=False)


def test_one_long_row_of_a_part_has_whole_documents(ds: wr.Dataset) -> None:
    view = ds.bins(320, multiple=32)
    whole = wr.torch.varlen(next(wr.Loader(view, batch_size=3, seed=1)))
    for rank in range(4):
        batch = next(wr.Loader(view, batch_size=3, seed=1, context=(rank, 4)))
        row = wr.torch.varlen(batch, context=4)
        assert row["cu_seqlens"].tolist() == whole["cu_seqlens"].tolist() and row["max_seqlen"] == whole["max_seqlen"]
        total = len(whole["input_ids"])
        at = by_token(total, rank, 4, whole["cu_seqlens"].numpy())
        for name in ("input_ids", "labels", "position_ids"):
            assert row[name].tolist() == whole[name][at].tolist(), name
        with pytest.raises(wr.ConfigError, match="context=size"):
            wr.torch.varlen(batch)
        with pytest.raises(wr.ConfigError, match="whole rows"):
            wr.torch.varlen(batch, names="transformers", context=4)


def test_what_is_not_divided_is_refused(ds: wr.Dataset, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    for view, context, said in [
        (ds.pack(63), (0, 2), r"context=\(0, 2\) of rows of 63 positions"),
        (ds.pack(64, documents=True), (0, 2), r"context=\(0, 2\) of documents that are not filled .*(?s:.*)multiple=4"),
        (ds.pack(64, documents=True, multiple=8), (0, 8), r"filled up to a multiple of 8(?s:.*)multiple=16"),
        (ds.bins(64), (1, 2), r"context=\(1, 2\) of documents that are not filled(?s:.*)multiple=4"),
        (ds.pack(64), (2, 2), r"context=\(2, 2\): rank 2 of 2"),
        (ds.pack(64), (0, 0), r"context=\(0, 0\): rank 0 of 0"),
        (ds.pack(64, shifted=True), (0, 2), r"context=\(0, 2\) of a pack with shifted=True"),
        (ds.records(64, pad="longest"), (0, 2), r'context=\(0, 2\) of records with pad="longest"'),
        (ds.crop(64), (0, 2), r"context=\(0, 2\) of crop"),
        (ds.windows(64), (0, 2), r"context=\(0, 2\) of windows"),
        (ds.segments(64), (0, 2), r"context=\(0, 2\) of segments"),
        (wr.open(tmp_path / "rows.jsonl").rows(), (0, 2), r"context=\(0, 2\) of rows"),
    ]:
        with pytest.raises(wr.ConfigError, match=said):
            wr.Loader(view, batch_size=1, context=context)
    with pytest.raises(wr.ConfigError, match="map= and context="):
        wr.Loader(ds.pack(64), batch_size=1, context=(0, 2), map=lambda row, rng: row)
    for wrong in ((0,), (0, 1, 2), ("a", 2), (0.5, 2), "dp", 3):
        with pytest.raises(TypeError):
            wr.Loader(ds.pack(64), batch_size=1, context=wrong)
    with pytest.raises(wr.ConfigError):
        wr.Loader(ds.pack(64), batch_size=1, context=(-1, 2))


GROUPS = """
    import sys
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import windrow as wr
    from torch.distributed.device_mesh import init_device_mesh

    def work(rank, tokens, store, out):
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=4)
        view = wr.open(tokens, dtype="uint16").pack(16)
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        found = {}
        for name, group in (("mesh", mesh["cp"]), ("group", groups[rank // 2]), ("pair", (rank % 2, 2))):
            loader = wr.Loader(view, global_batch_size=2, seed=1, group=mesh["dp"], context=group, shuffle=False, framework="torch")
            found[name] = next(loader)["input_ids"].tolist()
        for name, group in (("two dimensions", mesh), ("another's", groups[1 - rank // 2]), ("a name", "cp")):
            try:
                wr.Loader(view, global_batch_size=2, group=mesh["dp"], context=group)
            except (wr.ConfigError, TypeError) as error:
                found[name] = str(error)
        everything = [None] * 4
        dist.all_gather_object(everything, found)
        if rank == 0:
            for one in everything:
                print(one)
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(work, args=(sys.argv[1], sys.argv[2], None), nprocs=4)
"""


def test_a_group_or_a_dimension_of_a_mesh_says_rank_and_size(tmp_path: Path, run_script: Callable[..., str]) -> None:
    np.arange(200, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    found = [eval(line, {}) for line in run_script(GROUPS, tmp_path / "tokens.bin", tmp_path / "store", limit=180).splitlines()]
    for rank, one in enumerate(found):
        row = range(16 * (rank // 2), 16 * (rank // 2) + 16)
        own = [*row[:4], *row[12:]] if rank % 2 == 0 else [*row[4:12]]
        assert one["mesh"] == one["group"] == one["pair"] == [own]
        assert "context is a mesh of 2 dimensions (dp, cp)" in one["two dimensions"] and "context=mesh['dp']" in one["two dimensions"]
        assert "not a member" in one["another's"]
        assert "context is two numbers (rank, size), " in one["a name"] and "not str" in one["a name"]


def test_of_a_store_only_ranges_of_the_slice_are_asked_for(tmp_path: Path) -> None:
    length = 1 << 20
    np.arange(4 * length + 1, dtype="<u4").tofile(tmp_path / "tokens.bin")
    server = WebServer(tmp_path)
    try:
        here = wr.open(tmp_path / "tokens.bin", dtype="uint32").pack(length)
        far = wr.open(f"{server.url}/tokens.bin", dtype="uint32", cache_limit=0).pack(length)
        for rank in (0, 3):
            loader = wr.Loader(far, batch_size=1, shuffle=False, context=(rank, 4), num_threads=0)
            # What tells the data from another is read once: its first bytes and its last.
            loader.state_dict()
            server.requests.clear()
            batch = next(loader)
            asked = 0
            for _, _, given in server.requests:
                assert given is not None
                first, last = given.removeprefix("bytes=").split("-")
                asked += int(last) + 1 - int(first)
            assert asked <= 4 * (length // 4) + (64 << 10), (asked, 4 * length)
            same(batch, next(wr.Loader(here, batch_size=1, shuffle=False)), rank, 4, is_apart=False)
    finally:
        server.stop()


def test_the_command_shows_a_slice(tmp_path: Path) -> None:
    np.arange(200, dtype=np.uint16).tofile(tmp_path / "tokens.bin")

    def program(*arguments: object) -> dict[str, Any]:
        line = [sys.executable, "-m", "windrow", *map(str, arguments), "--json"]
        return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)  # type: ignore[no-any-return]

    options = [tmp_path / "tokens.bin", "--dtype", "uint16", "--pack", 16, "--batch-size", 1, "--no-shuffle"]
    (row,) = program("trace", *options, "--step", 1, "--context", "0/2")["rows"]
    assert [(read["start"], read["len"]) for read in row["reads"]] == [(16, 5), (28, 5)]
    (part,) = program("coverage", *options, "--steps", "0..2", "--context", "1/2")["parts"]
    assert part["values"] == 2 * 9
    for wrong in ("0", "2/2", "a/b"):
        line = [sys.executable, "-m", "windrow", "trace", *map(str, options), "--step", "1", "--context", wrong]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "context" in done.stderr
