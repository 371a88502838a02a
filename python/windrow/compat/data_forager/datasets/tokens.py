"""Token samples by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import windrow

from ....failure import failure
from ..sample_index import SampleIndex, SampleLocation
from .common import Dataset, in_native_order


class TokensDataset(Dataset):
    """Samples of token ids: `dataset[i]` is a read-only array `[T]` of `token_dtype`.

    Raises `windrow.MismatchError` (a ValueError) when the index is known to have been written with another dtype, and a
    ValueError at a sample whose size is not a multiple of the dtype's, or that has arrays beside its tokens
    (`TokensWithAuxDataset` reads these).
    """

    def __init__(
        self, sample_index: SampleIndex, token_dtype: npt.DTypeLike, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(sample_index, name=name, **kwargs)
        self._token_dtype = np.dtype(token_dtype)
        written = sample_index.token_dtype
        if written is not None and sample_index.sample_schema is None and written != self._token_dtype:
            raise failure(
                windrow.MismatchError,
                f"token_dtype is {self._token_dtype}, the samples were written as {written}",
                path=sample_index.file_locations[0] if sample_index.file_locations else None,
                hint=f"token_dtype=np.{written}",
            )

    def __getitems__(self, indices: list[int]) -> list[npt.NDArray[Any]]:
        """What torch's DataLoader fetches a batch with: arrays as tensors need them."""
        return [in_native_order(self[i]) for i in indices]

    def _get_sample(self, location: SampleLocation) -> npt.NDArray[Any]:
        found = self._get_sample_bytes(location)
        if self._sample_index.sample_schema is not None:
            raise failure(
                windrow.MismatchError,
                "the samples have arrays beside their tokens",
                path=location.file_path,
                byte=location.byte_offset,
                hint="TokensWithAuxDataset reads them",
            )
        if len(found) % self._token_dtype.itemsize:
            raise failure(
                windrow.CorruptError,
                f"found a sample of {len(found)} bytes, expected a multiple of {self._token_dtype.itemsize} "
                f"({self._token_dtype})",
                path=location.file_path,
                byte=location.byte_offset,
                hint="it was written with another token_dtype",
            )
        return self._process_sample(found)

    def _process_sample(self, sample_bytes: bytes) -> npt.NDArray[Any]:
        return np.frombuffer(sample_bytes, dtype=self._token_dtype)
