"""Preparation by Ray, dask and Slurm, each a real one on this machine: the bytes of one process, however they are made.

`make test-engines` installs the engines and runs this file; without them it is not collected.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import ray
from s3_server import S3Server
from slurm import Slurm

import windrow as wr

ENGINES = ("local", "ray", "dask", "slurm")
TASK_BYTES = 60_000
CORPUS = Path(__file__).parents[2] / "testdata" / "demo" / "corpus.jsonl"


@pytest.fixture(scope="module", autouse=True)
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    # The paths of sockets are short.
    started = Slurm(tmp_path_factory.mktemp("s") / "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(started.config))
        yield started
    started.stop()


@pytest.fixture(scope="module", autouse=True)
def ray_cluster() -> Iterator[None]:
    """Its own files go below the temporary folder of the tests; a worker takes the tests' Python path from this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The parts as one process makes them, one task after the other."""
    job = planned(tmp_path_factory.mktemp("expected"))
    for task in range(wr.prep.status(job)["tasks"]):
        assert wr.prep.run_task(job, task)
    wr.prep.merge(job)
    return digest(job)


def planned(folder: Path) -> str:
    return wr.prep.plan("tokenize", [CORPUS], folder / "tokens", tokenizer="bytes", task_bytes=TASK_BYTES)


def digest(job: str) -> str:
    """One hash of all parts and the table of them."""
    return digest_of(Path(job).parents[1])


