"""Writes what a wheel installs beside the package: manual pages and completions, as the program prints them.

They go to `windrow.data/`, which maturin puts into the wheel, and pip into `share/` of the environment.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

SHARE = Path(__file__).resolve().parents[1] / "windrow.data" / "data" / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/windrow",
    "fish": "fish/vendor_completions.d/windrow.fish",
    "zsh": "zsh/site-functions/_windrow",
}


def printed(*words: str) -> str:
    """What the program prints."""
    return subprocess.run([sys.executable, "-m", "windrow", *words], check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Writes them again."""
    files = {f"man/man1/{name}": page for name, page in json.loads(printed("man", "--json"))["pages"].items()}
    files |= {path: printed("completions", shell) for shell, path in COMPLETIONS.items()}
    for folder in {path.split("/")[0] for path in files}:
        shutil.rmtree(SHARE / folder, ignore_errors=True)
    for path, text in files.items():
        (SHARE / path).parent.mkdir(parents=True, exist_ok=True)
        (SHARE / path).write_text(text)
    print(f"{len(files)} files in {SHARE.parents[1].name}/")


if __name__ == "__main__":
    main()
