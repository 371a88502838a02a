"""Batches as jax arrays."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from itertools import islice
from pathlib import Path

import jax
import numpy as np
import pytest

import windrow as wr


def test_jax_gets_what_numpy_gets(view: wr.View) -> None:
    pairs = zip(
        wr.Loader(view, 8, seed=1, dtype="int32"), wr.Loader(view, 8, seed=1, dtype="int32", framework="jax"), strict=False
    )
    kept = []
    for a, b in islice(pairs, 30):
        assert all(isinstance(array, jax.Array) for array in b.values())
        assert all(np.array_equal(a[name], np.asarray(b[name])) for name in a)
        kept.append((a["labels"].copy(), b["labels"]))
    assert all(np.array_equal(a, np.asarray(b)) for a, b in kept)


def test_jax_has_no_bfloat16_but_ml_dtypes(view: wr.View) -> None:
    batch = next(wr.Loader(view, 2, shuffle=False, dtype=jax.numpy.bfloat16, framework="jax"))
    assert batch["labels"].dtype == jax.numpy.bfloat16
    assert batch["labels"][:, 0].tolist() == [1, 17]


def test_what_jax_would_wrap_is_an_error(tmp_path: Path) -> None:
    assert not jax.config.jax_enable_x64
    np.save(tmp_path / "a.npy", np.array([[1, 2, 3], [4, 2**31, 6]], np.uint32))
    ds = wr.open(tmp_path / "a.npy")
    batches = wr.Loader(ds.records(3, labels=None), 1, shuffle=False, framework="jax").stream()
    assert next(batches)["input_ids"].tolist() == [[1, 2, 3]]
    with pytest.raises(wr.ConfigError, match="input_ids does not fit int32") as caught:
        next(batches)
    assert "jax_enable_x64" in str(caught.value.hint)
    (tmp_path / "a.jsonl").write_text('{"n": 5000000000}\n')
    rows = wr.open(tmp_path / "a.jsonl").rows(["n"], stack=True)
    with pytest.raises(wr.ConfigError, match="n does not fit int32") as caught:
        next(wr.Loader(rows, 1, framework="jax"))
    # Rows take no dtype.
    assert "views of token IDs" in str(caught.value.hint)
    batch = ds.records(3, labels=None, dtype="uint32").loader(2, shuffle=False, framework="jax")
    assert next(batch)["input_ids"].tolist()[1] == [4, 2**31, 6]


def test_a_jitted_step_takes_a_batch(view: wr.View) -> None:
    step = jax.jit(lambda batch: (batch["labels"] - batch["input_ids"]).sum())
    loader = wr.Loader(view, 8, framework="jax", dtype="int32")
    assert int(step(next(loader))) == 8 * 16


def test_global_batches_are_the_loaders_on_every_device(view: wr.View) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    by_rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    options = {"seed": 1, "dtype": "int32"}
    loader = wr.Loader(view, 8, **options)
    plain = wr.Loader(view, 8, **options).stream()
    batches = wr.jax.global_batches(loader, by_rows)
    for _ in range(5):
        batch = next(batches)
        assert all(values.sharding == by_rows for values in batch.values())
        assert all(np.array_equal(np.asarray(batch[name]), values) for name, values in next(plain).items())
    assert loader.samples == 40
    resumed = wr.Loader(view, 8, **options)
    resumed.load_state_dict(loader.state_dict())
    assert np.array_equal(np.asarray(next(wr.jax.global_batches(resumed, by_rows))["labels"]), next(plain)["labels"])


def test_what_global_batches_would_wrap_is_an_error(tmp_path: Path) -> None:
    assert not jax.config.jax_enable_x64
    np.save(tmp_path / "a.npy", np.array([[1, 2, 3], [4, 2**31, 6], [-(2**31), 2**31 - 1, 0], [0, -(2**31) - 1, 0]]))
    rows = wr.open(tmp_path / "a.npy").records(3, labels=None)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    loader = wr.Loader(rows, 1, shuffle=False)
    batches = wr.jax.global_batches(loader, device)
    assert next(batches)["input_ids"].tolist() == [[1, 2, 3]]
    with pytest.raises(wr.ConfigError, match="input_ids does not fit int32") as caught:
        next(batches)
    assert "jax_enable_x64" in str(caught.value.hint)
    batches = wr.jax.global_batches(loader, device)
    assert next(batches)["input_ids"].tolist() == [[-(2**31), 2**31 - 1, 0]]
    with pytest.raises(wr.ConfigError, match="input_ids does not fit int32"):
        next(batches)
    with jax.enable_x64(True):
        assert next(wr.jax.global_batches(wr.Loader(rows, 4, shuffle=False), device))["input_ids"].tolist()[1] == [4, 2**31, 6]


LENGTHS = """
    import sys
    import jax
    import numpy as np
    import windrow as wr

    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", num_processes=2, process_id=int(sys.argv[3]))
    ds = wr.open(sys.argv[1])
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    by_rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    longest = ds.records(64, pad="longest")
    for view in (longest, wr.mix({"a": (longest, 0.5), "b": (longest, 0.5)}), ds.segments(64, buckets=[16, 64]), ds.records(64)):
        loader = wr.Loader(view, global_batch_size=4, dtype="int32")
        try:
            batch = next(wr.jax.global_batches(loader, by_rows))
            print(batch["input_ids"].shape, flush=True)
        except wr.ConfigError as error:
            print(str(error).splitlines()[-1], flush=True)
"""


def test_rows_of_other_lengths_in_each_process_are_refused(documents: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(LENGTHS))
    command = [sys.executable, str(script), str(documents), str(port)]
    processes = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        found = [process.communicate(timeout=120)[0].splitlines() for process in processes]
    finally:
        for process in processes:
            process.kill()
    longest, buckets = '  hint: pad="length": one length for all', "  hint: segments(length) without buckets=: one length for all"
    assert [[line for line in lines if "Gloo" not in line] for lines in found] == [[longest, longest, buckets, "(4, 64)"]] * 2
    # In one process they are what they are.
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    loader = wr.Loader(wr.open(documents).records(64, pad="longest"), 4, dtype="int32")
    assert next(wr.jax.global_batches(loader, device))["input_ids"].shape[1] < 64


def test_rows_are_no_arrays_for_devices(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    loader = wr.Loader(wr.open(tmp_path / "rows.jsonl").rows(), 2)
    with pytest.raises(wr.ConfigError, match="no arrays"):
        next(wr.jax.global_batches(loader, jax.sharding.SingleDeviceSharding(jax.devices()[0])))
