"""The pages of the Python reference: which names stand on which page. Each name of `windrow.__all__` stands on one."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "windrow"

# Path: title, first sentence, what is described.
PAGES: dict[str, tuple[str, str, list[str]]] = {
    "reference/open.md": (
        "Open and look",
        "Data sets, and what is in them.",
        ["open", "from_frame", "Dataset", "formats"],
    ),
    "reference/views.md": (
        "Views and mixtures",
        "Samples of records, and several views as one.",
        ["View", "Mix", "mix", "temperature"],
    ),
    "reference/loader.md": (
        "Load",
        "Batches in an order that resumes.",
        ["Loader", "Blocks", "sample_rng", "inverse"],
    ),
    "reference/trace.md": (
        "Trace and compare",
        "What a step read, which step read it, and how fast a loader is.",
        ["trace", "find", "diff", "coverage", "extract", "bench"],
    ),
    "reference/prepare.md": (
        "Prepare",
        "Text to tokens, one format to another, checks, what is kept.",
        ["tokenize", "Tokenizer", "index", "convert", "write", "verify", "manifest", "cache", "create_dummy_data"],
    ),
    "reference/prep.md": (
        "Prepare in tasks",
        "On this machine, or on many.",
        ["prep.plan", "prep.run", "prep.run_task", "prep.status", "prep.merge", "prep.join", "prep.clean"],
    ),
    "reference/audio.md": (
        "Sound and codes",
        "Sound files as waveforms, and as the codes of an audio codec.",
        ["read_audio", "write_audio", "Codec", "encode", "rebuild_metadata", "delay", "undelay"],
    ),
    "reference/frameworks.md": (
        "torch and JAX",
        "What only one framework needs; each module is imported when it is first used.",
        ["torch.Stream", "torch.OnDevice", "torch.Rows", "torch.varlen", "torch.check_ranks", "jax.global_batches", "testing.check_no_leak"],
    ),
    "reference/errors.md": (
        "Errors",
        "Every class is a `WindrowError` and, where one fits, the class of Python that callers already catch.",
        [
            "WindrowError",
            "ConfigError",
            "CorruptError",
            "ExistsError",
            "IoError",
            "MismatchError",
            "NotFoundError",
            "OutOfMemoryError",
            "OutOfRangeError",
            "StaleError",
            "UnrecognisedError",
            "UnsupportedError",
        ],
    ),
}


def page(path: str) -> str:
    """A page in Markdown, with mkdocstrings' directives."""
    title, sentence, names = PAGES[path]
    return "\n\n".join([f"# {title}", sentence, *(f"::: windrow.{name}" for name in names)]) + "\n"


def missing() -> list[str]:
    """Public names that no page has."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    public = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    described = {name for _, _, names in PAGES.values() for name in names}
    return sorted(set(public) - described - {"__version__"})
