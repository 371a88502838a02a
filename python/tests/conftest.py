"""Small data, made again for each test, and a way to run a script in a process of its own under a hard time limit."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Several processes run tests at the same time. With a thread of OpenMP for each core in each of them, most of the time of all
# is spent spinning, in wait for one that does not run. Read when numpy and torch are imported, here and by the programs run.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

import windrow as wr

ROOT = Path(__file__).parents[2]
# The torture's modules, which some tests call.
sys.path.append(str(ROOT / "reliability"))
# `make test-engines`, `make test-notebooks` and `make test-trainers` install what these files need.
NEEDED = {"test_engines.py": "ray", "test_notebooks.py": "nbclient"}
NEEDED |= {path.name: "torchtitan" for path in Path(__file__).parent.glob("test_trainer_*.py")}
collect_ignore = [file for file, package in NEEDED.items() if not importlib.util.find_spec(package)]


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What examples and launchers leave in the system's temporary folder goes when pytest's own does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("t")))
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture
def testdata() -> Path:
    """The data that lies in the repository."""
    return ROOT / "testdata"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """A headerless uint16 file of the numbers 0..20000: each value says where it stood."""
    path = tmp_path / "tokens.bin"
    np.arange(20_000, dtype=np.uint16).tofile(path)
    return path


@pytest.fixture
def dataset(tokens: Path) -> wr.Dataset:
    """The numbers 0..20000 as one record."""
    return wr.open(tokens, format="tokens", dtype="uint16")


@pytest.fixture
def view(dataset: wr.Dataset) -> wr.View:
    """Samples of 16 inputs: sample i starts with the token 16 * i."""
    return dataset.pack(16)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Token records of 0, 1, 2, … 59 values; value j of record i is i + j."""
    source = tmp_path / "documents.jsonl"
    source.write_text("".join(f'{{"text": "{i}"}}\n' for i in range(60)))
    wr.tokenize(
        source,
        tmp_path / "documents",
        tokenizer=lambda text: list(range(int(text), 2 * int(text))),
        eos=None,
        vocab_size=200,
    )
    return tmp_path / "documents"


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., str]:
    """Runs Python code in a new process; fails when it does, and when it takes longer than the limit. Gives its stdout."""

    def run(code: str, *arguments: object, limit: float = 60) -> str:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(code))
        command = [sys.executable, str(script), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


# A suite started in the background inherits an ignored Ctrl-C, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program that ends with the block, however that ends: a time-out must fail a test, not wait on."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
