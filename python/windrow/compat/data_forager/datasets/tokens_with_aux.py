"""Token samples with arrays beside them, by index."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

import windrow

from ....failure import failure
from ..sample_index import SampleIndex, SampleLocation
from .common import Dataset, in_native_order


class TokensWithAuxDataset(Dataset):
    """`dataset[i]` is a dict of read-only arrays `[sample_size]`: `tokens` and what is beside them, dtypes as in
    the index.

    Raises ValueError for an index without a sample schema (`TokensDataset` reads these).
    """

    @classmethod
    def create_from_index_on_filesystem(  # type: ignore[override]
        cls, base_path: str | os.PathLike[str], name: str | None = None, index_data_folder: str = "index", **kwargs: Any
    ) -> Any:
        """The dataset over the index in `<base_path>/<index_data_folder>/`."""
        return super().create_from_index_on_filesystem(
            base_path, index_data_folder=index_data_folder, name=name, **kwargs
        )

    def __init__(self, sample_index: SampleIndex, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(sample_index, name=name, **kwargs)
        if sample_index.sample_schema is None:
            raise failure(
                windrow.MismatchError,
                "the index has no sample_schema.json: its samples are tokens alone",
                path=sample_index.file_locations[0] if sample_index.file_locations else None,
                hint="TokensDataset reads them",
            )
        self._schema = sample_index.sample_schema

    def __getitems__(self, indices: list[int]) -> list[dict[str, npt.NDArray[Any]]]:
        """What torch's DataLoader fetches a batch with: arrays as tensors need them."""
        return [{name: in_native_order(values) for name, values in self[i].items()} for i in indices]

    def _get_sample(self, location: SampleLocation) -> dict[str, npt.NDArray[Any]]:
        if location.num_bytes != self._schema.total_bytes_per_sample:
            raise failure(
                windrow.CorruptError,
                f"found a sample of {location.num_bytes} bytes, "
                f"expected {self._schema.total_bytes_per_sample} (sample_schema.json)",
                path=location.file_path,
                byte=location.byte_offset,
            )
        return self._process_sample(self._get_sample_bytes(location))

    def _process_sample(self, sample_bytes: bytes) -> dict[str, npt.NDArray[Any]]:
        size = self._schema.sample_size
        return {
            spec.name: np.frombuffer(sample_bytes, dtype=spec.dtype, count=size, offset=spec.offset)
            for spec in self._schema.arrays
        }
