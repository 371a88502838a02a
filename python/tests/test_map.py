"""`Loader(map=f)`: f gets what `view[i]` gives and the sample's own generator, in the loader's threads; batches are of what it returns."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, running
from web_server import WebServer

import windrow as wr

VECTORS = json.loads((ROOT / "testdata" / "golden" / "orders" / "composition.json").read_text())["rng"]


def drawn(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The number of a sample of `view`, and three numbers of its generator."""
    return {"sample": int(row["input_ids"][0]) // 16, "numbers": rng.integers(1 << 32, size=3)}


def expected(sample: int, seed: int, epoch: int) -> list[int]:
    rng = np.random.Generator(np.random.Philox(key=[seed, 0x6D61703100000000], counter=[0, sample, 0, epoch]))
    return rng.integers(1 << 32, size=3).tolist()


@pytest.mark.parametrize("case", VECTORS)
def test_a_sample_has_the_numbers_of_the_reference(case: dict[str, Any]) -> None:
    rng = wr.sample_rng(int(case["seed"]), case["epoch"], case["sample"], case["pass"])
    assert rng.integers(0, 1 << 32, 4).tolist() == case["integers_below_2_32"]
    assert rng.random(2).tolist() == case["random"]


def test_numbers_of_64_bits_key_a_generator() -> None:
    most = (1 << 64) - 1
    found = [wr.sample_rng(*numbers).integers(1 << 62) for numbers in [(most, 0, 0), (0, most, 0), (0, 0, most), (0, 0, 0, most)]]
    assert len(set(found)) == 4
    assert wr.sample_rng(most, 1, 2).bit_generator.state["state"]["key"].tolist() == [most, 0x6D61703100000000]
    with pytest.raises(wr.ConfigError, match="sample is -1"):
        wr.sample_rng(0, 0, -1)
    with pytest.raises(wr.ConfigError, match="seed is 18446744073709551616"):
        wr.sample_rng(1 << 64, 0, 0)


@pytest.mark.parametrize("num_threads", [0, 1, 3])
def test_each_sample_has_its_own_numbers_in_any_thread(view: wr.View, num_threads: int) -> None:
    seed = (1 << 63) + 5
    loader = wr.Loader(view, 50, seed=seed, epochs=2, num_threads=num_threads, map=drawn)
    plain = wr.Loader(view, 50, seed=seed, epochs=2, num_threads=0)
    seen: set[int] = set()
    for epoch in range(2):
        for batch, rows in zip(loader, plain, strict=True):
            assert batch["sample"].tolist() == (rows["input_ids"][:, 0] // 16).tolist()
            for sample, numbers in zip(batch["sample"], batch["numbers"], strict=True):
                assert numbers.tolist() == wr.sample_rng(seed, epoch, sample).integers(1 << 32, size=3).tolist()
            seen.update(batch["numbers"][:, 0].tolist())
        assert batch["numbers"].dtype == np.int64
    assert len(seen) == 2 * (len(view) // 50 * 50)


def test_ranks_and_resumes_have_the_numbers_of_one_run(view: wr.View) -> None:
    options: dict[str, Any] = {"global_batch_size": 12, "seed": 3, "map": drawn}
    run = wr.Loader(view, num_threads=0, **options)
    steps = [next(run)["numbers"].tolist() for _ in range(60)]
    state, at = None, 0
    for world in (1, 4, 2, 3, 6, 1):
        ranks = [wr.Loader(view, rank=rank, world_size=world, num_threads=rank % 3, **options) for rank in range(world)]
        for loader in ranks:
            if state:
                loader.load_state_dict(state)
        for _ in range(10):
            assert [numbers for loader in ranks for numbers in next(loader)["numbers"].tolist()] == steps[at]
            at += 1
        (state,) = {json.dumps(loader.state_dict()) for loader in ranks}
        state = json.loads(state)
        for loader in ranks:
            loader.close()


def test_worker_processes_draw_the_same(view: wr.View) -> None:
    class Mapped:
        def __len__(self) -> int:
            return len(view)

        def __getitem__(self, i: int) -> dict[str, Any]:
            return drawn(view[i], wr.sample_rng(7, 0, i))

    import torch.utils.data

    rows = {int(n): x.tolist() for b in torch.utils.data.DataLoader(Mapped(), 50, num_workers=2) for n, x in zip(*b.values(), strict=True)}
    for batch in wr.Loader(view, 50, seed=7, epochs=1, map=drawn):
        assert [rows[sample] for sample in batch["sample"].tolist()] == batch["numbers"].tolist()


def test_a_row_is_what_the_view_gives(dataset: wr.Dataset, documents: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"n": {n}, "text": "t{n}", "list": [{n}, 1]}}\n' for n in range(40)))
    rows = wr.open(tmp_path / "rows.jsonl")
    views = [
        dataset.pack(16), wr.open(documents).crop(10), wr.open(documents).bins(64), wr.open(documents).records(10),
        wr.open(documents).records(40, pad="longest"), wr.open(documents).records(40, pad=[8, 16, 40]),
        rows.rows(), rows.rows(stack=True), rows.rows(["text"]),
        wr.mix({"a": (dataset.pack(16), 0.5), "b": (dataset.pack(16, eos=1), 0.5)}, part_ids=True),
    ]  # fmt: skip
    for view in views:
        given: list[Any] = []
        lock = threading.Lock()

        def keep(row: Any, rng: Any) -> int:
            with lock:
                given.append(row)
            return 1

        batch = next(wr.Loader(view, 4, shuffle=False, num_threads=0, map=keep))
        assert batch.tolist() == [1] * 4
        view.set_epoch(0)
        for i, row in enumerate(given):
            like = view[i]
            assert list(row) == list(like)
            for name, value in like.items():
                if isinstance(value, np.ndarray):
                    assert row[name].dtype == value.dtype and row[name].shape == value.shape and row[name].flags.writeable
                    assert np.array_equal(row[name], value)
                else:
                    assert row[name] == value and type(row[name]) is type(value)


def test_rows_are_of_their_own_memory(view: wr.View) -> None:
    kept: list[Any] = []

    def keep(row: dict[str, Any], rng: Any) -> Any:
        row["input_ids"][:] = len(kept)
        kept.append(row["input_ids"])
        return row["input_ids"]

    loader = wr.Loader(view, 4, num_threads=0, map=keep)
    batches = [next(loader) for _ in range(3)]
    for number, row in enumerate(kept):
        assert (row == number).all()
    batches[0][:] = -1
    assert [(batch == -1).all() for batch in batches] == [True, False, False] and (kept[0] == 0).all()


class Thing:
    """What no batch has a place for."""


@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    [
        (lambda row, rng: 3, (4,), "int64"),
        (lambda row, rng: 1 << 63, (4,), "uint64"),
        (lambda row, rng: 0.5, (4,), "float64"),
        (lambda row, rng: True, (4,), "bool"),
        (lambda row, rng: np.float32(2), (4,), "float32"),
        (lambda row, rng: rng.random((2, 3), dtype=np.float32), (4, 2, 3), "float32"),
        (lambda row, rng: row["input_ids"][::-2], (4, 8), "int64"),
        (lambda row, rng: np.array([1, 2], dtype=">u2"), (4, 2), "uint16"),
        (lambda row, rng: np.zeros(0, np.int8), (4, 0), "int8"),
    ],
)  # fmt: skip
def test_numbers_and_arrays_are_stacked(view: wr.View, function: Any, shape: tuple[int, ...], dtype: str) -> None:
    batch = next(wr.Loader(view, 4, map=function))
    assert batch.shape == shape and batch.dtype == dtype and batch.flags.c_contiguous and batch.flags.writeable
    named = next(wr.Loader(view, 4, map=lambda row, rng: {"it": function(row, rng), "other": 1}))
    assert list(named) == ["it", "other"] and named["it"].shape == shape and named["it"].dtype == dtype
    assert named["other"].tolist() == [1] * 4


def test_what_is_not_numbers_is_a_list(view: wr.View) -> None:
    thing = Thing()
    columns = {"text": "a", "bytes": b"b", "none": None, "list": [1, 2], "thing": thing, "times": np.zeros(2, "M8[s]"), "huge": 1 << 70}
    batch = next(wr.Loader(view, 3, map=lambda row, rng: columns))
    for name, value in columns.items():
        assert type(batch[name]) is list and len(batch[name]) == 3
        assert all(one is value for one in batch[name])
    assert next(wr.Loader(view, 3, map=lambda row, rng: thing)) == [thing] * 3
    assert next(wr.Loader(view, 2, map=lambda row, rng: (1, 2))) == [(1, 2)] * 2
    assert next(wr.Loader(view, 2, map=lambda row, rng: "text")) == ["text"] * 2
    of_two = next(wr.Loader(view, 4, shuffle=False, map=lambda row, rng: "a" if drawn(row, rng)["sample"] % 2 else 1))
    assert of_two == [1, "a", 1, "a"]


def test_torch_and_jax_get_their_own_arrays(view: wr.View) -> None:
    import jax
    import torch

    def function(row: dict[str, Any], rng: Any) -> dict[str, Any]:
        return {"ids": row["input_ids"].astype(np.int32), "of_torch": torch.arange(3), "name": "x", "n": 1}

    batch = next(wr.Loader(view, 4, framework="torch", map=function))
    assert (batch["ids"].shape, batch["ids"].dtype) == ((4, 16), torch.int32)
    assert batch["of_torch"].tolist() == [[0, 1, 2]] * 4 and batch["name"] == ["x"] * 4 and batch["n"].tolist() == [1] * 4
    halves = next(wr.Loader(view, 4, framework="torch", dtype="bfloat16", map=lambda row, rng: row["input_ids"][:3]))
    assert halves.dtype == torch.bfloat16 and halves.shape == (4, 3)
    made = next(wr.Loader(view, 4, framework="jax", map=lambda row, rng: row["input_ids"].astype(np.int32)))
    assert isinstance(made, jax.Array) and made.shape == (4, 16)
    with pytest.raises(wr.ConfigError, match="does not fit int32"):
        next(wr.Loader(view, 4, framework="jax", map=lambda row, rng: 1 << 40))


def test_collate_gets_the_results_in_the_thread_that_asks(view: wr.View) -> None:
    threads: list[int] = []

    def function(row: dict[str, Any], rng: Any) -> Any:
        return None if row["input_ids"][0] % 32 else row["input_ids"][: row["input_ids"][0] % 5]

    def collate(results: list[Any]) -> Any:
        threads.append(threading.get_ident())
        return results

    for num_threads in (0, 2):
        batch = next(wr.Loader(view, 4, shuffle=False, num_threads=num_threads, map=function, collate=collate))
        assert [None if one is None else len(one) for one in batch] == [0, None, 2, None]
    assert set(threads) == {threading.get_ident()}


@pytest.mark.parametrize("num_threads", [0, 2])
def test_results_of_other_shapes_are_refused_by_record(dataset: wr.Dataset, documents: Path, num_threads: int) -> None:
    view = wr.open(documents).crop(1)
    options: dict[str, Any] = {"batch_size": 4, "shuffle": False, "num_threads": num_threads}

    def loader(*results: Any) -> wr.Loader:
        return wr.Loader(view, map=lambda row, rng: results[min(int(row["values"][0]), len(results) - 1)], **options)

    same, other = np.zeros((2, 3)), np.zeros((2, 4))
    for results, said in [
        ((same, same, other), r"the results of map: float64 \[2, 4\] here, float64 \[2, 3\] in record 0"),
        ((same, same, same.astype("f4")), r"the results of map: float32 \[2, 3\] here, float64 \[2, 3\] in record 0"),
        (({"a": same}, {"a": same}, {"a": other}), r'column "a": float64 \[2, 4\] here, float64 \[2, 3\] in record 0'),
        (({"a": 1}, {"a": 1}, {"a": 0.5}), r'column "a": float64 \[\] here, int64 \[\] in record 0'),
        (({"a": 1}, {"a": 1}, {"a": None}), r'column "a": NoneType here, int64 \[\] in record 0'),
        (({"a": 1}, {"a": 1}, {"b": 1}), "no key 'a' here, but in record 0"),
        (({"a": 1}, {"a": 1}, {"a": 1, "b": 1}), "a key 'b' here, but none in record 0"),
    ]:
        with pytest.raises(wr.MismatchError, match=said) as raised:
            next(loader(*results))
        assert raised.value.record == 2 and raised.value.path
    with pytest.raises(wr.ConfigError, match="map returned None") as none:
        next(loader(1, 1, None))
    assert none.value.record == 2

    async def later(row: Any, rng: Any) -> int:
        return 1

    with pytest.raises(wr.ConfigError, match="map returned a coroutine"), pytest.warns(RuntimeWarning, match="never awaited"):
        next(wr.Loader(view, map=later, **options))
    with pytest.raises(TypeError, match="map is a function, not int"):
        wr.Loader(view, map=3, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("num_threads", [0, 2])
def test_an_exception_arrives_as_it_is_at_its_batch(view: wr.View, tokens: Path, num_threads: int) -> None:
    bad, is_mended = 21, False

    class OwnError(Exception):
        pass

    def function(row: dict[str, Any], rng: Any) -> int:
        sample = int(row["input_ids"][0]) // 16
        if sample == bad and not is_mended:
            raise OwnError("a bad picture")
        return sample

    options: dict[str, Any] = {"shuffle": False, "num_threads": num_threads, "map": function}
    loader = wr.Loader(view, 8, **options)
    assert [next(loader).tolist() for _ in range(2)] == [list(range(8)), list(range(8, 16))]
    state = loader.state_dict()
    for _ in range(2):
        with pytest.raises(OwnError) as raised:
            next(loader)
        error: Any = raised.value
        assert str(error) == "a bad picture"
        assert error.windrow == {"step": 2, "row": 5, "sample": 21, "record": 0, "file": str(tokens)}
        assert error.__notes__ == [f"in map, at step 2, row 5, sample 21, record 0, file {tokens}"]
        assert raised.traceback[-1].name == "function"
        assert loader.state_dict() == state
    (row,) = wr.trace(loader, step=2, row=5)
    assert row["sample"] == 21
    past = wr.Loader(view, 8, skip=[(21, 22)], drop_last=False, **options)
    assert next(iter(zip(range(4), past, strict=False)))[1].tolist() == list(range(8))
    assert [next(past).tolist() for _ in range(3)] == [list(range(8, 16)), list(range(16, 21)), list(range(22, 30))]
    is_mended = True
    assert next(loader).tolist() == list(range(16, 24))


def test_exclude_leaves_out_what_the_function_cannot_take(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(20)))
    view = wr.open(tmp_path / "rows.jsonl").rows()

    def function(row: dict[str, Any], rng: Any) -> int:
        if row["n"] in (3, 11):
            raise ValueError
        return int(row["n"])

    left_out: list[int] = []
    for _ in range(3):
        try:
            found = [n for batch in wr.Loader(view, 6, epochs=1, exclude=left_out, map=function, drop_last=False) for n in batch.tolist()]
        except ValueError as error:
            left_out.append(error.windrow["record"])  # type: ignore[attr-defined]
    assert sorted(left_out) == [3, 11]
    assert sorted(found) == [n for n in range(20) if n not in left_out]


def test_the_end_of_another_iterator_is_not_the_end_of_the_run(view: wr.View) -> None:
    for num_threads in (0, 2):
        loader = wr.Loader(view, 8, num_threads=num_threads, map=lambda row, rng: next(iter(())))
        with pytest.raises(RuntimeError, match="map raised StopIteration") as raised:
            for _ in loader:
                pass
        assert isinstance(raised.value.__cause__, StopIteration)
        assert raised.value.windrow["row"] == 0  # type: ignore[attr-defined]


def test_an_exception_that_takes_no_note_arrives_all_the_same(view: wr.View) -> None:
    class Closed(Exception):
        def __setattr__(self, name: str, value: Any) -> None:
            raise TypeError("closed")

    def function(row: Any, rng: Any) -> Any:
        raise Closed

    with pytest.raises(Closed):
        next(wr.Loader(view, 8, map=function))
    for end in (SystemExit, KeyboardInterrupt):

        def ends(row: Any, rng: Any, end: Any = end) -> Any:
            raise end

        with pytest.raises(end):
            next(wr.Loader(view, 8, num_threads=2, map=ends))


def test_only_its_name_is_part_of_the_plan(view: wr.View, tmp_path: Path) -> None:
    plain, mapped = wr.Loader(view, 8, seed=1), wr.Loader(view, 8, seed=1, map=drawn)
    named = wr.Loader(view, 8, seed=1, map=drawn, map_name="crop-2")
    assert mapped.plan == plain.plan and named.plan == plain.plan + ";map=crop-2"
    skipped = wr.Loader(view, 8, seed=1, map=drawn, map_name="crop-2", skip=[(8, 16)])
    assert skipped.plan == plain.plan + ";skip=8..16;map=crop-2"
    next(plain)
    mapped.load_state_dict(plain.state_dict())
    other = wr.Loader(view, 8, seed=1, map=lambda row, rng: 1)
    next(mapped)
    other.load_state_dict(mapped.state_dict())
    assert other.samples == 16
    next(named)
    for loader, said in [
        (plain, "the state has map=crop-2, this plan has nothing"),
        (mapped, "the state has map=crop-2, this plan has nothing"),
        (wr.Loader(view, 8, seed=1, map=drawn, map_name="crop-3"), "the state has map=crop-2, this plan has map=crop-3"),
    ]:
        with pytest.raises(wr.MismatchError, match=said) as raised:
            loader.load_state_dict(named.state_dict())
        assert raised.value.hint == "give the loader the map_name= of the run that saved the state"
    with pytest.raises(wr.MismatchError, match="the state has nothing, this plan has map=crop-2"):
        named.load_state_dict(plain.state_dict())
    wr.Loader(view, 4, seed=1, map=lambda row, rng: 0, map_name="crop-2").load_state_dict(named.state_dict())

    recipe = named.recipe()
    assert recipe["map_name"] == "crop-2" and recipe["plan"] == named.plan and "map" not in recipe
    assert "map_name" not in plain.recipe()
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(recipe))
    assert wr.trace(path, step=0) == wr.trace(named, step=0) == wr.trace(plain, step=0)
    found = wr.diff(plain, named, steps=3)
    assert found["first"] is None and found["differences"] == [{"what": "map", "option": "map_name", "a": None, "b": "crop-2"}]
    assert wr.extract(named, step=0)["input_ids"].shape == (8, 16)


