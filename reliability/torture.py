"""Torture: everything that can happen to data, as often as the time allows, counted.

    make torture BUDGET=600                                  # every part, ten minutes
    python reliability/torture.py --budget 60 kills flips    # some of them

Each part is a file of this folder with `torture(part)`; parts run side by side, one for each core, each in a process of
its own and in an empty folder. The table says how many cases were tried and in how many of them data was lost, was other
data, or was taken in silence, or where something hung, or something from a file was executed; then the 99th percentile of
what was timed. It is added to reliability/runs/<date>.json, whose sums are in docs/reliability.md. Anything that is found
ends the run with 1, and its line says how to see it again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RUNS = HERE / "runs"

# Each part, and its share of the time.
SHARES = {
    "kills": 4,
    "errors": 3,
    "power": 3,
    "flips": 3,
    "resumes": 3,
    "hostile": 3,
    "stores": 3,
    "forks": 2,
    "interrupts": 2,
    "fuzzing": 4,
}
# How much longer than its time a part may take before it counts as hung.
GRACE = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(SHARES)}; all where none is named")
    parser.add_argument("--budget", type=float, default=600, help="seconds in all, on all cores (600)")
    parser.add_argument("--seed", type=int, default=None, help="the cases of an earlier run; drawn where none is given")
    parser.add_argument("--report", type=Path, default=RUNS, help="the folder that the run is added to")
    parser.add_argument("--alone", nargs=2, metavar=("SECONDS", "REPORT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if unknown := [name for name in args.parts if name not in SHARES]:
        parser.error(f"no part is named {', '.join(unknown)}; there are {', '.join(SHARES)}")
    seed = args.seed if args.seed is not None else int.from_bytes(os.urandom(4))
    if args.alone:
        return alone(args.parts[0], float(args.alone[0]), seed, Path(args.alone[1]))
    names = args.parts or list(SHARES)
    run = {
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "windrow": version(),
        "budget_s": args.budget,
        "cores": cores(names),
        "seed": seed,
        **together(names, args.budget, seed),
    }
    print(table(run["rows"]))
    print(f"seed {seed}")
    add(run, args.report)
    if args.report == RUNS:
        importlib.import_module("sums").write()
    if run["findings"]:
        print("\n".join(["", *run["findings"]]))
        sys.exit(1)


def alone(name: str, seconds: float, seed: int, report: Path) -> None:
    """One part, in this process."""
    from tally import Part

    with tempfile.TemporaryDirectory(prefix=f"windrow-{name}-", ignore_cleanup_errors=True) as folder:
        os.environ["WINDROW_CACHE"] = f"{folder}/cache"
        work = Path(folder) / "work"
        work.mkdir()
        part = Part(work, seconds, seed)
        try:
            importlib.import_module(name).torture(part)
        finally:
            part.save(report)


def cores(names: list[str]) -> int:
    """Parts that run at a time."""
    return min(os.cpu_count() or 1, len(names))


def together(names: list[str], budget: float, seed: int) -> dict[str, Any]:
    """All parts, as many at a time as there are cores; each has its share of the time of all cores."""
    shares = sum(SHARES[name] for name in names)
    rows: dict[str, Any] = {}
    findings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="windrow-torture-") as folder, concurrent.futures.ThreadPoolExecutor(cores(names)) as pool:

        def run(name: str) -> tuple[str, int | None, str]:
            seconds = budget * cores(names) * SHARES[name] / shares
            command = [sys.executable, __file__, name, "--seed", str(seed), "--alone", str(seconds), f"{folder}/{name}.json"]
            with open(f"{folder}/{name}.log", "w+") as log:
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
                try:
                    code = process.wait(seconds + GRACE)
                except subprocess.TimeoutExpired:
                    code = None
                finally:
                    # What it started ends with it.
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                    process.wait()
                log.seek(0)
                return name, code, log.read()

        # The longest first, so that none is left alone at the end.
        for name, code, log in pool.map(run, sorted(names, key=SHARES.__getitem__, reverse=True)):
            report = Path(folder) / f"{name}.json"
            found = json.loads(report.read_text()) if report.exists() else {"rows": {}, "findings": []}
            rows |= {f"{name}: {row}": counts for row, counts in found["rows"].items()}
            findings += [f"{name}: {line}" for line in found["findings"]]
            if code != 0:
                how = "did not end" if code is None else f"ended with {code}"
                findings.append(f"{name}: the part itself {how}:\n{log[-3000:]}")
            print(f"{name}: {sum(counts['tried'] for counts in found['rows'].values()):,} cases", flush=True)
    return {"rows": rows, "findings": findings}


def table(rows: dict[str, dict[str, float]]) -> str:
    """The rows as people read them."""
    from tally import WRONGS

    heads = ["tried", *WRONGS, "p99 ms"]
    width = max([len(name) for name in rows], default=0)
    lines = [" " * width + "".join(f"{head:>10}" for head in heads)]
    total: dict[str, float] = dict.fromkeys(heads[:-1], 0)
    for name, counts in sorted(rows.items()):
        cells = [f"{counts[head]:,}" for head in heads[:-1]] + [f"{counts['p99_ms']:,}" if "p99_ms" in counts else ""]
        lines.append(f"{name:{width}}" + "".join(f"{cell:>10}" for cell in cells))
        total = {head: total[head] + counts[head] for head in total}
    lines.append(f"{'all':{width}}" + "".join(f"{total[head]:>10,}" for head in total))
    return "\n".join(lines)


def add(run: dict[str, Any], folder: Path) -> None:
    """Adds the run to those of its day; a file is replaced whole."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run['date'][:10]}.json"
    runs = json.loads(path.read_text()) if path.exists() else []
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps([*runs, run], indent=1) + "\n")
    shutil.move(draft, path)
    print(f"added to {path}")


def version() -> str:
    import windrow

    return windrow.__version__


if __name__ == "__main__":
    main()
