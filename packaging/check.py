"""Checks a wheel: its size, what it needs of a Linux, and that it works in a new environment of each Python there is.

`python packaging/check.py WHEEL`
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

TESTDATA = Path(__file__).resolve().parents[1] / "testdata"
OLDEST = (3, 10)
MOST_BYTES = 23_000_000
VERSION = "import sys, sysconfig; print(*sys.version_info[:2], bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"


def pythons() -> Iterator[str]:
    """Interpreters in PATH and pyenv's, one of each version that the wheel is for."""
    folders = [*os.environ["PATH"].split(os.pathsep), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    seen = set()
    for folder in folders:
        for path in sorted(Path(folder).glob("python3*")):
            if not re.fullmatch(r"python3(\.\d+t?)?", path.name):
                continue
            asked = subprocess.run([path, "-c", VERSION], capture_output=True, text=True, check=False)
            if asked.returncode == 0:
                major, minor, is_free_threaded = asked.stdout.split()
                version = (int(major), int(minor))
                # The stable ABI has no free-threaded Python.
                if version >= OLDEST and is_free_threaded == "False" and version not in seen:
                    seen.add(version)
                    yield str(path)


def check_size(wheel: Path) -> None:
    """Below what a download should be."""
    size = wheel.stat().st_size
    unpacked = sum(file.file_size for file in zipfile.ZipFile(wheel).infolist())
    print(f"{wheel.name}: {size / 1e6:.1f} MB, {unpacked / 1e6:.1f} MB installed")
    assert size <= MOST_BYTES, f"larger than {MOST_BYTES / 1e6:.0f} MB"


def try_in(python: str, wheel: Path) -> None:
    """Installs the wheel into a new environment and runs smoke.py there, without Rust in PATH."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run([python, "-m", "venv", place / "venv"], check=True)
        within = place / "venv" / "bin" / "python"
        subprocess.run([within, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
        (place / "empty").mkdir()
        environment = {
            "PATH": f"{within.parent}:/usr/bin:/bin",
            "HOME": folder,
            "WINDROW_CACHE": str(place / "cache"),
            "LANG": "C.UTF-8",
        }
        subprocess.run([within, "-I", Path(__file__).with_name("smoke.py"), TESTDATA], cwd=place / "empty", env=environment, check=True)


def main(wheel: Path) -> None:
    """All of it, or the first error."""
    check_size(wheel)
    subprocess.run([shutil.which("auditwheel", path=str(Path(sys.executable).parent)) or "auditwheel", "show", wheel], check=True)
    tried = [try_in(python, wheel) for python in pythons()]
    assert tried, f"no Python {'.'.join(map(str, OLDEST))} or later is here"


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
