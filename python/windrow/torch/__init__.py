"""What torch's users need: a view as an ``IterableDataset``, and how its rows reach ``DataLoader`` through worker processes."""

from .rows import Row, Rows
from .shared import SharedMemoryError
from .stream import Stream

__all__ = ["Row", "Rows", "SharedMemoryError", "Stream"]
