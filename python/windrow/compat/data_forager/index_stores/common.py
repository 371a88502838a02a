"""What an index store must be able to do."""

from __future__ import annotations

from typing import Protocol

from ..sample_index import SampleIndex


class IndexStoreInterface(Protocol):
    """Writing: `init_store`, `add_sample` for each sample in order, `close`. Reading: `load`.

    A store for samples with arrays beside the tokens also has `set_sample_schema(schema)`; `discard()` is called, where
    there is one, when a run ends in an error.
    """

    def init_store(self) -> None:
        """Begins a new index."""

    def add_sample(self, file_location: str, byte_offset: int, num_bytes: int) -> None:
        """The next sample."""

    def close(self) -> None:
        """All samples are added: the index is complete."""

    def load(self) -> SampleIndex:
        """The complete index."""
        ...

    def exists(self) -> bool:
        """Whether there is one."""
        ...

    def clear(self) -> None:
        """Removes it."""
