"""Series as foundation_ts reads them: whole sequences as tensors, fixed windows of them, packed rows.

`foundation_ts.dataset` → `windrow.compat.foundation_ts.dataset`; the names are here as well. The native way is
`windrow.open(path).windows(…)`, and `windrow.Loader` over it: `WindowedDataset.views` are those windows.
"""

from .dataset import (
    BinarySequenceDataset,
    ConcatSequenceDataset,
    GeneralSequenceDataset,
    SequenceDataset,
    WindowedDataset,
    build_ts_dataset,
)
from .dataset.sources import discover_sequence_datasets

__all__ = [
    "BinarySequenceDataset",
    "ConcatSequenceDataset",
    "GeneralSequenceDataset",
    "SequenceDataset",
    "WindowedDataset",
    "build_ts_dataset",
    "discover_sequence_datasets",
]
