"""Which tokens stay out of the loss, by the type of their part."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import AuxDataGenerator


class LossMaskGenerator(AuxDataGenerator):
    """uint8, 1 = excluded from the loss, 0 = trained on.

    `masked_types`: the excluded types, by default `{"system", "prompt"}`; `mask_eos`: whether the end-of-sequence token
    is excluded.

    >>> LossMaskGenerator().generate("prompt", 3), LossMaskGenerator().generate("response", 2)
    ([1, 1, 1], [0, 0])
    """

    def __init__(self, masked_types: set[str] | None = None, mask_eos: bool = False) -> None:
        self._masked_types = {"system", "prompt"} if masked_types is None else masked_types
        self._mask_eos = mask_eos

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint8."""
        return np.dtype(np.uint8)

    def generate(self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None) -> list[int]:
        """`num_tokens` times 1 for a masked type, else 0."""
        return [int(part_type in self._masked_types)] * num_tokens

    def generate_for_eos(self) -> int:
        """1 when the end-of-sequence token is masked."""
        return int(self._mask_eos)
