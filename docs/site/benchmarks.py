"""The page of benchmarks: plots of the newest runs in benches/runs/, as SVG whose text keeps its size on a phone."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

RUNS = Path(__file__).resolve().parents[2] / "benches" / "runs"
ROW, BAR = 38, 12


class Chart(NamedTuple):
    """A question of benches/run.py: which of its values are drawn, and what the labels on the page say."""

    title: str
    letter: str
    text: str
    unit: str
    script: str
    values: dict[str, str]
    within: tuple[str, ...] = ()


CHARTS = [
    Chart(
        "Shuffled tokens",
        "a",
        "Shuffled rows of 1,024 tokens out of 500 M uint16 tokens, as int64 inputs and labels, 32 in a batch. The plain loop only widens the "
        "same bytes, without prefetch.",
        "samples a second",
        "tokens.py",
        {
            "windrow, 2 threads": "windrow, 2 threads",
            "windrow, 1 thread": "windrow, 1 thread",
            "limit: widen, 2 threads": "plain loop, 2 threads",
            "limit: widen, 1 thread": "plain loop, 1 thread",
            "numpy memmap, fancy index, views": "NumPy memmap, fancy index, views",
            "numpy memmap, fancy index, contiguous": "NumPy memmap, fancy index, contiguous",
            "DataLoader over a windrow view, 0 workers": "DataLoader over a windrow view, 0 workers",
            "data-forager": "data-forager",
            "DataLoader over a memmap, 0 workers": "DataLoader over a memmap, 0 workers",
            "DataLoader over a memmap, 2 workers": "DataLoader over a memmap, 2 workers",
        },
        ("1024",),
    ),
    Chart(
        "Documents in packs",
        "q",
        "Shuffled rows of 1,024 tokens with what keeps their documents apart, 512 tokens long on average: positions, numbers of segments, "
        "their ends. The limit only writes the same bytes; 1 thread each.",
        "samples a second",
        "mixtures.py",
        {
            "windrow, documents end with EOS": "windrow, documents end with an EOS token",
            "windrow, documents are records": "windrow, documents are records",
            "limit: the same bytes": "limit, the same bytes",
        },
        ("1",),
    ),
    Chart(
        "A mixture of 100 parts",
        "r",
        "Shuffled rows of 1,024 tokens out of 100 files, whose shares change 10 times, beside the same tokens as one file; 1 thread each.",
        "samples a second",
        "mixtures.py",
        {"100 parts, 10 phases": "windrow, 100 parts, 10 phases", "one view": "windrow, one view"},
        ("1",),
    ),
    Chart(
        "Indexing JSON Lines",
        "b",
        "An index of 1 GB of JSON Lines. The limit only looks for the ends of lines.",
        "bytes a second",
        "records.py",
        {"windrow": "windrow", "limit: memchr over a map": "limit, memchr over a map", "data-forager": "data-forager"},
    ),
    Chart(
        "JSON records at random",
        "c",
        "Records at random places, parsed.",
        "records a second",
        "records.py",
        {
            "windrow, Python": "windrow, Python",
            "mmap + orjson, Python": "mmap and orjson, Python",
            "windrow, Rust": "windrow, Rust",
            "limit: Rust, read and parse": "limit, Rust: read and parse",
            "data-forager": "data-forager",
        },
    ),
    Chart(
        "Tokenising",
        "d",
        "Source code to packed token files with the tokenizer `cl100k_base` on 2 cores. The limits only tokenise texts that are in "
        "memory and discard the token IDs.",
        "bytes a second",
        "text.py",
        {
            "windrow tokenize, 2 threads": "windrow tokenize, written to disk",
            "limit: the tokenizer's encode_batch, all at once": "limit, the library's encode_batch",
            "limit: bare tokenizer, 2 threads": "limit, a loop of 2 threads",
            "the tokenizer's Python package, encode_batch": "the library's Python package",
        },
        ("cl100k_base, sources",),
    ),
    Chart(
        "Windows of time series",
        "g",
        "Windows of 256 points of 20,000 series, scaled. The plain loop reads and scales the same bytes, without prefetch.",
        "windows a second",
        "series.py",
        {
            "windrow, 2 threads": "windrow, 2 threads",
            "limit: read and scale, 2 threads": "plain loop, 2 threads",
            "numpy, vectorised, statistics known": "NumPy, vectorised, statistics known",
            "DataLoader over a windrow view, 2 workers": "DataLoader over a windrow view, 2 workers",
            "data set as described, 2 workers": "a data set that scales for each window, DataLoader, 2 workers",
        },
    ),
    Chart(
        "flat-tokens",
        "j",
        "Shuffled rows of 1,024 tokens from zarr, in zstd chunks of 4,096 tokens in shards.",
        "samples a second",
        "flat_tokens.py",
        {
            "windrow, next-token pairs": "windrow",
            "tensorstore": "tensorstore",
            "zarrs-python": "zarrs-python",
            "zarr-python 3": "zarr-python 3",
        },
        ("v3, zstd chunks of 4 Ki tokens in shards",),
    ),
    Chart(
        "Audio codes",
        "l",
        "Batches of pre-encoded audio with prompts and delays.",
        "samples a second",
        "codes.py",
        {
            "windrow, dense, 2 threads": "windrow, 2 threads",
            "limit: write as much, dense, 2 threads": "limit: write the same number of bytes",
            "torch.load and collate, 0 workers": "torch.load and collate, 0 workers",
            "torch.load and collate, 2 workers": "torch.load and collate, 2 workers",
        },
    ),
    Chart(
        "Sound to codes",
        "n",
        "Waveforms to codes of the Descript Audio Codec on a CPU. The limit is the time that its matrix products take alone.",
        "milliseconds of 44.1 kHz sound a second",
        "codec.py",
        {
            "windrow, 2 threads": "windrow, 2 threads",
            "descript-audio-codec, 2 threads": "descript-audio-codec, 2 threads",
            "matrix products alone, 2 threads": "limit, matrix products alone",
        },
    ),
    Chart(
        "Records that other programs wrote",
        "o",
        "Samples at random from a data set of each format.",
        "samples a second",
        "formats.py",
        {
            "numpy slice and copy": "limit, NumPy slice and copy",
            "windrow datatrove .ds": "windrow, datatrove",
            "windrow litdata tokens": "windrow, LitData",
            "windrow olmo": "windrow, OLMo",
            "windrow arrow": "windrow, Arrow",
            "windrow parquet, from the cache": "windrow, Parquet, once decoded",
            "windrow mds": "windrow, MDS",
            "pyarrow, a mapped column": "pyarrow, a mapped column",
            "mosaicml-streaming": "mosaicml-streaming",
        },
        ("records",),
    ),
]


def page() -> str:
    """The page in Markdown."""
    parts = [
        "# Benchmarks",
        "`make bench` compares windrow with other programs and with the limit of the machine, which is a loop that does only the part "
        "of the work that no loader can leave out. Each value is the median of several passes taken in turns; each plot shows "
        "the newest run of its question. The ratios are stable, the absolute numbers are those of one small machine with a warm page cache.",
        '<p class="legend"><span class="own">windrow</span> <span class="limit">limit of the machine</span> '
        '<span class="peer">others</span></p>',
    ]
    for chart in CHARTS:
        file, run = newest(chart.letter)
        found: Any = run[chart.letter]
        for key in chart.within:
            found = found[key]
        rows = [(label, float(found[key])) for key, label in chart.values.items()]
        about = f"{run['machine']}, windrow {run['windrow']}, {run['passes']} passes"
        parts += [
            f"## {chart.title}",
            chart.text,
            plot(chart.title, rows, chart.unit),
            f"Measured by [`benches/{chart.script}`](../benches/{chart.script}) on {run['date']}: "
            f"[`{file.name}`](../benches/runs/{file.name}), {about}.",
        ]
    return "\n\n".join(parts) + "\n"


def newest(letter: str) -> tuple[Path, dict[str, Any]]:
    """The newest run that answers a question; file names begin with the date."""
    for file in sorted(RUNS.glob("*.json"), reverse=True):
        run = json.loads(file.read_text(encoding="utf-8"))
        if letter in run:
            return file, run
    raise FileNotFoundError(f"no run in {RUNS} answers question {letter!r}: run `python benches/run.py {letter}`")


def plot(title: str, rows: list[tuple[str, float]], unit: str) -> str:
    """Bars as SVG, which is as wide as the page; the longest is the largest value."""
    largest = max(value for _, value in rows)
    shapes = []
    for number, (label, value) in enumerate(rows):
        top = number * ROW
        shapes += [
            f'<text x="0" y="{top + 14}">{escape(label)}</text>',
            f'<text x="100%" y="{top + 14}" text-anchor="end">{short(value)}</text>',
            f'<rect class="{_kind(label)}" y="{top + 19}" width="{max(100 * value / largest, 0.3):.2f}%" height="{BAR}"/>',
        ]
    said = "; ".join(f"{label}: {short(value)}" for label, value in rows)
    return (
        f'<figure class="plot"><svg role="img" width="100%" height="{len(rows) * ROW}" aria-label="{escape(f"{title}, {unit}. {said}")}">'
        f"{''.join(shapes)}</svg><figcaption>{escape(unit)}</figcaption></figure>"
    )


def short(value: float) -> str:
    """A number in three digits: 2.83 M."""
    for factor, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


def _kind(label: str) -> str:
    return "limit" if label.startswith("limit") else "own" if "windrow" in label else "peer"
