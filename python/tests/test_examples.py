"""The examples run as they stand."""

import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def test_a_gpt_that_stops_and_resumes_has_the_same_losses(tmp_path):
    run = subprocess.run(
        [sys.executable, EXAMPLES / "train_gpt.py", "--steps", "8", "--length", "32", "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert "8 losses equal to the last bit" in run.stdout
    assert '"samples": 32' in run.stdout or "'samples': 32" in run.stdout


def test_conversations_are_learned_from_and_a_stopped_run_has_the_same_losses():
    run = subprocess.run([sys.executable, EXAMPLES / "train_sft.py", "--steps", "8"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "8 losses equal to the last bit" in run.stdout


def test_a_codec_model_that_stops_and_resumes_has_the_same_losses(tmp_path):
    run = subprocess.run(
        [sys.executable, EXAMPLES / "train_codes.py", "--steps", "6", "--frames", "24", "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert "6 losses equal to the last bit" in run.stdout
    assert "5 tracks, " in run.stdout


def test_torchrun_stops_and_resumes_on_other_nodes_with_the_same_losses(tmp_path):
    run = subprocess.run(
        [sys.executable, EXAMPLES / "train_ddp.py", "--steps", "6", "--out", tmp_path], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "6 losses equal" in run.stdout
    for ranks, samples in ((1, 144), (4, 48), (4, 96), (3, 144)):
        for rank in range(ranks):
            assert f"rank {rank} of {ranks}: {24 // ranks} of 24 rows a step, {samples} samples so far" in run.stdout


def test_jax_processes_stop_and_resume_in_one_with_the_same_losses(tmp_path):
    run = subprocess.run(
        [sys.executable, EXAMPLES / "train_jax.py", "--steps", "6", "--out", tmp_path], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "6 losses equal" in run.stdout
    for process in range(2):
        assert f"process {process} of 2: 12 of 24 rows a step, 72 samples so far" in run.stdout
    assert run.stdout.count("process 0 of 1: 24 of 24 rows a step, 144 samples so far") == 2


def test_adapters_for_trainers_are_short():
    """`make test-trainers` runs them."""
    lengths = {path.name: len(path.read_text().splitlines()) for path in (EXAMPLES / "trainers").glob("*.py")}
    assert lengths and max(lengths.values()) <= 60, lengths
