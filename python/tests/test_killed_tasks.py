"""Workers that fill a store, two of a job at once, and are killed at random times: the objects of one run, whatever is left behind."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from s3_server import S3Server

import windrow as wr
from windrow.prep.job import STORE_OPTIONS

KILLS = 50
TASK_BYTES = 30_000
CORPUS = Path(__file__).parents[2] / "testdata" / "demo" / "corpus.jsonl"


@pytest.mark.parametrize("seed", range(2))
def test_killed_workers_leave_the_objects_of_one_run(seed: int, tmp_path: Path) -> None:
    s3 = S3Server()
    workers: list[subprocess.Popen[bytes]] = []
    try:
        local = wr.prep.plan("tokenize", CORPUS, tmp_path / "tokens", tokenizer="bytes", task_bytes=TASK_BYTES)
        n = wr.prep.status(local)["tasks"]
        assert n > 40 and all(wr.prep.run_task(local, task) for task in range(n))
        wr.prep.merge(local)
        out = tmp_path / "tokens"
        names = [*(f"parts/{path.name}" for path in (out / "parts").iterdir()), "windrow.json"]
        expected = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
        choose = random.Random(seed)
        killed = 0
        while killed < KILLS / 2:
            bucket = s3.bucket()
            job = wr.prep.plan(
                "tokenize", CORPUS, f"s3://{bucket}/tokens", tokenizer="bytes", task_bytes=TASK_BYTES, store_options=s3.options
            )
            while killed < KILLS / 2 and wr.prep.status(job, store_options=s3.options)["left"]:
                before = len(s3.requests)
                workers = [started(job, rank, s3, tmp_path) for rank in range(2)]
                # The time until they have begun says nothing.
                while len(s3.requests) == before and all(worker.poll() is None for worker in workers):
                    time.sleep(0.001)
                time.sleep(choose.uniform(0, 0.5))
                killed += all(worker.poll() is None for worker in workers)
                for worker in workers:
                    worker.kill()
                    worker.wait()
                there = {name: digest for name, digest in objects(s3, bucket).items() if not name.endswith(".running.json")}
                assert there.items() <= expected.items()
            workers = [started(job, rank, s3, tmp_path) for rank in range(2)]
            assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
            wr.prep.merge(job, store_options=s3.options)
            assert objects(s3, bucket) == expected
    finally:
        for worker in workers:
            worker.kill()
        s3.stop()


def started(job: str, rank: int, s3: S3Server, scratch: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "windrow", "-q", "prep", "run", job, "--rank", str(rank), "--of", "2", "--steal"]
    environment = os.environ | {STORE_OPTIONS: json.dumps(s3.options), "WINDROW_CACHE": str(scratch / "cache")}
    return subprocess.Popen([*command, "--num-threads", "1"], env=environment, stdout=subprocess.DEVNULL)


def objects(s3: S3Server, bucket: str) -> dict[str, str]:
    """Hashes of all that is there, but for the job, which says where it is."""
    found = {}
    for page in s3.client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            name = item["Key"].removeprefix("tokens/")
            if not name.startswith("prep/"):
                body = s3.client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
                found[name] = hashlib.sha256(body).hexdigest()
    return found
