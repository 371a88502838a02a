"""Typed parts of a document, and what makes one value per token from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass
class Part:
    """A piece of a document: its type (`"system"`, `"prompt"`, `"response"`, `"text"`, …) and its text."""

    type: str
    text: str


class AuxDataGenerator(Protocol):
    """Makes the array beside the tokens: one value of `dtype` per token."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The values' dtype."""
        ...

    def generate(self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None) -> list[int]:
        """The values for the `num_tokens` tokens of a part."""
        ...

    def generate_for_eos(self) -> int:
        """The value for the token that ends a document."""
        ...
