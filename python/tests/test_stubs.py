"""Types and documentation: the stubs agree with the module, users' code checks, and every example runs."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import windrow as wr

SAMPLE = """
from typing import Any
import numpy as np
import numpy.typing as npt
import windrow as wr

ds: wr.Dataset = wr.open("corpus", format="tokens", dtype=np.uint16, vocab_size=100)
n: int = len(ds)
record: npt.NDArray[np.uint16] = ds[0]
some: list[Any] = ds[2:10:2] + ds[[5, 1]] + ds[np.array([1])]
view: wr.View = ds.pack(1024, eos=0, dtype="int32")
sample: dict[str, npt.NDArray[Any]] = view[np.int64(3)]
windows = ds.windows(context_length=8, prediction_length=2, stride=4, tail="pad")
mix: wr.Mix = wr.mix({"a": (view, 0.7), "b": (windows, 0.3)}, stop="all")
loader = wr.Loader(mix, global_batch_size=32, framework="torch", seed=1, epochs=2)
for batch in loader:
    batch["labels"]
state: dict[str, int | str] = loader.state_dict()
loader.load_state_dict(state)
report: dict[str, Any] = wr.tokenize(["a.jsonl"], "out", tokenizer=lambda text: [1, 2], eos=None)
job: str = wr.prep.plan("tokenize", ["a.jsonl"], "out", tokenizer="gpt2", task_bytes="1GiB")
wr.prep.run(job, "slurm", workers=4, progress=True)
wr.prep.run(job, lambda job, tasks: [wr.prep.run_task(job, task) for task in tasks])
try:
    wr.open("nope")
except wr.NotFoundError as e:
    hint: str | None = e.hint
"""

WRONG = """
import windrow as wr

ds = wr.open("corpus", form="tokens")
ds.pack("1024")
wr.Loader(ds, 32)
ds.windows(8, tail="cut")
wr.tokenize("a", "b")
wr.prep.run("a", "rey")
"""


@pytest.fixture
def without_others(tmp_path: Path) -> Path:
    """What mypy is told: the code of torch and jax takes a minute to be read, and nothing here is of their types."""
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-torch.*,jax.*]\nfollow_imports = skip\n")
    return config


def test_users_code_checks_under_strict_and_mistakes_are_found(tmp_path: Path, without_others: Path) -> None:
    # Both at once: most of the time goes into the packages that they import.
    files = {"sample": SAMPLE, "wrong": WRONG}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    command: list[str | Path] = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file", without_others]
    command += [tmp_path / f"{name}.py" for name in files]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout.splitlines()
    errors = [line.split(":") for line in found if ": error:" in line]
    assert {(Path(path).stem, line) for path, line, *_ in errors} == {("wrong", str(line)) for line in range(4, 10)}, found


def test_the_stubs_agree_with_the_module(without_others: Path) -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "windrow._native", "windrow.errors", "--ignore-disjoint-bases"]
    command += ["--mypy-config-file", str(without_others)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def documented() -> list[tuple[str, Any]]:
    found = [("windrow", wr)]
    found += [("prep", wr.prep), *((f"prep.{name}", getattr(wr.prep, name)) for name in wr.prep.__all__)]
    for name in wr.__all__:
        thing = getattr(wr, name)
        if inspect.isclass(thing):
            # What a plain text is, its class says.
            found += [(f"{name}.{n}", m) for n, m in vars(thing).items() if not (n.startswith("_") or isinstance(m, (str, type(None))))]
        if not isinstance(thing, str):
            found.append((name, thing))
    # In the same order in every process.
    return sorted(found, key=lambda one: one[0])


@pytest.mark.parametrize(("name", "thing"), documented(), ids=[name for name, _ in documented()])
def test_everything_is_documented_and_its_examples_run(name: str, thing: Any) -> None:
    assert thing.__doc__, f"{name} has no docstring"
    example = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, None, 0)
    # What is only looked at needs none, nor what an error is called; a codec has to be given weights.
    is_error = inspect.isclass(thing) and issubclass(thing, Exception)
    needs_weights = name == "encode" or name.startswith("Codec")
    assert example.examples or not callable(thing) or is_error or needs_weights, f"{name} shows no example"
    result = doctest.DocTestRunner(verbose=False).run(example)
    assert result.failed == 0


def test_formats_that_are_written_are_those_of_the_stubs(tmp_path: Path) -> None:
    with pytest.raises(wr.ConfigError) as caught:
        wr.write(tmp_path / "out", [[1]], to="nothing")
    names = caught.value.hint.removeprefix("formats that are written: ").split(", ")
    written = {{"series-jsonl": "jsonl"}.get(name, name) for name in names}
    stubs = (Path(wr.__file__).parent / "_native.pyi").read_text()
    (literal,) = re.findall(r"_Format: TypeAlias = Literal\[(.*)\]", stubs)
    assert set(re.findall(r'"([^"]+)"', literal)) == written
