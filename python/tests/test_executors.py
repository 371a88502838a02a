"""Who runs the tasks of a job decides nothing: processes of this machine, or a function that calls `run_task`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s3_server import S3Server

import windrow as wr
from windrow.prep.job import as_texts

TASK_BYTES = 60_000


def planned(folder: Path, testdata: Path) -> str:
    return wr.prep.plan("tokenize", [testdata / "demo" / "corpus.jsonl"], folder / "tokens", tokenizer="bytes", task_bytes=TASK_BYTES)


def digest(job: str) -> str:
    """One hash of all parts and of the table of them."""
    out = Path(job).parents[1]
    found = hashlib.sha256()
    for path in sorted(path for path in [*(out / "parts").iterdir(), out / "windrow.json"] if not path.name.startswith(".")):
        found.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The parts as this process makes them, one task after the other."""
    job = planned(tmp_path_factory.mktemp("expected"), Path(__file__).parents[2] / "testdata")
    n = wr.prep.status(job)["tasks"]
    assert n > 20
    assert all(wr.prep.run_task(job, task, num_threads=1) for task in range(n))
    assert not wr.prep.run_task(job, 0)
    wr.prep.merge(job)
    return digest(job)


@pytest.mark.parametrize("workers", [None, 1, 2, 4])
def test_processes_give_the_bytes_of_one(workers: int | None, expected: str, testdata: Path, tmp_path: Path) -> None:
    job = planned(tmp_path, testdata)
    told: list[dict[str, Any]] = []
    report = wr.prep.run(job, workers=workers, progress=told.append)
    assert digest(job) == expected
    assert report["records"] == len(wr.open(tmp_path / "tokens")) == 137
    assert told[-1]["done"] == told[-1]["tasks"] > 20
    # All is done: nothing is started, and it is merged again.
    assert wr.prep.run(job, executor=lambda job, tasks: 1 / 0)["records"] == 137
    assert digest(job) == expected


def test_processes_are_told_the_keys_of_a_store_and_no_file_is(expected: str, testdata: Path, tmp_path: Path) -> None:
    s3 = S3Server()
    try:
        corpus = s3.put(testdata / "demo" / "corpus.jsonl")
        out = f"s3://{s3.bucket()}/tokens"
        given: dict[str, Any] = {"store_options": {**s3.options, "anon": False}}
        job = wr.prep.plan("tokenize", corpus, out, tokenizer="bytes", task_bytes=TASK_BYTES, **given)
        assert s3.options["secret_access_key"] not in read(s3, job)
        assert wr.prep.run_task(job, 0, **given)
        assert wr.prep.run(job, workers=2, **given)["records"] == 137
        assert not wr.prep.status(job, **given)["left"]
        assert wr.prep.clean(job, **given) == 0
        wr.prep.join(job, tmp_path / "joined", **given)
        wr.tokenize(testdata / "demo" / "corpus.jsonl", tmp_path / "at_once", tokenizer="bytes")
        names = "tokenized-samples/corpus-tokenized-samples.bin"
        assert (tmp_path / "joined" / names).read_bytes() == (tmp_path / "at_once" / names).read_bytes()
    finally:
        s3.stop()


def test_options_of_stores_are_texts_for_other_processes() -> None:
    given = {"headers": {"Authorization": "Bearer x"}, "anon": True, "region": "eu"}
    assert as_texts(given) == {"headers.Authorization": "Bearer x", "anon": "true", "region": "eu"}
    assert as_texts({}) == {} and as_texts(None) is None


def read(s3: S3Server, url: str) -> str:
    bucket, key = url.removeprefix("s3://").split("/", 1)
    text: str = s3.client.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    return text


