"""The notebooks of docs/notebooks run in a kernel, as Jupyter has them, and give the outputs that they show.

`make test-notebooks` installs the kernel and runs this file; without it the file is not collected. After an edit,
`make notebooks` runs each and keeps its outputs.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run(path: Path, scratch: Path) -> Any:
    """A notebook with the outputs of a run in its own folder, which writes below `scratch`."""
    os.environ |= {"TMPDIR": str(scratch), "WINDROW_CACHE": str(scratch / "cache")}
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=place, coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    # Where the repository lies, and the folder of this run, say nothing to a reader.
    text = nbformat.writes(notebook).replace(str(ROOT), "/data/windrow")
    return nbformat.reads(re.sub(re.escape(str(scratch)) + r"/tmp\w+", "/data/notebook", text), as_version=4)


def shown(notebook: Any) -> list[str]:
    """What the code cells show, without bars of progress, whose speeds differ, and pictures, whose last digits may."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    for output in outputs:
        output.get("data", {}).pop("image/svg+xml", None)
    return [json.dumps(output, sort_keys=True) for output in outputs if output.get("name") != "stderr"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "WINDROW_CACHE"):
        # Set again afterwards.
        monkeypatch.setenv(name, os.environ.get(name, tempfile.gettempdir()))
    kept, found = nbformat.read(path, as_version=4), run(path, tmp_path)
    assert shown(found) == shown(kept), "run `make notebooks` and look at the difference"
    bars = [output.text for cell in found.cells for output in cell.get("outputs", []) if output.get("name") == "stderr"]
    assert all("100%" in bar and "Warning" not in bar for bar in bars), bars


def test_a_bar_and_a_table_are_shown() -> None:
    tokens = nbformat.read(next(path for path in NOTEBOOKS if path.stem == "tokens"), as_version=4)
    outputs = [output for cell in tokens.cells for output in cell.get("outputs", [])]
    assert any(output.get("name") == "stderr" and "records" in output.text for output in outputs)
    assert any("<table>" in output.get("data", {}).get("text/html", "") for output in outputs)


if __name__ == "__main__":
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as scratch:
            nbformat.write(run(path, Path(scratch)), path)
