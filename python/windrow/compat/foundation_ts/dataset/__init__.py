"""From a path to windows in one call, and the classes it is made of."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .normalizers import Normalization, resolve
from .sequences import (
    BinarySequenceDataset,
    ConcatSequenceDataset,
    GeneralSequenceDataset,
    SequenceDataset,
)
from .sources import discover_sequence_datasets
from .windows import WindowedDataset

__all__ = [
    "BinarySequenceDataset",
    "ConcatSequenceDataset",
    "GeneralSequenceDataset",
    "SequenceDataset",
    "WindowedDataset",
    "build_ts_dataset",
]


def build_ts_dataset(
    data_path: str | os.PathLike[str],
    max_length: int,
    stride: int | None,
    normalization_method: Normalization = None,
    use_mmap: bool = True,
    mmap_cache_size: int = 32,
    pack_sequences: bool = False,
    pack_buckets: Sequence[int] | None = None,
    include_patterns: Sequence[str] | None = None,
) -> WindowedDataset:
    """Windows of `max_length` inputs, `stride` apart, over every data set at `data_path`.

    `normalization_method` is `None`, `"max"`, `"zero"` (in any case) or a function from a tensor to a tensor of its
    length; it sees whole sequences. With `pack_sequences` rows are packed instead, see `WindowedDataset`.
    `include_patterns` keep those data sets of a folder whose relative path, or a folder of it, matches one of them.

    Raises `windrow.ConfigError` for an unknown method, `windrow.NotFoundError` where nothing is, and
    `windrow.UnrecognisedError` where nothing usable is.

    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "levels-1-of-1.bin"
    >>> _ = path.write_bytes(b"\\x01\\x02\\x04")
    >>> meta = {"num_sequences": 1, "dtype": "uint8", "files": {path.name: 3}, "scales": [{"offset": 0, "length": 3}]}
    >>> _ = (path.parent / "meta.json").write_text(json.dumps(meta))
    >>> build_ts_dataset(path.parent, max_length=4, stride=4, normalization_method="max")[0]["input_ids"]
    tensor([0.2500, 0.5000, 1.0000, 0.0000])
    """
    transform = resolve(normalization_method)
    found = discover_sequence_datasets(data_path, transform, use_mmap, mmap_cache_size, include_patterns)
    return WindowedDataset(
        ConcatSequenceDataset(found),
        context_length=max_length,
        prediction_length=0,
        stride=stride,
        pack_sequences=pack_sequences,
        pack_buckets=pack_buckets,
    )
