"""What torch's users need: how the rows of a view reach ``DataLoader``, through worker processes too."""

from .rows import Row, Rows
from .shared import SharedMemoryError

__all__ = ["Row", "Rows", "SharedMemoryError"]
