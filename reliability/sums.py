"""The sums of all runs of the torture, as the table in docs/reliability.md.

    python reliability/sums.py        # writes it there again
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tally import WRONGS

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "reliability.md"
BETWEEN = re.compile(r"(?<=<!-- sums -->\n).*?(?=<!-- /sums -->)", re.DOTALL)


def read(folder: Path = HERE / "runs") -> list[dict[str, Any]]:
    """All runs, the oldest first."""
    return [run for path in sorted(folder.glob("*.json")) for run in json.loads(path.read_text())]


def table(runs: list[dict[str, Any]]) -> str:
    """What all runs tried and found, in Markdown; of times the worst run's."""
    rows: dict[str, dict[str, float]] = {}
    for run in runs:
        for name, counts in run["rows"].items():
            row = rows.setdefault(name, dict.fromkeys(("tried", *WRONGS), 0))
            for key in ("tried", *WRONGS):
                row[key] += counts[key]
            if "p99_ms" in counts:
                row["p99_ms"] = max(row.get("p99_ms", 0), counts["p99_ms"])
    total = {key: sum(row[key] for row in rows.values()) for key in ("tried", *WRONGS)}
    lines = [
        "| part: case | tried | " + " | ".join(WRONGS) + " | 99 % within |",
        "|---|" + "--:|" * (len(WRONGS) + 2),
        *(_line(name, rows[name]) for name in sorted(rows)),
        _line("**all**", total),
    ]
    hours = sum(run["budget_s"] * run["cores"] for run in runs) / 3600
    days = sorted({run["date"][:10] for run in runs})
    about = f"{len(runs)} runs, {days[0]} to {days[-1]}, {hours:.1f} hours of one core in all.\n" if runs else "No run yet.\n"
    return "\n".join([*lines, "", about])


def _line(name: str, row: dict[str, float]) -> str:
    time = f"{row['p99_ms']:,.0f} ms" if "p99_ms" in row else ""
    return f"| {name} | {row['tried']:,} | " + " | ".join(f"{row[key]:,}" for key in WRONGS) + f" | {time} |"


def write(page: Path = PAGE) -> None:
    """Puts the table into the page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(BETWEEN.sub(lambda _: table(read()), text), encoding="utf-8")


if __name__ == "__main__":
    write()
