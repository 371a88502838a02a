"""The loader: the same batches whatever the threads, ranks and stops; no copy; no growth; Ctrl-C at once."""

from __future__ import annotations

import gc
import json
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from conftest import running


def ids(batches: Any) -> list[list[int]]:
    """Which samples stand in each batch."""
    return [(batch["input_ids"][:, 0] // 16).tolist() for batch in batches]


def test_a_batch_is_a_dict_of_contiguous_writable_arrays(view: wr.View) -> None:
    batch = next(wr.Loader(view, 8))
    assert set(batch) == {"input_ids", "labels"}
    for array in batch.values():
        assert (array.shape, array.dtype) == ((8, 16), np.int64)
        assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
        assert array.ctypes.data % 64 == 0


def test_an_epoch_has_every_sample_once_in_another_order_each(view: wr.View) -> None:
    loader = wr.Loader(view, 10, drop_last=False, epochs=2, seed=5)
    batches = ids(loader.stream())
    assert len(batches) == 2 * len(loader)
    flat = [i for batch in batches for i in batch]
    first, second = flat[: len(view)], flat[len(view) :]
    assert sorted(first) == sorted(second) == list(range(len(view)))
    assert first != second != sorted(first)


def test_without_shuffle_samples_come_in_order(view: wr.View) -> None:
    assert ids(islice(wr.Loader(view, 4, shuffle=False), 2)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_batches_do_not_depend_on_threads_or_prefetch(view: wr.View) -> None:
    expected = ids(wr.Loader(view, 7, seed=1, epochs=2, num_threads=0).stream())
    for num_threads, prefetch in [(1, 1), (2, 4), (7, 2)]:
        loader = wr.Loader(view, 7, seed=1, epochs=2, num_threads=num_threads, prefetch=prefetch)
        assert ids(loader.stream()) == expected
    with pytest.raises(wr.ConfigError, match="prefetch of 0") as refused:
        wr.Loader(view, 7, prefetch=0)
    assert "with 0 threads" in str(refused.value.hint)


def test_ranks_share_each_batch(view: wr.View) -> None:
    whole = ids(islice(wr.Loader(view, global_batch_size=12, seed=2), 20))
    parts = [ids(islice(wr.Loader(view, 3, seed=2, rank=r, world_size=4), 20)) for r in range(4)]
    assert [sum((part[k] for part in parts), []) for k in range(20)] == whole


def test_the_rank_comes_from_the_environment(view: wr.View, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ids(islice(wr.Loader(view, 3, rank=1, world_size=2), 5))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ids(islice(wr.Loader(view, 3), 5)) == expected


@pytest.mark.parametrize("stop", [0, 1, 5, 123, 124, 125, 200])
def test_a_run_resumes_at_any_step(view: wr.View, stop: int) -> None:
    loader = wr.Loader(view, 10, seed=3, epochs=2)
    list(islice(loader.stream(), stop))
    state = json.loads(json.dumps(loader.state_dict()))
    rest = ids(loader.stream())
    again = wr.Loader(view, 10, seed=3, epochs=2, num_threads=1)
    again.load_state_dict(state)
    assert ids(again.stream()) == rest
    assert len(json.dumps(state)) < 1_000


def test_a_run_resumes_with_other_ranks_and_batch_size(view: wr.View) -> None:
    loader = wr.Loader(view, 12, seed=3)
    list(islice(loader, 4))
    state = loader.state_dict()
    rest = [i for batch in ids(islice(loader, 6)) for i in batch]
    ranks = [wr.Loader(view, 3, seed=3, rank=r, world_size=2) for r in range(2)]
    for rank in ranks:
        rank.load_state_dict(state)
    parts = [ids(islice(rank, 12)) for rank in ranks]
    assert sum((parts[0][k] + parts[1][k] for k in range(12)), []) == rest
    assert ranks[0].state_dict() == ranks[1].state_dict() == loader.state_dict()


def test_state_counts_what_was_delivered(view: wr.View) -> None:
    loader = wr.Loader(view, 10, num_threads=3, prefetch=8)
    assert (loader.epoch, loader.samples) == (0, 0)
    next(loader)
    time.sleep(0.05)
    assert (loader.epoch, loader.samples) == (0, 10)
    assert loader.stats()["samples"] == 10


def test_a_state_of_another_plan_is_refused_and_nothing_moves(view: wr.View, dataset: wr.Dataset) -> None:
    loader = wr.Loader(view, 10, seed=3)
    next(loader)
    before = loader.state_dict()
    for other in (wr.Loader(dataset.pack(8), 10, seed=3), wr.Loader(view, 10, seed=4)):
        with pytest.raises(wr.MismatchError):
            loader.load_state_dict(other.state_dict())
    with pytest.raises(wr.CorruptError):
        loader.load_state_dict({"epoch": 1})
    with pytest.raises(wr.UnsupportedError):
        loader.load_state_dict(before | {"version": 99})
    assert loader.state_dict() == before


def test_close_ends_the_threads_and_a_with_block_closes(view: wr.View) -> None:
    with wr.Loader(view, 10, num_threads=2, shuffle=False) as loader:
        next(loader)
        assert loader.stats()["threads"] == 2
    assert loader.stats()["threads"] == 0
    assert ids(islice(loader, 1)) == [list(range(10, 20))]
    loader.close()


def test_length_is_the_steps_of_an_epoch(view: wr.View) -> None:
    assert len(wr.Loader(view, 100)) == len(view) // 100
    assert len(wr.Loader(view, 100, drop_last=False)) == -(-len(view) // 100)
    with pytest.raises(TypeError):
        len(wr.Loader(wr.mix({"a": (view, 1.0)}, stop="never"), 100))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 2, "global_batch_size": 2},
        {"batch_size": 0},
        {"batch_size": -1},
        {"batch_size": 2, "rank": 0},
        {"batch_size": 2, "world_size": 2},
        {"batch_size": 2, "rank": 2, "world_size": 2},
        {"batch_size": 100_000},
        {"batch_size": 2, "prefetch": 0},
        {"batch_size": 2, "num_threads": 1025},
        {"batch_size": 2, "framework": "mxnet"},
        {"batch_size": 2, "dtype": "no such"},
    ],
)
def test_options_that_cannot_work_are_refused(view: wr.View, options: dict[str, Any]) -> None:
    with pytest.raises(wr.ConfigError):
        wr.Loader(view, **options)


def test_a_data_set_is_no_view(dataset: wr.Dataset) -> None:
    with pytest.raises(TypeError, match="pack"):
        wr.Loader(dataset, 4)  # type: ignore[arg-type]


def test_collate_has_the_last_word(view: wr.View) -> None:
    loader = wr.Loader(view, 4, shuffle=False, collate=lambda batch: batch["input_ids"].sum())
    assert next(loader) == np.arange(64).sum()


def test_a_collate_that_is_no_function_is_refused_when_the_loader_is_made(view: wr.View) -> None:
    with pytest.raises(TypeError, match="collate is a function, not int"):
        wr.Loader(view, 4, collate=3)  # type: ignore[arg-type]


def test_dtype_recuts(view: wr.View) -> None:
    batch = next(wr.Loader(view, 4, shuffle=False, dtype="float32"))
    assert batch["labels"].dtype == np.float32
    assert batch["labels"][1, 0] == 17


def test_a_mixture_gives_each_part_its_share(dataset: wr.Dataset) -> None:
    a, b = dataset.pack(16), dataset.pack(16, eos=1)
    loader = wr.Loader(wr.mix({"a": (a, 0.75), "b": (b, 0.25)}), 8, seed=1)
    traced = wr.trace(loader, 3)
    assert sorted(row["part"] for row in traced) == [0] * 6 + [1] * 2


def test_a_saved_plan_says_nothing_of_other_data(tmp_path: Path) -> None:
    path, plan = tmp_path / "t.bin", tmp_path / "plan.json"
    np.arange(400, dtype=np.uint16).tofile(path)
    loader = wr.open(path, dtype="uint16").pack(16).loader(batch_size=4, seed=1)
    recipe = loader.recipe()
    assert recipe["plan"] == loader.plan
    plan.write_text(json.dumps(recipe))
    whole = wr.trace(plan, 1)
    np.arange(300, dtype=np.uint16).tofile(path)
    for saved in (plan, recipe):
        with pytest.raises(wr.MismatchError, match="the plan does not fit its data any more: the plan has source="):
            wr.trace(saved, 1)
    with pytest.raises(wr.MismatchError):
        wr.find(plan, 0)
    # A plan that was written by hand names no data but by its path.
    assert wr.trace({name: value for name, value in recipe.items() if name != "plan"}, 1) != whole


def test_trace_and_find_are_inverse(view: wr.View, tmp_path: Path) -> None:
    loader = wr.Loader(view, 10, seed=4)
    (tmp_path / "plan.json").write_text(json.dumps(loader.recipe()))
    step = 2 * len(loader) + 7
    (row,) = wr.trace(loader, step, row=3)
    batch = next(islice(loader.stream(), step, None))
    assert row["sample"] == batch["input_ids"][3, 0] // 16
    (read,) = row["reads"]
    (place,) = read["locations"]
    stored = np.fromfile(place["file"], np.uint16, count=17, offset=place["start"])
    assert stored[:16].tolist() == batch["input_ids"][3].tolist()
    assert wr.trace(tmp_path / "plan.json", step, row=3) == wr.trace(loader.recipe(), 7, epoch=2, row=3) == [row]
    found = wr.find(loader, 0, epoch=2, most=100_000)
    assert {"step": 7, "row": 3, "position": row["position"], "sample": row["sample"]} in found
    assert len(found) == len(loader) * 10
    for most in range(0, len(view), 7):
        assert wr.find(loader, 0, epoch=2, most=most) == found[:most]


def test_batches_are_not_copied_and_their_memory_is_used_again(view: wr.View) -> None:
    loader = wr.Loader(view, 8, num_threads=0, prefetch=1)
    seen = set()
    for batch in islice(loader, 50):
        seen.add(batch["input_ids"].ctypes.data)
        assert not batch["input_ids"].flags.owndata
        del batch
    assert len(seen) <= 4


def test_a_kept_array_keeps_its_values(view: wr.View) -> None:
    loader = wr.Loader(view, 8, shuffle=False, num_threads=2)
    kept = [next(loader)["labels"][2:4] for _ in range(60)]
    gc.collect()
    for k, rows in enumerate(kept):
        assert rows[:, 0].tolist() == [16 * (8 * k + 2) + 1, 16 * (8 * k + 3) + 1]


def test_memory_does_not_grow(view: wr.View) -> None:
    loader = wr.Loader(view, 64)
    for batch in islice(loader.stream(), 2_000):
        batch["labels"][0, 0] = 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for batch in islice(loader.stream(), 10_000):
        batch["labels"][0, 0] = 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4_096


def test_many_threads_may_share_a_loader(view: wr.View) -> None:
    loader = wr.Loader(view, 10, epochs=4, num_threads=2)
    found: list[list[int]] = []

    def take() -> None:
        for batch in loader.stream():
            found.extend(ids([batch]))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert sorted(found) == sorted(ids(wr.Loader(view, 10, epochs=4).stream()))
    assert (loader.epoch, loader.samples) == (3, len(view) // 10 * 10)


def test_other_threads_run_while_a_loader_waits(view: wr.View) -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    end = time.monotonic() + 0.5
    for _ in wr.Loader(view, 1_000, num_threads=1).stream():
        if time.monotonic() > end:
            break
    done.set()
    thread.join()
    assert ticks > 50


CTRL_C = """
    import os, sys, time
    import windrow as wr

    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
    loader = wr.Loader(view, 100, num_threads=int(sys.argv[2]))
    print("ready", flush=True)
    n = 0
    try:
        for batch in loader.stream():
            n += 1
    except KeyboardInterrupt:
        samples = loader.samples
        next(loader)
        print(loader.samples != samples, flush=True)
"""


@pytest.mark.parametrize("num_threads", [0, 2])
def test_ctrl_c_ends_a_loop_at_once_and_the_loader_continues(tokens: Path, tmp_path: Path, num_threads: int) -> None:
    script = tmp_path / "loop.py"
    script.write_text(textwrap.dedent(CTRL_C))
    command = [sys.executable, str(script), str(tokens), str(num_threads)]
    with running(command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert out == "True\n"


CTRL_C_IN_ONE_CALL = """
    import sys
    import windrow as wr

    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
    mix = wr.mix({"a": (view, 0.5), "b": (view, 0.5)}, stop="never")
    print("ready", flush=True)
    try:
        wr.find(wr.Loader(mix, 2), 0, most=1 << 60)
    except KeyboardInterrupt:
        print(len(wr.find(wr.Loader(mix, 2), 0, most=3)), flush=True)
"""


def test_ctrl_c_ends_a_call_that_takes_long(tokens: Path, tmp_path: Path) -> None:
    script = tmp_path / "call.py"
    script.write_text(textwrap.dedent(CTRL_C_IN_ONE_CALL))
    with running([sys.executable, str(script), str(tokens)]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert out == "3\n"


@pytest.mark.parametrize("raised, told", [("KeyboardInterrupt", "stopped\n"), ("ValueError", "opened\n")])
def test_what_logging_raises_is_no_error_of_the_call(
    tmp_path: Path, run_script: Callable[..., str], raised: str, told: str
) -> None:
    np.arange(100, dtype=np.uint32).tofile(tmp_path / "x.bin")
    script = f"""
    import logging
    import windrow as wr

    class Handler(logging.Handler):
        def emit(self, record):
            raise {raised}

    logging.getLogger("windrow").addHandler(Handler())
    try:
        wr.open({str(tmp_path / "x.bin")!r})
        print("opened")
    except KeyboardInterrupt:
        print("stopped")
    """
    assert run_script(script) == told


def test_log_records_reach_logging(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.arange(100, dtype=np.uint32).tofile(tmp_path / "x.bin")
    with caplog.at_level("WARNING", logger="windrow"):
        wr.open(tmp_path / "x.bin")
    assert [r.name.split(".")[0] for r in caplog.records] == ["windrow"]


def test_links_that_are_not_followed_are_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, other = tmp_path / "data", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    for place in (folder, other):
        (place / "a.jsonl").write_text('{"text": "a"}\n')
    for name, target in (("v", other), ("w", other), ("x", tmp_path), ("y", folder)):
        (folder / name).symlink_to(target)
    with caplog.at_level("WARNING", logger="windrow"):
        assert len(wr.open(folder)) == 2
    assert [r.getMessage() for r in caplog.records] == [
        f"{folder / 'w'} and 2 more: not followed, a link to a folder that is read already or that holds the link"
    ]


def test_numpy_is_enough(tokens: Path, run_script: Callable[..., str]) -> None:
    code = """
        import sys

        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("torch", "jax", "jaxlib", "ml_dtypes", "tokenizers"):
                    raise ImportError(f"{name} is refused")

        sys.meta_path.insert(0, Refuse())
        import windrow as wr

        ds = wr.open(sys.argv[1], format="tokens", dtype="uint16")
        view = ds.pack(16)
        print(next(wr.Loader(view, 4))["labels"].shape, type(view.__getitems__([0])[0]["labels"]).__name__)
        print(ds.pack(16, dtype="float32")[0]["labels"].dtype)
        try:
            wr.Loader(view, 4, framework="torch")
        except ImportError as e:
            print(e)
    """
    assert run_script(code, tokens).splitlines() == ["(4, 16) ndarray", "float32", "torch is refused"]


def test_a_collate_that_finds_an_iterator_at_its_end_does_not_end_the_loop(view: wr.View) -> None:
    others = iter([1])
    loader = wr.Loader(view, 4, shuffle=False, epochs=1, collate=lambda batch: (batch, next(others)))
    batches = iter(loader)
    next(batches)
    with pytest.raises(RuntimeError, match="collate raised StopIteration"):
        next(batches)
