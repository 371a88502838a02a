"""Draws docs/images/: figures of `windrow report` about the real series in testdata/timeseries, as SVG (`make pictures`)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SERIES = ROOT / "testdata" / "timeseries"
FIGURE = re.compile(
    r'<figure><figcaption>(.*?)</figcaption>\s*<svg[^>]* height="([\d.]+)"[^>]*>(.*?)</svg>'
    r'<div class="axis"><span>(.*?)</span><span>(.*?)</span></div></figure>',
    re.DOTALL,
)
WIDTH, MARGIN, LINE = 760, 12, 20


class Figure(NamedTuple):
    """A drawing of a report's page: what it shows, its height and shapes, and what stands below its ends."""

    caption: str
    height: float
    shapes: str
    left: str
    right: str


class Report(NamedTuple):
    """What a page draws, and the colours it has by day and by night."""

    style: str
    figures: list[Figure]

    def named(self, *beginnings: str) -> list[Figure]:
        """The figures whose captions begin so."""
        return [next(figure for figure in self.figures if figure.caption.startswith(begin)) for begin in beginnings]


def report(path: Path, *options: str) -> Report:
    """What `windrow report` draws of the data at a path."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        command = [sys.executable, "-m", "windrow", "report", str(path), "--out", str(page), "--quiet", *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        html = page.read_text(encoding="utf-8")
    # What makes drawings as wide as a page does not hold for a picture.
    style = html.split("<style>")[1].split("</style>")[0].replace("svg{display:block;width:100%}", "")
    figures = [Figure(caption, float(height), *rest) for caption, height, *rest in FIGURE.findall(html)]
    return Report(style, figures)


def picture(style: str, figures: list[Figure]) -> str:
    """Figures one below the other, as one SVG."""
    parts, top = [], MARGIN
    inner = WIDTH - 2 * MARGIN
    for caption, height, shapes, left, right in figures:
        below = top + LINE + height + LINE - 5
        parts += [
            f'<text x="{MARGIN}" y="{top + 12}">{caption}</text>',
            f'<svg x="{MARGIN}" y="{top + LINE}" width="{inner}" height="{height:g}" viewBox="0 0 1000 {height:g}" '
            f'preserveAspectRatio="none">{shapes}</svg>',
            f'<text x="{MARGIN}" y="{below:g}">{left}</text>',
            f'<text x="{WIDTH - MARGIN}" y="{below:g}" text-anchor="end">{right}</text>',
        ]
        top = round(below) + MARGIN
    style += "text{font:13px system-ui,sans-serif;fill:var(--soft)}.back{fill:var(--back)}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}">'
    back = f'<rect class="back" width="{WIDTH}" height="{top}"/>'
    return "\n".join([head, f"<style>{style}</style>", back, *parts, "</svg>"]) + "\n"


def with_nan(path: Path, out: Path) -> Path:
    """JSON lines whose missing values are written NaN instead of null."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        values = [float("nan") if value is None else value for value in record["sequence"]]
        lines.append(json.dumps({**record, "sequence": values}) + "\n")
    out.write_text("".join(lines), encoding="utf-8")
    return out


def draw(folder: Path) -> None:
    """Writes every picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    series = report(SERIES / "bin_f32", "--windows", "24,6,12", "--scaler", "zero")
    with tempfile.TemporaryDirectory() as scratch:
        gaps = with_nan(SERIES / "series_with_gaps.jsonl", Path(scratch, "co2_weekly.jsonl"))
        missing = report(gaps, "--windows", "208,52,260", "--scaler", "zero", "--nan", "mask")
    dropped, kept = (report(SERIES / "bin_f32", "--windows", "96,24", "--tail", tail) for tail in ("drop", "pad"))
    records = [figure.caption.split(":")[0] for figure in series.figures if figure.caption.startswith("record ")]
    pictures = {
        "gallery": (series.style, series.named(*records[:3])),
        "windows": (series.style, series.named(records[-1])),
        "coverage": (series.style, [dropped.figures[-1], kept.figures[-1]]),
        "scalers": (series.style, series.named("numbers by value", "scaled numbers by value")),
        "missing": (missing.style, missing.named("record 0")),
    }
    for name, (style, figures) in pictures.items():
        (folder / f"{name}.svg").write_text(picture(style, figures), encoding="utf-8")


if __name__ == "__main__":
    draw(ROOT / "docs" / "images")
