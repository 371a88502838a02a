"""`python -m windrow` is the program `windrow`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import windrow as wr
from conftest import running


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "windrow", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_commands_run_and_give_json(tmp_path: Path) -> None:
    assert program("dummy", "--vocab-size", 100, "--tokens", 1000, "--out", tmp_path / "x.bin").returncode == 0
    assert np.array_equal(wr.open(tmp_path / "x.bin")[0], wr.create_dummy_data(100, 1000))
    done = program("inspect", tmp_path / "x.bin", "--json")
    assert (done.returncode, json.loads(done.stdout)["version"]) == (0, 1)


def test_exit_codes_are_the_programs() -> None:
    assert program("no-such-command").returncode == 2
    assert program("inspect", "/nothing/here").returncode == 1
    assert program("--help").returncode == 0


def test_warnings_go_to_stderr_unless_quiet(tmp_path: Path) -> None:
    np.arange(100, dtype=np.uint32).tofile(tmp_path / "x.bin")
    assert program("inspect", tmp_path / "x.bin").stderr.startswith("warning: ")
    assert program("inspect", tmp_path / "x.bin", "-q").stderr == ""


def test_ctrl_c_ends_it_as_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "some words to read, again and again"}\n' * 2_000_000)
    command = [sys.executable, "-m", "windrow", "tokenize", tmp_path / "a.jsonl", "--tokenizer", "cl100k_base"]
    with running([*command, "--out", tmp_path / "out"], stderr=subprocess.PIPE) as process:
        while not any((tmp_path / "out").glob(".*")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not (tmp_path / "out" / "index").exists()


def test_a_long_coverage_says_how_far_it_is(tmp_path: Path) -> None:
    wr.create_dummy_data(100, 100_000).tofile(tmp_path / "x.bin")
    command = [sys.executable, "-m", "windrow", "coverage", tmp_path / "x.bin", "--pack", "8", "--batch-size", "1"]
    with running([*command, "--dtype", "uint32", "--steps", "0..1000000000"], stderr=subprocess.PIPE) as process:
        lines = []
        while not lines or not lines[-1].startswith("coverage: "):
            lines.append(process.stderr.readline())
            assert lines[-1]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert lines[-1].endswith(" of 1,000,000,000 steps\n")
    assert process.returncode == 130


def test_a_plan_is_said_to_be_one(tmp_path: Path) -> None:
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "x.bin")
    loader = wr.Loader(wr.open(tmp_path / "x.bin", dtype="uint16").pack(8), 2)
    for indent in (None, 2):
        (tmp_path / "plan.json").write_text(json.dumps(loader.recipe(), indent=indent))
        done = program("inspect", tmp_path / "plan.json")
        assert done.returncode == 1
        assert "a plan of a loader" in done.stderr and "windrow trace" in done.stderr


def test_a_plan_is_the_recipe_of_a_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("web.bin", "cöde.bin"):
        wr.create_dummy_data(100, 1000).tofile(name)
    web, code = (wr.open(name, dtype="uint32", vocab_size=100) for name in ("web.bin", "cöde.bin"))
    shuffle = wr.Blocks(size=32, lanes=4)
    mixed = {"web": (web.pack(8, eos=3), 0.7), "code": (code.pack(8, eos=3), 0.3)}
    opened = ["--dtype", "uint32", "--vocab-size", "100"]
    blocks = ["--shuffle", "blocks:size=32,lanes=4"]
    same = [
        (wr.Loader(web.windows(4, prediction_length=2, stride=3, tail="pad"), batch_size=4, seed=5, rank=0, world_size=2, last="repeat"),
         ["web.bin", "--windows", "4", "--prediction-length", "2", "--stride", "3", "--tail", "pad", "--batch-size", "4", "--world-size", "2", "--seed", "5", "--last", "repeat"]),
        (wr.Loader(code.pack(8, shifted=True), global_batch_size=6, shuffle=False, drop_last=False, rank=0, world_size=1),
         ["cöde.bin", "--pack", "8", "--shifted", "--global-batch-size", "6", "--no-shuffle", "--no-drop-last"]),
        (wr.Loader(web.bins(16, "first_fit"), batch_size=1, seed=3, rank=0, world_size=1),
         ["web.bin", "--bins", "16", "--strategy", "first_fit", "--batch-size", "1", "--seed", "3"]),
        (wr.Loader(wr.mix(mixed, stop="never"), batch_size=4, shuffle=shuffle, rank=0, world_size=1),
         ["--mix", "web=web.bin:0.7", "--mix", "code=cöde.bin:0.3", "--stop", "never", "--pack", "8", "--eos", "3", "--batch-size", "4", *blocks]),
    ]  # fmt: skip
    for number, (loader, options) in enumerate(same):
        ran = program("plan", *opened, *options, "-o", f"{number}.json")
        assert ran.returncode == 0, ran.stderr
        written = Path(f"{number}.json").read_text()
        assert written == json.dumps(loader.recipe(), indent=2, ensure_ascii=False) + "\n"
        assert wr.diff(f"{number}.json", loader)["same"]
