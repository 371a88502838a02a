"""The adapters of examples/trainers, which have the names of the packages that they are for, and docs/trainers.md, which uses them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]


def adapter(trainer: str) -> ModuleType:
    """An example, as `windrow_<trainer>`: the name under which docs/trainers.md has it copied."""
    name = f"windrow_{trainer}"
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "trainers" / f"{trainer}.py")
    assert spec and spec.loader
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_page(file: str) -> dict[str, Any]:
    """The names that a file of docs/trainers.md defines; the adapter that it imports must be there."""
    found = re.search(rf"<!-- file: {file} -->\n```python\n(.*?)```", (ROOT / "docs" / "trainers.md").read_text(), re.DOTALL)
    assert found, file
    names: dict[str, Any] = {}
    exec(found[1], names)  # noqa: S102
    return names
