"""Runs in an environment that has only the wheel: every command, every module, a loader that is stopped and continues.

`python -I smoke.py TESTDATA`, in an empty folder.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import windrow as wr

PROGRAM = str(Path(sysconfig.get_path("scripts")) / "windrow")
# What some modules are about; a wheel brings none of them.
OTHERS = {"torch", "jax", "ray", "distributed", "dask"}
COMMANDS = """
demo -q
inspect windrow-demo/tokens
peek windrow-demo/corpus -n 1
report windrow-demo/tokens -o tokens.html --pack 256
index windrow-demo/corpus
tokenize windrow-demo/corpus --tokenizer gpt2 --out gpt2 --sample-size 1024
prep plan tokenize windrow-demo/corpus --tokenizer bytes --out parts --task-bytes 500000
prep run JOB
prep status JOB
prep merge JOB
prep join JOB --out joined
prep clean JOB
convert windrow-demo/tokens shards --to shards
encode sound --out encoded --weights small.pth
rebuild-metadata encoded --prompts audio_prompts
manifest plain
verify windrow-demo/tokens
trace windrow-demo/plan.json --step 10 --row 0
diff windrow-demo/plan.json windrow-demo/plan.json
coverage windrow-demo/plan.json --steps 10..12
extract windrow-demo/plan.json --step 10 -o batch.npz
bench windrow-demo/tokens --pack 256 --seconds 0.2
cache
download --help
dummy --vocab-size 50257 --tokens 1000 --out random.bin
completions bash
man tokenize
""".strip().splitlines()


def windrow(*words: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"windrow {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def all_commands() -> None:
    """Each command that the help names."""
    job = ""
    for command in COMMANDS:
        words = [job if word == "JOB" else word for word in command.split()]
        printed = windrow(*words)
        if words[:2] == ["prep", "plan"]:
            job = printed.split()[0]
    named = set(re.findall(r"^  ([a-z-]+) ", windrow("--help").partition("Commands:")[2].partition("Options:")[0], re.MULTILINE))
    assert named - {"help"} == {command.split()[0] for command in COMMANDS}, named
    with np.load("batch.npz") as batch:
        assert batch["input_ids"].shape[1] == 256


def all_modules() -> None:
    """Each module is imported, or says which package it is for."""
    for module in pkgutil.walk_packages(wr.__path__, "windrow."):
        if module.name != "windrow.__main__":
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                assert error.name in OTHERS, f"{module.name}: {error}"


def a_loader() -> None:
    """Shuffled batches, and the same ones after a state."""
    view = wr.open("windrow-demo/tokens").pack(128)
    loader = wr.Loader(view, batch_size=4, seed=1)
    next(loader)
    state = json.loads(json.dumps(loader.state_dict()))
    expected = next(loader)["input_ids"]
    again = wr.Loader(view, batch_size=4, seed=1)
    again.load_state_dict(state)
    assert np.array_equal(next(again)["input_ids"], expected)


def what_is_installed() -> None:
    """Manual pages, completions, licences, types."""
    share = Path(sys.prefix) / "share"
    for path in ("man/man1/windrow-prep-plan.1", "bash-completion/completions/windrow", "fish/vendor_completions.d/windrow.fish"):
        assert (share / path).stat().st_size > 500, path
    package = Path(wr.__file__).parent
    assert (package / "py.typed").is_file() and (package / "_native.pyi").is_file()
    [info] = package.parent.glob("windrow-*.dist-info")
    licences = {path.name for path in (info / "licenses").rglob("*") if path.is_file()}
    assert {"LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.md"} <= licences, licences
    assert list((info / "sboms").glob("*.json")), "no SBOM"


def import_time() -> float:
    """Milliseconds that `import windrow` takes after numpy, the least of several."""
    code = "import time, numpy; start = time.perf_counter(); import windrow; print(1000 * (time.perf_counter() - start))"
    return min(float(subprocess.check_output([sys.executable, "-I", "-c", code])) for _ in range(7))


def main(testdata: Path) -> None:
    """Everything; says how long it took."""
    start = time.monotonic()
    # Data that has no manifest.
    Path("plain").mkdir()
    (Path("plain") / "texts.jsonl").write_text('{"text": "a"}\n')
    Path("sound").mkdir()
    for clip in (testdata / "audio").glob("cards_00?.*"):
        shutil.copy(clip, "sound")
    shutil.copytree(testdata / "audio_prompts", "audio_prompts")
    shutil.copy(testdata / "dac" / "small.pth", "small.pth")
    what_is_installed()
    all_commands()
    all_modules()
    a_loader()
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {python}: {len(COMMANDS)} commands, import {import_time():.0f} ms, {time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
