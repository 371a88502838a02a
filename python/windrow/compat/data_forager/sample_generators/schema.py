"""Which arrays a sample is made of, when there is more than its tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class ArraySpec:
    """One array: its name, numpy's name of its dtype, and the byte in the sample where it starts."""

    name: str
    dtype: str
    offset: int


@dataclass
class SampleSchema:
    """`sample_size` values in each of `arrays`, which follow each other; the total is computed when it is not given."""

    sample_size: int
    arrays: list[ArraySpec] = field(default_factory=list)
    total_bytes_per_sample: int | None = None

    def __post_init__(self) -> None:
        if self.total_bytes_per_sample is None and self.arrays:
            self.total_bytes_per_sample = sum(self.sample_size * np.dtype(a.dtype).itemsize for a in self.arrays)