def test_a_name_is_of_a_function_and_short(view: wr.View) -> None:
    with pytest.raises(wr.ConfigError, match='map_name="x" names no function'):
        wr.Loader(view, 8, map_name="x")
    for name in ("", "a;b", "a\nb", "n" * 81):
        with pytest.raises(wr.ConfigError, match="map_name is"):
            wr.Loader(view, 8, map=drawn, map_name=name)


def test_stats_tell_what_calls_took(view: wr.View) -> None:
    keys = {"map_calls", "map_secs", "map_cpu_secs", "map_lock_secs"}
    plain = wr.Loader(view, 8)
    assert {key: plain.stats()[key] for key in keys} == dict.fromkeys(keys, 0)

    def sleeps(row: Any, rng: Any) -> int:
        time.sleep(0.002)
        return 1

    loader = wr.Loader(view, 10, num_threads=2, prefetch=2, epochs=1, map=sleeps)
    for _ in range(10):
        next(loader)
    loader.close()
    stats = loader.stats()
    assert 100 <= stats["map_calls"] <= 160
    assert stats["map_secs"] >= 0.002 * stats["map_calls"]
    assert stats["map_cpu_secs"] < stats["map_secs"] / 2 and stats["map_lock_secs"] < stats["map_secs"] / 2
    assert stats["samples"] == 100


