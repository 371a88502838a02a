"""The fuzz targets of fuzz/, each for its share of the time: bytes that crash, hang or fill the memory are searched for by coverage.

`make torture` builds them, as fuzz/README.md says. The inputs that reach something new stay in fuzz/corpus, so that a
later run goes further; what is found is in fuzz/artifacts/<target>.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tally import Part

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"
# One row for all: which target it was is in the finding.
ROW = "inputs searched by coverage"
# libFuzzer's names of what it found, and ours.
FOUND = {"timeout": "hung", "oom": "wrong", "crash": "wrong", "leak": "wrong"}
# In a target's slice of the time there are several slices, so that all are tried when there is little.
MOST_SLICE_SECS = 60
SLACK_SECS = 60


def torture(part: Part) -> None:
    binaries = built()
    if not binaries:
        raise RuntimeError("no fuzz target is built: `make torture` builds them")
    names = sorted(binaries)
    part.random.shuffle(names)
    until = time.monotonic() + part.left()
    slice_secs = max(2.0, min(MOST_SLICE_SECS, (until - time.monotonic()) / len(names)))
    for name in itertools.cycle(names):
        if (left := until - time.monotonic()) < 2:
            break
        fuzz(part, name, binaries[name], int(min(slice_secs, left)))


def built() -> dict[str, Path]:
    """The targets' programs, by cargo or by cargo-fuzz."""
    found: dict[str, Path] = {}
    for source in (FUZZ / "fuzz_targets").glob("*.rs"):
        programs = [path for path in FUZZ.glob(f"target/*/release/{source.stem}") if os.access(path, os.X_OK)]
        if programs:
            found[source.stem] = max(programs, key=lambda path: path.stat().st_mtime)
    return found


def fuzz(part: Part, name: str, program: Path, seconds: int) -> None:
    """One target for a while, with what was found before."""
    corpus, seeds = FUZZ / "corpus" / name, FUZZ / "seeds" / name
    corpus.mkdir(parents=True, exist_ok=True)
    kept = FUZZ / "artifacts" / name
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        new = Path(scratch) / "artifacts"
        new.mkdir()
        command = [str(program), str(corpus), *([str(seeds)] if seeds.is_dir() else []), f"-max_total_time={seconds}", "-max_len=65536"]
        command += [
            "-timeout=10",
            "-rss_limit_mb=2048",
            "-detect_leaks=0",
            "-print_final_stats=1",
            f"-seed={part.random.randrange(1, 1 << 31)}",
        ]
        command += [f"-artifact_prefix={new}/", *dictionary(name)]
        environment = {**os.environ, "TMPDIR": scratch, "WINDROW_CACHE": f"{scratch}/cache"}
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, start_new_session=True, cwd=scratch
        )
        try:
            _, said = process.communicate(timeout=seconds + SLACK_SECS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            part.found(ROW, "hung", f"{' '.join(command)}: did not end {SLACK_SECS} s after its time")
            return
        text = said.decode(errors="replace")
        part.tried(ROW, executions(text))
        for artefact in sorted(new.iterdir()):
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy2(artefact, kept)
            what = FOUND.get(artefact.name.partition("-")[0])
            if what:
                part.found(ROW, what, f"{program} {kept / artefact.name}: {reason(text)}")
        if process.returncode and not any(new.iterdir()):
            part.found(ROW, "wrong", f"{name} ended with {process.returncode}: {text[-600:]}")


def dictionary(name: str) -> list[str]:
    """The target's own words, or those of its language."""
    of = {
        "open_jsonl": "json",
        "json_array": "json",
        "open_forager": "index",
        "verify": "index",
        "index": "index",
        "side_file": "side_file",
        "state": "state",
    }.get(name)
    return [f"-dict={FUZZ / 'dictionaries' / of}.dict"] if of else []


def executions(text: str) -> int:
    """How many inputs were tried: the sum at the end, or the last number that was printed before a crash."""
    if found := re.search(r"stat::number_of_executed_units:\s+(\d+)", text):
        return int(found[1])
    numbers = re.findall(r"^#(\d+)\s", text, re.MULTILINE)
    return int(numbers[-1]) if numbers else 0


def reason(text: str) -> str:
    """The line of a panic, else the fuzzer's own."""
    for sought in (r"panicked at .*\n.*", r"ERROR: libFuzzer: .*", r"SUMMARY: .*"):
        if found := re.search(sought, text):
            return found[0].replace("\n", " ")[:400]
    return text[-300:]
