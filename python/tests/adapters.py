"""The adapters of examples/trainers, which have the names of the packages that they are for."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TRAINERS = Path(__file__).parents[2] / "examples" / "trainers"


def adapter(trainer: str) -> ModuleType:
    """An example, as `windrow_<trainer>`: the name under which docs/trainers.md has it copied."""
    name = f"windrow_{trainer}"
    spec = importlib.util.spec_from_file_location(name, TRAINERS / f"{trainer}.py")
    assert spec and spec.loader
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