def test_the_work_of_a_function_that_holds_the_lock_is_that_of_one_core(view: wr.View) -> None:
    # A call is many times as long as the turn after which the interpreter lets another thread in.
    numbers = random.Random(5).sample(range(400_000), 200_000)

    def holds(row: Any, rng: np.random.Generator) -> int:
        return sorted(numbers)[0]

    loader = wr.Loader(view, 2, num_threads=3, map=holds)
    begun = time.monotonic()
    for _ in range(12):
        next(loader)
    loader.close()
    took, stats = time.monotonic() - begun, loader.stats()
    assert 0 < stats["map_cpu_secs"] <= 1.1 * took
    assert stats["map_secs"] + stats["map_lock_secs"] > 1.3 * stats["map_cpu_secs"]


def windrow_threads() -> list[str]:
    names = [Path(f"/proc/self/task/{task}/comm") for task in os.listdir("/proc/self/task")]
    return [name for path in names if path.exists() and (name := path.read_text().strip()).startswith("windrow-")]


@contextlib.contextmanager
def others_gone() -> Iterator[None]:
    """Threads of the loaders of other tests are not counted."""
    gc.collect()
    before = len(windrow_threads())
    yield
    # Those of loaders that a traceback held may end now.
    assert len(windrow_threads()) <= before