def digest_of(out: Path) -> str:
    found = hashlib.sha256()
    files = sorted(path for path in (out / "parts").iterdir() if not path.name.startswith("."))
    [job] = (out / "prep").iterdir()
    assert len(files) == 4 * json.loads(job.read_text())["tasks"]
    for path in [*files, out / "windrow.json"]:
        found.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_bytes_of_one_process(
    engine: str, workers: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = planned(tmp_path)
    wr.prep.run(job, engine, workers=workers, num_threads=1)
    assert digest(job) == expected


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


@pytest.mark.parametrize("place", ["folder", "s3"])
@pytest.mark.parametrize("engine", ENGINES)
def test_killed_workers_of_two_runs_leave_the_bytes_of_one_process(
    engine: str, place: str, s3: S3Server, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four engines and 13 kills each are 52 in a folder, and 52 in a store."""
    monkeypatch.chdir(tmp_path)
    choose = random.Random(engine + place)
    killed = 0
    # A job may be done before a worker is hit: then another one begins.
    for attempt in range(100):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        if place == "s3":
            out = f"s3://{s3.bucket()}/tokens"
            job = wr.prep.plan("tokenize", [CORPUS], out, tokenizer="bytes", task_bytes=TASK_BYTES, store_options=s3.options)
            killed += run_and_kill(job, engine, choose, s3.options)
            assert digest_of(fetch(s3, out, folder)) == expected
        else:
            job = planned(folder)
            killed += run_and_kill(job, engine, choose, None)
            assert digest(job) == expected
        if killed >= 13:
            break
    assert killed >= 13


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_writes_these_bytes_into_a_store(
    engine: str, s3: S3Server, expected: str, slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    out = f"s3://{s3.bucket()}/tokens"
    job = wr.prep.plan("tokenize", [CORPUS], out, tokenizer="bytes", task_bytes=TASK_BYTES, store_options=s3.options)
    report = wr.prep.run(job, engine, workers=2, num_threads=1, store_options=s3.options)
    assert (report["output"], report["records"]) == (out, 137)
    fetched = fetch(s3, out, tmp_path / "fetched")
    assert digest_of(fetched) == expected
    # Keys are nowhere in what was written down: not in the job, and not in the script of the array.
    secret = s3.options["secret_access_key"].encode()
    written = [*fetched.rglob("*"), *tmp_path.glob("*.log"), *(slurm.folder / "spool").rglob("slurm_script")]
    assert not [path for path in written if path.is_file() and secret in path.read_bytes()]


def fetch(s3: S3Server, url: str, folder: Path) -> Path:
    """The objects below a URL as files."""
    bucket, key = url.removeprefix("s3://").split("/", 1)
    for page in s3.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{key}/"):
        for item in page["Contents"]:
            path = folder / item["Key"].removeprefix(f"{key}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(s3.client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read())
    return folder


ANOTHER_RUN = """
import json, sys
import windrow as wr

if __name__ == "__main__":
    job, options = json.load(sys.stdin)
    wr.prep.run(job, "local", workers=1, num_threads=1, retries=20, store_options=options)
"""


def run_and_kill(job: str, engine: str, choose: random.Random, options: dict[str, str] | None) -> int:
    """Runs a job by an engine and beside it on this machine, and kills up to six workers of both at random times; how many."""
    killed = 0
    ended = threading.Event()

    def kill() -> None:
        nonlocal killed
        while killed < 6 and not ended.wait(choose.uniform(0, 0.1)):
            if found := workers_of(job):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(choose.choice(found), signal.SIGKILL)
                    killed += 1

    # Its command line does not name the job, so it is not taken for a worker.
    another = subprocess.Popen([sys.executable, "-c", ANOTHER_RUN], stdin=subprocess.PIPE, text=True)
    assert another.stdin is not None
    json.dump([job, options], another.stdin)
    another.stdin.close()
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        wr.prep.run(job, engine, workers=2, num_threads=1, retries=20, store_options=options)
        assert another.wait(timeout=200) == 0
    finally:
        ended.set()
        killer.join()
        another.kill()
    return killed


@pytest.mark.parametrize("engines", [("local", "slurm"), ("ray", "dask"), ("local", "local")], ids="+".join)
def test_two_runs_at_once_give_the_bytes_of_one(engines: tuple[str, str], expected: str, tmp_path: Path) -> None:
    job = planned(tmp_path)
    command = "import sys, windrow as wr\nif __name__ == '__main__': wr.prep.run(sys.argv[1], sys.argv[2], workers=2, num_threads=1)\n"
    script = tmp_path / "run.py"
    script.write_text(command)
    runs = [subprocess.Popen([sys.executable, script, job, engine], cwd=tmp_path) for engine in engines]
    try:
        assert [run.wait(timeout=200) for run in runs] == [0, 0]
    finally:
        for run in runs:
            run.kill()
    assert digest(job) == expected


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A corpus of 500 MB, and the hash of its parts as one process makes them."""
    folder = tmp_path_factory.mktemp("large")
    corpus = folder / "large.jsonl"
    text = CORPUS.read_bytes()
    with corpus.open("wb") as out:
        for number in range(500_000_000 // len(text) + 1):
            out.write(text.replace(b'"text": "', b'"text": "%d ' % number))
    job = wr.prep.plan("tokenize", corpus, folder / "tokens", tokenizer="bytes", task_bytes=32 << 20)
    for task in range(wr.prep.status(job)["tasks"]):
        assert wr.prep.run_task(job, task)
    wr.prep.merge(job)
    yield corpus, digest(job)
    shutil.rmtree(folder)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_bytes_of_half_a_gigabyte(
    engine: str, large: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus, expected = large
    job = wr.prep.plan("tokenize", corpus, tmp_path / "tokens", tokenizer="bytes", task_bytes=32 << 20)
    assert wr.prep.status(job)["tasks"] > 10
    wr.prep.run(job, engine, workers=2, num_threads=1)
    assert digest(job) == expected
    shutil.rmtree(tmp_path / "tokens")


def test_half_a_gigabyte_joined_is_what_one_command_writes(large: tuple[Path, str], tmp_path: Path) -> None:
    corpus, _ = large
    wr.tokenize(corpus, tmp_path / "one", tokenizer="bytes")
    wr.prep.join(next((corpus.parent / "tokens" / "prep").iterdir()), tmp_path / "joined")
    one, joined = (sorted(path for path in (tmp_path / name).rglob("*") if path.is_file()) for name in ("one", "joined"))
    assert [path.name for path in one] == [path.name for path in joined]
    for path, other in zip(one, joined, strict=True):
        assert filecmp.cmp(path, other, shallow=False), path
        path.unlink()
        other.unlink()


def workers_of(job: str) -> list[int]:
    """Processes that may be at work on a task: those with the job among their words, and the workers of Ray and dask."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            parent = int((folder / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            is_dasks = parent == os.getpid() and "spawn_main" in words
            if int(folder.name) != os.getpid() and (job in words or words.startswith("ray::attempt") or is_dasks):
                found.append(int(folder.name))
    return found


def test_the_page_about_clusters(tmp_path: Path) -> None:
    # Job scripts find the programs by their names.
    programs = {"windrow": "windrow", "torchrun": "torch.distributed.run"}
    (tmp_path / "bin").mkdir()
    for name, module in programs.items():
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        path.chmod(0o755)
    folder = tmp_path / "data"
    folder.mkdir()
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{folder}",
        "OMP_NUM_THREADS": "1",
        "WINDROW_CACHE": str(tmp_path / "cache"),
        "WINDROW_TEST_ENGINES": "ray dask slurm",
    }
    tests = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, tests / "test_docs.py", "docs/clusters.md"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    logs = "\n".join(f"{log.name}: {log.read_text()}" for log in folder.glob("*.log"))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs}"


STOPPED = """
import sys
import distributed, ray
import windrow as wr

if __name__ == "__main__":
    job, engine, is_own = sys.argv[1:]
    if is_own == "True" and engine == "ray":
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    if is_own == "True" and engine == "dask":
        client = distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
    try:
        wr.prep.run(job, engine, workers=2, num_threads=1)
    except KeyboardInterrupt:
        print("stopped", flush=True)
        # The cluster stays until it is told that no file is being written any more.
        sys.stdin.readline()
        raise
"""


@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("engine", ["ray", "dask", "slurm"])
def test_a_run_that_is_stopped_leaves_nothing_running(
    engine: str, is_own: bool, slurm: Slurm, tmp_path: Path
) -> None:
    if engine == "slurm" and is_own:
        # An array of another user's: nothing of it is touched.
        subprocess.run(["sbatch", "--array=0-1", "--job-name=another", "--output=/dev/null", "--wrap", "sleep 100"], check=True)
    (tmp_path / "long.jsonl").write_bytes(CORPUS.read_bytes() * 120)
    job = wr.prep.plan("tokenize", tmp_path / "long.jsonl", tmp_path / "out", tokenizer="cl100k_base", task_bytes=30 << 20)
    (tmp_path / "run.py").write_text(STOPPED)
    command = [sys.executable, tmp_path / "run.py", job, engine, str(is_own)]
    parts = tmp_path / "out" / "parts"
    run = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: len(drafts(parts)) >= 2)
        run.send_signal(signal.SIGINT)
        assert run.stdout is not None
        # Ray says something too.
        assert "stopped\n" in run.stdout

        def continues() -> bool:
            before = drafts(parts), wr.prep.status(job)["done"]
            time.sleep(1)
            return (drafts(parts), wr.prep.status(job)["done"]) != before

        wait_until(lambda: not continues(), limit=10)
        assert wr.prep.status(job)["left"]
        if engine == "slurm":
            wait_until(lambda: "windrow" not in slurm.queued(), limit=10)
            assert ("another" in slurm.queued()) == is_own
        run.communicate("\n", timeout=60)
    finally:
        run.kill()
        subprocess.run(["scancel", "--name=another"], check=True)


def drafts(parts: Path) -> dict[str, int]:
    """The files that attempts are writing, and their sizes."""
    found = {}
    for path in parts.glob(".*"):
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = path.stat().st_size
    return found


def wait_until(is_so: Callable[[], bool], limit: float = 60) -> None:
    deadline = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
