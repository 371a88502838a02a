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
