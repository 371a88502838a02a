"""Makes docs/gallery/: a page of `windrow report` about each kind of data, out of testdata/ (`make pictures`)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "testdata"


def windrow(*arguments: str | Path, folder: Path) -> None:
    """Runs the command line program in a folder."""
    subprocess.run([sys.executable, "-m", "windrow", *map(str, arguments), "--quiet"], check=True, cwd=folder, stdout=subprocess.DEVNULL)


def draw(folder: Path) -> None:
    """Writes every page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        # Pages say where their data lies: here always the same.
        work = Path(scratch)
        shutil.copy(DATA / "demo" / "corpus.jsonl", work)
        shutil.copytree(DATA / "timeseries" / "bin_f32", work / "series")
        (work / "sound").mkdir()
        for name in ("cards_003.mp3", "cards_005.ogg"):
            shutil.copy(DATA / "audio" / name, work / "sound")
        windrow("tokenize", "corpus.jsonl", "--tokenizer", "gpt2", "--append-eos", "--out", "tokens", folder=work)
        weights = DATA / "dac" / "small.safetensors"
        windrow("encode", "sound", "--weights", weights, "--prompts", DATA / "audio_prompts", "--out", "codes", folder=work)
        pages: dict[str, tuple[str, ...]] = {
            "text": ("corpus.jsonl", "--rows"),
            "tokens": ("tokens", "--pack", "256"),
            "series": ("series", "--windows", "24", "--prediction-length", "6", "--stride", "12", "--scaler", "zero"),
            "sound": ("sound", "--sound"),
            "codes": ("codes", "--length", "100"),
        }
        for name, arguments in pages.items():
            windrow("report", *arguments, "--out", folder.resolve() / f"{name}.html", "--overwrite", folder=work)


if __name__ == "__main__":
    draw(ROOT / "docs" / "gallery")
