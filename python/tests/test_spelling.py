"""The texts of errors name options as who reads them types them: in Python as arguments, in the command as its options."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr
from windrow import _native


def series(folder: Path) -> Path:
    path = folder / "series.jsonl"
    path.write_text("[1.0, 2.0, 3.0, 4.5, 6.0]\n[2.0, 3.0, 1.5]\n")
    return path


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(wr.WindrowError) as error:
        call()
    return str(error.value)


def test_python_names_arguments(tmp_path: Path) -> None:
    path = series(tmp_path)
    data = wr.open(path)
    np.save(tmp_path / "tc.npy", np.zeros((100, 3), "float32"))
    for call, said in [
        (lambda: wr.Loader(data.segments(4), 2, shuffle=wr.Blocks()), "choose shuffle=True, or a view"),
        (lambda: wr.Loader(data.bins(8), 2, shuffle=wr.Blocks()), 'bins with scope="block" put neighbours together'),
        (lambda: wr.Loader(data.windows(2), 100), "with drop_last there would never be one\n  hint: choose a smaller batch size, or drop_last=False"),
        (lambda: data.windows(4, loss_on="prediction"), 'loss_on="prediction" with prediction_length=0'),
        (lambda: data.windows(4, stride=2, starts="last"), 'leave stride= out, or starts="last"'),
        (lambda: data.windows(4, scaler="max", fit=(0.0, 2.0)), "fit=(0.0, 2.0) is not a part of a record"),
        (lambda: data.windows(2, freq="h"), 'freq="h" without a field that has times'),
        (lambda: data.segments(4, scaler="max", per="window"), 'per="window" of a view that has no windows'),
        (lambda: wr.open(path, verify_checksums=True), 'verify_checksums=True, but no block checksums were kept'),
        (lambda: wr.open(tmp_path / "tc.npy", column="x"), "column was given, but npy has no columns"),
        (lambda: wr.open([path, tmp_path / "tc.npy"]), "mix their views: wr.mix"),
        (lambda: wr.convert(data, path, to="npy"), "overwrite=True"),
        (lambda: wr.convert(data, tmp_path / "x", to="npy", dtype="int32"), 'choose dtype="float32"'),
    ]:
        text = refused(call)
        assert said in text and "--" not in "".join(text.split("`")[::2]) and "@" not in text, text


def test_the_command_within_python_names_its_options(tmp_path: Path) -> None:
    path = series(tmp_path)
    line = ["bench", str(path), "--segments", "4", "--scaler", "max", "--per", "window"]
    ran = subprocess.run([sys.executable, "-m", "windrow", *line], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "error: --per window of a view that has no windows\n  at: --per\n" in ran.stderr, ran.stderr
    # And Python's are as they were.
    assert _native._main(["windrow", *line]) == 2
    assert 'per="window"' in refused(lambda: wr.open(path).segments(4, scaler="max", per="window"))
