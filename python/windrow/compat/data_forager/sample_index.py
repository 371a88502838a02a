"""Where each sample lies: rows of (file number, first byte, size) and the files' paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import windrow

from ...failure import failure
from .sample_generators.schema import SampleSchema


@dataclass
class SampleLocation:
    """One sample: `num_bytes` bytes of the file at `file_path`, from `byte_offset` on."""

    file_path: str
    byte_offset: int
    num_bytes: int


@dataclass
class SampleIndex:
    """All samples: uint64 `[N, 3]` rows of (number in `file_locations`, byte offset, number of bytes).

    `sample_schema` says which arrays a sample is made of, where it is more than its tokens; `token_dtype` is the dtype
    that the index is known to have been written with, or None.
    """

    file_locations: list[str]
    sample_locations: npt.NDArray[Any]
    sample_schema: SampleSchema | None = None
    token_dtype: np.dtype[Any] | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return int(self.sample_locations.shape[0])

    def __getitem__(self, idx: int) -> SampleLocation:
        """Sample `idx`, negative from the end; `IndexError` beyond the ends, `windrow.CorruptError` for an unknown
        file.
        """
        if not -len(self) <= idx < len(self):
            raise failure(windrow.OutOfRangeError, f"sample {idx} is out of range: there are {len(self)}")
        file, offset, size = self.sample_locations[idx].tolist()
        if file >= len(self.file_locations):
            raise failure(
                windrow.CorruptError,
                f"found file number {file}, expected less than {len(self.file_locations)}",
                record=idx % len(self),
            )
        return SampleLocation(self.file_locations[file], offset, size)
