"""Notebooks as pages: their text, their code, and the outputs that they keep. Tests run them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def pages() -> dict[str, str]:
    """The Markdown of each page, by its path."""
    return {f"notebooks/{file.stem}.md": page(file) for file in sorted(FOLDER.glob("*.ipynb"))}


def page(file: Path) -> str:
    """A notebook as Markdown."""
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts += [text] if cell["cell_type"] == "markdown" else [f"```python\n{text}\n```", *map(_output, cell["outputs"])]
    return "\n\n".join([*parts, f"This page is a notebook, [`{file.name}`]({file.name})."]) + "\n"


def _output(output: dict[str, Any]) -> str:
    if "text" in output:
        # Of a bar that is drawn over itself the last state stays.
        lines = re.split(r"\n", "".join(output["text"]).rstrip())
        return _block("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
    data = output["data"]
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return f'<div class="output">{"".join(data[kind]).strip()}</div>'
    return _block("".join(data["text/plain"]))


def _block(text: str) -> str:
    return f"```text\n{text}\n```"
