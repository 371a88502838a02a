"""`windrow download` and the hub's own client get the same files from the same hub, and share its cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import windrow as wr
from hub_server import COMMIT, Hub, time_300b

REPO = "Maple728/Time-300B"
DEBUG = ["other/m4_daily", "healthcare/hospital", "sales/dominick"]


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = time_300b()
    yield hub
    hub.stop()


@pytest.fixture
def environment(hub: Hub, tmp_path: Path) -> dict[str, str]:
    """Of a machine that knows nothing of any other hub."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
    return variables | quiet | {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf")}


def run(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def download(environment: dict[str, str], *words: str) -> dict[str, object]:
    answer: dict[str, object] = json.loads(run(environment, "-m", "windrow", "download", *words, "--json", "-q"))
    return answer


def snapshot(environment: dict[str, str], **options: object) -> None:
    """The hub's own client."""
    code = "import huggingface_hub, json, sys; huggingface_hub.snapshot_download(**json.loads(sys.argv[1]))"
    run(environment, "-c", code, json.dumps({"repo_id": REPO, "repo_type": "dataset", **options}))


def files(folder: Path) -> dict[str, bytes]:
    """The files below a folder that are not hidden away by a client."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not name.startswith((".cache/", ".windrow-download/"))}


def test_both_clients_get_the_same_files(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    snapshot(environment, local_dir=str(tmp_path / "theirs"))
    assert download(environment, REPO, "--out", str(tmp_path / "ours"))["downloaded_files"] == len(hub.files)
    assert files(tmp_path / "ours") == files(tmp_path / "theirs") == hub.files


def test_partitions_are_the_patterns_of_the_original(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    patterns = [f"{partition}/**" for partition in DEBUG]
    snapshot(
        environment, local_dir=str(tmp_path / "theirs"), allow_patterns=patterns, ignore_patterns=["**/*.lock"]
    )
    download(environment, "time-300b", "--partition-set", "debug", "--out", str(tmp_path / "ours"))
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")
    assert wr.open(tmp_path / "ours").info()["records"] == len(DEBUG)


def test_what_the_other_client_cached_is_used_without_a_network(
    hub: Hub, environment: dict[str, str], tmp_path: Path
) -> None:
    snapshot(environment)
    hub.stop()
    answer = download(environment | {"HF_HUB_OFFLINE": "1"}, REPO, "--out", str(tmp_path / "ours"))
    assert (answer["cached_files"], answer["commit"]) == (len(hub.files), COMMIT)
    assert files(tmp_path / "ours") == hub.files


def test_a_cut_connection_is_gone_on_from(hub: Hub, environment: dict[str, str], tmp_path: Path) -> None:
    hub.cut_at = 500
    download(environment, "time-300b", "--partitions", "web", "--out", str(tmp_path / "ours"))
    shard = "web/visits/data-1-of-1.bin"
    assert (tmp_path / "ours" / shard).read_bytes() == hub.files[shard]
    assert sum(name == "store" for name, *_ in hub.log) == 2


@pytest.mark.parametrize("revision", ["refs/convert/parquet", "refs%2Fpr%2F3", "refs/pr/3", "~parquet"])
def test_a_revision_with_slashes_is_one_in_a_url(hub: Hub, environment: dict[str, str], tmp_path: Path, revision: str) -> None:
    command = [sys.executable, "-m", "windrow", "download", f"hf://datasets/{REPO}@{revision}", "--json", "-q"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    name = {"~parquet": "refs/convert/parquet"}.get(revision, revision).replace("%2F", "/")
    assert (answer["revision"], answer["commit"]) == (name, COMMIT)
    # It is called as the data set is.
    assert files(tmp_path / "Time-300B") == hub.files
    part = download(environment, f"hf://datasets/{REPO}@{revision}/web", "--out", str(tmp_path / "web"))
    assert part["files"] == 3 and (tmp_path / "web" / "visits" / "meta.json").is_file()
    by_flag = download(environment, REPO, "--revision", name, "--dry-run", "--out", str(tmp_path / "x"))
    assert by_flag["commit"] == COMMIT