def test_no_call_begins_after_close_and_no_thread_is_left(view: wr.View) -> None:
    calls: list[float] = []

    def slow(row: Any, rng: Any) -> int:
        calls.append(time.monotonic())
        time.sleep(0.01)
        return 1

    with others_gone():
        loader = wr.Loader(view, 50, num_threads=3, map=slow)
        with loader:
            next(loader)
        closed = time.monotonic()
        n_calls = len(calls)
        time.sleep(0.1)
        assert len(calls) == n_calls and calls[-1] <= closed
    # It starts again where it stood.
    assert loader.samples == 50
    next(loader)
    loader.close()


def test_a_loader_that_nobody_holds_ends_its_threads(view: wr.View) -> None:
    with others_gone():
        loader = wr.Loader(view, 50, num_threads=3, map=drawn)
        next(loader)
        assert len(windrow_threads()) >= 3
        del loader


def test_close_does_not_wait_for_a_call_that_hangs(view: wr.View) -> None:
    go = threading.Event()

    def hangs(row: dict[str, Any], rng: Any) -> int:
        if row["input_ids"][0] >= 160:
            go.wait(60)
        return 1

    with others_gone():
        loader = wr.Loader(view, 10, shuffle=False, num_threads=2, map=hangs)
        next(loader)
        begun = time.monotonic()
        loader.close()
        assert time.monotonic() - begun < 20
        calls = loader.stats()["map_calls"]
        go.set()
        time.sleep(0.5)
    # The calls that were under way ended; none began.
    assert loader.stats()["map_calls"] <= calls + 2
    assert next(loader).tolist() == [1] * 10
    loader.close()