def test_a_function_is_called_until_all_is_done(expected: str, testdata: Path, tmp_path: Path) -> None:
    job = planned(tmp_path, testdata)
    calls = []

    def half(job: str, tasks: Sequence[int]) -> None:
        calls.append(list(tasks))
        for task in tasks[::2] * 2:
            wr.prep.run_task(job, task)
        # As an engine that lost a worker.
        raise RuntimeError("a worker is gone")

    wr.prep.run(job, executor=half, retries=10)
    assert digest(job) == expected
    for before, now in zip(calls, calls[1:], strict=False):
        assert now == before[1::2]
    assert len(calls) <= 6


def test_tasks_that_are_left_are_an_error_with_the_cause(testdata: Path, tmp_path: Path) -> None:
    job = planned(tmp_path, testdata)
    n = wr.prep.status(job)["tasks"]
    calls = []

    def lost(job: str, tasks: Sequence[int]) -> None:
        calls.append(tasks)
        raise RuntimeError("no machine is free")

    with pytest.raises(wr.WindrowError, match=f"{n} of {n} tasks are not done; no machine is free") as caught:
        wr.prep.run(job, executor=lost, retries=2)
    assert len(calls) == 3 and isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(wr.WindrowError, match="not finished"):
        wr.open(tmp_path / "tokens")


@pytest.mark.parametrize("executor", ["local", None])
def test_a_bad_line_is_named_and_the_other_tasks_are_done(executor: str | None, tmp_path: Path) -> None:
    lines = [f'{{"text": "document {i}"}}\n' for i in range(100)]
    lines[60] = '{"text": 7}\n'
    (tmp_path / "a.jsonl").write_text("".join(lines))
    job = wr.prep.plan("tokenize", tmp_path / "a.jsonl", tmp_path / "tokens", tokenizer="bytes", task_bytes=500)

    def here(job: str, tasks: Sequence[int]) -> None:
        for task in tasks:
            try:
                wr.prep.run_task(job, task)
            except wr.CorruptError as error:
                assert error.record == 60

    with pytest.raises(wr.WindrowError, match=r"1 of \d+ tasks are not done; task \d+: .*text") as caught:
        wr.prep.run(job, executor=executor or here, retries=1)
    assert "a.jsonl" in str(caught.value) and "60" in str(caught.value)
    now = wr.prep.status(job)
    assert len(now["left"]) == 1 and now["done"] == now["tasks"] - 1


