"""What torch's users need: a view as an ``IterableDataset``, how its rows reach ``DataLoader`` through worker processes,
batches on a device, batches of documents for flash attention, and whether ranks agree.
"""

from .agree import check_ranks
from .device import OnDevice
from .rows import Row, Rows
from .shared import SharedMemoryError
from .stream import Stream
from .varlen import varlen

__all__ = ["OnDevice", "Row", "Rows", "SharedMemoryError", "Stream", "check_ranks", "varlen"]
