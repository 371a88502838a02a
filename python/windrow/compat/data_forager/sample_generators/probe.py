"""Tells functions apart by what they give: their code does not say what the objects hold that they ask."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np


def probe(make: Callable[[], Any]) -> str:
    """A hash of the numbers that `make` gives; empty when it fails: then the work itself will say why, and where.

    >>> probe(lambda: [1, 2]) == probe(lambda: np.array([1, 2])) != probe(lambda: [1, 3])
    True
    """
    try:
        return hashlib.sha256(repr(_plain(make())).encode()).hexdigest()[:16]
    except Exception:
        return ""


class WatchedFunction:
    """A function under a name that says what it gives; remembers the argument at which it failed."""

    def __init__(self, function: Callable[[str], Any], described: str) -> None:
        self._function = function
        self.__qualname__ = described
        self.failed_at: str | None = None

    def __call__(self, text: str) -> Any:
        try:
            return self._function(text)
        except Exception:
            self.failed_at = text
            raise


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(values) for name, values in value.items()}
    return np.asarray(value).tolist()