def test_an_error_that_lasts_is_not_tried_again_and_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"text": "document {i}"}}\n' for i in range(100)))
    job = wr.prep.plan("tokenize", tmp_path / "a.jsonl", tmp_path / "tokens", tokenizer="bytes", task_bytes=500)
    n = wr.prep.status(job)["tasks"]
    os.utime(tmp_path / "a.jsonl", (1, 1))
    calls: list[Sequence[int]] = []

    def here(job: str, tasks: Sequence[int]) -> None:
        calls.append(tasks)
        for task in tasks:
            with contextlib.suppress(wr.StaleError):
                wr.prep.run_task(job, task)

    for count in (1, 2):
        with pytest.raises(wr.WindrowError, match=rf"{n} of {n} tasks are not done; tasks 0-{n - 1}: the input changed") as caught:
            wr.prep.run(job, executor=here, retries=3)
        # The next run tries each once more: it may be mended.
        assert len(calls) == count and str(caught.value).count("the input changed") == 1
    assert {failed["kind"] for failed in wr.prep.status(job)["failed"]} == {"stale"}
    command = [sys.executable, "-m", "windrow", "prep"]
    ran = subprocess.run([*command, "run", job], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 5 and ran.stderr.count("the input changed") == 1 and f"tasks 0-{n - 1} failed" in ran.stderr
    told = subprocess.run([*command, "status", job], capture_output=True, text=True, timeout=120)
    assert told.stdout.count("the input changed") == 1 and f"tasks 0-{n - 1} failed" in told.stdout


RUN = """
import sys
import windrow as wr

wr.prep.run(sys.argv[1], workers=2, num_threads=1)
"""


@pytest.fixture
def long_job(tmp_path: Path, testdata: Path) -> str:
    """Two tasks that take long enough to be stopped."""
    (tmp_path / "long.jsonl").write_bytes((testdata / "demo" / "corpus.jsonl").read_bytes() * 40)
    return wr.prep.plan("tokenize", tmp_path / "long.jsonl", tmp_path / "long", tokenizer="cl100k_base", task_bytes=30 << 20)


SLOW_TASK = """
import sys, time
import windrow as wr

wr.prep.run_task(sys.argv[1], 0, num_threads=1, progress=lambda now: time.sleep(2))
"""


def test_status_tells_who_runs_what_and_how_fast(long_job: str) -> None:
    command = [sys.executable, "-m", "windrow", "prep"]
    run = subprocess.Popen([sys.executable, "-c", SLOW_TASK, long_job], stderr=subprocess.DEVNULL)
    try:
        while not (now := wr.prep.status(long_job))["running"]:
            assert run.poll() is None
            time.sleep(0.1)
        (one,) = now["running"]
        assert one["task"] in now["left"] and one["host"] and one["pid"] == run.pid
        assert one["done_bytes"] <= one["total_bytes"] and (now["left_secs"] is None) == (now["bytes_per_sec"] == 0)
        shown = subprocess.run([*command, "status", long_job], capture_output=True, text=True, timeout=120)
        assert f"runs on {one['host']} (process {one['pid']})" in shown.stdout
    finally:
        run.kill()
        run.wait()
    # What a killed worker said stays until the task is run again, or it is removed.
    assert wr.prep.status(long_job)["running"]
    assert wr.prep.clean(long_job) > 0 and not wr.prep.status(long_job)["running"]


def test_a_run_at_a_terminal_shows_a_bar(testdata: Path, tmp_path: Path) -> None:
    job = planned(tmp_path, testdata)
    terminal, program = pty.openpty()
    try:
        ran = subprocess.run([sys.executable, "-c", RUN, job], stderr=program, stdout=subprocess.PIPE, timeout=300)
        assert ran.returncode == 0
        assert b"tasks" in os.read(terminal, 1 << 16)
    finally:
        os.close(terminal)
        os.close(program)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_worker(stop: signal.Signals, long_job: str, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(RUN)
    run = subprocess.Popen([sys.executable, tmp_path / "run.py", long_job], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(workers_of(long_job)) == 2 and any(Path(long_job).parents[1].glob("parts/.*")))
    run.send_signal(stop)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == -stop, said
    # Of a process that was killed, the workers end with their task.
    wait_until(lambda: not workers_of(long_job))


def test_a_killed_worker_costs_its_task(expected: str, testdata: Path, tmp_path: Path) -> None:
    job = planned(tmp_path, testdata)
    killed = []

    def kill(now: dict[str, Any]) -> None:
        if len(killed) < 2 and (found := workers_of(job)):
            killed.append(found[0])
            os.kill(found[0], signal.SIGKILL)

    wr.prep.run(job, workers=2, num_threads=1, retries=10, progress=kill)
    assert digest(job) == expected


def test_executors_that_are_not_there(testdata: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = planned(tmp_path, testdata)
    with pytest.raises(wr.ConfigError, match="executor is 'rey'") as caught:
        wr.prep.run(job, "rey")  # type: ignore[arg-type]
    assert "local, ray, slurm, dask" in caught.value.hint
    for package in ("ray", "distributed"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setenv("PATH", "")
    for name, hint in (("ray", "pip install ray"), ("dask", "pip install distributed"), ("slurm", "submits jobs")):
        monkeypatch.delitem(sys.modules, f"windrow.prep.{name}", raising=False)
        with pytest.raises(wr.ConfigError, match=name) as caught:
            wr.prep.run(job, name)  # type: ignore[arg-type]
        assert hint in caught.value.hint
    with pytest.raises(wr.ConfigError, match="workers is 0"):
        wr.prep.run(job, workers=0)


def workers_of(job: str) -> list[int]:
    """Processes that were started for a job, this one and those that start others left out."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if job in words and "windrow.prep.local" in words:
            found.append(int(folder.name))
    return found


def wait_until(is_so: Callable[[], bool], limit: float = 60) -> None:
    deadline = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_records_are_converted_in_tasks(tmp_path: Path) -> None:
    series = tmp_path / "series.jsonl"
    rows = [{"sequence": [[t / 4, -t] for t in range(i % 7 + 1)], "name": f"series {i}"} for i in range(90)]
    series.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"to": "shards", "dtype": np.float32, "normalize": True, "opening": {"column": "sequence"}}
    job = wr.prep.plan("convert", series, tmp_path / "parts", task_bytes=500, **options)
    assert wr.prep.status(job)["tasks"] > 5
    assert wr.prep.run(job, workers=2)["records"] == 90
    parts = wr.open(tmp_path / "parts")
    assert [record.tolist() for record in parts] == [row["sequence"] for row in rows]
    wr.prep.join(job, tmp_path / "joined")
    wr.convert(wr.open(series, column="sequence"), tmp_path / "at_once", to="shards", dtype="float32", normalize=True)
    one = {path.name: path.read_bytes() for path in (tmp_path / "at_once").iterdir()}
    assert one == {path.name: path.read_bytes() for path in (tmp_path / "joined").iterdir()}
    for wrong, says in (({}, "to"), ({"to": "shards", "sample_size": 4}, "sample_size"), ({"to": "npz", "opening": {"colum": "x"}}, "understood")):
        with pytest.raises(wr.ConfigError, match=says):
            wr.prep.plan("convert", series, tmp_path / "wrong", **wrong)
    with pytest.raises(wr.ConfigError, match="2 inputs"):
        wr.prep.plan("convert", [series, series], tmp_path / "wrong", to="npz")


def test_sound_is_encoded_in_tasks(testdata: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    sound, weights = tmp_path / "sound", testdata / "dac" / "small.pth"
    sound.mkdir()
    for clip in ("cards_001.wav", "cards_003.mp3", "cards_004.m4a"):
        (sound / clip).write_bytes((testdata / "audio" / clip).read_bytes())
    (sound / "cards_003.txt").write_text("three of clubs")
    job = wr.prep.plan("encode", sound, tmp_path / "parts", weights=weights, dtype="int16", skip_tags=["opus"], task_bytes=20_000)
    assert wr.prep.run(job, workers=2)["records"] == 3
    wr.encode(sound, tmp_path / "one", wr.Codec(weights), skip_tags=["opus"])
    parts, one = wr.open(tmp_path / "parts"), wr.open(tmp_path / "one")
    assert all((parts[i] == one[i]).all() for i in range(3))
    batches = [next(wr.Loader(ds.codes(50), batch_size=2, seed=0)) for ds in (parts, one)]
    assert (batches[0]["tgt_tokens"] == batches[1]["tgt_tokens"]).all()
    wr.prep.join(job, tmp_path / "joined")
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert len(files) > 4 and files == {path.name: path.read_bytes() for path in (tmp_path / "joined").rglob("*") if path.is_file()}

    def refused(error: type[Exception], match: str, **options: Any) -> None:
        with pytest.raises(error, match=match):
            wr.prep.plan("encode", sound, tmp_path / "refused", **options)

    refused(wr.ConfigError, "weights are missing")
    refused(wr.UnsupportedError, "feature", weights=weights, device="cuda")
    refused(wr.ConfigError, "loudness", weights=weights, loudness=1)
    refused(wr.ConfigError, "int16 or int64", weights=weights, dtype="float32")
    (sound / "cards_001.wav").write_bytes(b"another")
    with pytest.raises(wr.StaleError, match="cards_001.wav"):
        wr.prep.join(job, tmp_path / "again")
