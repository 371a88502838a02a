"""Draws docs/images/ as SVG (`make pictures`): figures of `windrow report` about the real series in testdata/timeseries and
about a plan, and what README.md shows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from html import escape
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


def reshuffled(folder: Path) -> Report:
    """What a page draws of the demo's corpus, whose documents are joined in another order in each epoch."""
    tokens, plan = folder / "tokens", folder / "plan.json"
    made = ["tokenize", ROOT / "testdata" / "demo" / "corpus.jsonl", "--tokenizer", "cl100k_base", "--append-eos", "--out", tokens]
    packed = ["plan", tokens, *"--pack 256 --reshuffle --batch-size 8 --seed 42 -o".split(), plan]
    for command in (made, packed):
        subprocess.run([sys.executable, "-m", "windrow", *map(str, command), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return report(plan)


def with_nan(path: Path, out: Path) -> Path:
    """JSON lines whose missing values are written NaN instead of null."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        values = [float("nan") if value is None else value for value in record["sequence"]]
        lines.append(json.dumps({**record, "sequence": values}) + "\n")
    out.write_text("".join(lines), encoding="utf-8")
    return out


class Ink(NamedTuple):
    """The colours of a drawing: of text, of less important text, of lines, of the paper, and two that mark."""

    text: str
    soft: str
    line: str
    paper: str
    mark: str
    other: str


# As the pages of reports have them by day and by night.
INKS = {
    "light": Ink("#1c2330", "#667085", "#d9dee7", "#fff", "#2563c9", "#c2571a"),
    "dark": Ink("#e6e9ef", "#98a2b3", "#343b48", "#14181f", "#7aa8f5", "#f0a36b"),
}
READ = [
    "JSONL, Parquet, Arrow",
    "token files: .bin, .npy, .ds",
    "MDS, LitData, WebDataset",
    "time series: CSV, npz, TSF",
    "audio codes with prompts",
]
STAGES = [("open", "by content"), ("slice", "pack, windows …"), ("order", "a permutation"), ("collate", "one copy")]


def words(x: int, y: int, text: str, fill: str, size: int = 12, look: str = "") -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{look}>{escape(text)}</text>'


def box(x: int, y: int, width: int, height: int, edge: str) -> str:
    """A box with round corners."""
    place = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="6"'
    return f'<rect {place} fill="none" stroke="{edge}" stroke-width="1.5"/>'


def arrow(path: str, color: str, head: str) -> str:
    """A line, with the head of this name at its end."""
    end = f' marker-end="url(#{head})"' if head else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.5"{end}/>'


def tensor(x: int, y: int, shift: int, fill: str) -> str:
    """Five rows of seven values; those of another tensor are as many columns later."""
    parts = []
    for row in range(5):
        for column in range(7):
            strength = (1, 0.73, 0.47, 0.87, 0.6, 0.33)[(column + shift + 2 * row) % 6]
            place = f'x="{x + 12 * column}" y="{y + 14 * row}" width="10" height="12"'
            parts.append(f'<rect {place} fill="{fill}" opacity="{strength}"/>')
    return "".join(parts)


def flow(ink: Ink) -> str:
    """Data that flows in, batches that come out, and the state that a run resumes from."""
    bold, right, middle = ' font-weight="600"', ' text-anchor="end"', ' text-anchor="middle"'
    height = 276
    heads = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{fill}"/></marker>'
        for name, fill in (("mark", ink.mark), ("other", ink.other))
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui,sans-serif">',
        f"<defs>{heads}</defs>",
        f'<rect width="{WIDTH}" height="{height}" fill="{ink.paper}"/>',
        words(12, 24, "files as they are", ink.text, 13, bold),
    ]
    for number, text in enumerate(READ):
        top = 38 + 30 * number
        parts += [box(12, top, 190, 24, ink.line), words(22, top + 17, text, ink.text)]
        head = "mark" if top + 12 == 110 else ""
        parts.append(arrow(f"M204 {top + 12}C224 {top + 12} 222 110 240 110", ink.mark, head))
    parts += [
        words(12, 204, "on disk, S3, GCS, Azure, HTTP, the Hub", ink.soft, 11),
        box(242, 38, 292, 144, ink.mark),
        words(254, 60, "windrow", ink.mark, 15, bold),
    ]
    for number, (name, how) in enumerate(STAGES):
        line = 91 + 25 * number
        parts += [words(254, line, name, ink.text, 13, bold), words(314, line, how, ink.soft)]
    parts += [
        words(522, 116, "batch k", ink.text, 13, right),
        words(522, 134, "= f(data, seed, k)", ink.soft, 12, right),
        arrow("M536 110L564 110", ink.mark, "mark"),
        words(570, 24, "batches", ink.text, 13, bold),
        tensor(570, 44, 0, ink.mark),
        words(570, 132, "input_ids", ink.text),
        tensor(664, 44, 1, ink.mark),
        words(664, 132, "labels", ink.text),
        words(570, 160, "PyTorch · JAX · NumPy · Rust", ink.soft),
        words(570, 178, "any number of ranks", ink.soft),
        arrow("M650 190L650 241L538 241", ink.other, "other"),
        words(662, 238, "stop at", ink.soft),
        words(662, 254, "any step", ink.soft),
        box(242, 222, 292, 38, ink.other),
        words(388, 246, '{"seed": 42, "epoch": 0, "samples": 800}', ink.text, 12, middle),
        arrow("M300 220L300 186", ink.other, "other"),
        words(310, 208, "resume, on another number of machines", ink.soft),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def draw(folder: Path) -> None:
    """Writes every picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, ink in INKS.items():
        (folder / f"flow-{name}.svg").write_text(flow(ink), encoding="utf-8")
    series = report(SERIES / "bin_f32", "--windows", "24", "--prediction-length", "6", "--stride", "12", "--scaler", "zero")
    with tempfile.TemporaryDirectory() as scratch:
        gaps = with_nan(SERIES / "series_with_gaps.jsonl", Path(scratch, "co2_weekly.jsonl"))
        missing = report(gaps, "--windows", "208", "--prediction-length", "52", "--stride", "260", "--scaler", "zero", "--nan", "mask")
        joined = reshuffled(Path(scratch))
    dropped, kept = (report(SERIES / "bin_f32", "--windows", "96", "--prediction-length", "24", "--tail", tail) for tail in ("drop", "pad"))
    records = [figure.caption.split(":")[0] for figure in series.figures if figure.caption.startswith("record ")]
    pictures = {
        "gallery": (series.style, series.named(*records[:3])),
        "windows": (series.style, series.named(records[-1])),
        "coverage": (series.style, [dropped.figures[-1], kept.figures[-1]]),
        "scalers": (series.style, series.named("numbers by value", "scaled numbers by value")),
        "missing": (missing.style, missing.named("record 0")),
        "neighbours": (joined.style, joined.named("documents that")),
    }
    for name, (style, figures) in pictures.items():
        (folder / f"{name}.svg").write_text(picture(style, figures), encoding="utf-8")


if __name__ == "__main__":
    draw(ROOT / "docs" / "images")