HANGING = """
    import sys, threading, time
    import windrow as wr

    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)

    def sleeps(row, rng):
        time.sleep(1000)

    def spins(row, rng):
        while True:
            pass

    def waits(row, rng):
        threading.Event().wait()

    print("begun", flush=True)
    for batch in wr.Loader(view, 8, num_threads=int(sys.argv[3]), map=globals()[sys.argv[2]]):
        pass
"""


@pytest.mark.parametrize("num_threads", [0, 2])
@pytest.mark.parametrize("how", ["sleeps", "spins", "waits"])
def test_ctrl_c_ends_a_call_that_hangs(tokens: Path, tmp_path: Path, how: str, num_threads: int) -> None:
    import textwrap

    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(HANGING))
    with running([sys.executable, str(script), str(tokens), how, str(num_threads)], stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        _, said = process.communicate(timeout=60)
        took = time.monotonic() - begun
    assert said.splitlines()[-1] == "KeyboardInterrupt", said
    assert process.returncode == -signal.SIGINT
    # A second on a machine with nothing else to do.
    assert took < 10, took


def test_the_end_of_a_program_in_the_middle_of_calls(tokens: Path, run_script: Callable[..., str]) -> None:
    code = """
        import os, sys, time
        import numpy as np
        import windrow as wr

        view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
        work = {"python": lambda row, rng: sum(n for n in range(2000)), "numpy": lambda row, rng: np.sort(rng.random(50_000))[0],
                "sleep": lambda row, rng: time.sleep(0.001) or 1}[sys.argv[2]]
        loaders = [wr.Loader(view, 8, num_threads=4, map=work) for _ in range(2)]
        for loader in loaders:
            next(loader)
        print("end")
    """
    for how in ("python", "numpy", "sleep"):
        for _ in range(4):
            assert run_script(code, tokens, how) == "end\n"


def test_a_function_may_call_windrow(view: wr.View) -> None:
    other = wr.Loader(view, 4, seed=5, num_threads=0, map=lambda row, rng: int(rng.integers(1 << 30)))

    def function(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        sample = int(row["input_ids"][0]) // 16
        neighbour = view[(sample + 1) % len(view)]["input_ids"][0] // 16
        loader.stats(), loader.state_dict(), loader.samples
        # A call within a call has a generator of its own.
        next(other)
        return {"sample": sample, "neighbour": neighbour, "numbers": rng.integers(1 << 32, size=3)}

    for num_threads in (0, 2):
        loader = wr.Loader(view, 8, seed=3, num_threads=num_threads, map=function)
        for _ in range(5):
            batch = next(loader)
            assert batch["neighbour"].tolist() == [(n + 1) % len(view) for n in batch["sample"].tolist()]
            assert batch["numbers"].tolist() == [expected(n, 3, 0) for n in batch["sample"].tolist()]
        loader.close()

    def asks(row: Any, rng: Any) -> Any:
        return next(loader)

    for num_threads in (0, 2):
        loader = wr.Loader(view, 8, num_threads=num_threads, map=asks)
        with pytest.raises(wr.ConfigError, match="asks that loader for a batch"):
            next(loader)
        loader.close()

    def closes(row: Any, rng: Any) -> None:
        loader.close()

    for num_threads in (0, 1):
        loader = wr.Loader(view, 2, num_threads=num_threads, map=closes)
        with pytest.raises(wr.ConfigError, match="closes that loader"):
            next(loader)
        loader.close()


def test_threads_keep_what_a_function_keeps_for_them(view: wr.View) -> None:
    local = threading.local()
    made: list[int] = []

    def function(row: Any, rng: Any) -> int:
        if not hasattr(local, "tool"):
            local.tool = object()
            made.append(threading.get_ident())
        return 1

    loader = wr.Loader(view, 2, num_threads=2, map=function)
    for _ in range(200):
        next(loader)
    loader.close()
    assert 1 <= len(made) <= 2


FORKS = """
    import os, sys, time
    import windrow as wr

    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)

    def drawn(row, rng):
        time.sleep(0.0005)
        return {"sample": int(row["input_ids"][0]) // 16, "number": int(rng.integers(1 << 40))}

    def batches(loader, n):
        return [[batch["sample"].tolist(), batch["number"].tolist()] for _ in range(n) for batch in [next(loader)]]

    expected = batches(wr.Loader(view, 8, seed=1, num_threads=0, map=drawn), 40)
    loader = wr.Loader(view, 8, seed=1, num_threads=3, map=drawn)
    assert batches(loader, 5) == expected[:5]
    for k in range(20):
        time.sleep(0.001 * (k % 5))
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert loader.stats()["map_calls"] == 0
                assert batches(loader, 5) == expected[5:10]
                assert loader.stats()["map_calls"] == 40
                own = wr.Loader(view, 8, seed=1, num_threads=2, map=drawn)
                assert batches(own, 3) == expected[:3]
                own.close()
                del loader
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, k
    assert batches(loader, 5) == expected[5:10]

    def forks(row, rng):
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    for n_threads in (0, 2):
        assert next(wr.Loader(view, 8, num_threads=n_threads, map=forks)).tolist() == [7] * 8

    def returns(row, rng):
        pid = os.fork()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if pid else -1

    # Nothing is left of a child that comes back in a thread of the loader.
    assert next(wr.Loader(view, 2, num_threads=1, map=returns)).tolist() == [1, 1]
    print("right")
"""


def test_forks_in_the_middle_of_calls_and_by_them(tokens: Path, run_script: Callable[..., str]) -> None:
    assert run_script(FORKS, tokens, limit=240) == "right\n"


def test_a_mixture_gives_rows_of_all_its_parts(dataset: wr.Dataset) -> None:
    a, b = dataset.pack(16), dataset.pack(16, eos=7)
    mixed = wr.mix({"a": (a, 0.75), "b": (b, 0.25)}, stop="all", part_ids=True)
    whole = {}

    def function(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {"part": row["part"], "first": row["input_ids"][0], "numbers": rng.integers(1 << 32, size=3)}

    loader = wr.Loader(mixed, 20, seed=9, epochs=1, map=function)
    for step, batch in enumerate(loader.stream()):
        for row, (traced, part, numbers) in enumerate(zip(wr.trace(loader, step), batch["part"], batch["numbers"], strict=True)):
            number = traced["sample"] + (len(a) if part == 1 else 0)
            rng = wr.sample_rng(9, 0, number, traced["pass"])
            assert part == traced["part"] and numbers.tolist() == rng.integers(1 << 32, size=3).tolist(), (step, row)
            whole[int(part), traced["sample"], traced["pass"]] = numbers.tolist()
        if step == 40:
            break
    assert {part for part, *_ in whole} == {0, 1}
    assert len({tuple(numbers) for numbers in whole.values()}) == len(whole)


def test_passes_of_a_part_draw_other_numbers(dataset: wr.Dataset) -> None:
    few = dataset.windows(15, stride=5000)
    mixed = wr.mix({"big": (dataset.windows(15, stride=16), 0.5), "few": (few, 0.5)}, stop="never", part_ids=True)
    seen: dict[int, set[int]] = {}

    def function(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {"part": row["part"], "first": row["input_ids"][0], "number": rng.integers(1 << 60)}

    loader = wr.Loader(mixed, 4, seed=9, map=function)
    for _ in range(10):
        batch = next(loader)
        for part, first, number in zip(*batch.values(), strict=True):
            if part == 1:
                seen.setdefault(int(first), set()).add(int(number))
    loader.close()
    assert len(few) == len(seen) and all(len(numbers) >= 4 for numbers in seen.values())


def test_a_stream_of_single_samples_is_refused(view: wr.View) -> None:
    with pytest.raises(wr.ConfigError, match="map=: they are batches already"):
        iter(wr.Loader(view, 4, map=drawn).dataset)


def test_bytes_are_fetched_while_calls_run(tmp_path: Path) -> None:
    n = 4 << 20
    np.arange(n, dtype=np.uint32).tofile(tmp_path / "tokens.bin")
    server = WebServer(tmp_path)
    try:
        view = wr.open(f"{server.url}/tokens.bin", dtype="uint32", cache_limit=0).pack(64 << 10)
        go = threading.Event()
        calls: list[int] = []

        def function(row: dict[str, Any], rng: Any) -> int:
            calls.append(1)
            go.wait(60)
            return int(row["input_ids"][0])

        loader = wr.Loader(view, 4, seed=1, num_threads=1, map=function)
        first: list[Any] = []
        thread = threading.Thread(target=lambda: first.append(next(loader)))
        thread.start()
        # One call is under way and waits: what later batches read comes meanwhile.
        needed = 3 * 4 * 64 << 10
        received = 0.0
        for _ in range(600):
            received = wr.Loader(view, 4).stats()["received_bytes"]
            if calls and received > 4 * needed:
                break
            time.sleep(0.05)
        assert len(calls) == 1 and received > 4 * needed
        go.set()
        thread.join(60)
        assert first[0].shape == (4,)
        loader.close()
    finally:
        server.stop()


def test_memory_stays_as_it_is(tokens: Path, run_script: Callable[..., str]) -> None:
    code = """
        import sys
        import numpy as np
        import windrow as wr

        view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)

        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096

        def function(row, rng):
            return {"ids": row["input_ids"], "big": rng.random(1000), "text": "x" * 100, "n": 1}

        loader = wr.Loader(view, 4, num_threads=2, map=function)
        seen = []
        for k in range(10_000):
            next(loader)
            if k % 1000 == 999:
                seen.append(resident())
        loader.close()
        assert loader.stats()["map_calls"] >= 40_000
        assert max(seen[2:]) - seen[1] < 4 << 20, seen
        print("flat")
    """
    assert run_script(code, tokens, limit=300) == "flat\n"


def test_a_run_that_is_killed_has_the_same_draws(view: wr.View, tmp_path: Path) -> None:
    """In forks of this process, each killed at another time, from the state that the last one saved."""
    options: dict[str, Any] = {"batch_size": 10, "seed": 11, "epochs": 2}
    whole = [json.dumps(batch["numbers"].tolist()) for batch in wr.Loader(view, num_threads=0, map=drawn, **options).stream()]
    log, saved = tmp_path / "log", tmp_path / "state"

    def slow(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        if row["input_ids"][0] % 7 == 0:
            time.sleep(0.0005)
        return drawn(row, rng)

    def run() -> None:
        loader = wr.Loader(view, num_threads=2, map=slow, **options)
        if saved.exists():
            loader.load_state_dict(json.loads(saved.read_text()))
        step = loader.epoch * (len(view) // 10) + loader.samples // 10
        for batch in loader.stream():
            with log.open("a") as file:
                file.write(f"{step} {json.dumps(batch['numbers'].tolist())}\n")
            (tmp_path / "new").write_text(json.dumps(loader.state_dict()))
            (tmp_path / "new").replace(saved)
            step += 1

    draws, n_kills = random.Random(5), 0
    for _ in range(400):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run()
                # On a fast machine it is done before the last kill.
                if n_kills < 50:
                    time.sleep(60)
                code = 0
            finally:
                os._exit(code)
        if n_kills < 50:
            time.sleep(draws.random() * 0.03)
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        n_kills += status == -signal.SIGKILL
        if status == 0:
            break
    assert n_kills == 50 and status == 0
    # A batch may come twice, where its state was not saved; it is the same then.
    found: dict[int, str] = {}
    for line in log.read_text().splitlines():
        step, _, numbers = line.partition(" ")
        assert found.setdefault(int(step), numbers) == numbers == whole[int(step)]
    assert sorted(found) == list(range(len(whole)))
